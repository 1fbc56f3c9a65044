"""The tree of a search's records, walked from the root: each box is closed, or split where the search split it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.certifying.float_check.bounds import bound_hidden
from ifonly.certifying.float_check.closing import close
from ifonly.certifying.float_check.layout import (
    ACT,
    ALLOCATING,
    ANSWERS,
    CHOICE,
    CLOSED,
    COLUMN,
    EMPTY,
    FIRST,
    FLOAT_ROWS,
    HEAD,
    INT_ROWS,
    MOST_ROWS,
    MULTIPLIER,
    MULTIPLIER_ROWS,
    ONCE,
    OPEN,
    OUTER,
    PLANE,
    SCALE,
    SIZES,
    SOURCES,
    SPLIT,
    START,
    STEP,
    Work,
    Y,
)
from ifonly.certifying.float_check.planes import most_of
from ifonly.certifying.float_check.region import clip
from ifonly.compiling import with_cache


@njit(**ONCE)
def split_box(q, w, d, which, value, second):
    """Box d + 1: one side of a split of box d."""
    for g in range(w.low.shape[1]):
        w.low[d + 1, g], w.high[d + 1, g] = w.low[d, g], w.high[d, g]
    for c in range(w.mask.shape[1]):
        w.mask[d + 1, c] = w.mask[d, c]
    for h in range(w.side.shape[1]):
        w.side[d + 1, h] = w.side[d, h]
    if which < 0:
        w.side[d + 1, -2 - which] = 2 if second else 1
    elif q.index[CHOICE, which]:
        for c in range(q.index[START, which], q.index[START, which + 1]):
            if (c - q.index[START, which] == np.int64(value)) == second:
                w.mask[d + 1, c] = 0
    else:
        step = q.price[STEP, which]
        at = value * step if step > 0.0 else value
        if second:
            w.low[d + 1, which] = max(w.low[d, which], at + step)
        else:
            w.high[d + 1, which] = min(w.high[d, which], at)


@njit(**ALLOCATING)
def index_nodes(log, hidden, phase):
    """The nodes of one phase: (record, first child or -1, parent, second side?, depth) of each; a node's second child
    follows its first. Nothing when a record is missing.
    """
    at, count, base = 0, 0, 0.0
    while at < len(log):
        if log[at + 2] == phase:
            if count == 0:
                base = log[at]
            count += 1
        at += HEAD + hidden + np.int64(log[at + HEAD - 1]) * (2 + hidden)
    nodes = np.zeros((5, count), dtype=np.int64)
    nodes[1] = -1
    at, k = 0, 0
    while at < len(log):
        if log[at + 2] == phase:
            if log[at] - base != k or (log[at + 1] < 0.0) != (k == 0):
                return nodes[:, :0]  # a record is missing
            nodes[0, k] = at
            if k > 0:
                up = np.int64(log[at + 1] - base)
                nodes[2, k], nodes[4, k] = up, nodes[4, up] + 1
                if nodes[1, up] < 0:
                    nodes[1, up] = k
                else:
                    nodes[3, k] = 1
            k += 1
        at += HEAD + hidden + np.int64(log[at + HEAD - 1]) * (2 + hidden)
    for k in range(count):
        child = nodes[1, k]
        if child >= 0 and (child + 1 >= count or nodes[2, child + 1] != k or nodes[3, child + 1] != 1):
            nodes[1, k] = -1  # the search stopped here
    return nodes


@njit(**ALLOCATING)
def new_work(q, columns, hidden, features, deep):
    widest = max(len(q.slack), columns, features + 1, q.index[SIZES].max())
    return Work(
        np.zeros((FLOAT_ROWS, widest)), np.zeros((INT_ROWS, widest + 1), dtype=np.int64),
        np.zeros((len(q.z), columns)), np.zeros((2, hidden)), np.zeros((deep, features)),
        np.zeros((deep, features)), np.zeros((deep, columns), dtype=np.uint8),
        np.zeros((deep, hidden), dtype=np.uint8), np.zeros((MOST_ROWS + 1, columns)),
        np.zeros((MULTIPLIER_ROWS, MOST_ROWS + 1)), np.zeros((3, MOST_ROWS + 1), dtype=np.int64),
        np.zeros((MOST_ROWS + 1, hidden), dtype=np.uint8), np.zeros(1, dtype=np.uint8),
        np.zeros((ANSWERS + 1, MOST_ROWS + 1)), np.zeros((2, ANSWERS + MOST_ROWS + 1), dtype=np.int64),
        np.zeros((ANSWERS, columns)),
    )  # fmt: skip


@njit(**ONCE)
def write_rows(w, rows, ends, about, multiplier, bits):
    """The rows that closed a node, to the end of the list; returns its new end."""
    for r in range(rows):
        if w.R[MULTIPLIER, r] > 0.0:
            multiplier[ends] = w.R[MULTIPLIER, r] * w.R[SCALE, r]
            for k in range(3):
                about[ends, k] = w.about[k, r]
            for h in range(bits.shape[1]):
                bits[ends, h] = w.bits[r, h]
            ends += 1
    return ends


@njit(**ONCE)
def keep_solution(w, items, solution):
    """The solution of the present relaxation, by column of the question; returns 1."""
    solution[:] = 0.0
    for t in range(w.I[FIRST, items]):
        solution[w.I[COLUMN, t]] = w.F[Y, t]
    return 1


def _build_walk(sources):
    @with_cache(**OUTER)
    def walk(q, log, phase, low, high, mask, side, known, halt):
        """Close the tree that the records of a phase describe, from the given box down.

        A recorded split is dropped where its node can be closed as it is. `known`: bounds of the ReLUs that hold in
        the box, which become those of the first box. Returns the tree in preorder: (what became of a node, feature or
        -2 - h that it was split at, end of its rows, its record, is it doubtful), the values of the splits, and the
        rows: (layer, neuron, sign), multipliers, slopes; and, of the last node that no rows close, the solution of
        its relaxation by column, the pre-activations of the ReLUs there, and their bounds (nothing: there is none).
        Where another thread sets `halt`, only part of it.
        """
        hidden, columns, features = len(side) + 0 * sources, len(mask), len(low)
        tree = index_nodes(log, hidden, phase)
        total = tree.shape[1]
        deep = tree[4].max() + 1 if total > 0 else 1
        w = new_work(q, columns, hidden, features, deep)
        w.low[0], w.high[0], w.mask[0], w.side[0] = low, high, mask, side
        capacity = 2 * total + MOST_ROWS
        nodes, values = np.zeros((total, 5), dtype=np.int64), np.zeros(total)
        about, multiplier = np.zeros((capacity, 3), dtype=np.int64), np.zeros(capacity)
        bits = np.zeros((capacity, hidden), dtype=np.uint8)
        stack = np.zeros(total + 1, dtype=np.int64)
        fresh = hidden > 0 and known[0, 0] == -math.inf
        waiting, count, ends, relaxed = 1 if total > 0 else 0, 0, 0, 0
        solution = np.zeros(columns)
        while waiting > 0 and halt[0] == 0:
            waiting -= 1
            node = stack[waiting]
            at, child, d = tree[0, node], tree[1, node], tree[4, node]
            if d > 0:
                up = tree[0, tree[2, node]]
                split_box(q, w, d - 1, np.int64(log[up + 3]), log[up + 4], tree[3, node] == 1)
            became, rows = OPEN, 0
            if d == 0 or child < 0 or log[at + 5] >= q.radius:
                items, budget = clip(q, w, d)
                became = EMPTY if items < 0 else bound_hidden(q, w, d, items, budget, known)
                if became == CLOSED:
                    if d == 0 and fresh:
                        known[:] = w.bounds
                    rows = close(q, w, d, items, budget, log, at)
                    became = CLOSED if 0 < rows <= capacity - ends else OPEN
                    if rows == 0:
                        relaxed = keep_solution(w, items, solution)
                elif became == OPEN and d == 0 and fresh:
                    child = -1  # without bounds of the whole, nothing below is worth a look
            if became == CLOSED:
                ends = write_rows(w, rows, ends, about, multiplier, bits)
            elif became == OPEN and child >= 0:
                became = SPLIT
                nodes[count, 1], values[count] = np.int64(log[at + 3]), log[at + 4]
                for k in range(2):
                    stack[waiting] = child + 1 - k
                    waiting += 1
            nodes[count, 0], nodes[count, 2], nodes[count, 3], nodes[count, 4] = became, ends, at, w.doubtful[0]
            count += 1
        seen = solution[: relaxed * columns], w.F[ACT, : relaxed * hidden].copy(), w.bounds
        return nodes[:count], values[:count], about[:ends], multiplier[:ends], bits[:ends], seen

    return walk


walk = _build_walk(SOURCES)


def _build_answer(sources):
    @with_cache(**OUTER)
    def answer(norm, F, I, items, budget, a):
        """The y in box and ball that makes a.y largest; `items` and their entries in F and I as `clip` leaves them."""
        width = I[FIRST, items] + 0 * sources
        for t in range(width):
            F[PLANE, t] = a[t]
        most_of(norm, F, I, items, budget, 0.0, True)
        return F[Y, :width].copy()

    return answer


answer = _build_answer(SOURCES)
