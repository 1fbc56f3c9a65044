"""The files of `--rows`, with the format of `--sep`, `--encoding` and `--decimal`; `-` is the standard input.

The standard input is copied into a temporary file, because a run reads its rows more than once.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from ifonly.cli.console import note
from ifonly.errors import QuestionError
from ifonly.files import file_errors
from ifonly.population.csv_format import CsvFormat
from ifonly.population.sources import TableFiles, files_of

STANDARD = "-"
SEPARATORS = {"tab": "\t", "\\t": "\t"}


def take_rows(options: MutableMapping[str, Any]) -> None:
    """Open what `--rows` names: from here on `options["rows"]` are table files, or None."""
    rows, given = options["rows_file"], read_format(options)
    if rows is None and given != CsvFormat():
        raise QuestionError(
            "--sep, --encoding, --decimal and --missing say how rows are written: say which with --rows FILE, or "
            "--rows - for those that come in."
        )
    options["rows"] = None if rows is None else table_files(rows, given)


def read_format(options: Mapping[str, Any]) -> CsvFormat:
    """What `--sep`, `--encoding`, `--decimal` and `--missing` say of a csv file."""
    separator, decimal = options.get("sep"), options.get("decimal")
    if separator is not None:
        separator = SEPARATORS.get(separator, separator)
        if len(separator) != 1 or separator in '"\n\r':
            raise QuestionError(f"--sep is one character, such as ';' or tab; got '{options['sep']}'.")
    missing = tuple(cell.strip() for cell in options.get("missing") or ())
    return CsvFormat(separator=separator, encoding=options.get("encoding"), decimal=decimal, missing=missing)


def table_files(name: str, given: CsvFormat | None = None) -> TableFiles:
    """The files of a name; `-` is the standard input. What was detected about their format is said."""
    if name == STANDARD:
        files = files_of(_standard_input(), given, description="'-' (standard input)")
    else:
        files = files_of(name, given)
    if files.remark:
        note(files.remark)
    return files


def _standard_input() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ifonly-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "standard-input.csv"
    with file_errors("read what comes in by the standard input"), path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
