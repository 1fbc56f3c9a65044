"""The branch and bound for one person: best-first over boxes, inside a ball whose radius grows until the answer is in it.

State lives in plain arrays (`Tree`), so that a run can stop after any node and go on later: the driver looks at the clock, the
keyboard and the memory between slices.

    lower      every favourable point is at least this far (cost), proven
    radius     the present phase searches the ball of this cost; a phase that ends empty raises `lower` to its radius
    best       the cheapest favourable point found so far
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ifonly.search.kernels.closed_forms import MAXIMUM, OPTIONS, SQUARED, item_gains, least_cost, least_cost_linf
from ifonly.search.kernels.node import (
    CHOICE,
    INTEGER,
    bound_hidden,
    clip_to_ball,
    compact,
    cost_of,
    descend,
    forward,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

DONE, SLICE, MEMORY, START = 0, 1, 2, 3
"""Why `run` returned: finished, the slice is used up, the node pool is full, not begun."""

LOWER, RADIUS, BEST, RESIDUAL = 0, 1, 2, 3
"""Places in `Tree.number`."""
HEAP, USED, NODES, PHASES = 0, 1, 2, 3
"""Places in `Tree.count`."""


class Pack(NamedTuple):
    """A question, packed: the same for all people."""

    norm: int
    kind: Ints
    start: Ints
    rate: Floats
    jump: Floats
    layers: int
    sizes: Ints
    weight_at: Ints
    weights: Floats
    bias_at: Ints
    biases: Floats
    slack: Floats
    first_weight: Floats
    need_low: Floats
    need_high: Floats
    need_aim: Floats
    gap: float
    relative_gap: float


class Person(NamedTuple):
    """One person: first layer at the factual, box of changes, allowed options with costs, the factual's options."""

    z: Floats
    lo: Floats
    hi: Floats
    mask: Bytes
    cost: Floats
    option: Ints


class Scratch(NamedTuple):
    """Buffers of one thread."""

    base: Floats
    item_feature: Ints
    item_start: Ints
    item_numeric: NDArray[np.bool_]
    item_integer: NDArray[np.bool_]
    up: Floats
    down: Floats
    item_rate: Floats
    item_jump: Floats
    offset: Floats
    column: Ints
    column_cost: Floats
    Wc: Floats
    zc: Floats
    nu: Floats
    nu_best: Floats
    a: Floats
    a_best: Floats
    v: Floats
    G: Floats
    e: Floats
    take: Floats
    take_best: Floats
    taken: NDArray[np.bool_]
    alpha: Floats
    pattern: Floats
    act: Floats
    g: Floats
    x: Floats
    score: Floats


class Tree(NamedTuple):
    """Nodes (a pool of boxes with their ReLU bounds), the heap of open ones, the best point and the counters."""

    lo: Floats
    hi: Floats
    mask: Bytes
    zl: Floats
    zu: Floats
    bound: Floats
    split: Ints
    value: Floats
    heap: Ints
    free: Ints
    best: Floats
    number: Floats
    count: Ints


@njit(**OPTIONS)
def cutoff(norm, number, gap, relative_gap):
    """Nodes at or beyond this cost need not be opened: the radius, or the best less what the gap allows."""
    best = number[BEST]
    if best == math.inf:
        return number[RADIUS]
    if norm == SQUARED:
        d = math.sqrt(best)
        d = max(d - 0.9 * min(gap, relative_gap * d), 0.0)
        return min(number[RADIUS], d * d)
    return min(number[RADIUS], best - 0.9 * min(gap, relative_gap * best))


@njit(**OPTIONS)
def realise(norm, items, a, take, item_feature, item_start, item_numeric, item_integer, up, down, column, column_cost,
            start, base, x):  # fmt: skip
    """A point of the box that gains at least `take[k]` of a.y from every item: fractions are rounded up."""
    for g in range(len(base)):
        x[g] = base[g]
    for k in range(items):
        if take[k] <= 0.0:
            continue
        g = item_feature[k]
        first = item_start[k]
        if item_numeric[k]:
            v = a[first]
            reach = up[k] if v > 0.0 else down[k]
            y = take[k] / abs(v)
            if item_integer[k]:
                y = np.ceil(y - 1e-9)
            y = min(y, reach)
            x[g] = base[g] + (y if v > 0.0 else -y)
        else:
            best = -1
            for c in range(first, item_start[k + 1]):
                if a[c] >= take[k] * (1.0 - 1e-12) and (best < 0 or column_cost[c] < column_cost[best]):
                    best = c
            if best >= 0:
                x[g] = column[best] - start[g]


@njit(**OPTIONS)
def solve_plane(norm, a, constant, base_cost, ceiling, items, s_item_start, s_item_numeric, s_item_integer, up, down,
                item_rate, item_jump, offset, column_cost, G, e, take):  # fmt: skip
    """The least total cost of a point of the box with  constant + a.y >= 0."""
    if norm == MAXIMUM:
        return least_cost_linf(a, -constant, base_cost, ceiling, items, s_item_start, s_item_numeric, s_item_integer, up,
                               down, item_rate, offset, column_cost, take)  # fmt: skip
    item_gains(a, 1.0, norm, items, s_item_start, s_item_numeric, up, down, item_rate, item_jump, column_cost, G, e)
    return base_cost + least_cost(norm, items, -constant, G, e, offset, take)


@njit(**OPTIONS)
def evaluate(pack, person, s, lo, hi, mask, zl, zu, tree, tries):
    """Bound a box. Returns (lower bound on the cost, feature to split or -1, where).

    May improve the best point. -1 with a bound below the cutoff means that the box cannot be resolved further in floating
    point: its bound is a limit of what can be proven.
    """
    p, norm, layers = pack, pack.norm, pack.layers
    number = tree.number
    limit = cutoff(norm, number, p.gap, p.relative_gap)
    base_cost = clip_to_ball(norm, limit, p.kind, p.start, p.rate, p.jump, person.cost, lo, hi, mask, s.base)
    if base_cost == math.inf:
        return math.inf, -1, 0.0
    items = compact(norm, p.kind, p.start, p.rate, p.jump, person.cost, person.option, p.first_weight, person.z, lo, hi,
                    mask, s.base, s.item_feature, s.item_start, s.item_numeric, s.item_integer, s.up, s.down, s.item_rate,
                    s.item_jump, s.offset, s.column, s.column_cost, s.Wc, s.zc)  # fmt: skip
    width = s.item_start[items]
    unstable = bound_hidden(layers - 1, p.sizes, p.weight_at, p.weights, p.bias_at, p.biases, p.slack, zl, zu, s.alpha,
                            norm, limit - base_cost, items, s.item_start, s.item_numeric, s.up, s.down, s.item_rate,
                            s.item_jump, s.offset, s.column_cost, s.Wc, s.zc, s.nu, s.a, s.v, s.G, s.e,
                            s.taken)  # fmt: skip
    bound = -1.0
    binding = 0
    for r in range(p.sizes[layers]):
        constant = output_plane(p, s, r, zl, zu, s.alpha, False, width) - p.need_low[r] + p.slack[p.bias_at[layers - 1] + r]
        c = solve_plane(norm, s.a, constant, base_cost, limit, items, s.item_start, s.item_numeric, s.item_integer, s.up,
                        s.down, s.item_rate, s.item_jump, s.offset, s.column_cost, s.G, s.e, s.take)  # fmt: skip
        if c > bound:
            bound = c
            binding = r
            keep(s, width, items)
        if bound >= limit:
            return bound, -1, 0.0

    realise(norm, items, s.a_best, s.take_best, s.item_feature, s.item_start, s.item_numeric, s.item_integer, s.up, s.down,
            s.column, s.column_cost, p.start, s.base, s.x)  # fmt: skip
    slope_pattern = unstable > 0
    for attempt in range(tries):
        forward(s.x, p.kind, p.start, person.option, p.first_weight, person.z, p.sizes, layers, p.weight_at, p.weights,
                p.bias_at, p.biases, s.act, s.g)  # fmt: skip
        worst, short = 0, math.inf
        for r in range(p.sizes[layers]):
            if s.g[r] - p.need_high[r] < short:
                short = s.g[r] - p.need_high[r]
                worst = r
        cost = cost_of(norm, p.kind, p.start, p.rate, p.jump, person.cost, s.x)
        if short >= 0.0 and cost < number[BEST]:
            number[BEST] = cost
            for f in range(len(s.x)):
                tree.best[f] = s.x[f]
            limit = cutoff(norm, number, p.gap, p.relative_gap)
            if bound >= limit:
                return bound, -1, 0.0
        for h in range(len(s.pattern)):
            s.pattern[h] = 1.0 if s.act[h] > 0.0 else 0.0
        if attempt == 0 and slope_pattern:  # the slopes that are tightest at this point
            constant = output_plane(p, s, binding, zl, zu, s.pattern, False, width)
            constant += p.slack[p.bias_at[layers - 1] + binding] - p.need_low[binding]
            c = solve_plane(norm, s.a, constant, base_cost, limit, items, s.item_start, s.item_numeric, s.item_integer,
                            s.up, s.down, s.item_rate, s.item_jump, s.offset, s.column_cost, s.G, s.e, s.take)  # fmt: skip
            if c > bound:
                bound = c
                keep(s, width, items)
                if bound >= limit:
                    return bound, -1, 0.0
            choose_scores(p, s, zl, zu, items)
        constant = output_plane(p, s, worst, zl, zu, s.pattern, True, width) - p.need_aim[worst]
        c = solve_plane(norm, s.a, constant, base_cost, limit, items, s.item_start, s.item_numeric, s.item_integer, s.up,
                        s.down, s.item_rate, s.item_jump, s.offset, s.column_cost, s.G, s.e, s.take)  # fmt: skip
        if c >= number[BEST]:
            break
        realise(norm, items, s.a, s.take, s.item_feature, s.item_start, s.item_numeric, s.item_integer, s.up, s.down,
                s.column, s.column_cost, p.start, s.base, s.x)  # fmt: skip
    f, value = choose_split(p, s, items, unstable, lo, hi)
    return bound, f, value


@njit(**OPTIONS)
def keep(s, width, items):
    """Remember the plane, its minimiser and its ReLU coefficients as the binding ones."""
    for t in range(width):
        s.a_best[t] = s.a[t]
    for k in range(items):
        s.take_best[k] = s.take[k]
    for h in range(len(s.nu)):
        s.nu_best[h] = s.nu[h]


@njit(**OPTIONS)
def output_plane(p, s, r, zl, zu, alpha, exact, width):
    """An upper plane of condition r over compact columns, into s.a; returns its constant."""
    layers = p.layers
    if layers == 1:
        for t in range(width):
            s.a[t] = s.Wc[r, t]
        return s.zc[r]
    m = p.sizes[layers - 1]
    at = p.weight_at[layers - 1] + r * m
    for t in range(m):
        s.v[t] = p.weights[at + t]
    return descend(layers - 2, s.v, p.biases[p.bias_at[layers - 1] + r], p.sizes, p.weight_at, p.weights, p.bias_at,
                   p.biases, zl, zu, alpha, exact, width, s.Wc, s.zc, s.nu, s.a)  # fmt: skip


@njit(**OPTIONS)
def choose_scores(p, s, zl, zu, items):
    """How much of the relaxation's error at the present point each item is to blame for.

    The error of an unstable ReLU is shared among the features in proportion to what they add to its range; errors of deeper
    layers are passed down through the absolute weights.
    """
    hidden = p.layers - 1
    q = s.G  # no longer needed here; too short for neurons, so use nu as the carrier
    for h in range(len(s.nu)):
        s.nu[h] = 0.0
    for layer in range(hidden - 1, -1, -1):
        at = p.bias_at[layer]
        n, m = p.sizes[layer + 1], p.sizes[layer]
        for i in range(n):
            h = at + i
            carried = s.nu[h]
            l, u = zl[h], zu[h]
            if u <= 0.0:
                s.nu[h] = 0.0
                continue
            if l < 0.0:
                c, z = s.nu_best[h], s.act[h]
                carried *= u / (u - l)
                if c > 0.0:
                    error = c * (u * (z - l) / (u - l) - max(z, 0.0))
                else:
                    error = -c * min(max(z, 0.0), max(-z, 0.0)) - c * 0.1 * min(u, -l)
                carried += max(error, 0.0) / (u - l)
            s.nu[h] = carried
        if layer > 0:
            before = p.bias_at[layer - 1]
            W = p.weights[p.weight_at[layer] : p.weight_at[layer] + n * m].reshape(n, m)
            for i in range(n):
                c = s.nu[at + i]
                if c != 0.0:
                    for t in range(m):
                        s.nu[before + t] += c * abs(W[i, t])
    for k in range(items):
        s.score[k] = 0.0
        for c in range(s.item_start[k], s.item_start[k + 1]):
            total = 0.0
            for i in range(p.sizes[1]):
                total += s.nu[i] * abs(s.Wc[i, c])
            if s.item_numeric[k]:
                total *= s.up[k] + s.down[k]
            s.score[k] = max(s.score[k], total)


@njit(**OPTIONS)
def choose_split(p, s, items, unstable, lo, hi):
    """The feature to split and where: by blame while ReLUs are unstable, else where the bound's minimiser is a fraction."""
    best, score = -1, 0.0
    if unstable > 0:
        for k in range(items):
            if s.score[k] > score:
                score = s.score[k]
                best = k
    if best < 0:
        for k in range(items):
            if s.take_best[k] <= 0.0:
                continue
            first = s.item_start[k]
            part = 0.0
            if s.item_numeric[k]:
                v = abs(s.a_best[first])
                reach = s.up[k] if s.a_best[first] > 0.0 else s.down[k]
                y = s.take_best[k] / v
                if s.item_integer[k]:
                    part = abs(y - round(y))
                    if part < 1e-9:
                        part = 0.0
                elif s.item_jump[k] > 0.0 and y < reach * (1.0 - 1e-9):
                    part = 1.0
            elif p.norm != MAXIMUM:
                part = 1.0
            if part > score:
                score = part
                best = k
    if best < 0:
        return -1, 0.0
    g = s.item_feature[best]
    if not s.item_numeric[best]:
        return g, s.base[g]
    l, h = lo[g], hi[g]
    if unstable > 0:
        if l < 0.0 < h:
            return g, 0.0
        middle = 0.5 * (l + h)
    else:
        first = s.item_start[best]
        y = s.take_best[best] / abs(s.a_best[first])
        middle = s.base[g] + (y if s.a_best[first] > 0.0 else -y)
    if p.kind[g] == INTEGER:
        middle = min(np.floor(middle), h - 1.0)
    elif not (l < middle < h) or h - l <= 1e-13 * (abs(l) + abs(h)):
        return -1, 0.0
    return g, middle


# ---------------------------------------------------------------------------------------------------- the heap


@njit(**OPTIONS)
def heap_push(heap, size, bound, node):
    i = size
    heap[i] = node
    while i > 0:
        parent = (i - 1) >> 1
        if bound[heap[parent]] <= bound[node]:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = node


@njit(**OPTIONS)
def heap_pop(heap, size, bound):
    top = heap[0]
    node = heap[size - 1]
    i = 0
    last = size - 1
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and bound[heap[child + 1]] < bound[heap[child]]:
            child += 1
        if bound[heap[child]] >= bound[node]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = node
    return top


# ---------------------------------------------------------------------------------------------------- the loop


@njit(**OPTIONS)
def take_slot(tree):
    """A free place in the pool, or -1."""
    used = tree.count[USED]
    if used >= len(tree.bound):
        return -1
    tree.count[USED] = used + 1
    return tree.free[used]


@njit(**OPTIONS)
def give_slot(tree, node):
    tree.count[USED] -= 1
    tree.free[tree.count[USED]] = node


@njit(**OPTIONS)
def settle(pack, person, s, tree, node, tries):
    """Evaluate a node that was just made: keep it on the heap, or close it and free its place."""
    bound, f, value = evaluate(pack, person, s, tree.lo[node], tree.hi[node], tree.mask[node], tree.zl[node], tree.zu[node],
                               tree, tries)  # fmt: skip
    tree.count[NODES] += 1
    bound = max(bound, tree.bound[node])
    if bound >= cutoff(pack.norm, tree.number, pack.gap, pack.relative_gap):
        give_slot(tree, node)
        return
    if f < 0:
        tree.number[RESIDUAL] = min(tree.number[RESIDUAL], bound)
        give_slot(tree, node)
        return
    tree.bound[node] = bound
    tree.split[node] = f
    tree.value[node] = value
    heap_push(tree.heap, tree.count[HEAP], tree.bound, node)
    tree.count[HEAP] += 1


@njit(**OPTIONS)
def begin_phase(pack, person, s, tree):
    """Put the whole space of the person on the heap."""
    for i in range(len(tree.free)):
        tree.free[i] = i
    tree.count[HEAP] = 0
    tree.count[USED] = 0
    tree.count[PHASES] += 1
    tree.number[RESIDUAL] = math.inf
    node = take_slot(tree)
    tree.lo[node] = person.lo
    tree.hi[node] = person.hi
    tree.mask[node] = person.mask
    tree.zl[node] = -math.inf
    tree.zu[node] = math.inf
    tree.bound[node] = tree.number[LOWER]
    settle(pack, person, s, tree, node, 8)


@njit(**OPTIONS)
def open_node(pack, person, s, tree, node):
    """Split a node in two and settle both halves. The node's own place becomes the second half."""
    other = take_slot(tree)
    tree.lo[other] = tree.lo[node]
    tree.hi[other] = tree.hi[node]
    tree.mask[other] = tree.mask[node]
    tree.zl[other] = tree.zl[node]
    tree.zu[other] = tree.zu[node]
    tree.bound[other] = tree.bound[node]
    g, value = tree.split[node], tree.value[node]
    if pack.kind[g] == CHOICE:
        first = pack.start[g]
        for c in range(first, pack.start[g + 1]):
            if c == first + int(value):
                tree.mask[other, c] = 0
            else:
                tree.mask[node, c] = 0
    elif pack.kind[g] == INTEGER:
        if value == 0.0:
            tree.hi[node, g] = 0.0
            tree.lo[other, g] = 1.0
        else:
            tree.hi[node, g] = value
            tree.lo[other, g] = value + 1.0
    else:
        tree.hi[node, g] = value
        tree.lo[other, g] = value
    settle(pack, person, s, tree, node, 2)
    settle(pack, person, s, tree, other, 2)


@njit(**OPTIONS)
def run(pack, person, s, tree, nodes):
    """Search until done, or for about `nodes` more nodes. Returns DONE, SLICE or MEMORY."""
    number, count = tree.number, tree.count
    stop = count[NODES] + nodes
    while True:
        while count[HEAP] > 0:
            limit = cutoff(pack.norm, number, pack.gap, pack.relative_gap)
            if tree.bound[tree.heap[0]] >= limit:
                break
            if count[NODES] >= stop:
                return SLICE
            if count[USED] + 1 >= len(tree.bound):
                return MEMORY
            node = heap_pop(tree.heap, count[HEAP], tree.bound)
            count[HEAP] -= 1
            open_node(pack, person, s, tree, node)
        # the phase is over: nothing favourable below the cutoff, but for what could not be resolved
        limit = min(cutoff(pack.norm, number, pack.gap, pack.relative_gap), number[RESIDUAL])
        number[LOWER] = max(number[LOWER], limit)
        if number[BEST] < math.inf and number[RADIUS] >= number[BEST] or number[RADIUS] == math.inf:
            return DONE
        if number[RESIDUAL] < number[RADIUS]:
            number[RADIUS] = math.inf
        else:
            number[RADIUS] = next_radius(pack, number)
        begin_phase(pack, person, s, tree)


@njit(**OPTIONS)
def next_radius(pack, number):
    grown = number[RADIUS] * (16.0 if pack.norm == SQUARED else 4.0)
    if grown >= number[BEST] * 0.5:
        return math.inf
    return grown
