"""The certificate: an answer with everything that is needed to check it, as one file.

The file is zlib-compressed canonical JSON (sorted keys, no spaces, ASCII); floating-point numbers stand as hexadecimal
text, which is exact. `sha256` is the hash of the canonical JSON of everything else. docs/certificate.md says what the
entries mean. Nothing in a certificate is believed: `ifonly.check` redoes it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import FileError
from ..files import path_of, write_whole
from ..printing import shown

FORMAT = "ifonly-certificate"
VERSION = 2
MAX_BYTES = 16 * 2**20
MAX_TEXT = 64 * 2**20
"""Bytes of a file, and of the JSON in it."""
FREE_TEXT, TIMES = 2**20, 10
"""A file unpacks to at most so many bytes, and so many times its size beyond them: small files stay small."""
MAX_CONTAINERS = 2_000_000
"""Lists and objects in the JSON."""


STRETCH = 1_000
"""Entries of a list that are written between two looks at the clock."""


def canonical(data: Any) -> bytes:
    """The one way to write plain data as JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def stamp(data: dict[str, Any]) -> str:
    """The sha256 of everything but the stamp itself."""
    return hashlib.sha256(canonical({key: value for key, value in data.items() if key != "sha256"})).hexdigest()


def most_text(size: int) -> int:
    """The bytes that a file of so many bytes may unpack to."""
    return min(MAX_TEXT, FREE_TEXT + TIMES * size)


@dataclass(frozen=True, eq=False)
class Certificate:
    """An answer and its proof, as plain data. Check it with `ifonly.check`."""

    data: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Certificate: {len(self.content):,} bytes, sha256 {str(self.data.get('sha256'))[:12]!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and canonical(self.data) == canonical(other.data)

    def __hash__(self) -> int:
        return hash(canonical(self.data))

    @cached_property
    def content(self) -> bytes:
        """The bytes of the file; stored as it is where compression would make too little of it to be read again."""
        return packed(canonical(self.data))

    def save(self, path: str | Path) -> None:
        """Write the certificate, all of it or nothing."""
        write_whole(path, self.content)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate file; what it says is not checked here."""
        return cls(read_text(file_text(path)))

    @classmethod
    def from_bytes(cls, content: bytes) -> Certificate:
        """The inverse of `content`; refuses what is not a certificate, is too large, or was damaged."""
        return cls(read_text(unpacked(content)))


def stamped(data: dict[str, Any], question: bytes) -> Certificate:
    """The certificate with these entries and their stamp; `question` is the canonical JSON of that entry."""
    parts = {key: question if key == "question" else canonical(value) for key, value in data.items()}
    digest = hashlib.sha256(_joined(parts)).hexdigest()
    made = Certificate({**data, "sha256": digest})
    made.__dict__["content"] = packed(_joined({**parts, "sha256": canonical(digest)}))
    return made


def _joined(parts: dict[str, bytes]) -> bytes:
    """An object of entries that are canonical JSON."""
    return b"{" + b",".join(canonical(key) + b":" + parts[key] for key in sorted(parts)) + b"}"


def packed(text: bytes) -> bytes:
    """The bytes of a file with this JSON."""
    compressed = zlib.compress(text, 6)
    return compressed if len(text) <= most_text(len(compressed)) else zlib.compress(text, 0)


def file_text(path: str | Path) -> bytes:
    """The JSON in a file."""
    path = path_of(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FileError(f"Cannot read '{path}': {error.strerror or error}.") from None
    if len(content) > MAX_BYTES:
        raise FileError(f"'{path}' is larger than the {MAX_BYTES >> 20} MiB that a certificate may have.")
    try:
        return unpacked(content)
    except FileError as error:
        raise FileError(f"In '{path}': {error}") from None


def unpacked(content: bytes) -> bytes:
    """The JSON in the bytes of a file."""
    if not isinstance(content, bytes | bytearray):
        raise FileError(f"a certificate is made of bytes; got {shown(content)}. A file is read by Certificate.load.")
    if len(content) > MAX_BYTES:
        raise FileError(f"a certificate has at most {MAX_BYTES >> 20} MiB.")
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(content, most_text(len(content)) + 1)
    except zlib.error:
        raise FileError(
            "this is not a certificate, or it is damaged: it cannot be unpacked; give a file that ifonly certify wrote."
        ) from None
    if not unpacker.eof or unpacker.unused_data:
        raise FileError("this certificate is cut off, too large, or followed by something else.")
    return text


def read_text(text: bytes, tick: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The certificate in a JSON text, which must be canonical to the last byte and bear its own stamp.

    `tick` is called again and again, so that it can stop the reading by raising something.
    """
    if len(text) > MAX_TEXT or text.count(b"[") + text.count(b"{") > MAX_CONTAINERS:
        raise FileError(
            f"a certificate has at most {MAX_TEXT >> 20} MiB of text and {MAX_CONTAINERS:,} lists; this is too large."
        )

    def short_int(digits: str) -> int:
        tick()
        if len(digits) > 400:
            raise ValueError("an integer has too many digits")
        return int(digits)

    try:
        data = json.loads(text, parse_constant=_no_constant, parse_float=_no_float, parse_int=short_int)
    except (ValueError, RecursionError) as error:
        raise FileError(f"this is not a certificate: {error}.") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FileError(f'a certificate is a JSON object with "format": "{FORMAT}"; this is not one.')
    if type(data.get("version")) is not int or data["version"] != VERSION:
        raise FileError(f"this certificate has version {str(data.get('version'))[:60]!r}; this ifonly reads {VERSION}.")
    parts = {key: canonical(key) + b":" + canonical_in_steps(data[key], tick) for key in sorted(data)}
    if b"{" + b",".join(parts.values()) + b"}" != text:
        raise FileError(
            "the certificate's JSON is not canonical: its keys must be sorted and stand once, without spaces, in ASCII."
        )
    rest = b"{" + b",".join(part for key, part in parts.items() if key != "sha256") + b"}"
    if data.get("sha256") != hashlib.sha256(rest).hexdigest():
        raise FileError("the certificate's stamp (sha256) does not fit what it says: it was altered.")
    return data


def canonical_in_steps(value: Any, tick: Callable[[], None]) -> bytes:
    """`canonical(value)`, with a `tick` before each entry of a dict and each stretch of a list: those can be long."""
    tick()
    if isinstance(value, dict):
        entries = (canonical(key) + b":" + canonical_in_steps(value[key], tick) for key in sorted(value))
        return b"{" + b",".join(entries) + b"}"
    if isinstance(value, list) and len(value) > STRETCH:
        stretches = (value[first : first + STRETCH] for first in range(0, len(value), STRETCH))
        return b"[" + b",".join(canonical_in_steps(some, tick)[1:-1] for some in stretches) + b"]"
    return canonical(value)


def _no_constant(text: str) -> Any:
    raise ValueError(f"'{text}' is no number of a certificate")


def _no_float(text: str) -> float:
    number = float(text)  # only option values may be written like this
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"'{text[:60]}' is too large")
    return number
