"""The methods that are compared, by the names used on the command line and in the CSV files."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import click

from benchmarks.asking.yardstick import BACKENDS, BigM, available
from ifonly.methods import Mace, MipExp, MipObj, MipSat
from ifonly.results import Method
from ifonly.solvers.search import Enumerate

OURS = "ifonly"
MIPS = ("gurobi", "gurobi-ball", "highs", "highs-ball", "scip")
PAPER = {"mace": "SAT", "mip-sat": "MIP-SAT", "mip-exp": "MIP-EXP", "mip-obj": "MIP-OBJ"}
"""The paper's methods and what it calls them. Its mixed-integer programs are Gurobi's, in the paper as here."""


def _search() -> Any:
    from ifonly.solvers.search import Search

    return Search()


METHODS: dict[str, Callable[[], Method]] = {
    OURS: _search,
    "gurobi": lambda: BigM(backend="gurobi"),
    "gurobi-ball": lambda: BigM(backend="gurobi", ball=True),
    "highs": lambda: BigM(backend="highs"),
    "highs-ball": lambda: BigM(backend="highs", ball=True),
    "scip": lambda: BigM(backend="scip"),
    "mace": Mace,
    "mip-sat": MipSat,
    "mip-exp": lambda: MipExp(backend="gurobi"),
    "mip-obj": lambda: MipObj(backend="gurobi"),
    "enumerate": Enumerate,
}


def make(name: str) -> Method:
    """A method by its name."""
    package = needed(name)
    if package and find_spec(package) is None:
        raise click.ClickException(f"'{name}' needs {package}: pip install -r benchmarks/requirements.txt")
    return METHODS[name]()


def needed(name: str) -> str:
    """The package that a method needs beside ifonly; empty where there is none."""
    backend = _backend(name)
    if backend:
        return BACKENDS[backend].module
    return "z3" if name in ("mace", "mip-sat") else ""


def solver_version(name: str) -> str:
    """The version of a method's solver; empty for our own."""
    backend = _backend(name)
    if backend:
        return BACKENDS[backend].version() if available(backend) else ""
    return f"z3 {version('z3-solver')}" if needed(name) == "z3" and find_spec("z3") else ""


def _backend(name: str) -> str:
    """The MIP solver of a method; empty where there is none."""
    if name in ("mip-exp", "mip-obj"):
        return "gurobi"
    backend = name.removesuffix("-ball")
    return backend if backend in BACKENDS else ""
