"""SCIP through PySCIPOpt, one thread, tight tolerances. Squares by tangents: its own tolerance for them is loose."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ifonly.solvers.common.backends.protocol import (
    TIGHTEST,
    Backend,
    Capability,
    Form,
    NumberRange,
    Outcome,
    Settings,
    SolveStatus,
)
from ifonly.solvers.common.backends.squares import outer_approximation

TOLERANCES = {
    "numerics/epsilon": 1e-10,
    "numerics/sumepsilon": 1e-9,
    "numerics/feastol": TIGHTEST,
    "numerics/dualfeastol": TIGHTEST,
}

MESSAGE = b"without GMP - using"
"""Cannot set ... tolerance to small value 1e-12 without GMP - using 1e-10."""

REACH = NumberRange(smallest=1e-9)
"""Its numerics/epsilon."""


@dataclass(frozen=True, kw_only=True)
class Scip(Backend):
    """SCIP."""

    name: str = "scip"
    module: str = "pyscipopt"
    extra: str = "scip"
    capabilities: frozenset[Capability] = frozenset(
        {Capability.INDICATORS, Capability.ENOUGH, Capability.NODES, Capability.MEMORY}
    )
    tolerances: Mapping[str, float] = field(default_factory=TOLERANCES.copy)
    reach: NumberRange = REACH

    def version(self) -> str:
        import pyscipopt

        return f"scip {pyscipopt.Model().version()}"

    def solve(self, form: Form, settings: Settings) -> Outcome:
        return outer_approximation(form, settings, self._solve)

    def _solve(self, form: Form, settings: Settings) -> Outcome:
        import pyscipopt

        model = pyscipopt.Model()
        model.hideOutput()
        for name, value in {**self.tolerances, **_knobs(settings)}.items():
            model.setParam(name, value)
        kinds = np.where(form.integer, "I", "C")
        kinds[[when.binary for when in form.when]] = "B"
        ends = zip(kinds.tolist(), form.lower.tolist(), form.upper.tolist(), form.cost.tolist(), strict=True)
        columns = [model.addVar(vtype=kind, lb=low, ub=high, obj=cost) for kind, low, high, cost in ends]
        for row, limit in zip(form.rows, form.limit.tolist(), strict=True):
            used = np.flatnonzero(row).tolist()
            if used:
                model.addCons(pyscipopt.quicksum(float(row[j]) * columns[j] for j in used) <= limit)
            elif limit < -TIGHTEST:
                return Outcome(ending=SolveStatus.INFEASIBLE, values=None, bound=math.inf)
        for when in form.when:
            terms = zip(when.row.tolist(), when.columns.tolist(), strict=True)
            total = pyscipopt.quicksum(value * columns[j] for value, j in terms)
            model.addConsIndicator(total <= when.limit, binvar=columns[when.binary], activeone=when.value)
        with _without_tolerance_messages():
            model.optimize()
        return _outcome(model, columns)


@contextmanager
def _without_tolerance_messages() -> Iterator[None]:
    """SCIP's LP solver writes to the process's stderr, past every knob, whenever SCIP tries a tolerance of 1e-12.

    Those lines are dropped; whatever else is written meanwhile is passed on afterwards.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            written.seek(0)
            for line in written:
                if MESSAGE not in line:
                    os.write(2, line)


def _knobs(settings: Settings) -> dict[str, Any]:
    knobs: dict[str, Any] = {"limits/gap": settings.gap, "limits/absgap": settings.gap_absolute, "lp/threads": 1}
    if settings.seconds is not None:
        knobs["limits/time"] = settings.seconds
    if settings.nodes is not None:
        knobs["limits/totalnodes"] = settings.nodes
    if settings.memory_bytes is not None:
        knobs["limits/memory"] = settings.memory_bytes / 2**20
    if settings.enough is not None:
        knobs["limits/primal"] = settings.enough
    return knobs


def _outcome(model: Any, columns: list[Any]) -> Outcome:
    endings = {
        "optimal": SolveStatus.SOLVED,
        "gaplimit": SolveStatus.SOLVED,
        "infeasible": SolveStatus.INFEASIBLE,
        "inforunbd": SolveStatus.INFEASIBLE,
        "primallimit": SolveStatus.ENOUGH,
        "timelimit": SolveStatus.TIME,
        "totalnodelimit": SolveStatus.NODES,
        "nodelimit": SolveStatus.NODES,
        "memlimit": SolveStatus.MEMORY,
    }
    status = model.getStatus()
    if status == "userinterrupt":
        raise KeyboardInterrupt
    ending = endings.get(status, SolveStatus.TROUBLE)
    nodes = int(model.getNTotalNodes())
    if ending is SolveStatus.INFEASIBLE:
        return Outcome(ending=ending, values=None, bound=math.inf, nodes=nodes)
    values = None
    if model.getNSols():
        best = model.getBestSol()
        values = np.array([float(best[column]) for column in columns])
    bound = float(model.getDualbound())
    return Outcome(ending=ending, values=values, bound=bound if abs(bound) < 1e19 else -math.inf, nodes=nodes)
