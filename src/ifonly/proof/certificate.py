"""The certificate: an answer with everything that is needed to check it, as one file.

The file is zlib-compressed canonical JSON (sorted keys, no spaces, ASCII); floating-point numbers stand as hexadecimal
text, which is exact. `sha256` is the hash of the canonical JSON of everything else. docs/certificate.md says what the
entries mean. Nothing in a certificate is believed: `ifonly.check` redoes it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifonly.caching import cached_property
from ifonly.errors import FileError
from ifonly.schema.given import path_of
from ifonly.schema.io import write_whole

FORMAT = "ifonly-certificate"
VERSION = 1
MAX_BYTES = 16 * 2**20
MAX_TEXT = 128 * 2**20
"""Bytes of a file, and of the JSON in it."""


def canonical(data: Any) -> bytes:
    """The one way to write plain data as JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def stamp(data: dict[str, Any]) -> str:
    """The sha256 of everything but the stamp itself."""
    return hashlib.sha256(canonical({key: value for key, value in data.items() if key != "sha256"})).hexdigest()


@dataclass(frozen=True, eq=False)
class Certificate:
    """An answer and its proof, as plain data. Check it with `ifonly.check`."""

    data: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Certificate: {len(self.content):,} bytes, sha256 {str(self.data.get('sha256'))[:12]}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and canonical(self.data) == canonical(other.data)

    def __hash__(self) -> int:
        return hash(canonical(self.data))

    @cached_property
    def content(self) -> bytes:
        """The bytes of the file."""
        return zlib.compress(canonical(self.data), 6)

    def save(self, path: str | Path) -> None:
        """Write the certificate, all of it or nothing."""
        write_whole(path, self.content)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate file; what it says is not checked here."""
        path = path_of(path)
        try:
            if Path(path).stat().st_size > MAX_BYTES:
                raise FileError(f"'{path}' is larger than the {MAX_BYTES >> 20} MiB that a certificate may have.")
            content = Path(path).read_bytes()
        except OSError as error:
            raise FileError(f"Cannot read '{path}': {error.strerror or error}.") from None
        try:
            return cls.from_bytes(content)
        except FileError as error:
            raise FileError(f"In '{path}': {error}") from None

    @classmethod
    def from_bytes(cls, content: bytes) -> Certificate:
        """The inverse of `content`; refuses what is not a certificate, is too large, or was damaged."""
        if len(content) > MAX_BYTES:
            raise FileError(f"a certificate has at most {MAX_BYTES >> 20} MiB.")
        try:
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(content, MAX_TEXT)
        except zlib.error as error:
            raise FileError(f"this is not a certificate: {error}.") from None
        if not unpacker.eof or unpacker.unused_data:
            raise FileError("this certificate is cut off, too large, or followed by something else.")
        try:
            data = json.loads(text, parse_constant=_no_constant, parse_float=_no_float, parse_int=_short_int)
        except (ValueError, RecursionError) as error:
            raise FileError(f"this is not a certificate: {error}.") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise FileError(f'a certificate is a JSON object with "format": "{FORMAT}"; this is not one.')
        if data.get("version") != VERSION:
            raise FileError(f"this certificate has version {data.get('version')!r}; this ifonly reads {VERSION}.")
        if data.get("sha256") != stamp(data):
            raise FileError("the certificate's stamp (sha256) does not fit what it says: it was altered.")
        return cls(data)


def _no_constant(text: str) -> Any:
    raise ValueError(f"'{text}' is no number of a certificate")


def _no_float(text: str) -> float:
    number = float(text)  # only option values may be written like this
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"'{text}' is too large")
    return number


def _short_int(text: str) -> int:
    if len(text) > 400:
        raise ValueError("an integer has too many digits")
    return int(text)
