"""Ensembles of trees restricted to one person's domain: which cuts are open, and which leaves can be reached.

    cuts     of a number inside its domain, in order. x <= cut goes left; the greatest value to its left and the least
             to its right are neighbours (two float64, or two steps), so that no value lies between the sides
    trees    what the domain leaves of each: splits that can go either way, and leaves

Sums of leaves in real numbers differ by a little, `slack`, from the library's own sum, which decides. So programs and
formulas ask for that much less, and a row that they find and the library's sum refuses is excluded by its leaves: all
rows that reach the same leaves have the same score. No tolerance decides anything. (Nothing here is shared with the
search for trees, which works on cells: the two are each other's check.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.model.network import Network
from ifonly.model.trees import EVERY, Trees
from ifonly.problem import Lowered, Question, lower
from ifonly.problem.lowering import curved_rule, without_network
from ifonly.resources import check_limits
from ifonly.solvers.common.inputs import Floats, Person

DEEPEST = 200
"""Splits on the way to a leaf, beyond which the methods of the paper do not follow a tree."""
LARGEST = 20_000
"""Splits of all trees together."""
OWN = 2.0**-50
"""Relative to the terms, for each of them: far more than float64 loses when it multiplies and adds them."""

ALWAYS_RIGHT = -1


def trees_of(question: Question) -> Trees | None:
    """The ensemble that the question is about, if it is about one."""
    return question.model.function.as_trees()


def refusal(question: Question, method: str) -> str:
    """Why a method of the paper cannot take a question; empty when it can."""
    trees = trees_of(question)
    if trees is None:
        return without_network(question, method)
    splits = int((trees.ensemble.nodes.column >= 0).sum())
    if splits > LARGEST:
        return f"The method '{method}' takes trees with at most {LARGEST:,} splits in all, but these have {splits:,}"
    if trees.ensemble.depth > DEEPEST:
        return f"The method '{method}' takes trees of depth {DEEPEST} at most, but one has {trees.ensemble.depth:,}"
    return curved_rule(question, method)


def lowered_of(question: Question) -> Lowered:
    """The question in numbers. Of trees: the network beside the rules gives nothing, and the trees add their leaves."""
    trees = trees_of(question)
    if trees is None:
        return lower(question)
    nothing = Network.of([(np.zeros((trees.outputs, trees.inputs)), np.zeros(trees.outputs))])
    return replace(lower(replace(question, model=replace(question.model, function=nothing))), question=question)


# ---------------------------------------------------------------------- one person's trees


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """The open cuts of one number: of a real as values, of one that moves in steps as steps from the factual."""

    least: float
    most: float
    left: Floats
    """The greatest value on the left of each."""
    right: Floats
    """The least value on the right of each."""
    thresholds: Floats
    """All thresholds of the number, in order ..."""
    places: NDArray[np.intp]
    """... and the open cut that each is; ALWAYS_RIGHT, or the number of open cuts, where all values go one way."""

    def __len__(self) -> int:
        return len(self.left)

    def place(self, threshold: float) -> int:
        """The open cut that a threshold is."""
        if math.isinf(threshold):
            return len(self) if threshold > 0.0 else ALWAYS_RIGHT
        return int(self.places[np.searchsorted(self.thresholds, threshold)])

    def ends(self, cell: int) -> tuple[float, float]:
        """The least and the greatest value between two neighbouring cuts."""
        low = self.least if cell == 0 else float(self.right[cell - 1])
        return low, (self.most if cell == len(self) else float(self.left[cell]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A row of the ensemble's values."""

    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A number goes left up to its open cut `place`, an option if it is among `options`."""

    feature: int
    left: ReachableTree
    right: ReachableTree
    place: int = -1
    options: tuple[int, ...] = ()


ReachableTree: TypeAlias = Leaf | Split


@dataclass(frozen=True, kw_only=True)
class PersonTrees:
    """What one person's domain leaves of an ensemble."""

    trees: Trees
    cuts: dict[int, Cuts]
    """Of the numbers that may change."""
    reachable: tuple[ReachableTree, ...]
    weight: Floats
    """(condition, row of the ensemble's values): what the leaf adds to C s - d."""
    constant: Floats
    slack: Floats
    """How far sums of leaves can be from what the library's own sum gives."""
    excluded: tuple[NDArray[np.intp], ...] = ()
    """Leaves, one of each tree, that are not reached together."""

    def without(self, point: Floats) -> PersonTrees:
        """The same, but for the rows that reach the leaves that this one reaches."""
        leaves = self.trees.ensemble.leaves(point[None, :])[0].astype(np.intp)
        return replace(self, excluded=(*self.excluded, leaves))

    def ends(self) -> tuple[Floats, Floats]:
        """What no row's C s - d is below or above."""
        leaves = [self.weight[:, list(leaf_rows(tree))] for tree in self.reachable]
        least, most = (
            sum(pick(axis=1) for pick in side) for side in zip(*((w.min, w.max) for w in leaves), strict=True)
        )
        return np.asarray(self.constant + least - self.slack), np.asarray(self.constant + most + self.slack)

    def within(self, lowered: Lowered, person: Person, point: Floats) -> Person:
        """The person with numbers no freer than the cuts around the point: there nothing changes in any tree."""
        lower, upper = person.lower.copy(), person.upper.copy()
        for g, cuts in self.cuts.items():
            if not lowered.step[g]:
                lower[g], upper[g] = cuts.ends(int(np.searchsorted(cuts.left, point[g])))
        return replace(person, lower=lower, upper=upper)


def person_trees(lowered: Lowered, person: Person) -> PersonTrees:
    """The ensemble over the person's domains, which must not be empty."""
    trees, (c, d) = trees_of(lowered.question), lowered.question.conditions
    assert trees is not None
    ensemble, how = trees.ensemble, trees.ensemble.summation
    free = np.flatnonzero(lowered.numeric & (person.lower < person.upper)).tolist()
    cuts = {g: _open_cuts(lowered, person, g, trees.cuts[g]) for g in free}
    factor = how.scale / how.divisor
    weight = factor * (c @ _by_output(trees).T)
    constant = c @ (factor * how.start + how.shift) - d
    size = np.abs(weight).max(axis=1, initial=0.0) * len(ensemble.roots) + np.abs(d)
    size = size + np.abs(c) @ (np.abs(factor * how.start) + np.abs(how.shift))
    slack = np.abs(c) @ ensemble.rounding() + OWN * (len(ensemble.roots) + 8.0) * size
    reachable = []
    for root in ensemble.roots.tolist():
        check_limits()
        reachable.append(_reachable(lowered, person, cuts, root))
    return PersonTrees(
        trees=trees, cuts=cuts, reachable=tuple(reachable), weight=weight, constant=constant, slack=slack
    )


def _by_output(trees: Trees) -> Floats:
    """(row of the ensemble's values, output): what each leaf adds, before the sum is scaled."""
    ensemble = trees.ensemble
    leaf = ensemble.nodes.leaf >= 0
    adds_to = np.zeros(len(ensemble.values), dtype=np.intp)
    adds_to[ensemble.nodes.leaf[leaf]] = ensemble.adds_to[ensemble.tree_of[leaf]]
    mine = (adds_to[:, None] == EVERY) | (adds_to[:, None] == np.arange(trees.outputs))
    return np.where(mine, ensemble.values, 0.0)


def _open_cuts(lowered: Lowered, person: Person, g: int, thresholds: Floats) -> Cuts:
    low, high, step = float(person.lower[g]), float(person.upper[g]), float(lowered.step[g])
    if not step:
        left, right = thresholds, np.nextafter(thresholds, np.inf)
    else:
        low, high = (float(round((end - person.factual[g]) / step)) for end in (low, high))
        left = _steps_left(lowered, person, g, thresholds, low, high)
        right = left + 1.0
    inside = (left >= low) & (left < high)
    opened = np.unique(left[inside])
    places = np.where(inside, np.searchsorted(opened, left), np.where(left < low, ALWAYS_RIGHT, len(opened)))
    return Cuts(
        least=low,
        most=high,
        left=opened,
        right=np.unique(right[inside]),
        thresholds=thresholds,
        places=places.astype(np.intp),
    )


def _steps_left(lowered: Lowered, person: Person, g: int, thresholds: Floats, low: float, high: float) -> Floats:
    """For each threshold the most steps from the factual that end at or below it: of the values as they are judged."""
    factual, step = float(person.factual[g]), float(lowered.step[g])
    steps = np.clip(np.floor((thresholds - factual) / step) + 2.0, low - 1.0, high)
    while (over := (steps >= low) & (values_after(lowered, person, g, steps) > thresholds)).any():
        steps = steps - over
    return np.asarray(steps)


def values_after(lowered: Lowered, person: Person, g: int, steps: Floats) -> Floats:
    """A number's values so many steps from the factual, as a row has them."""
    points = np.tile(person.factual, (len(steps), 1))
    points[:, g] += lowered.step[g] * steps
    return lowered.on_steps(np.tile(person.factual, (len(steps), 1)), points)[:, g]


def _reachable(lowered: Lowered, person: Person, cuts: dict[int, Cuts], root: int) -> ReachableTree:
    """A tree, as far as the person can reach it."""
    trees = trees_of(lowered.question)
    assert trees is not None
    form, nodes = trees.ensemble, trees.ensemble.nodes

    def sides(node: int, g: int, here: Sequence[int]) -> tuple[Sequence[int], Sequence[int], int]:
        """What of the cells (or options) that are left goes left and right, and the open cut."""
        if not lowered.numeric[g]:
            chosen = form.sets[nodes.chosen[node]]
            return [k for k in here if chosen[k]], [k for k in here if not chosen[k]], -1
        if g not in cuts:
            goes = bool(person.lower[g] <= nodes.threshold[node])
            return range(goes), range(not goes), -1
        place = cuts[g].place(float(nodes.threshold[node]))
        return range(here[0], min(place, here[-1]) + 1), range(max(place + 1, here[0]), here[-1] + 1), place

    def follow(node: int, reach: dict[int, Sequence[int]]) -> ReachableTree:
        g = int(nodes.column[node])
        if g < 0:
            return Leaf(row=int(nodes.leaf[node]))
        left, right, place = sides(node, g, reach[g])
        if not right:
            return follow(int(nodes.left[node]), reach)
        if not left:
            return follow(int(nodes.right[node]), reach)
        return Split(
            feature=g,
            place=place,
            options=() if lowered.numeric[g] else tuple(left),
            left=follow(int(nodes.left[node]), {**reach, g: left}),
            right=follow(int(nodes.right[node]), {**reach, g: right}),
        )

    return follow(root, {g: _reach(lowered, person, cuts, g) for g in range(lowered.features)})


def _reach(lowered: Lowered, person: Person, cuts: dict[int, Cuts], g: int) -> Sequence[int]:
    """The cells between the open cuts of a number; the options of a choice."""
    if lowered.numeric[g]:
        return range(len(cuts[g]) + 1 if g in cuts else 1)
    return np.flatnonzero(person.allowed[lowered.start[g] : lowered.start[g + 1]]).tolist()


def leaf_rows(tree: ReachableTree) -> Iterator[int]:
    """The rows of its leaves."""
    if isinstance(tree, Leaf):
        yield tree.row
    else:
        yield from leaf_rows(tree.left)
        yield from leaf_rows(tree.right)
