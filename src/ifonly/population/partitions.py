"""Hive partitioning of an output: a folder per value of a column, `country=DE/month=10/part-000000000000.parquet`.

The columns in the names of folders are not in the files, as Spark, pandas, Arrow and DuckDB expect it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ifonly.errors import QuestionError
from ifonly.population.formats import as_text
from ifonly.printing import shown

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder of rows that have no value."""
MOST_COLUMNS = 4
"""Columns in the names of folders."""
MOST_FOLDERS = 400
"""Folders of a run: each has a file open."""
MOST_BYTES = 255
"""Of the name of a folder, on usual file systems."""


@dataclass(frozen=True, slots=True)
class EncodedRecords:
    """Encoded records of one folder, and how many they are; the folder "" is that of the run."""

    body: bytes
    rows: int
    folder: str = ""


def check_partition_by(columns: Any) -> None:
    """Refuse anything but a tuple of a few different names."""
    if not isinstance(columns, tuple) or not all(isinstance(one, str) and one for one in columns):
        raise QuestionError(f"'partition_by' is a tuple of columns, such as ('country',); got {shown(columns)}.")
    if len(set(columns)) != len(columns) or len(columns) > MOST_COLUMNS:
        raise QuestionError(
            f"'partition_by' takes up to {MOST_COLUMNS} different columns; got {shown(', '.join(columns))}."
        )


def rows_by_folder(columns: Mapping[str, Sequence[Any]], partition_by: Sequence[str]) -> dict[str, list[int]]:
    """The places of the rows of each folder."""
    found: dict[str, list[int]] = {}
    for i, values in enumerate(zip(*(columns[name] for name in partition_by), strict=True)):
        folder = "/".join(_folder(name, value) for name, value in zip(partition_by, values, strict=True))
        found.setdefault(folder, []).append(i)
    return found


def _folder(name: str, value: Any) -> str:
    text = as_text(value)
    folder = f"{quote(name, safe=' ')}={NO_PARTITION if not text else quote(text, safe=' ')}"
    if len(folder.encode("utf-8")) > MOST_BYTES:
        raise QuestionError(
            f"The value {shown(text, 40)} of '{name}' is too long for the name of a folder: partition by a column of "
            f"short values."
        )
    return folder


def column_of_folder(folder: str) -> tuple[str, str | None] | None:
    """The column that a folder's name holds, and its value; None where it is an ordinary folder."""
    name, sign, value = folder.partition("=")
    return (unquote(name), None if value == NO_PARTITION else unquote(value)) if name and sign else None


def is_part(name: str) -> bool:
    """Is this the name of a file, in folders of columns only?"""
    *folders, last = name.split("/")
    return all("=" in one and Path(one).name == one for one in folders) and Path(last).name == last


def files_below(folder: Path, pattern: str) -> Iterator[Path]:
    """The files of a pattern in a folder and in its folders of columns; links are not followed."""
    yield from folder.glob(pattern)
    for depth in range(1, MOST_COLUMNS + 1):
        for found in folder.glob("*=*/" * depth + pattern):
            if not any(one.is_symlink() for one in _between(found, folder)):
                yield found


def remove_empty_folders(file: Path, folder: Path) -> None:
    """Remove the folders of columns between a file that is gone and the folder of the run, where they are empty."""
    for one in _between(file, folder):
        try:
            one.rmdir()
        except OSError:
            return


def make_folders(folder: Path, name: str) -> Path:
    """The folder of columns below that of the run, which is made; nothing is made through a link."""
    made = folder
    for one in name.split("/"):
        made = made / one
        made.mkdir(exist_ok=True)
        if made.is_symlink():
            raise OSError(f"{os.fspath(made)} is a symbolic link; remove it")
    return made


def _between(file: Path, folder: Path) -> list[Path]:
    """The folders from that of a file up to, and without, that of the run."""
    found = []
    for one in file.parents:
        if one == folder:
            break
        found.append(one)
    return found
