"""Reading untrusted data: what does not have the stated form is a `Refusal`; a `CheckBudget` limits time and memory."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

_Value = TypeVar("_Value")

FEW, AT_ONCE = 4_096, 64
"""Products of numbers between two looks at the clock: of short numbers, and of long ones."""


class Refusal(Exception):
    """The first step of a certificate that fails, in words."""


class Stopped(Exception):
    """The check takes longer than it may."""


@dataclass(slots=True)
class CheckBudget:
    """What a check may use: when it has to be over, and the bits that the numbers it keeps may have (None: any).

    Every loop whose length or cost a certificate chooses checks it.
    """

    until: float | None = None
    bits: int | None = None

    def tick(self) -> None:
        if self.until is not None and time.monotonic() > self.until:
            raise Stopped

    def keep(self, bits: int) -> None:
        """So many more bits are kept."""
        self.tick()
        if self.bits is not None:
            self.bits -= bits
            if self.bits < 0:
                raise Refusal("its numbers would take far more memory than their text; such a file is not checked")


def ticking(values: Iterable[_Value], meter: CheckBudget) -> Iterator[_Value]:
    """The values, with a look at the clock before each."""
    for value in values:
        meter.tick()
        yield value


def number(value: Any, what: str) -> float:
    """A finite float64, written canonically as hexadecimal text."""
    if isinstance(value, str) and len(value) < 40:
        try:
            read = float.fromhex(value)
        except (ValueError, OverflowError):
            read = math.nan
        if math.isfinite(read) and read.hex() == value:
            return read
    raise Refusal(f"{what} must be a finite number in hexadecimal; it is {str(value)[:60]!r}")


def whole(value: Any, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Refusal(f"{what} must be a whole number between {low} and {high}; it is {str(value)[:60]!r}")
    return value


def entries(value: Any, what: str, *keys: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise Refusal(f"{what} must have exactly the entries {', '.join(keys)}")
    return value


def listed(value: Any, what: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise Refusal(f"{what} must be a list" + ("" if length is None else f" of {length}"))
    return value


def scaled(value: float | Fraction, bits: int, what: str) -> int:
    """The number in units of 2^-bits; a refusal when it is not a whole number of them."""
    top, bottom = value.as_integer_ratio()  # the bottom is a power of two
    shift = bits - bottom.bit_length() + 1
    if shift < 0:
        raise Refusal(f"{what} does not lie on the grid of 2^-{bits}")
    return top << shift
