"""`ifonly notice`: the notice that is handed to a person, as a page and with its annex; of one person or of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import WholeNumber, json_option, note, show, show_json
from ifonly.cli.options import EFFORT, QUESTION, SOURCE, with_options
from ifonly.cli.outputs import check_place, force_option, page_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ifonly.explainer import Explainer
    from ifonly.notices import Letter, Notice, ReasonCodes
    from ifonly.population.run import RunResult
    from ifonly.problem import Query
    from ifonly.report import Block

EPILOG = f"""\b
Examples:
  ifonly notice --dataset credit --row 0 --target approve --html notice.html --annex notice.json
  ifonly notice --dataset credit --row 0 --form gdpr --language de --field 'controller=Bank' --html auskunft.html
  ifonly notice --model net.onnx --schema schema.json --rows people.csv --row 0 --codes codes.json --html notice.html
  ifonly notice --model net.onnx --schema schema.json --rows people.csv --target approve --output notices.jsonl \\
    --keep applicant --printout all.html --mail-merge merge.csv

Nothing here is legal advice: which form applies, and what it must say, is for the decision maker to settle.

{codes.EPILOG}"""

LETTER = (
    click.option("--form", default="c-1", show_default=True, metavar="FORM", help="c-1, c-4, gdpr or ai-act."),
    click.option("--codes", "codes_file", metavar="FILE", help="Reasons in your own words: groups of features (JSON)."),
    click.option("--field", "fields", multiple=True, metavar="NAME=TEXT",
                 help="Fill in a field, such as creditor; {COLUMN} is that column of each person, \\n a new line."),
    click.option("--fields", "fields_file", metavar="FILE", help="Fill in fields from a JSON file."),
    click.option("--template", metavar="FILE", help="Your own wording (Jinja); by default an example that is shipped."),
    click.option("--ways", type=WholeNumber(), default=2, show_default=True, metavar="K",
                 help="How many ways to another decision are told."),
    click.option("--language", type=click.Choice(["en", "de"]), default="en", show_default=True),
    click.option("--subject", default="", metavar="WORDS", help="What is decided, such as 'the application'."),
)  # fmt: skip


MANY = (
    click.option("--output", metavar="FILE.jsonl", help="Of many people: write one record with an annex per row."),
    click.option("--keep", multiple=True, metavar="COLUMN",
                 help="Keep this column, such as the customer's number, on every page and record; one that is called "
                 "as a field fills it in."),
    click.option("--resume", is_flag=True, help="With --output: go on with a run that ended early."),
    click.option("--processes", type=WholeNumber(min=1), metavar="N",
                 help="With --output: processes of this machine (default: one per core, one for few rows)."),
    click.option("--pages", metavar="FOLDER", help="With --output: write a page and an annex for each person."),
    click.option("--printout", metavar="FILE", help="With --output: write one page with all notices, for printing."),
    click.option("--mail-merge", metavar="FILE",
                 help="With --output: write a row per person for a mail merge (.csv, .xlsx)."),
)  # fmt: skip


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, EFFORT[:3], LETTER)
@click.option("--html", metavar="FILE", help="Write the page, to print and hand over.")
@click.option("--docx", metavar="FILE", help="Write the same as a Word document.")
@click.option("--annex", metavar="FILE", help="Write the annex: every statement with its proof (JSON).")
@click.option("--certificate", metavar="FILE", help="A certificate of the first way (see: ifonly certify).")
@click.option("--example", is_flag=True, help="Print the shipped template of the form, to start your own from.")
@with_options(MANY)
@force_option
@json_option
def notice(as_json: bool, **options: Any) -> int:
    """The notice for a person who is not decided as asked: reasons, ways out, and what is proven."""
    from ifonly.notices import example_template

    if options["example"]:
        click.echo(example_template(options["form"], options["language"]), nl=False)
        return codes.PROVEN
    if options["output"] is not None:
        return _many(options, as_json)
    check_many(options)
    return _one(options, as_json)


def check_many(options: dict[str, Any]) -> None:
    """Options of many people need --output."""
    from ifonly.errors import QuestionError

    given = [name for name in ("resume", "processes", "pages", "printout", "mail_merge") if options[name]]
    if given:
        what = given[0].replace("_", "-")
        raise QuestionError(f"--{what} is about notices of many people: say where they go with --output FILE.jsonl.")


def check_one(options: dict[str, Any]) -> None:
    """Options of one person exclude --output."""
    from ifonly.errors import QuestionError

    for name in ("html", "docx", "annex", "certificate", "chosen"):
        if options[name]:
            what = {"chosen": "row"}.get(name, name)
            raise QuestionError(f"--{what} is about one person; leave out --output, or --{what}.")


def _many(options: dict[str, Any], as_json: bool) -> int:
    """The notices of a table: a run, and what is written from its records."""
    from ifonly.cli.source import read_model, rows_source, scale_data
    from ifonly.cli.stream import engine_of
    from ifonly.errors import Contradiction
    from ifonly.notices import NoticeRequest, notices_to
    from ifonly.notices.pages import NoticePages
    from ifonly.population.output import manifest_of
    from ifonly.population.remote import local_place

    check_one(options)
    letter, places = read_letter(options), _places(options)
    if options["pages"] or options["printout"]:
        NoticePages.of(letter)  # checked before the work, not after it
    model, rows = read_model(options), rows_source(options)
    explainer, query = read_question(model, scale_data(options, model), options)
    request = NoticeRequest(
        explainer=explainer, letter=letter, codes=read_codes(options), query=query, ways=options["ways"]
    )
    existing = "resume" if options["resume"] else "replace" if options["force"] else "refuse"
    engine = engine_of({**options, "engine": "local"}, rows)
    try:
        keep = _kept(letter, options["keep"])
        run = notices_to(options["output"], rows, request, keep=keep, existing=existing, engine=engine)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        kept = (manifest_of(local_place(options["output"])) or {}).get("rows", 0)
        note(f"{kept:,} rows are done and kept; go on with --resume." if kept else "No row is done yet.")
        return codes.INTERRUPTED
    _show_written(run, _written(options["output"], places, letter), as_json)
    note_unfilled(letter, options["keep"])
    if run.contradictions:
        raise Contradiction(
            f"{run.contradictions:,} of {run.rows:,} rows of '{run.path}' show a bug; please report it."
        )
    return codes.of_counts(run.counts)


def _show_written(run: RunResult, written: dict[str, int], as_json: bool) -> None:
    if as_json:
        show_json({"output": str(run.path), "already": run.already, "summary": run.summary, "written": written})
        return
    click.echo(f"{run.path}: {run.rows:,} rows")
    for path, count in written.items():
        click.echo(f"{path}: {count:,} notices")


def _places(options: dict[str, Any]) -> dict[str, Path]:
    """Where pages, a printout and a csv go; checked before the work."""
    from ifonly.cli.tables import answers_place, is_sheet
    from ifonly.errors import FileError
    from ifonly.schema.arguments import path_of
    from ifonly.schema.io import check_writable

    force, found = options["force"] or options["resume"], {}
    if options["printout"] is not None:
        found["printout"] = check_place(options["printout"], force=force, kinds=(".html", ".htm"), what="A printout")
    if options["mail_merge"] is not None:
        place = check_place(options["mail_merge"], force=force, kinds=(".csv", ".xlsx"), what="A mail merge")
        found["mail_merge"] = answers_place(str(place), force=force) if is_sheet(place) else place
    if options["pages"] is not None:
        found["pages"] = path_of(options["pages"])
        check_writable(found["pages"], folder=True)
        if not force and found["pages"].is_dir() and any(found["pages"].iterdir()):
            raise FileError(f"The folder '{found['pages']}' is not empty; to write over pages in it, add --force.")
    return found


def _written(output: str, places: dict[str, Path], letter: Letter) -> dict[str, int]:
    """Write what was asked for from the records, and say how many notices each has."""
    from ifonly.cli.tables import is_sheet
    from ifonly.notices import write_mail_merge, write_pages, write_printout

    counts = {}
    for kind, place in places.items():
        if kind == "mail_merge":
            counts[str(place)] = write_mail_merge(output, place) if not is_sheet(place) else _merge_sheet(output, place)
        else:
            counts[str(place)] = (write_pages if kind == "pages" else write_printout)(output, place, letter)
    return counts


def _one(options: dict[str, Any], as_json: bool) -> int:
    """The notice of one person."""
    from ifonly.cli.source import read_source
    from ifonly.errors import QuestionError
    from ifonly.notices import notice as make
    from ifonly.notices.pages import NoticePages
    from ifonly.notices.word_document import word_document
    from ifonly.schema import write_whole

    letter, reason_codes, page = read_letter(options), read_codes(options), page_path(options)
    annex, word = (
        None if options[name] is None else check_place(options[name], force=options["force"], kinds=(end,), what=what)
        for name, end, what in (("annex", ".json", "An annex"), ("docx", ".docx", "A Word document"))
    )
    if page is not None or word is not None:
        NoticePages.of(letter)  # checked before the work, not after it
    if word is not None:
        word_document("", "")
    source = read_source(options)
    if len(source.rows) != 1:
        raise QuestionError(f"A notice is about one person; choose one of the {len(source.rows):,} with --row I.")
    (row,) = source.rows.values()
    explainer, query = read_question(source.model, source.data, options)
    letter = _with_kept(letter, row, _kept(letter, options["keep"]))
    told = make(explainer, row, letter, codes=reason_codes, query=query, ways=options["ways"])
    if options["certificate"] is not None:
        told = told.with_certificate(options["certificate"])
    for path, make_file in ((page, told.to_html), (word, told.to_docx), (annex, told.to_json)):
        if path is not None:
            made = make_file()
            content = made if isinstance(made, bytes) else made.encode("utf-8")
            write_whole(path, content, overwrite=options["force"])
            note(f"Written to {path}.")
    if as_json:
        show_json(told.annex())
    else:
        show(notice_page(told))
    note_unfilled(letter)
    return codes.PROVEN if told.proven else codes.LIMIT


def _merge_sheet(output: str, place: Path) -> int:
    """A mail merge as an Excel file."""
    from ifonly.cli.tables import write_sheet
    from ifonly.notices.bulk import merge_kinds, merge_rows
    from ifonly.schema.io import replacing

    rows = list(merge_rows(output))
    with replacing(place) as temporary:
        write_sheet(temporary, {name: [row.get(name) for row in rows] for name in merge_kinds(output)})
    return len(rows)


def _kept(letter: Letter, keep: Sequence[str]) -> tuple[str, ...]:
    """The columns that are kept: those that are named, and those in gaps of fields."""
    return tuple(dict.fromkeys([*keep, *_gaps(letter)]))


def _gaps(letter: Letter) -> list[str]:
    """The columns that fields ask for in braces."""
    from ifonly.notices.letter import GAP

    return [gap for text in letter.fields.values() for gap in GAP.findall(text)]


def _with_kept(letter: Letter, row: dict[str, Any], keep: Sequence[str]) -> Letter:
    """The letter with the columns of the table that are kept, such as the customer's number."""
    from dataclasses import replace

    from ifonly.errors import QuestionError
    from ifonly.notices.letter import kept_fields
    from ifonly.printing import some_of

    missing = next((name for name in keep if name not in row), None)
    if missing is not None:
        asked = f"--field asks for the column '{missing}'" if missing in _gaps(letter) else f"--keep names '{missing}'"
        raise QuestionError(f"{asked}, which the row does not have; it has {some_of(list(row))}.")
    return replace(letter, fields={**letter.fields, **kept_fields(row, keep, letter.fields)})


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
        fields[name.strip()] = value.replace("\\n", "\n")
        _check_braces(name.strip(), value)
    letter = Letter(
        form=options["form"], language=options["language"], fields=fields, template=options["template"],
        subject=options["subject"],
    )  # fmt: skip
    for given in options["fields"]:
        _check_field(letter, given.partition("=")[0].strip())
    return letter


def _check_braces(name: str, text: str) -> None:
    """An error where a brace is left over, which would stand in everybody's letter."""
    from ifonly.errors import QuestionError
    from ifonly.notices.letter import GAP
    from ifonly.printing import shown

    if set("{}") & set(GAP.sub("", text)):
        raise QuestionError(
            f"In --field, a column's name in braces is its value, as in 'person={{Name}}'; the field '{name}' has a "
            f"brace without a name or without its partner: {shown(text)}."
        )


def _check_field(letter: Letter, name: str) -> None:
    """An error for a field that the shipped form does not have; a template may have any."""
    from ifonly.errors import QuestionError
    from ifonly.notices.letter import FORMS

    known = (*FORMS[letter.form].fields, "reference")
    if letter.template is None and name not in known:
        raise QuestionError(f"The form {letter.form} has no field '{name}'; its fields are {', '.join(known)}.")


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


def note_unfilled(letter: Letter, kept: Sequence[str] = ()) -> None:
    """Say which fields of the form are left to be filled in."""
    if unfilled := [name for name in letter.unfilled if name not in kept]:
        note(f"To be filled in: {', '.join(unfilled)} (--field NAME=TEXT).")
