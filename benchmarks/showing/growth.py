"""How time grows with size: a power law or an exponential through the medians, whichever fits their logarithms better.

power        t = a * size^b        (b = 1: linear, b = 2: quadratic)
exponential  t = a * 2^(size/d)    (d: what doubles the time)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.asking.records import Record
from benchmarks.subjects.data import CANCER

CLEAR = 0.5
"""Of R^2: below it, size explains less than half of what differs."""


@dataclass(frozen=True)
class Growth:
    """A fit: `slope` is b of the power law, or the logarithm of the factor per unit of size."""

    law: str
    slope: float
    intercept: float
    fit: float
    """R^2 of the logarithms."""

    def __call__(self, size: float) -> float:
        at = np.log(size) if self.law == "power" else size
        return float(np.exp(self.intercept + self.slope * at))

    def __str__(self) -> str:
        if self.slope <= 0.0 or self.fit < CLEAR:
            return "no clear growth"
        if self.law == "power":
            return f"size^{self.slope:.2f} (R² {self.fit:.2f})"
        return f"doubles every {np.log(2.0) / self.slope:.3g} (R² {self.fit:.2f})"


def fit(points: Mapping[int, Sequence[float]], *, only: str = "") -> Growth | None:
    """The better fit through the medians by size (or that of one law); None below three sizes."""
    sizes = sorted(points)
    if len(sizes) < 3:
        return None
    times = np.log([float(np.median(points[size])) for size in sizes])
    fits = [_line("power", np.log(sizes), times), _line("exponential", np.array(sizes, dtype=np.float64), times)]
    return max((found for found in fits if only in ("", found.law)), key=lambda found: found.fit)


def _line(law: str, at: np.ndarray, times: np.ndarray) -> Growth:
    slope, intercept = np.polyfit(at, times, 1)
    left = times - (intercept + slope * at)
    spread = float(((times - times.mean()) ** 2).sum())
    return Growth(law, float(slope), float(intercept), 1.0 - float((left**2).sum()) / spread if spread else 1.0)


# ---------------------------------------------------------------------- what grows

SERIES: dict[str, Callable[[Record], int | None]] = {
    "depth (layers of 10)": lambda r: r.depth if r.suite == "size" and r.width == 10 else None,
    "width (two layers)": lambda r: r.width if r.suite == "size" and r.depth == 2 else None,
    "hidden neurons": lambda r: r.depth * r.width if r.suite == "size" else None,
    "inputs (real features)": lambda r: int(r.dataset.removeprefix(CANCER)) if r.suite == "inputs" else None,
    "rows in one call": lambda r: r.batch if r.suite == "rows" else None,
}
"""What time is fitted against."""
LAWS = {"rows in one call": "power"}
"""Where only one law makes sense."""


def series(found: list[Record], size: Callable[[Record], int | None]) -> dict[str, dict[int, list[float]]]:
    """CPU seconds by data set and size."""
    result: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in found:
        at = size(record)
        if at is not None and record.cpu_seconds > 0.0:
            result["cancer" if record.suite == "inputs" else record.dataset][at].append(record.cpu_seconds)
    return result
