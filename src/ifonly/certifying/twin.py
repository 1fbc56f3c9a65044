"""The checker's leaves in floating point: the same steps, so fast that a whole tree costs about what searching it did.

`walk` follows the search's records from the root and closes every box that it can as the checker would, with the
checker's own rules (docs/certificate.md): cheapest corner, ball, hidden bounds, planes, multipliers. Every bound is
taken `slack` too high, which is far more than floating point can be off, so a leaf that is closed here is closed in
exact arithmetic too. What is too close to call stays open, for exact arithmetic to decide.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_FAST = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_INNER = {**_FAST, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_ONCE = {**_INNER, "inline": "always"}
"""For kernels with a single caller: compiled as a part of it, not once more at every level above."""

ADDITIVE, SQUARED, MAXIMUM = 0, 1, 2
SPLIT, EMPTY, CLOSED, OPEN = 0, 1, 2, 3
"""What became of a node: split, nothing left in it, closed by rows, or not decided here."""
RELATIVE = 1e-12
"""More than rounding does to costs and lengths."""
TIE = 1e-9
"""Nearer to a tie than this, which of two slopes the checker takes is not decided here."""
DOUBT = 8.0
"""Slacks: how far bounds may be from the checker's, when it comes to ties. Far from zero a slack is no small thing."""
MOST_ROWS, MOST_HINTS = 48, 24
REFINED = 4
"""Rounds of rows with the slopes of the present solution."""
DIRECTIONS, HALVINGS = 24, 26
"""Of the search for multipliers."""

# rows of Asked.index, Asked.price, Work.F, Work.R, Work.I
CHOICE, START, SIZES, WEIGHT_AT, BIAS_AT = 0, 1, 2, 3, 4
RATE, JUMP, STEP = 0, 1, 2
UP, DOWN, ITEM_RATE, ITEM_JUMP, MOVED = 0, 1, 2, 3, 4
COST, PLANE, Y, Y_LOW, PIECE_COST, PIECE_GAIN, PIECE_REACH = 5, 6, 7, 8, 9, 10, 11
ZC, V, W, ACT, RULE, BASE, SIZE, PATTERN = 12, 13, 14, 15, 16, 17, 18, 19
FLOAT_ROWS = 20
CONSTANT, SLACK, SCALE, SHARE, MULTIPLIER, TRIAL = 0, 1, 2, 3, 4, 5
FIRST, IS_CHOICE, PIECE_TO, PIECE_FROM, PIECE_DONE = 0, 1, 2, 3, 4
INT_ROWS = 5
HEAD = 8
"""Numbers at the start of a record; see `ifonly.search.record`."""


class Asked(NamedTuple):
    """A question and a person, in natural units; the last layer holds the conditions."""

    norm: int
    layers: int
    index: Ints
    price: Floats
    """(3, feature): cost of a unit of change (l2: of a squared one), cost of any change, step of integers."""
    weights: Floats
    biases: Floats
    first: Floats
    """(neuron of layer 0, column)."""
    z: Floats
    cost: Floats
    """(column): costs of options."""
    option: Ints
    slack: Floats
    """(neuron, conditions last): what is added to every bound."""
    radius: float


class Work(NamedTuple):
    """Buffers, and the boxes on the way from the root to the present node."""

    F: Floats
    I: Ints
    Wc: Floats
    bounds: Floats
    """(2, hidden neuron): bounds in the region, lower and upper."""
    low: Floats
    high: Floats
    mask: Bytes
    side: Bytes
    A: Floats
    """(row, compact column): planes."""
    R: Floats
    """(6, row): constant, slack, scale, largest scaled coefficient, multiplier, and the multiplier under trial."""
    about: Ints
    """(3, row): layer, neuron, sign."""
    bits: Bytes
    """(row, hidden neuron): slopes."""


# ------------------------------------------------------------------------------------------------ box and ball


@njit(**_ONCE)
def _clip(q, w, d):
    """The cheapest corner of box d and what the ball leaves around it. Returns (items, budget); no items: -1."""
    F, I, norm = w.F, w.I, q.norm
    features = q.price.shape[1]
    base, spent = F[BASE], 0.0
    for g in range(features):
        c = q.index[START, g]
        cost = 0.0
        if q.index[CHOICE, g] == 0:
            lo, hi = w.low[d, g], w.high[d, g]
            if lo > hi:
                if lo - hi > RELATIVE * (abs(lo) + abs(hi)):
                    return -1, 0.0
                hi = lo
            base[g] = max(lo, min(hi, 0.0))
            cost = _number_cost(q, g, abs(base[g]))
        else:
            best = -1
            for o in range(q.index[START, g + 1] - c):
                if w.mask[d, c + o] and (best < 0 or q.cost[c + o] < q.cost[c + best]):
                    best = o
            if best < 0:
                return -1, 0.0
            base[g] = best
            cost = q.cost[c + best]
        spent = max(spent, cost) if norm == MAXIMUM else spent + cost
    budget = q.radius - spent
    if budget < -RELATIVE * q.radius:
        return -1, 0.0
    budget = max(budget, 0.0) + RELATIVE * (q.radius if q.radius < math.inf else 0.0)
    n = q.index[SIZES, 1]
    for i in range(n):
        F[ZC, i] = q.z[i]
    items, width = 0, 0
    for g in range(features):
        c = q.index[START, g]
        if q.index[CHOICE, g] == 0:
            if base[g] != 0.0:
                for i in range(n):
                    F[ZC, i] += base[g] * q.first[i, c]
            up, down = _reaches(q, w, d, g, budget)
            if up > 0.0 or down > 0.0:
                F[UP, items], F[DOWN, items], F[MOVED, items] = up, down, abs(base[g])
                F[ITEM_RATE, items] = q.price[RATE, g]
                F[ITEM_JUMP, items] = q.price[JUMP, g] if base[g] == 0.0 else 0.0
                I[IS_CHOICE, items], I[FIRST, items] = 0, width
                for i in range(n):
                    w.Wc[i, width] = q.first[i, c]
                items, width = items + 1, width + 1
        else:
            at = c + np.int64(base[g])
            old = c + q.option[g]
            if at != old:
                for i in range(n):
                    F[ZC, i] += q.first[i, at] - q.first[i, old]
            most = q.radius if norm == MAXIMUM else budget
            begin = width
            for k in range(c, q.index[START, g + 1]):
                beyond = q.cost[k] - (0.0 if norm == MAXIMUM else q.cost[at])
                if w.mask[d, k] and k != at and beyond <= most * (1.0 + RELATIVE):
                    F[COST, width] = beyond
                    for i in range(n):
                        w.Wc[i, width] = q.first[i, k] - q.first[i, at]
                    width += 1
            if width > begin:
                I[IS_CHOICE, items], I[FIRST, items] = 1, begin
                items += 1
    I[FIRST, items] = width
    return items, budget


@njit(**_INNER)
def _number_cost(q, g, change):
    if q.norm == SQUARED:
        return q.price[RATE, g] * change * change
    return q.price[RATE, g] * change + (q.price[JUMP, g] if change > 0.0 else 0.0)


@njit(**_ONCE)
def _reaches(q, w, d, g, budget):
    """How far up and down from the corner a number can go, a little more than within the ball."""
    base, rate, step = w.F[BASE, g], q.price[RATE, g], q.price[STEP, g]
    moved, reach = abs(base), math.inf
    if q.radius < math.inf and rate > 0.0:
        if q.norm == SQUARED:
            reach = math.sqrt(budget / rate + moved * moved) - moved
        elif q.norm == MAXIMUM:
            reach = max(q.radius / rate - moved, 0.0)
        else:
            reach = max(budget - (q.price[JUMP, g] if moved == 0.0 else 0.0), 0.0) / rate
        reach += RELATIVE * (reach + moved)
    up, down = min(w.high[d, g] - base, reach), min(base - w.low[d, g], reach)
    if step > 0.0:
        up, down = np.floor(up / step + TIE) * step, np.floor(down / step + TIE) * step
    return max(up, 0.0), max(down, 0.0)


# ------------------------------------------------------------------------------------------------ planes


@njit(**_INNER)
def _plane(q, w, layer, i, sign, slope, width):
    """An upper plane of sign * (pre-activation i of the layer), into PLANE; returns its constant."""
    F, a = w.F, w.F[PLANE]
    if layer == 0:
        for t in range(width):
            a[t] = sign * w.Wc[i, t]
        return sign * F[ZC, i]
    v = F[V]
    m = q.index[SIZES, layer]
    at = q.index[WEIGHT_AT, layer] + i * m
    for t in range(m):
        v[t] = sign * q.weights[at + t]
    constant = sign * q.biases[q.index[BIAS_AT, layer] + i]
    while layer > 0:
        layer -= 1
        at, n = q.index[BIAS_AT, layer], q.index[SIZES, layer + 1]
        for j in range(n):
            c, zl, zu = v[j], w.bounds[0, at + j], w.bounds[1, at + j]
            if zu <= 0.0:
                v[j] = 0.0
            elif zl < 0.0:
                if c > 0.0:
                    v[j] = c * (zu / (zu - zl))
                    constant -= v[j] * zl
                elif slope[at + j] == 0:
                    v[j] = 0.0
        if layer == 0:
            for t in range(width):
                a[t] = 0.0
            for j in range(n):
                if v[j] != 0.0:
                    constant += v[j] * F[ZC, j]
                    for t in range(width):
                        a[t] += v[j] * w.Wc[j, t]
        else:
            m, weight, below = q.index[SIZES, layer], q.index[WEIGHT_AT, layer], F[W]
            for t in range(m):
                below[t] = 0.0
            for j in range(n):
                if v[j] != 0.0:
                    constant += v[j] * q.biases[at + j]
                    for t in range(m):
                        below[t] += v[j] * q.weights[weight + j * m + t]
            for t in range(m):
                v[t] = below[t]
    return constant


@njit(**_INNER)
def _most(q, w, items, budget, constant, fill):
    """The most that constant + PLANE.y reaches over box and ball, or a little more; `fill`: a y that does, into Y."""
    F, I, a = w.F, w.I, w.F[PLANE]
    count, total = 0, constant
    for k in range(items):
        first = I[FIRST, k]
        if I[IS_CHOICE, k] == 0:
            v = a[first]
            reach = F[UP, k] if v > 0.0 else -F[DOWN, k]
            if v * reach > 0.0:
                F[PIECE_GAIN, count], F[PIECE_REACH, count] = v * reach, reach
                F[PIECE_COST, count] = F[ITEM_JUMP, k] + F[ITEM_RATE, k] * abs(reach)
                I[PIECE_TO, count], I[PIECE_FROM, count], I[PIECE_DONE, count] = first, -1, 0
                total += v * reach
                count += 1
            continue
        at, cost, gain = -1, 0.0, 0.0
        while True:  # the concave hull, steepest step first
            best, ratio = -1, 0.0
            for c in range(first, I[FIRST, k + 1]):
                if a[c] > gain:
                    r = (a[c] - gain) / (F[COST, c] - cost) if F[COST, c] > cost else math.inf
                    if best < 0 or r > ratio or (r == ratio and a[c] > a[best]):
                        best, ratio = c, r
            if best < 0:
                break
            F[PIECE_GAIN, count], F[PIECE_REACH, count] = a[best] - gain, 1.0
            F[PIECE_COST, count] = max(F[COST, best] - cost, 0.0)
            I[PIECE_TO, count], I[PIECE_FROM, count], I[PIECE_DONE, count] = best, at, 0
            total += a[best] - gain
            at, cost, gain = best, F[COST, best], a[best]
            count += 1
    free = q.radius == math.inf or q.norm == MAXIMUM
    if not fill and (free or total < 0.0):
        return total
    if q.norm == SQUARED and not free:
        return min(total, _most_squared(w, items, budget, constant, fill))
    for t in range(I[FIRST, items]):
        F[Y, t] = 0.0
    value = constant
    for _ in range(count):
        best, ratio = -1, 0.0
        for p in range(count):
            if I[PIECE_DONE, p] == 0:
                r = F[PIECE_GAIN, p] / F[PIECE_COST, p] if F[PIECE_COST, p] > 0.0 else math.inf
                if best < 0 or r > ratio:
                    best, ratio = p, r
        share = 1.0 if free or F[PIECE_COST, best] <= budget else budget / F[PIECE_COST, best]
        value += share * F[PIECE_GAIN, best]
        budget -= share * F[PIECE_COST, best]
        F[Y, I[PIECE_TO, best]] += share * F[PIECE_REACH, best]
        if I[PIECE_FROM, best] >= 0:
            F[Y, I[PIECE_FROM, best]] -= share
        I[PIECE_DONE, best] = 1
        if share < 1.0:
            break
    return value


@njit(**_INNER)
def _at_price(w, items, price, y):
    """What is gained less what it costs at this price, and what is spent; the move itself into y."""
    F, I, a = w.F, w.I, w.F[PLANE]
    value, spent = 0.0, 0.0
    for k in range(items):
        first = I[FIRST, k]
        if I[IS_CHOICE, k] == 0:
            v, rate, moved = abs(a[first]), F[ITEM_RATE, k], F[MOVED, k]
            reach = F[UP, k] if a[first] > 0.0 else F[DOWN, k]
            go = reach if price * rate <= 0.0 else min(max(v / (2.0 * price * rate) - moved, 0.0), reach)
            cost = rate * go * (go + 2.0 * moved)
            value += v * go - price * cost
            spent += cost
            y[first] = go if a[first] > 0.0 else -go
            continue
        best, most = -1, 0.0
        for c in range(first, I[FIRST, k + 1]):
            y[c] = 0.0
            if a[c] - price * F[COST, c] > most:
                best, most = c, a[c] - price * F[COST, c]
        if best >= 0:
            value += most
            spent += F[COST, best]
            y[best] = 1.0
    return value, spent


@njit(**_ONCE)
def _most_squared(w, items, budget, constant, fill):
    """l2: any price gives a bound; bisection to the one that spends the budget, with guesses from the free numbers."""
    F, I, a, y = w.F, w.I, w.F[PLANE], w.F[Y]
    square, price = 0.0, 0.0
    for k in range(items):
        first = I[FIRST, k]
        if I[IS_CHOICE, k] == 0:
            if F[ITEM_RATE, k] > 0.0:
                square += a[first] * a[first] / F[ITEM_RATE, k]
        else:
            for c in range(first, I[FIRST, k + 1]):
                if F[COST, c] > 0.0:
                    price = max(price, a[c] / F[COST, c])
    if budget > 0.0:
        price = 2.0 * max(price, 0.5 * math.sqrt(square / budget))
    everything, spent = _at_price(w, items, 0.0, y)
    if not 0.0 < price < math.inf or spent <= budget:
        return constant + everything
    low, high = 0.0, price
    best, over_spent, under_spent = math.inf, 0.0, 0.0
    for step in range(80):
        value, spent = _at_price(w, items, price, y)
        best = min(best, constant + value + price * budget)
        if spent > budget:
            low, over_spent = price, spent
        else:
            high, under_spent = price, spent
        if high - low <= 1e-14 * high or abs(spent - budget) <= 1e-14 * budget:
            break
        guess = 0.0
        if step < 12:  # numbers that are neither unmoved nor at their end spend what the others leave
            left, square = budget - spent, 0.0
            for k in range(items):
                first = I[FIRST, k]
                if I[IS_CHOICE, k] == 0 and F[ITEM_RATE, k] > 0.0:
                    rate, moved, go = F[ITEM_RATE, k], F[MOVED, k], abs(y[first])
                    reach = F[UP, k] if a[first] > 0.0 else F[DOWN, k]
                    if 0.0 < go < reach:
                        square += a[first] * a[first] / rate
                        left += rate * go * (go + 2.0 * moved) + rate * moved * moved
            if square > 0.0 and left > 0.0:
                guess = 0.5 * math.sqrt(square / left)
        if low < guess < high:
            price = guess
        elif low > 0.0 and high > 4.0 * low:
            price = math.sqrt(low * high)
        else:
            price = 0.5 * (low + high)
    if fill and low > 0.0 and over_spent > budget:  # a mixture that spends the budget
        _at_price(w, items, low, F[Y_LOW])
        _, under_spent = _at_price(w, items, high, y)
        share = (budget - under_spent) / (over_spent - under_spent) if over_spent > under_spent else 0.0
        share = min(max(share, 0.0), 1.0)
        for t in range(I[FIRST, items]):
            y[t] += share * (F[Y_LOW, t] - y[t])
    return best


@njit(**_ONCE)
def _bound_hidden(q, w, d, items, budget, known):
    """Bounds of the ReLUs, starting from the `known` ones. Returns EMPTY (a split ReLU cannot be on its side), OPEN (a
    tie) or CLOSED (all is well).
    """
    width, zl, zu, rule = w.I[FIRST, items], w.bounds[0], w.bounds[1], w.F[RULE]
    for layer in range(q.layers - 1):
        at = q.index[BIAS_AT, layer]
        for i in range(q.index[SIZES, layer + 1]):
            h = at + i
            low, high = known[0, h], known[1, h]
            side = w.side[d, h]
            if side == 1:
                low = max(low, 0.0)
            elif side == 2:
                high = min(high, 0.0)
            if layer > 0 and low < 0.0 < high:
                least, most = _interval(q, w, layer, i)
                low, high = max(low, least - q.slack[h]), min(high, most + q.slack[h])
            unstable = low < 0.0 < high
            for which in range(1, 3):
                if side == which or unstable:
                    sign = 3.0 - 2.0 * which
                    constant = _plane(q, w, layer, i, sign, rule, width)
                    most = q.slack[h] + _most(q, w, items, budget, constant, False)
                    if which == 1:
                        high = min(high, most)
                    else:
                        low = max(low, -most)
            if low > high:
                return EMPTY
            tie = TIE * (high - low) + DOUBT * q.slack[h]
            if layer < q.layers - 2 and low < 0.0 < high and abs(high + low) <= tie:
                return OPEN
            zl[h], zu[h] = low, high
            rule[h] = 1.0 if low >= 0.0 or (high > 0.0 and high > -low) else 0.0
    return CLOSED


@njit(**_ONCE)
def _interval(q, w, layer, i):
    """Bounds of a pre-activation from those of the layer below, each at its worst."""
    m, at = q.index[SIZES, layer], q.index[BIAS_AT, layer - 1]
    weight = q.index[WEIGHT_AT, layer] + i * m
    low = high = q.biases[q.index[BIAS_AT, layer] + i]
    for j in range(m):
        v, most = q.weights[weight + j], w.bounds[1, at + j]
        if most > 0.0:
            least = max(w.bounds[0, at + j], 0.0)
            low += v * (least if v > 0.0 else most)
            high += v * (most if v > 0.0 else least)
    return low, high


# ------------------------------------------------------------------------------------------------ closing


@njit(**_INNER)
def _set_pattern(q, w, width):
    """Which ReLUs are active at Y, into PATTERN."""
    F = w.F
    for i in range(q.index[SIZES, 1]):
        z = F[ZC, i]
        for t in range(width):
            z += w.Wc[i, t] * F[Y, t]
        F[ACT, i] = z
    for layer in range(1, q.layers - 1):
        m, at = q.index[SIZES, layer], q.index[BIAS_AT, layer]
        for i in range(q.index[SIZES, layer + 1]):
            z = q.biases[at + i]
            for j in range(m):
                z += q.weights[q.index[WEIGHT_AT, layer] + i * m + j] * max(F[ACT, at - m + j], 0.0)
            F[ACT, at + i] = z
    for h in range(w.side.shape[1]):
        F[PATTERN, h] = 1.0 if F[ACT, h] > 0.0 else 0.0


@njit(**_INNER)
def _add_row(q, w, rows, layer, i, sign, slope, width):
    """Make a row's plane, scaled to a largest term of 1, unless it is there; returns its place (-1: no room)."""
    if rows >= MOST_ROWS:
        return -1
    at = q.index[BIAS_AT, layer]
    for h in range(w.side.shape[1]):
        stable = w.bounds[0, h] >= 0.0 or w.bounds[1, h] <= 0.0
        w.bits[rows, h] = 0 if h >= at else w.bounds[1, h] > 0.0 if stable else slope[h] > 0.5
    for r in range(rows):
        same = w.about[0, r] == layer and w.about[1, r] == i
        for h in range(at if same else 0):
            same &= w.bits[r, h] == w.bits[rows, h]
        if same:
            return r
    constant = _plane(q, w, layer, i, sign, w.bits[rows], width)
    share = 0.0
    for t in range(width):
        share = max(share, abs(w.F[PLANE, t]) * w.F[SIZE, t])
    size = max(share, abs(constant))
    size = 1.0 / size if size > 0.0 else 1.0
    for t in range(width):
        w.A[rows, t] = w.F[PLANE, t] * size
    w.R[CONSTANT, rows], w.R[SLACK, rows] = constant * size, q.slack[at + i] * size
    w.R[SCALE, rows], w.R[SHARE, rows] = size, share * size
    w.about[0, rows], w.about[1, rows], w.about[2, rows] = layer, i, np.int64(sign)
    return rows


@njit(**_INNER)
def _value(q, w, rows, items, budget, m):
    """The most of the combination of rows, their slack included; the point that reaches it into Y."""
    width, constant = w.I[FIRST, items], 0.0
    for t in range(width):
        w.F[PLANE, t] = 0.0
    for r in range(rows):
        if m[r] > 0.0:
            constant += m[r] * (w.R[CONSTANT, r] + w.R[SLACK, r])
            for t in range(width):
                w.F[PLANE, t] += m[r] * w.A[r, t]
    return _most(q, w, items, budget, constant, True)


@njit(**_INNER)
def _at(w, r, width):
    value = w.R[CONSTANT, r]
    for t in range(width):
        value += w.A[r, t] * w.F[Y, t]
    return value


@njit(**_ONCE)
def _multipliers(q, w, rows, items, budget, m, trial):
    """Look for multipliers m whose combination is negative everywhere: exact line searches towards the worst row.

    Returns True when they are found; Y then or otherwise holds the last answer to them.
    """
    width = w.I[FIRST, items]
    value = _value(q, w, rows, items, budget, m)
    for _ in range(DIRECTIONS):
        if value < 0.0:
            return True
        worst, least = -1, -1e-13
        for r in range(rows):
            p = _at(w, r, width)
            if p < least:
                worst, least = r, p
        if worst < 0:  # Y obeys every row: no multipliers help
            return False
        low, high, best = 0.0, 1.0, value
        for _ in range(HALVINGS):
            share = 0.5 * (low + high)
            for r in range(rows):
                trial[r] = (1.0 - share) * m[r] + (share if r == worst else 0.0)
            now = _value(q, w, rows, items, budget, trial)
            best = min(best, now)
            if now < 0.0:
                for r in range(rows):
                    m[r] = trial[r]
                return True
            slope = _at(w, worst, width)
            for r in range(rows):
                if m[r] > 0.0:
                    slope -= m[r] * _at(w, r, width)
            if slope < 0.0:
                low = share
            else:
                high = share
        for r in range(rows):
            m[r] = (1.0 - low) * m[r] + (low if r == worst else 0.0)
        now = _value(q, w, rows, items, budget, m)
        if low == 0.0 or now > value - 1e-9 * abs(value):
            return False
        value = now
    return False


@njit(**_INNER)
def _add_conditions(q, w, rows, slope, width):
    for r in range(q.index[SIZES, q.layers]):
        rows = max(rows, 1 + _add_row(q, w, rows, q.layers - 1, r, 1.0, slope, width))
    return rows


@njit(**_INNER)
def _add_sides(q, w, d, rows, slope, width, deep):
    """Rows of the split ReLUs; `deep`: only of those whose rows depend on slopes."""
    for layer in range(1 if deep else 0, q.layers - 1):
        at = q.index[BIAS_AT, layer]
        for i in range(q.index[SIZES, layer + 1]):
            side = w.side[d, at + i]
            if side != 0:
                rows = max(rows, 1 + _add_row(q, w, rows, layer, i, 1.0 if side == 1 else -1.0, slope, width))
    return rows


@njit(**_INNER)
def _add_hints(q, w, d, rows, width, log, at, m):
    """The rows of the record with their multipliers, which are those of rows scaled to a largest coefficient of 1."""
    hidden, conditions = w.side.shape[1], q.index[SIZES, q.layers]
    for r in range(MOST_ROWS):
        m[r] = 0.0
    listed = np.int64(log[at + HEAD - 1])
    for k in range(listed if listed < MOST_HINTS else MOST_HINTS):
        row = at + HEAD + hidden + k * (2 + hidden)
        about, times = np.int64(log[row]), log[row + 1]
        if not times > 0.0 or about >= conditions:
            continue
        layer, i, sign = q.layers - 1, about, 1.0
        if about < 0:
            side = w.side[d, -1 - about]
            if side == 0:
                continue
            layer, sign = 0, 1.0 if side == 1 else -1.0
            while q.index[BIAS_AT, layer + 1] <= -1 - about:
                layer += 1
            i = -1 - about - q.index[BIAS_AT, layer]
        place = _add_row(q, w, rows, layer, i, sign, log[row + 2 : row + 2 + hidden], width)
        rows = max(rows, place + 1)
        if place >= 0 and w.R[SHARE, place] > 0.0:
            m[place] += times / w.R[SHARE, place]
    return rows


@njit(**_ONCE)
def _close(q, w, d, items, budget, log, at):
    """Rows and multipliers (in R) that close the region: returns the number of rows; 0 when it was not closed."""
    F, I, m = w.F, w.I, w.R[MULTIPLIER]
    width = I[FIRST, items]
    for k in range(items):
        for t in range(I[FIRST, k], I[FIRST, k + 1]):
            F[SIZE, t] = 1.0 if I[IS_CHOICE, k] else max(F[UP, k], F[DOWN, k])
    rows = _add_hints(q, w, d, 0, width, log, at, m)
    if rows > 0 and _value(q, w, rows, items, budget, m) < 0.0:
        return rows
    tried, kept, least = rows, 0, math.inf
    for r in range(rows):
        if m[r] > m[kept]:
            kept = r
    rows = _add_conditions(q, w, rows, F[RULE], width)
    for attempt in range(2):
        while tried < rows:
            for r in range(MOST_ROWS):
                m[r] = 1.0 if r == tried else 0.0
            value = _value(q, w, rows, items, budget, m)
            if value < 0.0:
                return rows
            if value < least:
                least, kept = value, tried
                _set_pattern(q, w, width)
            tried += 1
        if attempt == 0:
            rows = _add_conditions(q, w, rows, F[PATTERN], width)
    rows = _add_sides(q, w, d, rows, F[RULE], width, False)
    rows = _add_hints(q, w, d, rows, width, log, at, m)
    total = 0.0
    for r in range(rows):
        total += m[r]
    for r in range(MOST_ROWS):
        m[r] = m[r] / total if total > 0.0 else 1.0 if r == kept else 0.0
    for _ in range(REFINED if rows > 1 else 0):
        if _multipliers(q, w, rows, items, budget, m, w.R[TRIAL]):
            return rows
        _set_pattern(q, w, width)
        more = _add_sides(q, w, d, _add_conditions(q, w, rows, F[PATTERN], width), F[PATTERN], width, True)
        if more == rows:
            break
        rows = more
    return 0


# ------------------------------------------------------------------------------------------------ the tree


@njit(**_ONCE)
def _split(q, w, d, which, value, second):
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


@njit(**_ONCE)
def _index(log, hidden, phase):
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


@njit(**_FAST, cache=True)
def walk(q, log, phase, low, high, mask, side, known):
    """Close the tree that the records of a phase describe, from the given box down.

    A recorded split is dropped where its node can be closed as it is. `known`: bounds of the ReLUs that hold in the
    box, which become those of the first box. Returns the tree in preorder: (what became of a node, feature or -2 - h
    that it was split at, end of its rows, its record), the values of the splits, and the rows: (layer, neuron, sign),
    multipliers, slopes.
    """
    hidden, columns, features = len(side), len(mask), len(low)
    tree = _index(log, hidden, phase)
    total = tree.shape[1]
    deep = tree[4].max() + 1 if total > 0 else 1
    widest = max(hidden, columns, features + 1, q.index[SIZES].max())
    w = Work(
        np.zeros((FLOAT_ROWS, widest)), np.zeros((INT_ROWS, widest + 1), dtype=np.int64),
        np.zeros((len(q.z), columns)), np.zeros((2, hidden)), np.zeros((deep, features)),
        np.zeros((deep, features)), np.zeros((deep, columns), dtype=np.uint8),
        np.zeros((deep, hidden), dtype=np.uint8), np.zeros((MOST_ROWS + 1, columns)), np.zeros((6, MOST_ROWS + 1)),
        np.zeros((3, MOST_ROWS + 1), dtype=np.int64), np.zeros((MOST_ROWS + 1, hidden), dtype=np.uint8),
    )  # fmt: skip
    w.low[0], w.high[0], w.mask[0], w.side[0] = low, high, mask, side
    room = 2 * total + MOST_ROWS
    nodes, values = np.zeros((total, 4), dtype=np.int64), np.zeros(total)
    about, multiplier = np.zeros((room, 3), dtype=np.int64), np.zeros(room)
    bits = np.zeros((room, hidden), dtype=np.uint8)
    stack = np.zeros(total + 1, dtype=np.int64)
    fresh = hidden > 0 and known[0, 0] == -math.inf
    waiting, count, ends = 1 if total > 0 else 0, 0, 0
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        at, child, d = tree[0, node], tree[1, node], tree[4, node]
        if d > 0:
            up = tree[0, tree[2, node]]
            _split(q, w, d - 1, np.int64(log[up + 3]), log[up + 4], tree[3, node] == 1)
        became, rows = OPEN, 0
        if d == 0 or child < 0 or log[at + 5] >= q.radius:
            items, budget = _clip(q, w, d)
            became = EMPTY if items < 0 else _bound_hidden(q, w, d, items, budget, known)
            if became == CLOSED:
                if d == 0 and fresh:
                    known[:] = w.bounds
                rows = _close(q, w, d, items, budget, log, at)
                became = CLOSED if 0 < rows <= room - ends else OPEN
        if became == CLOSED:
            for r in range(rows):
                if w.R[MULTIPLIER, r] > 0.0:
                    multiplier[ends] = w.R[MULTIPLIER, r] * w.R[SCALE, r]
                    for k in range(3):
                        about[ends, k] = w.about[k, r]
                    for h in range(hidden):
                        bits[ends, h] = w.bits[r, h]
                    ends += 1
        elif became == OPEN and child >= 0:
            became = SPLIT
            nodes[count, 1], values[count] = np.int64(log[at + 3]), log[at + 4]
            for k in range(2):
                stack[waiting] = child + 1 - k
                waiting += 1
        nodes[count, 0], nodes[count, 2], nodes[count, 3] = became, ends, at
        count += 1
    return nodes[:count], values[:count], about[:ends], multiplier[:ends], bits[:ends]
