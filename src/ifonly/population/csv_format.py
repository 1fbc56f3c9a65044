"""The format of a csv file: separator, encoding and decimal mark, as said or by the file's own bytes.

What is not said is detected. Separator: a comma, unless the rows at the head have equally many cells only by another.
Encoding: UTF-8 (UTF-16 with its mark), or Windows-1252 where the bytes are no UTF-8 and are text by that. What was
detected, and is not the usual, is said in a remark.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from ifonly.errors import QuestionError

USUAL = "utf-8-sig"
WINDOWS = "cp1252"
SEPARATORS = {";": ("semicolons", "';'"), "\t": ("tabs", "tab"), "|": ("bars", "'|'"), ",": ("commas", "")}
"""Common separators of cells: their names, and how they are written on the command line."""
HEAD_LINES = 50
HEAD_CHARACTERS = 1 << 20
MOST_SCANNED = 64 << 20
"""Bytes of a file by which its encoding is recognised."""
_BLOCK = 1 << 20
_NO_TEXT = bytes(set(range(32)) - {9, 10, 12, 13})


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFormat:
    """How a csv file is written; None is detected. `missing`: cells that stand for no value, besides empty ones."""

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\n\r'):
            raise QuestionError(f"A separator is one character, such as ';' or tab; got '{self.separator}'.")
        if self.decimal not in (None, ".", ","):
            raise QuestionError(f"A decimal mark is a point or a comma; got '{self.decimal}'.")
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, ValueError, TypeError):
                raise QuestionError(
                    f"There is no encoding of texts '{self.encoding}'; common ones are utf-8, cp1252 and latin-1."
                ) from None

    def to_dict(self) -> dict[str, str]:
        """What is not the usual, for a manifest."""
        own = {"separator": self.separator, "encoding": self.encoding, "decimal": self.decimal}
        usual = {"separator": ",", "encoding": USUAL, "decimal": None}
        told = {name: value for name, value in own.items() if value is not None and value != usual[name]}
        return told | ({"missing": " ".join(self.missing)} if self.missing else {})


def detected(path: Path, given: CsvFormat) -> CsvFormat:
    """The format with separator and encoding filled in. A file that cannot be read has the usual one."""
    try:
        encoding = given.encoding or _encoding(path)
        separator = given.separator or _separator(path, encoding)
    except (OSError, UnicodeError):  # reported when the rows are read
        encoding, separator = given.encoding or USUAL, given.separator or ","
    return replace(given, encoding=encoding, separator=separator)


def remark(name: str, given: CsvFormat, found: CsvFormat, *, commas: bool) -> str:
    """What was detected about a file and is not the usual, as a sentence; empty where nothing is."""
    told, options = list[str](), list[str]()
    if given.encoding is None and found.encoding != USUAL:
        told.append("encoded as Windows-1252" if found.encoding == WINDOWS else f"encoded as {found.encoding}")
        options.append("--encoding")
    if given.separator is None and found.separator != ",":
        told.append(f"separated by {SEPARATORS[found.separator or ','][0]}")
        options.append("--sep")
    if given.decimal is None and commas:
        told.append("written with decimal commas (1.234,50)")
        options.append("--decimal")
    return f"{name} is taken to be {_listed(told)}; {_listed(options)} can say otherwise." if told else ""


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + words[-1:])


def _encoding(path: Path) -> str:
    decoder, windows = codecs.getincrementaldecoder("utf-8")(), True
    with path.open("rb") as file:
        start = file.read(2)
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        for _ in range(MOST_SCANNED // _BLOCK):
            some = file.read(_BLOCK)
            try:
                decoder.decode(some, final=len(some) < _BLOCK)
            except UnicodeDecodeError:
                return WINDOWS if windows and _is_windows(some) else USUAL
            windows = windows and _is_windows(some)
            if len(some) < _BLOCK:
                break
    return USUAL


def _is_windows(some: bytes) -> bool:
    """Are all bytes text by Windows-1252?"""
    return len(some.translate(None, _NO_TEXT + b"\x81\x8d\x8f\x90\x9d")) == len(some)


def _separator(path: Path, encoding: str) -> str:
    with path.open(encoding=encoding, newline="", errors="replace") as text:
        lines = list(islice(_short_lines(text.read(HEAD_CHARACTERS)), HEAD_LINES))
    widths = {sign: _width(lines, sign) for sign in (",", *SEPARATORS)}
    if widths[","] > 1:
        return ","
    best = max(widths, key=lambda sign: widths[sign])
    return best if widths[best] > 1 else ","


def _short_lines(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    yield from lines if len(text) < HEAD_CHARACTERS else lines[:-1]


def _width(lines: list[str], separator: str) -> int:
    """The cells of each line, where all have equally many; 0 where they do not."""
    try:
        widths = {len(cells) for cells in csv.reader(lines, delimiter=separator) if cells}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0
