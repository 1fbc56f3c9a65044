"""What each suite asks: networks, norms, methods, rows. `quick` is a few minutes' worth of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.data import CANCER, PAPER
from benchmarks.methods import OURS
from benchmarks.networks import Spec, arch

NORMS = ("l1", "l0", "l2", "linf")
DEPTHS = tuple(f"{depth}x10" for depth in range(1, 10))
WIDTHS = tuple(f"2x{width}" for width in (20, 60, 100, 140, 180, 220, 260, 300, 340, 400))
DEEP = ("5x50", "5x100")
INPUTS = tuple(f"{CANCER}{inputs}" for inputs in (5, 10, 15, 20, 25, 30))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One suite: every network with every norm by every method, on the first rows of each."""

    suite: str
    specs: tuple[Spec, ...]
    norms: tuple[str, ...] = ("l1",)
    methods: tuple[str, ...] = (OURS,)
    rows: int | None = 50
    way: str = "many"
    """`one`: every method is asked about one row at a time."""
    singly: bool = False
    """Ask our own search about each row alone too."""
    chunk: int = 1000
    threads: tuple[int, ...] = (1,)
    give_up: int | None = None
    """After so many rows in a row at their limit, the rest of the cell is not run, and recorded as such."""
    ladder: bool = False
    """The networks of a data set grow: who gave up on one is not asked about the next."""
    budget: float | None = None
    """Seconds of processor time a row, where it is not everybody's."""
    sizes: tuple[int, ...] = (1,)
    """Sets of so many rows instead of one (diversity)."""


def specs(names: Sequence[str], archs: Sequence[str], variants: Sequence[str] = ("norm",)) -> tuple[Spec, ...]:
    """Networks, data set by data set."""
    return tuple(Spec(name, arch(text), variant) for name in names for text in archs for variant in variants)


def plan(suite: str, *, quick: bool = False) -> Plan:
    """The plan of a suite by its name."""
    match suite:
        case "speed":
            return Plan(
                suite=suite,
                specs=specs(PAPER, ["2x10"] if quick else ["2x10", "2x50"], ["norm"] if quick else ["norm", "raw"]),
                norms=NORMS,
                methods=(OURS, "gurobi", "gurobi-ball"),
                rows=10 if quick else 30,
                singly=True,
            )
        case "reals":
            return Plan(
                suite=suite,
                specs=specs([CANCER], ["2x10"] if quick else ["2x10", "2x50"]),
                methods=(OURS, "gurobi"),
                rows=10 if quick else 50,
                chunk=5,
            )
        case "size":
            archs = ("1x10", "5x10", "9x10", "2x20", "2x100") if quick else (*DEPTHS, *WIDTHS, *DEEP)
            return Plan(suite=suite, specs=specs(PAPER, archs), rows=10 if quick else 20, way="one")
        case "inputs":
            return Plan(suite=suite, specs=specs(INPUTS, ["2x10"]), rows=10 if quick else 50, way="one")
        case "throughput":
            archs = ("2x10",) if quick else ("2x10", "2x50")
            return Plan(suite=suite, specs=specs(["adult"], archs), rows=300 if quick else 3000, threads=THREADS)
        case _:
            raise ValueError(f"There is no plan '{suite}'.")


THREADS = (1, 2)
PLANNED = ("speed", "reals", "size", "inputs", "throughput")
"""Suites that are plans; `rows`, `memory` and `cold` are measured in a way of their own."""

SEARCH = ("speed", "reals", "cold")
SCALE = ("size", "inputs", "rows", "throughput", "memory")
