"""Paths of a run's output: the file or folder that was asked for, its parts, its manifest, and what it has left."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ifonly.errors import FileError
from ifonly.population.files import KINDS, check_output, need_pyarrow
from ifonly.population.partitions import check_partition_by, files_below, remove_empty_folders
from ifonly.schema.arguments import path_of, true_or_false
from ifonly.schema.io import check_writable

MANIFEST, LOCK = "_manifest.json", ".lock"
DIGITS = 12
"""Of the number of the first row, in the name of a part."""
MANIFEST_BESIDE = ".manifest.writing"


@dataclass(frozen=True, slots=True)
class Output:
    """A file, a folder of parts ("answers.parquet/") or a URL, and how it is written.

    `flat_changes`: the changes also as columns, one per feature, with the value after the change. `escape_formulas`: in
    csv, texts that a spreadsheet would take for formulas (CSV injection) begin with a quote. `partition_by`: columns
    that make folders of a folder of parts, `country=DE/` (Hive partitioning).
    """

    path: str | Path
    flat_changes: bool = False
    escape_formulas: bool = False
    partition_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("flat_changes", "escape_formulas"):
            object.__setattr__(self, name, true_or_false(getattr(self, name), name))
        check_partition_by(self.partition_by)
        if path_of(self.path).suffix != ".csv" and self.escape_formulas:
            raise FileError(f"Formulas are escaped in csv files; '{path_of(self.path).name}' does not end in .csv.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPaths:
    """The paths of a run's output."""

    path: Path
    folder: Path
    """Of the parts."""
    manifest: Path
    suffix: str
    escape_formulas: bool = False
    flat_changes: bool = False
    partition_by: tuple[str, ...] = ()

    @property
    def is_file(self) -> bool:
        return self.folder != self.path

    def parts(self) -> Iterator[Path]:
        """Existing files with the name of a part."""
        return files_below(self.folder, f"part-{'[0-9]' * DIGITS}{self.suffix}")

    def unfinished(self) -> Iterator[Path]:
        """Existing files with the name of an unfinished file."""
        for name in (f".part-{'[0-9]' * DIGITS}.writing{self.suffix}", f".whole.writing{self.suffix}", MANIFEST_BESIDE):
            yield from files_below(self.folder, name)

    def clear(self, found: Mapping[str, Any]) -> None:
        """Remove what a run has left beside its finished file, and nothing else."""
        if self.is_file and not self.folder.is_symlink():
            with contextlib.suppress(OSError):
                for left in (*self.written(found), *self.unfinished(), self.folder / LOCK):
                    left.unlink(missing_ok=True)
                self.folder.rmdir()  # if it is empty

    def written(self, found: Mapping[str, Any]) -> list[Path]:
        """The parts of a run by its manifest, and those that it had moved, but not named yet, when it ended."""
        return [*(self.folder / part["name"] for part in found["parts"]), *self.unnamed(found)]

    def unnamed(self, found: Mapping[str, Any]) -> list[Path]:
        """The parts that a run had moved, but not named yet, when it ended."""
        return list(files_below(self.folder, part_name(found["rows"], self.suffix)))

    def remove(self, files: Iterable[Path]) -> None:
        """Remove files of the run, and folders of columns that are empty then."""
        for one in files:
            one.unlink(missing_ok=True)
            remove_empty_folders(one, self.folder)

    def check_folder(self) -> None:
        if self.folder.is_symlink():
            raise FileError(
                f"'{self.folder}' is a symbolic link, and parts are written to a folder of their own: remove it, or "
                f"name the place that it leads to."
            )


def part_name(first: int, suffix: str) -> str:
    """The name of the part that begins with this row."""
    return f"part-{first:0{DIGITS}d}{suffix}"


def place_of(given: Any) -> OutputPaths:
    """The output paths for a path: a file by its ending; a folder where it ends in a slash, or has no ending."""
    if isinstance(given, Output):
        place = place_of(given.path)
        if given.partition_by and place.is_file:
            raise FileError(
                f"'partition_by' makes folders: write to a folder of parts, such as '{place.path.name}/', with a slash."
            )
        return replace(
            place, escape_formulas=given.escape_formulas, flat_changes=given.flat_changes,
            partition_by=given.partition_by,
        )  # fmt: skip
    path = path_of(given)
    folder = str(given).endswith(("/", os.sep)) or not path.suffix
    if not folder:
        place = _file_place(check_output(path))
        place.check_folder()
        return place
    suffix = path.suffix or ".jsonl"
    if suffix not in KINDS:
        raise FileError(f"A folder of parts ends in {', '.join(KINDS)}, or in nothing; '{path.name}/' does not.")
    if suffix == ".parquet":
        need_pyarrow("Writing a parquet file")
    check_writable(path, folder=True)
    place = OutputPaths(path=path, folder=path, manifest=path / MANIFEST, suffix=suffix)
    place.check_folder()
    return place


def _file_place(path: Path) -> OutputPaths:
    path = path.resolve() if path.is_symlink() else path
    beside = path.with_name(f"{path.name}.parts"), path.with_name(f"{path.name}.manifest.json")
    return OutputPaths(path=path, folder=beside[0], manifest=beside[1], suffix=path.suffix)


def read_place(given: Any) -> OutputPaths:
    """The paths of an existing output, to be read."""
    path = path_of(given)
    try:
        folder = path.is_dir()
        return OutputPaths(path=path, folder=path, manifest=path / MANIFEST, suffix="") if folder else _file_place(path)
    except (OSError, RuntimeError) as error:  # a name that is too long, a link that goes in a circle
        raise FileError(f"Cannot read '{path}': {getattr(error, 'strerror', None) or error}.") from None
