"""The kinds of column expressions: see `columns`, which computes with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.model.importers.powers import Powers

Floats = NDArray[np.float64]
MOST_NUMBERS = 4096
"""Integer features with at most so many values are tabulated, value by value."""
MOST_KNOTS = 512
"""The same where a network follows: a ReLU unit per value."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """weight . encoded + shift. `underflows` and `peak`: see `Majorant`."""

    weight: Floats
    shift: float
    size_weight: Floats
    size_shift: float
    terms: int = 0
    underflows: float = 0.0
    peak: float = 0.0

    @property
    def largest(self) -> float:
        """No value on the way is larger, in units of 1 + the sum of the encoded columns."""
        return float(max(self.peak, self.size_shift, self.size_weight.max(), abs(self.shift), *np.abs(self.weight)))


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """values[i] when the feature has its option i: text or numbers, or a missing marker."""

    feature: int
    values: NDArray[Any]
    size: float = 0.0
    terms: int = 0
    underflows: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Binned:
    """Some function of a number that is constant up to its first cut, from there up to the second, and so on."""

    feature: int
    cuts: Floats
    ordered: bool
    """It grows from cell to cell, or falls."""


@dataclass(frozen=True, slots=True, eq=False)
class Bent:
    """A function of a number (or of an option's number) that is linear between knots, where it has these values.

    `error` bounds what its own arithmetic may do to a value.
    """

    feature: int
    knots: Floats
    values: Floats
    error: float = 0.0

    @property
    def ordered(self) -> bool:
        steps = np.diff(self.values)
        return bool((steps >= 0.0).all() or (steps <= 0.0).all())


@dataclass(frozen=True, slots=True, eq=False)
class Curved:
    """Some function of a number, by the transformer's own arithmetic. `ordered`: it grows with the number, or falls."""

    feature: int
    name: str
    """For messages."""
    function: Callable[[Floats], Floats]
    ordered: bool = True
    powers: Powers | None = None
    """The same as a sum of powers and logarithms, if it is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Interaction:
    """scale times the product of functions of different choices that are 0 or 1, plus shift."""

    factors: tuple[Options, ...]
    scale: float = 1.0
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class Absent:
    """A column that the model was fitted with and the schema does not have: an error only if the model reads it."""

    name: str


Column: TypeAlias = Line | Options | Binned | Bent | Curved | Interaction | Absent
