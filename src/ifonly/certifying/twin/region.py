"""One region in floating point, as `ifonly.certificate.check.region` has it in integers: corner, ball, bounds, planes.

Every bound is taken too high by more than floating point can be off. What the checker could decide in another way for
a difference of that size (which of two slopes it takes, whether a ReLU is stable) is not decided here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.certifying.twin.layout import (
    BASE,
    BIAS_AT,
    CHOICE,
    CLOSED,
    COST,
    DOUBT,
    DOWN,
    EMPTY,
    FARTHEST,
    FIRST,
    FOR_ROWS,
    FORCED,
    INNER,
    IS_CHOICE,
    ITEM_JUMP,
    ITEM_RATE,
    JUMP,
    MAXIMUM,
    MOVED,
    NARROW,
    NEAR,
    ONCE,
    OPEN,
    PIECE_COST,
    PIECE_DONE,
    PIECE_FROM,
    PIECE_GAIN,
    PIECE_REACH,
    PIECE_TO,
    PLANE,
    RATE,
    RELATIVE,
    ROOM,
    RULE,
    SIZES,
    SQUARED,
    START,
    STEP,
    TIE,
    UP,
    WEIGHT_AT,
    Y_LOW,
    ZC,
    V,
    W,
    Y,
)


@njit(**ONCE)
def clip(q, w, d):
    """The cheapest corner of box d and what the ball leaves around it. Returns (items, budget); no items: -1."""
    w.doubtful[0] = 0
    spent = _corner(q, w, d)
    if spent < 0.0:
        return -1, 0.0
    budget = q.radius - spent
    if abs(budget) <= NEAR * RELATIVE * q.radius < math.inf:
        w.doubtful[0] = 1
    if budget < -RELATIVE * q.radius:
        return -1, 0.0
    budget = max(budget, 0.0) + RELATIVE * (q.radius if q.radius < math.inf else 0.0)
    for i in range(q.index[SIZES, 1]):
        w.F[ZC, i] = q.z[i]
    items, width = 0, 0
    for g in range(q.price.shape[1]):
        if q.index[CHOICE, g] == 0:
            added = _add_number(q, w, d, g, budget, items, width)
        else:
            added = _add_choice(q, w, d, g, budget, items, width)
        if added > 0:
            items, width = items + 1, width + added
    w.I[FIRST, items] = width
    return items, budget


@njit(**ONCE)
def _corner(q, w, d):
    """The cheapest value of each feature, into BASE; returns what they cost, -1 when a feature has none."""
    spent = 0.0
    for g in range(q.price.shape[1]):
        c, cost = q.index[START, g], 0.0
        if q.index[CHOICE, g] == 0:
            lo, hi = w.low[d, g], w.high[d, g]
            if lo > hi:
                size = RELATIVE * (abs(lo) + abs(hi))
                if lo - hi <= NEAR * size:
                    w.doubtful[0] = 1
                if lo - hi > size:
                    return -1.0
                hi = lo
            w.F[BASE, g] = max(lo, min(hi, 0.0))
            cost = _number_cost(q, g, abs(w.F[BASE, g]))
        else:
            best = -1
            for o in range(q.index[START, g + 1] - c):
                if w.mask[d, c + o] and (best < 0 or q.cost[c + o] < q.cost[c + best]):
                    best = o
            if best < 0:
                return -1.0
            w.F[BASE, g] = best
            cost = q.cost[c + best]
        spent = max(spent, cost) if q.norm == MAXIMUM else spent + cost
    return spent


@njit(**ONCE)
def _add_number(q, w, d, g, budget, items, width):
    """The item of a number that can move within the ball, and its column; returns the number of columns."""
    F, c, base = w.F, q.index[START, g], w.F[BASE, g]
    n = q.index[SIZES, 1]
    if base != 0.0:
        for i in range(n):
            F[ZC, i] += base * q.first[i, c]
    up, down = _reaches(q, w, d, g, budget)
    if up <= 0.0 and down <= 0.0:
        return 0
    F[UP, items], F[DOWN, items], F[MOVED, items] = up, down, abs(base)
    F[ITEM_RATE, items] = q.price[RATE, g]
    F[ITEM_JUMP, items] = q.price[JUMP, g] if base == 0.0 else 0.0
    w.I[IS_CHOICE, items], w.I[FIRST, items] = 0, width
    for i in range(n):
        w.Wc[i, width] = q.first[i, c]
    return 1


@njit(**ONCE)
def _add_choice(q, w, d, g, budget, items, width):
    """The item of a choice with options within the ball, and their columns; returns the number of columns."""
    c, n, begin = q.index[START, g], q.index[SIZES, 1], width
    at, old = c + np.int64(w.F[BASE, g]), c + q.option[g]
    if at != old:
        for i in range(n):
            w.F[ZC, i] += q.first[i, at] - q.first[i, old]
    most = q.radius if q.norm == MAXIMUM else budget
    for k in range(c, q.index[START, g + 1]):
        beyond = q.cost[k] - (0.0 if q.norm == MAXIMUM else q.cost[at])
        if w.mask[d, k] and k != at:
            if abs(beyond - most) <= NEAR * RELATIVE * most < math.inf:
                w.doubtful[0] = 1
            if beyond <= most * (1.0 + RELATIVE):
                w.F[COST, width] = beyond
                for i in range(n):
                    w.Wc[i, width] = q.first[i, k] - q.first[i, at]
                width += 1
    if width > begin:
        w.I[IS_CHOICE, items], w.I[FIRST, items] = 1, begin
    return width - begin


@njit(**INNER)
def _number_cost(q, g, change):
    if q.norm == SQUARED:
        return q.price[RATE, g] * change * change
    return q.price[RATE, g] * change + (q.price[JUMP, g] if change > 0.0 else 0.0)


@njit(**ONCE)
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
        if reach < math.inf and abs(reach / step - np.round(reach / step)) <= 10.0 * TIE:
            w.doubtful[0] = 1
        up, down = np.floor(up / step + TIE) * step, np.floor(down / step + TIE) * step
    return max(up, 0.0), max(down, 0.0)


# ------------------------------------------------------------------------------------------------ planes


@njit(**INNER)
def plane(q, w, layer, i, sign, slope, width):
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
            if zl >= 0.0:  # first, as the checker has it
                continue
            if zu <= 0.0:
                v[j] = 0.0
            elif c > 0.0:
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


@njit(**INNER)
def most_of(norm, F, I, items, budget, constant, fill):
    """The most that constant + PLANE.y reaches over box and ball, or a little more; `fill`: a y that does, into Y.

    No ball: an infinite budget.
    """
    a = F[PLANE]
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
    free = budget == math.inf or norm == MAXIMUM
    if not fill and (free or total < 0.0):
        return total
    if norm == SQUARED and not free:
        return min(total, _most_squared(F, I, items, budget, constant, fill))
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


@njit(**INNER)
def _at_price(F, I, items, price, y):
    """What is gained less what it costs at this price, and what is spent; the move itself into y."""
    a = F[PLANE]
    value, spent = 0.0, 0.0
    for k in range(items):
        first = I[FIRST, k]
        if I[IS_CHOICE, k] == 0:
            v, rate, moved = abs(a[first]), F[ITEM_RATE, k], F[MOVED, k]
            reach = F[UP, k] if a[first] > 0.0 else F[DOWN, k]
            go = reach if v > 0.0 else 0.0
            if price * rate > 0.0:
                go = min(max(v / (2.0 * price * rate) - moved, 0.0), reach)
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


@njit(**ONCE)
def _most_squared(F, I, items, budget, constant, fill):
    """l2: any price gives a bound; bisection to the one that spends the budget, with guesses from the free numbers."""
    a, y = F[PLANE], F[Y]
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
    everything, spent = _at_price(F, I, items, 0.0, y)
    if not 0.0 < price < math.inf or spent <= budget:
        return constant + everything
    low, high = 0.0, price
    best, over_spent, under_spent = math.inf, 0.0, 0.0
    for step in range(80):
        value, spent = _at_price(F, I, items, price, y)
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
        _at_price(F, I, items, low, F[Y_LOW])
        _, under_spent = _at_price(F, I, items, high, y)
        share = (budget - under_spent) / (over_spent - under_spent) if over_spent > under_spent else 0.0
        share = min(max(share, 0.0), 1.0)
        for t in range(I[FIRST, items]):
            y[t] += share * (F[Y_LOW, t] - y[t])
    return best


@njit(**ONCE)
def bound_hidden(q, w, d, items, budget, known):
    """Bounds of the ReLUs, starting from the `known` ones. Returns EMPTY (a split ReLU cannot be on its side), OPEN
    (the checker may see it in another way) or CLOSED (all is well).

    The checker's bounds are inside these, by at most `doubt`. What hangs on more than that difference:

    - which slope the checker takes below a ReLU, at a tie: left open;
    - whether a ReLU is stable. Of a row's own slopes the one is taken that a stable ReLU would have (FORCED). A split
      ReLU that may be 0 everywhere is left open: it counts as active although it was split to be inactive. Bounds that
      the checker may not have computed, since the ReLU is stable without them, are left open too, in every layer: a
      box below is not empty for the checker because of a bound of the whole that only floating point has;
    - chords. Planes can leave the interval that a chord was drawn for, and there a difference in the interval counts
      for more, by how far they leave it in widths of the interval. The slack of what follows grows by that; of rows,
      whose own slopes may lead farther out, it is FOR_ROWS times as large (ROOM).
    """
    stretch = 1.0
    for layer in range(q.layers - 1):
        farthest = 0.0
        for i in range(q.index[SIZES, layer + 1]):
            became, outside = _bound_neuron(q, w, d, items, budget, known, layer, i, stretch)
            if became != CLOSED:
                return became
            farthest = max(farthest, outside)
        stretch *= 1.0 + farthest
        if stretch > FARTHEST:
            return OPEN
    for h in range(q.index[BIAS_AT, q.layers - 1], len(q.slack)):
        w.F[ROOM, h], w.F[NARROW, h] = FOR_ROWS * q.slack[h] * stretch, q.narrow[h] * stretch
    if w.doubtful[0] and w.side.shape[1] > 0 and known[0, 0] == -math.inf:
        return OPEN  # bounds of the whole count in every box: rather the checker's own
    return CLOSED


@njit(**ONCE)
def _bound_neuron(q, w, d, items, budget, known, layer, i, stretch):
    """Bounds of one ReLU. Returns what `bound_hidden` does, and how far planes leave its interval."""
    h = q.index[BIAS_AT, layer] + i
    slack, narrow = q.slack[h] * stretch, q.narrow[h] * stretch
    doubt = DOUBT * slack
    low, high = known[0, h], known[1, h]
    side = w.side[d, h]
    if side == 1:
        low = max(low, 0.0)
    elif side == 2:
        high = min(high, 0.0)
    if layer > 0 and low < 0.0 < high:
        least, most = _interval(q, w, layer, i)
        least, most = least - slack, most + slack
        low, high = max(low, least), min(high, most)
        if -doubt <= least < 0.0 or 0.0 < most <= doubt:
            return OPEN, 0.0
        if abs(least) <= narrow or abs(most) <= narrow:
            w.doubtful[0] = 1
    unstable = low < 0.0 < high
    lowest, highest = low, high
    for which in range(1, 3):
        if side == which or unstable:
            constant = plane(q, w, layer, i, 3.0 - 2.0 * which, w.F[RULE], w.I[FIRST, items])
            most = slack + most_of(q.norm, w.F, w.I, items, budget, constant, False)
            if abs(most) <= narrow:
                w.doubtful[0] = 1
            if which == 1:
                high, highest = min(high, most), most
            else:
                low, lowest = max(low, -most), -most
    if low > high:
        if low - high <= narrow:
            w.doubtful[0] = 1
        return EMPTY, 0.0
    w.bounds[0, h], w.bounds[1, h] = low, high
    w.F[RULE, h] = 1.0 if low >= 0.0 or (high > 0.0 and high > -low) else 0.0
    w.F[FORCED, h], w.F[ROOM, h], w.F[NARROW, h] = -1.0, FOR_ROWS * slack, narrow
    if low < 0.0 and low >= -doubt and side == 2:
        return OPEN, 0.0
    if not low < 0.0 < high:
        return CLOSED, 0.0
    if min(-low, high) <= narrow:
        w.doubtful[0] = 1
    if layer < q.layers - 2:
        if abs(high + low) <= TIE * (high - low) + doubt:
            return OPEN, 0.0
        if abs(high + low) <= NEAR * TIE * (high - low) + narrow:
            w.doubtful[0] = 1
    return _outside(w, h, max(highest - high, low - lowest, 0.0), slack, known[0, h] == -math.inf)


@njit(**ONCE)
def _outside(w, h, outside, slack, fresh):
    """What becomes of an unstable ReLU, and how far planes leave its interval, in what a difference counts for."""
    low, high, doubt = w.bounds[0, h], w.bounds[1, h], DOUBT * slack
    if low < -doubt and high > doubt:
        return CLOSED, DOUBT * outside / (high - low)
    if fresh:
        return OPEN, 0.0
    w.doubtful[0] = 1
    if low >= -doubt and high <= doubt:
        return CLOSED, (outside + high - low) / slack
    w.F[FORCED, h] = 1.0 if low >= -doubt else 0.0
    return CLOSED, DOUBT * outside / (high - low)


@njit(**ONCE)
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
