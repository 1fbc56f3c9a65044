"""Collections: the certificates of many people in one file, in which model and schema stand once.

The file is a sequence of gzip members, each with one line of canonical JSON, so that it is written and read as a stream
and can be continued where it was cut off. The first line has what all share, each other line one person's certificate
without it, or the reason why there is none. Put together they are certificates with stamps of their own.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import FileError
from ..files import path_of
from ..printing import escaped, json_object, printable
from .check.checker import LONGEST_SECONDS, TRUSTED, VALID, CheckResult, check
from .format import FREE_TEXT, MAX_TEXT, TIMES, Certificate, canonical

FORMAT = "ifonly-certificates"
VERSION = 1
ENDING = ".certs"
SHARED = ("schema", "model")
"""Parts of a question that stand once."""
GZIP = 31
"""zlib's number for one gzip member."""
CHUNK = 2**16
MOST_TOLD = 20
"""Rows that a summary names."""
SENTENCE = 2_000
"""Characters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One person of a collection: the row's number, and a certificate, or why there is none."""

    row: int
    certificate: Certificate | None = None
    refused: str = ""


def members(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """The text of each gzip member, and where it ends in the file; FileError where the file is cut off or damaged."""
    rest, ended = b"", 0
    while True:
        unpacker, text, packed = zlib.decompressobj(GZIP), bytearray(), 0
        while not unpacker.eof:
            given = unpacker.unconsumed_tail or rest or file.read(CHUNK)
            rest = b""
            if not given:
                if packed:
                    raise FileError("the collection is cut off in the middle of a certificate")
                return
            before = len(given)
            try:
                text += unpacker.decompress(given, CHUNK)
            except zlib.error as error:
                raise FileError(f"this is no collection of certificates: {error}") from None
            packed += before - len(unpacker.unconsumed_tail) - len(unpacker.unused_data)
            if len(text) > min(MAX_TEXT, FREE_TEXT + TIMES * packed):
                raise FileError("a line of the collection is too large for its file")
        rest, ended = unpacker.unused_data, ended + packed
        yield bytes(text), ended


def _line(text: bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise FileError("a line of the collection is no JSON") from None
    if not isinstance(data, dict):
        raise FileError("a line of the collection is no object")
    return data


def _header(text: bytes) -> dict[str, Any]:
    data = _line(text)
    if data.get("format") != FORMAT or data.get("version") != VERSION or not isinstance(data.get("shared"), dict):
        raise FileError(f'a collection begins with "format": "{FORMAT}" and "version": {VERSION}; this does not')
    return data


def _entry(shared: dict[str, Any], text: bytes) -> Entry:
    data = _line(text)
    row, refused, own = data.get("row"), data.get("refused"), data.get("certificate")
    if type(row) is not int or row < 0:
        raise FileError("a line of the collection has no number of a row")
    if isinstance(refused, str) and own is None:
        return Entry(row=row, refused=printable(refused, SENTENCE))
    question = own.get("question") if isinstance(own, dict) else None
    if not isinstance(own, dict) or not isinstance(question, dict) or set(question) & set(shared):
        raise FileError(f"row {row} of the collection has neither a certificate nor a reason")
    return Entry(row=row, certificate=Certificate({**own, "question": {**question, **shared}}))


def is_collection(path: str | Path) -> bool:
    """By its first bytes: those of gzip."""
    try:
        with path_of(path).open("rb") as file:
            return file.read(2) == b"\x1f\x8b"
    except OSError:
        return False


def entries_of(path: str | Path) -> Iterator[Entry]:
    """The people of a collection, one after the other; nothing in it is checked here but its form."""
    path = path_of(path)
    try:
        with path.open("rb") as file:
            lines = members(file)
            first = next(lines, None)
            if first is None:
                raise FileError(f"'{path}' is empty")
            shared = _header(first[0])["shared"]
            for text, _ in lines:
                yield _entry(shared, text)
    except OSError as error:
        raise FileError(f"Cannot read '{path}': {error.strerror or error}.") from None


# ---------------------------------------------------------------------- writing


class CollectionWriter:
    """Appends certificates to a file. `shared` is the model and the schema, `asked` names the question: a file is
    continued only where both are the same.
    """

    def __init__(self, path: str | Path, shared: dict[str, Any], asked: str, *, resume: bool = False) -> None:
        self.path = path_of(path)
        self.shared = canonical(shared)
        self.done: set[int] = set()
        """Rows that are in the file already."""
        self.file: BinaryIO
        header = {"format": FORMAT, "version": VERSION, "asked": asked, "shared": shared}
        try:
            if resume and self.path.exists():
                self._continue(canonical(header))
            else:
                self.file = self.path.open("wb" if resume else "xb")
                self._write(header)
        except OSError as error:
            raise FileError(f"Cannot write '{self.path}': {error.strerror or error}.") from None

    def _continue(self, header: bytes) -> None:
        """Read what is there, and cut off what is half written."""
        ended = 0
        with self.path.open("rb") as file:
            try:
                for text, place in members(file):
                    if not ended and text != header:
                        break
                    if ended:
                        self.done.add(_entry({}, text).row)
                    ended = place
            except FileError:
                pass  # what is half written
        if not ended:
            raise FileError(f"'{self.path}' cannot be continued: it is about another model, schema or question.")
        self.file = self.path.open("r+b")
        self.file.truncate(ended)
        self.file.seek(ended)

    def __enter__(self) -> CollectionWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def add(self, row: int, certificate: Certificate) -> None:
        """Append one; its model and schema must be those of the first."""
        question = certificate.data["question"]
        if canonical({key: question[key] for key in SHARED}) != self.shared:
            raise FileError(f"row {row} is about another model or schema than the collection")
        own = {key: value for key, value in question.items() if key not in SHARED}
        self._write({"row": row, "certificate": {**certificate.data, "question": own}})

    def refuse(self, row: int, reason: str) -> None:
        """Append why there is no certificate of a row."""
        self._write({"row": row, "refused": reason[:SENTENCE]})

    def _write(self, data: dict[str, Any]) -> None:
        packer = zlib.compressobj(6, zlib.DEFLATED, GZIP)
        self.file.write(packer.compress(canonical(data)) + packer.flush())
        self.file.flush()
        os.fsync(self.file.fileno())


# ---------------------------------------------------------------------- checking


@dataclass(slots=True, kw_only=True)
class Summary:
    """Of the check of a collection: how many have which verdict, what the first of them prove, and the first rows that
    are not VALID.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    rows: list[tuple[int, str, str]] = field(default_factory=list)
    """Row, verdict (or "no certificate"), and why."""
    proven: list[tuple[int, str]] = field(default_factory=list)
    """Row, and the sentence that is proven."""
    failure: str = ""
    """What is wrong with the file itself."""
    networks: set[str] = field(default_factory=set)
    """Fingerprints of the models."""

    @property
    def code(self) -> int:
        """The exit code: that of the worst verdict."""
        if self.failure or not self.verdicts:
            return 1
        return 0 if set(self.verdicts) == {VALID} else 3 if set(self.verdicts) <= {VALID, TRUSTED} else 1

    def take(self, entry: Entry, checked: CheckResult | None) -> None:
        """Count one person."""
        if checked is None:
            self.refused += 1
        else:
            self.verdicts[checked.verdict] += 1
            self.networks |= {checked.network} - {""}
            if checked.valid and len(self.proven) < MOST_TOLD:
                self.proven.append((entry.row, checked.statement.split("\n")[0]))
        if (checked is None or not checked.valid) and len(self.rows) < MOST_TOLD:
            words = ("no certificate", entry.refused) if checked is None else (checked.verdict, checked.failure)
            self.rows.append((entry.row, *words))

    def to_dict(self) -> dict[str, Any]:
        data = json_object(self, ("refused", "rows", "proven", "failure"))
        return {"verdicts": dict(self.verdicts), "models": sorted(self.networks), **data}

    def __str__(self) -> str:
        total = sum(self.verdicts.values())
        told = [f"{count:,} of {total:,} certificates: {verdict}" for verdict, count in self.verdicts.most_common()]
        told += [f"{self.refused:,} people have no certificate"] if self.refused else []
        told += [f"Row {row}: {verdict}: {why}" for row, verdict, why in self.rows]
        told += [f"Row {row}: {escaped(sentence)}" for row, sentence in self.proven]
        told += [f"Model: sha256 {one}" for one in sorted(self.networks)]
        return "\n".join([*told, *([f"INVALID: {self.failure}"] if self.failure else [])])


def check_collection(
    path: str | Path, *, seconds: float = LONGEST_SECONDS, each: Callable[[Entry], None] = lambda _: None
) -> Summary:
    """Check every certificate of a collection, each for at most so many seconds; `each` is called before each."""
    summary = Summary()
    try:
        for entry in entries_of(path):
            each(entry)
            summary.take(entry, None if entry.certificate is None else check(entry.certificate, seconds=seconds))
    except FileError as error:
        summary.failure = str(error)
    return summary
