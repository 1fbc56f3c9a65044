"""Published records: one zip file of CSV files. The same records give the same bytes (with the same zlib)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can say: when records were made is no part of them."""


def write(path: Path, files: Iterable[Path]) -> Path:
    """Pack files by name, sorted, so that records that did not change leave no trace in the history."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(files, key=lambda file: file.name):
            entry = zipfile.ZipInfo(file.name, EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, file.read_bytes(), compresslevel=9)
    return path


def unpack(path: Path, results: Path) -> None:
    """Put published records where the commands look for them."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(results)
