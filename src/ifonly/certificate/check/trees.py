"""Ensembles of trees in a certificate: what is stored, the scores of a row, and the most that a region can reach.

score_k = ((start_k + sum over trees of the leaf's value for k) / divisor) * scale + shift_k  in real arithmetic. A tree
is a list of nodes in preorder: a split [feature, threshold or options, place of its right child], whose left child
follows it, or a leaf, the list of its values. A number goes left iff it is <= the threshold, a choice iff it has one of
the options.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ...printing import quoted
from .reading import CheckBudget, Refusal, entries, listed, number, scaled, whole
from .schema import StatedChoice, StatedSchema
from .softmax import has_probability

if TYPE_CHECKING:
    from .region import Region
    from .statement import Statement

MAX_TREES, MAX_TREE_NODES = 100_000, 1_000_000
MAX_TREE_DEPTH = 2_000
EVERY = -1
"""Adds to every output."""


@dataclass(frozen=True, slots=True)
class StatedLeaf:
    """A leaf: for each feature on the way to it, the largest threshold that it is above and the least one that it is
    not (None: none), or its options; and what it adds to each condition."""

    above: dict[int, float]
    below: dict[int, float]
    options: dict[int, frozenset[int]]
    adds: tuple[int, ...]

    def has(self, point: tuple[float, ...]) -> bool:
        return (
            all(point[g] > t for g, t in self.above.items())
            and all(point[g] <= t for g, t in self.below.items())
            and all(int(point[g]) in own for g, own in self.options.items())
        )


@dataclass(frozen=True, slots=True)
class StatedForest:
    """The trees, each as its leaves, best first for the first condition; and what is added to their sum."""

    trees: tuple[tuple[StatedLeaf, ...], ...]
    constants: tuple[int, ...]
    """Of each condition, in the unit of the leaves."""
    leaves: int
    units: tuple[Fraction, ...] = ()
    """What the value of each condition has to be divided by."""
    curves: tuple[tuple[int, int], ...] = ()
    """Where the conditions of a probability begin, and how many other classes there are."""

    def conditions(self, point: tuple[float, ...], meter: CheckBudget) -> list[int]:
        """The value of each condition for a row, in some unit: all must be >= 0."""
        total = list(self.constants)
        for tree in self.trees:
            meter.tick()
            leaf = next(one for one in tree if one.has(point))
            total = [a + b for a, b in zip(total, leaf.adds, strict=True)]
        for first, count in self.curves:
            exact = [Fraction(total[r]) / self.units[r] for r in range(first, first + count)]
            total.append(0 if has_probability(exact) else -1)
        return total


def read_forest(
    model: Any, schema: StatedSchema, rows_of: Any, meter: CheckBudget
) -> tuple[StatedForest, str, float]:  # fmt: skip
    """The trees of a model, with what the target asks of them: `rows_of(outputs)` reads it."""
    entries(model, "the model", "kind", "start", "shift", "divisor", "scale", "trees")
    start, shift = (
        [number(v, f"a {key}") for v in listed(model[key], f"the model's {key}")] for key in ("start", "shift")
    )
    divisor, scale = (Fraction(number(model[key], f"the model's {key}")) for key in ("divisor", "scale"))
    outputs = len(start)
    if not outputs or len(shift) != outputs or divisor == 0 or scale == 0:
        raise Refusal("the trees have one start and one shift per output, and neither divide nor multiply by 0")
    wanted, margin, rows = rows_of(outputs)
    if divisor < 0:
        divisor, scale = -divisor, -scale
    constants = [
        sum((c * (Fraction(start[j]) * scale + Fraction(shift[j]) * divisor) for j, c in row.items()), Fraction(0))
        - (Fraction(d) + Fraction(margin)) * divisor
        for row, d in rows
    ]
    trees = _read_trees(model["trees"], schema, outputs, meter)
    fine = max((_fineness(v) for _, tree in trees for *_, values in tree for v in values), default=0)
    # all is counted in units of 2^-bits: the values of leaves, times the scale, and the constants
    bits = max([fine + _fineness(scale), *map(_fineness, constants)])
    made, times = [], scale.numerator << bits - fine - _fineness(scale)
    for target, tree in trees:
        meter.tick()
        leaves = [
            StatedLeaf(above, below, own, _adds([times * scaled(v, fine, "a leaf") for v in values], target, rows))
            for above, below, own, values in tree
        ]
        meter.keep(sum(256 + sum(map(int.bit_length, leaf.adds)) for leaf in leaves))
        made.append(tuple(sorted(leaves, key=lambda leaf: -leaf.adds[0] if leaf.adds else 0)))
    stated = tuple(scaled(c, bits, "a constant") for c in constants)
    units = (Fraction(1 << bits) * divisor,) * len(stated)
    return StatedForest(tuple(made), stated, sum(map(len, made)), units), wanted, margin


def _fineness(value: float | Fraction) -> int:
    """The number is a whole multiple of 2^-this."""
    return value.as_integer_ratio()[1].bit_length() - 1


def _read_trees(
    value: Any, schema: StatedSchema, outputs: int, meter: CheckBudget
) -> list[tuple[int, list[Any]]]:  # fmt: skip
    """Of each tree: the output that it adds to, and its leaves with their values."""
    given = listed(value, "the trees")
    if len(given) > MAX_TREES:
        raise Refusal(f"there are more than {MAX_TREES} trees")
    trees, count = [], 0
    for tree in given:
        entries(tree, "a tree", "adds_to", "nodes")
        target = whole(tree["adds_to"], "the output of a tree", EVERY, outputs - 1)
        nodes = listed(tree["nodes"], "the nodes of a tree")
        count += len(nodes)
        if count > MAX_TREE_NODES:
            raise Refusal(f"the trees have more than {MAX_TREE_NODES} nodes")
        trees.append((target, _read_tree(nodes, schema, outputs if target == EVERY else 1, meter)))
    return trees


def _adds(values: list[int], target: int, rows: Any) -> tuple[int, ...]:
    """What a leaf adds to each condition, times the divisor."""
    if target == EVERY:
        return tuple(sum([c * values[j] for j, c in row.items()]) for row, _ in rows)
    return tuple(row.get(target, 0) * values[0] for row, _ in rows)


def _read_tree(nodes: list[Any], schema: StatedSchema, width: int, meter: CheckBudget) -> list[Any]:
    """The leaves of a tree: (above, below, options, values) of each."""
    leaves: list[Any] = []
    waiting: list[Any] = [({}, {}, {}, 0)]
    """What is left for the subtrees to come, and where they must begin."""
    for place, node in enumerate(nodes):
        meter.tick()
        if not waiting or waiting[-1][3] not in (0, place) or (waiting[-1][3] == 0 and place):
            raise Refusal("the nodes of a tree are not in preorder")
        above, below, options, _ = waiting.pop()
        node = listed(node, "a node of a tree")
        if node and isinstance(node[0], str):
            if len(node) != width:
                raise Refusal(f"a leaf has {width} values")
            meter.keep(1024 + 512 * (len(above) + len(below) + len(options)))
            leaves.append((above, below, options, [number(v, "the value of a leaf") for v in node]))
            continue
        if len(node) != 3 or len(waiting) > MAX_TREE_DEPTH:
            raise Refusal("a node of a tree is neither a split nor a leaf, or it is too deep")
        g = whole(node[0], "the feature of a split", 0, len(schema) - 1)
        right = whole(node[2], "the place of a right child", place + 2, len(nodes) - 1)
        feature = schema.features[g]
        if isinstance(feature, StatedChoice):
            most = len(feature.options) - 1
            goes = frozenset(
                whole(o, "an option of a split", 0, most) for o in listed(node[1], "the options of a split")
            )
            had = options.get(g, frozenset(range(most + 1)))
            sides = [(above, below, {**options, g: had & goes}), (above, below, {**options, g: had - goes})]
        else:
            t = number(node[1], f"a threshold of {quoted(feature.name)}")
            sides = [(above, {**below, g: min(t, below.get(g, t))}, options),
                     ({**above, g: max(t, above.get(g, t))}, below, options)]  # fmt: skip
        waiting += [(*sides[1], right), (*sides[0], place + 1)]
    if waiting:
        raise Refusal("a tree is cut off")
    return leaves


# ---------------------------------------------------------------------- the most of a region

Numbers = tuple[tuple[int, float | None, float | None, int, int, int], ...]
"""Of each number on the way to a leaf: its feature, the thresholds that it is above and not above, the change to the
first rounded down, and the least and largest change that are left, rounded outward."""
Reach = tuple[Numbers, tuple[tuple[int, frozenset[int]], ...], tuple[int, ...]]
"""A leaf as one person sees it: numbers, options, and what it adds."""


def within_reach(statement: Statement, radius: int | None) -> list[list[Reach]]:
    """The leaves of each tree that the person can reach at all at a cost below the radius."""
    assert statement.forest is not None
    changes: dict[tuple[int, float], tuple[int, int]] = {}
    """Of each threshold: the change to it, rounded down, and the least change to a value above it."""
    result = []
    for tree in statement.forest.trees:
        statement.meter.tick()
        leaves = [found for leaf in tree if (found := _seen(statement, leaf, changes)) is not None]
        statement.meter.keep(512 * len(leaves))
        result.append([leaf for leaf in leaves if _costs_less(statement, leaf, radius)])
    return result


def _seen(statement: Statement, leaf: StatedLeaf, changes: dict[tuple[int, float], tuple[int, int]]) -> Reach | None:
    numbers = []
    for g in sorted({*leaf.above, *leaf.below}):
        t, s, domain = leaf.above.get(g), leaf.below.get(g), statement.domains[g]
        if t is not None and s is not None and t >= s:
            return None
        for threshold in (t, s):
            if threshold is not None and (g, threshold) not in changes:
                changes[g, threshold] = floor_change(statement, g, threshold), beyond(statement, g, threshold)
        low, high = domain.low, domain.high
        start = low - 1
        if t is not None:
            start, above = changes[g, t]
            low = max(low, above)
        if s is not None:
            at = changes[g, s][0]
            if at < domain.low:
                return None
            high = min(high, domain.parted(at)[0] if domain.coarse else at + 1)
        if low > high or start >= domain.high:
            return None
        numbers.append((g, t, s, start, low, high))
    return tuple(numbers), tuple(leaf.options.items()), leaf.adds


def _costs_less(statement: Statement, leaf: Reach, radius: int | None) -> bool:
    """Does the cheapest row of the leaf cost less than the radius?"""
    costs = [0]
    for g, t, _, _, low, high in leaf[0]:
        costs.append(_number_cost(statement, g, t, low if low > 0 else min(high, 0)))
    for g, own in leaf[1]:
        left = [statement.option_costs[g][o] for o in statement.domains[g].options if o in own]
        if not left:
            return False
        costs.append(min(left))
    return radius is None or statement.total(costs) < radius


def _number_cost(statement: Statement, g: int, t: float | None, change: int) -> int:
    """The cost of a change; above a threshold that is the person's own value or more, none is no change."""
    if change == 0 and t is not None and t >= statement.factual[g]:
        return statement.jumps[g]
    return statement.number_cost(g, change)


def closes(region: Region, trees: list[list[Reach]]) -> bool:
    """Is some condition out of reach in a region, or some tree? A leaf is in reach if a row of both costs less than the
    radius."""
    forest = region.statement.forest
    assert forest is not None
    total = list(forest.constants)
    for tree in trees:
        region.statement.meter.tick()
        if len(total) == 1:  # leaves are in order
            reached = [next((leaf[2] for leaf in tree if meets(region, leaf)), None)]
            reached = [] if reached == [None] else reached
        else:
            reached = [leaf[2] for leaf in tree if meets(region, leaf)]
        if not reached:
            return True
        total = [c + max(adds[r] for adds in reached) for r, c in enumerate(total)]  # type: ignore[index]
    return any(value < 0 for value in total)


def meets(region: Region, leaf: Reach) -> bool:
    """Can a row of the region that costs less than the radius be in the leaf?"""
    extent, extra = region.extent, 0
    for g, t, s, start, low, high in leaf[0]:
        if high < extent.low[g] or low > extent.high[g] or start >= extent.high[g]:
            return False
        if (t is not None and g in extent.below and t >= extent.below[g]) or (
            s is not None and g in extent.above and s <= extent.above[g]
        ):
            return False
        change = max(low, extent.low[g]) if low > 0 else min(high, extent.high[g]) if high < 0 else region.corner[g]
        cost = _number_cost(region.statement, g, t, change)
        if cost > region.corner_costs[g]:
            extra = region.dearer(extra, g, cost)
    for g, own in leaf[1]:
        if region.corner[g] not in own:
            price = region.statement.option_costs[g]
            left = [price[o] for o in extent.options[g] if o in own]
            if not left:
                return False
            extra = region.dearer(extra, g, min(left))
    return region.affords(extra)


def beyond(statement: Statement, g: int, t: float) -> int:
    """The least change to a value above a threshold, rounded down: to the next step, or to the next float64."""
    domain = statement.domains[g]
    if domain.coarse:
        return domain.parted(floor_change(statement, g, t))[1]
    above = math.nextafter(t, math.inf)
    return floor_change(statement, g, above if math.isfinite(above) else t)


def floor_change(statement: Statement, g: int, t: float) -> int:
    """The change to a threshold, in units of 2^-P, rounded down."""
    top, bottom = t.as_integer_ratio()
    return (top << statement.grid) // bottom - scaled(statement.factual[g], statement.grid, "the factual")
