"""What a solver says about a program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

TIGHTEST = 1e-9
"""Tolerance on feasibility, integrality and reduced costs: the smallest that Gurobi accepts."""


class Ending(Enum):
    """How a solve ended. Every variable is bounded, so "infeasible or unbounded" means infeasible."""

    SOLVED = ""
    INFEASIBLE = "infeasible"
    TIME = "time limit"
    NODES = "node limit"
    MEMORY = "memory limit"
    TROUBLE = "the solver met numerical trouble"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`bound` is the solver's lower bound on the scaled objective; `values` its best solution, if any."""

    ending: Ending
    values: NDArray[np.float64] | None
    bound: float = -math.inf
    nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a solve may spend, and how exact it must be."""

    seconds: float | None
    nodes: int | None
    memory_bytes: int | None
    gap: float
    """Relative."""
    gap_absolute: float
    """Of the scaled objective."""
