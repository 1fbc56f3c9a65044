"""`ifonly diverse`: several answers for each row, each the nearest that differs from the earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.certificates import certificate_option, certificate_output, certificate_place
from ifonly.cli.console import NUMBER, json_option, note, show, show_json
from ifonly.cli.options import EFFORT, PAGE, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import escape_option, page_path, write_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ifonly.cli.certificates import CertificateOutput
    from ifonly.errors import Contradiction, RowError
    from ifonly.explainer import Explainer
    from ifonly.problem import Query
    from ifonly.problem.diversity import Diversity
    from ifonly.results import DiverseAnswers, Method

EPILOG = f"""\b
Examples:
  ifonly diverse --dataset credit --row 0 -k 5
  ifonly diverse --dataset adult --row 0 -k 3 --differ features
  ifonly diverse --dataset compas --row 0 -k 3 --certificate set.certs
  ifonly diverse --model net.onnx --schema schema.json --rows people.csv --first 10 -k 4 --apart 0.05 --json

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, EFFORT, PAGE)
@click.option("-k", "count", type=int, default=3, show_default=True, metavar="K", help="How many answers per row.")
@click.option("--differ", type=click.Choice(["distance", "features", "values"]), default="distance", show_default=True,
              help="What makes answers different.")  # fmt: skip
@click.option("--apart", type=NUMBER, default=0.01, show_default=True, metavar="D",
              help="By how much: in distance, or (values) in the scale of a real number.")  # fmt: skip
@click.option("--apart-distance", metavar="D", help="The distance between answers (default: that of the question).")
@click.option("--output", metavar="FILE", help="Write one record per answer: .csv, .jsonl, .parquet or .xlsx.")
@certificate_option("a certificate of each answer, FILE.certs")
@escape_option
@json_option
def diverse(count: int, differ: Any, apart: float, apart_distance: str | None, as_json: bool, **options: Any) -> int:
    """Several answers for each row, nearest first, each the nearest that differs from all earlier ones."""
    from ifonly.cli.explain import explainer_and_query
    from ifonly.cli.query_arguments import read_norm
    from ifonly.cli.source import read_source
    from ifonly.errors import Contradiction, RowError
    from ifonly.problem import Distance
    from ifonly.problem.diversity import Diversity
    from ifonly.report.diverse import diverse_page

    between = None if apart_distance is None else Distance(read_norm(apart_distance))
    diversity = Diversity(count, apart=apart, differ=differ, apart_distance=between)
    page, path, place = _places(options)
    source = read_source(options)
    explainer, query = explainer_and_query(source, {**options, "why": False})
    explainer = explainer.using(_one_method(options))
    certificates = certificate_output(place, explainer, f"{query.to_json()} {diversity}", force=options["force"])
    found: dict[int, DiverseAnswers] = {}
    wrong: dict[int, RowError | Contradiction] = {}
    try:
        for number, answers in _sets(explainer, query, source.rows, diversity):
            if isinstance(answers, RowError | Contradiction):
                wrong[number] = answers
                continue
            if not as_json:
                if found:
                    click.echo()
                show(diverse_page(answers, number))
            found[number] = answers
    except KeyboardInterrupt:
        note(f"{len(found):,} of {len(source.rows):,} rows are answered.")
        return codes.INTERRUPTED
    finally:
        if as_json and found:
            show_json({"sets": [_document(number, answers) for number, answers in found.items()]})
    _write(page, path, found, source.model.outputs, options)
    if certificates is not None:
        _certify(certificates, explainer, source.rows, (diversity, query), found)
    code = _code(found, wrong)
    return codes.LIMIT if code == codes.PROVEN and certificates is not None and not certificates.complete else code


def _places(options: dict[str, Any]) -> tuple[Path | None, Path | None, Path | None]:
    """Where the page, the table and the certificates go: checked before the work."""
    from ifonly.cli.tables import answers_place, check_escaping
    from ifonly.errors import QuestionError

    output, force = options["output"], options["force"]
    if options["html"] is not None and len(options["chosen"]) != 1 and options["first"] != 1:
        raise QuestionError("A page of alternatives is about one person: say which with --row I.")
    page = page_path(options)
    check_escaping(output, escape_formulas=options["escape_formulas"])
    path = None if output is None else answers_place(output, force=force)
    return page, path, certificate_place(options["certificate"], force=force, one=False)


def _certify(
    certificates: CertificateOutput,
    explainer: Explainer,
    rows: Any,
    asked: tuple[Diversity, Query],
    found: dict[int, DiverseAnswers],
) -> None:
    from functools import partial

    from ifonly.certifying.answers import certificates_of_set

    for number, answers in found.items():
        certificates.add(number, partial(certificates_of_set, explainer, rows[number], *asked, answers))
    certificates.close()


def _code(found: dict[int, DiverseAnswers], wrong: dict[int, RowError | Contradiction]) -> int:
    """Print the errors, and return the most serious exit code."""
    from ifonly.errors import Contradiction

    for number, error in wrong.items():
        note(f"row {number}: {error}")
    if any(isinstance(error, Contradiction) for error in wrong.values()):
        return codes.CONTRADICTION
    return codes.ERROR_ROWS if wrong else codes.PROVEN if all(a.proven for a in found.values()) else codes.LIMIT


def _write(
    page: Path | None, path: Path | None, found: dict[int, DiverseAnswers], outputs: int, options: dict[str, Any]
) -> None:
    """Write the page and the table. `place` counts the answers of a row, the nearest first."""
    from dataclasses import replace

    from ifonly.cli.tables import write_answers

    if page is not None and found:
        (only,) = found.values()
        write_page(page, only, options)
    if path is not None:
        answers = [replace(answer, row=number) for number, several in found.items() for answer in several]
        places = [1 + k for several in found.values() for k in range(len(several))]
        force, escape = options["force"], options["escape_formulas"]
        write_answers(path, answers, outputs, beside={"place": places}, overwrite=force, escape_formulas=escape)
        note(f"Written to {path}.")


def _document(number: int, answers: DiverseAnswers) -> dict[str, Any]:
    data = answers.to_dict()
    return {"row": number, **data, "answers": [{**answer, "row": number} for answer in data["answers"]]}


def _one_method(options: dict[str, Any]) -> Method | None:
    from ifonly.cli.query_arguments import read_methods
    from ifonly.errors import QuestionError

    methods = read_methods(options["methods"])
    if len(methods) > 1:
        raise QuestionError("A set is made by one method; name one with --method.")
    return methods[0]


def _sets(explainer: Explainer, query: Query, rows: Any, diversity: Diversity) -> Iterator[tuple[int, Any]]:
    """The set of each row, or the error of one that does not fit the schema, or that shows a bug."""
    from ifonly.errors import Contradiction, RowError
    from ifonly.report import progress
    from ifonly.results import Progress

    with progress(len(rows)) as bar:
        for done, (number, row) in enumerate(rows.items()):
            try:
                yield number, explainer.explain_diverse(row, diversity, query)
            except (RowError, Contradiction) as error:
                yield number, error
            bar(Progress(finished=done + 1, people=len(rows)))
