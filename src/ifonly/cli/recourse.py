"""`ifonly recourse`: the cheapest action of each row, when other features follow their causes, with the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.certificates import certificate_option, certificate_output, certificate_place
from ifonly.cli.console import NUMBER, json_option, show, show_json
from ifonly.cli.options import EFFORT, PAGE, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import page_path, write_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ifonly.causes import CausalModel
    from ifonly.cli.certificates import CertificateOutput
    from ifonly.cli.source import Source
    from ifonly.explainer import Explainer
    from ifonly.problem import Query
    from ifonly.results.recourse import Recourse

EPILOG = f"""\b
Examples:
  ifonly recourse --dataset adult --row 0 --causes causes.json
  ifonly recourse --model net.onnx --schema schema.json --rows people.csv --causes causes.json --fix Age --json
  ifonly recourse --dataset credit --row 3 --causes causes.json --holding 0.05 --html advice.html
  ifonly recourse --dataset adult --row 0 --causes causes.json --certificate action.cert

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, EFFORT[:3], PAGE)
@click.option("--causes", "causes_file", required=True, metavar="FILE",
              help="The equations of the features that follow others (written by CausalModel.save).")  # fmt: skip
@click.option("--holding", type=NUMBER, metavar="COST",
              help="What acting against the causes of a feature costs, beside its change.")  # fmt: skip
@certificate_option("a certificate that no action is cheaper (of many rows: FILE.certs)")
@json_option
def recourse(causes_file: str, holding: float | None, as_json: bool, **options: Any) -> int:
    """The cheapest action after which the model decides as asked, when other features follow their causes."""
    from ifonly.causes import CausalModel
    from ifonly.cli.explain import explainer_and_query
    from ifonly.cli.source import read_source
    from ifonly.cli.why import exit_code
    from ifonly.errors import QuestionError
    from ifonly.report.recourse import recourse_page

    if options["html"] is not None and len(options["chosen"]) != 1 and options["first"] != 1:
        raise QuestionError("A page of recourse is about one person: say which with --row I.")
    page = page_path(options)
    source = read_source(options)
    causes = CausalModel.load(causes_file, source.model.schema)
    causes = causes if holding is None else causes.with_holding(holding)
    explainer, query = explainer_and_query(source, {**options, "threads": 1, "why": None})
    explainer = explainer.using(_method(options["methods"]))
    certificates = _certificates(options, source, explainer, f"{query.to_json()} {causes.to_dict()}")
    found: dict[int, Recourse] = {}
    wrong: dict[int, Exception] = {}
    for number, told in recourse_of_rows(explainer, source, causes, query):
        if isinstance(told, Exception):
            wrong[number] = told
            continue
        if not as_json:
            show(recourse_page(told, options["language"], options["subject"]))
        found[number] = told
    if as_json:
        show_json({"recourse": [told.to_dict() for told in found.values()]})
    if page is not None and found:
        write_page(page, next(iter(found.values())), options)
    if certificates is not None:
        _certify(certificates, explainer, source.rows, (causes, query), found)
    complete = certificates is None or certificates.complete
    told_all = all(told.status in ("nearest", "none exists") for told in found.values())
    return exit_code(wrong, proven=complete and told_all)


def _certificates(
    options: dict[str, Any], source: Source, explainer: Explainer, asked: str
) -> CertificateOutput | None:
    """Where certificates go; an error, before the work, for what has none."""
    from ifonly.certifying.recourse import check_method

    if options["certificate"] is None:
        return None
    check_method(explainer)
    place = certificate_place(options["certificate"], force=options["force"], one=len(source.rows) == 1)
    return certificate_output(place, explainer, asked, force=options["force"])


def _certify(
    certificates: CertificateOutput,
    explainer: Explainer,
    rows: Any,
    asked: tuple[CausalModel, Query],
    found: dict[int, Recourse],
) -> None:
    from functools import partial

    from ifonly.certifying.recourse import certificate_of_recourse

    for number, told in found.items():
        certificates.add(number, partial(certificate_of_recourse, explainer, rows[number], *asked, told))
    certificates.close()


def _method(words: str | None) -> Any:
    from ifonly.cli.query_arguments import read_methods
    from ifonly.errors import QuestionError

    methods = read_methods(words)
    if len(methods) > 1:
        raise QuestionError("An action is found by one method; name one with --method.")
    return methods[0]


def recourse_of_rows(
    explainer: Explainer, source: Source, causes: CausalModel, query: Query
) -> Iterator[tuple[int, Any]]:
    """The recourse of each row, or the error of one that does not fit."""
    from dataclasses import replace

    from ifonly.errors import Contradiction, RowError
    from ifonly.report import progress
    from ifonly.results import Progress

    with progress(len(source.rows)) as bar:
        for done, (number, row) in enumerate(source.rows.items()):
            try:
                told = explainer.recourse(row, causes, query)
                yield number, replace(told, answer=replace(told.answer, row=number))
            except (RowError, Contradiction) as error:
                yield number, error
            bar(Progress(finished=done + 1, people=len(source.rows)))
