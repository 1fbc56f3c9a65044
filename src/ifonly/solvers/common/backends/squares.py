"""Outer approximation of squares, for solvers that have none: exact to the gap.

Each squared column v gets a column s >= v^2, given by tangents  s >= 2 a v - a^2.  Every round's optimum is a lower
bound; tangents are added where its solution lies below the parabola, until it no longer does. They are also added at
the optimum of the quadratic program that is left when the whole columns keep the solution's values: with those, a round
that comes back to the same values is the last (Duran and Grossmann), where tangents at the solutions alone creep up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.solvers.common.backends.protocol import Floats, Form, Outcome, Settings, SolveStatus

FIRST_TANGENTS = 9
MOST_ROUNDS = 60
REDRAW = 4.0
"""New tangents are drawn all over what a solution leaves when its value has fallen by this factor."""
SQUARES_GAP = 1e-9
"""Objective: a round is the last when the tangents are this close to the squares (rows hold to no more)."""

Indices = NDArray[np.intp]


def with_squares(form: Form, squared: Indices) -> Form:
    """One more column for each square, at the end, and the first tangents. Costs of squares move to these columns."""
    columns, more = len(form.cost), len(squared)
    highest = np.maximum(form.lower[squared] ** 2, form.upper[squared] ** 2)
    wide = replace(
        form,
        cost=np.concatenate([form.cost, form.square[squared]]),
        square=np.zeros(columns + more),
        rows=np.hstack([form.rows, np.zeros((len(form.limit), more))]),
        lower=np.concatenate([form.lower, np.zeros(more)]),
        upper=np.concatenate([form.upper, highest]),
        integer=np.concatenate([form.integer, np.zeros(more, dtype=bool)]),
    )
    for share in np.linspace(0.0, 1.0, FIRST_TANGENTS):
        at = form.lower[squared] + share * (form.upper[squared] - form.lower[squared])
        wide = with_tangents(wide, squared, columns + np.arange(more), at)
    return wide


def with_tangents(form: Form, at: Indices, square: Indices, a: Floats) -> Form:
    """2 a v - s <= a^2 for each given column. Those of whole columns are drawn at whole numbers, where they are exact.

    (They would hold anywhere; but with others HiGHS 1.15 once proved a bound that a row of the program refutes.)
    """
    a = np.where(form.integer[at], np.round(a), a)
    rows = np.zeros((len(at), len(form.cost)))
    each = np.arange(len(at))
    rows[each, at], rows[each, square] = 2.0 * a, -1.0
    return replace(form, rows=np.vstack([form.rows, rows]), limit=np.concatenate([form.limit, a**2]))


def outer_approximation(form: Form, settings: Settings, solve: Callable[[Form, Settings], Outcome]) -> Outcome:
    """Solve a form with squares by a solver of forms without; one without is passed on."""
    from ifonly.solvers.common.backends.highs import with_whole_columns_fixed

    squared = np.flatnonzero(form.square)
    if not len(squared):
        return solve(form, settings)
    begun, nodes, columns = time.perf_counter(), 0, len(form.cost)
    linear, squares = with_squares(form, squared), columns + np.arange(len(squared))
    bound, best, best_value, drawn = -math.inf, None, math.inf, math.inf
    for _ in range(MOST_ROUNDS):
        left = settings
        if settings.seconds is not None:
            left = replace(settings, seconds=max(settings.seconds - (time.perf_counter() - begun), 1e-3))
        outcome = solve(linear, left)
        nodes += outcome.nodes
        if outcome.values is None and best is None:
            return replace(outcome, nodes=nodes)
        if outcome.values is None:  # "infeasible" after a solution is not so
            ending = SolveStatus.TROUBLE if outcome.ending is SolveStatus.INFEASIBLE else outcome.ending
            return Outcome(ending=ending, values=best, bound=bound, nodes=nodes)
        bound = max(bound, outcome.bound)
        v, s = outcome.values[:columns], outcome.values[columns:]
        fixed = with_whole_columns_fixed(form, v)
        for point in (v, fixed):
            if point is not None and (value := float(form.cost @ point + form.square @ point**2)) < best_value:
                best, best_value = point, value
        short = form.square[squared] * (v[squared] ** 2 - s)
        if outcome.ending is not SolveStatus.SOLVED or short.sum() <= SQUARES_GAP or best_value - bound <= SQUARES_GAP:
            return replace(outcome, values=best, bound=min(bound, best_value), nodes=nodes)
        if 0.0 < best_value < drawn / REDRAW:
            drawn = best_value
            for at in _within(form, squared, best_value):
                linear = with_tangents(linear, squared, squares, at)
        if fixed is not None:
            linear = with_tangents(linear, squared, squares, fixed[squared])
        below = np.flatnonzero(short > 0.0)
        linear = with_tangents(linear, squared[below], squares[below], v[squared[below]])
    return Outcome(ending=SolveStatus.TROUBLE, values=best, bound=bound, nodes=nodes)


def _within(form: Form, squared: Indices, value: float) -> list[Floats]:
    """Places all over what an objective of this value leaves to each square: only those matter from now on."""
    reach = np.sqrt(value / form.square[squared])
    shares = np.linspace(-1.0, 1.0, FIRST_TANGENTS)
    return [np.clip(share * reach, form.lower[squared], form.upper[squared]) for share in shares]
