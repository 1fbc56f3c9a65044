"""The paper's mixed-integer programs. Light to import: a solver is loaded when something is solved."""

from ifonly.solvers.mip.exponential import MipExp
from ifonly.solvers.mip.objective import MipObj

__all__ = ["MipExp", "MipObj"]
