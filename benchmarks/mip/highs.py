"""HiGHS through arrays, one thread, tight tolerances. Squares (l2) by outer approximation: it has no MIQP.

Each squared column v gets a column s >= v^2, given by tangents  s >= 2 a v - a^2.  Every round's optimum is a lower
bound; tangents are added where its solution lies below the parabola, until it no longer does.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.mip.inputs import Floats
from benchmarks.mip.outcome import TIGHTEST, Ending, Outcome, Settings
from benchmarks.mip.program import Program

FIRST_TANGENTS = 9
MOST_ROUNDS = 60
SQUARES_GAP = 1e-9
"""Scaled objective: a round is the last when the tangents are this close to the squares (rows hold to no more)."""


def version() -> str:
    import highspy

    return f"highs {highspy.Highs().version()}"


@dataclass(frozen=True)
class _Linear:
    cost: Floats
    rows: Floats
    limit: Floats
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]


def solve(program: Program, settings: Settings) -> Outcome:
    """Build and solve."""
    linear = _Linear(program.cost, program.rows, program.limit, program.lower, program.upper, program.integer)
    squared = np.flatnonzero(program.square)
    if not len(squared):
        return _solve(linear, settings)
    return _outer_approximation(program, _with_squares(program, linear, squared), squared, settings)


def _with_squares(program: Program, linear: _Linear, squared: NDArray[np.intp]) -> _Linear:
    """One more column for each square, and the first tangents."""
    columns, more = len(linear.cost), len(squared)
    highest = np.maximum(program.lower[squared] ** 2, program.upper[squared] ** 2)
    wide = replace(
        linear,
        cost=np.concatenate([linear.cost, program.square[squared]]),
        rows=np.hstack([linear.rows, np.zeros((len(linear.limit), more))]),
        lower=np.concatenate([linear.lower, np.zeros(more)]),
        upper=np.concatenate([linear.upper, highest]),
        integer=np.concatenate([linear.integer, np.zeros(more, dtype=bool)]),
    )
    for share in np.linspace(0.0, 1.0, FIRST_TANGENTS):
        at = program.lower[squared] + share * (program.upper[squared] - program.lower[squared])
        wide = _tangents(wide, squared, columns + np.arange(more), at)
    return wide


def _tangents(linear: _Linear, at: NDArray[np.intp], square: NDArray[np.intp], a: Floats) -> _Linear:
    """2 a v - s <= a^2 for each given column."""
    rows = np.zeros((len(at), len(linear.cost)))
    each = np.arange(len(at))
    rows[each, at], rows[each, square] = 2.0 * a, -1.0
    return replace(linear, rows=np.vstack([linear.rows, rows]), limit=np.concatenate([linear.limit, a**2]))


def _outer_approximation(program: Program, linear: _Linear, squared: NDArray[np.intp], settings: Settings) -> Outcome:
    begun, nodes, columns = time.perf_counter(), 0, len(program.cost)
    bound, best, best_value = 0.0, None, math.inf
    for _ in range(MOST_ROUNDS):
        left = settings
        if settings.seconds is not None:
            left = replace(settings, seconds=max(settings.seconds - (time.perf_counter() - begun), 1e-3))
        outcome = _solve(linear, left)
        nodes += outcome.nodes
        bound = max(bound, outcome.bound)
        if outcome.values is None:
            return replace(outcome, bound=bound, nodes=nodes)
        v, s = outcome.values[:columns], outcome.values[columns:]
        value = float(program.cost @ v + program.square @ v**2)
        if value < best_value:
            best, best_value = v, value
        short = program.square[squared] * (v[squared] ** 2 - s)
        if outcome.ending is not Ending.SOLVED or short.sum() <= SQUARES_GAP or best_value - bound <= SQUARES_GAP:
            return replace(outcome, values=best, bound=min(bound, best_value), nodes=nodes)
        below = np.flatnonzero(short > 0.0)
        linear = _tangents(linear, squared[below], columns + below, v[squared[below]])
    return Outcome(ending=Ending.TROUBLE, values=best, bound=bound, nodes=nodes)


def _solve(linear: _Linear, settings: Settings) -> Outcome:
    import highspy
    from scipy.sparse import csr_array

    highs = highspy.Highs()
    options = {
        "output_flag": False,
        "threads": 1,
        "mip_rel_gap": settings.gap,
        "mip_abs_gap": settings.gap_absolute,
        "mip_feasibility_tolerance": TIGHTEST,
        "primal_feasibility_tolerance": TIGHTEST,
        "dual_feasibility_tolerance": TIGHTEST,
    }
    if settings.seconds is not None:
        options["time_limit"] = float(settings.seconds)
    if settings.nodes is not None:
        options["mip_max_nodes"] = int(settings.nodes)
    for name, value in options.items():
        highs.setOptionValue(name, value)
    rows = csr_array(linear.rows)
    count = len(linear.limit)
    highs.passModel(
        len(linear.cost),
        count,
        rows.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        linear.cost,
        linear.lower,
        linear.upper,
        np.full(count, -highspy.kHighsInf),
        linear.limit,
        rows.indptr.astype(np.int32),
        rows.indices.astype(np.int32),
        rows.data,
        linear.integer.astype(np.int32),
    )
    highs.run()
    return _outcome(highs, linear)


def _outcome(highs: object, linear: _Linear) -> Outcome:
    import highspy

    assert isinstance(highs, highspy.Highs)
    kinds = highspy.HighsModelStatus
    endings = {
        kinds.kOptimal: Ending.SOLVED,
        kinds.kInfeasible: Ending.INFEASIBLE,
        kinds.kUnboundedOrInfeasible: Ending.INFEASIBLE,
        kinds.kTimeLimit: Ending.TIME,
        kinds.kSolutionLimit: Ending.NODES,
        kinds.kIterationLimit: Ending.NODES,
        kinds.kMemoryLimit: Ending.MEMORY,
    }
    ending = endings.get(highs.getModelStatus(), Ending.TROUBLE)
    info = highs.getInfo()
    if ending is Ending.INFEASIBLE:
        return Outcome(ending=ending, values=None, bound=math.inf, nodes=max(int(info.mip_node_count), 0))
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    whole = bool(linear.integer.any())
    bound = float(info.mip_dual_bound) if whole else float(info.objective_function_value if found else -math.inf)
    return Outcome(
        ending=ending,
        values=np.array(highs.getSolution().col_value) if found else None,
        bound=bound,
        nodes=max(int(info.mip_node_count), 0),
    )
