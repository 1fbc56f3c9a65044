"""`ifonly explain`: the nearest counterfactual of each row of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import json_option, note, show, show_json
from ifonly.cli.options import EFFORT, FEWEST, PAGE, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import page_path, write_page
from ifonly.cli.stream import STREAM, check_options, explain_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ifonly.cli.batches import BatchResult
    from ifonly.cli.source import Source
    from ifonly.explainer import Explainer
    from ifonly.model import Model
    from ifonly.problem import Query
    from ifonly.results import Method

EPILOG = f"""\b
Examples:
  ifonly explain --dataset credit --row 0
  ifonly explain --dataset credit --first 100 --fix isMale --output answers.csv
  ifonly explain --model net.onnx --schema schema.json --rows people.csv --time-limit 10
  ifonly explain --model net.onnx --schema schema.json --rows 'people/*.parquet' --output answers.parquet --keep ID

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, FEWEST, EFFORT)
@click.option(
    "--why/--no-why",
    default=None,
    help="Where no change does it: what rules it out, and what would help (default: for a single row).",
)
@click.option("--observed", metavar="FILE", help="Real rows: also say how usual the answers are among them.")
@with_options(STREAM, PAGE)
@json_option
def explain(as_json: bool, **options: Any) -> int:
    """The nearest counterfactual of each row, with its proof."""
    from ifonly.cli.compare import reproducible
    from ifonly.cli.query_arguments import read_methods
    from ifonly.cli.source import read_source
    from ifonly.cli.tables import answers_place, check_ending, check_escaping, is_sheet, write_answers
    from ifonly.errors import QuestionError
    from ifonly.population.remote import local_place

    output, methods = options["output"], read_methods(options["methods"])
    check_options(options, several=len(methods) > 1, sheet=is_sheet(output))
    check_escaping(output, escape_formulas=options["escape_formulas"])
    if options["html"] is not None and len(methods) > 1:
        raise QuestionError("A page is about the answers of one method; name one with --method.")
    page = page_path(options)
    whole = options["chosen"] or page is not None or is_sheet(output) or options["observed"] is not None
    if output is not None and len(methods) == 1 and not whole:
        check_ending(output)
        local_place(output)  # checked before the work, not after it
        return explain_stream(options, methods[0], as_json)
    path = None if output is None else answers_place(output, force=options["force"])
    source = read_source(options)
    explainer, query = explainer_and_query(source, options)
    kept = _kept_columns(source, options)
    results = _run_methods(source, methods, explainer, query)
    if path is not None:
        answers = [answer for one in results.values() for answer in one.answers]
        beside = {name: [source.rows[answer.row].get(name) for answer in answers] for name in kept}
        escape, force = options["escape_formulas"], options["force"]
        write_answers(path, answers, source.model.outputs, beside=beside, overwrite=force, escape_formulas=escape)
    if page is not None:
        _write_page(page, results, options, _labels(source, results, kept))
    if as_json:
        show_json(_document(results))
    else:
        _show(results, path, options)
        _show_usualness(results, source, options)
    return _code(results, path, lambda entry: reproducible(entry, explainer, query, source.rows[entry["row"]]))


def _show_usualness(results: dict[str, BatchResult], source: Source, options: dict[str, Any]) -> None:
    """How usual the answers are among real rows: of one row in words, of several how many are impossible."""
    if options["observed"] is None:
        return
    from ifonly.cli.given_rows import read_format, table_files
    from ifonly.cli.source import check_columns
    from ifonly.cli.tables import read_table
    from ifonly.mining import ObservedRows

    file = options["observed"]
    table = read_table(table_files(file, read_format(options) if file.endswith(".csv") else None))
    check_columns(source.model.schema, table)
    rows = ObservedRows({name: table.column(name) for name in source.model.schema.names}, source.model.schema)
    for one in results.values():
        told = rows.usualness(one.answers[0]) if len(one.answers) == 1 else None
        count = (
            f"{rows.impossible(one.answers):,} of {len(one.answers):,} answers break what all rows of '{file}' obey."
        )
        note(str(told) if told is not None else count)


def _kept_columns(source: Source, options: dict[str, Any]) -> list[str]:
    """The columns of --keep and --keep-all."""
    from ifonly.errors import FileError
    from ifonly.printing import some_of

    there = list(dict.fromkeys(name for row in source.rows.values() for name in row))
    for name in options["keep"]:
        if name not in there:
            raise FileError(f"The rows have no column '{name}' to keep; they have {some_of(there)}.")
    rest = [name for name in there if name not in source.model.schema.names] if options["keep_all"] else []
    return list(dict.fromkeys((*options["keep"], *rest)))


def _labels(source: Source, results: dict[str, BatchResult], kept: list[str]) -> list[str] | None:
    """What each person is called on a page, by the columns that are kept."""
    (one,) = results.values()
    values = ([source.rows[answer.row].get(name) for name in kept] for answer in one.answers)
    return [", ".join(str(value) for value in some if value is not None) for some in values] if kept else None


def _write_page(path: Path, results: dict[str, BatchResult], options: dict[str, Any], labels: list[str] | None) -> None:
    from ifonly.results import Answers

    (one,) = results.values()
    if labels is not None:
        write_page(path, Answers(list(one.answers), ids=labels), options)
        return
    write_page(path, one.answers[0] if len(one.answers) == 1 else one.answers, options)


def explainer_and_query(source: Source, options: dict[str, Any]) -> tuple[Explainer, Query]:
    """The explainer and the query of the options."""
    why = len(source.rows) == 1 if options["why"] is None else options["why"]
    return explainer_for(source.model, source.data, {**options, "why": why})


def explainer_for(model: Model, data: Any, options: dict[str, Any]) -> tuple[Explainer, Query]:
    """The same, of a model without rows."""
    from ifonly.cli.query_arguments import read_query
    from ifonly.explainer import Explainer
    from ifonly.results import Limits

    explainer = Explainer(model, threads=options["threads"]).using(
        limits=Limits(seconds=options["time_limit"], nodes=options["node_limit"]), reasons=options["why"]
    )
    query = read_query(options, explainer.schema, data)
    if query.target is not None or explainer.model.classes:
        explainer.check(query)
    return explainer, query


def _run_methods(
    source: Source, methods: Sequence[Method | None], explainer: Explainer, query: Query
) -> dict[str, BatchResult]:
    """Each method's answers, one method after the other; the last one may have been stopped."""
    from ifonly.cli.batches import explain_in_batches
    from ifonly.errors import IfonlyError
    from ifonly.report import progress

    results: dict[str, BatchResult] = {}
    for method in methods:
        with progress(len(source.rows)) as bar:
            one = explain_in_batches(explainer.using(method), source.rows, query, bar)
        if isinstance(one.stopped, IfonlyError) and not any(answer.method for answer in one.answers):
            raise one.stopped
        named = (answer.method for answer in one.answers if answer.method)
        results[method.name if method is not None else next(named, "default")] = one
        if one.stopped is not None:
            break
    return results


def _document(results: dict[str, BatchResult]) -> dict[str, Any]:
    from ifonly.cli.compare import contradictions
    from ifonly.report import summary

    answers = {name: one.answers for name, one in results.items()}
    return {
        "answers": [data for one in answers.values() for data in one.to_dicts()],
        "summary": {name: summary(one) for name, one in answers.items()},
        "contradictions": contradictions(answers),
    }


def _show(results: dict[str, BatchResult], path: Path | None, options: dict[str, Any]) -> None:
    from ifonly.cli.compare import comparison_page
    from ifonly.report import Heading, answer_page, answers_page, summary_page

    if len(results) > 1:
        answered = {name: one.answers for name, one in results.items()}
        each = [block for name, a in answered.items() for block in (Heading(f"Method {name}"), *summary_page(a))]
        show((*each, *comparison_page(answered)))
        return
    for one in results.values():
        answers = one.answers
        if len(answers) == 1 and path is None:
            show(answer_page(answers[0], options["language"], options["subject"]))
        elif len(answers):
            show((*(answers_page(answers) if path is None else ()), *summary_page(answers)))


def _code(results: dict[str, BatchResult], path: Path | None, sentence: Callable[[dict[str, Any]], str]) -> int:
    from ifonly.cli.compare import contradictions
    from ifonly.errors import Contradiction, IfonlyError

    where = "" if path is None else f" and written to {path}"
    for one in results.values():
        done, rows = len(one.answers), len(one.rows)
        if one.stopped is not None:
            note(f"{done:,} of {rows:,} rows are answered{where}.")
        if isinstance(one.stopped, IfonlyError):
            raise one.stopped
        if one.stopped is not None:
            return codes.INTERRUPTED
    if wrong := contradictions({name: one.answers for name, one in results.items()}):
        raise Contradiction(" ".join(map(sentence, wrong[:3])) + (f" (and {len(wrong) - 3} more)" if wrong[3:] else ""))
    if path is not None:
        note(f"Written to {path}.")
    return codes.of_answers([answer for one in results.values() for answer in one.answers])
