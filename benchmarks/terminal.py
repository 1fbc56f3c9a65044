"""What all commands share: where things are kept, options, the console and its progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TESTS = ROOT / "tests"
"""Reference cases and random questions are those of the tests."""

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Where networks and records are kept."""

    cache: Path
    results: Path

    @classmethod
    def of(cls, cache: Path, results: Path, *, quick: bool) -> Folders:
        """A quick look has records of its own."""
        return cls(cache=cache, results=results / "quick" if quick else results)


# ---------------------------------------------------------------------- options

_FOLDER = click.Path(path_type=Path, file_okay=False)
results_option = click.option("--results", type=_FOLDER, default=ROOT / "results", help="Folder of records and plots.")
cache_option = click.option("--cache", type=_FOLDER, default=HERE / "cache", help="Folder of trained networks.")
quick_option = click.option("--quick", is_flag=True, help="Fewer networks and rows: a look, not a measurement.")
fresh_option = click.option("--fresh", is_flag=True, help="Forget earlier records instead of adding to them.")
datasets_option = click.option("--datasets", default="", help="Comma-separated: these data sets only.")
rows_option = click.option(
    "--rows", type=click.IntRange(1), help="Rows per network (the suite's own number otherwise)."
)
budget_option = click.option(
    "--budget", type=float, default=60.0, show_default=True, help="Seconds of processor time per row."
)


def folder_options(command: Command) -> Command:
    """The options that say where things are kept."""
    return cache_option(results_option(command))


def listed(text: str, known: Iterable[str], what: str) -> tuple[str, ...]:
    """The names in a comma-separated list, each of which must be known."""
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"there is no {what} '{name}'; choose among {', '.join(known)}")
    return names


# ---------------------------------------------------------------------- output


def console(width: int = 150) -> Console:
    """A terminal's own width; elsewhere wide enough for the tables."""
    return Console() if sys.stdout.isatty() else Console(width=width)


def bar(console: Console) -> Progress:
    """How far a run is."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
