"""The command line of the benchmarks: one command per suite, then what is made of their records."""

from __future__ import annotations

import click

from benchmarks.publishing import publish, report
from benchmarks.suites import (
    agreement,
    audit,
    audit_stream,
    causes,
    certificates,
    chains,
    deployed,
    desk,
    diversity,
    first,
    gaussians,
    invariants,
    limits,
    measure,
    method_table,
    models,
    one_call,
    paper,
    peers,
    plausible,
    population,
    possible,
    reals,
    reals_trees,
    retraining,
    robust,
    rules,
    scale,
    search,
    smooth,
    threads,
    tree_race,
    trees,
    why,
)

PARTS = (
    search, scale, deployed, paper, peers, report, publish, measure, certificates, method_table, agreement, diversity,
    rules, first, one_call, limits, invariants, possible, chains, robust, retraining, plausible, trees, tree_race,
    reals_trees, smooth, gaussians, threads, reals, audit, audit_stream, population, desk, why, causes, models,
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Benchmarks of ifonly: one CSV record per row asked, summaries in the terminal and in Markdown."""


for part in PARTS:
    main.add_command(part.command)


if __name__ == "__main__":
    main()
