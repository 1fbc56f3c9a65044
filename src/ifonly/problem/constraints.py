"""What may change, one feature at a time: fixed, only up, only down, a range, allowed values.

Each constraint says the same thing twice, on purpose: `allows` judges one finished row (the witness check reads only
that), `restrict` narrows the domains that the methods search. A wrong narrowing cannot approve itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError, RowError
from ifonly.schema import Choice, Feature, Numeric, Schema

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(slots=True)
class Domains:
    """What one feature may become, for many people at once: an interval each (numbers) or a mask over its options."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    allowed: Mask


@dataclass(frozen=True, slots=True)
class Fixed:
    """The feature keeps its value."""

    feature: str

    def check(self, schema: Schema) -> None:
        schema.index(self.feature)

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return before == after

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        if isinstance(feature, Numeric):
            domains.lower = np.maximum(domains.lower, before)
            domains.upper = np.minimum(domains.upper, before)
        else:
            domains.allowed &= np.arange(len(feature.options)) == before[:, None]

    def describe(self) -> str:
        return f"{self.feature} is fixed"


@dataclass(frozen=True, slots=True)
class OnlyUp:
    """The feature may grow (ordinals and binaries: move to later levels), never shrink."""

    feature: str

    def check(self, schema: Schema) -> None:
        _check_ordered(schema[self.feature], "only up")

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after >= before

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        if isinstance(feature, Numeric):
            domains.lower = np.maximum(domains.lower, before)
        else:
            domains.allowed &= np.arange(len(feature.options)) >= before[:, None]

    def describe(self) -> str:
        return f"{self.feature} only goes up"


@dataclass(frozen=True, slots=True)
class OnlyDown:
    """The feature may shrink (ordinals and binaries: move to earlier levels), never grow."""

    feature: str

    def check(self, schema: Schema) -> None:
        _check_ordered(schema[self.feature], "only down")

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after <= before

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        if isinstance(feature, Numeric):
            domains.upper = np.minimum(domains.upper, before)
        else:
            domains.allowed &= np.arange(len(feature.options)) <= before[:, None]

    def describe(self) -> str:
        return f"{self.feature} only goes down"


@dataclass(frozen=True, slots=True)
class Range:
    """A number must end in [lower, upper], whatever it was before."""

    feature: str
    lower: float = -math.inf
    upper: float = math.inf

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        if not isinstance(feature, Numeric):
            raise QuestionError(f"Feature '{self.feature}' has options, not numbers: use Allowed instead of Range.")
        for end in (self.lower, self.upper):
            if isinstance(end, bool) or not isinstance(end, int | float) or math.isnan(end):
                raise QuestionError(f"The range of '{self.feature}' must be given by numbers; got {end!r}.")
        if self.lower > self.upper:
            raise QuestionError(
                f"The range [{self.lower:g}, {self.upper:g}] of '{self.feature}' is empty; swap its ends."
            )

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return self.lower <= after <= self.upper

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        domains.lower = np.maximum(domains.lower, self.lower)
        domains.upper = np.minimum(domains.upper, self.upper)

    def describe(self) -> str:
        return f"{self.feature} in [{self.lower:g}, {self.upper:g}]"


@dataclass(frozen=True)
class Allowed:
    """The feature must end at one of these values (numbers: only features with options can take this)."""

    feature: str
    values: Sequence[Any]

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise QuestionError(f"The allowed values of '{self.feature}' must be a list; got {self.values!r}.")
        object.__setattr__(self, "values", tuple(self.values))

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        if not isinstance(feature, Choice):
            raise QuestionError(f"Feature '{self.feature}' is a number: use Range instead of Allowed.")
        if not self.values:
            raise QuestionError(f"The list of allowed values of '{self.feature}' is empty.")
        self._indices(feature)

    def _indices(self, feature: Feature) -> frozenset[int]:
        try:
            return frozenset(int(feature.read(value)) for value in self.values)
        except RowError as error:
            raise QuestionError(f"Allowed values: {error}") from None

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return int(after) in self._indices(feature)

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        keep = np.zeros(domains.allowed.shape[1], dtype=bool)
        keep[sorted(self._indices(feature))] = True
        domains.allowed &= keep

    def describe(self) -> str:
        return f"{self.feature} is one of {', '.join(map(str, self.values))}"


Constraint: TypeAlias = Fixed | OnlyUp | OnlyDown | Range | Allowed


def _check_ordered(feature: Feature, what: str) -> None:
    if isinstance(feature, Choice) and not feature.ordered:
        raise QuestionError(f"Feature '{feature.name}' has categories without an order, so '{what}' has no meaning.")
