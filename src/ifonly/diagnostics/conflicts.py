"""Conflicts between data and schema: bounds that exclude rows, rules that rows break.

Where many rows of real data do not fit, the schema or a rule is wrong, and every answer with it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ifonly.errors import RowError
from ifonly.explainer import Explainer
from ifonly.printing import printable
from ifonly.problem.already_satisfied import broken_by
from ifonly.problem.disjunctions import is_condition
from ifonly.schema import read_points

MOST_ROWS = 20_000
"""Rows that are compared with the rules; all are compared with the bounds."""


def schema_conflicts(explainer: Explainer, table: Any) -> tuple[str, ...]:
    """One sentence per feature whose values do not fit, and per rule that rows break; none where all fit.

    Warnings of the model's import come first.
    """
    errors: list[RowError | None] = []
    points = read_points(explainer.schema, table, errors=errors)
    wrong = [error for error in errors if error is not None]
    unfit = [_unfit(name, [e for e in wrong if e.feature == name], len(errors)) for name in explainer.schema.names
            if any(error.feature == name for error in wrong)]  # fmt: skip
    good = points[[error is None for error in errors]][:MOST_ROWS]
    constraints = [c for c in explainer.constraints_for(()) if not is_condition(c)]
    broken = Counter(words for point in good for words in broken_by(explainer.schema, point, constraints))
    broken_rules = (_broken(words, count, len(good)) for words, count in broken.most_common())
    return (*explainer.model.warnings, *unfit, *broken_rules)


def _unfit(name: str, wrong: list[RowError], rows: int) -> str:
    which = "every row" if len(wrong) == rows else f"{len(wrong):,} of {rows:,} rows"
    return f"'{printable(name)}' does not fit in {which}; the first: {wrong[0]}"


def _broken(words: str, count: int, rows: int) -> str:
    if count == rows:
        return f"Every row breaks the rule '{printable(words)}' as it is: is it the rule that is wrong?"
    return f"{count:,} of {rows:,} rows break the rule '{printable(words)}' as they are."
