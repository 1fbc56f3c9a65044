"""Answers read back from a file, one after another: JSON lines as `Answer.to_dict` makes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ifonly.errors import FileError, QuestionError
from ifonly.proof import Answer
from ifonly.schema.given import path_of

MOST_CHARACTERS = 16 * 2**20
"""Of one line."""


def read_answers(path: str | Path) -> Iterator[Answer]:
    """The answers of a file, each read when it is asked for; memory does not grow with the file."""
    path = path_of(path)
    try:
        with path.open(encoding="utf-8") as lines:
            number = 0
            while line := lines.readline(MOST_CHARACTERS + 1):
                number += 1
                if len(line) > MOST_CHARACTERS:
                    raise FileError(f"'{path}', line {number} is longer than {MOST_CHARACTERS // 2**20} MiB.")
                if line.strip():
                    yield _answer(line, path, number)
    except OSError as error:
        raise FileError(f"Cannot read the answers '{path}': {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise FileError(f"'{path}' is not UTF-8 text; answers are JSON lines.") from None


def _answer(line: str, path: Path, number: int) -> Answer:
    try:
        return Answer.from_dict(json.loads(line))
    except QuestionError as error:
        raise FileError(f"'{path}', line {number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"'{path}', line {number} is not JSON: {error}.") from None
