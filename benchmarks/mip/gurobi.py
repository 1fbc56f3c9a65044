"""Gurobi through its matrix form, one thread, all tolerances at their tightest."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from benchmarks.mip.outcome import TIGHTEST, Ending, Outcome, Settings
from benchmarks.mip.program import Program
from ifonly.errors import UnsupportedQuestion

SIZE_LIMIT = 10010
"""Gurobi's error number for a model that is too large for the licence."""


def version() -> str:
    import gurobipy

    return "gurobi " + ".".join(map(str, gurobipy.gurobi.version()))


@cache
def _environment() -> Any:
    import gurobipy

    environment = gurobipy.Env(params={"OutputFlag": 0})
    for name in ("FeasibilityTol", "IntFeasTol", "OptimalityTol"):
        environment.setParam(name, TIGHTEST)
    environment.setParam("Threads", 1)
    return environment


def solve(program: Program, settings: Settings) -> Outcome:
    """Build and solve."""
    import gurobipy
    from scipy.sparse import csr_array

    with gurobipy.Model(env=_environment()) as model:
        model.Params.MIPGap = settings.gap
        model.Params.MIPGapAbs = settings.gap_absolute
        if settings.seconds is not None:
            model.Params.TimeLimit = settings.seconds
        if settings.nodes is not None:
            model.Params.NodeLimit = settings.nodes
        if settings.memory_bytes is not None:
            model.Params.SoftMemLimit = settings.memory_bytes / 1e9
        kinds = np.where(program.integer, "I", "C")
        v = model.addMVar(len(program.cost), program.lower, program.upper, program.cost, kinds)
        model.addMConstr(csr_array(program.rows), v, "<", program.limit)
        if program.square.any():
            quadratic = np.flatnonzero(program.square).tolist()
            model.setMObjective(
                np.diag(program.square[quadratic]),
                program.cost,
                0.0,
                v[quadratic],
                v[quadratic],
                v,
            )
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            if error.errno == SIZE_LIMIT:
                raise UnsupportedQuestion(
                    f"A program of {len(program.cost)} columns and {len(program.limit)} rows is too large for this "
                    f"Gurobi licence; use backend='highs', or a full licence."
                ) from None
            raise
        return _outcome(model, v)


def _outcome(model: Any, v: Any) -> Outcome:
    from gurobipy import GRB

    endings = {
        GRB.OPTIMAL: Ending.SOLVED,
        GRB.INFEASIBLE: Ending.INFEASIBLE,
        GRB.INF_OR_UNBD: Ending.INFEASIBLE,
        GRB.TIME_LIMIT: Ending.TIME,
        GRB.NODE_LIMIT: Ending.NODES,
        GRB.MEM_LIMIT: Ending.MEMORY,
    }
    if model.Status == GRB.INTERRUPTED:
        raise KeyboardInterrupt
    ending = endings.get(model.Status, Ending.TROUBLE)
    if ending is Ending.INFEASIBLE:
        return Outcome(ending=ending, values=None, bound=math.inf, nodes=int(model.NodeCount))
    return Outcome(
        ending=ending,
        values=np.array(v.X) if model.SolCount else None,
        bound=float(model.ObjBound) if model.IsMIP else float(model.ObjVal),
        nodes=int(model.NodeCount),
    )
