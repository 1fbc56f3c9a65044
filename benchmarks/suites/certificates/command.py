"""`certificates`: the command line of the suite."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.suites.certificates import costs, forgeries, many
from benchmarks.suites.certificates import largest as largest_proof
from benchmarks.suites.certificates import ruled as ruled_questions
from benchmarks.terminal import console, folder_options, listed


@click.command("certificates")
@click.option("--rows", type=click.IntRange(1), default=1000, help="Rows per case and norm (default: all).")
@click.option("--archs", default="2x10,2x50", show_default=True, help="Comma-separated: these architectures only.")
@click.option("--norms", default=",".join(costs.NORMS), show_default=True, help="These norms only.")
@click.option(
    "--cases",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of reference cases, all of whose rows are asked about (default: those of the tests).",
)
@click.option("--random", "count", type=click.IntRange(1), help="Instead: so many random small problems.")
@click.option(
    "--mutations", type=click.IntRange(1), help="Instead: so many alterations, none of which may prove a lie."
)
@click.option("--forgeries", "forged", type=click.IntRange(1), help="Instead: so many structural alterations, judged.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the forgeries.")
@click.option("--arithmetic", is_flag=True, help="Instead: the checker's inner loop in other arithmetics.")
@click.option("--collection", type=click.IntRange(1), help="Instead: so many people per data set in one file.")
@click.option("--ruled", type=click.IntRange(1), help="Instead: so many people, with shipped rules and of forests.")
@click.option("--only", default="", help="Of --ruled and --largest: names with this text, such as 'compas forest'.")
@click.option("--largest", type=float, help="Instead: the largest proof that is written in so many seconds.")
@click.option("--budget", type=float, help="Seconds that the search may take for a row (default: any).")
@folder_options
def command(
    rows: int,
    archs: str,
    norms: str,
    cases: Path | None,
    count: int | None,
    mutations: int | None,
    forged: int | None,
    seed: int,
    arithmetic: bool,
    collection: int | None,
    ruled: int | None,
    only: str,
    largest: float | None,
    budget: float | None,
    cache: Path,
    results: Path,
) -> None:
    """What certificates cost to make, to check and to keep, and whether all are valid."""
    names = listed(norms, costs.NORMS, "norm")
    if mutations is not None:
        costs.mutations(mutations, console())
    elif forged is not None:
        if forgeries.run(forged, seed, console()):
            raise click.ClickException("a false statement is VALID; the certificates are saved here as false-*.cert")
    elif arithmetic:
        costs.arithmetic(tuple(archs.split(",")), console())
    elif collection is not None:
        many.run(collection, names[0], console())
    elif ruled is not None:
        ruled_questions.run(ruled, only, console())
    elif largest is not None:
        largest_proof.run(largest, only, console())
    elif count is None:
        made = costs.reference(cases, tuple(archs.split(",")), names, rows, budget)
        costs.run(made, None, results / "certificates.csv", console())
    else:
        costs.run(costs.random_problems(count), count, results / "certificates_random.csv", console())
