"""The paper's mixed-integer programs. Light to import: a solver is loaded when something is solved."""

from ifonly.mip.interval import MipInterval
from ifonly.mip.objective import MipObjective

__all__ = ["MipInterval", "MipObjective"]
