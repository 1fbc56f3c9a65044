"""`plausible`: answers that must look real or hold under changed weights, beside LiCE, PROPLACE and OCEAN.

The same denied people for everybody. Networks (2x10, inputs scaled to [0, 1]): the nearest row; an isolation forest, an
outlier factor, `plausible(table)`, `RobustToWeights` and five bootstraps; PROPLACE; and LiCE, without its density and
with it, from a checkout that is named. Forests: the nearest row, the nearest inlier of an isolation forest, and OCEAN's
CP-SAT for both. Peers are told our distance. Every row is judged by the explained model, by its way's own condition
(as its own originals evaluate it), by models that were trained again, and by scikit-learn's local outlier factor.

Answers are written to a file of records at once, and a run asks only what is not there.
"""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from benchmarks.suites.plausible import forests, networks
from benchmarks.suites.plausible.outcome import COLUMNS, asked, line
from benchmarks.suites.plausible.settings import Settings
from benchmarks.suites.retraining import Records
from benchmarks.terminal import cache_option, console

KINDS = {"networks": networks.question, "forests": forests.question}


@click.command("plausible")
@click.option("--rows", type=click.IntRange(1), default=25, show_default=True, help="Denied people per data set.")
@click.option("--changes", type=click.IntRange(1), default=2, show_default=True, help="Changed models per family.")
@click.option("--seconds", type=click.FloatRange(0.1), default=60.0, show_default=True, help="Limit of each question.")
@click.option("--only", type=click.Choice(tuple(KINDS)), multiple=True, default=tuple(KINDS), help="Which models.")
@click.option("--data", multiple=True, default=("credit", "adult"), show_default=True, help="Data sets.")
@click.option("--way", multiple=True, help="These ways only, beside the nearest row.")
@click.option(
    "--checkout",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of LiCE's repository, which is on no index; without it LiCE is left out.",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path),
    default=Path("results/plausible.jsonl"),
    show_default=True,
    help="The file of answers: those that it has are not asked for again.",
)
@cache_option
# size: the options of a command
def command(
    rows: int, changes: int, seconds: float, only: tuple[str, ...], data: tuple[str, ...], way: tuple[str, ...],
    checkout: Path | None, records: Path, cache: Path,
) -> None:  # fmt: skip
    """Answers that look real or are robust, beside LiCE, PROPLACE and OCEAN: distance, own condition, retraining."""
    settings = Settings(rows=rows, changes=changes, seconds=seconds, checkout=checkout, cache=cache)
    shown = console(width=190)
    for kind in only:
        table = Table("data set", kind, *COLUMNS)
        for name in data:
            known = Records(records, f"{kind} {name} seconds {seconds:g}")
            for told in compared(kind, name, settings, known, way):
                table.add_row(name, *told)
                shown.print(" | ".join((name, *told)))
        shown.print(table)


def compared(kind: str, name: str, settings: Settings, records: Records, only: tuple[str, ...]) -> list[list[str]]:
    """One line per way."""
    with KINDS[kind](name, settings) as question:
        ways = {way: how for way, how in question.ways.items() if not only or way in only or way == "nearest"}
        outcomes = {way: asked(way, how, question.people, question.judges, records) for way, how in ways.items()}
    missing = {how.against for how in ways.values()} - set(outcomes)
    if missing:
        raise click.BadParameter(f"name {', '.join(sorted(missing))} too: it is what others are compared with")
    return [[way, *line(how, outcomes[way], outcomes, question.judges)] for way, how in ways.items()]
