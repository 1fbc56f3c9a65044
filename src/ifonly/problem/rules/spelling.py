"""Rules as people type them, spelled as the grammar reads them: names of several words in quotes, 3,000 as 3000.

Two names side by side mean nothing in the grammar, so a text that holds a name of several words, none of them a word
of the grammar, can mean nothing else. A comma between digits stands in lists and ranges only; elsewhere it groups them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ifonly.problem.words import KEYWORDS, quoted
from ifonly.schema import Choice, Schema

_SEVERAL = re.compile(r"\w[\w.-]*(?: \w[\w.-]*)+")
_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""


def spelled(text: str, schema: Schema) -> str:
    """The text, with the schema's names of several words in quotes and numbers without commas."""
    names = _names(schema)
    return _ungrouped(text if names is None else names.sub(lambda m: _as_name(m[0]), text))


def _as_name(found: str) -> str:
    """What was found, in quotes: a name (of any spacing), or a text that stands in quotes already."""
    return found if found[0] in "'\"" else quoted(" ".join(found.split()))


@lru_cache(maxsize=64)
def _names(schema: Schema) -> re.Pattern[str] | None:
    """What finds quoted texts and the schema's names of several words, the longest first."""
    options = (o for f in schema.features if isinstance(f, Choice) for o in f.options if isinstance(o, str))
    several = {
        name for name in (*schema.names, *options)
        if _SEVERAL.fullmatch(name) and not KEYWORDS & set(name.split(" "))
    }  # fmt: skip
    if not several:
        return None
    ordered = sorted(several, key=lambda name: (-len(name), name))
    spaced = "|".join(r"\s+".join(map(re.escape, name.split(" "))) for name in ordered)
    return re.compile(rf"{_QUOTED}|(?<![\w.-])(?:{spaced})(?![\w.-])")


def _ungrouped(text: str) -> str:
    """Commas between groups of three digits left out, where no list or range is open."""
    if not _GROUPED.search(text):
        return text
    pieces, depth = [], 0
    for piece in re.split(rf"({_QUOTED}|[()\[\]])", text):
        depth += (piece in ("(", "[")) - (piece in (")", "]"))
        plain = depth == 0 and piece[:1] not in ("'", '"')
        pieces.append(_GROUPED.sub(lambda m: m[0].replace(",", ""), piece) if plain else piece)
    return "".join(pieces)
