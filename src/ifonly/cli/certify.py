"""`ifonly certify`: the answer to one row as a file that anyone can check."""

from __future__ import annotations

import time
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
  ifonly certify --dataset credit --without-rules --row 0 --output answer.cert
  ifonly check answer.cert
  ifonly certify --dataset compas --row 0 --method mip-obj --output word.cert
  ifonly certify word.cert --output proven.cert

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True))
@with_options(SOURCE, QUESTION, EFFORT[:3])
@click.option("--output", metavar="FILE", required=True, help="Where the certificate goes.")
@force_option
@json_option
def certify(file: str | None, output: str, force: bool, as_json: bool, **options: Any) -> int:
    """Prove the nearest counterfactual of one row, and write the proof as a certificate.

    With FILE, a certificate whose lower bound is only a solver's word: the search is asked the same question, and its
    proof takes the place of the word.
    """
    from ifonly.certificate.check import check
    from ifonly.certifying.certifier import certify as make
    from ifonly.certifying.certifier import disagreement, prove
    from ifonly.results import Limits
    from ifonly.schema import write_whole

    place = check_place(output, force=force)
    limits = Limits(seconds=options["time_limit"], nodes=options["node_limit"])
    contradiction, word = "", None
    if file is None:
        question = _read_question(options, limits)
        started = time.perf_counter()
        certificate = make(*question)
    else:
        _refuse_a_question()
        started = time.perf_counter()
        certificate, word = prove(file, limits=limits), check(file)
    checked = _checked(certificate, limits, started)
    if word is not None:
        contradiction = disagreement(word, checked)
    write_whole(place, certificate.content, overwrite=force)
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
        note(f"To replace the solver's word by a proof: ifonly certify {output} --output FILE")
        return codes.LIMIT
    return codes.PROVEN if checked.valid else codes.CONTRADICTION


def _refuse_a_question() -> None:
    """With a certificate, the query is that of the certificate."""
    from ifonly.errors import QuestionError

    context = click.get_current_context()
    mine = ("file", "output", "force", "as_json", "time_limit", "node_limit")
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
    from ifonly.cli.query_arguments import read_methods, read_query
    from ifonly.cli.source import read_source
    from ifonly.errors import QuestionError
    from ifonly.explainer import Explainer

    source = read_source(options)
    if len(source.rows) != 1:
        raise QuestionError(f"A certificate is about one row; choose one of the {len(source.rows):,} with --row I.")
    explainer = Explainer(source.model)
    methods = read_methods(options["methods"])
    if len(methods) != 1:
        raise QuestionError("A certificate is about one method's answer; name one with --method.")
    query = read_query(options, explainer.schema, source.data)
    return explainer.using(methods[0], limits=limits), next(iter(source.rows.values())), query
