"""Notices of many people: a table in, one record with an annex per person out; pages and a mail merge from the records.

    table -> run (a stream, on several processes, resumable) -> notices.jsonl -> pages, a printout, a csv

A row that is decided as asked already has a record without an annex: there is nothing to tell. What is written from
the records needs no search.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, QuestionError, RowError
from ifonly.files import file_errors
from ifonly.notices.letter import Letter, kept_fields
from ifonly.notices.one_notice import FORMAT, VERSION, NoticeRequest, annex_text, checked_letter
from ifonly.notices.pages import MOST_PEOPLE, NoticePages
from ifonly.notices.principal import MOST
from ifonly.population.engines import Engine, InProcess
from ifonly.population.existing_output import Existing
from ifonly.population.formats import encoded, header
from ifonly.population.run import Plan, RunResult, run
from ifonly.population.sources import source_of
from ifonly.printing import json_text, shown
from ifonly.problem.query import query_of
from ifonly.progress import on_terminal
from ifonly.results import Answer, Failed, Progress
from ifonly.results.records import NAMES, Kind, Records, record_kinds, records_of
from ifonly.schema import read_points
from ifonly.schema.arguments import items, path_of
from ifonly.schema.io import replacing, write_whole

MOST_LINE = 2**24
"""Characters of the record of one person."""


@dataclass(frozen=True, slots=True)
class NoticeRecords:
    """The task of a worker: rows to records, each with the annex of its notice. `kept`: columns that travel along."""

    request: NoticeRequest
    kept: tuple[str, ...] = ()

    def __call__(self, table: Any, first: int) -> Records:
        schema, errors = self.request.explainer.schema, list[RowError | None]()
        points = read_points(schema, table, errors=errors, first=first)
        answers: list[Answer] = []
        annexes: list[str | None] = []
        for i, error in enumerate(errors):
            if error is not None:
                answers.append(Failed.of(first + i, error))
                annexes.append(None)
                continue
            answer, annex = self._told(schema.row(points[i]), self._fields(table, i))
            answers.append(replace(answer, row=first + i))
            annexes.append(annex)
        records = records_of(answers)
        return replace(records, columns={**records.columns, "annex": annexes})

    def _told(self, row: Any, fields: dict[str, str]) -> tuple[Answer, str | None]:
        answer = self.request.explainer.explain(row, self.request.query)
        if answer.already:
            return answer, None
        made = self.request.notice(row, fields)
        return made.ways[0], json_text(made.annex())

    def _fields(self, table: Any, i: int) -> dict[str, str]:
        values = {name: table[name][i] if hasattr(table, "keys") else table[i].get(name) for name in self.kept}
        letter = self.request.letter
        return kept_fields(values, self.kept, letter.fields if isinstance(letter, Letter) else None)


def notices_to(
    path: str | Path,
    table: Any,
    request: NoticeRequest,
    *,
    keep: Sequence[str] = (),
    existing: Existing = "refuse",
    engine: Engine | None = None,
) -> RunResult:
    """Write the notices of a table of any size to a .jsonl file, one record per row, as `explainer.explain_to` does.

    `keep` names columns that travel along; those that are called as a field of the letter ("applicant", "date") fill
    it in, and the others, such as the customer's number, stand on the page as its reference. The
    query needs a target: the favourable decision; rows that have it get no notice. `write_pages`, `write_printout` and
    `write_mail_merge` make pages and a csv from the file.
    """
    if not isinstance(request, NoticeRequest):
        raise QuestionError(f"Say what the notices are as NoticeRequest(explainer=...); got {shown(request)}.")
    if path_of(path).suffix != ".jsonl":
        raise FileError(
            f"Notices of many people are written to a .jsonl file; '{path_of(path).name}' does not end in .jsonl."
        )
    if engine is not None and not hasattr(engine, "begin"):
        raise QuestionError(f"An engine is an object such as Processes(2); got {shown(engine)}.")
    plan = _plan(path, table, request, keep)
    bar = on_terminal(lazy=False)
    with nullcontext() if bar is None else bar:
        return run(plan, InProcess() if engine is None else engine, existing=existing, listen=bar)


def _plan(path: str | Path, table: Any, request: NoticeRequest, keep: Any) -> Plan:
    explainer, query, letter = request.explainer, query_of(request.query), checked_letter(request.letter)
    if query.target is None:
        raise QuestionError("Say which decision is the favourable one: who has it gets no notice (target='approve').")
    kept = items(keep)
    if kept is None or not all(isinstance(name, str) for name in kept):
        raise QuestionError(f"Say which columns to keep as a list of names; got {shown(keep)}.")
    identity = explainer.identity(query)
    own = {"form": letter.form, "language": letter.language, "fields": dict(letter.fields), "subject": letter.subject,
           "codes": None if request.codes is None else request.codes.to_dict(), "ways": request.ways}  # fmt: skip
    silent = replace(request, explainer=explainer.using(listen=_silent))
    return Plan(
        source=source_of(table),
        path=path,
        answer=NoticeRecords(silent, tuple(kept)),
        features=explainer.schema.names,
        record={**record_kinds(explainer.model.outputs), "annex": "nested"},
        about={**identity, "query": {"asked": identity["query"], "notice": own}},
        distance_name=query.distance_name,
        keep=kept,
    )


def _silent(event: Progress) -> None:
    """The run has the progress bar, and not each of its searches."""


# ---------------------------------------------------------------------- from the records


def read_notices(path: str | Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The record and the annex of everybody who has a notice, one after the other."""
    place = path_of(path)
    try:
        with file_errors(f"read the notices '{place}'"), place.open("r", encoding="utf-8") as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), ""), 1):
                record = _record(line, place, number)
                if (annex := record.pop("annex")) is not None:
                    yield record, annex
    except UnicodeDecodeError:
        raise FileError(f"'{place}' is not UTF-8 text.") from None


def _record(line: str, place: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not _is_whole(record):
        raise FileError(f"'{place}', line {number}, is no record of a notice by this ifonly; write the notices again.")
    return record


def _is_whole(record: dict[str, Any]) -> bool:
    """Has a record everything that pages and tables are made from?"""
    try:
        if (annex := record["annex"]) is None:
            return True
        statements = {one["mark"]: one["text"] for one in annex["statements"]}
        texts = [annex["model"], annex["schema"], *statements, *statements.values(), *annex["keeps"]]
        texts += [
            part
            for one in annex["reasons"]
            for part in (one["code"], one["text"], statements[one["mark"]], *one["about"])
        ]
        texts += [part for one in annex["proven"] for part in (one["text"], *one["about"])]
        texts += [part for one in annex["data"] for part in (one["label"], one["shown"])]
        texts += [part for one in annex["fields"] for part in (one["name"], one["value"] or "")]
        texts += [] if annex["certificate"] is None else [annex["certificate"]["sha256"]]
        marks = {"D", "S", "O"} if annex["reasons"] else {"D", "S"}
        known = (annex["format"], annex["version"]) == (FORMAT, VERSION) and type(record["row"]) is int
        return known and marks <= statements.keys() and all(isinstance(one, str) for one in texts)
    except (LookupError, TypeError, AttributeError):
        return False


def write_pages(path: str | Path, folder: str | Path, letter: Letter | str = "c-1") -> int:
    """Of each person with a notice a page and its annex: notice-000012.html and .json for row 12. How many there are.

    The letter's template is used; form, language and fields are those that the notices were made with.
    """
    pages, place, count = _Pages(letter), path_of(folder), 0
    with file_errors(f"write to the folder '{place}'"):
        place.mkdir(exist_ok=True)
    for record, annex in read_notices(path):
        name = page_name(record)
        write_whole(place / name, pages.of(annex).page(annex).encode("utf-8"))
        write_whole((place / name).with_suffix(".json"), annex_text(annex).encode("utf-8"))
        count += 1
    return count


def write_printout(path: str | Path, page: str | Path, letter: Letter | str = "c-1") -> int:
    """One page with the notices of all people, each on sheets of their own, for printing. How many there are."""
    pages = _Pages(letter)
    found = [annex for _, annex in islice(read_notices(path), MOST_PEOPLE + 1)]
    if len(found) > MOST_PEOPLE:
        raise QuestionError(f"A printout has at most {MOST_PEOPLE:,} people; write a page for each of them instead.")
    if not found:
        raise QuestionError(f"Nobody in '{path_of(path)}' has a notice, so there is nothing to print.")
    write_whole(page, pages.of(found[0]).printout(found).encode("utf-8"))
    return len(found)


class _Pages:
    """The pages of each form and language in a file, by the template of a letter."""

    def __init__(self, letter: Letter | str) -> None:
        self.letter = checked_letter(letter)
        self.known: dict[Any, NoticePages] = {}

    def of(self, annex: dict[str, Any]) -> NoticePages:
        form, language = annex.get("form"), annex.get("language")
        worded = replace(self.letter, form=form, language=language)  # type: ignore[arg-type]  # which it checks
        if (form, language) not in self.known:
            self.known[form, language] = NoticePages.of(worded)
        return self.known[form, language]


def write_mail_merge(path: str | Path, table: str | Path) -> int:
    """A csv with a row per person who has a notice: the columns that were kept, the decision, codes and texts of the
    reasons, the ways, and the name of the page. Texts that a spreadsheet would take for formulas have a quote before
    them. How many people there are."""
    count, kinds = 0, merge_kinds(path)
    with replacing(table) as place, place.open("wb") as file:
        file.write(header(".csv", kinds, escape_formulas=True))
        for line in merge_rows(path):
            file.write(encoded(".csv", {name: [line.get(name)] for name in kinds}, kinds, escape_formulas=True))
            count += 1
    return count


def merge_kinds(path: str | Path) -> dict[str, Kind]:
    """The columns of a mail merge, in order."""
    ways, kept = 0, dict[str, None]()
    for record, annex in read_notices(path):
        ways = max(ways, len(_told(annex, "W")))
        kept |= dict.fromkeys(name for name in record if name not in NAMES)
    own: dict[str, Kind] = {"row": "integer", "page": "text", "decision": "text"}
    for k in range(1, MOST + 1):
        own |= {f"reason_{k}_code": "text", f"reason_{k}": "text", f"reason_{k}_proof": "text"}
    own |= {"decides": "text", **{f"way_{k}": "text" for k in range(1, ways + 1)}}
    return {**own, **{name: "text" for name in kept if name not in own}}


def merge_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """The rows of a mail merge."""
    for record, annex in read_notices(path):
        yield merge_row(record, annex)


def merge_row(record: dict[str, Any], annex: dict[str, Any]) -> dict[str, Any]:
    """One row of a mail merge."""
    kept = {name: value for name, value in record.items() if name not in NAMES}
    line = {**kept, "row": record["row"], "page": page_name(record), "decision": _told(annex, "D")[0]}
    for k, (reason, proof) in enumerate(zip(annex["reasons"], _told(annex, "R"), strict=True), 1):
        line |= {f"reason_{k}_code": reason["code"], f"reason_{k}": reason["text"], f"reason_{k}_proof": proof}
    return line | {"decides": _told(annex, "S")[0]} | {f"way_{k}": way for k, way in enumerate(_told(annex, "W"), 1)}


def _told(annex: dict[str, Any], kind: str) -> list[str]:
    """The sentences whose mark begins so."""
    return [one["text"] for one in annex["statements"] if one["mark"].startswith(kind)]


def page_name(record: dict[str, Any]) -> str:
    """The file of a person's page."""
    return f"notice-{int(record['row']):06d}.html"
