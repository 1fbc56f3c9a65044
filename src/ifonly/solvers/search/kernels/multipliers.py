"""The bound that the multipliers of a relaxation prove. Nothing else is taken from it.

Multipliers pi of conditions and rules and omega of the equations of z give a plane by backward substitution:

    g a <= omega z + max(0, (g - omega) u, omega (-l))      g: the coefficient that later layers give a ReLU's value

so *any* of them give an inequality  constant + a.y >= 0  that every favourable point of the node satisfies, and
`solve_plane` turns it into a bound for every norm.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.closed_forms import item_gains, most_gain, solve_plane
from ifonly.solvers.search.kernels.layout import (
    ACTIVE,
    ADDED,
    BIAS_AT,
    HIGH,
    INACTIVE,
    INNER,
    LOSS,
    LOST,
    LOW,
    NEURON,
    OMEGA,
    ONCE,
    PI,
    PLANE,
    PLANE_LOSS,
    RULE,
    RULE_LAYER,
    RULE_PLACE,
    SCALE,
    SIZES,
    SLANT,
    SLOT,
    UNIT_LOSS,
    WEIGHT_AT,
    WHERE,
    V,
)
from ifonly.solvers.search.kernels.long_step import (
    ABSENT,
    reduced_price,
)
from ifonly.solvers.search.kernels.network import end_plane, pass_down


@njit(**INNER)
def add_multiplier(pack, layer, i, m, low, size, F):
    """Begin with m times (condition i - low): its coefficients to V. Returns constant and what rounding can do."""
    n, w = pack.index[SIZES, layer], pack.index[WEIGHT_AT, layer] + i * pack.index[SIZES, layer]
    bias = pack.biases[pack.index[BIAS_AT, layer] + i]
    total, below = abs(bias) + abs(low), pack.index[BIAS_AT, layer - 1]
    for t in range(n):
        F[V, t] += m * pack.weights[w + t]
        total += abs(pack.weights[w + t]) * max(size[below + t], 0.0)
    return m * (bias - low), m * total * F[LOSS, UNIT_LOSS]


@njit(**INNER)
def multiplier_plane(pack, person, s, r, level, node, p, which, active):
    """The plane of the multipliers of a level's program, into PLANE. ReLU `which` of the program (-1: none) is on one
    side, and its own part left out.

    Returns the constant, outward; the constant for points that may be returned, in the place of LOW; and the
    coefficient of |z| of `which`. The multipliers themselves are left in PI and OMEGA.
    """
    F, P, G, index = s.F, r.F[level], r.G[level], pack.index
    last, outputs = pack.layers - 1, index[SIZES, pack.layers]
    constant, lost, robust, own = 0.0, F[LOSS, LOST], 0.0, 0.0
    for t in range(index[SIZES, last]):
        F[V, t] = 0.0
    if p.vertices:
        for t in range(p.width):
            F[ADDED, t] = 0.0
    for k in range(outputs):
        v = p.rows_at + k
        m = max(reduced_price(v, P, G), 0.0) * r.F[0, SCALE, v]
        F[PI, k] = m
        if m > 0.0:
            c, e = add_multiplier(pack, last, k, m, person.need[LOW, k], node.zu, F)
            constant += c
            lost += e
            robust += m * (person.need[HIGH, k] - person.need[LOW, k])
    for layer in range(last - 1, -1, -1):
        at, n = index[BIAS_AT, layer], index[SIZES, layer + 1]
        for j in range(n):
            h = at + j
            g, i = F[V, j], r.G[0, SLOT, h]
            if node.side[h] == RULE:
                m, low, high = rule_multiplier(pack, person, r, level, p, layer, j)
                F[V, j] = g + m
                constant -= m * low
                robust += m * max(high - low, 0.0)
                lost += m * abs(low) * F[LOSS, UNIT_LOSS]
            elif i >= 0:
                if p.vertices:
                    g, c, e = _add_vertices(r, level, p, i, h, g, F)
                    constant += c
                    lost += e
                w = _omega(r, level, p, i, g)
                F[V, j] = w
                lost += (abs(g) + abs(w)) * (max(node.zu[h], 0.0) + max(-node.zl[h], 0.0)) * F[LOSS, UNIT_LOSS]
                if i == which:
                    own = g - w if active else w
                else:
                    constant += _largest_part(g, w, node.zl[h], node.zu[h], node.side[h])
            elif node.zu[h] <= 0.0:
                F[V, j] = 0.0
            F[OMEGA, h] = F[V, j]
        if layer == 0:
            constant = end_plane(at, np.int64(0), n, constant, lost, p.width, F, s.Wc)
            if p.vertices:
                for t in range(p.width):
                    F[PLANE, t] += F[ADDED, t]
        else:
            constant, lost, _, _ = pass_down(pack, layer, np.int64(0), n, constant, lost, F)
    lost = F[LOSS, PLANE_LOSS] + abs(constant) * F[LOSS, UNIT_LOSS]
    return constant + lost, robust + 3.0 * min(lost, robust), own  # a plane without conditions says nothing of them


@njit(**INNER)
def rule_multiplier(pack, person, r, level, p, layer, i):
    """Multiplier of a rule's row, and its LOW and HIGH."""
    first = pack.index[SIZES, pack.layers]
    for j in range(pack.rules):
        if pack.index[RULE_LAYER, j] == layer and pack.index[RULE_PLACE, j] == i:
            v = p.rows_at + first + j
            m = max(reduced_price(v, r.F[level], r.G[level]), 0.0) * r.F[0, SCALE, v]
            return m, person.need[LOW, first + j], person.need[HIGH, first + j]
    return 0.0, 0.0, 0.0


@njit(**ONCE)
def _add_vertices(r, level, p, i, h, g, F):
    """Add the multiple of the row of vertices of ReLU i: its columns to ADDED. Returns the coefficient of the ReLU's
    value, the constant, and what rounding can do."""
    a = p.width + 1 + i
    m = max(reduced_price(a + 4 * p.neurons, r.F[level], r.G[level]), 0.0) / r.F[0, SCALE, a]
    if m == 0.0:
        return g, 0.0, 0.0
    above = r.upper[0, h]
    for t in range(p.width):
        F[ADDED, t] += m * above[t]
    return g - m, m * above[p.width], 4.0 * m * above[p.width + 1] * F[LOSS, UNIT_LOSS]


@njit(**ONCE)
def _omega(r, level, p, i, g):
    """Multiplier of the equation of ReLU i, whose value has the coefficient g."""
    F, G = r.F[level], r.G[level]
    a, scale = p.width + 1 + i, r.F[0, SCALE, p.width + 1 + i]
    if G[WHERE, a] == ABSENT:
        return -reduced_price(a + p.neurons, F, G) / scale
    chords = 0.0
    for slot in (a + 2 * p.neurons, a + 3 * p.neurons):
        chords += reduced_price(slot, F, G) * (1.0 - F[SLANT, slot])
    return g + (reduced_price(a, F, G) - chords) / scale


@njit(**ONCE)
def _largest_part(g, w, low, high, side):
    """The most that  g relu(z) - w z  can be."""
    if low >= 0.0 or side == ACTIVE:
        low = max(low, 0.0)
        return max((g - w) * low, (g - w) * max(high, low))
    if high <= 0.0 or side == INACTIVE:
        return max(-w * low, -w * min(high, 0.0))
    return max(0.0, (g - w) * high, -w * low)


@njit(**INNER)
def bound_relaxation(pack, person, s, r, level, node, cut, p):
    """The bound that the multipliers prove, and that of points that may be returned."""
    constant, robust, _ = multiplier_plane(pack, person, s, r, level, node, p, np.int64(-1), np.bool_(False))
    F, I = s.F, s.I
    strict = solve_plane(pack.norm, F[PLANE], constant - robust, cut.base_cost, cut.ceiling, cut.items, F, I)
    return solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, I), strict


@njit(**INNER)
def bound_side(pack, person, s, r, level, node, cut, p, which, active):
    """The bound of one side of a ReLU from the multipliers of its program; how far |z| can be on that side where points
    cost less than the ceiling; and whether the multipliers say anything about that.
    """
    F, I = s.F, s.I
    constant, _, own = multiplier_plane(pack, person, s, r, level, node, p, which, active)
    h = r.G[0, NEURON, which]
    far = node.zu[h] if active else -node.zl[h]
    budget = cut.ceiling - cut.base_cost
    gain = most_gain(pack.norm, cut.items, budget, item_gains(F[PLANE], 1.0, cut.items, F, I), F, I)
    if own < 0.0:
        reach = (constant + gain) / -own
        far = min(far, reach + 1e-12 * abs(reach))
    constant += max(own, 0.0) * (node.zu[h] if active else -node.zl[h])
    bound = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, I)
    return bound, far, own < 0.0
