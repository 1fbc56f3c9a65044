"""Methods: how the nearest counterfactual is found. Branch and bound, enumeration, and those of the paper."""

from __future__ import annotations

from ifonly.results import Method
from ifonly.solvers.mip import MipExp, MipObj
from ifonly.solvers.search import Enumerate, Search
from ifonly.solvers.smt import Mace, MipSat
from ifonly.tolerances import Tolerances

__all__ = ["Enumerate", "Mace", "Method", "MipExp", "MipObj", "MipSat", "Search", "Tolerances"]
