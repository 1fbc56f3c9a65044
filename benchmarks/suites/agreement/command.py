"""`agreement`: the command line of the suite, one command per kind of question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from benchmarks.subjects.data import PAPER as DATASETS
from benchmarks.suites.agreement.bounds import NORMS, check_bounds
from benchmarks.suites.agreement.known_optima import reference_cells, run, small_cells
from benchmarks.suites.agreement.methods import METHODS
from benchmarks.suites.agreement.random_questions import random_questions
from benchmarks.terminal import TESTS, Command, cache_option, listed, results_option

VARIANTS = ("norm", "raw")


@click.group("agreement")
def command() -> None:
    """Do the paper's methods find what they should?"""


def _chosen(default: str) -> Callable[[Command], Command]:
    help_text = f"Comma-separated, of: {', '.join(METHODS)}."
    return click.option("--methods", "chosen", default=default, show_default=True, help=help_text)


def _given_seconds(default: float) -> Callable[[Command], Command]:
    return click.option("--budget", "seconds", type=float, default=default, show_default=True, help="Seconds per row.")


_CASES = click.option("--cases", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Folder of the "
                      "reference networks, rows and optima.", default=TESTS / "data")  # fmt: skip
_DATASETS = click.option("--datasets", default=",".join(DATASETS), show_default=True, help="These data sets only.")
_NORMS = click.option("--norms", default=",".join(NORMS), show_default=True, help="These norms only.")


@command.command("reference")
@_chosen("mip-obj-highs,mip-exp-highs")
@_DATASETS
@click.option("--variants", default=",".join(VARIANTS), show_default=True, help="These inputs only.")
@_NORMS
@click.option("--rows", type=click.IntRange(1), default=30, show_default=True, help="Rows per network and norm.")
@_given_seconds(60.0)
@_CASES
@results_option
def _reference(
    chosen: str, datasets: str, variants: str, norms: str, rows: int, seconds: float, cases: Path, results: Path,
) -> None:  # fmt: skip
    """Against optima that another solver found, on networks of two hidden layers of ten."""
    cells = reference_cells(
        cases,
        listed(datasets, DATASETS, "data set"),
        listed(variants, VARIANTS, "variant"),
        listed(norms, NORMS, "norm"),
    )
    methods_asked = listed(chosen, METHODS, "method")
    run(cells, methods_asked, rows, seconds, results / "agreement_reference.csv")


@command.command("small")
@_chosen("mace,mip-sat")
@click.option("--archs", default="1x4,1x10,2x4", show_default=True, help="Comma-separated architectures.")
@_NORMS
@click.option("--rows", type=click.IntRange(1), default=10, show_default=True, help="Rows per network and norm.")
@_given_seconds(10.0)
@cache_option
@results_option
def _small(chosen: str, archs: str, norms: str, rows: int, seconds: float, cache: Path, results: Path) -> None:
    """Against the enumeration of COMPAS, on networks of few neurons."""
    cells = small_cells(cache, archs.split(","), listed(norms, NORMS, "norm"), rows)
    methods_asked = listed(chosen, METHODS, "method")
    run(cells, methods_asked, rows, seconds, results / "agreement_small.csv")


@command.command("random")
@_chosen("search,mip-obj-highs,mip-obj-scip,mip-exp-highs")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first question's seed.")
@click.option("--questions", type=click.IntRange(1), default=500, show_default=True, help="How many.")
@_given_seconds(60.0)
def _random(chosen: str, first: int, questions: int, seconds: float) -> None:
    """Against one another, on random mixed questions."""
    names = listed(chosen, METHODS, "method")
    random_questions(first, questions, names, seconds)


@command.command("rules")
@_chosen("search,mip-obj-highs,enumerate")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first question's seed.")
@click.option("--questions", type=click.IntRange(1), default=1000, show_default=True, help="How many.")
@click.option("--mixed", is_flag=True, help="Real numbers too: then leave out the enumerator.")
@_given_seconds(60.0)
def _rules(chosen: str, first: int, questions: int, mixed: bool, seconds: float) -> None:
    """Against one another, on random questions with random rules between features."""
    names = [name for name in listed(chosen, METHODS, "method") if not (mixed and name == "enumerate")]
    random_questions(first, questions, names, seconds, rules=True, finite=not mixed)


@command.command("bounds")
@_DATASETS
@click.option("--rows", type=click.IntRange(1), default=10_000, show_default=True, help="Rows per network and budget.")
@click.option("--random", type=click.IntRange(0), default=50, show_default=True, help="Random networks.")
@_CASES
def _bounds(datasets: str, rows: int, random: int, cases: Path) -> None:
    """Sampled rows inside box and budget against the bounds of every neuron."""
    check_bounds(listed(datasets, DATASETS, "data set"), rows, random, cases)
