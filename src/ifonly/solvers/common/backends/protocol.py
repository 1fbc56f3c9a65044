"""Interface of the MIP backends: what a solver is given, what it returns, and its capabilities.

    minimise  cost.v + square.(v*v)      subject to  rows v <= limit,  lower <= v <= upper,  some v whole

The objective is bounded, because every column in it is. A backend is a small frozen object; its solver's package is
imported only when it solves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TIGHTEST = 1e-9
"""Tolerance on feasibility, integrality and reduced costs: the smallest that Gurobi accepts."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """A mixed-integer program in numbers."""

    cost: Floats
    square: Floats
    rows: Floats
    limit: Floats
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]
    when: tuple[When, ...] = ()
    """For backends that declare INDICATORS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Indicator constraint:  v[binary] = value  =>  row.v[columns] <= limit."""

    binary: int
    value: bool
    columns: NDArray[np.intp]
    row: Floats
    limit: float


class SolveStatus(Enum):
    """How a solve ended. The objective is bounded, so "infeasible or unbounded" means infeasible."""

    SOLVED = ""
    INFEASIBLE = "infeasible"
    ENOUGH = "a solution as good as asked for"
    TIME = "time limit"
    NODES = "node limit"
    MEMORY = "memory limit"
    TROUBLE = "the solver met numerical trouble"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`bound` is the solver's lower bound on the objective; `values` its best solution, if any."""

    ending: SolveStatus
    values: Floats | None
    bound: float = -math.inf
    nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a solve may spend, and how exact it must be."""

    seconds: float | None = None
    nodes: int | None = None
    memory_bytes: int | None = None
    gap: float = 0.0
    """Relative."""
    gap_absolute: float = TIGHTEST
    """Of the objective."""
    enough: float | None = None
    """Stop at the first solution whose objective is at most this."""
    presolve: bool = True
    """False for programs that a presolve has been seen to get wrong. A backend without such a history ignores it."""


class Capability(Enum):
    """What a backend can do by itself; what it cannot is done for it, or not at all."""

    SQUARES = "a quadratic objective with whole columns (else: tangents, round by round)"
    INDICATORS = "rows that count only where a binary has a value (else: refused)"
    ENOUGH = "stops at the first solution that is good enough (else: solves to the end)"
    NODES = "node limit (else: ignored)"
    MEMORY = "memory limit (else: ignored)"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRange:
    """Which numbers a solver holds as they are. Programs with others are rewritten (`fitting`), or refused."""

    smallest: float
    """Matrix entries up to this may be taken for 0."""
    largest: float = 1e9
    """Matrix entries beyond this are refused, or leave nothing of the others."""
    widest: float = 2.0**17
    """Columns that range farther than this: a tolerance of 1e-9 on them, or on their duals, is worth too much."""


@dataclass(frozen=True, kw_only=True)
class Backend(ABC):
    """A solver. `tolerances` are the solver's own names of its knobs and what they are set to."""

    name: str
    module: str
    extra: str
    capabilities: frozenset[Capability]
    tolerances: Mapping[str, float]
    reach: NumberRange

    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def solve(self, form: Form, settings: Settings) -> Outcome: ...
