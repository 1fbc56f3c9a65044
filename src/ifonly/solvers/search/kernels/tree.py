"""The tree of a search: the heap of its open nodes, the halves of a node, and what becomes of one that was bounded."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.cutoff import cutoff
from ifonly.solvers.search.kernels.layout import (
    ACTIVE,
    ALPHA,
    BIAS_AT,
    BOUND,
    CHOICE,
    FREE,
    GRID_OFFSET,
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
    MOST,
    MOST_STEPS,
    MULTIPLIER,
    NAME,
    NODES,
    ONCE,
    PARENT,
    PHASES,
    RESIDUAL,
    ROW_KIND,
    ROWS,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SPLIT,
    SPLIT_VALUE,
    START,
    STEPS,
    UNSPLIT_SIDE,
    USED,
    OpenNode,
)
from ifonly.solvers.search.kernels.node import next_value
from ifonly.solvers.search.kernels.splits import UNSPLIT
from ifonly.solvers.search.kernels.support import keep


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
def log_node(s, tree, node, bound, split, value, limit):
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
def set_root(pack, person, tree, i):
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
    set_root(pack, person, tree, np.int64(0))
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


@njit(**ONCE)
def begin_node(tree, node):
    """Count a node that is evaluated next, and name it by its number."""
    tree.count[NODES] += 1
    tree.idx[NAME, node] = tree.count[NODES]
    tree.number[INHERITED] = tree.num[BOUND, node]


@njit(**INNER)
def settle(pack, s, tree, node, bound, split, value):
    """An evaluated node goes on the heap, or its place in the pool is free again; with records, it is logged."""
    number, count = tree.number, tree.count
    bound, limit = max(bound, tree.num[BOUND, node]), cutoff(pack, number)
    if len(tree.log) > 0:
        log_node(s, tree, node, bound, split, value, limit)
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
def largest_record(s, tree):
    hidden = tree.side.shape[1]
    return 10 + hidden + (s.A.shape[0] + tree.count[MOST_STEPS] + 1) * (2 + hidden)
