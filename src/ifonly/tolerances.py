"""Every tolerance, named, with its unit and its meaning. The margin is not here: it belongs to the target."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.printing import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """How close is close enough. All fields are absolute unless their name says otherwise."""

    gap: float = 1e-6
    """Distance: an answer is `Nearest` when upper - lower <= gap, or, beyond a distance of 1, <= gap * upper (a large
    distance has no digits for an absolute gap) ..."""

    relative_gap: float = 1e-6
    """... AND upper - lower <= relative_gap * upper, because nearest distances may be far below `gap`."""

    agreement_relative: float = 1e-9
    """Score: how far an imported float64 model may be from the original, relative to 1 + |score|."""

    agreement_relative_float32: float = 1e-4
    """Score: the same for models that compute in float32."""

    def __post_init__(self) -> None:
        for name in ("gap", "relative_gap", "agreement_relative", "agreement_relative_float32"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
                raise QuestionError(f"Tolerance '{name}' must lie strictly between 0 and 1; it is {shown(value)}.")

    def close(self, lower: float, upper: float) -> bool:
        """Is a row at `upper` the nearest, where nothing is nearer than `lower`?"""
        return upper - lower <= self.allowed(upper)

    def allowed(self, upper: float) -> float:
        """The largest upper - lower that still counts as proven nearest."""
        absolute, relative = self.gap * (upper if upper > 1.0 else 1.0), self.relative_gap * upper
        return relative if relative < absolute else absolute

    def allowed_each(self, upper: NDArray[np.float64]) -> NDArray[np.float64]:
        """`allowed` of many."""
        return np.minimum(self.relative_gap * upper, self.gap * np.maximum(upper, 1.0))

    def unsettled(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> list[int]:
        """Those of many whose bounds do not meet; both are infinite where it is known that there is no row."""
        if len(lower) < FEW:
            pairs = zip(lower.tolist(), upper.tolist(), strict=True)
            return [
                i for i, (low, far) in enumerate(pairs) if low <= MOST and not (far <= MOST and self.close(low, far))
            ]
        far = np.minimum(upper, MOST)  # infinity minus infinity is no number
        met = (far - lower <= self.allowed_each(far)) & (upper <= MOST)
        return np.flatnonzero(~met & (lower <= MOST)).tolist()


DEFAULT = Tolerances()
MOST = sys.float_info.max
FEW = 8
"""Below this many rows, going row by row is faster than going by columns."""

GRID = 1e-9
"""Relative to the step: how far an integer feature's value may be from its grid and still be read as on it."""

BOUND_RELATIVE = 1e-9
BOUND_ABSOLUTE = 1e-12
"""Distance: how far a claimed lower bound may be above the recomputed distance of the claimed row (the two round
differently) before it is a contradiction. Within this, the bound is lowered to the distance."""

EDGE = 1e-12
"""Relative: by how much a limit learned from data (a range given an option, a distance to a row) is wider than written,
so that a row that is at it to the last bits counts, for the search and for the check alike."""
