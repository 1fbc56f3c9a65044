"""`ifonly explain --output`: a table of any size, answered into a file or a folder of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import WholeNumber, note, show, show_json
from ifonly.cli.outputs import escape_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ifonly.population.engines import Engine
    from ifonly.population.existing_output import Existing
    from ifonly.population.run import RunResult
    from ifonly.population.sources import RowSource

FEW = 2000
"""Rows up to which this process answers by default: worker processes take two seconds to start."""

STREAM = (
    click.option("--output", metavar="PATH", help="Write one record per row: a file (.csv, .jsonl, .parquet), or a "
                 "folder of parts (answers.parquet/), or a URL."),
    click.option("--flat-changes", is_flag=True,
                 help="With --output: the changes also as columns, 'FEATURE (after)'."),
    click.option("--partition-by", multiple=True, metavar="COLUMN",
                 help="With a folder as --output: a folder COLUMN=value for each value; may be repeated."),
    click.option("--keep", "keep", multiple=True, metavar="COLUMN",
                 help="With --output or --html: keep this column, such as the customer's number; may be repeated."),
    click.option("--keep-all", is_flag=True, help="The same of all columns that are no features."),
    escape_option,
    click.option("--resume", is_flag=True, help="With --output: go on with a run that ended early."),
    click.option("--processes", type=WholeNumber(min=1), metavar="N",
                 help="With --output: processes of this machine (default: one per core, one for few rows)."),
    click.option("--engine", type=click.Choice(["local", "ray", "dask"]), default="local", show_default=True,
                 help="With --output: where rows are answered."),
    click.option("--address", metavar="ADDRESS", help="Where the cluster of --engine is, such as auto or ray://HOST:10001."),
)  # fmt: skip


def check_options(options: Mapping[str, Any], *, several: bool, sheet: bool) -> None:
    """Options of --output need it, and exclude some others."""
    from ifonly.errors import QuestionError

    given = [name for name in ("keep", "keep_all", "flat_changes", "partition_by", "resume", "processes", "address")
             if options[name]]  # fmt: skip
    given += ["engine"] if options["engine"] != "local" else []
    what = f"--{given[0].replace('_', '-')}" if given else ""
    if given and options["output"] is None and (options["html"] is None or "keep" not in what):
        raise QuestionError(f"{what} is about answers that are written: say where with --output PATH.")
    given = [name for name in given if not name.startswith("keep") or several or not (options["html"] or sheet)]
    what = f"--{given[0].replace('_', '-')}" if given else ""
    others = {"several methods": several, "--row": options["chosen"], "--html": options["html"], "an Excel file": sheet}
    if given and any(others.values()):
        why = next(name for name, there in others.items() if there)
        raise QuestionError(f"{what} cannot be asked for together with {why}.")
    if options["resume"] and options["force"]:
        raise QuestionError("--resume goes on with a run, --force begins it anew: give one of them.")
    if options["address"] and options["engine"] == "local":
        raise QuestionError("--address is that of a cluster: say which kind with --engine ray or --engine dask.")
    if options["processes"] and options["engine"] != "local":
        raise QuestionError(
            f"--processes are those of this machine; --engine {options['engine']} has workers of its own."
        )


def explain_stream(options: dict[str, Any], method: Any, as_json: bool) -> int:
    """Answer all rows into a file, print the summary, and return the exit code."""
    from ifonly.cli.explain import explainer_for
    from ifonly.cli.source import read_model, rows_source, scale_data
    from ifonly.errors import Contradiction
    from ifonly.population.output import manifest_of
    from ifonly.population.output_paths import Output
    from ifonly.population.remote import local_place

    model = read_model(options)
    rows = rows_source(options)
    explainer, query = explainer_for(model, scale_data(options, model), {**options, "why": False})
    keep = options["keep_all"] or options["keep"]
    existing: Existing = "resume" if options["resume"] else "replace" if options["force"] else "refuse"
    output = Output(
        options["output"], flat_changes=options["flat_changes"], escape_formulas=options["escape_formulas"],
        partition_by=tuple(options["partition_by"]),
    )  # fmt: skip
    try:
        written = explainer.using(method, listen=None).explain_to(
            output, rows, query, keep=keep, existing=existing, engine=engine_of(options, rows)
        )
    except KeyboardInterrupt:
        kept = (manifest_of(local_place(options["output"])) or {}).get("rows", 0)
        note(f"{kept:,} rows are answered and kept; go on with --resume." if kept else "No row is answered yet.")
        return codes.INTERRUPTED
    _show_summary(written, as_json, [one.describe() for one in explainer.constraints_for(query.constraints)])
    if written.contradictions:
        raise Contradiction(
            f"{written.contradictions:,} of {written.rows:,} rows show a bug: their records in '{written.path}' have "
            f"the status error and a note that says which two things do not agree; please report it."
        )
    return codes.of_counts(written.counts)


def engine_of(options: Mapping[str, Any], rows: RowSource) -> Engine:
    """Who answers the rows."""
    from ifonly.population.engines import Dask, InProcess, Processes, Ray

    match options["engine"]:
        case "ray":
            return Ray(options["address"])
        case "dask":
            return Dask(options["address"])
    processes = options["processes"]
    count = rows.estimated_rows()
    few = count is not None and count <= FEW
    return InProcess() if processes is None and few else Processes(processes)


def _show_summary(written: RunResult, as_json: bool, constraints: list[str]) -> None:
    from ifonly.report import figures_page

    if as_json:
        show_json(
            {
                "output": str(written.path),
                "already": written.already,
                "contradictions": written.contradictions,
                "summary": written.summary,
                "constraints": constraints,
            }
        )
        return
    show(figures_page(written.summary, constraints))
    note(
        f"{written.path} was finished already; nothing was done." if written.already else f"Written to {written.path}."
    )
