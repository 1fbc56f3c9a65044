"""Many people in one call: the search for each in turn, or a scan of a table that holds every favourable row."""

from __future__ import annotations

import math

from numba import njit

from ifonly.search.kernels.closed_forms import MAXIMUM, OPTIONS
from ifonly.search.kernels.node import CHOICE, number_cost
from ifonly.search.kernels.tree import BEST, DONE, LOWER, NODES, PHASES, RADIUS, RESIDUAL, Person, begin_phase, run


@njit(**OPTIONS)
def search_people(pack, z, lo, hi, mask, cost, option, radius, first, last, slice_nodes, s, tree, lower, best, nodes):
    """Search for people first..last-1, results into lower (cost), best (points) and nodes.

    Returns (index, code): the first person whose slice was not enough (its state is in `tree`), or (last, DONE).
    """
    for i in range(first, last):
        person = Person(z[i], lo[i], hi[i], mask[i], cost[i], option[i])
        tree.number[LOWER] = 0.0
        tree.number[RADIUS] = radius
        tree.number[BEST] = math.inf
        tree.number[RESIDUAL] = math.inf
        tree.count[NODES] = 0
        tree.count[PHASES] = 0
        begin_phase(pack, person, s, tree)
        code = run(pack, person, s, tree, slice_nodes)
        if code != DONE:
            return i, code
        finish_person(tree, i, lower, best, nodes)
    return last, DONE


@njit(**OPTIONS)
def finish_person(tree, i, lower, best, nodes):
    """Copy a finished search into the results; the last entry of best[i] is the cost of the point."""
    lower[i] = tree.number[LOWER]
    n = len(tree.best)
    for f in range(n):
        best[i, f] = tree.best[f]
    best[i, n] = tree.number[BEST]
    nodes[i] = tree.count[NODES]


@njit(**OPTIONS)
def scan_table(norm, kind, start, rate, jump, table, unit, surely, factual, lo, hi, mask, cost, lower, best, nodes):
    """The nearest row of a table of all favourable points, for each person.

    `table` holds points (numbers in their own units, options by index); `surely` marks those that may be returned, the others
    only bound.
    """
    n = len(kind)
    for i in range(len(factual)):
        could, sure, where = math.inf, math.inf, -1
        for t in range(len(table)):
            total = 0.0
            for f in range(n):
                v = table[t, f]
                if kind[f] == CHOICE:
                    c = start[f] + int(v)
                    if not mask[i, c]:
                        total = math.inf
                        break
                    own = cost[i, c]
                else:
                    change = (v - factual[i, f]) / unit[f]
                    if change < lo[i, f] or change > hi[i, f]:
                        total = math.inf
                        break
                    own = number_cost(norm, rate[f], jump[f], change)
                total = max(total, own) if norm == MAXIMUM else total + own
                if total >= sure:
                    break
            could = min(could, total)
            if surely[t] and total < sure:
                sure = total
                where = t
        lower[i] = min(could, sure)
        best[i, n] = sure
        nodes[i] = len(table)
        for f in range(n):
            if where >= 0:
                best[i, f] = table[where, f] if kind[f] == CHOICE else (table[where, f] - factual[i, f]) / unit[f]
