"""What each cell costs one person, and at which value it is entered: the closed form of every distance on cells."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.layout import FREE, INNER, MUST, ONCE, OUTER, SOURCES


@njit(**INNER)
def cost_of(x, value, jump, rates, squared):
    """Of a number that becomes `value`."""
    change = rates[0] * (value - x) if value > x else rates[1] * (x - value)
    if squared:
        return change * change
    return change + (jump if value != x else 0.0)


@njit(**INNER)
def first_above(x, step, open_end, lower):
    """The least value of a number that is > open_end and >= lower; on the grid through x, if there is one."""
    if step == 0.0:
        return max(lower, np.nextafter(open_end, math.inf)) if open_end >= lower else lower
    target = max(lower, open_end)
    value = x + step * math.floor((target - x) / step)
    while value <= open_end or value < lower:
        value += step
    return value


@njit(**INNER)
def last_below(x, step, end, upper):
    """The largest value of a number that is <= end and <= upper; on the grid through x, if there is one."""
    end = min(end, upper)
    if step == 0.0:
        return end
    value = x + step * math.ceil((end - x) / step)
    while value > end:
        value -= step
    return value


@njit(**ONCE)
def price_number(x, step, ends, cuts, jump, rates, squared, cost, value):
    """Costs and values of the cells of one number; returns the cell that x is in."""
    lower, upper = ends[0], ends[1]
    own = 0
    while own < len(cuts) and cuts[own] < x:
        own += 1
    for k in range(len(cuts) + 1):
        open_end = cuts[k - 1] if k > 0 else -math.inf
        end = cuts[k] if k < len(cuts) else math.inf
        cost[FREE, k] = cost[MUST, k] = math.inf
        value[FREE, k] = value[MUST, k] = x
        if not lower <= upper or upper <= open_end or lower > end:
            continue
        if k == own and lower <= x <= upper:
            cost[FREE, k] = 0.0
            if step > 0.0:
                for other in (x - step, x + step):
                    if max(lower, np.nextafter(open_end, math.inf)) <= other <= min(upper, end):
                        price = cost_of(x, other, jump, rates, squared)
                        if price < cost[MUST, k]:
                            cost[MUST, k], value[MUST, k] = price, other
            continue
        if k > own or (k == own and x < lower):
            entered = first_above(x, step, open_end, lower)
        else:
            entered = last_below(x, step, end, upper)
        if entered > open_end and entered <= end and lower <= entered <= upper:
            cost[FREE, k] = cost[MUST, k] = cost_of(x, entered, jump, rates, squared)
            value[FREE, k] = value[MUST, k] = entered
    return own


@njit(**ONCE)
def price_choice(option, classes, allowed, table, cost, value):
    """Costs and values of the cells of one choice: the cheapest allowed option of each."""
    for k in range(cost.shape[1]):
        cost[FREE, k] = cost[MUST, k] = math.inf
        value[FREE, k] = value[MUST, k] = option
    for o in range(len(classes)):
        k = np.int64(classes[o])
        if not allowed[o]:
            continue
        if table[o] < cost[FREE, k]:
            cost[FREE, k], value[FREE, k] = table[o], o
        if o != option and table[o] < cost[MUST, k]:
            cost[MUST, k], value[MUST, k] = table[o], o
    return np.int64(classes[option])


# size: the parts of a question that prices depend on, each an array
@with_cache(SOURCES, **OUTER)
def price_cells(
    factual, ends, allowed, option_cost, step, price, squared, choice, start, column, cuts, cost, value, own
):
    """Fill cost and value (2, cell) and own (feature); `cuts` holds the cuts of numbers, and the cells of options."""
    for g in range(len(factual)):
        cells = slice(start[g], start[g + 1])
        if choice[g]:
            columns = slice(column[g], column[g + 1])
            own[g] = price_choice(
                np.int64(factual[g]), cuts[1, columns], allowed[columns], option_cost[columns],
                cost[:, cells], value[:, cells],
            )  # fmt: skip
        else:
            own[g] = price_number(
                factual[g], step[g], ends[:, g], cuts[0, start[g] + 1 : start[g + 1]], price[0, g], price[1:, g],
                squared, cost[:, cells], value[:, cells],
            )  # fmt: skip
