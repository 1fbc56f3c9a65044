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
from ifonly.solvers.search.kernels.evaluate import evaluate
from ifonly.solvers.search.kernels.first_points import improve_point, look_for_points, search_nearby
from ifonly.solvers.search.kernels.layout import (
    BEST,
    BOUND,
    CHOICE,
    DONE,
    FREE,
    HALT,
    HEAP,
    HEAP_SIZE,
    INNER,
    KIND,
    LEAST,
    LOGGED,
    LOWER,
    MAXIMUM,
    MEMORY,
    MOST,
    NAME,
    NODES,
    ONCE,
    OUTER,
    PARENT,
    PHASES,
    RADIUS,
    RESIDUAL,
    SLICE,
    SOURCES,
    SQUARED,
    START,
    USED,
    PackedPerson,
)
from ifonly.solvers.search.kernels.node import number_cost
from ifonly.solvers.search.kernels.probing import is_probed
from ifonly.solvers.search.kernels.tree import (
    begin_node,
    begin_phase,
    largest_record,
    open_node,
    pop,
    set_root,
    settle,
    split_node,
)
from ifonly.solvers.search.kernels.walk import FIRST_STARTS, LARGE_NETWORK

SQUARED_GROWTH, GROWTH = 16.0, 4.0
ROOT_TRIES, NODE_TRIES = 8, 2
MORE_STARTS, MORE_STARTS_AT = 24, 8
"""From how many starts walks look for points: until there is one, and where ReLUs are probed once more after so many
nodes."""
NEARBY_AFTER = 8
"""Nodes after which better points are improved by a local search, where no ReLUs are probed: fewer are searched in less
time than it takes."""
GO, AGAIN = 3, 4
"""What a run does next, where it does not return (DONE, SLICE, MEMORY)."""


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
    if len(tree.log) > 0 and count[LOGGED] + 2 * largest_record(s, tree) > len(tree.log):
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
def walks_now(pack, person, r, tree, root):
    """Are points looked for before this node: before the first one, and once more, by walks, in a search that is not
    over soon? Returns a node that holds the whole space, or -1, and the first and the last start of the walks.
    """
    probing, none = is_probed(pack, person, r), tree.number[BEST] == math.inf
    nodes, capacity = tree.count[NODES], tree.num.shape[1]
    if root:
        looked = nodes == 0 and tree.count[PHASES] > 1
        if not looked and (none or (probing and nodes == 0)):
            starts = MORE_STARTS if probing else (FIRST_STARTS if len(pack.weights) >= LARGE_NETWORK else 0)
            return np.int64(0), np.int64(0), np.int64(starts)
    elif (probing or none) and tree.count[USED] + 3 < capacity and MORE_STARTS_AT <= nodes < MORE_STARTS_AT + 2:
        i = tree.idx[FREE, capacity - 2]
        set_root(pack, person, tree, i)
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
        tries, best = ROOT_TRIES if second < 0 else NODE_TRIES, tree.number[BEST]
        for turn in range(2):
            node = first if turn == 0 else second
            if node >= 0:
                begin_node(tree, node)
                bound, split, value = evaluate(pack, person, s, r, open_node(tree, node), tree, tries)
                settle(pack, s, tree, node, bound, split, value)
        spare = tree.idx[FREE, tree.num.shape[1] - 2]
        if tree.number[BEST] < best and tree.count[USED] + 3 < tree.num.shape[1]:
            set_root(pack, person, tree, spare)
            if is_probed(pack, person, r):
                improve_point(pack, person, s, r, open_node(tree, spare), tree)
            elif tree.count[NODES] > NEARBY_AFTER:
                search_nearby(pack, person, s, open_node(tree, spare), tree)


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
