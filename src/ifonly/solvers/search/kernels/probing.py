"""Probing: both sides of each ReLU whose relaxation has a gap are bounded under "favourable, and below the cutoff".

A side that costs too much is ruled out; on the other, and where both are left, the neuron's bounds become what the
cutoff allows. All is written into the node at once, so that its children inherit it. What a probe says of both sides
is strong branching, too: the ReLU is split where the product of the increases is largest.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import newton, round_solution, try_point
from ifonly.solvers.search.kernels.chords import (
    clean_relaxation,
    has_triangle,
    read_columns,
    solve_relaxation,
    triangle_gap,
)
from ifonly.solvers.search.kernels.cutoff import cutoff, less_gap
from ifonly.solvers.search.kernels.layout import (
    ACTIVE,
    ALWAYS,
    BOUNDED,
    BREAK,
    BREAKS,
    BY_RULE,
    CHOICE,
    CONDITIONS,
    GAPS,
    HALT,
    HEAD,
    INACTIVE,
    INNER,
    INTEGER,
    KIND,
    LEAST,
    LOGGED,
    MOST,
    MOST_STEPS,
    NEURON,
    NODE_LEVEL,
    OMEGA,
    ONCE,
    ORDER,
    PI,
    PLANE,
    PLANE_BEST,
    PROBED,
    PROBING,
    RAISED_LEVEL,
    RESIDUAL,
    SCALE,
    SIDE_LEVEL,
    SIZE,
    SIZES,
    SQUARED,
    STEPS,
    TAKE,
    TAKE_BEST,
    Cut,
    X,
)
from ifonly.solvers.search.kernels.long_step import copy_program, move_bound
from ifonly.solvers.search.kernels.multipliers import bound_relaxation, bound_side
from ifonly.solvers.search.kernels.relaxation import begin_relaxation, centre_columns
from ifonly.solvers.search.kernels.simplex import OPTIMAL
from ifonly.solvers.search.kernels.splits import MANY_NUMBERS, UNSPLIT, WIDE_STEPS
from ifonly.solvers.search.kernels.support import allowed_changes
from ifonly.solvers.search.kernels.vertices import both_ways, bound_by_vertices, has_vertices, one_way

PROBE_ROUNDS = 2
GAP = 1e-9
"""In units of a neuron's bounds: a ReLU with less has no gap in the relaxation."""
GAP_LEFT = 1e-8
SHRINKS = 0.999
"""A bound that falls to less than this share of itself changes the program at once."""
GAINS = 0.1
"""Bounds that shrink by this share on average are worth another round."""
NEAR_CUT = 0.02
LEAST_RISE = 1e-6
FLAT = 0.01
"""Children that rise by less than this share of the cutoff, on average, are compared with more asked for."""
RAISED_LOW, RAISED_HIGH, RAISED_TRIES = 0.5, 1.5, 12


@njit(**INNER)
def is_probed(pack, person, r):
    """Are neurons probed in the search for this person? By the rule, where many numbers are free."""
    if r.G[0, SIZE, PROBING] != BY_RULE:
        return r.G[0, SIZE, PROBING] == ALWAYS
    wide = 0
    for g in range(pack.price.shape[1]):
        if pack.index[KIND, g] != CHOICE:
            least = WIDE_STEPS if pack.index[KIND, g] == INTEGER else 0.0
            wide += person.box[MOST, g] - person.box[LEAST, g] > least
    return wide > MANY_NUMBERS


@njit(**ONCE)
def probe_relus(pack, person, s, r, tree, node, cut, bound, hopeless):
    """Bound a node by its relaxation, probe its ReLUs, and choose one to split.

    Returns (bound, split, whether the node is settled: closed, or split on a ReLU). It is not where the relaxation has
    no gap: what is open then is for other splits.
    """
    limit = cutoff(pack, tree.number)
    cut = Cut(cut.items, cut.width, cut.base_cost, max(min(cut.ceiling, limit), cut.base_cost))
    whole = cut
    w, cut = one_way(pack, s, r, cut, limit)
    p, status, z = _first_relaxation(pack, person, s, w, r, node, cut, limit)
    if p.unit == 0.0:
        return bound, UNSPLIT, False
    pick, score = np.int64(-1), -1.0
    for attempt in range(PROBE_ROUNDS + 1):
        c, strict = bound_relaxation(pack, person, w, r, NODE_LEVEL, node, cut, p)
        log_multipliers(pack, s, tree, np.int64(BOUNDED))
        bound = max(bound, c)
        if bound >= limit:
            return bound, UNSPLIT, True
        if s.I[HALT, 0] != 0 or status != OPTIMAL:
            return bound, UNSPLIT, False
        if bound >= less_gap(pack, tree.number[RESIDUAL]) and (hopeless or strict >= limit):
            return bound, UNSPLIT, True
        if attempt == PROBE_ROUNDS:
            break
        clean_relaxation(r.T[0], r.F[0], r.G[0], p)
        _try_solution(pack, person, s, w, r, tree, node, whole, cut, p, attempt)
        if cutoff(pack, tree.number) < limit:
            limit = cutoff(pack, tree.number)
            if bound >= limit:
                return bound, UNSPLIT, True
            cut = Cut(cut.items, cut.width, cut.base_cost, max(min(cut.ceiling, limit), cut.base_cost))
        pick, score, gained, closed, status, z = _probe_all(pack, person, s, w, r, tree, node, cut, p, limit, z)
        if closed:
            return limit, UNSPLIT, True
        if status == OPTIMAL and pick == -2:
            return bound, UNSPLIT, False
        if status == OPTIMAL and pick >= 0 and gained < GAINS:
            break
    if pick < 0 or not has_triangle(pick, p, r.F[0], r.G[0]):
        pick = -1
        for i in range(p.neurons):
            if has_triangle(i, p, r.F[0], r.G[0]):
                pick = i
        if pick < 0:
            return bound, UNSPLIT, False
    most = (limit - cut.base_cost) / p.unit
    if score < (FLAT * most) ** 2:
        other = _flat_pick(pack, person, s, r, node, cut, p, most, z)
        pick = other if other >= 0 else pick
    return bound, -2 - r.G[0, NEURON, pick], True


@njit(**ONCE)
def _first_relaxation(pack, person, s, w, r, node, cut, limit):
    """The program of the node, solved; for squares around the best plane's solution, and again around its own."""
    centre_columns(s, cut, s.F[PLANE_BEST], s.F[TAKE_BEST])
    spread = 0.0
    if pack.norm == SQUARED and cut.items > 0:
        spread = math.sqrt(max(min(limit, cut.ceiling) - cut.base_cost, 0.0) / cut.items)
    vertices = has_vertices(pack, s, limit)
    p = begin_relaxation(pack, person, w, r, node, cut, limit, spread, vertices)
    status, z = np.int64(OPTIMAL), 0.0
    if p.unit == 0.0:
        return p, status, z
    if vertices:
        bound_by_vertices(pack, person, w, r, node, cut, limit)
    status, z = solve_relaxation(pack, s, r, NODE_LEVEL, cut, p, most_value(pack, cut, p, limit), z)
    if pack.norm == SQUARED and status == OPTIMAL:
        bound_relaxation(pack, person, s, r, NODE_LEVEL, node, cut, p)
        centre_columns(s, cut, s.F[PLANE], s.F[TAKE])
        p = begin_relaxation(pack, person, s, r, node, cut, limit, 0.25 * spread, np.bool_(False))
        status, z = solve_relaxation(pack, s, r, NODE_LEVEL, cut, p, most_value(pack, cut, p, limit), 0.0)
    return p, status, z


@njit(**INNER)
def most_value(pack, cut, p, limit):
    """Up to which value programs are solved: squares are only approximated. Without a cutoff, nothing costs 2 units."""
    if limit == math.inf:
        return 2.0
    most = (limit - cut.base_cost) / p.unit
    return 1.1 * most if pack.norm == SQUARED else most * (1.0 + 1e-9)


@njit(**ONCE)
# size: what it depends on: question, person, buffers, node twice, program
def _try_solution(pack, person, s, w, r, tree, node, whole, cut, p, attempt):
    """Try the program's solution as a point, and what the network's own piece makes of it."""
    read_columns(w, r, cut, p)
    if p.vertices:
        both_ways(w, s, cut, whole)
    round_solution(pack, whole.items, s.F, s.I)
    try_point(pack, person, tree, s.F)
    if attempt == 0 and allowed_changes(pack, person, s.F[X]):
        newton(pack, person, tree, node, whole, np.int64(2), s)


@njit(**ONCE)
# size: what a probe depends on, as `_probe_side`
def _probe_all(pack, person, s, w, r, tree, node, cut, p, limit, z):
    """Probe every ReLU with a gap, the largest first, and write what it says into node and program.

    Returns (ReLU to split, -1 where all were ruled out, -2 where none has a gap; its score; by how much bounds shrank
    on average; whether the node is closed; status and value of the program).
    """
    T, F, G = r.T[0], r.F[0], r.G[0]
    order, count, gained = r.G[0, ORDER], 0, 0.0
    pick, score, status = np.int64(-2), -1.0, np.int64(OPTIMAL)
    waiting = _by_gap(r, p)
    most = most_value(pack, cut, p, limit)
    for turn in range(waiting):
        i = order[turn]
        if s.I[HALT, 0] != 0:
            break
        if count > 0 and triangle_gap(i, p, F, G) <= GAP_LEFT:
            continue
        count += 1
        pick = max(pick, np.int64(-1))
        h, a, n = G[NEURON, i], p.width + 1 + i, p.width + 1 + p.neurons + i
        up, rise_up, high = _probe_side(pack, person, s, w, r, tree, node, cut, p, i, np.bool_(True), z, limit)
        down, rise_down, low = _probe_side(pack, person, s, w, r, tree, node, cut, p, i, np.bool_(False), z, limit)
        if up >= limit and down >= limit:
            return pick, score, 0.0, True, status, z
        gained += 1.0 - (high + low) / (node.zu[h] - node.zl[h])
        if up >= limit:
            high, gained = 0.0, gained + waiting
            node.side[h] = INACTIVE
        elif down >= limit:
            low, gained = 0.0, gained + waiting
            node.side[h] = ACTIVE
        else:
            this = max(rise_up - z, LEAST_RISE) * max(rise_down - z, LEAST_RISE)
            if this > score:
                score, pick = this, i
        shrinks = high < SHRINKS * node.zu[h] or low < SHRINKS * -node.zl[h]
        node.zu[h], node.zl[h] = min(node.zu[h], high), max(node.zl[h], -low)
        if shrinks:
            z = move_bound(T, F, G, a, True, max(node.zu[h], 0.0) / F[SCALE, a], z)
            z = move_bound(T, F, G, n, True, max(-node.zl[h], 0.0) / F[SCALE, a], z)
            status, z = solve_relaxation(pack, s, r, NODE_LEVEL, cut, p, most, z)
            if status != OPTIMAL:
                break
    return pick, score, gained / max(count, 1), False, status, z


@njit(**ONCE)
def _by_gap(r, p):
    """The ReLUs that have a gap, the largest first; returns their number."""
    F, G, order, gaps, count = r.F[0], r.G[0], r.G[0, ORDER], r.F[0, GAPS], 0
    for i in range(p.neurons):
        gap = triangle_gap(i, p, F, G)
        if gap > GAP:
            k = count
            while k > 0 and gaps[k - 1] < gap:
                gaps[k], order[k] = gaps[k - 1], order[k - 1]
                k -= 1
            gaps[k], order[k] = gap, i
            count += 1
    return count


@njit(**INNER)
# size: what a probe depends on: question, person, buffers, node, program, ReLU and side
def _probe_side(pack, person, s, w, r, tree, node, cut, p, i, active, z, limit):
    """One side of ReLU i: (its proven bound, the value of its program, how far |z| can be on it).

    The second program asks for as much of |z| as the first one's multipliers leave: one step of Newton's method.
    """
    T, F, G = r.T[SIDE_LEVEL], r.F[SIDE_LEVEL], r.G[SIDE_LEVEL]
    copy_program(r.T[0], r.F[0], r.G[0], p.variables, breaks_of(pack), T, F, G)
    a = p.width + 1 + i
    other, var = (a + p.neurons, a) if active else (a, a + p.neurons)
    most, scale = most_value(pack, cut, p, limit), r.F[0, SCALE, a]
    z = move_bound(T, F, G, other, True, 0.0, z)
    status, z = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, most, z)
    before = node.zu[r.G[0, NEURON, i]] if active else -node.zl[r.G[0, NEURON, i]]
    bound, far, known = bound_side(pack, person, w, r, SIDE_LEVEL, node, cut, p, i, active)
    if bound >= limit or far <= 0.0:
        kept = _keep_step(pack, s, r, tree, i, active)
        return (math.inf, z, 0.0) if kept else (-1.0, z, before)
    if far < before and (far >= SHRINKS * before or not _keep_step(pack, s, r, tree, i, active)):
        far = before
    end = F[BREAK + 1, var] * scale
    ask = far if known else 0.5 * end
    if status != OPTIMAL or z >= (1.0 - NEAR_CUT) * most or most == math.inf or ask >= 0.999 * end:
        return bound, z, far
    rises = z
    z = move_bound(T, F, G, var, False, ask / scale, z)
    status, z = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, most, z)
    _, farther, _ = bound_side(pack, person, w, r, SIDE_LEVEL, node, cut, p, i, active)
    if farther < SHRINKS * far and _keep_step(pack, s, r, tree, i, active):
        far = farther
    return bound, rises, max(far, 0.0)


@njit(**ONCE)
def _keep_step(pack, s, r, tree, i, active):
    """Log what one side of ReLU i was bounded by. May its bound be used?"""
    return log_multipliers(pack, s, tree, PROBED - 2 * r.G[0, NEURON, i] - (0 if active else 1))


@njit(**ONCE)
def log_multipliers(pack, s, tree, about):
    """With records: write the multipliers behind those of the node that are there already. False: there is no room."""
    if len(tree.log) == 0:
        return True
    hidden, outputs = tree.side.shape[1], pack.index[SIZES, pack.layers]
    rows = 1 if outputs == 1 else 2
    if tree.count[STEPS] + rows > tree.count[MOST_STEPS]:
        return False
    at = tree.count[LOGGED] + HEAD + hidden + tree.count[STEPS] * (2 + hidden)
    if at + (rows + s.A.shape[0] + 1) * (2 + hidden) > len(tree.log):
        return False
    if rows == 2:
        tree.log[at] = CONDITIONS
        for k in range(outputs):
            tree.log[at + 2 + k] = s.F[PI, k]
        at += 2 + hidden
    tree.log[at] = about
    tree.log[at + 1] = s.F[PI, 0]
    for h in range(hidden):
        tree.log[at + 2 + h] = s.F[OMEGA, h]
    tree.count[STEPS] += rows
    return True


@njit(**INNER)
def breaks_of(pack):
    return BREAKS if pack.norm == SQUARED else 3


@njit(**ONCE)
def _flat_pick(pack, person, s, r, node, cut, p, most, z):
    """The ReLU to split where the bound is flat: more is asked of the conditions, until the program costs about as much
    as the cutoff. -1 where that does not help."""
    if most == math.inf:
        return np.int64(-1)
    T, F, G = r.T[RAISED_LEVEL], r.F[RAISED_LEVEL], r.G[RAISED_LEVEL]
    breaks, raised, step, asked, value = breaks_of(pack), np.int64(0), 0.05, 0.0, z
    outputs = pack.index[SIZES, pack.layers]
    copy_program(r.T[0], r.F[0], r.G[0], p.variables, breaks, T, F, G)
    for _ in range(RAISED_TRIES):
        t, f, g = r.T[SIDE_LEVEL], r.F[SIDE_LEVEL], r.G[SIDE_LEVEL]
        copy_program(T, F, G, p.variables, breaks, t, f, g)
        now = value
        for k in range(outputs):
            now = move_bound(t, f, g, p.rows_at + k, False, asked + step, now)
        status, now = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, RAISED_HIGH * most, now)
        if status != OPTIMAL:
            step *= 0.5
            continue
        copy_program(t, f, g, p.variables, breaks, T, F, G)
        value, asked, raised = now, asked + step, raised + 1
        if value >= RAISED_LOW * most:
            break
        step *= 2.0
    if value < z + 0.05 * most:
        return np.int64(-1)
    return _best_raised(pack, s, r, cut, p, most, value)


@njit(**ONCE)
def _best_raised(pack, s, r, cut, p, most, value):
    """The ReLU with the largest product of increases in the program that asks for more."""
    T, F, G = r.T[RAISED_LEVEL], r.F[RAISED_LEVEL], r.G[RAISED_LEVEL]
    t, f, g = r.T[SIDE_LEVEL], r.F[SIDE_LEVEL], r.G[SIDE_LEVEL]
    pick, best = np.int64(-1), -1.0
    for i in range(p.neurons):
        if triangle_gap(i, p, F, G) <= GAP_LEFT or s.I[HALT, 0] != 0:
            continue
        product = 1.0
        for side in range(2):
            copy_program(T, F, G, p.variables, breaks_of(pack), t, f, g)
            now = move_bound(t, f, g, p.width + 1 + i + side * p.neurons, True, 0.0, value)
            _, now = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, 3.0 * most, now)
            product *= max(min(now, 3.0 * most) - value, LEAST_RISE * most)
        if product > best:
            best, pick = product, np.int64(i)
    return pick
