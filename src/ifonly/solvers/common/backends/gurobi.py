"""Gurobi through its matrix form, one thread, all tolerances at their tightest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from ifonly.errors import UnsupportedQuestion
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

SIZE_LIMIT = 10010
"""Gurobi's error number for a model that is too large for the licence."""

TOLERANCES = {"FeasibilityTol": TIGHTEST, "IntFeasTol": TIGHTEST, "OptimalityTol": TIGHTEST}

REACH = NumberRange(smallest=1e-9)
"""Below 1e-13 entries are taken for 0; with digits of 1e-11 its presolve has proven a bound that a row refutes."""


@dataclass(frozen=True, kw_only=True)
class Gurobi(Backend):
    """Gurobi; small programs need no licence."""

    name: str = "gurobi"
    module: str = "gurobipy"
    extra: str = "gurobi"
    capabilities: frozenset[Capability] = frozenset(Capability)
    tolerances: Mapping[str, float] = field(default_factory=TOLERANCES.copy)
    reach: NumberRange = REACH

    def version(self) -> str:
        import gurobipy

        return "gurobi " + ".".join(map(str, gurobipy.gurobi.version()))

    def solve(self, form: Form, settings: Settings) -> Outcome:
        import gurobipy
        from scipy.sparse import csr_array

        with gurobipy.Model(env=_environment(tuple(self.tolerances.items()))) as model:
            _set(model, settings)
            kinds = np.where(form.integer, "I", "C")
            v = model.addMVar(len(form.cost), form.lower, form.upper, form.cost, kinds)
            model.addMConstr(csr_array(form.rows), v, "<", form.limit)
            for when in form.when:
                row = when.row @ v[when.columns.tolist()]
                model.addGenConstrIndicator(v[when.binary].item(), when.value, row.item(), "<", when.limit)
            quadratic = np.flatnonzero(form.square).tolist()
            if quadratic:
                diagonal = np.diag(form.square[quadratic])
                model.setMObjective(diagonal, form.cost, 0.0, v[quadratic], v[quadratic], v)
            try:
                model.optimize()
            except gurobipy.GurobiError as error:
                if error.errno == SIZE_LIMIT:
                    raise UnsupportedQuestion(
                        f"A program of {len(form.cost)} columns and {len(form.limit)} rows is too large for this "
                        f"Gurobi licence; use backend='highs', or a full licence."
                    ) from None
                raise
            return _outcome(model, v)


@lru_cache(maxsize=4)
def _environment(tolerances: tuple[tuple[str, float], ...]) -> Any:
    import gurobipy

    environment = gurobipy.Env(params={"OutputFlag": 0})
    for name, value in tolerances:
        environment.setParam(name, value)
    environment.setParam("Threads", 1)
    return environment


def _set(model: Any, settings: Settings) -> None:
    model.Params.MIPGap = settings.gap
    model.Params.MIPGapAbs = settings.gap_absolute
    if settings.seconds is not None:
        model.Params.TimeLimit = settings.seconds
    if settings.nodes is not None:
        model.Params.NodeLimit = settings.nodes
    if settings.memory_bytes is not None:
        model.Params.SoftMemLimit = settings.memory_bytes / 1e9
    if settings.enough is not None:
        model.Params.BestObjStop = settings.enough


def _outcome(model: Any, v: Any) -> Outcome:
    from gurobipy import GRB

    endings = {
        GRB.OPTIMAL: SolveStatus.SOLVED,
        GRB.INFEASIBLE: SolveStatus.INFEASIBLE,
        GRB.INF_OR_UNBD: SolveStatus.INFEASIBLE,
        GRB.USER_OBJ_LIMIT: SolveStatus.ENOUGH,
        GRB.TIME_LIMIT: SolveStatus.TIME,
        GRB.NODE_LIMIT: SolveStatus.NODES,
        GRB.MEM_LIMIT: SolveStatus.MEMORY,
    }
    if model.Status == GRB.INTERRUPTED:
        raise KeyboardInterrupt
    ending = endings.get(model.Status, SolveStatus.TROUBLE)
    if ending is SolveStatus.INFEASIBLE:
        return Outcome(ending=ending, values=None, bound=math.inf, nodes=int(model.NodeCount))
    bound = -math.inf
    if model.IsMIP:
        bound = float(model.ObjBound)
    elif ending is SolveStatus.SOLVED:
        bound = float(model.ObjVal)
    return Outcome(
        ending=ending, values=np.array(v.X) if model.SolCount else None, bound=bound, nodes=int(model.NodeCount)
    )
