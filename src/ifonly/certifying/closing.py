"""Closing one box in exact arithmetic: rows of the network, and the multipliers with which they leave nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.region import Region
from ifonly.certificate.check.rules import ACTIVE, literal_range
from ifonly.certificate.check.tree_walk import most_of_planes
from ifonly.certifying.multipliers import Planes, best_multipliers, slopes_of
from ifonly.certifying.splitting import Splitting

ROUNDS = 6
"""Of rows with better slopes."""
MOST_HINTS = 6
"""Rows that a box hands down to its sides."""
SPARE_BITS = 36
"""Of the constant of a plane through a smooth network: what it should have to spare."""

Row = tuple[int, int, int, int]
"""Layer, neuron, sign, slopes: what the checker calls a row, without its multiplier."""


class Closing:
    """Attempts to close one region."""

    def __init__(self, region: Region, hints: tuple[Row, ...]) -> None:
        self.region = region
        statement = region.statement
        self.last = statement.layers - 1
        sides = region.extent.sides
        self.rows: list[Row] = []
        for row in hints:
            holds = row[0] == self.last or sides.get(row[:2]) == (1 if row[2] == 1 else 2)
            if holds and row not in self.rows:
                self.rows.append(row)
        rule = self._rule()
        for r in range(statement.sizes[-1]):
            self._add((self.last, r, 1, rule))
        for (layer, neuron), side in sides.items():
            if not self._holds_everywhere(layer, neuron, side):
                self._add((layer, neuron, 1 if side == ACTIVE else -1, rule))
        self.y: NDArray[np.float64] | None = None
        self.planes: Planes | None = None
        self.exact: dict[Row, tuple[list[int], int, int]] = {}
        """Of each row: its plane."""

    def _holds_everywhere(self, layer: int, neuron: int, side: int) -> bool:
        """Is it a literal that all of the box puts on its side? Then its row says nothing."""
        statement = self.region.statement
        if layer or neuron < statement.first_literal:
            return False
        low, high = literal_range(statement, self.region.extent, neuron - statement.first_literal)
        return low >= 0 if side == ACTIVE else high <= 0

    def hints(self) -> tuple[Row, ...]:
        return tuple(self.rows[-MOST_HINTS:])

    def _add(self, row: Row) -> bool:
        if row in self.rows:
            return False
        self.rows.append(row)
        return True

    def _rule(self) -> int:
        bits = [high > -low for bounds in self.region.bounds for low, high in bounds]
        return sum(1 << h for h, bit in enumerate(bits) if bit) & slopes_of(self.region.statement)

    def close(self) -> list[Any] | None:
        """Rows and multipliers that close the region, or None."""
        self.planes = Planes(self.region)
        if not self.rows:
            self.y = np.zeros(len(self.region.columns))
            return None
        for row in self.rows:
            self._measure(row)
        for k, row in enumerate(self.rows):
            if row[0] == self.last and self.planes.most(k) < 0.0 and self._holds([(row, 1.0)]):
                return [_written(row, 1.0)]
        for _ in range(ROUNDS):
            multipliers, self.y = best_multipliers(self.planes)
            if multipliers is not None:
                used = [(row, m) for row, m in zip(self.rows, multipliers.tolist(), strict=True) if m > 0.0]
                if self._holds(used):
                    return [_written(row, m) for row, m in used]
            if not self._refine():
                return None
        return None

    def _refine(self) -> bool:
        """Add rows whose slopes are right at the present solution; False when there are none."""
        assert self.planes is not None and self.y is not None
        pattern = self.planes.pattern(self.y)
        new = False
        rows = [(self.last, r, 1) for r in range(self.region.statement.sizes[-1])]
        rows += [(*key, 1 if side == ACTIVE else -1) for key, side in self.region.extent.sides.items() if key[0] > 0]
        for row in rows:
            if self._add((*row, pattern)):
                self._measure((*row, pattern))
                new = True
        return new

    def _measure(self, row: Row) -> None:
        """Compute the plane of a row, once."""
        assert self.planes is not None
        self.exact[row] = self.region.plane(*row)
        self.planes.add(*self.exact[row])

    def _holds(self, used: list[tuple[Row, float]]) -> bool:
        planes = [(self.exact[row], Fraction(m)) for row, m in used]
        if self.region.statement.curved:  # another checker may round a slope in another way
            planes = [((a, c + (abs(c) >> SPARE_BITS), unit), m) for (a, c, unit), m in planes]
        return bool(used) and most_of_planes(self.region, planes) < 0

    def splitting(self) -> Splitting:
        """Where to split what could not be closed."""
        assert self.planes is not None
        y = self.y if self.y is not None else np.zeros(len(self.region.columns))
        return Splitting(self.region, self.planes, y)


def _written(row: Row, multiplier: float) -> list[Any]:
    layer, neuron, sign, slopes = row
    return [layer, neuron, sign, f"{slopes:x}", multiplier.hex()]
