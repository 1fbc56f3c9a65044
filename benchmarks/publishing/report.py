"""`report`: the summaries of the records that are there, printed."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.showing.summaries import show_suite
from benchmarks.suites import scale, search
from benchmarks.terminal import Folders, console, folder_options, quick_option


@click.command("report")
@quick_option
@folder_options
def command(quick: bool, cache: Path, results: Path) -> None:
    """Print the summaries of the records that are there."""
    out = console()
    for suite in (*search.SUITES, *scale.SUITES):
        show_suite(suite, Folders.of(cache, results, quick=quick).results, out)
