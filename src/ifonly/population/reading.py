"""Answers read back from a file as a stream: JSON lines, csv or parquet.

A line of JSON is an answer as `Answer.to_dict` writes it, or a record: the columns of a table of answers, and columns
that were kept beside them (a region, a customer's number). A row of csv or parquet is a record. The factual row of a
record is known where there is a counterfactual: its changes are undone. Kept columns are put beside the features, so
that people can be grouped by them.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, QuestionError
from ifonly.files import file_errors
from ifonly.population.chunks import ROWS
from ifonly.population.files import TableFile, read_blocks
from ifonly.population.formats import formula_unescaped
from ifonly.population.output import manifest_of
from ifonly.population.output_paths import read_place
from ifonly.population.partitions import column_of_folder, files_below
from ifonly.printing import shown
from ifonly.problem.query import Query
from ifonly.results import Answer, Failed, Stop, StoppedBy
from ifonly.results.answer import KINDS
from ifonly.results.from_dict import change_from_dict
from ifonly.results.records import COLUMNS
from ifonly.schema.arguments import path_of

TABLES = (".jsonl", ".csv", ".parquet")
MOST_CHARACTERS = 16 * 2**20
"""Of one line."""


def read_answers(path: str | Path, query: Query | None = None) -> Iterator[Answer]:
    """The answers of a file, or of a folder of such files in the order of their names, read lazily, in bounded
    memory; those of folders of columns (`country=DE/`) in the order of the rows, with these columns. `query` is the one
    that was answered: records do not contain it.
    """
    path, query = path_of(path), query or Query()
    escaped = _has_escaped_formulas(path)
    folders = [_read_folder(files, _columns(files[0], path), query, escaped) for files in _files(path)]
    yield from folders[0] if len(folders) == 1 else heapq.merge(*folders, key=lambda answer: answer.row)


def _columns(file: Path, root: Path) -> dict[str, str | None]:
    """The columns in the names of the folders between a file and the folder of the answers."""
    return dict(filter(None, map(column_of_folder, file.relative_to(root).parts[:-1])))


def _read_folder(
    files: Sequence[Path], columns: Mapping[str, str | None], query: Query, escaped: bool
) -> Iterator[Answer]:
    for file in files:
        if file.suffix in TABLES[1:]:
            yield from _read_table(file, columns, query, escaped and file.suffix == ".csv")
        else:
            yield from _read_file(file, columns, query)


def _has_escaped_formulas(path: Path) -> bool:
    """By the manifest of the run that has written the answers; without one, cells are read as they are."""
    try:
        return (manifest_of(read_place(path)) or {}).get("escape_formulas") is True
    except FileError:  # no manifest of ours
        return False


def _files(path: Path) -> list[list[Path]]:
    """The files of each folder."""
    with file_errors(f"read the answers '{path}'"):  # a name that is too long
        if not path.is_dir():
            return [[path]]
    kinds = (sorted(files_below(path, f"*{kind}")) for kind in TABLES)
    files = next(filter(None, kinds), [])
    if not files:
        raise FileError(f"There are no answers ({', '.join(TABLES)}) in the folder '{path}'.")
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    return list(folders.values())


def _read_file(path: Path, columns: Mapping[str, str | None], query: Query) -> Iterator[Answer]:
    try:
        with file_errors(f"read the answers '{path}'"), path.open(encoding="utf-8") as lines:
            number = 0
            while line := lines.readline(MOST_CHARACTERS + 1):
                number += 1
                if len(line) > MOST_CHARACTERS:
                    raise FileError(f"'{path}', line {number} is longer than {MOST_CHARACTERS // 2**20} MiB.")
                if line.strip():
                    yield _read(line, path, number, columns, query)
    except UnicodeDecodeError:
        raise FileError(f"'{path}' is not UTF-8 text; answers are JSON lines.") from None


def _read_table(path: Path, columns: Mapping[str, str | None], query: Query, escaped: bool) -> Iterator[Answer]:
    """The records of a csv or parquet file, whose nested values are JSON text; `escaped`: its formulas are."""
    number = 0
    file = TableFile(path=path, description=f"'{path}'", kind=path.suffix, columns=columns)
    for block in read_blocks(file, ROWS):
        for why in block.wrong.values():
            raise FileError(why)
        for row in block.as_rows():
            number += 1
            try:
                yield _of_record(_decoded(_unescaped(row) if escaped else row), query)
            except (QuestionError, ValueError, RecursionError) as error:
                raise FileError(f"'{path}', record {number} is no answer: {error}") from None


def _unescaped(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        formula_unescaped(name): formula_unescaped(value) if isinstance(value, str) else value
        for name, value in row.items()
    }


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    """A record with the values of its columns, which are texts in csv."""
    if with_missing := [name for name in COLUMNS if name not in row]:
        raise QuestionError(f"there is no column '{with_missing[0]}'.")
    data = {**row, "note": row.get("note") or ""}
    for name in ("changes", "counterfactual"):
        data[name] = json.loads(row[name]) if isinstance(row[name], str) else row[name]
    for name, number in {"row": int, "distance": float, "lower_bound": float}.items():
        data[name] = number(row[name]) if isinstance(row[name], str) else row[name]
    return data


def _read(line: str, path: Path, number: int, columns: Mapping[str, str | None], query: Query) -> Answer:
    try:
        data = json.loads(line)
        data = {**data, **columns} if columns and isinstance(data, dict) else data
        whole = not isinstance(data, Mapping) or "factual" in data or not set(COLUMNS) <= set(data)
        return Answer.from_dict(data) if whole else _of_record(data, query)
    except QuestionError as error:
        raise FileError(f"'{path}', line {number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"'{path}', line {number} is not JSON: {error}.") from None


def _of_record(data: Mapping[str, Any], query: Query) -> Answer:
    """The answer of a record."""
    status, row, after, note = (data.get(name) for name in ("status", "row", "counterfactual", "note"))
    if not isinstance(status, str) or status not in KINDS:
        raise QuestionError(f"The entry 'status' of a record must be one of {', '.join(KINDS)}; got {shown(status)}.")
    if not isinstance(row, int) or not isinstance(data["changes"], list) or not isinstance(after, dict | None):
        raise QuestionError("A record has a number 'row', a list 'changes', and an object 'counterfactual' or none.")
    changes = tuple(change_from_dict(one) for one in data["changes"])
    kept = {name: value for name, value in data.items() if name not in (*COLUMNS, "note")}
    common: dict[str, Any] = {
        "row": row,
        "factual": {**kept, **(after or {}), **{one.feature: one.before for one in changes}},
        "target": "" if query.target is None else query.target.describe(),
        "distance_name": query.distance_name,
        "lower": _number(data, "lower_bound"),
    }
    if status == Failed.status:
        return Failed(error=str(note), **common)
    if (after is not None) != (status in ("nearest", "within")) or (changes and after is None):
        raise QuestionError(f"The entries of this record do not belong together: '{status}' with {shown(after)}.")
    stop = Stop(StoppedBy.UNDECIDED, detail=str(note)) if note else None
    return KINDS[status](upper=_number(data, "distance"), counterfactual=after, changes=changes, stop=stop, **common)


def _number(data: Mapping[str, Any], name: str) -> float:
    """A distance; None is infinity."""
    value = math.inf if data[name] is None else data[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise QuestionError(f"The entry '{name}' of a record must be a number >= 0 or null; got {shown(value)}.")
    return float(value)
