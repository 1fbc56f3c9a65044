"""Derived features: features whose values follow from others, and cost nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.rules import normal
from ifonly.problem.rules.definitions import DefinitionParser, definition_formula, refuse_cycles
from ifonly.problem.rules.formulas import Every, Formula, without_missing
from ifonly.problem.rules.rule import Rule
from ifonly.problem.words import show_name
from ifonly.schema import Schema

MAX_CLAUSES = 2000


@dataclass(frozen=True, init=False)
class Derived(Rule):
    """The value of a feature follows from others, such as Derived("Overdue", "TotalOverdueCounts > 0").

    In the row that is found the feature has the value of its definition, which is no change of the person's: it costs
    nothing and is not counted. `definitions` says what a definition may be.
    """

    feature: str = field(compare=False)
    definition: str = field(compare=False)

    def __init__(self, feature: str, definition: str) -> None:
        if not isinstance(feature, str) or not isinstance(definition, str):
            wrong = feature if not isinstance(feature, str) else definition
            raise QuestionError(
                f"A derived feature has a name and a definition, as in Derived('Total', 'a + b'); got {shown(wrong)}."
            )
        object.__setattr__(self, "feature", feature)
        object.__setattr__(self, "definition", definition.strip())
        object.__setattr__(self, "text", f"{show_name(feature)} follows from {self.definition}")
        DefinitionParser(self.definition).complete()

    def _read_for(self, schema: Schema) -> Formula:
        whole = schema.whole if schema.unknown else schema
        whole.index(self.feature)
        try:
            formula = definition_formula(self.definition, self.feature, whole)
        except QuestionError as error:
            raise type(error)(f"In the definition of {show_name(self.feature)}: {error}") from None
        return without_missing(formula, schema) if schema.unknown else formula

    def clauses(self, schema: Schema) -> tuple[normal.Clause, ...]:
        """The clauses of each case of the definition."""
        _, formula, kept = self._understood(schema)
        if "clauses" not in kept:
            parts = formula.parts if isinstance(formula, Every) else (formula,)
            found = tuple(clause for part in parts for clause in normal.clauses(part, schema))
            if len(found) > MAX_CLAUSES:
                raise QuestionError(
                    f"The definition of {show_name(self.feature)} has more than {MAX_CLAUSES} cases; say it with fewer."
                )
            kept["clauses"] = found
        result: tuple[normal.Clause, ...] = kept["clauses"]
        return result

    @property
    def derives(self) -> str:
        return self.feature

    def bases(self, schema: Schema) -> frozenset[str]:
        """The features that the definition looks at."""
        return self.features(schema) - {self.feature}

    def check(self, schema: Schema) -> None:
        self.clauses(schema)
        if not self.bases(schema):
            raise QuestionError(f"The definition of {show_name(self.feature)} names no other feature: '{self.text}'.")


def derived_features(constraints: Iterable[Any]) -> frozenset[str]:
    """The features that constraints derive from others."""
    return frozenset(name for one in constraints if (name := getattr(one, "derives", "")))


def check_derived(constraints: Iterable[Any], schema: Schema) -> None:
    """Each feature is derived at most once, and not from itself."""
    definitions: dict[str, Derived] = {}
    for one in constraints:
        if isinstance(one, Derived):
            other = definitions.setdefault(one.feature, one)
            if other != one:
                raise QuestionError(
                    f"{show_name(one.feature)} is derived twice: '{other.definition}' and '{one.definition}'."
                )
    refuse_cycles({name: one.bases(schema) for name, one in definitions.items()})
