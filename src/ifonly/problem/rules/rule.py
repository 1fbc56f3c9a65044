"""A rule between features, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.parts import Part, UnrolledColumns
from ifonly.problem.rules import normal, parser
from ifonly.problem.rules.formulas import Formula, features_of, holds_each
from ifonly.problem.rules.judge import Judge, judge_of
from ifonly.problem.rules.meaning import understand
from ifonly.schema import Schema
from ifonly.schema.decimals import rounded

Gap: TypeAlias = tuple[float, float]
"""Allowed are what is not above the first, and what is not below the second; infinite where there is no such."""

READINGS = 4
"""Of a rule, for as many schemas, that are kept."""


@dataclass(frozen=True)
class Rule:
    """What must be true of the row that is found, such as Rule("if Education >= Bachelors then Age >= 21")."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise QuestionError(f"A rule is a text such as 'Age >= 18 + YearsEmployed'; got {shown(self.text)}.")
        object.__setattr__(self, "text", self.text.strip())
        parser.parse(self.text)

    def _understood(self, schema: Schema) -> tuple[Schema, Formula, dict[str, Any]]:
        """The rule read for a schema; the last readings are kept, since rows are judged one at a time, and for several
        models by turns for a schema and what is left of it."""
        kept: tuple[tuple[Schema, Formula, dict[str, Any]], ...] = self.__dict__.get("_read", ())
        for one in kept:
            if one[0] is schema:
                return one
        read: tuple[Schema, Formula, dict[str, Any]] = (schema, self._read_for(schema), {})
        self.__dict__["_read"] = (read, *kept[: READINGS - 1])
        return read

    def _read_for(self, schema: Schema) -> Formula:
        return understand(self.text, parser.parse(self.text), schema)

    def formula(self, schema: Schema) -> Formula:
        """What it says about a row of the schema."""
        return self._understood(schema)[1]

    def clauses(self, schema: Schema) -> tuple[normal.Clause, ...]:
        """The same as clauses, of which all must hold."""
        _, formula, kept = self._understood(schema)
        if "clauses" not in kept:
            kept["clauses"] = normal.clauses(formula, schema)
        found: tuple[normal.Clause, ...] = kept["clauses"]
        return found

    def features(self, schema: Schema) -> frozenset[str]:
        """The features that it looks at."""
        _, formula, kept = self._understood(schema)
        if "features" not in kept:
            kept["features"] = frozenset(schema.names[g] for g in features_of(formula))
        found: frozenset[str] = kept["features"]
        return found

    def gaps(self, schema: Schema) -> tuple[Gap, ...]:
        """The gaps between the values that it leaves a number, if it is about one number alone."""
        clauses = self.clauses(schema)
        names = self.features(schema)
        if len(names) != 1 or not all(isinstance(one, normal.AtLeast) for clause in clauses for one in clause):
            return ()
        return tuple(_gap(clause) for clause in clauses)

    def check(self, schema: Schema) -> None:
        self.clauses(schema)

    def allows_row(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
        _, formula, kept = self._understood(schema)
        judge: Judge | None = kept.get("judge")
        if judge is None:
            judge = kept["judge"] = judge_of(formula)
        return judge(after.tolist())

    def __getstate__(self) -> dict[str, Any]:  # what was understood is understood again, in another process
        return {name: value for name, value in self.__dict__.items() if name != "_read"}

    def allows_rows(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.bool_]:
        return holds_each(self.formula(schema), after)

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        *_, kept = self._understood(columns.schema)
        known: Sequence[Part] | None = kept.get("parts")
        if known is None:
            known = kept["parts"] = normal.parts(self.clauses(columns.schema), columns)
        return known

    def describe(self) -> str:
        return self._clearly

    @cached_property
    def _clearly(self) -> str:
        return parser.clearly(self.text)


def _gap(clause: normal.Clause) -> Gap:
    """What a clause about one number leaves out: all of it, an end, or what is between two values."""
    below, above = -math.inf, math.inf
    for one in clause:
        assert isinstance(one, normal.AtLeast)
        ((_, slope),) = one.numbers
        if slope > 0:
            above = rounded(-one.constant / slope)
        else:
            below = rounded(one.constant / -slope)
    return below, above
