"""Numeric features: an interval of numbers, real or whole, with or without steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import RowError, SchemaError
from ifonly.printing import shown
from ifonly.schema.decimals import Grid, rounded, written
from ifonly.schema.number_text import (
    CURRENCIES,
    CommaNumber,
    UnclearNumber,
    clear_number,
    money,
    other_reading,
    two_readings,
    with_point,
)
from ifonly.schema.values import NO_VALUE, is_missing, plain, read_step, show_number, show_step
from ifonly.schema.wording import FeatureWording, at_row, check_name, check_words, who_has
from ifonly.tolerances import GRID


@dataclass(frozen=True)
class Numeric(FeatureWording):
    """Base of real and integer features: an interval of numbers, encoded as one column.

    `missing`: the number may be missing, if the model takes that. The coordinate of a point is then NaN.
    """

    name: str
    lower: float
    upper: float
    missing: bool = field(default=False, kw_only=True)
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        check_name(self.name)
        check_words(self)
        if not isinstance(self.missing, bool):
            raise SchemaError(f"Feature '{self.name}': 'missing' must be True or False; it is {shown(self.missing)}.")
        for end in ("lower", "upper"):
            value = plain(getattr(self, end))
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise SchemaError(f"Feature '{self.name}': '{end}' must be a finite number; it is {shown(value)}.")
            object.__setattr__(self, end, float(value) + 0.0)  # + 0.0 turns -0.0 into 0.0
        if self.lower > self.upper:
            raise SchemaError(
                f"Feature '{self.name}': lower bound {show_number(self.lower)} is above upper bound "
                f"{show_number(self.upper)}; swap them."
            )
        if not math.isfinite(self.width):
            raise SchemaError(f"Feature '{self.name}': its range is too wide for float64; give it narrower bounds.")

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def width(self) -> float:
        return self.upper - self.lower

    def describe(self) -> str:
        raise NotImplementedError

    def read(self, value: Any, *, row: int | None = None) -> float:
        """The user's value as a number of this feature, or a RowError."""
        if type(value) is float or (type(value) is int and -(2**53) <= value <= 2**53):  # what most values are
            snapped = self.snap(float(value))
            if snapped is not None:
                return snapped
        value = plain(value)
        if self.missing and (is_missing(value) or (isinstance(value, str) and value.strip().lower() in NO_VALUE)):
            return math.nan
        if is_missing(value):
            message = (
                f"Feature '{self.name}' has no value{at_row(row)}; fill it in before asking, or, if the model takes "
                f"missing numbers (a pipeline that imputes them), declare the feature with missing=True."
            )
            raise RowError(message, feature=self.name, row=row, value=value)
        try:
            pointed = with_point(value) if isinstance(value, str) else value
            number = math.nan if isinstance(value, bytes | bytearray | np.ndarray) else float(pointed)
        except Exception:  # whatever the value's own __float__ raises
            amount = money(value) if isinstance(value, str) else None
            if amount is None:
                raise self._wrong(value, row) from None
            number = amount
        snapped = self.snap(number)
        if snapped is None or (isinstance(value, str) and "_" in value):  # float("1_0") is 10: not what people mean
            raise self._wrong(value, row)
        if isinstance(value, str) and (unclear := self._two_readings(value, snapped)):
            message = (
                f"Feature '{self.name}': {who_has(row)} {shown(value)}, which may be {unclear}; write one of these."
            )
            raise RowError(message, feature=self.name, row=row, value=value)
        return snapped

    def _two_readings(self, text: str, number: float) -> str | None:
        """The two numbers of this feature that a text may be; None where it can be one only.

        A text such as 10.000 may be 10000 of whole numbers, of amounts with a currency, and in a table whose decimal
        mark is not known; a share such as 1 % may be 0.01 of a number that is at most 1.
        """
        other = None if isinstance(text, CommaNumber) else other_reading(text)
        if other is not None and self.snap(rounded(other)) is not None:
            amount = isinstance(self, Integer) or any(sign in text for sign in CURRENCIES)
            if isinstance(text, UnclearNumber) or ("." in text and amount):
                return two_readings(text)
        if text.rstrip().endswith("%") and self.upper <= 1.0 and self.snap(number / 100.0) is not None:
            return f"{clear_number(number)} or {clear_number(number / 100.0)}" if number else None
        return None

    def snap(self, number: float) -> float | None:
        """The number if it belongs to the feature (integers: the grid value it stands for), else None."""
        return number if self.lower <= number <= self.upper else None

    def nearest(self, number: float) -> float:
        """The value nearest to a number, of those that the feature may change to."""
        return min(max(number, self.lower), self.upper)

    def fits(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which numbers belong to the feature, exactly as they are?"""
        return (numbers >= self.lower) & (numbers <= self.upper)

    def _or_missing(self) -> str:
        return " or missing" if self.missing else ""

    def _to_dict(self, **own: Any) -> dict[str, Any]:
        missing = {"missing": True} if self.missing else {}
        return {"kind": self.kind, "name": self.name, **own, **missing, **self._words()}

    def _wrong(self, value: Any, row: int | None) -> RowError:
        message = f"Feature '{self.name}' must be {self.describe()}; {who_has(row)} {shown(value)}."
        return RowError(message, feature=self.name, row=row, value=value)


@dataclass(frozen=True)
class Real(Numeric):
    """A real number in [lower, upper].

    With a `step` it changes to lower, lower + step, ... only, exactly as written: 0.01, 5, "1/12". The person's own
    value may be off this grid, and may stay there.
    """

    step: float | str | Fraction | None = None
    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        Numeric.__post_init__(self)
        if self.step is not None:
            step = read_step(self.name, self.step)
            object.__setattr__(self, "step", step)
            self._check_grid(step)

    def _check_grid(self, step: Fraction) -> None:
        where, by, grid = f"Feature '{self.name}'", show_step(step), self.grid
        if step > written(self.upper) - written(self.lower) and (grid is None or grid.steps == 0):
            raise SchemaError(
                f"{where}: a step of {by} is larger than its range [{show_number(self.lower)}, "
                f"{show_number(self.upper)}]; give a smaller step, or wider bounds."
            )
        if grid is None:
            raise SchemaError(f"{where}: steps of {by} are too fine for float64 in this range; give a coarser step.")
        if grid.value(grid.steps) != self.upper:
            last, beyond = (show_number(grid.value(k)) for k in (grid.steps, grid.steps + 1))
            raise SchemaError(
                f"{where}: upper bound {show_number(self.upper)} is no whole number of steps of {by} above "
                f"{show_number(self.lower)}; make it {last} or {beyond}."
            )

    @cached_property
    def grid(self) -> Grid | None:
        """The numbers that it may change to; None where these are all in its range."""
        return None if self.step is None else Grid.of(self.lower, self.upper, Fraction(self.step))

    @property
    def count(self) -> int | None:
        """Number of values that it may change to; None if infinite."""
        return None if self.grid is None else self.grid.steps + 1

    def snap(self, number: float) -> float | None:
        snapped = super().snap(number)
        if snapped is None or self.grid is None:
            return snapped
        close = self.grid.value(self.grid.nearest(snapped))
        return close if abs(close - snapped) <= GRID * float(self.grid.step) else snapped

    def nearest(self, number: float) -> float:
        return super().nearest(number) if self.grid is None else self.grid.value(self.grid.nearest(number))

    def fits(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        inside = super().fits(numbers)
        if self.grid is None:
            return inside
        with np.errstate(invalid="ignore"):
            close = self.grid.nearest_to(numbers)
            return inside & ((numbers == close) | (np.abs(numbers - close) > GRID * float(self.grid.step)))

    def describe(self) -> str:
        return f"a number in [{show_number(self.lower)}, {show_number(self.upper)}]{self._or_missing()}"

    def value(self, number: float) -> float | None:
        return None if number != number else float(number)

    def to_dict(self) -> dict[str, Any]:
        plainly = self._to_dict(lower=self.lower, upper=self.upper)
        if self.step is None:
            return plainly
        step = Fraction(self.step)
        return {**plainly, "step": float(step) if written(float(step)) == step else show_step(step)}


@dataclass(frozen=True)
class Integer(Numeric):
    """A whole number of steps above lower: lower, lower + step, ..., up to upper."""

    step: int = 1
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        Numeric.__post_init__(self)
        step = plain(self.step)
        whole = isinstance(step, int | float) and not isinstance(step, bool) and step % 1 == 0
        if not whole or not 1 <= step <= 2**52:
            raise SchemaError(f"Feature '{self.name}': step must be a whole number >= 1; it is {shown(self.step)}.")
        object.__setattr__(self, "step", int(step))
        for end in ("lower", "upper"):
            if getattr(self, end) % 1 != 0:
                raise SchemaError(
                    f"Feature '{self.name}': '{end}' of an integer feature must be whole; it is "
                    f"{show_number(getattr(self, end))}."
                )
        if abs(self.lower) > 2**52 or abs(self.upper) > 2**52:
            raise SchemaError(f"Feature '{self.name}': integer bounds beyond 2^52 are not exact in float64.")
        object.__setattr__(self, "upper", self.lower + self.step * math.floor(self.width / self.step))

    @property
    def steps(self) -> int:
        return round(self.width / self.step)

    @property
    def count(self) -> int:
        """Number of values."""
        return self.steps + 1

    def describe(self) -> str:
        by = "" if self.step == 1 else f" in steps of {self.step}"
        return f"an integer in [{show_number(self.lower)}, {show_number(self.upper)}]{by}{self._or_missing()}"

    def snap(self, number: float) -> float | None:
        if not math.isfinite(number):
            return None
        k = round((number - self.lower) / self.step)
        if abs(self.lower + k * self.step - number) > GRID * self.step or not 0 <= k <= self.steps:
            return None
        return self.lower + k * self.step

    def nearest(self, number: float) -> float:
        steps = round((super().nearest(number) - self.lower) / self.step)
        return self.lower + steps * self.step

    def fits(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        steps = np.round((numbers - self.lower) / self.step)
        return super().fits(numbers) & (self.lower + steps * self.step == numbers)

    def value(self, number: float) -> int | None:
        return None if number != number else round(number)

    def to_dict(self) -> dict[str, Any]:
        return self._to_dict(lower=int(self.lower), upper=int(self.upper), step=self.step)
