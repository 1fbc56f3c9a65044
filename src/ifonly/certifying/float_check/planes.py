"""Planes above a neuron over a region, and the most that one reaches over box and ball."""

from __future__ import annotations

import math

from numba import njit

from ifonly.certifying.float_check.layout import (
    BIAS_AT,
    COST,
    DOWN,
    FIRST,
    INNER,
    IS_CHOICE,
    ITEM_JUMP,
    ITEM_RATE,
    MAXIMUM,
    MOVED,
    ONCE,
    PIECE_COST,
    PIECE_DONE,
    PIECE_FROM,
    PIECE_GAIN,
    PIECE_REACH,
    PIECE_TO,
    PLANE,
    SIZES,
    SQUARED,
    UP,
    WEIGHT_AT,
    Y_LOW,
    ZC,
    V,
    W,
    Y,
)


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
