"""Verified reading of files: every block that is read is compared with a checksum that was taken before.

A file is fingerprinted once: SHA-256 of the whole, and of each block of it. After that, every block is
compared with its checksum before any of it is used. So rows of a file that changes meanwhile are never mixed with those
of the original, and the checksum in a manifest is that of what was read.
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, BinaryIO

from ifonly.errors import ChangedFile
from ifonly.files import file_errors

BLOCK_BYTES = 1 << 20
BLOCKS_KEPT = 4
"""Blocks that a reader keeps: columns of a parquet file are read here and there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChecksums:
    """Checksums of a file's content, and of its blocks; `stamp` is what the file system said of it at that time."""

    path: Path
    description: str
    size: int
    lines: int
    sha256: str
    block_bytes: int
    blocks: tuple[bytes, ...]
    stamp: tuple[int, ...]

    def check(self) -> None:
        """Is the file at this path still the same? Read again only if the file system says that it was touched."""
        with file_errors(f"read the table {self.description}"), self.path.open("rb") as file:
            if _stamp(file) != self.stamp and hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                raise ChangedFile(self.description)


def checksums(path: Path, description: str) -> FileChecksums:
    """Fingerprint a file: its size, its lines and its checksums, in one pass."""
    whole, blocks, size, lines, last = hashlib.sha256(), list[bytes](), 0, 0, b"\n"
    with file_errors(f"read the table {description}"), path.open("rb") as file:
        stamp = _stamp(file)
        while some := file.read(BLOCK_BYTES):
            whole.update(some)
            blocks.append(hashlib.sha256(some).digest())
            size, lines, last = size + len(some), lines + some.count(b"\n"), some[-1:]
    return FileChecksums(
        path=path, description=description, size=size, lines=lines + (last != b"\n"), sha256=whole.hexdigest(),
        block_bytes=BLOCK_BYTES, blocks=tuple(blocks), stamp=stamp,
    )  # fmt: skip


def open_verified(known: FileChecksums) -> BinaryIO:
    """The file, read-only; `ChangedFile` is raised where it is not what it was."""
    return io.BufferedReader(_VerifiedFile(known), known.block_bytes)


class _VerifiedFile(io.RawIOBase):
    """The bytes of a file, each block compared with its checksum before any of it is given out."""

    def __init__(self, known: FileChecksums) -> None:
        super().__init__()
        self._known, self._position = known, 0
        self._file = known.path.open("rb", buffering=0)
        self._block = lru_cache(BLOCKS_KEPT)(self._read_block)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._known.size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed: a private protocol
        if self._position >= self._known.size:
            return 0
        number, start = divmod(self._position, self._known.block_bytes)
        some = self._block(number)[start : start + len(buffer)]
        buffer[: len(some)] = some
        self._position += len(some)
        return len(some)

    def _read_block(self, number: int) -> bytes:
        known = self._known
        first = number * known.block_bytes
        self._file.seek(first)
        block = _read(self._file, min(known.block_bytes, known.size - first))
        if hashlib.sha256(block).digest() != known.blocks[number]:
            raise ChangedFile(known.description)
        return block

    def close(self) -> None:
        self._file.close()
        self._block.cache_clear()
        super().close()


def _read(file: io.FileIO, size: int) -> bytes:
    """So many bytes, or all that are left; a single read may give fewer."""
    pieces: list[bytes] = []
    while size > 0 and (some := file.read(size)):
        pieces.append(some)
        size -= len(some)
    return b"".join(pieces)


def _stamp(file: IO[bytes]) -> tuple[int, ...]:
    """What changes when a file is written or replaced, to the precision of the file system's clock."""
    stat = os.fstat(file.fileno())
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
