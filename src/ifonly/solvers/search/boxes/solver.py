"""Best-first branch and bound over boxes of a person's values: exact for any sum of trees and networks.

Boxes are taken from the nearest on. One whose bound is too low is closed; so is one whose nearest row is accepted,
which is then the best so far, and a single row. Any other is split where the best leaves, or the network, want it
most.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.mixed import MixedSum
from ifonly.problem import Question
from ifonly.resources import LimitReached, limited
from ifonly.results import Claim, Limits, Listener, Progress, Stop
from ifonly.schema import Choice
from ifonly.solvers.search.boxes.bounds import BoxBounds, LeafCells, PersonBounds, Places
from ifonly.solvers.search.enumerate import Enumeration, accepted_by_all

Floats = NDArray[np.float64]
MOST_VALUES = 1_000_000
"""Of one feature."""
FEWEST_BOXES, MOST_BOXES, MOST_REACHED = 8, 192, 1 << 23
"""Boxes that are bounded at once, and boxes times leaves."""
GUESSES = 512
"""Rows among which a first one is looked for."""


class BoxSolver:
    """The search, ready for one question."""

    def __init__(self, question: Question) -> None:
        assert isinstance(question.model.function, MixedSum)
        self.question = question
        self.bounds = BoxBounds(question, LeafCells.of(question.model.function, question.schema))
        self.listing = Enumeration(question, MOST_VALUES)

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        claims: list[Claim] = []
        begun = time.perf_counter()
        for point in points:
            claims.append(self._claim(point, limits))
            if listen is not None:
                listen(Progress(finished=len(claims), people=len(points), seconds=time.perf_counter() - begun))
        return claims

    def _claim(self, point: Floats, limits: Limits) -> Claim:
        begun = time.perf_counter()
        try:
            with limited(limits.seconds, limits.memory_bytes):
                pairs = zip(self.question.schema.features, point.tolist(), strict=True)
                values = [self.listing.values_of(feature, before) for feature, before in pairs]
        except LimitReached as reached:
            return Claim(point=None, lower=0.0, method="search", stop=limits.stop(reached))
        if any(len(own) == 0 for own in values):
            return Claim(point=None, lower=math.inf, method="search")
        return PersonSearch(self, point, values, limits, begun).claim()


@dataclass
class PersonSearch:
    """One person's search."""

    solver: BoxSolver
    factual: Floats
    listed: list[Floats]
    limits: Limits
    begun: float
    best: Floats | None = None
    distance: float = math.inf
    """Of the best row so far."""
    nearest: float = math.inf
    """Of rows that some rounding accepts."""
    doubtful: list[tuple[float, float]] = field(default_factory=list)
    """Rows that only some rounding accepts: how far each is, and by how much it is above the margin at most."""
    boxes: list[tuple[float, int, Places, Places]] = field(default_factory=list)
    added: int = 0
    nodes: int = 0

    # ------------------------------------------------------------------ the person's values

    @cached_property
    def costs(self) -> list[Floats]:
        """What each value costs alone, in the order of `values`."""
        return [costs for _, costs in self._ordered]

    @cached_property
    def values(self) -> tuple[Floats, ...]:
        return tuple(values for values, _ in self._ordered)

    @cached_property
    def _ordered(self) -> list[tuple[Floats, Floats]]:
        """Numbers in order, options from the cheapest on."""
        result = []
        for g, own in enumerate(self.listed):
            rows = np.repeat(self.factual[None, :], len(own), axis=0)
            rows[:, g] = own
            costs = np.asarray(self.question.measure.between(self.factual, rows))
            choice = isinstance(self.question.schema.features[g], Choice)
            order = np.argsort(costs, kind="stable") if choice else np.argsort(own, kind="stable")
            result.append((own[order], costs[order]))
        return result

    @cached_property
    def cheapest(self) -> Places:
        """The place of the cheapest value of each feature."""
        return np.array([int(costs.argmin()) for costs in self.costs])

    @property
    def question(self) -> Question:
        return self.solver.question

    @cached_property
    def bounds(self) -> PersonBounds:
        return PersonBounds(self.solver.bounds, self.values)

    def rows(self, places: Places) -> Floats:
        return np.column_stack([own[places[:, g]] for g, own in enumerate(self.values)])

    # ------------------------------------------------------------------ the search

    def claim(self) -> Claim:
        self._guess()
        low = np.zeros(len(self.values), dtype=np.int64)
        high = np.array([len(own) - 1 for own in self.values])
        for g, costs in enumerate(self.costs):  # no value that alone costs more than the best row
            near = np.flatnonzero(costs <= self.distance)
            low[g], high[g] = (near.min(), near.max()) if len(near) else (0, -1)
        if (low <= high).all():
            self._add(low[None, :], high[None, :])
        stopped = None
        while self.boxes and self.boxes[0][0] < self.distance:
            seconds = time.perf_counter() - self.begun
            stopped = self.limits.reached(seconds=seconds, nodes=self.nodes) or self._memory()
            if stopped is not None:
                break
            self._advance()
        return self._claimed(stopped)

    def _memory(self) -> Stop | None:
        taken = len(self.boxes) * (16 * len(self.values) + 200)
        most = self.limits.memory_bytes
        return self.limits.memory if most is not None and taken > most else None

    def _add(self, low: Places, high: Places) -> None:
        """Boxes, if they hold anything nearer than the best row."""
        filled = (low <= high).all(axis=1)
        low, high = low[filled], high[filled]
        if not len(low):
            return
        far = self.question.measure.between(self.factual, self.rows(self._near(low, high)))
        for k in np.flatnonzero(far < self.distance).tolist():
            self.added += 1
            heappush(self.boxes, (float(far[k]), self.added, low[k], high[k]))

    def _near(self, low: Places, high: Places) -> Places:
        """The places of the nearest row of each box."""
        return np.clip(self.cheapest, low, high)

    def _advance(self) -> None:
        """Look at the nearest boxes."""
        taken: list[tuple[float, int, Places, Places]] = []
        most = MOST_REACHED // len(self.solver.bounds.leaves.value)
        most = min(MOST_BOXES, max(FEWEST_BOXES, most))
        while self.boxes and len(taken) < most and self.boxes[0][0] < self.distance:
            taken.append(heappop(self.boxes))
        self.nodes += len(taken)
        far = np.array([box[0] for box in taken])
        low, high = (np.array([box[k] for box in taken]) for k in (2, 3))
        alive = self.bounds.alive(low, high)
        upper = self.bounds.upper(low, high, alive)
        kept = np.flatnonzero((upper >= self.solver.bounds.least).all(axis=1))
        if not len(kept):
            return
        far, low, high, alive, upper = far[kept], low[kept], high[kept], alive[kept], upper[kept]
        near = self._near(low, high)
        met = self._judged(far, self.rows(near))
        left = np.flatnonzero(~met & (low < high).any(axis=1) & (far < self.distance))
        if len(left):
            self._split(low[left], high[left], near[left], alive[left], upper[left])

    def _judged(self, far: Floats, rows: Floats) -> NDArray[np.bool_]:
        """Which rows are accepted under every rounding, and allowed; the nearest of them is the best so far."""
        allowed = self.question.keeps_rules(np.repeat(self.factual[None, :], len(rows), axis=0), rows)
        possible, robust, most = accepted_by_all(self.question, rows)
        possible, robust = possible & allowed, robust & allowed
        self.nearest = min(self.nearest, float(far[possible].min(initial=math.inf)))
        only_some = possible & ~robust
        self.doubtful += zip(far[only_some].tolist(), most[only_some].tolist(), strict=True)
        if robust.any():
            first = np.flatnonzero(robust)[far[robust].argmin()]
            if far[first] < self.distance:
                self.best, self.distance = rows[first], float(far[first])
        return robust

    def _split(self, low: Places, high: Places, near: Places, alive: NDArray[np.bool_], upper: Floats) -> None:
        """Each box becomes two, at a place of one feature: those before it, and from it on."""
        gain, place = BoxSplits(self.bounds, low, high, near, alive, upper).chosen()
        box = np.arange(len(low))
        g = gain.argmax(axis=1)
        at = place[box, g]
        before, behind = high.copy(), low.copy()
        before[box, g], behind[box, g] = at - 1, at
        self._add(np.concatenate([low, behind]), np.concatenate([before, high]))

    def _guess(self) -> None:
        """Some row that is accepted, of random ones, with as much of the person's own as it can have."""
        rng = np.random.default_rng(0)
        places = np.column_stack([rng.integers(0, len(own), GUESSES) for own in self.values])
        rows = self.rows(places)
        far = np.asarray(self.question.measure.between(self.factual, rows))
        order = np.argsort(far, kind="stable")
        good = self._good(rows[order])
        for k in order[good][:2].tolist():
            now = places[k].copy()
            for g in range(len(now)):
                self._nearer(now, g)

    def _nearer(self, now: Places, g: int) -> None:
        """Move one feature towards its cheapest value, by halves, as far as the row stays accepted."""
        goal, here = int(self.cheapest[g]), int(now[g])
        tried = np.unique(np.round(goal + (here - goal) * np.array([0.0, 0.0625, 0.125, 0.25, 0.5, 0.75, 0.9])))
        places = np.repeat(now[None, :], len(tried), axis=0)
        places[:, g] = tried.astype(np.int64)
        rows = self.rows(places)
        good = np.flatnonzero(self._good(rows))
        if not len(good):
            return
        far = np.asarray(self.question.measure.between(self.factual, rows[good]))
        now[:] = places[good[far.argmin()]]

    def _good(self, rows: Floats) -> NDArray[np.bool_]:
        far = np.asarray(self.question.measure.between(self.factual, rows))
        return self._judged(far, rows)

    def _claimed(self, stopped: Stop | None) -> Claim:
        bound, lower = 0.0, self.nearest
        if self.best is not None:
            bound, lower = self.solver.listing.robust_of(self.best, self.distance, self.doubtful)
        open_from = self.boxes[0][0] if stopped is not None and self.boxes else math.inf
        return Claim(
            point=self.best,
            lower=min(lower, open_from),
            rounding_bound=bound,
            lower_any_rounding=min(self.nearest, self.distance, open_from),
            method="search",
            stop=stopped,
            nodes=self.nodes,
            seconds=time.perf_counter() - self.begun,
        )


@dataclass(frozen=True, eq=False)
class BoxSplits:
    """Where boxes may be split: by feature, what is gained, and the first place behind the split."""

    bounds: PersonBounds
    low: Places
    high: Places
    near: Places
    alive: NDArray[np.bool_]
    upper: Floats

    def chosen(self) -> tuple[Floats, Places]:
        count, features = self.low.shape
        gain, place = np.zeros((count, features)), self._middles()
        self._of_trees(gain, place)
        if self.bounds.bounds.function.network is not None:
            sensitive = self.bounds.bounds.sensitivity
            for g in range(features):
                least, most = self.bounds.added(g, self.low[:, g], self.high[:, g])
                gain[:, g] += 0.5 * (most - least) @ sensitive
        wide = self.high > self.low
        gain = np.where(wide, gain + 1e-12 * (self.high - self.low), -1.0)
        return gain, place

    def _middles(self) -> Places:
        """Half-way to the end that is farther from the nearest row; of choices, behind the first."""
        above = self.high - self.near >= self.near - self.low
        middle = np.where(above, (self.near + self.high + 1) // 2, (self.low + self.near) // 2 + 1)
        choices = np.array([self.bounds.is_choice(g) for g in range(self.low.shape[1])])
        return np.clip(np.where(choices, self.low + 1, middle), self.low + 1, np.maximum(self.high, self.low + 1))

    def _of_trees(self, gain: Floats, place: Places) -> None:
        """Credit features in which the nearest row is outside of the best leaf of a tree, by what that adds."""
        leaf, better = self._best_leaves()
        for g in range(gain.shape[1]):
            if self.bounds.is_choice(g):
                outside = ~self.bounds.has_option(g, leaf, self.near[:, g])
                gain[:, g] += np.where(outside, better, 0.0).sum(axis=1)
                continue
            below, above, at = self.bounds.beside(g, leaf, self.near[:, g])
            outside = below | above
            gain[:, g] += np.where(outside, better, 0.0).sum(axis=1)
            fits = outside & (at > self.low[:, g][:, None]) & (at <= self.high[:, g][:, None])
            most = np.where(fits, better, -1.0).argmax(axis=1)
            box = np.arange(len(most))
            found = fits[box, most]
            place[found, g] = at[box, most][found]

    def _best_leaves(self) -> tuple[Places, Floats]:
        """(boxes, trees): the best leaf of each tree that is left, and what it adds to that of the nearest row."""
        bounds = self.bounds.bounds
        leaves, worst = bounds.leaves, (self.upper - bounds.least).argmin(axis=1)
        scales = np.array(
            [one.ensemble.summation.scale / one.ensemble.summation.divisor for one in bounds.function.parts]
        )
        part = np.searchsorted(leaves.part, np.arange(len(leaves.first)), side="right") - 1
        counts = np.diff([*leaves.first.tolist(), len(leaves.value)])
        factor = np.repeat((bounds.gains[worst] * scales)[:, part], counts, axis=1)
        value = leaves.value * factor
        left = np.where(self.alive, value, -np.inf)
        most = np.repeat(np.maximum.reduceat(left, leaves.first, axis=1), counts, axis=1)
        place = np.arange(len(leaves.value))
        here = self.bounds.alive(self.near, self.near)
        best, own = (
            np.maximum.reduceat(np.where(which, place, 0), leaves.first, axis=1) for which in (left == most, here)
        )
        box = np.arange(len(value))[:, None]
        return best, np.maximum(value[box, best] - value[box, own], 0.0)
