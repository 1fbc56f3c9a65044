"""Text from outside, made safe to print: names, options and labels must not steer a terminal or forge a line."""

from __future__ import annotations

import unicodedata


def is_printable(words: str) -> bool:
    """Nothing in it but letters, signs and spaces: no line ends, escapes, marks of direction or broken characters."""
    return words.isprintable() or all(c.isprintable() or unicodedata.category(c) == "Zs" for c in words)


def clean(words: str) -> str:
    """The text with whatever is not printable written as an escape (`\\n`, `\\x1b`, `\\u202e`)."""
    if is_printable(words):
        return words
    return "".join(c if is_printable(c) else c.encode("unicode_escape").decode("ascii") for c in words)


def quoted(words: str, most: int = 200) -> str:
    """The text in quotes, printable, its own quotes escaped, and cut after `most` characters."""
    inside = clean(words[:most].replace("\\", "\\\\").replace("'", "\\'"))
    return f"'{inside}'" if len(words) <= most else f"'{inside}...' ({len(words):,} characters)"
