"""Tokens of the rule language: how a text is split, how a name is quoted, how an error marks its place.

Age >= 18 + YearsEmployed          names, signs, numbers
MaritalStatus = Married-civ-spouse a word may hold hyphens and dots, so a minus stands between spaces
'Hours per week' <= 40             anything else in single or double quotes, a quote inside written twice
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from ifonly.errors import RuleError
from ifonly.printing import some_of

MAX_LENGTH = 20_000
"""Characters of one rule."""

KEYWORDS = frozenset(["and", "at", "changes", "else", "if", "in", "inf", "is", "missing", "not", "only", "or", "then"])
"""Words with a meaning of their own: a feature or an option of that name is written in quotes."""

_WINDOW = 72
"""Characters of a long rule that an error shows."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<word>[^\W\d]\w*(?:[.-]\w+)*)
      | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<sign>>=|<=|!=|==|[≥≤≠<>=+*/()\[\],%-])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_GROUPED = re.compile(r"\s*(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?)(?![\w.,])")
_COMMAS = re.compile(r"\s*(\d[\d.]*,\d[\d.,]*)")
_POINTS = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?![\w.])")
_WORD = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
_SAME_SIGN = {"==": "=", "≥": ">=", "≤": "<=", "≠": "!="}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a rule: what it is, what it says (a quoted text without its quotes), and where it stands."""

    kind: Literal["number", "word", "text", "sign", "end"]
    value: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The words of a text, and an `end` after the last.

    A comma between digits groups them (3,000), but for lists and ranges, where it stands between two numbers.
    """
    if len(text) > MAX_LENGTH:
        raise RuleError(f"A rule has at most {MAX_LENGTH} characters; this one has {len(text)}: split it.")
    found: list[Token] = []
    place = depth = 0
    while not found or found[-1].kind != "end":
        match = (_GROUPED.match(text, place) if depth == 0 else None) or _TOKEN.match(text, place)
        if depth == 0 and match is not None and match.lastgroup == "number":
            _check_commas(text, place, match.end())
        if match is None:
            start = len(text) - len(text[place:].lstrip())
            raise wrong(text, start, start + 1, _unreadable(text[start:]))
        kind: Any = match.lastgroup
        value = match[kind]
        if kind == "text":
            value = value[1:-1].replace(value[0] * 2, value[0])
        depth += (kind == "sign") * ((value in "([") - (value in ")]"))
        found.append(Token(kind, _SAME_SIGN.get(value, value) if kind == "sign" else value, *match.span(kind)))
        place = match.end()
    return found


def _check_commas(text: str, place: int, end: int) -> None:
    """Is a comma of the number here neither between groups of digits nor between two values?"""
    found = _COMMAS.match(text, place)
    if found is not None and found.end() > end and text[end] == ",":
        raise wrong(text, found.start(1), found.end(1), "Decimals begin with a point in a rule, as in 1234.5")


def _unreadable(rest: str) -> str:
    if rest[0] in "'\"":
        return f"The quote {rest[0]} is opened here and never closed"
    if grouped := _POINTS.match(rest):
        return f"Digits are not grouped by points in a rule: write {grouped[0].replace('.', '')}"
    if rest[0].isdigit() or rest[0] == ".":
        return "This is neither a number nor a name; a name that starts with a digit stands in quotes"
    if rest[0] in "&|!":
        return f"'{rest[0]}' means nothing here; write and, or, not"
    return f"'{rest[0]}' means nothing here; names with such characters stand in quotes"


def wrong(text: str, start: int, end: int, message: str) -> RuleError:
    """An error that shows the text and points at the place."""
    first = max(0, min(start - _WINDOW // 2, len(text) - _WINDOW))
    shown = "".join(c if c.isprintable() else " " for c in text[first : first + _WINDOW])
    before = "..." if first else ""
    after = "..." if first + _WINDOW < len(text) else ""
    marks = "^" * max(1, min(end, first + _WINDOW) - start)
    message = " ".join(message.split())
    message = message if message.endswith((".", "?")) else message + "."
    return RuleError(f"{message}\n  {before}{shown}{after}\n  {' ' * (len(before) + start - first)}{marks}")


def suggestion(said: str, known: Iterable[Any], also: Iterable[Any] = ()) -> str:
    """The known name or option that was meant, as the end of a sentence, or what is `also` a name of one; else the
    first few of the known ones.
    """
    first = {str(one): show_option(one) for one in known}
    names = {**{str(one): show_option(one) for one in also}, **first}
    low = said.lower()
    close = (
        get_close_matches(said, names, n=1)
        or [name for name in names if name.lower() == low]
        or [name for name in names if name.lower().startswith(low)]
    )
    if close:
        return f"did you mean {names[close[0]]}?"
    return f"there are {some_of(list(first.values()))}."


def show_name(name: str) -> str:
    """A name as the rule language reads it: bare where that is clear, else in quotes."""
    return name if _WORD.fullmatch(name) and name not in KEYWORDS else quoted(name)


def show_option(option: Any) -> str:
    """An option as the rule language reads it; text that looks like something else stands in quotes."""
    if option is None:
        return "missing"
    if not isinstance(option, str):
        return str(option)
    return quoted(option) if option.lower() in ("true", "false") else show_name(option)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if '"' in text or "'" not in text else f'"{text}"'
