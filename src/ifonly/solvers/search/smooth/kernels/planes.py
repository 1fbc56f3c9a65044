"""Linear relaxation of smooth activations: forward pass, backward substitution, bounds of the pre-activations.

As in `search.kernels.network`, with two lines for each activation (`curves`) in the place of a ReLU's chord and slope.
What rounding can do to a plane is added up on the way: the coefficients of a layer's neurons are sums of products, off
by their rounding times |c| |W|, and each is the factor of an activation, which is no larger than SIZE.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.closed_forms import item_gains, most_gain
from ifonly.solvers.search.kernels.layout import (
    ACT,
    ALL_GROUPS,
    BIAS_AT,
    FIRST,
    HALT,
    INNER,
    LOSS,
    LOST,
    NU,
    PLANE,
    SIZES,
    UNIT_LOSS,
    V,
)
from ifonly.solvers.search.kernels.network import (
    begin_plane,
    end_plane,
    first_plane,
    forward_first,
    forward_first_compact,
    forward_layer,
    layer_losses,
    pass_down,
    plane_loss,
)
from ifonly.solvers.search.smooth.kernels.curves import line, size, slope, value
from ifonly.solvers.search.smooth.kernels.layout import (
    LOWER_SHIFT,
    LOWER_SLOPE,
    MATTERS,
    RELU,
    SIZE,
    TANGENT_SHIFT,
    TANGENT_SLOPE,
    UPPER_SHIFT,
    UPPER_SLOPE,
)


@njit(**INNER)
def descend(pack, layer, constant, exact, width, F, Wc):
    """An upper plane over compact columns for  constant + V . a(z_layer)  by backward substitution, into PLANE.

    An activation is replaced by its upper line where its coefficient is positive and by its lower line where that is
    negative; with `exact` by its tangent, and the plane is that of the network at a point. V is used up; NU keeps the
    coefficient that each activation had. Returns the plane's constant.
    """
    index, v, nu, loss = pack.index, F[V], F[NU], F[LOSS]
    lost = abs(constant) * loss[UNIT_LOSS] + loss[LOST]
    while True:
        at = index[BIAS_AT, layer]
        n = index[SIZES, layer + 1]
        for j in range(n):
            h = at + j
            c = v[j]
            nu[h] = c
            if c == 0.0:
                continue
            if exact != 0:
                shift = c * F[TANGENT_SHIFT, h]
                v[j] = c * F[TANGENT_SLOPE, h]
            elif c > 0.0:
                shift = c * F[UPPER_SHIFT, h]
                v[j] = c * F[UPPER_SLOPE, h]
            else:
                shift = c * F[LOWER_SHIFT, h]
                v[j] = c * F[LOWER_SLOPE, h]
            constant += shift
            lost += abs(shift) * loss[UNIT_LOSS]
        if layer == 0:
            return end_plane(at, np.int64(0), n, constant, lost, width, F, Wc)
        constant, lost, _, _ = pass_down(pack, layer, np.int64(0), n, constant, lost, F)
        layer -= 1


@njit(**INNER)
def neuron_plane(pack, layer, i, sign, exact, width, F, Wc):
    """An upper plane of sign * (pre-activation i of the layer), into PLANE; returns its constant. Outputs are the last
    layer.
    """
    if layer == 0:
        return first_plane(i, sign, width, F, Wc)
    bias = begin_plane(pack, layer, i, sign, F)
    return descend(pack, layer - 1, bias, exact, width, F, Wc)


@njit(**INNER)
def set_lines(pack, h, low, high, reference, F):
    """The lines of one activation, whose argument is in [low, high], close to it at the reference."""
    code, alpha = pack.code[h], pack.alpha[h]
    steep, shift = line(code, alpha, 1.0, low, high, reference)
    F[UPPER_SLOPE, h] = steep
    F[UPPER_SHIFT, h] = shift
    steep, shift = line(code, alpha, -1.0, low, high, reference)
    F[LOWER_SLOPE, h] = -steep
    F[LOWER_SHIFT, h] = -shift


@njit(**INNER)
def lines_at(pack, zl, zu, F):
    """All lines, close to the activations at the pre-activations in ACT."""
    for h in range(len(zl)):
        low, high = min(zl[h], zu[h]), max(zl[h], zu[h])
        set_lines(pack, h, low, high, min(max(F[ACT, h], low), high), F)


@njit(**INNER)
def set_tangents(pack, F):
    """The tangents at the pre-activations in ACT."""
    for h in range(len(pack.code)):
        z = F[ACT, h]
        steep = slope(pack.code[h], pack.alpha[h], z)
        F[TANGENT_SLOPE, h] = steep
        F[TANGENT_SHIFT, h] = value(pack.code[h], pack.alpha[h], z) - steep * z


@njit(**INNER)
def bound_layer(pack, layer, slack, zl, zu, budget, items, F, I, Wc):
    """Tighten zl and zu (in place) for every neuron of a layer, and draw the lines of its activations."""
    width, at = I[FIRST, items], pack.index[BIAS_AT, layer]
    if layer > 0:
        layer_losses(pack, layer, ALL_GROUPS, F[SIZE], F)
    for i in range(pack.index[SIZES, layer + 1]):
        h = at + i
        for way in range(2):  # up, down
            if I[HALT, 0] != 0:
                break
            high = neuron_plane(pack, layer, i, 1.0 - 2.0 * way, 0, width, F, Wc)
            high += plane_loss(slack[h], F)
            total = item_gains(F[PLANE], 1.0, items, F, I)
            high += most_gain(pack.norm, items, budget, total, F, I)
            if way == 0:
                zu[h] = min(zu[h], high)
            else:
                zl[h] = max(zl[h], -high)
        low, high = min(zl[h], zu[h]), max(zl[h], zu[h])
        set_lines(pack, h, low, high, 0.5 * (low + high), F)
        F[SIZE, h] = size(pack.code[h], pack.alpha[h], low, high)
        F[MATTERS, h] = 1.0 if pack.code[h] != RELU or high > 0.0 else 0.0


@njit(**INNER)
def forward(pack, person, F):
    """Scores of the point X: fills the pre-activations ACT and the conditions' values OUT."""
    forward_first(pack, person, F)
    _forward_rest(pack, F)


@njit(**INNER)
def forward_compact(pack, width, F, Wc):
    """`forward` for the (possibly fractional) vector Y over compact columns."""
    forward_first_compact(pack, width, F, Wc)
    _forward_rest(pack, F)


@njit(**INNER)
def _forward_rest(pack, F):
    """The layers after the first, from the first layer's pre-activations in ACT."""
    for layer in range(1, pack.layers):
        before = pack.index[BIAS_AT, layer - 1]
        for j in range(pack.index[SIZES, layer]):
            F[V, j] = value(pack.code[before + j], pack.alpha[before + j], F[ACT, before + j])
        forward_layer(pack, layer, F)
