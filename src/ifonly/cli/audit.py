"""`ifonly audit`: who has recourse in a group of people, and what it costs, by subgroup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import json_option, note, show, show_json
from ifonly.cli.options import EFFORT, FEWEST, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import check_place, force_option

if TYPE_CHECKING:
    from ifonly.cli.source import Source
    from ifonly.explainer import Explainer
    from ifonly.problem import Query
    from ifonly.proof import Method
    from ifonly.report import Provenance

NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,17})?", re.ASCII)

EPILOG = f"""\b
Examples:
  ifonly audit --dataset adult --by Sex --fix Sex --fix Age --first 1000
  ifonly audit --dataset credit --by AgeGroup --fix AgeGroup --output audit.html
  ifonly audit --model net.onnx --schema schema.json --rows people.csv --target approve --by Region --output audit.json

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, FEWEST, EFFORT)
@click.option("--by", metavar="COLUMN", help="What people are grouped by: any column of the table, feature or not.")
@click.option(
    "--least",
    type=int,
    default=30,
    show_default=True,
    metavar="N",
    help="Groups with fewer people who need recourse are named, but not compared.",
)
@click.option(
    "--quantiles",
    "parts",
    type=int,
    default=4,
    show_default=True,
    metavar="N",
    help="Numbers with many values are cut into N groups of about the same size.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="What draws by chance start from.")
@click.option(
    "--why/--no-why",
    default=True,
    show_default=True,
    help="Ask what rules recourse out for those who have none (at most 100 of them).",
)
@click.option("--output", metavar="FILE", help="Write the audit: .html (a page to hand over), .json, .csv or .svg.")
@force_option
@json_option
def audit(by: str | None, output: str | None, force: bool, as_json: bool, **options: Any) -> int:
    """Recourse over a group: who has it, who provably has none, its cost by subgroup, what changes, what helps."""
    from ifonly.cli.asking import ask
    from ifonly.cli.audit_files import KINDS, write_audit
    from ifonly.cli.explain import read_asking
    from ifonly.cli.source import read_source
    from ifonly.errors import IfonlyError
    from ifonly.population.audit import audit as made_from
    from ifonly.population.labels import Grouping
    from ifonly.report import Heading, audit_data, audit_page, flip_sets_page, progress

    path = None if output is None else check_place(output, force=force, kinds=KINDS, what="An audit")
    grouping = Grouping(by, least=options["least"], parts=options["parts"], seed=options["seed"])
    options = _favourable(options)
    source = read_source(options)
    labels = None if by is None or by in source.model.schema.names else _labels(source, by)
    explainer, query = read_asking(source, {**options, "why": False})
    explainer = explainer.using(_method(options))
    with progress(len(source.rows)) as bar:
        told = ask(explainer, source.rows, query, bar)
    if isinstance(told.stopped, IfonlyError):
        raise told.stopped
    beside = grouping if labels is None else replace(grouping, by=[labels[one.row] for one in told.answers])
    made = replace(
        made_from(told.answers, by=beside, judge=explainer.judge(query, reasons=options["why"])), by=by or ""
    )
    where = _provenance(explainer, query, source, options)
    if path is not None:
        write_audit(path, made, where, force=force)
        note(f"Written to {path}.")
    if as_json:
        show_json(audit_data(made, where))
    else:
        sets = flip_sets_page(made.everybody.details.together, most=10)
        show((*audit_page(made), Heading("What changes together"), *sets))
    if told.stopped is not None:
        note(f"{len(told.answers):,} of {len(told.order):,} rows are answered.")
        return codes.INTERRUPTED
    return codes.of_answers(list(told.answers))


def _favourable(options: dict[str, Any]) -> dict[str, Any]:
    """Everybody is asked about the same decision: of a shipped data set the favourable one, else it must be named."""
    from ifonly.cli.shipped import WORDS
    from ifonly.errors import QuestionError

    asked = ("target", "one_of", "other", "at_least", "at_most", "query_file")
    if any(options[name] not in (None, False) for name in asked):
        return options
    name = options["dataset"]
    if name not in WORDS or options["model_file"] is not None or options["classes"] is not None:
        raise QuestionError("Say which decision people want with --target CLASS: recourse is a way to that one.")
    return {**options, "target": WORDS[name].classes[1 - WORDS[name].unfavourable]}


def _labels(source: Source, by: str) -> dict[int, Any]:
    """The value of the column for each row. Texts that are numbers are numbers: a csv file has no others."""
    from ifonly.errors import QuestionError

    for row in source.rows.values():
        if by not in row:
            shown = ", ".join(list(row)[:8]) + (", ..." if len(row) > 8 else "")
            raise QuestionError(f"There is no column '{by}' to group people by; the columns are {shown}.")
    return {number: _typed(row[by]) for number, row in source.rows.items()}


def _typed(cell: Any) -> Any:
    """A number where the text is one as people write it: 12, -3.5, but not 007, 1_000 or inf."""
    if not isinstance(cell, str) or not NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)


def _method(options: dict[str, Any]) -> Method | None:
    from ifonly.cli.question import read_methods
    from ifonly.errors import QuestionError

    methods = read_methods(options["methods"])
    if len(methods) > 1:
        raise QuestionError("An audit is by one method; name one with --method.")
    return methods[0]


def _provenance(explainer: Explainer, query: Query, source: Source, options: dict[str, Any]) -> Provenance:
    from ifonly.report import provenance
    from ifonly.report.origins import file_fingerprint, rows_fingerprint

    file, rows = options["rows_file"], f"{len(source.rows):,} rows"
    if file is not None:
        return provenance(explainer, query, data=f"{Path(file).name}, {rows}", fingerprint=file_fingerprint(file))
    name = f"{options['dataset']} (shipped with ifonly), {rows}"
    return provenance(explainer, query, data=name, fingerprint=rows_fingerprint(source.rows.values()))
