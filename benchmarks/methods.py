"""The methods that are compared, by the names used on the command line and in the CSV files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from benchmarks.mip import BACKENDS, BigM, available
from ifonly.proof import Method
from ifonly.search import Enumerate

OURS = "ifonly"
MIPS = ("gurobi", "gurobi-ball", "highs", "highs-ball")


def _search() -> Any:
    from ifonly.search import Search

    return Search()


METHODS: dict[str, Callable[[], Method]] = {
    OURS: _search,
    "gurobi": lambda: BigM(backend="gurobi"),
    "gurobi-ball": lambda: BigM(backend="gurobi", ball=True),
    "highs": lambda: BigM(backend="highs"),
    "highs-ball": lambda: BigM(backend="highs", ball=True),
    "enumerate": Enumerate,
}


def make(name: str) -> Method:
    """A method by its name."""
    backend = name.removesuffix("-ball")
    if backend in BACKENDS and not available(backend):
        raise click.ClickException(f"'{name}' is not installed: pip install -r benchmarks/requirements.txt")
    return METHODS[name]()


def solver_version(name: str) -> str:
    """The version of a method's solver; empty for our own."""
    backend = name.removesuffix("-ball")
    return BACKENDS[backend].version() if backend in BACKENDS else ""
