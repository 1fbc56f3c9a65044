"""Linear relaxation of ReLUs (planes as in DeepPoly and CROWN): forward pass, backward substitution, bounds of the
pre-activations over box and ball.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.closed_forms import item_gains, most_gain
from ifonly.solvers.search.kernels.layout import (
    ACT,
    ALL_GROUPS,
    ALPHA,
    BIAS_AT,
    CHOICE,
    FIRST,
    GROUP,
    HALT,
    INNER,
    KIND,
    LOSS,
    LOST,
    NU,
    ONCE,
    OUT,
    PLANE,
    PLANE_LOSS,
    READS_FROM,
    READS_TO,
    SIZES,
    START,
    UNIT_LOSS,
    WEIGHT_AT,
    ZC,
    V,
    X,
    Y,
)

UNIT_ROUNDOFF = 2.0**-53


@njit(**ONCE)
def first_plane(i, sign, width, F, Wc):
    """The plane of sign * (pre-activation i of the first layer), into PLANE; returns its constant."""
    for t in range(width):
        F[PLANE, t] = sign * Wc[i, t]
    F[LOSS, PLANE_LOSS] = F[LOSS, i] + F[LOSS, LOST]
    return sign * F[ZC, i]


@njit(**ONCE)
def begin_plane(pack, layer, i, sign, F):
    """The coefficients of sign * (pre-activation i of a later layer) in the activations below it, into V; returns the
    constant.
    """
    m = pack.index[SIZES, layer]
    w = pack.index[WEIGHT_AT, layer] + i * m
    for t in range(m):
        F[V, t] = sign * pack.weights[w + t]
    return sign * pack.biases[pack.index[BIAS_AT, layer] + i]


@njit(**ONCE)
# size: an inner kernel, as neuron_plane
def pass_down(pack, layer, first, last, constant, lost, F):
    """From the coefficients in V of a layer's pre-activations, which are 0 but for those from `first` to `last`, to
    those of the activations below it. Returns the constant, what rounding can do so far, and the same two of the layer
    below.
    """
    v, nu, loss = F[V], F[NU], F[LOSS]
    at, m, w = pack.index[BIAS_AT, layer], pack.index[SIZES, layer], pack.index[WEIGHT_AT, layer]
    below = pack.index[BIAS_AT, layer - 1]  # the coefficients of the layer below are built in the place of their NU
    least, most = m, np.int64(0)
    for t in range(m):
        nu[below + t] = 0.0
    for j in range(first, last):
        c = v[j]
        if c != 0.0:
            constant += c * pack.biases[at + j]
            lost += abs(c) * loss[at + j]
            start, end = pack.index[READS_FROM, at + j], pack.index[READS_TO, at + j]
            least, most = min(least, start), max(most, end)
            for t in range(start, end):
                nu[below + t] += c * pack.weights[w + j * m + t]
    for t in range(m):
        v[t] = nu[below + t]
    return constant, lost, min(least, most), most


@njit(**ONCE)
# size: an inner kernel, as neuron_plane
def end_plane(at, first, last, constant, lost, width, F, Wc):
    """From the coefficients in V of the first layer's pre-activations, which are 0 but for those from `first` to
    `last`, to the plane over compact columns, into PLANE. Returns its constant.
    """
    v, a, zc, loss = F[V], F[PLANE], F[ZC], F[LOSS]
    for t in range(width):
        a[t] = 0.0
    for j in range(first, last):
        if v[j] != 0.0:
            constant += v[j] * zc[j]
            lost += abs(v[j]) * loss[at + j]
    j = first
    while j + 3 < last:  # rows are short: four at a time
        c, d, e, f = v[j], v[j + 1], v[j + 2], v[j + 3]
        if c != 0.0 or d != 0.0 or e != 0.0 or f != 0.0:
            for t in range(width):
                a[t] += c * Wc[j, t] + d * Wc[j + 1, t] + e * Wc[j + 2, t] + f * Wc[j + 3, t]
        j += 4
    while j < last:
        if v[j] != 0.0:
            for t in range(width):
                a[t] += v[j] * Wc[j, t]
        j += 1
    loss[PLANE_LOSS] = lost
    return constant


@njit(**INNER)
# size: an inner kernel, as neuron_plane
def descend(pack, layer, first, last, constant, zl, zu, slope, exact, width, F, Wc):
    """An upper plane over compact columns for  constant + V . relu(z_layer)  by backward substitution, into PLANE. V is
    0 but from `first` to `last`: of several models, a plane goes through one.

    An unstable ReLU with a positive coefficient is replaced by its chord u (z - l) / (u - l), one with a negative
    coefficient by slope * z. With `exact` the slopes are the pattern itself (1 active, 0 inactive) and the plane is
    the network's own linear piece. V is used up; NU keeps the coefficient that each ReLU had. Returns the plane's
    constant.
    """
    index, v, nu, loss = pack.index, F[V], F[NU], F[LOSS]
    lost = abs(constant) * loss[UNIT_LOSS] + loss[LOST]
    for j in range(index[SIZES, layer + 1]):
        nu[index[BIAS_AT, layer] + j] = v[j]
    while True:
        at = index[BIAS_AT, layer]
        for j in range(first, last):
            h = at + j
            c = v[j]
            if c == 0.0:
                continue
            if exact != 0:
                v[j] = c * slope[h]
            elif zl[h] >= 0.0:
                pass
            elif zu[h] <= 0.0:
                v[j] = 0.0
            elif c > 0.0:
                s = c * (zu[h] / (zu[h] - zl[h]))  # a share of c: c * zu might underflow first
                v[j] = s
                constant -= s * zl[h]
            else:
                v[j] = c * slope[h]
        if layer == 0:
            return end_plane(at, first, last, constant, lost, width, F, Wc)
        constant, lost, first, last = pass_down(pack, layer, first, last, constant, lost, F)
        layer -= 1


@njit(**INNER)
# size: the innermost kernel, called everywhere with other bounds and slopes; a tuple would be copied at every call
def neuron_plane(pack, layer, i, sign, zl, zu, slope, exact, width, F, Wc):
    """An upper plane of sign * (pre-activation i of the layer), into PLANE; returns its constant. Outputs are the last
    layer.
    """
    if layer == 0:
        return first_plane(i, sign, width, F, Wc)
    bias, h = begin_plane(pack, layer, i, sign, F), pack.index[BIAS_AT, layer] + i
    first, last = pack.index[READS_FROM, h], pack.index[READS_TO, h]
    return descend(pack, layer - 1, first, last, bias, zl, zu, slope, exact, width, F, Wc)


@njit(**INNER)
def plane_loss(slack, F):
    """What rounding can do to the last plane: `slack` bounds it for every node."""
    return min(slack, F[LOSS, PLANE_LOSS]) if F[LOSS, UNIT_LOSS] > 0.0 else slack


@njit(**INNER)
def begin_losses(pack, person, F):
    """Begin to fill LOSS: the units, and the first layer."""
    operations = 16 + 4 * pack.layers + pack.price.shape[1] + 2 * pack.index[SIZES, 0]
    for layer in range(1, pack.layers):
        operations += 2 * pack.index[SIZES, layer]
    F[LOSS, UNIT_LOSS] = 1.5 * UNIT_ROUNDOFF * operations
    F[LOSS, LOST] = person.lost
    for i in range(pack.index[SIZES, 1]):
        F[LOSS, i] = person.slack[i]


@njit(**INNER)
def layer_losses(pack, layer, group, size, F):
    """Fill LOSS for a hidden layer above the first, of one group or of all: in units of all operations, what its
    neurons add up to at most, where the activations below are between 0 and `size`, or its negative.
    """
    m, at = pack.index[SIZES, layer], pack.index[BIAS_AT, layer]
    below, w = pack.index[BIAS_AT, layer - 1], pack.index[WEIGHT_AT, layer]
    unit = F[LOSS, UNIT_LOSS]
    for j in range(pack.index[SIZES, layer + 1]):
        if group != ALL_GROUPS and pack.index[GROUP, at + j] != group:
            continue
        total = abs(pack.biases[at + j])
        for t in range(pack.index[READS_FROM, at + j], pack.index[READS_TO, at + j]):
            total += abs(pack.weights[w + j * m + t]) * max(size[below + t], 0.0)
        F[LOSS, at + j] = unit * total


@njit(**INNER)
# size: an inner kernel, as neuron_plane
def bound_layer(pack, layer, group, slack, zl, zu, budget, items, F, I, Wc):
    """Tighten zl and zu (in place) for every ReLU of a layer, of one group or of all, that is still unstable; returns
    how many remain so.
    """
    norm = pack.norm
    width = I[FIRST, items]
    a, alpha = F[PLANE], F[ALPHA]
    unstable = 0
    at = pack.index[BIAS_AT, layer]
    for i in range(pack.index[SIZES, layer + 1]):
        if I[HALT, 0] != 0:
            break
        h = at + i
        if zl[h] >= 0.0 or zu[h] <= 0.0 or (group != ALL_GROUPS and pack.index[GROUP, h] != group):
            continue
        for way in range(2):  # up, down
            sign = 1.0 - 2.0 * way
            high = neuron_plane(pack, layer, i, sign, zl, zu, alpha, way * 0, width, F, Wc)
            high += plane_loss(slack[h], F)
            total = item_gains(a, 1.0, items, F, I)
            if high + total > 0.0:
                total = most_gain(norm, items, budget, total, F, I)
            high += total
            if way == 0:
                zu[h] = min(zu[h], high)
                if zu[h] <= 0.0:
                    break
            else:
                zl[h] = max(zl[h], -high)
        if zl[h] < 0.0 < zu[h]:
            alpha[h] = 1.0 if zu[h] > -zl[h] else 0.0
            unstable += 1
    return unstable


@njit(**ONCE)
def forward_first(pack, person, F):
    """The first layer at the point X."""
    index, first = pack.index, pack.first
    x = F[X]
    out = F[OUT] if pack.layers == 1 else F[ACT]
    n = index[SIZES, 1]
    for i in range(n):
        out[i] = person.z[i]
    for f in range(pack.price.shape[1]):
        c = index[START, f]
        if index[KIND, f] != CHOICE:
            if x[f] != 0.0:
                for i in range(n):
                    out[i] += first[i, c] * x[f]
        else:
            new, old = int(x[f]), person.option[f]
            if new != old:
                for i in range(n):
                    out[i] += first[i, c + new] - first[i, c + old]


@njit(**ONCE)
def forward_first_compact(pack, width, F, Wc):
    """The same at the (possibly fractional) vector Y over compact columns."""
    out = F[OUT] if pack.layers == 1 else F[ACT]
    for i in range(pack.index[SIZES, 1]):
        s = F[ZC, i]
        for t in range(width):
            s += Wc[i, t] * F[Y, t]
        out[i] = s


@njit(**ONCE)
def forward_layer(pack, layer, F):
    """A later layer (the last: the conditions' values) from the activations of the layer below it, in V."""
    m, at, w = pack.index[SIZES, layer], pack.index[BIAS_AT, layer], pack.index[WEIGHT_AT, layer]
    values = F[V]
    for i in range(pack.index[SIZES, layer + 1]):
        s = pack.biases[at + i]
        for j in range(pack.index[READS_FROM, at + i], pack.index[READS_TO, at + i]):
            s += pack.weights[w + i * m + j] * values[j]
        if layer == pack.layers - 1:
            F[OUT, i] = s
        else:
            F[ACT, at + i] = s


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
            F[V, j] = max(F[ACT, before + j], 0.0)
        forward_layer(pack, layer, F)
