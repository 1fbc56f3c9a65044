"""The rules of a certificate, read from its constraints."""

from __future__ import annotations

from typing import Any

from ...printing import quoted
from .apart import apart_literals
from .reading import CheckBudget, Refusal, entries, listed, whole
from .rules import RuleLiteral, Rules
from .schema import StatedChoice, StatedInteger, StatedSchema

OWN = ("clause", "max_changes", "fewest_changes", "only_with", "apart")
"""Kinds of constraints that are read here."""
MAX_LITERALS = 20_000
MOST = 10**18
"""How large whole numbers of a literal may be."""


def read_rules(schema: StatedSchema, constraints: tuple[Any, ...], meter: CheckBudget) -> Rules:
    where = schema.positions
    literals: list[RuleLiteral] = []
    clauses: list[tuple[int, ...]] = []
    limits: list[tuple[int, tuple[bool, ...]]] = []
    partners: list[tuple[int, int]] = []
    fewest: int | None = None

    def place(name: Any) -> int:
        if not isinstance(name, str) or name not in where:
            raise Refusal(f"a rule is about an unknown feature, {str(name)[:60]!r}")
        return where[name]

    for constraint in constraints:
        meter.tick()
        kind = constraint["kind"]
        if kind in ("max_changes", "fewest_changes"):
            entries(constraint, "a limit on changes", "kind", "most", "uncounted")
            free = {place(name) for name in listed(constraint["uncounted"], "the uncounted features")}
            most = whole(constraint["most"], "the most changes", 0, len(schema))
            if kind == "fewest_changes":
                if fewest is not None:
                    raise Refusal("the fewest changes are stated twice")
                fewest = len(limits)
            limits.append((most, tuple(g not in free for g in range(len(schema)))))
        elif kind == "only_with":
            entries(constraint, "a rule about partners", "kind", "feature", "partner")
            partners.append((place(constraint["feature"]), place(constraint["partner"])))
        else:
            found = _read_clause(schema, place, constraint, len(literals), meter)
            clauses.append(tuple(range(len(literals), len(literals) + len(found))))
            literals += found
    meter.keep(512 * sum(len(one.numbers) + len(one.options) for one in literals))
    features = tuple(frozenset(g for g, _ in (*one.numbers, *one.options)) for one in literals)
    return Rules(tuple(literals), tuple(clauses), tuple(limits), tuple(partners), fewest, features)


def _check_count(count: int) -> None:
    if count > MAX_LITERALS:
        raise Refusal(f"there are more than {MAX_LITERALS} literals")


def _read_clause(
    schema: StatedSchema, place: Any, constraint: Any, before: int, meter: CheckBudget
) -> list[RuleLiteral]:  # fmt: skip
    """The literals of a clause, of which one must hold; `before` are known already."""
    if constraint["kind"] == "apart":
        found = apart_literals(schema, constraint, meter)
    else:
        given = listed(entries(constraint, "a clause", "kind", "any")["any"], "a clause")
        _check_count(before + len(given))
        found = [_read_literal(schema, place, one, meter) for one in given]
    _check_count(before + len(found))
    return found


def _read_literal(schema: StatedSchema, place: Any, value: Any, meter: CheckBudget) -> RuleLiteral:
    """{"feature", "options"}: it has one of them; or {"numbers", "options", "constant"}: an inequality."""
    meter.tick()
    if isinstance(value, dict) and "feature" in value:
        entries(value, "a literal", "feature", "options")
        g = place(value["feature"])
        feature = schema.features[g]
        if not isinstance(feature, StatedChoice):
            raise Refusal(f"{quoted(feature.name)} has no options")
        most = len(feature.options) - 1
        own = {whole(o, "an option", 0, most) for o in listed(value["options"], "the options of a literal")}
        return RuleLiteral((), ((g, tuple(int(o in own) for o in range(most + 1))),), -1, True)
    entries(value, "a literal", "numbers", "options", "constant")
    numbers, options = [], []
    for pair in listed(value["numbers"], "the numbers of a literal"):
        name, a = listed(pair, "a number of a literal", 2)
        numbers.append((place(name), whole(a, "a coefficient", -MOST, MOST)))
    for pair in listed(value["options"], "the options of a literal"):
        name, values = listed(pair, "an option of a literal", 2)
        feature = schema.features[g := place(name)]
        count = len(feature.options) if isinstance(feature, StatedChoice) else 0
        given = listed(values, "the values of options", count)
        options.append((g, tuple(whole(v, "the value of an option", -MOST, MOST) for v in given)))
    if any(isinstance(schema.features[g], StatedChoice) for g, _ in numbers) or not all(len(v) for _, v in options):
        raise Refusal("a literal takes a number for options, or options for a number")
    named = [g for g, _ in (*numbers, *options)]
    if len(set(named)) != len(named):
        raise Refusal("a literal names a feature twice")
    top, bottom = listed(value["constant"], "the constant of a literal", 2)
    over = whole(bottom, "the denominator of a constant", 1, MOST)
    constant = whole(top, "the constant of a literal", -MOST, MOST)
    exact = over == 1 and all(
        isinstance(f := schema.features[g], StatedInteger) and float(f.lower).is_integer() for g, _ in numbers
    )
    return RuleLiteral(
        tuple((g, a * over) for g, a in numbers),
        tuple((g, tuple(v * over for v in values)) for g, values in options), constant, exact,
    )  # fmt: skip
