"""Cells: what the cuts of all trees leave of a feature, and what each costs a person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.problem.costs import Costs, People
from ifonly.problem.distance import Norm
from ifonly.resources import check_limits
from ifonly.schema.decimals import Grid, stepped, steps_between
from ifonly.solvers.search.trees.kernels.layout import FREE, MUST, PricedPerson
from ifonly.solvers.search.trees.shared import CellTable

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """The cells of trees, and what a question's distance makes of them."""

    costs: Costs
    shared: CellTable

    @property
    def start(self) -> NDArray[np.int64]:
        return self.shared.start

    @property
    def choice(self) -> NDArray[np.uint8]:
        return self.shared.choice

    def cuts(self, g: int) -> Floats:
        return self.shared.cuts(g)

    def classes(self, g: int) -> NDArray[np.int64]:
        return self.shared.classes(g)

    @property
    def squared(self) -> bool:
        return self.costs.norm is Norm.L2

    @cached_property
    def prices(self) -> Floats:
        return np.stack([self.costs.jump, self.costs.rate, self.costs.rate_down])

    def of_point(self, point: Floats) -> NDArray[np.int32]:
        """The cells of a row."""
        cells = [
            self.classes(g)[int(value)] if self.choice[g] else np.searchsorted(self.cuts(g), value)
            for g, value in enumerate(point.tolist())
        ]
        return np.array(cells, dtype=np.int32)

    def person(self, people: People, i: int, kernel: Any) -> PricedPerson:
        """What each cell costs person i."""
        costs, width = self.costs, int(self.start[-1])
        cost, value, own = np.empty((2, width)), np.empty((2, width)), np.empty(len(self.choice), dtype=np.int64)
        factual = people.factual[i]
        kernel.price_cells(
            factual, np.stack([people.lower[i], people.upper[i]]), people.allowed[i], people.cost[i], costs.step,
            self.prices, self.squared, self.choice, self.start, costs.start,
            self.shared.table, cost, value, own,
        )  # fmt: skip
        for g in costs.reals_in_steps:
            ends = float(people.lower[i, g]), float(people.upper[i, g])
            self._price_steps(g, float(factual[g]), ends, cost, value)
        at = self.start[:-1] + own
        stays = (cost[FREE, at] < math.inf) & (value[FREE, at] == factual)
        return PricedPerson(cost, value, own, stays.astype(np.uint8), costs.most_changes, np.zeros(1, dtype=np.int64))

    def _price_steps(self, g: int, own: float, ends: tuple[float, float], cost: Floats, value: Floats) -> None:
        """A real number that moves in steps, which are decimals: the values are worked out exactly."""
        first = int(self.start[g])
        grid = self.costs.question.schema.grids.get(g)
        if grid is not None and not self.costs.relative(g):
            here = slice(first, int(self.start[g + 1]))
            cost[:, here], value[:, here] = self._prices_on(grid, g, own, ends)
            return
        edges = [-math.inf, *self.cuts(g).tolist(), math.inf]
        for k, (below, end) in enumerate(pairwise(edges)):
            check_limits()
            cost[:, first + k], value[:, first + k] = math.inf, own
            low, high = max(ends[0], math.nextafter(below, math.inf)), min(ends[1], end)
            if not low <= high:
                continue
            prices = [(self._price(g, own, entered), entered) for entered in self._beside(g, own, low, high)]
            if prices:
                cost[MUST, first + k], value[MUST, first + k] = min(prices)
            if low <= own <= high:
                prices = [(0.0, own)]
            if prices:
                cost[FREE, first + k], value[FREE, first + k] = min(prices)

    def _price(self, g: int, own: float, entered: float) -> float:
        rate = float((self.costs.rate if entered > own else self.costs.rate_down)[g])
        change = rate * abs(entered - own)
        return change**2 if self.squared else change + float(self.costs.jump[g])

    def _beside(self, g: int, own: float, low: float, high: float) -> list[float]:
        """The values between low and high, in steps from the person's own, that are next to it on either side."""
        step = float(self.costs.step[g])
        least, most = steps_between(own, step, low, high)
        sides = min(most, -1), max(least, 1)
        return [stepped(own, k, step) for k in sides if least <= k <= most]

    def _prices_on(self, grid: Grid, g: int, own: float, ends: tuple[float, float]) -> tuple[Floats, Floats]:
        """The same where the steps are the schema's: what all cells cost, and their values, by kinds of change."""
        check_limits()
        cuts, place = self.cuts(g), grid.place(own)
        last = _last_places(grid, tuple(cuts.tolist()))
        first, end = grid.between(*ends) if ends[0] <= ends[1] else (1, 0)
        least, most = np.maximum(np.append(0, last + 1), first), np.minimum(np.append(last, grid.steps), end)
        sides = np.stack([np.minimum(most, math.ceil(place) - 1), np.maximum(least, math.floor(place) + 1)])
        values = grid.values(sides)
        change = np.where(values > own, self.costs.rate[g], self.costs.rate_down[g]) * np.abs(values - own)
        prices = change**2 if self.squared else change + self.costs.jump[g]
        prices = np.where((sides >= least) & (sides <= most), prices, math.inf)
        nearest, cells = np.where(prices[1] < prices[0], 1, 0), np.arange(len(least))  # of two as near, the lower
        cost, value = np.empty((2, len(least))), np.empty((2, len(least)))
        cost[:], value[:] = prices[nearest, cells], values[nearest, cells]
        value[np.isinf(cost)] = own
        if ends[0] <= own <= ends[1]:
            cell = int(np.searchsorted(cuts, own))
            cost[FREE, cell], value[FREE, cell] = 0.0, own
        return cost, value


@lru_cache(maxsize=256)
def _last_places(grid: Grid, cuts: tuple[float, ...]) -> NDArray[np.int64]:
    """Of each cut, the last place of the grid that is not above it; it may be before the first."""
    return np.array([grid.between(-math.inf, cut)[1] for cut in cuts], dtype=np.int64)
