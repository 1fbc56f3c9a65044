"""`ifonly audit`: who has recourse in a group of people, and what it costs, by subgroup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import json_option, note, show, show_json
from ifonly.cli.options import EFFORT, FEWEST, QUESTION, SOURCE, with_options

if TYPE_CHECKING:
    from ifonly.cli.asking import Told
    from ifonly.cli.source import Source
    from ifonly.explainer import Explainer
    from ifonly.population.audit import Audit
    from ifonly.problem import Query

EPILOG = f"""\b
Examples:
  ifonly audit --dataset adult --by Sex --fix Sex --fix Age --first 1000
  ifonly audit --model net.onnx --schema schema.json --rows people.csv --target approve --by Region --plot audit.svg

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, FEWEST, EFFORT)
@click.option("--by", metavar="COLUMN", help="What people are grouped by: any column of the table, feature or not.")
@click.option("--plot", metavar="FILE", help="Draw the share with recourse over its cost, as .svg or .html.")
@json_option
def audit(by: str | None, plot: str | None, as_json: bool, **options: Any) -> int:
    """Recourse over a group: the share who have it, who provably have none, its cost by subgroup, what changes."""
    from ifonly.cli.explain import read_asking
    from ifonly.cli.source import read_source
    from ifonly.errors import IfonlyError
    from ifonly.population.audit import audit as make
    from ifonly.population.ways import flip_sets
    from ifonly.report import Heading, audit_page, flip_sets_page

    path = None if plot is None else _check_plot(plot)
    options = _favourable(options)
    source = read_source(options)
    labels = None if by is None else _labels(source, by)
    explainer, query = read_asking(source, {**options, "why": False})
    told = _told(explainer, query, source, options)
    answers = told.answers
    if isinstance(told.stopped, IfonlyError):
        raise told.stopped
    groups = None if labels is None else [labels[answer.row] for answer in answers]
    found, sets = _named(make(answers, by=groups), by), flip_sets(answers)
    if path is not None:
        _draw(path, found)
    if as_json:
        show_json({**found.to_dict(), "flip_sets": [one.to_dict() for one in sets]})
    else:
        show((*audit_page(found), Heading("What changes together"), *flip_sets_page(sets, most=10)))
    if told.stopped is not None:
        note(f"{len(answers):,} of {len(told.order):,} rows are answered.")
        return codes.INTERRUPTED
    return codes.of_answers(list(answers))


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
    """The value of the column for each row."""
    from ifonly.errors import QuestionError

    for row in source.rows.values():
        if by not in row:
            shown = ", ".join(list(row)[:8]) + (", ..." if len(row) > 8 else "")
            raise QuestionError(f"There is no column '{by}' to group people by; the columns are {shown}.")
    return {number: row[by] for number, row in source.rows.items()}


def _told(explainer: Explainer, query: Query, source: Source, options: dict[str, Any]) -> Told:
    from ifonly.cli.asking import ask
    from ifonly.cli.question import read_methods
    from ifonly.errors import QuestionError
    from ifonly.report import progress

    methods = read_methods(options["methods"])
    if len(methods) > 1:
        raise QuestionError("An audit is by one method; name one with --method.")
    with progress(len(source.rows)) as bar:
        return ask(explainer.using(methods[0]), source.rows, query, bar)


def _named(audit: Audit, by: str | None) -> Audit:
    from dataclasses import replace

    return replace(audit, by=by or "")


def _check_plot(name: str) -> Path:
    from ifonly.errors import FileError
    from ifonly.schema.given import path_of

    path = path_of(name)
    if path.suffix.lower() not in (".svg", ".html"):
        raise FileError(f"A picture is written as .svg or .html; '{path.name}' is neither.")
    if not path.resolve().parent.is_dir():
        raise FileError(f"Cannot write '{path}': there is no folder '{path.resolve().parent.name}'.")
    return path


def _draw(path: Path, audit: Audit) -> None:
    from html import escape

    from ifonly.report import audit_page, audit_svg, plain
    from ifonly.schema.io import write_whole

    picture = audit_svg(audit)
    if path.suffix.lower() == ".html":
        picture = (
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Recourse</title>\n<body>\n{picture}'
            f"<pre>{escape(plain(audit_page(audit)))}</pre>\n</body></html>\n"
        )
    write_whole(path, picture.encode("utf-8"))
    note(f"Written to {path}.")
