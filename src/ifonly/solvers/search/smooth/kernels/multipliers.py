"""The bound that the multipliers of a relaxation prove. Nothing else is taken from it.

Multipliers pi of conditions and rules and omega of the equations of z give a plane by backward substitution:

    g a(z) <= omega z + t,   t the largest value of  g a(z) - omega z  over [l, u]      (`curves.largest_above`)

with g the coefficient that later layers give a neuron's value. So *any* of them give an inequality that every
favourable point of the node satisfies; `search.kernels.multipliers` says the same of ReLUs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.closed_forms import item_gains, most_gain, solve_plane
from ifonly.solvers.search.kernels.layout import (
    BIAS_AT,
    HIGH,
    INNER,
    LOSS,
    LOST,
    LOW,
    NU,
    ONCE,
    PI,
    PLANE,
    PLANE_LOSS,
    RULE,
    SCALE,
    SIZES,
    SLANT,
    UNIT_LOSS,
    V,
)
from ifonly.solvers.search.kernels.long_step import reduced_price
from ifonly.solvers.search.kernels.multipliers import add_multiplier, rule_multiplier
from ifonly.solvers.search.kernels.network import end_plane, pass_down
from ifonly.solvers.search.smooth.kernels.curves import STEEP, largest_above
from ifonly.solvers.search.smooth.kernels.layout import LINES, SIZE
from ifonly.solvers.search.smooth.kernels.relaxation import argument_at, lines_from, value_at


@njit(**INNER)
def multiplier_plane(pack, person, s, r, level, node, p, which, least, most):
    """The plane of the multipliers of a level's program, into PLANE. Neuron `which` (-1: none) has its pre-activation z
    in [least, most], and the part -own * z of its term is left out.

    Returns the constant, outward; the constant for points that may be returned, in the place of LOW; and `own`. NU
    keeps the coefficients of the activations' values.
    """
    F, P, G, index = s.F, r.F[level], r.G[level], pack.index
    last, unit = pack.layers - 1, s.F[LOSS, UNIT_LOSS]
    constant, lost, robust, own = 0.0, F[LOSS, LOST], 0.0, 0.0
    for t in range(index[SIZES, last]):
        F[V, t] = 0.0
    for k in range(index[SIZES, pack.layers]):
        v = p.rows_at + k
        m = max(reduced_price(v, P, G), 0.0) * r.F[0, SCALE, v]
        F[PI, k] = m
        if m > 0.0:
            c, e = add_multiplier(pack, last, k, m, person.need[LOW, k], F[SIZE], F)
            constant += c
            lost += e
            robust += m * (person.need[HIGH, k] - person.need[LOW, k])
    for layer in range(last - 1, -1, -1):
        at, n = index[BIAS_AT, layer], index[SIZES, layer + 1]
        for j in range(n):
            h = at + j
            g = F[V, j]
            F[NU, h] = g
            if node.side[h] == RULE:
                m, low, high = rule_multiplier(pack, person, r, level, p, layer, j)
                F[V, j] = g + m
                constant -= m * low
                robust += m * max(high - low, 0.0)
                lost += m * abs(low) * unit
                continue
            by_lines, by_bounds = _omega(r, level, p, h)
            w, low, high = by_lines + by_bounds, min(node.zl[h], node.zu[h]), max(node.zl[h], node.zu[h])
            F[V, j] = w
            reach = abs(by_lines) + abs(by_bounds)
            lost += (abs(g) * F[SIZE, h] + reach * max(abs(low), abs(high))) * unit
            if h == which:
                own = by_bounds
                constant += _largest_part(pack, h, g, by_lines, least, most, F[SIZE, h])
            else:
                constant += _largest_part(pack, h, g, w, low, high, F[SIZE, h])
        if layer == 0:
            constant = end_plane(at, np.int64(0), n, constant, lost, p.width, F, s.Wc)
        else:
            constant, lost, _, _ = pass_down(pack, layer, np.int64(0), n, constant, lost, F)
    lost = F[LOSS, PLANE_LOSS] + abs(constant) * unit
    return constant + lost, robust + 3.0 * min(lost, robust), own  # a plane without conditions says nothing of them


@njit(**ONCE)
def _omega(r, level, p, h):
    """The multiplier of neuron h's pre-activation, in two parts: by the lines, and by its own bounds."""
    F, G, scales = r.F[level], r.G[level], r.F[0]
    by_lines, tall = 0.0, scales[SCALE, value_at(p, h)]
    for slot in range(lines_from(p, h), lines_from(p, h) + LINES):
        by_lines += max(reduced_price(slot, F, G), 0.0) / tall * F[SLANT, slot]
    return by_lines, reduced_price(argument_at(p, h), F, G) / scales[SCALE, argument_at(p, h)]


@njit(**INNER)
def _largest_part(pack, h, g, w, low, high, most):
    """The most that  g a(z) - w z  can be on [low, high], where |a| is at most `most`."""
    if g == 0.0 or abs(w) >= STEEP * abs(g):
        return abs(g) * most + max(-w * low, -w * high)
    sign = 1.0 if g > 0.0 else -1.0
    return abs(g) * largest_above(pack.code[h], pack.alpha[h], sign, w / abs(g), low, high)


@njit(**INNER)
def bound_relaxation(pack, person, s, r, level, node, cut, p):
    """The bound that the multipliers prove, and that of points that may be returned."""
    constant, robust, _ = multiplier_plane(pack, person, s, r, level, node, p, np.int64(-1), 0.0, 0.0)
    F, I = s.F, s.I
    strict = solve_plane(pack.norm, F[PLANE], constant - robust, cut.base_cost, cut.ceiling, cut.items, F, I)
    return solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, I), strict


@njit(**INNER)
# size: as a probe of `probing`
def bound_part(pack, person, s, r, level, node, cut, p, which, least, most, upper):
    """The bound of the part of the node where neuron `which` is in [least, most], from the multipliers of its program;
    its end there, the upper or the lower one, where points cost less than the ceiling; and whether the multipliers say
    anything about that.
    """
    F, I = s.F, s.I
    constant, _, own = multiplier_plane(pack, person, s, r, level, node, p, which, least, most)
    end = most if upper else least
    budget = cut.ceiling - cut.base_cost
    gain = most_gain(pack.norm, cut.items, budget, item_gains(F[PLANE], 1.0, cut.items, F, I), F, I)
    known = own > 0.0 if upper else own < 0.0
    if known:
        reach = (constant + gain) / own
        end = min(end, reach + 1e-12 * abs(reach)) if upper else max(end, reach - 1e-12 * abs(reach))
    constant += max(-own * least, -own * most)
    bound = solve_plane(pack.norm, F[PLANE], constant, cut.base_cost, cut.ceiling, cut.items, F, I)
    return bound, end, known
