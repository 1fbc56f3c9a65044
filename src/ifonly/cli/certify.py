"""`ifonly certify`: the answer to one row as a file that anyone can check."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import json_option, note, show_json
from ifonly.cli.options import EFFORT, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import check_place, force_option

if TYPE_CHECKING:
    from ifonly.certificate.check import CheckResult
    from ifonly.certificate.format import Certificate
    from ifonly.explainer import Explainer
    from ifonly.problem import Query
    from ifonly.results import Limits

EPILOG = f"""\b
Examples:
  ifonly certify --dataset credit --row 0 --output answer.cert
  ifonly check answer.cert
  ifonly certify --dataset compas --row 0 --method mip-obj --output word.cert
  ifonly certify word.cert --output proven.cert
  ifonly certify --dataset compas --first 100 --output people.certs
  ifonly certify --dataset compas --row 1 --fix PriorsCount,AgeGroup,Sex,Race --reasons --output none.certs

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True))
@with_options(SOURCE, QUESTION, EFFORT[:3])
@click.option("--output", metavar="FILE", required=True,
              help="Where the certificate goes; a name that ends with .certs takes those of many rows.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue a .certs file that was not finished.")
@click.option("--reasons", is_flag=True, help="Why there is none: what rules every change out, and what would help.")
@force_option
@json_option
def certify(
    file: str | None, output: str, resume: bool, reasons: bool, force: bool, as_json: bool, **options: Any
) -> int:
    """Prove the nearest counterfactual of one row, and write the proof as a certificate.

    An output that ends with .certs is a collection: the certificates of all rows, with the model stored once. It is
    written row by row; --resume continues it.

    With --reasons, each row for which no change helps has one certificate that the blamed constraints rule every change
    out, one of the nearest row that each relaxation leaves, and one per blamed constraint that is needed.

    With FILE, a certificate whose lower bound is a solver's: the search is asked the same question, and its
    proof takes the place of the word.
    """
    from ifonly.certificate.check import check
    from ifonly.certificate.collection import ENDING
    from ifonly.certifying.certificates import certify as make
    from ifonly.certifying.certificates import prove
    from ifonly.results import Limits
    from ifonly.schema import write_whole

    limits = Limits(seconds=options["time_limit"], nodes=options["node_limit"])
    if file is None and reasons:
        return _reasons(output, options, limits, force=force, resume=resume, as_json=as_json)
    if file is None and output.endswith(ENDING):
        return _many(output, options, limits, force=force, resume=resume, as_json=as_json)
    place = check_place(output, force=force)
    if file is None:
        question = _read_question(options, limits)
        started, word = time.perf_counter(), None
        certificate = make(*question)
    else:
        _refuse_a_question()
        started = time.perf_counter()
        certificate, word = prove(file, limits=limits), check(file)
    checked = _checked(certificate, limits, started)
    write_whole(place, certificate.content, overwrite=force)
    return _report(certificate, checked, word, output, as_json=as_json)


def _report(
    certificate: Certificate, checked: CheckResult, word: CheckResult | None, output: str, *, as_json: bool
) -> int:
    """Say what was written, and what of a solver's `word` it contradicts; the exit code."""
    from ifonly.certifying.certificates import disagreement

    contradiction = "" if word is None else disagreement(word, checked)
    if as_json:
        result = {"contradiction": contradiction, **checked.to_dict()}
        show_json({"output": output, "bytes": len(certificate.content), **result})
    else:
        click.echo(str(checked))
    note(f"Written to {output} ({len(certificate.content):,} bytes).")
    if contradiction:
        note(f"The solver was wrong: {contradiction}")
        return codes.CONTRADICTION
    if checked.trusted:
        note(f"To replace the solver's bound by a proof: ifonly certify {output} --output FILE")
        return codes.LIMIT
    return codes.PROVEN if checked.valid else codes.CONTRADICTION


def _many(output: str, options: dict[str, Any], limits: Limits, *, force: bool, resume: bool, as_json: bool) -> int:
    from ifonly.cli.certify_many import certify_many, exit_code

    if not resume:
        check_place(output, force=force).unlink(missing_ok=True)
    explainer, rows, query = _read_questions(options, limits)
    counts = certify_many(explainer, rows, query, output, resume=resume)
    if as_json:
        show_json(counts)
    else:
        click.echo(f"{counts['written']:,} certificates written, {counts['without']:,} rows have none.")
    note(f"Written to {output}; to check all of them: ifonly check {output}")
    return exit_code(counts)


def _reasons(output: str, options: dict[str, Any], limits: Limits, *, force: bool, resume: bool, as_json: bool) -> int:
    """Certificates of why there is none, of each row for which that is so."""
    from functools import partial

    from ifonly.certifying import certify_none
    from ifonly.cli.certificates import CertificateOutput, certificate_place
    from ifonly.errors import QuestionError

    if resume:
        raise QuestionError("Reasons are written in one go; leave out --resume, or --reasons.")
    place = certificate_place(output, force=force, one=False)
    assert place is not None
    explainer, rows, query = _read_questions(options, limits)
    certificates = CertificateOutput(place, explainer, f"{query.to_json()} reasons", force=force)
    for number, row in rows.items():
        certificates.add(number, partial(certify_none, explainer, row, query))
    certificates.close()
    if as_json:
        show_json({"output": output, **certificates.counts})
    return codes.PROVEN if certificates.complete else codes.LIMIT


def _refuse_a_question() -> None:
    """With a certificate, the query is that of the certificate."""
    from ifonly.errors import QuestionError

    context = click.get_current_context()
    mine = ("file", "output", "force", "as_json", "resume", "time_limit", "node_limit")
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in mine and source == click.core.ParameterSource.COMMANDLINE:
            raise QuestionError(f"The question is that of the certificate; leave out {parameter.opts[0]}.")


def _checked(certificate: Certificate, limits: Limits, started: float) -> CheckResult:
    """The result of the check, in the time that is left of the limit; an error where that is too short."""
    from ifonly.certificate.check import check
    from ifonly.certificate.check.checker import LONGEST_SECONDS, UNDECIDED
    from ifonly.errors import UnsupportedQuestion

    checked = check(certificate, seconds=limits.after(time.perf_counter() - started).seconds or LONGEST_SECONDS)
    if checked.verdict == UNDECIDED:
        raise UnsupportedQuestion(
            f"The certificate could not be checked within the time limit of {limits.seconds or LONGEST_SECONDS:g} s, "
            f"and is not written; raise it, or ask `ifonly explain`, which gives the answer without proof."
        )
    return checked


def _read_question(options: dict[str, Any], limits: Limits) -> tuple[Explainer, Any, Query]:
    """The explainer, the row and the query of the options."""
    from ifonly.errors import QuestionError

    explainer, rows, query = _read_questions(options, limits)
    if len(rows) != 1:
        raise QuestionError(
            f"A certificate is about one row; choose one of the {len(rows):,} with --row I, or write them all to a "
            f"file that ends with .certs."
        )
    return explainer, next(iter(rows.values())), query


def _read_questions(options: dict[str, Any], limits: Limits) -> tuple[Explainer, Mapping[int, dict[str, Any]], Query]:
    """The explainer, the rows and the query of the options."""
    from ifonly.cli.query_arguments import read_methods, read_query
    from ifonly.cli.source import read_source
    from ifonly.errors import QuestionError
    from ifonly.explainer import Explainer

    source = read_source(options)
    explainer = Explainer(source.model)
    methods = read_methods(options["methods"])
    if len(methods) != 1:
        raise QuestionError("A certificate is about one method's answer; name one with --method.")
    query = read_query(options, explainer.schema, source.data)
    return explainer.using(methods[0], limits=limits), source.rows, query
