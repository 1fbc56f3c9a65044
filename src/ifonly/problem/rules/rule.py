"""A rule between features, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.problem.parts import Columns, Part
from ifonly.problem.rules import normal, syntax
from ifonly.problem.rules.meaning import Formula, features_of, holds, understand
from ifonly.schema import Schema
from ifonly.schema.printing import shown


@dataclass(frozen=True)
class Rule:
    """What must be true of the row that is found, such as Rule("if Education >= Bachelors then Age >= 21")."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise QuestionError(f"A rule is a text such as 'Age >= 18 + YearsEmployed'; got {shown(self.text)}.")
        object.__setattr__(self, "text", self.text.strip())
        syntax.parse(self.text)

    def formula(self, schema: Schema) -> Formula:
        """The rule read for a schema; the last reading is kept, since rows are judged one at a time."""
        kept: tuple[Schema, Formula] | None = self.__dict__.get("_read")
        if kept is None or kept[0] is not schema:
            kept = (schema, understand(self.text, syntax.parse(self.text), schema))
            self.__dict__["_read"] = kept
        return kept[1]

    def features(self, schema: Schema) -> frozenset[str]:
        """The features that it looks at."""
        return frozenset(schema.names[g] for g in features_of(self.formula(schema)))

    def check(self, schema: Schema) -> None:
        normal.clauses(self.formula(schema), schema)

    def allows_row(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
        return holds(self.formula(schema), after)

    def parts(self, columns: Columns) -> Sequence[Part]:
        return normal.parts(self.formula(columns.schema), columns)

    def describe(self) -> str:
        return self.text
