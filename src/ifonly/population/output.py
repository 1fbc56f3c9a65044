"""Output of a run, written atomically so that it can be resumed: parts with a manifest, and one file made of them.

    answers.parquet/           a folder: parts, each complete, and _manifest.json, which says which parts there are
    answers.csv                a file: the same in answers.csv.parts until all is there, then moved into place at once;
                               answers.csv.manifest.json stays beside it

Every file is written beside its place, flushed to the disk and moved there. A part counts when the manifest names it.
So whenever a run ends, the parts that the manifest names are complete, and no other file has a final name.

Only files of the run are removed, and nothing is written through a link: a folder of parts that is a symbolic link is
refused, and every file is created anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, QuestionError
from ifonly.files import file_errors
from ifonly.population.counters import AnswerCounts
from ifonly.population.formats import RecordWriter, concatenate, new_file, open_writer
from ifonly.population.output_paths import DIGITS, LOCK, MANIFEST_BESIDE, OutputPaths, part_name
from ifonly.population.partitions import (
    MOST_FOLDERS,
    EncodedRecords,
    is_part,
    make_folders,
)
from ifonly.printing import json_text, shown
from ifonly.results.records import Kind
from ifonly.schema.io import move, read_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT, VERSION = "ifonly-run", 2
MOST_BYTES = 256 * 2**20
"""Of a manifest."""
MOST_ROWS, MOST_SECONDS = 65_536, 5.0
"""Rows of a part, or seconds of writing it, before it is completed: what a crash can cost."""
RUNNING, FINISHED = "running", "finished"


@dataclass(slots=True)
class _OpenPart:
    """A part that is being written, and its path until it is complete."""

    writer: RecordWriter
    path: Path
    rows: int = 0


class Parts:
    """A run's output: what is there already, and the part that is being written."""

    def __init__(self, place: OutputPaths, plan: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
        self.place, self.plan, self.kinds = place, dict(plan), kinds
        self.tally = AnswerCounts()
        self.digest = ""
        """Of the rows that are answered, where the input is no file."""
        self.seconds = 0.0
        """What earlier runs took."""
        self.replaces = self.whole = ""
        """Fingerprints: of the file that may be written over, and of the one that is put in its place."""
        self._parts: list[dict[str, Any]] = []
        self._open: dict[str, _OpenPart] = {}
        """What is being written, by folder of columns; "" where there are none."""
        self._folders: set[str] = set()
        self._first = self._rows = 0
        self._since = time.monotonic()
        self._begun = time.monotonic()
        self._pending = AnswerCounts()
        self._pending_digest = ""
        self._new = self._taken = False
        """Is the run new; does the folder belong to it, so that unfinished files in it may be removed?"""

    @property
    def rows(self) -> int:
        """Rows in complete parts."""
        return sum(part["rows"] for part in self._parts)

    # ------------------------------------------------------------------ start

    def start(self) -> None:
        """A new run, with an empty manifest."""
        found = manifest_of(self.place)
        others = any(one.name not in (LOCK, MANIFEST_BESIDE) for one in self.place.folder.iterdir())
        if not self.place.is_file and others and found is None:
            raise FileError(f"The folder '{self.place.path}' is not empty; write to a new one.")
        ours = [] if found is None else [*self.place.written(found), *self.place.unfinished()]
        strange = sorted({*self.place.parts(), *self.place.unfinished()} - {*ours, self.place.folder / MANIFEST_BESIDE})
        if strange:
            raise FileError(f"'{strange[0]}' is called like a part, but no run has written it; move it away.")
        self._new = self._taken = True
        with self._writing():
            self.place.remove(ours)
            self.replaces = fingerprint(self.place.path) if self.place.is_file else ""
            self.write(RUNNING)

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue with the parts of an earlier run."""
        self._parts = list(state["parts"])
        self.tally, self.digest, self.seconds = (
            AnswerCounts.from_data(state["tally"]),
            state["digest"],
            state["seconds"],
        )
        self.replaces = str(state.get("replaces", ""))
        self._check_parts()
        self._first, self._taken = self.rows, True
        self._folders = {part["name"].rpartition("/")[0] for part in self._parts}
        with self._writing():
            self.place.remove(self.place.unnamed(state))
        self.discard_unfinished()

    def _check_parts(self) -> None:
        """Are the parts those that the manifest names?"""
        expected = following = 0
        for part in self._parts:
            path = self.place.folder / part["name"]
            if part["first"] != expected:  # those before it are of other folders, or of rows before
                expected = following
            if part["first"] != expected or fingerprint(path) != part["sha256"]:
                raise FileError(f"The part '{path}' is missing or not what was written; begin anew, without --resume.")
            following += part["rows"]

    # ------------------------------------------------------------------ writing

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Errors of the file system as a FileError; complete parts are kept."""
        try:
            yield
        except OSError as error:
            self.discard_unfinished()
            rows = self.rows
            kept = f"; {rows:,} rows are answered and kept: make room and go on with --resume" if rows else ""
            raise FileError(f"Cannot write '{self.place.path}': {error.strerror or error}{kept}.") from None

    def add(self, bodies: tuple[EncodedRecords, ...], tally: AnswerCounts, digest: str) -> None:
        """Write the next records."""
        with self._writing():
            for body in bodies:
                self._add(body)
        self._pending.merge(tally)
        self._rows, self._pending_digest = self._rows + tally.rows, digest
        if self._rows >= MOST_ROWS or time.monotonic() - self._since >= MOST_SECONDS:
            self.close_part()

    def _add(self, records: EncodedRecords) -> None:
        if not self._open:
            self._rows, self._since = 0, time.monotonic()
        part = self._open.get(records.folder)
        if part is None:
            part = self._open[records.folder] = self._new_part(records.folder)
        part.writer.add(records.body)
        part.rows += records.rows

    def _new_part(self, name: str) -> _OpenPart:
        self._folders.add(name)
        if len(self._folders) > MOST_FOLDERS:
            raise QuestionError(
                f"{', '.join(map(shown, self.place.partition_by))} would make more than {MOST_FOLDERS} folders: "
                f"partition by columns of fewer values."
            )
        folder = make_folders(self.place.folder, name) if name else self.place.folder
        path = folder / f".part-{self._first:0{DIGITS}d}.writing{self.place.suffix}"
        return _OpenPart(open_writer(path, self.kinds, escape_formulas=self.place.escape_formulas), path)

    def close_part(self) -> None:
        """Complete what is being written, one part per folder, and name it in the manifest."""
        if self._open:
            with self._writing():
                self._close_part()

    def _close_part(self) -> None:
        for part in self._open.values():
            part.writer.close()
        done, self._open = self._open, {}
        file = part_name(self._first, self.place.suffix)
        for folder, part in done.items():
            _flush(part.path)
            name = f"{folder}/{file}" if folder else file
            self._parts.append(
                {"name": name, "first": self._first, "rows": part.rows, "sha256": fingerprint(part.path)}
            )
        for part in done.values():
            part.path.replace(part.path.with_name(file))
            _flush(part.path.parent)
        self.tally.merge(self._pending)
        self._pending, self.digest = AnswerCounts(), self._pending_digest
        self._first += self._rows
        self.write(RUNNING)

    def discard_unfinished(self) -> None:
        """Remove the files that are not complete."""
        parts, self._open = self._open, {}
        for part in parts.values():
            with contextlib.suppress(Exception):
                part.writer.close()
        for left in list(self.place.unfinished()):
            with contextlib.suppress(OSError):
                self.place.remove([left])

    def close(self) -> None:
        """End, finished or not. A run that has answered nothing leaves no file."""
        if self._taken:
            self.discard_unfinished()
        with contextlib.suppress(OSError):
            if self._new and not self.rows:
                self.place.manifest.unlink(missing_ok=True)
            (self.place.folder / LOCK).unlink(missing_ok=True)
            self.place.folder.rmdir()  # if it is empty

    def finish(self) -> None:
        """All rows are answered: one file of all parts, if that was asked for, and the manifest says so."""
        self.close_part()
        with self._writing():
            if self.place.is_file:
                whole = self.place.folder / f".whole.writing{self.place.suffix}"
                parts = [self.place.folder / part["name"] for part in self._parts]
                concatenate(whole, parts, self.kinds, escape_formulas=self.place.escape_formulas)
                self._check_parts()
                _flush(whole)
                self._put(whole)
            self.write(FINISHED)
        self.place.clear({"parts": self._parts, "rows": self.rows})

    def _put(self, whole: Path) -> None:
        """Move the finished file to its place, unless another file is there meanwhile."""
        path, self.whole = self.place.path, fingerprint(whole)
        self.write(RUNNING)  # a run that ends here knows its file again
        there = fingerprint(path)
        try:
            if there != self.whole:
                move(whole, path, overwrite=bool(there) and there == self.replaces)
        except FileExistsError:
            raise FileError(
                f"'{path}' has come there since the run began; all rows are answered and kept: move that file away, "
                f"and go on with --resume."
            ) from None
        _flush(path.parent)

    def write(self, state: str) -> None:
        """The manifest, as it is now."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "state": state,
            **self.plan,
            "rows": self.rows,
            "seconds": self.seconds + time.monotonic() - self._begun,
            "digest": self.digest,
            "tally": self.tally.to_data(),
            "parts": self._parts,
            "replaces": self.replaces,
            "sha256": self.whole,
        }
        beside = self.place.folder / MANIFEST_BESIDE
        with new_file(beside) as file:
            file.write(json_text(data, indent=1).encode("utf-8") + b"\n")
        _flush(beside)
        beside.replace(self.place.manifest)
        _flush(self.place.manifest.parent)


# ---------------------------------------------------------------------- earlier runs


def manifest_of(place: OutputPaths) -> dict[str, Any] | None:
    """The manifest of an earlier run; None where there is none."""
    if not place.manifest.exists():
        return None
    data = read_json(place.manifest, "manifest of a run", MOST_BYTES)
    needed: dict[str, Any] = {"state": str, "parts": list, "tally": dict, "digest": str, "seconds": (int, float),
                              "rows": int}  # fmt: skip
    known = isinstance(data, dict) and data.get("format") == FORMAT and data.get("version") == VERSION
    if not known or not all(isinstance(data.get(name), kind) for name, kind in needed.items()):
        raise FileError(f"'{place.manifest}' is no manifest of a run by this ifonly; remove it to begin anew.")
    for part in data["parts"]:
        fields = {"name": str, "first": int, "rows": int, "sha256": str}
        if not isinstance(part, dict) or not all(isinstance(part.get(name), kind) for name, kind in fields.items()):
            raise FileError(f"'{place.manifest}' names what is not a part: {shown(part)}.")
        if not is_part(part["name"]):
            raise FileError(f"'{place.manifest}' names a part outside of its folder: {shown(part['name'])}.")
    return dict(data)


@contextmanager
def locked(place: OutputPaths) -> Iterator[None]:
    """An exclusive lock on the output; the folder of the parts exists inside."""
    with file_errors(f"write '{place.folder}'"):
        place.folder.mkdir(exist_ok=True)
        place.check_folder()  # once more: it may have come since
        lock = os.open(place.folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise FileError(f"Another run is writing to '{place.path}'; wait for it, or end it.") from None
        yield
    finally:
        os.close(lock)


def fingerprint(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _flush(path: Path) -> None:
    """fsync of a file, or of a folder where that is possible."""
    if path.is_dir() and os.name == "nt":
        return
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
