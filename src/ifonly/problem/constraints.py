"""Actionability constraints on single features: fixed, a direction, a range, allowed values, how far, in which steps.

Each constraint says the same thing twice, on purpose: `allows` judges one finished row (the witness check reads only
that), `restrict` narrows the domains that the methods search. A wrong narrowing cannot approve itself. `describe` is a
sentence of the rule language: `read_constraint` reads it back.

Bounds and steps are decimals, as they are written (see `ifonly.schema.decimals`): what a domain ends at is the float64
nearest to the exact decimal, and both sides of a constraint mean that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached
from ifonly.errors import QuestionError, RowError
from ifonly.printing import shown
from ifonly.problem.words import show_name, show_option
from ifonly.schema import Choice, Feature, Integer, Numeric, Real, Schema
from ifonly.schema.arguments import is_label, items, real_number
from ifonly.schema.decimals import rounded, stepped, steps_between, steps_to, written
from ifonly.schema.number_text import clear_number, other_reading
from ifonly.schema.values import is_missing, plain, show_number, show_step

Mask: TypeAlias = NDArray[np.bool_]

LEAST_FILLING, MOST_FILLING = 1e-9, 1e9
"""What filling in a number may count as."""
FINEST_STEP = 4
"""Last digits of a real number: the finest step that float64 can tell apart."""


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
        return f"{show_name(self.feature)} is fixed"


@dataclass(frozen=True, slots=True)
class OnlyUp:
    """The feature may grow (ordinals and binaries: move to later levels), never shrink."""

    feature: str

    def check(self, schema: Schema) -> None:
        check_ordered(schema[self.feature], "only up")

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after >= before

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        if isinstance(feature, Numeric):
            domains.lower = np.maximum(domains.lower, before)
        else:
            domains.allowed &= np.arange(len(feature.options)) >= before[:, None]

    def describe(self) -> str:
        return f"{show_name(self.feature)} only goes up"


@dataclass(frozen=True, slots=True)
class OnlyDown:
    """The feature may shrink (ordinals and binaries: move to earlier levels), never grow."""

    feature: str

    def check(self, schema: Schema) -> None:
        check_ordered(schema[self.feature], "only down")

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after <= before

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        if isinstance(feature, Numeric):
            domains.upper = np.minimum(domains.upper, before)
        else:
            domains.allowed &= np.arange(len(feature.options)) <= before[:, None]

    def describe(self) -> str:
        return f"{show_name(self.feature)} only goes down"


@dataclass(frozen=True, slots=True)
class Range:
    """A number must end in [lower, upper], whatever it was before."""

    feature: str
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            words = f"The range of {shown(self.feature)} must be given by numbers; got"
            object.__setattr__(self, name, real_number(getattr(self, name), words, lambda end: not math.isnan(end)))
        if self.lower > self.upper:
            raise QuestionError(f"The range {self._ends()} of '{self.feature}' is empty; swap its ends.")

    def _ends(self) -> str:
        return f"[{clear_number(self.lower)}, {clear_number(self.upper)}]"

    def check(self, schema: Schema) -> None:
        if not isinstance(schema[self.feature], Numeric):
            raise QuestionError(f"Feature '{self.feature}' has options, not numbers: use Allowed instead of Range.")

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return self.lower <= after <= self.upper

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        domains.lower = np.maximum(domains.lower, self.lower)
        domains.upper = np.minimum(domains.upper, self.upper)

    def describe(self) -> str:
        name = show_name(self.feature)
        if math.isinf(self.lower) == math.isinf(self.upper):
            return f"{name} in {self._ends()}"
        sign, end = ("<=", self.upper) if math.isinf(self.lower) else (">=", self.lower)
        return f"{name} {sign} {clear_number(end)}"


@dataclass(frozen=True)
class Allowed:
    """The feature, one with options, must end at one of these values."""

    feature: str
    values: Sequence[Any]

    def __post_init__(self) -> None:
        values = items(self.values)
        if values is None:
            raise QuestionError(f"The allowed values of '{self.feature}' must be a list; got {shown(self.values)}.")
        for value in values:
            if not is_missing(plain(value)) and not is_label(value):
                raise QuestionError(f"Allowed values are texts, finite numbers or booleans; got {shown(value)}.")
        object.__setattr__(self, "values", tuple(plain(value) for value in values))

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
                    f"The allowed values of '{self.feature}' must be {feature.describe()}; got {shown(value)}."
                ) from None

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after in _option_indices(feature, tuple(self.values))

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        keep = np.zeros(domains.allowed.shape[1], dtype=bool)
        keep[sorted(_option_indices(feature, tuple(self.values)))] = True
        domains.allowed &= keep

    def describe(self) -> str:
        return f"{show_name(self.feature)} in ({', '.join(map(show_option, self.values))})"


@cached(2**22)
def _option_indices(feature: Feature, values: tuple[Any, ...]) -> frozenset[int]:
    return frozenset(int(feature.read(value)) for value in values)


@dataclass(frozen=True, slots=True)
class MaxDelta:
    """The feature moves by at most `by` (ordinals: levels), or by at most this share of what it was (0.1: 10 %)."""

    feature: str
    by: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.by is None) == (self.share is None):
            raise QuestionError(f"By how much may '{self.feature}' change? Give either 'by' or 'share'.")
        name = "by" if self.share is None else "share"
        words = f"'{name}' of the change of {shown(self.feature)} must be a number >= 0; it is"
        object.__setattr__(self, name, real_number(getattr(self, name), words, lambda most: 0 <= most < math.inf))

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        check_ordered(feature, "changes by at most")
        if isinstance(feature, Choice) and self.share is not None:
            raise QuestionError(f"Feature '{self.feature}' has levels, which have no share: give a number of levels.")

    def _ends(self, feature: Feature, before: float) -> tuple[float, float]:
        """The least and the largest value that this lets the feature have."""
        start = written(before)
        most = written(self.share) * abs(start) if self.share is not None else written(self.by or 0.0)
        low, high = start - most, start + most
        if not isinstance(feature, Real):
            low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
        return rounded(low), rounded(high)

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        lower, upper = self._ends(feature, before)
        return lower <= after <= upper

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        lower, upper = _for_each(lambda one: self._ends(feature, one), before)
        if isinstance(feature, Numeric):
            domains.lower, domains.upper = np.maximum(domains.lower, lower), np.minimum(domains.upper, upper)
        else:
            options = np.arange(len(feature.options))
            domains.allowed &= (options >= lower[:, None]) & (options <= upper[:, None])

    def describe(self) -> str:
        if self.by is not None:
            return f"{show_name(self.feature)} changes by at most {clear_number(self.by)}"
        percent = f"{(Decimal(repr(self.share)) * 100).normalize():f}"
        percent += "0" if other_reading(percent) is not None else ""
        return f"{show_name(self.feature)} changes by at most {percent} %"


@dataclass(frozen=True, slots=True)
class Steps:
    """A number moves from its present value by whole multiples of `step`: 0, 100, 200, -100, ..."""

    feature: str
    step: float

    def __post_init__(self) -> None:
        words = f"The step of {shown(self.feature)} must be a number > 0; it is"
        object.__setattr__(self, "step", real_number(self.step, words, lambda step: 0 < step < math.inf))

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        if not isinstance(feature, Numeric):
            raise QuestionError(f"Feature '{self.feature}' has options, not numbers, so it has no steps: use Allowed.")
        if isinstance(feature, Integer) and self.step % feature.step != 0:
            raise QuestionError(
                f"Feature '{self.feature}' is {feature.describe()}: a step must be a multiple of {feature.step}; "
                f"it is {show_number(self.step)}."
            )
        if isinstance(feature, Real) and feature.grid is not None:
            self._check_multiple(feature.grid.step)
        last_digit = math.ulp(max(abs(feature.lower), abs(feature.upper)))
        if isinstance(feature, Real) and self.step < FINEST_STEP * last_digit:
            raise QuestionError(
                f"The step {show_number(self.step)} of '{self.feature}' is too fine for float64; give a coarser one."
            )

    def _check_multiple(self, own: Fraction) -> None:
        if written(self.step) % own != 0 or written(float(own)) != own:
            why = (
                "must be a multiple of that" if written(float(own)) == own else "as well has no decimals: leave it out"
            )
            raise QuestionError(
                f"Feature '{self.feature}' has steps of {show_step(own)}: a step {why}; it is {show_number(self.step)}."
            )

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after == stepped(before, steps_to(before, after, self.step), self.step)

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        """Moves the ends onto the steps, so it comes after what else narrows the feature."""

        def ends(start: float, first: float, last: float) -> tuple[float, float]:
            low, high = steps_between(start, self.step, first, last)
            return stepped(start, low, self.step), stepped(start, high, self.step)

        domains.lower, domains.upper = _for_each(ends, before, domains.lower, domains.upper)

    def describe(self) -> str:
        return f"{show_name(self.feature)} changes in steps of {clear_number(self.step)}"


@dataclass(frozen=True, slots=True)
class Unconstrained:
    """The feature may change whatever the schema's own rules about it alone say (see `merged`)."""

    feature: str

    def check(self, schema: Schema) -> None:
        schema.index(self.feature)

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return True

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        """Nothing to narrow."""

    def describe(self) -> str:
        return f"{show_name(self.feature)} is free"


@dataclass(frozen=True, slots=True)
class Imputable:
    """A number that is missing may be filled in, with any value that it may have; it stays missing otherwise.

    Filling in counts as this much `change`, whatever the value: 1 is as much as going through the whole range. It is
    weighted like every other change.
    """

    feature: str
    change: float = 1.0

    def __post_init__(self) -> None:
        ends = f"between {LEAST_FILLING:g} and {MOST_FILLING:g}"
        words = f"Filling in {shown(self.feature)} must count as a change {ends}; it is"
        change = real_number(self.change, words, lambda change: LEAST_FILLING <= change <= MOST_FILLING)
        object.__setattr__(self, "change", change)

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        if not isinstance(feature, Numeric) or not feature.missing:
            raise QuestionError(
                f"Feature '{self.feature}' is never missing, so there is nothing to fill in; if a number may be "
                f"missing, the schema says so with missing=True."
            )

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return True

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        """Nothing to narrow."""

    def describe(self) -> str:
        at = "" if self.change == 1.0 else f" at {clear_number(self.change)}"
        return f"{show_name(self.feature)} may be filled in{at}"


Constraint: TypeAlias = Fixed | OnlyUp | OnlyDown | Range | Allowed | MaxDelta | Steps | Unconstrained | Imputable


def narrowed(
    feature: Feature, before: NDArray[np.float64], constraints: Iterable[Constraint], domains: Domains
) -> Domains:
    """The domains of many people under all constraints on one feature: steps last, since they look at what is left."""
    for constraint in sorted(constraints, key=lambda one: isinstance(one, Steps)):
        constraint.restrict(feature, before, domains)
    return domains


def _for_each(
    ends: Callable[..., tuple[float, float]], *columns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two ends for each person, by exact arithmetic; worked out once for people who are alike."""
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    known = {row: ends(*row) for row in dict.fromkeys(rows)}
    found = np.array([known[row] for row in rows], dtype=np.float64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def check_ordered(feature: Feature, what: str) -> None:
    if isinstance(feature, Choice) and not feature.ordered:
        raise QuestionError(f"Feature '{feature.name}' has categories without an order, so '{what}' has no meaning.")
