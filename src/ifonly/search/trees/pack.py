"""A question about trees, in the kernels' arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model.trees import Ensemble, Trees
from ifonly.problem import Question
from ifonly.problem.distance import Norm
from ifonly.problem.lowering import Costs
from ifonly.problem.support import AtMostChanges, OnlyWith
from ifonly.search.trees.cells import Cells
from ifonly.search.trees.kernels.layout import ADDITIVE, ASKED, MAXIMUM, Forest, LeafTable, Stack, State

Floats = NDArray[np.float64]


def pack_forest(trees: Trees, costs: Costs, cells: Cells, kernel: Any) -> Forest:
    """The ensemble in cells, its leaves by conditions, and what the conditions must reach."""
    ensemble, how, question = trees.ensemble, trees.ensemble.summation, costs.question
    c, _ = question.conditions
    values = _values(ensemble, c)
    node, sets = _nodes(ensemble, cells)
    at, limit, limit_set, dead = _limits(node, sets, cells, len(ensemble.values), kernel)
    first, order = _order(ensemble, values, dead)
    forest = Forest(
        norm=MAXIMUM if costs.norm is Norm.LINF else ADDITIVE,
        choice=cells.choice,
        start=cells.start,
        node=node,
        sets=sets,
        roots=ensemble.roots,
        first_leaf=first,
        rank=np.argsort(order, axis=1).astype(np.int32),
        value=values,
        limit_at=at,
        dead=dead,
        limit=limit,
        limit_set=limit_set,
        raw=ensemble.values,
        adds_to=ensemble.adds_to,
        summing=np.stack([how.start, how.shift]),
        divisor=float(how.divisor),
        scale=float(how.scale),
        single=how.precision == "float32",
        coefficients=c,
        demand=_demand(trees, costs, values, order, first),
        pairs=costs.partners,
        ruled=any(not isinstance(rule, AtMostChanges | OnlyWith) for rule in question.rules),
    )
    # contiguous and writable: to numba a read-only array is another type, and everything would be compiled again
    return Forest._make(
        np.require(part, requirements=("C", "W")) if isinstance(part, np.ndarray) else part for part in forest
    )


def _values(ensemble: Ensemble, c: Floats) -> Floats:
    """(condition, leaf): what each leaf adds to C s. What does not depend on leaves is in the demand."""
    factor = ensemble.summation.scale / ensemble.summation.divisor
    if ensemble.values.shape[1] > 1 or ensemble.outputs == 1:
        return np.ascontiguousarray(factor * (c @ ensemble.values.T))
    leaf = ensemble.nodes.leaf >= 0
    output = np.zeros(len(ensemble.values), dtype=np.intp)
    output[ensemble.nodes.leaf[leaf]] = ensemble.adds_to[ensemble.tree_of[leaf]]
    return np.ascontiguousarray(factor * c[:, output] * ensemble.values[:, 0])


def _demand(trees: Trees, costs: Costs, values: Floats, order: NDArray[np.int32], first: NDArray[np.int64]) -> Floats:
    """What sums of leaves must reach, how far they can be from the library's scores; d, and what C s - d must reach.

    The library's sum is within `rounding` of the sum in real numbers; so is ours, in float64.
    """
    ensemble, how, question = trees.ensemble, trees.ensemble.summation, costs.question
    c, d = question.conditions
    constant = c @ (how.start * how.scale / how.divisor + how.shift) - d
    largest = np.maximum.reduceat(np.abs(np.take_along_axis(values, order.astype(np.intp), axis=1)), first[:-1], axis=1)
    rest = np.abs(c) @ (np.abs(how.start * how.scale / how.divisor) + np.abs(how.shift)) + np.abs(d)
    own = (len(ensemble.roots) + 16.0) * 2.0**-52 * (largest.sum(axis=1) + rest + question.target.margin)
    slack = np.abs(c) @ ensemble.rounding() + own
    asked = least_leads(question)
    return np.ascontiguousarray(np.stack([asked - constant, slack, d, asked]))


def by_luck(forest: Forest, question: Question) -> Forest | None:
    """The same forest, of which rows may be asked for that only the luck of rounding makes acceptable; None where the
    library adds up in one order only, so that there is no luck."""
    if question.largest_error == 0.0:
        return None
    demand = forest.demand.copy()
    demand[[0, ASKED]] -= 2.0 * question.error
    return forest._replace(demand=demand)


def least_leads(question: Question) -> Floats:
    """What C s - d must be at least for a row to be surely decided as asked: margin + E, and no tie that is lost."""
    c, d = question.conditions
    least = question.target.margin + question.error
    for j in np.flatnonzero((least == 0.0) & (d == 0.0)).tolist():
        tie = np.zeros(c.shape[1])
        if np.count_nonzero(c[j]) > 1:
            tie[(c > 0.0).any(axis=0) | (c[j] < 0.0)] = 1.0
        if not question.target.met(question.model, tie[None, :])[0]:
            least[j] = np.nextafter(0.0, 1.0)
    return least


def _nodes(ensemble: Ensemble, cells: Cells) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """The nodes with cells for thresholds, and sets of cells for sets of options."""
    nodes = ensemble.nodes
    cut = np.zeros(len(nodes), dtype=np.int64)
    width = max(1, -(-int(np.diff(cells.start).max()) // 64))
    rows: list[NDArray[np.uint64]] = [np.zeros((1, width), dtype=np.uint64)]
    used = 1
    for g, choice in enumerate(cells.choice):
        mine = np.flatnonzero(nodes.column == g)
        if not choice:
            cuts = cells.cuts(g)
            place = np.searchsorted(cuts, nodes.threshold[mine])
            cut[mine] = np.where(nodes.threshold[mine] == -np.inf, -1, place)
        elif len(mine):
            which, inverse = np.unique(nodes.chosen[mine], return_inverse=True)
            words = np.zeros((len(which), width), dtype=np.uint64)
            for option, cell in enumerate(cells.classes(g).tolist()):
                here = ensemble.sets[which, option].astype(np.uint64)
                words[:, cell >> 6] |= here << np.uint64(cell & 63)
            rows.append(words)
            cut[mine] = used + inverse.ravel()
            used += len(which)
    stacked = np.stack([nodes.column, cut, nodes.left, nodes.right, nodes.leaf]).astype(np.int32)
    return np.ascontiguousarray(stacked), np.concatenate(rows)


def _limits(node: NDArray[np.int32], sets: NDArray[np.uint64], cells: Cells, leaves: int, kernel: Any) -> Any:
    """Where the limits of each leaf begin, the limits, their sets, and which leaves nothing reaches."""
    at, dead, parent = np.zeros(leaves + 1, dtype=np.int64), np.zeros(leaves, dtype=np.uint8), kernel.parents_of(node)
    limit, limit_set = np.zeros((3, 0), dtype=np.int32), np.zeros((0, sets.shape[1]), dtype=np.uint64)
    count = np.diff(cells.start)
    kernel.leaf_limits(node, parent, sets, cells.choice, count, at, limit, limit_set, dead)
    if at[-1]:
        limit = np.zeros((3, int(at[-1])), dtype=np.int32)
        limit_set = np.zeros((int(at[-1]), sets.shape[1]), dtype=np.uint64)
        kernel.leaf_limits(node, parent, sets, cells.choice, count, at, limit, limit_set, dead)
    return at, limit, limit_set, dead


def _order(ensemble: Ensemble, values: Floats, dead: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where the leaves of each tree begin in the order; and, per condition, tree by tree the leaves from the best."""
    leaf = np.flatnonzero(ensemble.nodes.leaf >= 0)
    tree = np.zeros(len(ensemble.values), dtype=np.int64)
    tree[ensemble.nodes.leaf[leaf]] = ensemble.tree_of[leaf]
    order = np.stack([np.lexsort((-row, dead, tree)) for row in values]).astype(np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(tree, minlength=len(ensemble.roots)))])
    return first.astype(np.int64), np.ascontiguousarray(order)


def new_stack(forest: Forest, table: LeafTable, capacity: int) -> Stack:
    """Room for so many boxes."""
    features, width = len(forest.choice), forest.sets.shape[1]
    return Stack(
        least=np.zeros((capacity, features), dtype=np.int32),
        most=np.zeros((capacity, features), dtype=np.int32),
        left=np.zeros((capacity, features * width), dtype=np.uint64),
        near=np.zeros((capacity, features), dtype=np.int32),
        must=np.zeros((capacity, features), dtype=np.uint8),
        alive=np.zeros((capacity, len(table.alive)), dtype=np.uint64),
        at=np.zeros((capacity, table.tree.shape[1] - 1), dtype=np.int32),
        bound=np.zeros(capacity),
    )


def grown(stack: Stack) -> Stack:
    """The same boxes, and room for as many more."""
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
        wanted=np.zeros(features, dtype=np.int64),
        leaves=np.zeros(len(forest.roots), dtype=np.int32),
        scores=np.zeros(forest.summing.shape[1]),
    )
