"""`ifonly check`: verify a certificate in exact arithmetic, and whose it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import json_option, note, show_json
from ifonly.cli.options import SOURCE, with_options
from ifonly.cli.outputs import check_place, force_option

if TYPE_CHECKING:
    from ifonly.certificate.format import Certificate
    from ifonly.certificate.showing import Comparison

EVERY = 5.0
"""Seconds between two lines about how far it is."""

EPILOG = """\b
Examples:
  ifonly check answer.cert
  ifonly check answer.cert --model net.onnx --schema schema.json --rows people.csv --row 17
  ifonly check answer.cert --html answer.html
  ifonly check people.certs

\b
Exit codes:
  0    VALID: the statement that is printed is proven
  1    INVALID: the step that is printed fails
  2    wrong usage, or no such file
  3    VALID EXCEPT FOR THE SOLVER'S BOUND: the row is verified, the lower bound is not proven
  4    UNDECIDED: the check was not over in time
  5    VALID, BUT OF ANOTHER model, schema or person than the one given
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True))
@with_options(SOURCE)
@click.option("--time-limit", type=click.FloatRange(min=0.0, min_open=True), default=3600.0, show_default=True,
              metavar="S", help="Seconds that the check may take.")  # fmt: skip
@click.option("--html", metavar="FILE", help="Write the result as a page, too.")
@force_option
@json_option
def check(file: str, time_limit: float, html: str | None, force: bool, as_json: bool, **options: Any) -> int:
    """Check a certificate: every step again, in exact arithmetic, without the search.

    With a model, a schema or a row, also whether the certificate is about these.
    """
    from ifonly.certificate.check import check as verify
    from ifonly.certificate.check.checker import CODES
    from ifonly.certificate.collection import is_collection
    from ifonly.certificate.format import Certificate
    from ifonly.certificate.showing import ANOTHER, as_html, as_text, verdict_words
    from ifonly.schema import write_whole

    if is_collection(file):
        return _check_all(file, time_limit, as_json=as_json)
    place = None if html is None else check_place(html, force=force)
    checked = verify(file, seconds=time_limit)
    compared = _compared(Certificate.load(file), options) if checked.statement else ()
    if as_json:
        compares = {"compared": [one.to_dict() for one in compared]} if compared else {}
        show_json({**checked.to_dict(), "verdict": verdict_words(checked, compared), **compares})
    else:
        click.echo(as_text(checked, compared))
    if place is not None:
        write_whole(place, as_html(checked, compared).encode("utf-8"), overwrite=force)
        note(f"Written to {html}.")
    return CODES[checked.verdict] if all(one.same for one in compared) else ANOTHER


def _check_all(file: str, time_limit: float, *, as_json: bool) -> int:
    """Every certificate of a collection, and a summary."""
    from ifonly.certificate.collection import Entry, check_collection

    told = time.monotonic()

    def progress(entry: Entry) -> None:
        nonlocal told
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            note(f"Row {entry.row}.")

    summary = check_collection(file, seconds=time_limit, each=progress)
    if as_json:
        show_json(summary.to_dict())
    else:
        click.echo(str(summary))
    return summary.code


def _compared(certificate: Certificate, options: dict[str, Any]) -> tuple[Comparison, ...]:
    """What of model, schema and row was given, against what the certificate is about."""
    from ifonly.certifying.identity import compared_model, compared_person, compared_schema
    from ifonly.cli.source import read_one_row, read_stated_model
    from ifonly.errors import QuestionError
    from ifonly.schema import load_schema

    model_file, schema_file, dataset = options["model_file"], options["schema_file"], options["dataset"]
    if not any((model_file, schema_file, dataset, options["rows_file"])):
        return ()
    if dataset is None and schema_file is None:
        raise QuestionError("Say what a row is with --schema FILE: the model and the row are read by it.")
    found = []
    if model_file is not None or dataset is not None:
        model = read_stated_model(options)
        schema = model.schema
        found.append(compared_model(certificate, model, model_file or dataset))
    else:
        schema = load_schema(schema_file)
    found.append(compared_schema(certificate, schema, schema_file or dataset))
    if options["rows_file"] is not None or options["chosen"]:
        number, row = read_one_row(options, schema)
        found.append(compared_person(certificate, schema, row, f"row {number}"))
    return tuple(found)
