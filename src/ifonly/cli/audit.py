"""`ifonly audit`: who has recourse in a group of people, and what it costs, by subgroup."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import WholeNumber, json_option, note, show, show_json
from ifonly.cli.options import EFFORT, FEWEST, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import check_place, force_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ifonly.cli.audit_rows import AuditedPeople
    from ifonly.explainer import Explainer
    from ifonly.model import Model
    from ifonly.problem import Query
    from ifonly.report import Provenance
    from ifonly.results import Answer, Method

EPILOG = f"""\b
Examples:
  ifonly audit --dataset adult --by Sex --fix Sex --fix Age --first 1000
  ifonly audit --dataset credit --by AgeGroup --fix AgeGroup --output audit.html
  ifonly audit --model net.onnx --schema schema.json --rows people.csv --target approve --by Region --output audit.json
  ifonly audit --model net.onnx --schema schema.json --target approve --answers answers.parquet --by Region

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, FEWEST, EFFORT)
@click.option("--answers", metavar="FILE", help="Count the answers that ifonly explain --output has written to FILE.")
@click.option("--by", metavar="COLUMN", help="What people are grouped by: any column of the table, feature or not.")
@click.option(
    "--least",
    type=WholeNumber(min=1),
    default=30,
    show_default=True,
    metavar="N",
    help="Groups with fewer people who need recourse are named, but not compared.",
)
@click.option(
    "--quantiles",
    "parts",
    type=WholeNumber(2, 100),
    default=4,
    show_default=True,
    metavar="N",
    help="Numbers with many values are cut into N groups of about the same size.",
)
@click.option(
    "--seed",
    type=WholeNumber(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random draws.",
)
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
    from ifonly.cli.audit_files import KINDS, write_audit
    from ifonly.cli.explain import explainer_for
    from ifonly.cli.source import read_model, scale_data
    from ifonly.errors import Contradiction
    from ifonly.population.auditing import audit as audit_of
    from ifonly.population.labels import Grouping
    from ifonly.report import Heading, audit_data, audit_page, flip_sets_page

    path = None if output is None else check_place(output, force=force, kinds=KINDS, what="An audit")
    grouping = Grouping(by, least=options["least"], parts=options["parts"], seed=options["seed"])
    options = {**_favourable(options), "by": by}
    model = read_model(options)
    explainer, query = explainer_for(model, scale_data(options, model), {**options, "why": False})
    explainer = explainer.using(_method(options))
    people = _people(model, by, options)
    counts: Counter[str] = Counter() if people is None else people.counts
    with _answers(explainer, query, people, options, counts) as answers:
        made = audit_of(answers, by=grouping, judge=explainer.judge(query, reasons=options["why"]))
    where = _provenance(explainer, query, people, counts.total(), options)
    if path is not None:
        write_audit(path, made, where, force=force)
        note(f"Written to {path}.")
    if as_json:
        show_json(audit_data(made, where))
    else:
        sets = flip_sets_page(made.everybody.details.together, most=10, label=made.label)
        show((*audit_page(made), Heading("What changes together"), *sets))
    if people is not None and people.stopped:
        note(f"{counts.total():,} of about {people.source.estimated_rows():,} rows are answered.")
        return codes.INTERRUPTED
    if made.contradictions:
        raise Contradiction(
            f"{made.contradictions:,} of {counts.total():,} rows show a bug: two things that must agree do not. They "
            f"are left out of the audit; `ifonly explain` says which things, row by row. Please report it."
        )
    return codes.of_counts(counts)


def _favourable(options: dict[str, Any]) -> dict[str, Any]:
    """All rows have the same target: of a shipped data set the favourable class, else it must be named."""
    from ifonly.cli.shipped import WORDS
    from ifonly.errors import QuestionError

    targets = ("target", "one_of", "other", "at_least", "at_most", "query_file")
    if any(options[name] not in (None, False) for name in targets):
        return options
    name = options["dataset"]
    if name not in WORDS or options["model_file"] is not None or options["classes"] is not None:
        raise QuestionError("Say which decision people want with --target CLASS: recourse is a way to that one.")
    return {**options, "target": WORDS[name].classes[1 - WORDS[name].unfavourable]}


def _method(options: dict[str, Any]) -> Method | None:
    from ifonly.cli.query_arguments import read_methods
    from ifonly.errors import QuestionError

    methods = read_methods(options["methods"])
    if len(methods) > 1:
        raise QuestionError("An audit is by one method; name one with --method.")
    return methods[0]


def _people(model: Model, by: str | None, options: dict[str, Any]) -> AuditedPeople | None:
    """The rows; None where only their answers are given."""
    from ifonly.cli.audit_rows import AuditedPeople
    from ifonly.cli.source import rows_source
    from ifonly.errors import QuestionError

    chosen, first, answers = list(dict.fromkeys(options["chosen"])), options["first"], options["answers"]
    no_rows = options["rows"] is None and options["dataset"] is None
    if answers is not None and (chosen or (first and no_rows)):
        what = "--row" if chosen else "--first"
        raise QuestionError(f"{what} chooses among rows to ask about; with --answers, all that were answered count.")
    if no_rows:
        return None
    source = rows_source({**options, "first": None if chosen else first})
    return AuditedPeople(source=source, schema=model.schema, by=by, chosen=chosen[:first])


@contextmanager
def _answers(
    explainer: Explainer, query: Query, people: AuditedPeople | None, options: dict[str, Any], counts: Counter[str]
) -> Iterator[Iterator[Answer]]:
    """The answers to count, as a stream: computed, or read from the file of an earlier run."""
    from ifonly.cli.audit_rows import answers_without_rows
    from ifonly.population.existing_output import check_answers
    from ifonly.population.reading import read_answers
    from ifonly.report import progress

    file, by = options["answers"], options["by"]
    if file is None:
        assert people is not None
        people.source.fingerprint()  # before its rows are read: what is read is compared with it
        with progress(people.source.estimated_rows()) as bar:
            yield people.answered(explainer, query, bar)
        people.source.check_unchanged()
        return
    about = explainer.identity(query)
    if people is None:
        check_answers(file, about)
        yield answers_without_rows(read_answers(file, query), by, counts, f"'{file}'")
    else:
        about["input"] = people.source.fingerprint()
        check_answers(file, about)
        yield people.joined(read_answers(file, query))
        people.source.check_unchanged()
    check_answers(file, about)  # is what was read still there?


def _provenance(
    explainer: Explainer, query: Query, people: AuditedPeople | None, rows: int, options: dict[str, Any]
) -> Provenance:
    from ifonly.report import provenance
    from ifonly.report.provenance import files_fingerprint, rows_fingerprint

    def of(name: str, fingerprint: str) -> Provenance:
        return provenance(explainer, query, data=f"{name}, {rows:,} rows", fingerprint=fingerprint)

    if people is None:
        from ifonly.population.output import manifest_of
        from ifonly.population.output_paths import read_place

        file = options["answers"]
        return of(Path(file).name, files_fingerprint((manifest_of(read_place(file)) or {}).get("input")))
    if options["rows"] is not None:
        file = options["rows_file"]
        name = "standard input" if file == "-" else Path(file).name
        return of(name, files_fingerprint(people.source.fingerprint()))
    return of(f"{options['dataset']} (shipped with ifonly)", rows_fingerprint(people.rows()))
