"""Rows that are no plain csv file: those that come in by the standard input, or are separated otherwise.

They are copied, line by line, into a file of their own that is gone when the program ends.
"""

from __future__ import annotations

import atexit
import csv
import shutil
import sys
import tempfile
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, QuestionError

STANDARD = "-"
SEPARATORS = {"tab": "\t", "\\t": "\t"}


def take_rows(options: MutableMapping[str, Any]) -> None:
    """Put a csv file in the place of what `--rows -` and `--sep` name."""
    rows, separator = options["rows_file"], options["sep"]
    if separator is None and rows != STANDARD:
        return
    if rows is None:
        raise QuestionError("--sep says how rows are separated: say which with --rows FILE, or --rows - for those that "
                            "come in.")  # fmt: skip
    separator = SEPARATORS.get(separator or ",", separator or ",")
    if len(separator) != 1 or separator in '"\n\r':
        raise QuestionError(f"--sep is one character, such as ';' or tab; got '{separator}'.")
    options["rows_file"] = str(_copied(rows, separator))


def _copied(rows: str, separator: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ifonly-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / ("standard-input.csv" if rows == STANDARD else f"{Path(rows).stem}.csv")
    try:
        if rows == STANDARD:
            _copy(sys.stdin, path, separator)
        else:
            with Path(rows).open(encoding="utf-8-sig", newline="") as lines:
                _copy(lines, path, separator)
    except OSError as error:
        raise FileError(f"Cannot read the table '{rows}': {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise FileError(f"'{rows}' is not UTF-8 text; save it as UTF-8.") from None
    except csv.Error as error:
        raise FileError(f"'{rows}' cannot be read as a table: {error}.") from None
    return path


def _copy(lines: Iterable[str], path: Path, separator: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(csv.reader(lines, delimiter=separator))
