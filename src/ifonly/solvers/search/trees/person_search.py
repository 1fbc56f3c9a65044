"""What is known of one person's search of trees: the best row, which rules have judged, the limits, and the claim."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.problem.costs import People
from ifonly.results import Claim, Limits, Stop, StoppedBy
from ifonly.solvers.search.progress import ProgressReporter
from ifonly.solvers.search.trees.kernels.layout import (
    BEST,
    LEFT_OVER,
    NEED,
    NODES,
    REQUIRED,
    SLACK,
    CellRules,
    Forest,
    PricedPerson,
    State,
)
from ifonly.solvers.search.trees.narrowed import Narrowing
from ifonly.solvers.search.trees.packed_forest import PackedForest

Floats = NDArray[np.float64]

BELOW = 1.0 - 1e-11
"""Costs are added up in float64; a bound on the distance is taken a little below the cost that is proven."""


@dataclass
class TreeSearch:
    """One person's search, who may have spent some nodes and seconds already."""

    packed: PackedForest
    forest: Forest
    people: People
    i: int
    limits: Limits
    reporter: ProgressReporter
    stop: threading.Event
    spent_nodes: int = 0
    spent_seconds: float = 0.0
    cutoff: float = math.inf
    """A cost below which rows are looked for."""
    found: Floats | None = None
    """Under rules: the best row so far, which they have judged."""
    other_nodes: int = 0
    """Of the searches for networks."""
    residual: float = math.inf
    """The least bound of a box that was closed without meeting it."""
    stopped: Stop | None = None
    begun: float = field(init=False)
    state: State = field(init=False)
    person: PricedPerson = field(init=False)
    rules: CellRules = field(init=False)

    def _registered(self, point: Floats, bound: float) -> bool:
        """Is the point admitted and decided as asked? Then it is the best one, if it is; nothing of its box is nearer
        than `bound`.
        """
        question, factual = self.packed.question, self.people.factual[self.i]
        c, d = question.conditions
        robust = (question.model.exact_scores(point[None, :]) @ c.T - d >= self.forest.demand[REQUIRED]).all()
        if not robust or question.allows(factual, point) is not None:
            return False
        self._improved(point, bound)
        return True

    def _improved(self, point: Floats, bound: float) -> None:
        """The same of a point that is known to be."""
        cost = self.packed.cost(float(self.packed.question.measure.between(self.people.factual[self.i], point)))
        if self.found is None or cost < self.state.number[BEST]:
            self.state.number[BEST], self.found = cost, point
        self.residual = min(self.residual, bound)

    def _registered_from_networks(self, point: Floats, bound: float) -> bool:
        """The same of a row of the search for networks, which the trees refuse most often: that is seen by sums."""
        sums = np.zeros(len(self.forest.value))
        self.packed.kernels.now.sums_at(self.forest, self.packed.cells.of_point(point), sums)
        reached = sums >= self.forest.demand[NEED] - self.forest.demand[SLACK]
        return bool(reached.all()) and self._registered(point, bound)

    def _nearest_in(self, inside: People, below: float) -> Claim:
        """The nearest row in these domains that rules admit and networks accept, if one is nearer than a distance."""
        rules = self.packed.rules
        assert rules is not None
        if rules.networks is None:
            known = self.narrowing.nearest(inside, below)
            if known is not None:
                point = known.point if known.lower < below else None
                lower = known.lower if known.point is None else min(known.lower, below)
                return Claim(point=point, lower=lower, method="search")
        return rules.nearest(inside, below, self._rest())

    @cached_property
    def narrowing(self) -> Narrowing:
        assert self.packed.rules is not None
        return Narrowing(self.packed.rules, self.packed.clauses, self.rules, self.packed.kernels.now)

    def _rest(self) -> Limits:
        """What is left of the limits."""
        left = self._seconds_left()
        return self.limits if left is None else replace(self.limits, seconds=max(left, 1e-3))

    def _seconds_left(self) -> float | None:
        seconds = self.limits.seconds
        return None if seconds is None else seconds - (time.perf_counter() - self.begun)

    def _stopped(self, seconds: float, nodes: int) -> Stop | None:
        if reached := self.limits.reached(seconds=seconds, nodes=nodes):
            return reached
        return Stop(StoppedBy.INTERRUPTED) if self.stop.is_set() else None

    def _beyond(self, taken: int) -> bool:
        return self.limits.memory_bytes is not None and taken > self.limits.memory_bytes

    def _claim(self, lower: float, stop: Stop | None) -> Claim:
        """The claim: no row costs less than `lower`."""
        lower = min(lower, self.residual, float(self.state.number[LEFT_OVER]))
        return Claim(
            point=self._point() if self.state.number[BEST] < self.cutoff and lower < math.inf else None,
            lower=self.packed.distance(lower) * BELOW,
            method="search",
            stop=stop,
            nodes=int(self.state.count[NODES]) + self.other_nodes,
            seconds=time.perf_counter() - self.begun,
            rounding_bound=float(self.packed.question.largest_error),
            lower_any_rounding=self.packed.distance(lower) * BELOW if self._one_rounding else None,
        )

    @property
    def _one_rounding(self) -> bool:
        """Does every model add up in one order only?"""
        rules = self.packed.rules
        return self.packed.any_rounding_forest is None and (rules is None or rules.networks is None)

    def _point(self) -> Floats:
        if self.found is not None:
            return self.found
        features = len(self.forest.choice)
        cells, must = self.state.best[:features], self.state.best[features:]
        return np.asarray(self.person.value[must, self.forest.start[:-1] + cells])
