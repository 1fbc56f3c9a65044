"""Probing of neurons with smooth activations: what is left of each under "favourable, and below the cutoff".

For each neuron whose value in the relaxation is not that of its pre-activation z, both parts of [l, u] are bounded, on
either side of the solution. A part that costs too much is taken out; the other one ends where the cutoff allows. What
the probes say is strong branching, too: the neuron is split where the product of the increases is largest. ReLUs are
probed in the same way in `search.kernels.probing`, at 0.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import round_solution
from ifonly.solvers.search.kernels.chords import read_columns
from ifonly.solvers.search.kernels.cutoff import cutoff, less_gap
from ifonly.solvers.search.kernels.layout import (
    FIRST,
    GAPS,
    HALT,
    INNER,
    INTEGER,
    ITEM_GRID_OFFSET,
    ITEM_KIND,
    NODE_LEVEL,
    NU,
    ONCE,
    ORDER,
    PLANE,
    PLANE_BEST,
    RAISED_LEVEL,
    REAL,
    RESIDUAL,
    SCALE,
    SIDE_LEVEL,
    SIZES,
    SQUARED,
    TAKE,
    TAKE_BEST,
    Cut,
    X,
    Y,
)
from ifonly.solvers.search.kernels.long_step import copy_program, move_bound, value_of
from ifonly.solvers.search.kernels.probing import (
    FLAT,
    GAINS,
    LEAST_RISE,
    NEAR_CUT,
    PROBE_ROUNDS,
    RAISED_HIGH,
    RAISED_LOW,
    RAISED_TRIES,
    SHRINKS,
    breaks_of,
    most_value,
)
from ifonly.solvers.search.kernels.relaxation import centre_columns
from ifonly.solvers.search.kernels.simplex import OPTIMAL
from ifonly.solvers.search.kernels.splits import UNSPLIT
from ifonly.solvers.search.kernels.support import allowed_changes
from ifonly.solvers.search.smooth.kernels.multipliers import bound_part, bound_relaxation, multiplier_plane
from ifonly.solvers.search.smooth.kernels.points import newton, newton_together, try_point
from ifonly.solvers.search.smooth.kernels.relaxation import (
    argument_at,
    begin_relaxation,
    clean_relaxation,
    gap_of,
    solve_relaxation,
)

MATTERING = 0.01
"""Neurons are probed whose gap counts for at least this share of the largest one's."""
ADDS_NOTHING = 0.01
"""What a gap counts that adds nothing to the bound, beside one that does."""
MISSED_SHARE = 0.1
"""Of what is left up to the cutoff: gaps that add up to less do not keep a node open whose solution is divided."""
WHOLE = 1e-6
TOGETHER_TRIES = 6
EDGE = 0.1
"""Where a neuron is split, as a share of its interval: not nearer to an end."""


@njit(**ONCE)
def probe_neurons(pack, person, s, r, tree, node, cut, bound):
    """Bound a node by its relaxation, probe its neurons, and choose one to split.

    Returns (bound, split, where, whether the node is settled: closed, or split on a neuron). It is not where the
    relaxation has no gap: what is open then is for other splits.
    """
    limit = cutoff(pack, tree.number)
    cut = _below(cut, limit)
    p, status, z = _first_relaxation(pack, person, s, r, node, cut, limit)
    pick, where, score, gained = np.int64(-1), 0.0, -1.0, 1.0
    for attempt in range(PROBE_ROUNDS + 1):
        c, strict = bound_relaxation(pack, person, s, r, NODE_LEVEL, node, cut, p)
        bound = max(bound, c)
        if bound >= limit:
            return bound, UNSPLIT, 0.0, True
        if s.I[HALT, 0] != 0 or status != OPTIMAL:
            return bound, UNSPLIT, 0.0, False
        if strict >= limit and bound >= less_gap(pack, tree.number[RESIDUAL]):
            return bound, UNSPLIT, 0.0, True
        room = max(most_value(pack, cut, p, limit) - z, 0.0)
        if _is_fractional(s, r, cut, p) and _missed(pack, s, r, p) <= MISSED_SHARE * room:
            return bound, UNSPLIT, 0.0, False
        if attempt == PROBE_ROUNDS or gained < GAINS:
            break
        clean_relaxation(r.T[0], r.F[0], r.G[0], p)
        waiting = _list_neurons(pack, person, s, r, node, cut, p, limit, z)
        _try_solution(pack, person, s, r, tree, cut, p, attempt)
        if cutoff(pack, tree.number) < limit:
            limit = cutoff(pack, tree.number)
            if bound >= limit:
                return bound, UNSPLIT, 0.0, True
            cut = _below(cut, limit)
        if waiting == 0:
            break
        pick, score, gained, closed, status, z = _probe_all(pack, person, s, r, node, cut, p, limit, z, waiting)
        where = r.F[RAISED_LEVEL, GAPS, max(pick, 0)]
        if closed:
            return limit, UNSPLIT, 0.0, True
    if pick < 0 or score < (FLAT * room) ** 2 or not _is_inside(node, pick, where):
        pick, where = _best_raised(pack, person, s, r, node, cut, p, limit, z)
    if pick < 0 or not _is_inside(node, pick, where):
        return bound, UNSPLIT, 0.0, False
    return bound, -2 - pick, where, True


@njit(**ONCE)
def _is_fractional(s, r, cut, p):
    """Is the solution of the node's program, which goes into Y, no row since a choice or a step of it is divided?"""
    read_columns(s, r, cut, p)
    F, I, divided = s.F, s.I, False
    for k in range(cut.items):
        for c in range(I[FIRST, k], I[FIRST, k + 1]):
            y = abs(F[Y, c])
            if I[ITEM_KIND, k] == INTEGER:
                y -= F[ITEM_GRID_OFFSET, k] if y > WHOLE else 0.0
            if I[ITEM_KIND, k] != REAL:
                divided |= abs(y - np.round(y)) > WHOLE
    return divided


@njit(**INNER)
def _missed(pack, s, r, p):
    """What the gaps of the node's program add up to in its value, by the multipliers of the last plane."""
    missed = 0.0
    for h in range(p.neurons):
        missed += abs(s.F[NU, h] * gap_of(pack, h, p, r.F[0], r.G[0], r.F[0]))
    return missed


@njit(**INNER)
def _is_inside(node, h, at):
    return node.zl[h] < at < node.zu[h]


@njit(**INNER)
def _inside(node, h, at):
    """Where neuron h is split: at a value, or as near to it as `EDGE` allows."""
    edge = EDGE * (node.zu[h] - node.zl[h])
    return min(max(at, node.zl[h] + edge), node.zu[h] - edge)


@njit(**INNER)
def _below(cut, limit):
    """The node, where no point that matters costs more than the limit."""
    return Cut(cut.items, cut.width, cut.base_cost, max(min(cut.ceiling, limit), cut.base_cost))


@njit(**ONCE)
def _first_relaxation(pack, person, s, r, node, cut, limit):
    """The program of the node, solved; for squares around the best plane's solution, and again around its own."""
    centre_columns(s, cut, s.F[PLANE_BEST], s.F[TAKE_BEST])
    spread = 0.0
    if pack.norm == SQUARED and cut.items > 0:
        spread = math.sqrt(max(min(limit, cut.ceiling) - cut.base_cost, 0.0) / cut.items)
    p = begin_relaxation(pack, person, s, r, node, cut, limit, spread)
    status, z = solve_relaxation(pack, s, r, NODE_LEVEL, cut, p, most_value(pack, cut, p, limit), 0.0)
    if pack.norm == SQUARED and status == OPTIMAL:
        bound_relaxation(pack, person, s, r, NODE_LEVEL, node, cut, p)
        centre_columns(s, cut, s.F[PLANE], s.F[TAKE])
        p = begin_relaxation(pack, person, s, r, node, cut, limit, 0.25 * spread)
        status, z = solve_relaxation(pack, s, r, NODE_LEVEL, cut, p, most_value(pack, cut, p, limit), 0.0)
    return p, status, z


@njit(**ONCE)
def _try_solution(pack, person, s, r, tree, cut, p, attempt):
    """Try the program's solution as a point, and what the network's tangent plane makes of it."""
    read_columns(s, r, cut, p)
    round_solution(pack, cut.items, s.F, s.I)
    try_point(pack, person, tree, s.F)
    if attempt == 0 and allowed_changes(pack, person, s.F[X]):
        newton(pack, person, tree, cut, np.int64(2), s)
        read_columns(s, r, cut, p)
        newton_together(pack, person, s, tree, cut, np.int64(TOGETHER_TRIES))


@njit(**ONCE)
# size: what the programs of a node depend on
def _list_neurons(pack, person, s, r, node, cut, p, limit, z):
    """The neurons whose gaps count into ORDER, the largest first, and where each is split into GAPS of the last level:
    in the node's program, or where its value is next to nothing, in the one that asks for more. Returns their number.
    """
    level = NODE_LEVEL
    if z < FLAT * most_value(pack, cut, p, limit):
        value = _raise(pack, s, r, cut, p, limit, z)
        if value > z:
            level = RAISED_LEVEL
            multiplier_plane(pack, person, s, r, level, node, p, np.int64(-1), 0.0, 0.0)
    return _by_gap(pack, s, r, level, node, p)


@njit(**INNER)
def _by_gap(pack, s, r, level, node, p):
    """Order the neurons by their gaps in the program of a level, measured by the coefficients of their values in the
    plane of its multipliers, which was made last: what a gap adds to the bound. One that adds nothing can still be all
    that keeps the solution from being a point.
    """
    F, G, order, gaps, count, largest = r.F[level], r.G[level], r.G[0, ORDER], r.F[0, GAPS], 0, 0.0
    for h in range(p.neurons):
        largest = max(largest, abs(s.F[NU, h]))
    if largest == 0.0:  # no condition binds: bounds of pre-activations do
        largest = 1.0
    for h in range(p.neurons):
        gap = gap_of(pack, h, p, F, G, r.F[0])
        gap = max(s.F[NU, h] * gap, 0.0) + ADDS_NOTHING * largest * abs(gap)
        if gap > 0.0 and node.zl[h] < node.zu[h]:
            v, k = argument_at(p, h), count
            r.F[RAISED_LEVEL, GAPS, h] = _inside(node, h, value_of(v, F, G) * r.F[0, SCALE, v])
            while k > 0 and gaps[k - 1] < gap:
                gaps[k], order[k] = gaps[k - 1], order[k - 1]
                k -= 1
            gaps[k], order[k] = gap, h
            count += 1
    while count > 0 and gaps[count - 1] < MATTERING * gaps[0]:
        count -= 1
    return count


@njit(**INNER)
def _raise(pack, s, r, cut, p, limit, z):
    """Ask for more of the conditions, in the program of the last level, until it costs about as much as the cutoff.
    Returns its value.
    """
    T, F, G = r.T[RAISED_LEVEL], r.F[RAISED_LEVEL], r.G[RAISED_LEVEL]
    t, f, g = r.T[SIDE_LEVEL], r.F[SIDE_LEVEL], r.G[SIDE_LEVEL]
    breaks, most, step, asked, value = breaks_of(pack), most_value(pack, cut, p, limit), 0.05, 0.0, z
    copy_program(r.T[0], r.F[0], r.G[0], p.variables, breaks, T, F, G)
    for _ in range(RAISED_TRIES):
        copy_program(T, F, G, p.variables, breaks, t, f, g)
        now = value
        for k in range(pack.index[SIZES, pack.layers]):
            now = move_bound(t, f, g, p.rows_at + k, False, asked + step, now)
        status, now = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, RAISED_HIGH * most, now)
        if status != OPTIMAL:
            step *= 0.5
            continue
        copy_program(t, f, g, p.variables, breaks, T, F, G)
        value, asked = now, asked + step
        if value >= RAISED_LOW * most or s.I[HALT, 0] != 0:
            break
        step *= 2.0
    return value


@njit(**ONCE)
# size: what the programs of a node depend on
def _best_raised(pack, person, s, r, node, cut, p, limit, z):
    """The neuron with the largest product of increases in the program that asks for more, and where it is split; -1
    where none has a gap there."""
    T, F, G = r.T[RAISED_LEVEL], r.F[RAISED_LEVEL], r.G[RAISED_LEVEL]
    t, f, g = r.T[SIDE_LEVEL], r.F[SIDE_LEVEL], r.G[SIDE_LEVEL]
    most, value = most_value(pack, cut, p, limit), _raise(pack, s, r, cut, p, limit, z)
    multiplier_plane(pack, person, s, r, RAISED_LEVEL, node, p, np.int64(-1), 0.0, 0.0)
    pick, best, places = np.int64(-1), -1.0, r.F[RAISED_LEVEL, GAPS]
    for turn in range(_by_gap(pack, s, r, RAISED_LEVEL, node, p)):
        h, product = r.G[0, ORDER, turn], 1.0
        v = argument_at(p, h)
        if s.I[HALT, 0] != 0:
            break
        for side in range(2):
            copy_program(T, F, G, p.variables, breaks_of(pack), t, f, g)
            now = move_bound(t, f, g, v, side == 0, places[h] / r.F[0, SCALE, v], value)
            _, now = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, 3.0 * most, now)
            product *= max(min(now, 3.0 * most) - value, LEAST_RISE * most)
        if product > best:
            best, pick = product, h
    return pick, places[max(pick, 0)]


@njit(**ONCE)
# size: what probes depend on, and where the program stands
def _probe_all(pack, person, s, r, node, cut, p, limit, z, waiting):
    """Probe the neurons in ORDER, and write what it says into node and program.

    Returns (neuron to split, or -1; its score; by how much intervals shrank on average; whether the node is closed;
    status and value of the program).
    """
    T, F, G, order = r.T[0], r.F[0], r.G[0], r.G[0, ORDER]
    pick, score, gained, status = np.int64(-1), -1.0, 0.0, np.int64(OPTIMAL)
    most = most_value(pack, cut, p, limit)
    for turn in range(waiting):
        h = order[turn]
        v, low, high = argument_at(p, h), node.zl[h], node.zu[h]
        scale = F[SCALE, v]
        if s.I[HALT, 0] != 0:
            break
        if not low < high:
            continue
        at = _inside(node, h, r.F[RAISED_LEVEL, GAPS, h])
        up, rise_up, top = _probe_part(pack, person, s, r, node, cut, p, h, at, np.bool_(True), z, limit)
        down, rise_down, bottom = _probe_part(pack, person, s, r, node, cut, p, h, at, np.bool_(False), z, limit)
        if up >= limit and down >= limit:
            return pick, score, 0.0, True, status, z
        product = max(rise_up - z, LEAST_RISE) * max(rise_down - z, LEAST_RISE)
        if up < limit and down < limit and product > score:
            pick, score = h, product
            r.F[RAISED_LEVEL, GAPS, h] = at
        node.zl[h], node.zu[h] = max(low, bottom), min(high, top)
        left = node.zu[h] - node.zl[h]
        if left < 0.0:
            return pick, score, 0.0, True, status, z
        gained += 1.0 - left / (high - low)
        if left < SHRINKS * (high - low):
            z = move_bound(T, F, G, v, False, node.zl[h] / scale, z)
            z = move_bound(T, F, G, v, True, node.zu[h] / scale, z)
            status, z = solve_relaxation(pack, s, r, NODE_LEVEL, cut, p, most, z)
            if status != OPTIMAL:
                break
    return pick, score, gained / waiting, False, status, z


@njit(**INNER)
# size: what a probe depends on: question, person, buffers, node, program, neuron and part
def _probe_part(pack, person, s, r, node, cut, p, h, at, upper, z, limit):
    """The part of a node where neuron h is above or below a value: (its proven bound, the value of its program, the end
    of the neuron's interval on that side).

    The second program asks for as much as the first one's multipliers leave: one step of Newton's method.
    """
    T, F, G = r.T[SIDE_LEVEL], r.F[SIDE_LEVEL], r.G[SIDE_LEVEL]
    copy_program(r.T[0], r.F[0], r.G[0], p.variables, breaks_of(pack), T, F, G)
    v, most = argument_at(p, h), most_value(pack, cut, p, limit)
    scale, low, high = r.F[0, SCALE, v], node.zl[h], node.zu[h]
    least, greatest = (at, high) if upper else (low, at)
    z = move_bound(T, F, G, v, not upper, at / scale, z)
    status, z = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, most, z)
    bound, end, known = bound_part(pack, person, s, r, SIDE_LEVEL, node, cut, p, h, least, greatest, upper)
    if bound >= limit or (end < at if upper else end > at):
        return math.inf, z, at
    far = high if upper else low
    ask = end if known else far
    if status != OPTIMAL or z >= (1.0 - NEAR_CUT) * most or limit == math.inf:
        return bound, z, end
    rises = z
    z = move_bound(T, F, G, v, not upper, ask / scale, z)
    status, z = solve_relaxation(pack, s, r, SIDE_LEVEL, cut, p, most, z)
    least, greatest = (ask, high) if upper else (low, ask)
    beyond, closer, _ = bound_part(pack, person, s, r, SIDE_LEVEL, node, cut, p, h, least, greatest, upper)
    if beyond >= limit:
        closer = ask
    return bound, rises, (min(end, max(closer, ask)) if upper else max(end, min(closer, ask)))
