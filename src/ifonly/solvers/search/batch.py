"""Batches of people in the kernels' arrays: packed, with results in the kernels' units, and converted back.

The kernels count changes from the factual in steps or units, and compare costs; under l2 those are squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.compiling import Kernels
from ifonly.problem import Lowered
from ifonly.problem import People as Allowed
from ifonly.results import Claims, Stop
from ifonly.solvers.search.compiled import KERNELS
from ifonly.solvers.search.error_bounds import Boxes, Errors
from ifonly.solvers.search.kernels.layout import (
    FLOAT_ROWS,
    NEVER,
    SIZES,
    SQUARED,
    Pack,
    PackedPeople,
)
from ifonly.solvers.search.pack import (
    CHORDS,
    MOST_PROBED,
    Probing,
    hidden_neurons,
    node_bytes,
    pack_people,
    pack_question,
    products_of,
    units,
    when_probing,
)
from ifonly.solvers.search.record import Record
from ifonly.solvers.search.smooth.compiled import SMOOTH_KERNELS
from ifonly.solvers.search.smooth.kernels.layout import LINES, SMOOTH_ROWS, SmoothPack
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]


@dataclass
class SearchBatch:
    """The people of one call, and their results in the kernels' units."""

    allowed: Allowed
    people: PackedPeople
    lower: Floats
    best: Floats
    """The best point of each person, then its cost."""
    nodes: NDArray[np.int64]
    seconds: Floats
    spent_nodes: NDArray[np.int64]
    spent_seconds: Floats
    """What an earlier pass took of each person's limits."""
    rounding_bound: Floats
    """How much above the margin a score must be for a row of each person to count."""
    own: Floats
    """(person, condition): what the search itself may lose of a score at the row that it finds."""
    lower_any_rounding: Floats
    """Nothing nearer (in the question's distance) is accepted, however the model rounds; NaN where that is not
    known."""
    stops: dict[int, Stop] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)
    ball_error: dict[int, Floats] = field(default_factory=dict)
    """What the deployed model's scores can be off by in the ball of a person's row, where that is known."""
    exact: dict[int, tuple[bytes, Floats]] = field(default_factory=dict)
    """Rows that were made the best of their person as they are, to the last digit, which a change from the person's own
    row cannot always say; before them, what `best` was made then."""
    balls: tuple[bytes, Boxes] | None = None
    """Balls that were worked out last, of all people, and their radii in bytes."""

    def __len__(self) -> int:
        return len(self.nodes)

    def add_spent(self, i: int, part: SearchBatch, k: int) -> None:
        """What person i has taken as person k of a further pass."""
        self.nodes[i] += part.nodes[k]
        self.seconds[i] += part.seconds[k]
        if k in part.stops:
            self.stops[i] = part.stops[k]

    def take(self, i: int, part: SearchBatch, k: int) -> None:
        """What a further pass found for person i, who is person k there."""
        self.lower[i], self.best[i] = part.lower[k], part.best[k]
        if k in part.exact:
            self.exact[i] = part.exact[k]
        if k in part.records:
            self.records[i] = part.records[k]


@dataclass(frozen=True)
class PackedQuestion:
    """A question in the kernels' arrays, and the conversion between its units and theirs."""

    lowered: Lowered
    pack: Pack
    unit: Floats
    records: bool
    kernels: Kernels
    """What searches it, given `searched`."""
    searched: Pack | SmoothPack
    rows: int
    """Of a scratch's F."""
    probing: int
    """When ReLUs are probed: NEVER, BY_RULE or ALWAYS."""

    @classmethod
    def of(
        cls, lowered: Lowered, tolerances: Tolerances, *, records: bool, probing: Probing = "by rule"
    ) -> PackedQuestion:
        pack = pack_question(lowered, tolerances)
        when = when_probing(lowered, pack, probing, records=records)
        if lowered.bends is None:
            return cls(lowered, pack, units(lowered), records, KERNELS, pack, FLOAT_ROWS, when)
        if hidden_neurons(pack) > MOST_PROBED:
            when = NEVER
        smooth = SmoothPack(*pack, lowered.bends.code, lowered.bends.alpha)
        return cls(lowered, pack, units(lowered), records, SMOOTH_KERNELS, smooth, SMOOTH_ROWS, when)

    @property
    def lines(self) -> int:
        """Of each neuron, in the relaxations that are probed."""
        return CHORDS if self.lowered.bends is None else LINES

    @cached_property
    def squared(self) -> bool:
        return self.pack.norm == SQUARED

    @cached_property
    def sizes(self) -> tuple[Any, ...]:
        """What the sizes of a thread's buffers depend on."""
        pack = self.pack
        sizes = tuple(pack.index[SIZES, : pack.layers + 1].tolist())
        return (sizes, self.lowered.features, pack.rules, pack.norm, self.records, self.rows, self.probing, self.lines)

    @cached_property
    def node_bytes(self) -> int:
        """What one node of a tree takes."""
        return node_bytes(self.pack)

    @cached_property
    def products(self) -> float:
        """About how many products one node takes."""
        return products_of(self.pack.index[SIZES, : self.pack.layers + 1].tolist())

    def batch(self, allowed: Allowed, errors: Errors, same: SearchBatch | None = None) -> SearchBatch:
        """People who may change so much; `same`: a batch of the same people, whose rows are packed already."""
        count = len(allowed)
        lower, seconds, spent_seconds, rounding_bound, lower_any_rounding = np.zeros((5, count))
        nodes, spent_nodes = np.zeros((2, count), dtype=np.int64)
        best = np.empty((count, self.lowered.features + 1))
        best[:], lower_any_rounding[:] = math.inf, math.nan
        box, z = self._packed_rows(allowed) if same is None else (same.people.box, same.people.z)
        return SearchBatch(
            allowed=allowed,
            people=pack_people(self.lowered, allowed, errors, box, z),
            lower=lower,
            best=best,
            nodes=nodes,
            seconds=seconds,
            spent_nodes=spent_nodes,
            spent_seconds=spent_seconds,
            rounding_bound=rounding_bound,
            own=np.zeros((count, self.lowered.need.size)),
            lower_any_rounding=lower_any_rounding,
        )

    def _packed_rows(self, allowed: Allowed) -> tuple[Floats, Floats]:
        """`box` and `z` of the kernels' people."""
        hidden = len(self.lowered.layers[0][1])
        box, z = np.empty((len(allowed), 3, self.lowered.features)), np.empty((len(allowed), hidden))
        self._now.pack_rows(
            self.pack.index, self.unit, self.lowered.columns, self.pack.biases[:hidden], allowed.factual,
            allowed.option, allowed.lower, allowed.upper, allowed.grid_offset, box, z,
        )  # fmt: skip
        return box, z

    def distance(self, cost: Floats) -> Floats:
        """Costs as distances."""
        return np.sqrt(cost) if self.squared else cost

    def cost(self, distance: float) -> float:
        """A distance as a cost."""
        return distance**2 if self.squared else distance

    def points(self, batch: SearchBatch) -> tuple[Floats, NDArray[np.bool_]]:
        """The rows found, in the question's own units, and whether there is one."""
        allowed, found = batch.allowed, np.empty(len(batch), dtype=np.bool_)
        points = np.empty((len(batch), self.lowered.features))
        self._now.rows_found(
            self.pack.index, self.unit, allowed.factual, allowed.lower, allowed.upper, batch.people.box, batch.best,
            points, found,
        )  # fmt: skip
        points = self.lowered.on_steps(allowed.factual, points)
        for i, (best, point) in batch.exact.items():
            if batch.best[i].tobytes() == best:
                points[i] = point
        return points, found

    @property
    def _now(self) -> Any:
        """The kernels that are loaded: its own, or, where a table is looked up instead, those of the table."""
        ready = self.kernels if self.kernels.now is not None else KERNELS
        ready.prepare()
        return ready.now

    def put(self, batch: SearchBatch, i: int, factual: Floats, point: Floats) -> None:
        """Make a row the best one of person i."""
        distance = float(self.lowered.question.measure.between(factual, point))
        batch.best[i, :-1] = np.where(self.lowered.numeric, (point - factual) / self.unit, point)
        batch.best[i, -1] = self.cost(distance)
        batch.exact[i] = batch.best[i].tobytes(), point.copy()

    def claims(self, batch: SearchBatch) -> Claims:
        points, found = self.points(batch)
        lower = np.maximum(self.distance(batch.lower) * (1.0 - 1e-12) - self.lowered.grid_rounding, 0.0)
        return Claims(
            points=points,
            found=found,
            lower=lower,
            methods=["search"] * len(batch),
            nodes=batch.nodes,
            seconds=batch.seconds,
            rounding_bound=batch.rounding_bound,
            lower_any_rounding=np.minimum(batch.lower_any_rounding, lower),  # NaN stays NaN
            stops=batch.stops,
            records=batch.records,
        )
