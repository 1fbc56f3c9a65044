"""Escaping of untrusted text (names, options, labels, file names, messages of other programs) for printing.

A control character can steer a terminal, a bidi override can turn a sentence round, a line separator can end one, and a
lone surrogate cannot be written at all: each is shown as its escape instead.
"""

from __future__ import annotations

import json
import math
import reprlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

MOST = 200
"""Characters of one name or value."""
MOST_MESSAGE = 2000
"""Characters of a message."""


def printable(text: str, most: int = MOST) -> str:
    r"""The text with \x.. and \u.... for what is not printable, and at most so many characters of it."""
    return escaped(text if len(text) <= most else text[: most - 3] + "...")


def is_printable(text: str) -> bool:
    """Nothing in it but letters, signs and spaces: no line ends, escapes, marks of direction or broken characters."""
    return text.isprintable() or all(c.isprintable() or unicodedata.category(c) == "Zs" for c in text)


def escaped(text: str) -> str:
    """`printable`, however long the text is."""
    return text if is_printable(text) else "".join(c if is_printable(c) else _escape(c) for c in text)


def capitalised(text: str) -> str:
    """The text with its first letter in upper case, and the others as they are."""
    return text[:1].upper() + text[1:]


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(error).strip().partition("\n")[0]


def quoted(text: str, most: int = MOST) -> str:
    """The text in quotes, printable, its own quotes escaped, and cut after `most` characters."""
    inside = escaped(text[:most].replace("\\", "\\\\").replace("'", "\\'"))
    return f"'{inside}'" if len(text) <= most else f"'{inside}...' ({len(text):,} characters)"


def lines(text: str, most: int = MOST_MESSAGE) -> str:
    """The same of a text of several lines, which stay lines."""
    return "\n".join(map(escaped, (text if len(text) <= most else text[: most - 3] + "...").split("\n")))


def json_text(data: Any, *, indent: int | None = None) -> str:
    """Plain data as JSON that is readable, printable, and can be written in UTF-8: the rest is escaped as JSON does."""
    if type(data) is str:
        text = encode_basestring(data)
    else:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
    if is_printable(text if indent is None else text.replace("\n", "")):
        return text
    return "".join(c if c == "\n" or is_printable(c) else json.dumps(c)[1:-1] for c in text)


def json_value(value: Any) -> Any:
    """A value as JSON has it: None for NaN and infinity, lists, objects, and what has a `to_dict` as that gives it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple | list):
        return [json_value(one) for one in value]
    if isinstance(value, Mapping):
        return {name: json_value(one) for name, one in value.items()}
    return value.to_dict() if hasattr(value, "to_dict") else value


def json_object(value: Any, names: Iterable[str] = (), **renamed: str) -> dict[str, Any]:
    """Attributes of a value as JSON: those named, or all fields of a dataclass; some under another name."""
    return {renamed.get(name, name): json_value(getattr(value, name)) for name in names or value.__dataclass_fields__}


def shown(value: Any, most: int = 60) -> str:
    """Any value for a message: as Python writes it, but short, on one line, and without failing."""
    if isinstance(value, int) and abs(value) >= 10**most:
        return f"a whole number of about {int(value.bit_length() * math.log10(2)) + 1:,} digits"
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = most
    try:
        text = short.repr(value)
    except Exception:  # a hostile __repr__, or a list that holds one
        text = f"an object of type {type(value).__name__}"
    return printable(" ".join(text.split()), most + 20)


def some_of(names: Sequence[Any], most: int = 8) -> str:
    """The first few names of many, and how many more there are."""
    listed = ", ".join(
        (name if name.isprintable() else ascii(name)[1:-1]) if isinstance(name, str) else shown(name)
        for name in names[:most]
    )
    return listed + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _escape(character: str) -> str:
    code = ord(character)
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
