"""The solvers, by name. Nothing is imported here, and no licence taken: that happens when something is solved."""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from typing import Literal, TypeAlias

import numpy as np

from ifonly.errors import MissingExtra, QuestionError
from ifonly.solvers.common.backends.fitting import fits, fitted
from ifonly.solvers.common.backends.gurobi import Gurobi
from ifonly.solvers.common.backends.highs import Highs
from ifonly.solvers.common.backends.protocol import TIGHTEST, Backend, Form, Outcome, Settings, SolveStatus
from ifonly.solvers.common.backends.scip import Scip

BackendName: TypeAlias = Literal["highs", "gurobi", "scip"]

BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (Highs(), Gurobi(), Scip())}


def available(name: str) -> bool:
    """Is the solver's package installed? Never raises, takes no licence."""
    try:
        return name in BACKENDS and find_spec(BACKENDS[name].module) is not None
    except (ImportError, ValueError):
        return False


def get(name: str) -> Backend:
    """A backend by its name."""
    if name not in BACKENDS:
        raise QuestionError(f"There is no backend {name!r}; choose one of {', '.join(BACKENDS)}.")
    backend = BACKENDS[name]
    if not available(name):
        raise MissingExtra(backend.module, extra=backend.extra, needed_for=f"The backend '{name}'")
    return backend


def _check_that_it_loads(backend: Backend) -> None:
    """Two packages that bring a library of the same name, as highspy and OR-Tools do, cannot be in one process."""
    try:
        import_module(backend.module)
    except ImportError as error:
        raise QuestionError(
            f"The backend '{backend.name}' cannot be used: the package '{backend.module}' is installed and does not "
            f"load ({error}). If another package in this process has loaded a solver of its own (optbinning loads "
            "OR-Tools, which brings its own HiGHS), use the method 'search', another backend, or a new process."
        ) from error


def run(form: Form, backend: str, settings: Settings) -> Outcome:
    """Solve; numbers beyond the solver's reach are rewritten first. A program without columns is decided here."""
    if len(form.cost):
        solver = get(backend)
        _check_that_it_loads(solver)
        if fits(form, solver.reach):
            return solver.solve(form, settings)
        made = fitted(form, solver.reach, backend)
        return made.outcome(solver.solve(made.form, made.settings(settings)))
    if (form.limit >= -TIGHTEST).all():
        return Outcome(ending=SolveStatus.SOLVED, values=np.zeros(0), bound=0.0)
    return Outcome(ending=SolveStatus.INFEASIBLE, values=None, bound=math.inf)
