"""Rules about which features change, not about their values: how many at most, and which only together.

They speak of the person's own row, so they are no linear inequality: every method has its own way with them (the
search splits on whether a feature changes, the programs have an indicator for it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.parts import Part, UnrolledColumns
from ifonly.problem.words import show_name
from ifonly.schema import Real, Schema
from ifonly.schema.arguments import items, whole_number


@dataclass(frozen=True, slots=True)
class MaxChanges:
    """At most this many features differ from the person's own; derived features (`uncounted`) do not count."""

    most: int
    uncounted: frozenset[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        words = "The number of changes must be a whole number >= 0; it is"
        object.__setattr__(self, "most", whole_number(self.most, words))

    def check(self, schema: Schema) -> None:
        """Any number makes sense for any schema."""

    def allows_row(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
        changed = before != after
        if self.uncounted:
            changed = changed & np.array([name not in self.uncounted for name in schema.names])
        return int(changed.sum()) <= self.most

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return ()

    def describe(self) -> str:
        return f"at most {self.most} change{'' if self.most == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Actionable:
    """Only these features may change, and what follows from them; all others keep their values (see `merged`)."""

    features: tuple[str, ...]

    def __post_init__(self) -> None:
        given = self.features
        listed = (given,) if isinstance(given, str) else items(given)
        if not listed or not all(isinstance(name, str) for name in listed):
            raise QuestionError(
                f"The features that may change are given by name, such as Actionable(['Income', 'Debt']); got "
                f"{shown(given)}."
            )
        object.__setattr__(self, "features", tuple(dict.fromkeys(listed)))

    def check(self, schema: Schema) -> None:
        for name in self.features:
            schema.index(name)

    def allows_row(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
        kept = np.array([name not in self.features for name in schema.names])
        return bool((before[kept] == after[kept]).all())

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return ()

    def describe(self) -> str:
        return f"only {', '.join(map(show_name, self.features))} may change"


@dataclass(frozen=True, slots=True)
class OnlyWith:
    """The feature may change only together with another one, its partner."""

    feature: str
    partner: str

    def check(self, schema: Schema) -> None:
        schema.index(self.feature)
        if self.feature == self.partner:
            raise QuestionError(f"'{self.feature}' always changes together with itself; name another feature.")
        partner = schema[self.partner]
        if isinstance(partner, Real) and partner.grid is None:
            raise QuestionError(
                f"'{self.partner}' is a real number, which can change by arbitrarily little, so '{self.feature}' "
                f"changing only with it has no nearest row; give '{self.partner}' a step."
            )

    def allows_row(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
        g, partner = schema.index(self.feature), schema.index(self.partner)
        return bool(before[g] == after[g] or before[partner] != after[partner])

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        return ()

    def describe(self) -> str:
        return f"{show_name(self.feature)} changes only with {show_name(self.partner)}"
