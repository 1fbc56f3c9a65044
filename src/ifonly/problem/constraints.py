"""What may change, one feature at a time: fixed, only up, only down, a range, allowed values.

Each constraint says the same thing twice, on purpose: `allows` judges one finished row (the witness check reads only
that), `restrict` narrows the domains that the methods search. A wrong narrowing cannot approve itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError, RowError
from ifonly.schema import Choice, Feature, Numeric, Schema
from ifonly.schema.features import plain, show_number

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

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            end = plain(getattr(self, name))
            if isinstance(end, bool) or not isinstance(end, int | float) or math.isnan(end):
                raise QuestionError(f"The range of '{self.feature}' must be given by numbers; got {end!r}.")
            object.__setattr__(self, name, float(end))
        if self.lower > self.upper:
            raise QuestionError(f"The range {self._ends()} of '{self.feature}' is empty; swap its ends.")

    def _ends(self) -> str:
        return f"[{show_number(self.lower)}, {show_number(self.upper)}]"

    def check(self, schema: Schema) -> None:
        if not isinstance(schema[self.feature], Numeric):
            raise QuestionError(f"Feature '{self.feature}' has options, not numbers: use Allowed instead of Range.")

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return self.lower <= after <= self.upper

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        domains.lower = np.maximum(domains.lower, self.lower)
        domains.upper = np.minimum(domains.upper, self.upper)

    def describe(self) -> str:
        return f"{self.feature} in {self._ends()}"


@dataclass(frozen=True)
class Allowed:
    """The feature, one with options, must end at one of these values."""

    feature: str
    values: Sequence[Any]

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence | np.ndarray):
            raise QuestionError(f"The allowed values of '{self.feature}' must be a list; got {self.values!r}.")
        object.__setattr__(self, "values", tuple(plain(value) for value in self.values))

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        if not isinstance(feature, Choice):
            raise QuestionError(f"Feature '{self.feature}' is a number: use Range instead of Allowed.")
        if not self.values:
            raise QuestionError(f"The list of allowed values of '{self.feature}' is empty; name at least one.")
        for value in self.values:
            try:
                feature.read(value)
            except RowError:
                raise QuestionError(
                    f"The allowed values of '{self.feature}' must be {feature.describe()}; got {value!r}."
                ) from None

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after in _option_indices(feature, tuple(self.values))

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        keep = np.zeros(domains.allowed.shape[1], dtype=bool)
        keep[sorted(_option_indices(feature, tuple(self.values)))] = True
        domains.allowed &= keep

    def describe(self) -> str:
        return f"{self.feature} is one of {', '.join(map(str, self.values))}"


@lru_cache(maxsize=256)
def _option_indices(feature: Feature, values: tuple[Any, ...]) -> frozenset[int]:
    return frozenset(int(feature.read(value)) for value in values)


Constraint: TypeAlias = Fixed | OnlyUp | OnlyDown | Range | Allowed


def _check_ordered(feature: Feature, what: str) -> None:
    if isinstance(feature, Choice) and not feature.ordered:
        raise QuestionError(f"Feature '{feature.name}' has categories without an order, so '{what}' has no meaning.")
