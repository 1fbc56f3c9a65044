"""`ifonly notice`: the notice that is handed to a person, as a page and with its annex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import WholeNumber, json_option, note, show, show_json
from ifonly.cli.options import EFFORT, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import check_place, force_option, page_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ifonly.explainer import Explainer
    from ifonly.notices import Letter, Notice, ReasonCodes
    from ifonly.problem import Query
    from ifonly.report import Block

EPILOG = f"""\b
Examples:
  ifonly notice --dataset credit --row 0 --target approve --html notice.html --annex notice.json
  ifonly notice --dataset credit --row 0 --form gdpr --language de --field 'controller=Bank' --html auskunft.html
  ifonly notice --model net.onnx --schema schema.json --rows people.csv --row 0 --codes codes.json --html notice.html

Nothing here is legal advice: which form applies, and what it must say, is for whoever decides to settle.

{codes.EPILOG}"""

LETTER = (
    click.option("--form", default="c-1", show_default=True, metavar="FORM", help="c-1, c-4, gdpr or ai-act."),
    click.option("--codes", "codes_file", metavar="FILE", help="Reasons in your own words: groups of features (JSON)."),
    click.option("--field", "fields", multiple=True, metavar="NAME=TEXT", help="Fill in a field, such as creditor."),
    click.option("--fields", "fields_file", metavar="FILE", help="Fill in fields from a JSON file."),
    click.option("--template", metavar="FILE", help="Your own wording (Jinja); by default an example that is shipped."),
    click.option("--ways", type=WholeNumber(), default=2, show_default=True, metavar="K",
                 help="How many ways to another decision are told."),
    click.option("--language", type=click.Choice(["en", "de"]), default="en", show_default=True),
    click.option("--subject", default="", metavar="WORDS", help="What is decided, such as 'the application'."),
)  # fmt: skip


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, EFFORT[:3], LETTER)
@click.option("--html", metavar="FILE", help="Write the page, to print and hand over.")
@click.option("--annex", metavar="FILE", help="Write the annex: every statement with its proof (JSON).")
@click.option("--certificate", metavar="FILE", help="A certificate of the first way (see: ifonly certify).")
@click.option("--example", is_flag=True, help="Print the shipped template of the form, to start your own from.")
@force_option
@json_option
def notice(as_json: bool, **options: Any) -> int:
    """The notice for a person who is not decided as asked: reasons, ways out, and what is proven."""
    from ifonly.notices import example_template

    if options["example"]:
        click.echo(example_template(options["form"], options["language"]), nl=False)
        return codes.PROVEN
    return _one(options, as_json)


def _one(options: dict[str, Any], as_json: bool) -> int:
    """The notice of one person."""
    from ifonly.cli.source import read_source
    from ifonly.errors import QuestionError
    from ifonly.notices import notice as make
    from ifonly.notices.pages import NoticePages
    from ifonly.schema import write_whole

    letter, reason_codes, page = read_letter(options), read_codes(options), page_path(options)
    annex = None
    if options["annex"] is not None:
        annex = check_place(options["annex"], force=options["force"], kinds=(".json",), what="An annex")
    if page is not None:
        NoticePages.of(letter)  # checked before the work, not after it
    source = read_source(options)
    if len(source.rows) != 1:
        raise QuestionError(f"A notice is about one person; choose one of the {len(source.rows):,} with --row I.")
    (row,) = source.rows.values()
    explainer, query = read_question(source.model, source.data, options)
    told = make(explainer, row, letter, codes=reason_codes, query=query, ways=options["ways"])
    if options["certificate"] is not None:
        told = told.with_certificate(options["certificate"])
    for path, text in ((page, told.to_html), (annex, told.to_json)):
        if path is not None:
            write_whole(path, text().encode("utf-8"), overwrite=options["force"])
            note(f"Written to {path}.")
    if as_json:
        show_json(told.annex())
    else:
        show(notice_page(told))
    note_unfilled(letter)
    return codes.PROVEN if told.proven else codes.LIMIT


def read_question(model: Any, data: Any, options: dict[str, Any]) -> tuple[Explainer, Query]:
    """The explainer with its method, and the query of the options."""
    from ifonly.cli.explain import explainer_for
    from ifonly.cli.query_arguments import read_methods
    from ifonly.errors import QuestionError

    methods = read_methods(options["methods"])
    if len(methods) > 1:
        raise QuestionError("A notice is made by one method; name one with --method.")
    explainer, query = explainer_for(model, data, {**options, "threads": 1, "why": True})
    return explainer.using(methods[0]), query


def read_letter(options: dict[str, Any]) -> Letter:
    """The wording of the options."""
    from ifonly.errors import QuestionError
    from ifonly.notices import Letter
    from ifonly.notices.letter import checked_fields
    from ifonly.schema.io import read_json

    fields = (
        {} if options["fields_file"] is None else checked_fields(read_json(options["fields_file"], "fields", 2**20))
    )
    for given in options["fields"]:
        name, sign, value = given.partition("=")
        if not sign:
            raise QuestionError(f"--field is written as NAME=TEXT, such as 'creditor=Example Bank'; got '{given}'.")
        fields[name.strip()] = value
    return Letter(
        form=options["form"], language=options["language"], fields=fields, template=options["template"],
        subject=options["subject"],
    )  # fmt: skip


def read_codes(options: dict[str, Any]) -> ReasonCodes | None:
    """The reason codes of the options, if there are any."""
    from ifonly.notices import ReasonCodes

    return None if options["codes_file"] is None else ReasonCodes.load(options["codes_file"])


def notice_page(told: Notice) -> Sequence[Block]:
    """The notice on a terminal: the statements with their marks."""
    from ifonly.report import Heading, Paragraph, TextTable

    reasons = {f"R{k}": one.group for k, one in enumerate(told.reasons.reasons, 1)}
    rows = []
    for one in told.statements:
        group = reasons.get(one.mark)
        words = "" if group is None else (group.words(told.letter.language) or ", ".join(group.features)) + ": "
        rows.append((one.mark, one.status, words + one.text))
    proven = "everything is proven" if told.proven else "not everything is proven: see the status"
    return (Heading(told.letter.title), TextTable(header=("", "status", "statement"), rows=rows), Paragraph(proven))


def note_unfilled(letter: Letter) -> None:
    """Say which fields of the form are left to be filled in."""
    if letter.unfilled:
        note(f"To be filled in: {', '.join(letter.unfilled)} (--field NAME=TEXT).")
