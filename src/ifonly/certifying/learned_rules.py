"""Rules that were learned from a table, as clauses of a certificate."""

from __future__ import annotations

from typing import Any

from ifonly.certificate.check.rule_reading import MOST
from ifonly.errors import UnsupportedQuestion
from ifonly.problem.learned.support import NumberGivenOption, OptionsTogether
from ifonly.schema import Numeric, Schema
from ifonly.schema.decimals import written


def learned_data(schema: Schema, rule: NumberGivenOption | OptionsTogether) -> list[dict[str, Any]]:
    """The clauses: for each option or for some, that the feature has another one, or what goes with it."""
    if isinstance(rule, OptionsTogether):
        others = _elsewhere(schema, rule.feature, rule.options)
        return [{"kind": "clause", "any": [others, {"feature": name, "options": sorted(allowed)}]}
                for name, allowed in rule.partners]  # fmt: skip
    number, slack, found = schema[rule.number], rule.slack(schema), []
    assert isinstance(number, Numeric)
    for option, (low, high) in enumerate(rule.ends):
        other = _elsewhere(schema, rule.feature, (option,))
        for sign, end, least in ((1, low - slack, number.lower), (-1, high + slack, -number.upper)):
            if sign * end > least:
                found.append({"kind": "clause", "any": [other, at_least(rule.number, sign, end)]})
    return found


def _elsewhere(schema: Schema, name: str, options: tuple[int, ...]) -> dict[str, Any]:
    count = len(schema[name].options)  # type: ignore[union-attr]
    return {"feature": name, "options": [o for o in range(count) if o not in options]}


def at_least(name: str, sign: int, end: float) -> dict[str, Any]:
    """sign * number >= sign * end, in decimals."""
    constant = -sign * written(end)
    if max(abs(constant.numerator), constant.denominator) > MOST:
        raise UnsupportedQuestion(f"A certificate cannot state that '{name}' reaches {end!r}: too many digits.")
    return {"numbers": [[name, sign]], "options": [], "constant": [constant.numerator, constant.denominator]}
