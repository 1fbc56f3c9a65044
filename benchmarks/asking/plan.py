"""A plan: which networks, norms, methods and rows a suite asks about, and when it gives up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.asking.contestants import OURS
from benchmarks.subjects.networks import Spec, arch

DEPTHS = tuple(f"{depth}x10" for depth in range(1, 10))
WIDTHS = tuple(f"2x{width}" for width in (20, 60, 100, 140, 180, 220, 260, 300, 340, 400))


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
    """Seconds of processor time per row, where it is not everybody's."""
    sizes: tuple[int, ...] = (1,)
    """Sets of so many rows instead of one (diversity)."""


def specs(names: Sequence[str], archs: Sequence[str], variants: Sequence[str] = ("norm",)) -> tuple[Spec, ...]:
    """Networks, data set by data set."""
    return tuple(Spec(name, arch(text), variant) for name in names for text in archs for variant in variants)
