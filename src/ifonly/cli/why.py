"""`ifonly why`: which values of a row decide it alone, whatever the others are, with the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.certificates import certificate_option, certificate_output, certificate_place
from ifonly.cli.console import NUMBER, WholeNumber, json_option, note, show, show_json
from ifonly.cli.options import EFFORT, PAGE, SOURCE, TARGET, with_options
from ifonly.cli.outputs import page_path, write_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ifonly.cli.certificates import CertificateOutput
    from ifonly.cli.source import Source
    from ifonly.explainer import Explainer
    from ifonly.problem.sufficiency import Sufficiency
    from ifonly.results.sufficient import SufficientReasons

EPILOG = f"""\b
Examples:
  ifonly why --dataset credit --row 51
  ifonly why --dataset compas --row 1 --all
  ifonly why --dataset adult --row 0 --prefer Age,HoursPerWeek --html why.html
  ifonly why --dataset compas --row 1 --certificate why.cert
  ifonly why --model net.onnx --schema schema.json --rows people.csv --first 10 --json

{codes.EPILOG}"""

REASON = (
    click.option("--within", "within", multiple=True, metavar="TEXT",
                 help="Only rows that meet this count, such as 'Income changes by at most 10 %'."),
    click.option("--radius", type=NUMBER, metavar="R", help="Only rows within this distance count."),
    click.option("--distance", metavar="D", help="What --radius is measured in: l0, l1 (the default), l2, linf."),
    click.option("--prefer", multiple=True, metavar="F,F", help="As few other features as possible."),
    click.option("--weight", "weights", type=(str, NUMBER), multiple=True, metavar="F W",
                 help="Feature F counts W times (default 1); the least sum is looked for."),
    click.option("-k", "several", type=WholeNumber(), default=1, show_default=True, metavar="K",
                 help="How many reasons per row."),
    click.option("--all", "every", is_flag=True, help="All minimal reasons, and the features that are in none."),
)  # fmt: skip


@click.command(epilog=EPILOG)
@with_options(SOURCE, TARGET, REASON, EFFORT[:3], PAGE)
@certificate_option("a certificate of the reason (of many rows: FILE.certs)")
@json_option
def why(as_json: bool, **options: Any) -> int:
    """The smallest set of values that decides each row alone, whatever the others are, with its proof.

    The target is the outcome that the row does not have: by default any other decision.
    """
    from ifonly.cli.source import read_source
    from ifonly.errors import QuestionError
    from ifonly.report.reasons import reasons_page

    if options["html"] is not None and len(options["chosen"]) != 1 and options["first"] != 1:
        raise QuestionError("A page of reasons is about one person: say which with --row I.")
    page = page_path(options)
    source = read_source({**options, "scale": None, "data_file": None})
    sufficiency, explainer = read_sufficiency(options, source), reasons_explainer(options, source)
    certificates = _certificates(options, source, explainer, sufficiency)
    found: dict[int, SufficientReasons] = {}
    wrong: dict[int, Exception] = {}
    for number, explanation in reasons_of_rows(explainer, source, sufficiency):
        if isinstance(explanation, Exception):
            wrong[number] = explanation
            continue
        if not as_json:
            show(reasons_page(explanation, options["language"], options["subject"]))
        found[number] = explanation
    if as_json:
        show_json({"reasons": [explanation.to_dict() for explanation in found.values()]})
    if page is not None and found:
        write_page(page, next(iter(found.values())), options)
    if certificates is not None:
        _certify(certificates, explainer, source.rows, sufficiency, found)
    complete = certificates is None or certificates.complete
    return exit_code(wrong, proven=complete and all(explanation.status == "smallest" for explanation in found.values()))


def _certificates(
    options: dict[str, Any], source: Source, explainer: Explainer, sufficiency: Sufficiency
) -> CertificateOutput | None:
    """Where certificates go; an error, before the work, for what has none."""
    from ifonly.certifying.reason import check_method
    from ifonly.errors import QuestionError

    if options["certificate"] is None:
        return None
    if sufficiency.several != 1:
        raise QuestionError("A certificate is about one reason of a row; leave out -k and --all, or --certificate.")
    check_method(explainer)
    place = certificate_place(options["certificate"], force=options["force"], one=len(source.rows) == 1)
    return certificate_output(place, explainer, str(sufficiency), force=options["force"])


def _certify(
    certificates: CertificateOutput,
    explainer: Explainer,
    rows: Any,
    sufficiency: Sufficiency,
    found: dict[int, SufficientReasons],
) -> None:
    from functools import partial

    from ifonly.certifying.reason import certificate_of_reason

    for number, explanation in found.items():
        certificates.add(number, partial(certificate_of_reason, explainer, rows[number], sufficiency, explanation))
    certificates.close()


def read_sufficiency(options: dict[str, Any], source: Source) -> Sufficiency:
    """The question of the options."""
    from ifonly.cli.query_arguments import named, read_norm, read_target
    from ifonly.errors import QuestionError
    from ifonly.problem.sufficiency import Neighbourhood, Sufficiency

    schema = source.model.schema
    if options["prefer"] and options["weights"]:
        raise QuestionError("--prefer and --weight are two ways to say what a reason should be; give one of them.")
    if options["distance"] is not None and options["radius"] is None:
        raise QuestionError("--distance is what --radius is measured in: say how far with --radius R.")
    near = Neighbourhood(
        constraints=options["within"], radius=options["radius"], distance=read_norm(options["distance"] or "l1")
    )
    prefer: Any = dict(options["weights"]) or named(options["prefer"], schema)
    several = None if options["every"] else options["several"]
    sufficiency = Sufficiency(target=read_target(options, None), within=near, prefer=prefer, several=several)
    sufficiency.query(schema, ())
    sufficiency.weights(schema, schema.names)
    return sufficiency


def reasons_explainer(options: dict[str, Any], source: Source) -> Explainer:
    """The explainer, with the method and the limits of the options."""
    from ifonly.cli.query_arguments import read_methods
    from ifonly.errors import QuestionError
    from ifonly.explainer import Explainer
    from ifonly.results import Limits

    methods = read_methods(options["methods"])
    if len(methods) > 1:
        raise QuestionError("Reasons are found by one method; name one with --method.")
    limits = Limits(seconds=options["time_limit"], nodes=options["node_limit"])
    return Explainer(source.model).using(methods[0], limits=limits)


def reasons_of_rows(explainer: Explainer, source: Source, sufficiency: Sufficiency) -> Iterator[tuple[int, Any]]:
    """The reasons of each row, or the error of one that does not fit."""
    from dataclasses import replace

    from ifonly.errors import Contradiction, QuestionError, RowError
    from ifonly.report import progress
    from ifonly.results import Progress

    with progress(len(source.rows)) as bar:
        for done, (number, row) in enumerate(source.rows.items()):
            try:
                yield number, replace(explainer.why(row, sufficiency), row=number)
            except (RowError, Contradiction) as error:
                yield number, error
            except QuestionError as error:
                if len(source.rows) == 1:
                    raise
                yield number, error
            bar(Progress(finished=done + 1, people=len(source.rows)))


def exit_code(wrong: dict[int, Exception], *, proven: bool) -> int:
    """Print the errors, and return the most serious exit code."""
    from ifonly.errors import Contradiction

    for number, error in wrong.items():
        note(f"row {number}: {error}")
    if any(isinstance(error, Contradiction) for error in wrong.values()):
        return codes.CONTRADICTION
    if wrong:
        return codes.ERROR_ROWS
    return codes.PROVEN if proven else codes.LIMIT
