"""Packing of a question about trees into the kernels' arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.joint import Joint
from ifonly.model.kind import Kind
from ifonly.model.trees import Ensemble, Trees
from ifonly.problem import Question
from ifonly.problem.costs import Costs
from ifonly.problem.distance import Norm
from ifonly.problem.joint_target import JointTarget
from ifonly.problem.support import MaxChanges, OnlyWith
from ifonly.resources import check_limits
from ifonly.solvers.search.trees.kernels.layout import (
    ADDITIVE,
    BEGIN,
    DIVISOR,
    MAXIMUM,
    REQUIRED,
    SCALE,
    SHIFT,
    Forest,
    LeafTable,
    Stack,
    State,
)
from ifonly.solvers.search.trees.shared import SharedTrees

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SummedTrees:
    """Trees of one ensemble or of several, and how the leaves of each become scores."""

    trees: Trees
    ensembles: tuple[Ensemble, ...]

    @classmethod
    def of(cls, function: Kind) -> SummedTrees:
        """Those of a model that is trees, or several."""
        parts = function.functions if isinstance(function, Joint) else (function,)
        trees = function.trees if isinstance(function, Joint) else function.as_trees()
        assert trees is not None
        return cls(trees, tuple(own.ensemble for one in parts if (own := one.as_trees()) is not None))

    @cached_property
    def summing(self) -> Floats:
        """See `Forest.summing`."""
        columns = []
        for ensemble in self.ensembles:
            how, each = ensemble.summation, np.ones(ensemble.outputs)
            single = float(how.precision == "float32")
            columns.append(np.stack([how.start, how.shift, how.divisor * each, how.scale * each, single * each]))
        return np.concatenate(columns, axis=1)

    @cached_property
    def rounding(self) -> Floats:
        """How far each score can be from its sum in real numbers."""
        return np.concatenate([ensemble.rounding() for ensemble in self.ensembles])

    @property
    def factor(self) -> Floats:
        """What each score is times the sum of its leaves."""
        return np.asarray(self.summing[SCALE] / self.summing[DIVISOR])


def pack_forest(summed: SummedTrees, costs: Costs, shared: SharedTrees) -> Forest:
    """The ensemble in cells, its leaves by conditions, and what the conditions must reach."""
    question, ensemble = costs.question, summed.trees.ensemble
    c, _ = question.conditions
    check_limits(16 * len(c) * len(ensemble.values))
    values = leaf_values(ensemble, c * summed.factor)
    order = _order(shared, values)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1], dtype=np.int32)[None, :], axis=1)
    forest = Forest(
        norm=MAXIMUM if costs.norm is Norm.LINF else ADDITIVE,
        choice=shared.cells.choice,
        counts=costs.counts.astype(np.uint8),
        start=shared.cells.start,
        node=shared.node,
        sets=shared.sets,
        roots=shared.roots,
        first_leaf=shared.first_leaf,
        rank=rank,
        value=values,
        limit_at=shared.limit_at,
        dead=shared.dead,
        limit=shared.limit,
        limit_set=shared.limit_set,
        raw=shared.raw,
        adds_to=shared.adds_to,
        summing=summed.summing,
        coefficients=np.ascontiguousarray(c),
        demand=_demand(summed, costs, values, order, shared.first_leaf),
        pairs=costs.partners,
        ruled=any(not isinstance(rule, MaxChanges | OnlyWith) for rule in question.rules),
    )
    # contiguous and writable: to numba a read-only array is another type, and everything would be compiled again
    return Forest._make(
        np.require(part, requirements=("C", "W")) if isinstance(part, np.ndarray) else part for part in forest
    )


def leaf_values(ensemble: Ensemble, c: Floats) -> Floats:
    """(condition, leaf): what each leaf adds to C s. What does not depend on leaves is in the demand."""
    if ensemble.values.shape[1] > 1 or ensemble.outputs == 1:
        return np.ascontiguousarray(c @ ensemble.values.T)
    leaf = ensemble.nodes.leaf >= 0
    output = np.zeros(len(ensemble.values), dtype=np.intp)
    output[ensemble.nodes.leaf[leaf]] = ensemble.adds_to[ensemble.tree_of[leaf]]
    return np.ascontiguousarray(c[:, output] * ensemble.values[:, 0])


def _demand(
    summed: SummedTrees, costs: Costs, values: Floats, order: NDArray[np.int32], first: NDArray[np.int64]
) -> Floats:
    """What sums of leaves must reach, how far they can be from the library's scores; d, and what C s - d must reach.

    The library's sum is within `rounding` of the sum in real numbers; so is ours, in float64.
    """
    question, begin, shift = costs.question, summed.summing[BEGIN] * summed.factor, summed.summing[SHIFT]
    c, d = question.conditions
    constant = c @ (begin + shift) - d
    largest = np.maximum.reduceat(np.abs(np.take_along_axis(values, order, axis=1)), first[:-1], axis=1)
    rest = np.abs(c) @ (np.abs(begin) + np.abs(shift)) + np.abs(d)
    own = (len(summed.trees.ensemble.roots) + 16.0) * 2.0**-52 * (largest.sum(axis=1) + rest + question.margins)
    slack = np.abs(c) @ summed.rounding + own
    packed = least_score_margins(question)
    return np.ascontiguousarray(np.stack([packed - constant, slack, d, packed]))


def any_rounding_forest(forest: Forest, question: Question) -> Forest | None:
    """The same forest, for rows that only some rounding accepts; None where the library adds up in one order only."""
    if question.largest_error == 0.0:
        return None
    demand = forest.demand.copy()
    demand[[0, REQUIRED]] -= 2.0 * question.error
    return forest._replace(demand=demand)


def least_score_margins(question: Question) -> Floats:
    """What C s - d must be at least for a row to be accepted under every rounding: margin + E, and no lost tie."""
    if isinstance(question.target, JointTarget):  # a tie of one model is no matter of the others
        each = zip(question.target.scales.tolist(), question.members, strict=True)
        return np.concatenate([scale * least_score_margins(member) for scale, member in each])
    c, d = question.conditions
    least = question.margins + question.error
    for j in np.flatnonzero((least == 0.0) & (d == 0.0)).tolist():
        tie = np.zeros(c.shape[1])
        if np.count_nonzero(c[j]) > 1:
            tie[(c > 0.0).any(axis=0) | (c[j] < 0.0)] = 1.0
        if not question.target.met(question.model, tie[None, :])[0]:
            least[j] = np.nextafter(0.0, 1.0)
    return least


def _order(shared: SharedTrees, values: Floats) -> NDArray[np.int32]:
    """Per condition, tree by tree the leaves from the best."""
    order, place = [], 2 * shared.tree_of_leaf + shared.dead
    place = place.astype(np.min_scalar_type(int(place.max())))  # small whole numbers are sorted in linear time
    for row in values:
        check_limits()
        best = np.argsort(-row, kind="stable")
        order.append(best[np.argsort(place[best], kind="stable")].astype(np.int32))
    return np.ascontiguousarray(np.stack(order))


def new_stack(forest: Forest, table: LeafTable, capacity: int) -> Stack:
    """Space for so many boxes."""
    features, width = len(forest.choice), forest.sets.shape[1]
    return Stack(
        least=np.zeros((capacity, features), dtype=np.int32),
        most=np.zeros((capacity, features), dtype=np.int32),
        left=np.zeros((capacity, features * width), dtype=np.uint64),
        near=np.zeros((capacity, features), dtype=np.int32),
        must=np.zeros((capacity, features), dtype=np.uint8),
        alive=np.zeros((capacity, len(table.alive)), dtype=np.uint64),
        at=np.zeros((capacity, table.tree.shape[1] - 1), dtype=np.int32),
        other=np.zeros((capacity, features), dtype=np.int32),
        bound=np.zeros(capacity),
    )


def enlarged(stack: Stack) -> Stack:
    """The same boxes, and space for as many more."""
    return Stack(*(np.concatenate([part, np.zeros_like(part)]) for part in stack))


def new_state(forest: Forest) -> State:
    features, cells = len(forest.choice), int(forest.start[-1])
    return State(
        best=np.zeros(2 * features, dtype=np.int32),
        number=np.full(2, np.inf),
        count=np.zeros(2, dtype=np.int64),
        weight=np.zeros((2, cells)),
        touched=np.zeros(2 * cells + 1, dtype=np.int64),
        sums=np.zeros((2, len(forest.value) + 1)),
        preferred=np.zeros(features, dtype=np.int64),
        leaves=np.zeros(len(forest.roots), dtype=np.int32),
        scores=np.zeros(forest.summing.shape[1]),
    )
