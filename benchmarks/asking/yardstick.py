"""The yardstick of the benchmarks and an oracle of the tests: the library's own clean big-M MIP, under its own name.

It is `MipObj` with big-M from intervals, the cheapest that there are. (`ball`: the box that a known row allows.)
"""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.problem import Question, lower
from ifonly.solvers.common.backends import BACKENDS, BackendName, available
from ifonly.solvers.mip.objective import MipObj, MipObjSolver
from ifonly.tolerances import DEFAULT, Tolerances

__all__ = ["BACKENDS", "BigM", "available"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BigM:
    """A clean big-M MIP in a solver of your choice."""

    backend: BackendName = "gurobi"
    ball: bool = False
    refine: bool = False

    @property
    def name(self) -> str:
        return f"mip-{self.backend}" + ("-ball" if self.ball else "")

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> MipObjSolver:
        method = MipObj(backend=self.backend, bounds="interval", ball=self.ball, refine=self.refine)
        return MipObjSolver(method=method, lowered=lower(question), name=self.name, tolerances=tolerances)
