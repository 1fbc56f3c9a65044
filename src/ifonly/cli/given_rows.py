"""The files of `--rows`, with the separator of `--sep`; `-` is the standard input.

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

from ifonly.errors import FileError, QuestionError
from ifonly.population.sources import TableFiles, files_of

STANDARD = "-"
SEPARATORS = {"tab": "\t", "\\t": "\t"}


def take_rows(options: MutableMapping[str, Any]) -> None:
    """Open what `--rows` names: from here on `options["rows"]` are table files, or None."""
    rows, separator = options["rows_file"], read_separator(options)
    if rows is None and separator is not None:
        raise QuestionError(
            "--sep says how rows are separated: say which with --rows FILE, or --rows - for those that come in."
        )
    options["rows"] = None if rows is None else table_files(rows, separator)


def read_separator(options: Mapping[str, Any]) -> str | None:
    """The character that `--sep` names, if it is given."""
    given = options["sep"]
    if given is None:
        return None
    separator = SEPARATORS.get(given, given)
    if len(separator) != 1 or separator in '"\n\r':
        raise QuestionError(f"--sep is one character, such as ';' or tab; got '{given}'.")
    return str(separator)


def table_files(name: str, separator: str | None = None) -> TableFiles:
    """The files of a name; `-` is the standard input."""
    if name != STANDARD:
        return files_of(name, separator)
    return files_of(_standard_input(), separator or ",", description="'-' (standard input)")


def _standard_input() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ifonly-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "standard-input.csv"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        raise FileError(f"Cannot read what comes in by the standard input: {error.strerror or error}.") from None
    return path
