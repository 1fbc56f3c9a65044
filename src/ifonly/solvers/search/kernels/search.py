"""Best-first branch and bound over boxes, inside a ball whose radius may grow until the answer is in it.

State lives in plain arrays (`Tree`), so that a run can stop after any node and resume later: the driver checks time,
memory and interrupts between slices.

    LOWER      every favourable point is at least this far (cost), proven
    RADIUS     the present phase searches the ball of this cost; a phase that ends empty raises LOWER to its radius
    BEST       the cheapest favourable point found so far
    RESIDUAL   the least bound of a box that floating point could not resolve
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.kernels.cutoff import cutoff
from ifonly.solvers.search.kernels.evaluate import evaluate, look_for_points
from ifonly.solvers.search.kernels.layout import (
    ACTIVE,
    ALPHA,
    BEST,
    BIAS_AT,
    BOUND,
    CHOICE,
    DONE,
    FREE,
    GRID_OFFSET,
    HALT,
    HEAD,
    HEAP,
    HEAP_SIZE,
    INACTIVE,
    INHERITED,
    INNER,
    INTEGER,
    KIND,
    LEAST,
    LOGGED,
    LOWER,
    MAXIMUM,
    MEMORY,
    MOST,
    MOST_STEPS,
    MULTIPLIER,
    NAME,
    NEVER,
    NODES,
    ONCE,
    OUTER,
    PARENT,
    PHASES,
    PROBING,
    RADIUS,
    RESIDUAL,
    ROW_KIND,
    ROWS,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SIZE,
    SLICE,
    SOURCES,
    SPLIT,
    SPLIT_VALUE,
    SQUARED,
    START,
    STEPS,
    UNSPLIT_SIDE,
    USED,
    OpenNode,
    PackedPerson,
)
from ifonly.solvers.search.kernels.node import next_value, number_cost
from ifonly.solvers.search.kernels.probing import MIXED_NODES
from ifonly.solvers.search.kernels.splits import UNSPLIT
from ifonly.solvers.search.kernels.support import keep
from ifonly.solvers.search.kernels.walk import FIRST_STARTS, LARGE_NETWORK

SQUARED_GROWTH, GROWTH = 16.0, 4.0
ROOT_TRIES, NODE_TRIES = 8, 2
MORE_STARTS, MORE_STARTS_AT = 24, 32
"""From how many starts walks look for points, all but the first after so many nodes; where no ReLUs are probed, only
until there is one."""
GO, AGAIN = 3, 4
"""What a run does next, where it does not return (DONE, SLICE, MEMORY)."""


@njit(**INNER)
def push(tree, node):
    """Put a node on the heap of open nodes, least bound first, older first among equals."""
    heap, bound = tree.idx[HEAP], tree.num[BOUND]
    i = tree.count[HEAP_SIZE]
    tree.count[HEAP_SIZE] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if bound[heap[parent]] <= bound[node]:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = node


@njit(**INNER)
def pop(tree):
    heap, bound = tree.idx[HEAP], tree.num[BOUND]
    last = tree.count[HEAP_SIZE] - 1
    tree.count[HEAP_SIZE] = last
    top, node = heap[0], heap[last]
    i = 0
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


@njit(**INNER)
def split_node(pack, person, tree, node, other):
    """Make `other` the second half of `node`, and `node` the first."""
    count = tree.box.shape[2]
    for end in range(2):
        for f in range(count):
            tree.box[other, end, f] = tree.box[node, end, f]
        for h in range(tree.side.shape[1]):
            tree.z[other, end, h] = tree.z[node, end, h]
    for c in range(tree.mask.shape[1]):
        tree.mask[other, c] = tree.mask[node, c]
    for h in range(tree.side.shape[1]):
        tree.side[other, h] = tree.side[node, h]
    for f in range(count):
        tree.counted[other, f] = tree.counted[node, f]
    tree.num[BOUND, other] = tree.num[BOUND, node]
    g, value = tree.idx[SPLIT, node], tree.num[SPLIT_VALUE, node]
    if g < 0:
        h = -2 - g
        tree.z[node, LEAST, h] = value
        tree.side[node, h] = ACTIVE
        tree.z[other, MOST, h] = value
        tree.side[other, h] = INACTIVE
    elif g >= count:
        g -= count
        keep(pack, person, g, tree.box[node, LEAST], tree.box[node, MOST], tree.mask[node])
        tree.counted[other, g] = 1
    elif pack.index[KIND, g] == CHOICE:
        first = pack.index[START, g]
        for c in range(first, pack.index[START, g + 1]):
            if c == first + int(value):
                tree.mask[other, c] = 0
            else:
                tree.mask[node, c] = 0
    else:
        tree.box[node, MOST, g] = value
        whole = pack.index[KIND, g] == INTEGER
        tree.box[other, LEAST, g] = next_value(value, person.box[GRID_OFFSET, g], 1.0) if whole else value


@njit(**INNER)
def _log(s, tree, node, bound, split, value, limit):
    """Append the record of a settled node; see `ifonly.solvers.search.record` for its form. False when the log is
    full."""
    hidden = tree.side.shape[1]
    rows, steps = tree.count[ROWS], tree.count[STEPS]
    at = tree.count[LOGGED]
    if at + 10 + hidden + (rows + steps) * (2 + hidden) > len(tree.log):
        return False
    log = tree.log
    log[at] = tree.idx[NAME, node]
    log[at + 1] = tree.idx[PARENT, node]
    log[at + 2] = tree.count[PHASES]
    log[at + 3] = split
    log[at + 4] = value
    log[at + 5] = bound
    log[at + 6] = limit
    log[at + 7] = steps + rows
    at += HEAD
    for h in range(hidden):
        log[at + h] = s.F[ALPHA, h]
    at += hidden + steps * (2 + hidden)  # which are there
    for i in range(rows):
        log[at] = s.LI[ROW_KIND, i]
        log[at + 1] = s.LF[MULTIPLIER, i]
        at += 2
        for h in range(hidden):
            log[at + h] = s.B[i, h]
        at += hidden
    tree.count[LOGGED] = at
    return True


@njit(**INNER)
def _set_root(pack, person, tree, i):
    """Make node i the whole space of the person."""
    for f in range(tree.box.shape[2]):
        tree.box[i, LEAST, f] = person.box[LEAST, f]
        tree.box[i, MOST, f] = person.box[MOST, f]
        tree.counted[i, f] = 0
    for c in range(tree.mask.shape[1]):
        tree.mask[i, c] = person.mask[c]
    for h in range(tree.side.shape[1]):
        tree.z[i, LEAST, h] = person.start[LEAST, h]
        tree.z[i, MOST, h] = person.start[MOST, h]
        tree.side[i, h] = UNSPLIT_SIDE
    for j in range(pack.rules):
        h = pack.index[BIAS_AT, pack.index[RULE_LAYER, j]] + pack.index[RULE_PLACE, j]
        tree.side[i, h] = RULE
        tree.z[i, LEAST, h] = max(tree.z[i, LEAST, h], 0.0)


@njit(**INNER)
def begin_phase(pack, person, tree):
    """A new phase: one open node, the first, which is the whole space of the person."""
    for i in range(tree.num.shape[1]):
        tree.idx[FREE, i] = i
    tree.count[HEAP_SIZE] = 0
    tree.count[USED] = 1
    tree.count[PHASES] += 1
    tree.number[RESIDUAL] = math.inf
    _set_root(pack, person, tree, np.int64(0))
    tree.num[BOUND, 0] = tree.number[LOWER]
    tree.idx[PARENT, 0] = -1


@njit(**INNER)
def open_node(tree, i):
    """Node i of the tree."""
    return OpenNode(
        tree.box[i, LEAST],
        tree.box[i, MOST],
        tree.mask[i],
        tree.z[i, LEAST],
        tree.z[i, MOST],
        tree.side[i],
        tree.counted[i],
    )


@njit(**INNER)
def settle(pack, s, tree, node, bound, split, value):
    """An evaluated node goes on the heap, or its place in the pool is free again; with records, it is logged."""
    number, count = tree.number, tree.count
    bound, limit = max(bound, tree.num[BOUND, node]), cutoff(pack, number)
    if len(tree.log) > 0:
        _log(s, tree, node, bound, split, value, limit)
    if bound >= limit or split == UNSPLIT:
        if bound < limit:
            number[RESIDUAL] = min(number[RESIDUAL], bound)
        count[USED] -= 1
        tree.idx[FREE, count[USED]] = node
    else:
        tree.num[BOUND, node] = bound
        tree.idx[SPLIT, node] = split
        tree.num[SPLIT_VALUE, node] = value
        push(tree, node)


@njit(**INNER)
def begins_again(pack, number):
    """The phase is over: nothing favourable below the cutoff, but for what could not be resolved. Is there another
    phase, with a larger radius?"""
    number[LOWER] = max(number[LOWER], min(cutoff(pack, number), number[RESIDUAL]))
    if number[RADIUS] == math.inf or number[RADIUS] >= number[BEST]:
        return False
    larger = number[RADIUS] * (SQUARED_GROWTH if pack.norm == SQUARED else GROWTH)
    number[RADIUS] = math.inf if number[RESIDUAL] < number[RADIUS] or larger >= 0.5 * number[BEST] else larger
    return True


@njit(**ONCE)
def next_pair(pack, person, s, tree, stop):
    """Split the open node with the least bound. Returns (GO, first half, second half); or AGAIN, with a larger radius;
    or why the search returns.
    """
    number, count = tree.number, tree.count
    if count[HEAP_SIZE] == 0 or tree.num[BOUND, tree.idx[HEAP, 0]] >= cutoff(pack, number):
        return AGAIN if begins_again(pack, number) else DONE, -1, -1
    if count[NODES] >= stop or s.I[HALT, 0] != 0:
        return SLICE, -1, -1
    if count[USED] + 1 >= tree.num.shape[1]:
        return MEMORY, -1, -1
    if len(tree.log) > 0 and count[LOGGED] + 2 * _largest_record(s, tree) > len(tree.log):
        return MEMORY, -1, -1
    first = pop(tree)
    second = tree.idx[FREE, count[USED]]
    count[USED] += 1
    split_node(pack, person, tree, first, second)
    tree.idx[PARENT, first] = tree.idx[NAME, first]
    tree.idx[PARENT, second] = tree.idx[NAME, first]
    return GO, first, second


@njit(**ONCE)
def next_nodes(pack, person, s, tree, stop, fresh):
    """The nodes to evaluate next: (GO, first half, second half), or (GO, root, -1) where a phase begins; or why the
    search returns.
    """
    code, first, second = AGAIN, -1, -1
    if not fresh:
        code, first, second = next_pair(pack, person, s, tree, stop)
    if code == AGAIN:
        begin_phase(pack, person, tree)
        code, first = GO, 0
    return code, first, second


@njit(**ONCE)
def begin_node(tree, node):
    """Count a node that is evaluated next, and name it by its number."""
    tree.count[NODES] += 1
    tree.idx[NAME, node] = tree.count[NODES]
    tree.number[INHERITED] = tree.num[BOUND, node]


@njit(**ONCE)
def _is_time(nodes):
    """Is this one of the two moments at which more points are looked for?"""
    return MORE_STARTS_AT <= nodes < MORE_STARTS_AT + 2 or MIXED_NODES < nodes <= MIXED_NODES + 2


@njit(**ONCE)
def walks_now(pack, person, r, tree, root):
    """Are points looked for before this node: before the first one, and once more, by walks, in a search that is not
    over soon? Returns a node that holds the whole space, or -1, and the first and the last start of the walks.
    """
    probing, none = r.G[0, SIZE, PROBING] != NEVER, tree.number[BEST] == math.inf
    nodes, capacity = tree.count[NODES], tree.num.shape[1]
    if root:
        looked = nodes == 0 and tree.count[PHASES] > 1
        if not looked and (none or (probing and nodes == 0)):
            starts = FIRST_STARTS if probing or len(pack.weights) >= LARGE_NETWORK else 0
            return np.int64(0), np.int64(0), np.int64(starts)
    elif (probing or none) and tree.count[USED] + 3 < capacity and _is_time(nodes):
        i = tree.idx[FREE, capacity - 2]
        _set_root(pack, person, tree, i)
        return np.int64(i), np.int64(1), np.int64(MORE_STARTS)
    return np.int64(-1), np.int64(0), np.int64(0)


@njit(**ONCE)
def _run(pack, person, s, r, tree, nodes, fresh):
    """Search until done, or for about `nodes` more nodes (0: only look for points). Returns DONE, SLICE or MEMORY."""
    stop = tree.count[NODES] + nodes
    fresh |= tree.count[NODES] == 0
    while True:
        code, first, second = next_nodes(pack, person, s, tree, stop, fresh)
        if code != GO:
            return code
        fresh = False
        whole, start, last = walks_now(pack, person, r, tree, second < 0)
        if whole >= 0:
            look_for_points(pack, person, s, r, open_node(tree, whole), tree, start, last)
        if nodes == 0:
            return SLICE
        tries = ROOT_TRIES if second < 0 else NODE_TRIES
        for turn in range(2):
            node = first if turn == 0 else second
            if node >= 0:
                begin_node(tree, node)
                bound, split, value = evaluate(pack, person, s, r, open_node(tree, node), tree, tries)
                settle(pack, s, tree, node, bound, split, value)


@njit(**INNER)
def _largest_record(s, tree):
    hidden = tree.side.shape[1]
    return 10 + hidden + (s.A.shape[0] + tree.count[MOST_STEPS] + 1) * (2 + hidden)


@njit(**ONCE)
def person_of(people, i):
    """Person i of many."""
    return PackedPerson(
        people.z[i],
        people.box[i],
        people.mask[i],
        people.cost[i],
        people.option[i],
        people.slack[i],
        people.need[i],
        people.start[i],
        people.most[i],
        people.lost[i],
    )


@njit(**ONCE)
def begin_person(tree, radius, known):
    """Nothing is known of a person but a point and, behind it, what it costs."""
    number, n = tree.number, len(tree.best)
    number[LOWER] = 0.0
    number[RADIUS] = radius
    number[BEST] = known[n]
    number[RESIDUAL] = math.inf
    for f in range(n):
        tree.best[f] = known[f]
    tree.count[NODES] = 0
    tree.count[PHASES] = 0
    tree.count[LOGGED] = 0


@njit(**ONCE)
def end_person(tree, i, lower, best, nodes):
    """What was found for person i."""
    n = len(tree.best)
    lower[i] = tree.number[LOWER]
    for f in range(n):
        best[i, f] = tree.best[f]
    best[i, n] = tree.number[BEST]
    nodes[i] = tree.count[NODES]


def _build_search_people(sources):
    @with_cache(**OUTER)
    # size: called from Python with arrays only, so that the cache holds one signature
    def search_people(pack, people, radius, first, last, slice_nodes, resume, s, r, tree, lower, best, nodes):
        """Search for people first..last-1; results into lower (cost), best (points, then cost) and nodes.

        What is in `best` before is a point to begin with that is favourable under any rounding; its cost is infinity
        for none.

        Returns (index, code): the first person whose slice was not enough (its state is in `tree`; call again with
        `resume`), or (last, DONE).
        """
        if sources == 0:
            return first, SLICE
        for i in range(first, last):
            person = person_of(people, i)
            fresh = not (resume and i == first)
            if fresh:
                begin_person(tree, radius[i], best[i])
            code = _run(pack, person, s, r, tree, slice_nodes, fresh)
            if code != DONE:
                return i, code
            end_person(tree, i, lower, best, nodes)
        return last, DONE

    return search_people


search_people = _build_search_people(SOURCES)


def _build_scan_table(sources):
    @with_cache(**OUTER)
    def scan_table(pack, people, table, unit, robust, factual, lower, best, nodes):
        """The nearest row of a table of all favourable points, for each person.

        `table` holds points (numbers in their own units, options by index); `robust` marks those that are favourable
        under any rounding and may be returned; the others only bound.
        """
        if sources == 0:
            return
        index, price, norm = pack.index, pack.price, pack.norm
        n = price.shape[1]
        for i in range(len(factual)):
            possible, nearest, where = math.inf, math.inf, -1
            for t in range(len(table)):
                total = 0.0
                for f in range(n):
                    v = table[t, f]
                    if index[KIND, f] == CHOICE:
                        c = index[START, f] + int(v)
                        if not people.mask[i, c]:
                            total = math.inf
                            break
                        own = people.cost[i, c]
                    else:
                        change = (v - factual[i, f]) / unit[f]
                        if change < people.box[i, LEAST, f] or change > people.box[i, MOST, f]:
                            total = math.inf
                            break
                        own = number_cost(norm, price, f, change)
                    total = max(total, own) if norm == MAXIMUM else total + own
                    if total >= nearest:
                        break
                possible = min(possible, total)
                if robust[t] and total < nearest:
                    nearest = total
                    where = t
            lower[i] = min(possible, nearest)
            best[i, n] = nearest
            nodes[i] = len(table)
            for f in range(n):
                if where >= 0:
                    best[i, f] = (
                        table[where, f] if index[KIND, f] == CHOICE else (table[where, f] - factual[i, f]) / unit[f]
                    )

    return scan_table


scan_table = _build_scan_table(SOURCES)
