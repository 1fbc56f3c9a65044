"""The first points: a walk up the gradient and back towards the person, then from one linear piece to the next.

It proves nothing and need not find anything. Before the first box is bounded, `find_point` gives the search a ball to
begin with, and an answer where time ends early.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import (
    ROBUSTLY_HOLDS,
    newton,
    round_solution,
    rules_hold,
    set_pattern,
    try_point,
)
from ifonly.solvers.search.kernels.chords import read_columns, solve_relaxation
from ifonly.solvers.search.kernels.layout import (
    ACT,
    ACTIVE,
    BASE,
    BEST,
    CHOICE,
    DOWN,
    FEATURE,
    FIRST,
    FREE,
    HALT,
    INACTIVE,
    INNER,
    ITEM_DOWN,
    ITEM_JUMP,
    ITEM_KIND,
    ITEM_RATE,
    LEAST,
    MOST,
    NEURON,
    NODE_LEVEL,
    ONCE,
    ORDER,
    PATTERN,
    PLANE,
    PLANE_BEST,
    POSITION,
    PRICE,
    RAISED_LEVEL,
    RULE,
    SQUARED,
    TAKEN,
    UP,
    WHERE,
    OpenNode,
    X,
    Y,
)
from ifonly.solvers.search.kernels.long_step import ABSENT
from ifonly.solvers.search.kernels.network import forward, neuron_plane
from ifonly.solvers.search.kernels.relaxation import begin_relaxation
from ifonly.solvers.search.kernels.simplex import OPTIMAL

LARGE_NETWORK = 20_000
"""Weights from which on one node takes so long that a walk comes before the first."""
FIRST_STARTS = 8
"""Of the first walks of a large network in which no ReLUs are probed: one, and more until there is some point."""
WALK_STEPS = 60
STEP_SIZES = (0.3, 0.1, 1.0, 0.03)
"""How far a step of the walk goes, in average ranges; one for each start in turn."""
HALVINGS = 16
WALK_TRIES = 4
REGIONS = 12
"""Linear pieces that are tried from each point."""


@njit(**ONCE)
def find_point(pack, person, s, r, node, cut, tree, pieces, first, last):
    """Walk from starts `first` to `last`. With `pieces`, go on from each point found to the best one of its linear
    piece, and to those beside it; without, some point is enough.
    """
    if first == 0 and pieces and tree.number[BEST] < math.inf:
        _through_pieces(pack, person, s, r, node, cut, tree)
    for k in range(first, last):
        enough = not pieces or (first == 0 and k > 0)
        if s.I[HALT, 0] != 0 or (enough and tree.number[BEST] < math.inf):
            return
        before = tree.number[BEST]
        if _climb(pack, person, s, node, cut, tree, k):
            _pull_back(pack, person, s, cut, tree)
            newton(pack, person, tree, node, cut, np.int64(WALK_TRIES), s)
            if pieces and tree.number[BEST] < before:
                _through_pieces(pack, person, s, r, node, cut, tree)


@njit(**INNER)
def start_walk(s, cut, k):
    """The base, or for k > 0 a row that changes about half of the numbers, into Y."""
    F, seed = s.F, np.int64(k)
    for j in range(cut.items):
        for c in range(s.I[FIRST, j], s.I[FIRST, j + 1]):
            F[Y, c] = 0.0
            if k > 0 and s.I[ITEM_KIND, j] != CHOICE:
                seed = (seed * 1103515245 + 12345) % 2147483648  # products are below 2 ** 62
                draw = seed / 1073741824.0 - 1.0
                if abs(draw) > 0.5:
                    share = 2.0 * (abs(draw) - 0.5)
                    F[Y, c] = 0.5 * share * share * (F[UP, j] if draw > 0.0 else -F[DOWN, j])


@njit(**INNER)
def price_of(j, F):
    """About what item j costs from one end of its range to the other."""
    return F[ITEM_JUMP, j] + max(F[ITEM_RATE, j] * F[UP, j], F[ITEM_DOWN, j] * F[DOWN, j])


@njit(**INNER)
def average_price(s, cut):
    """What the items' numbers cost from one end of their ranges to the other, on average over all items."""
    mean = 0.0
    for j in range(cut.items):
        if s.I[ITEM_KIND, j] != CHOICE:
            mean += price_of(j, s.F)
    return mean / max(cut.items, 1)


@njit(**ONCE)
def _climb(pack, person, s, node, cut, tree, k):
    """Step up the gradient of the condition that is met worst, until all are met. The point is in X and Y."""
    F, one, budget = s.F, np.int64(1), STEP_SIZES[k % 4] * average_price(s, cut)
    start_walk(s, cut, k)
    for step in range(WALK_STEPS):
        round_solution(pack, cut.items, F, s.I)
        worst, short = try_point(pack, person, tree, F)
        if short >= 0.0:
            return True
        if s.I[HALT, 0] != 0:
            return False
        set_pattern(F)
        neuron_plane(pack, pack.layers - 1, worst, 1.0, node.zl, node.zu, F[PATTERN], one, cut.width, F, s.Wc)
        if step % 2 == 0:
            switch_choices(s, cut)
        step_up(s, cut, budget, -1.001 * short)
    return False


@njit(**INNER)
def switch_choices(s, cut):
    """Choices to their best options by the gradient in PLANE."""
    for j in range(cut.items):
        if s.I[ITEM_KIND, j] == CHOICE:
            best, most = np.int64(-1), 0.0
            for c in range(s.I[FIRST, j], s.I[FIRST, j + 1]):
                s.F[Y, c] = 0.0
                if s.F[PLANE, c] > most:
                    best, most = c, s.F[PLANE, c]
            if best >= 0:
                s.F[Y, best] = 1.0


@njit(**INNER)
def step_up(s, cut, budget, need):
    """Move numbers, the best gain per cost first, until the budget is spent or the need is met."""
    F, I = s.F, s.I
    for j in range(cut.items):
        I[TAKEN, j] = 1 if I[ITEM_KIND, j] == CHOICE else 0
    while budget > 0.0 and need > 0.0:
        best, most = np.int64(-1), 0.0
        for j in range(cut.items):
            if I[TAKEN, j] == 0:
                price = max(price_of(j, F), 1e-300)
                gain = abs(F[PLANE, I[FIRST, j]]) * (F[UP, j] + F[DOWN, j]) / price
                if gain > most:
                    best, most = np.int64(j), gain
        if best < 0:
            return
        I[TAKEN, best] = 1
        c = I[FIRST, best]
        v = F[PLANE, c]
        room = F[UP, best] - F[Y, c] if v > 0.0 else F[Y, c] + F[DOWN, best]
        each = price_of(best, F) / (F[UP, best] + F[DOWN, best])
        move = min(room, need / abs(v))
        if each > 0.0:
            move = min(move, budget / each)
        F[Y, c] += move if v > 0.0 else -move
        budget -= move * each
        need -= move * abs(v)


@njit(**ONCE)
def _pull_back(pack, person, s, cut, tree):
    """Halve the changes of numbers together while the conditions hold."""
    F, low, high = s.F, 0.0, 1.0
    for c in range(cut.width):
        F[PLANE_BEST, c] = F[Y, c]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        for j in range(cut.items):
            if s.I[ITEM_KIND, j] != CHOICE:
                c = s.I[FIRST, j]
                F[Y, c] = middle * F[PLANE_BEST, c]
        round_solution(pack, cut.items, F, s.I)
        _, short = try_point(pack, person, tree, F)
        if short >= 0.0 and rules_hold(pack, person, F) == ROBUSTLY_HOLDS:
            high = middle
        else:
            low = middle


@njit(**INNER)
def _through_pieces(pack, person, s, r, node, cut, tree):
    """From the best point to the best one of its linear piece; then across the ReLUs that bind there, all at once or
    one by one, while that is better.
    """
    spare = tree.idx[FREE, tree.num.shape[1] - 1]
    zl, zu, side = tree.z[spare, LEAST], tree.z[spare, MOST], tree.side[spare]
    piece = OpenNode(node.lo, node.hi, node.mask, zl, zu, side, node.counted)
    for g in range(len(tree.best)):
        s.F[X, g] = tree.best[g]
    forward(pack, person, s.F)
    for h in range(len(side)):
        zl[h], zu[h], side[h] = node.zl[h], node.zu[h], node.side[h]
        if side[h] != RULE and zl[h] < 0.0 < zu[h]:
            side[h] = ACTIVE if s.F[ACT, h] > 0.0 else INACTIVE
    tight, found = r.G[RAISED_LEVEL, ORDER], _best_of_piece(pack, person, s, r, piece, cut, tree)
    binding, turn = np.int64(0), 0
    for _ in range(REGIONS):
        if found > 0:  # a better piece: its ReLUs that bind are next
            binding, turn = found, -1
            for k in range(binding):
                tight[k] = r.G[NODE_LEVEL, ORDER, k]
        elif turn >= binding:
            return
        before = tree.number[BEST]
        _flip(side, tight, turn, binding)
        found = _best_of_piece(pack, person, s, r, piece, cut, tree)
        if tree.number[BEST] >= before * (1.0 - 1e-9) or found <= 0:
            found = np.int64(0)
            _flip(side, tight, turn, binding)
            turn += 1


@njit(**INNER)
def _flip(side, tight, turn, binding):
    """Put the ReLUs that bind on their other sides: all of them (turn -1), or one."""
    for k in range(binding):
        if turn < 0 or k == turn:
            side[tight[k]] = INACTIVE if side[tight[k]] == ACTIVE else ACTIVE


@njit(**INNER)
def _best_of_piece(pack, person, s, r, piece, cut, tree):
    """Try the best point of a linear piece. Returns how many ReLUs bind there; they are in ORDER."""
    F, limit = s.F, tree.number[BEST]
    spread = 0.0
    if pack.norm == SQUARED:
        spread = math.sqrt(max(limit - cut.base_cost, 0.0) / max(cut.items, 1))
        for j in range(cut.items):
            if s.I[ITEM_KIND, j] != CHOICE:
                F[Y, s.I[FIRST, j]] = tree.best[s.I[FEATURE, j]] - F[BASE, s.I[FEATURE, j]]
    p = begin_relaxation(pack, person, s, r, piece, cut, limit, spread, np.bool_(False))
    if p.unit == 0.0:
        return np.int64(0)
    status, _ = solve_relaxation(pack, s, r, NODE_LEVEL, cut, p, 1.0, 0.0)
    if status != OPTIMAL:
        return np.int64(0)
    read_columns(s, r, cut, p)
    round_solution(pack, cut.items, F, s.I)
    try_point(pack, person, tree, F)
    G, count = r.G[NODE_LEVEL], 0
    for i in range(p.neurons):
        v = p.width + 1 + i + (0 if piece.side[G[NEURON, i]] == ACTIVE else p.neurons)
        k = G[WHERE, v]
        if k != ABSENT and k < 0 and G[POSITION, -1 - k] == 0 and abs(r.F[NODE_LEVEL, PRICE, -1 - k]) > 1e-12:
            G[ORDER, count] = G[NEURON, i]
            count += 1
    return np.int64(count)
