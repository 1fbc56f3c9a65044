"""HiGHS through arrays, one thread, tight tolerances. It has no quadratic MIP: squares by tangents."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.solvers.common.backends.protocol import (
    TIGHTEST,
    Backend,
    Capability,
    Floats,
    Form,
    NumberRange,
    Outcome,
    Settings,
    SolveStatus,
)
from ifonly.solvers.common.backends.squares import outer_approximation

TOLERANCES = {
    "mip_feasibility_tolerance": TIGHTEST,
    "primal_feasibility_tolerance": TIGHTEST,
    "dual_feasibility_tolerance": TIGHTEST,
}

QUADRATIC_SECONDS = 1.0
"""A quadratic program is only a help: one that takes longer is given up."""

REACH = NumberRange(smallest=1e-9)
"""Its small_matrix_value."""


@dataclass(frozen=True, kw_only=True)
class Highs(Backend):
    """HiGHS, which comes with ifonly."""

    name: str = "highs"
    module: str = "highspy"
    extra: str = ""
    capabilities: frozenset[Capability] = frozenset({Capability.ENOUGH, Capability.NODES})
    tolerances: Mapping[str, float] = field(default_factory=TOLERANCES.copy)
    reach: NumberRange = REACH

    def version(self) -> str:
        import highspy

        return f"highs {highspy.Highs().version()}"

    def solve(self, form: Form, settings: Settings) -> Outcome:
        return outer_approximation(form, settings, self._solve)

    def _solve(self, form: Form, settings: Settings) -> Outcome:
        highs = loaded(form)
        options: dict[str, Any] = {"mip_rel_gap": settings.gap, "mip_abs_gap": settings.gap_absolute, **self.tolerances}
        if settings.seconds is not None:
            options["time_limit"] = float(settings.seconds)
        if settings.nodes is not None:
            options["mip_max_nodes"] = int(settings.nodes)
        if settings.enough is not None:
            options["objective_target"] = float(settings.enough)
        if not settings.presolve:
            options["presolve"] = "off"
        begun = time.perf_counter()
        outcome = _run(highs, form, options)
        # its presolve has said so of programs that have a solution: ask without
        if outcome.ending is SolveStatus.INFEASIBLE and settings.presolve:
            if settings.seconds is not None:
                options["time_limit"] = max(settings.seconds - (time.perf_counter() - begun), 1e-3)
            outcome = _run(loaded(form), form, {**options, "presolve": "off"})
        return outcome


def _run(highs: Any, form: Form, options: dict[str, Any]) -> Outcome:
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.run()
    return _outcome(highs, bool(form.integer.any()))


def loaded(form: Form) -> Any:
    """A silent, single-threaded HiGHS with the linear part of the form in it."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    start, index, value = compressed(form.rows)
    count = len(form.limit)
    highs.passModel(
        len(form.cost),
        count,
        len(value),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        form.cost,
        form.lower,
        form.upper,
        np.full(count, -highspy.kHighsInf),
        form.limit,
        start,
        index,
        value,
        form.integer.astype(np.int32),
    )
    return highs


def with_whole_columns_fixed(form: Form, values: Floats) -> Floats | None:
    """The optimum, squares and all, where the whole columns have these values; None when HiGHS does not find it.

    Only a good place for tangents: nothing rests on it.
    """
    import highspy

    whole = np.round(values)
    fixed = replace(
        form,
        lower=np.where(form.integer, whole, form.lower),
        upper=np.where(form.integer, whole, form.upper),
        integer=np.zeros(len(values), dtype=bool),
    )
    highs, squared = loaded(fixed), np.flatnonzero(form.square)
    for name, value in {**TOLERANCES, "time_limit": QUADRATIC_SECONDS}.items():
        highs.setOptionValue(name, value)
    start = np.searchsorted(squared, np.arange(len(values) + 1)).astype(np.int32)
    highs.passHessian(
        len(values),
        len(squared),
        int(highspy.HessianFormat.kTriangular),
        start,
        squared.astype(np.int32),
        2.0 * form.square[squared],
    )
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found = np.array(highs.getSolution().col_value)
    return found if np.isfinite(found).all() else None


def compressed(rows: Floats) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Where each row starts (and the last ends), the columns and the values of what is not 0."""
    at, index = np.nonzero(rows)
    start = np.concatenate(([0], np.cumsum(np.bincount(at, minlength=len(rows)))))
    return start.astype(np.int32), index.astype(np.int32), np.ascontiguousarray(rows[at, index])


def _outcome(highs: Any, whole: bool) -> Outcome:
    import highspy

    kinds = highspy.HighsModelStatus
    endings = {
        kinds.kOptimal: SolveStatus.SOLVED,
        kinds.kInfeasible: SolveStatus.INFEASIBLE,
        kinds.kUnboundedOrInfeasible: SolveStatus.INFEASIBLE,
        kinds.kObjectiveTarget: SolveStatus.ENOUGH,
        kinds.kTimeLimit: SolveStatus.TIME,
        kinds.kSolutionLimit: SolveStatus.NODES,
        kinds.kIterationLimit: SolveStatus.NODES,
        kinds.kMemoryLimit: SolveStatus.MEMORY,
    }
    ending = endings.get(highs.getModelStatus(), SolveStatus.TROUBLE)
    info = highs.getInfo()
    nodes = max(int(info.mip_node_count), 0)
    if ending is SolveStatus.INFEASIBLE:
        return Outcome(ending=ending, values=None, bound=math.inf, nodes=nodes)
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    bound = float(info.mip_dual_bound) if whole else -math.inf
    if not whole and ending is SolveStatus.SOLVED:
        bound = float(info.objective_function_value)
    return Outcome(
        ending=ending, values=np.array(highs.getSolution().col_value) if found else None, bound=bound, nodes=nodes
    )
