"""Rules as people type them, spelled as the grammar reads them: names of several words in quotes, labels as the names
that they stand for, amounts of money as numbers ($500, 1 000 €).

Two names side by side mean nothing in the grammar, so a text that holds a name of several words, none of them a word
of the grammar, can mean nothing else. A label is what people are shown of a feature, so they type it. Where it is also
a name or an option, a word of the grammar, or the label of two, it is not read as a label (in quotes, the last is).
"""

from __future__ import annotations

import re
from collections import Counter
from difflib import get_close_matches
from itertools import pairwise, takewhile

from ifonly.caching import cached
from ifonly.errors import RuleError
from ifonly.problem.words import KEYWORDS, quoted, show_name, tokens, wrong
from ifonly.schema import Choice, Schema

_SIGNS = re.escape("()[]%$€£#:?°@")
_SEVERAL = re.compile(rf"\w[\w.{_SIGNS}-]*(?: [\w.{_SIGNS}-]+)*")
"""Names of several words, or with signs that mean nothing between or after words."""
_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\w)")
_MONEY = re.compile(r"[$€£¥]\s*(?=\d)|(?<=\d)\s*[$€£¥](?!\w)")
SENTENCES = frozenset((
    "accepts", "be", "between", "by", "can", "change", "down", "filled", "fixed", "follows", "free", "from", "goes",
    "may", "most", "of", "robust", "steps", "to", "up", "weights", "with", "within",
))  # fmt: skip
"""Words of sentences, which a label of one word may be as well."""
_SWISS = re.compile("(?<=[0-9])['\u2019](?=[0-9]{3}(?![0-9]))")
"""1'000"""
_BEGINS = re.compile(r"(?:At most|Only|If|Not)(?= )")
_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""


def spelled(text: str, schema: Schema) -> str:
    """The text, with the schema's names of several words in quotes, and names for labels."""
    found, behind = _names(schema)
    text = _SWISS.sub("", text)
    if (begins := _BEGINS.match(text)) is not None and not any(name.startswith(begins[0]) for name in schema.names):
        text = text[0].lower() + text[1:]

    def as_name(match: re.Match[str]) -> str:
        word = " ".join(match[0].split())  # of any spacing
        if word[0] in "'\"":
            return show_name(behind[word[1:-1]]) if word[1:-1] in behind else match[0]
        return show_name(behind[word]) if word in behind else quoted(word)

    named = text if found is None else found.sub(as_name, text)
    parts = re.split(f"({_QUOTED})", named)
    return "".join(part if i % 2 else _plain(part) for i, part in enumerate(parts))


def side_by_side(text: str, schema: Schema) -> RuleError | None:
    """What is wrong where words follow one another that are no name together: a name that was meant, or what may come
    after a name."""
    read = tokens(text)
    for i, (first, second) in enumerate(pairwise(read)):
        if second.kind != "word" or second.value in KEYWORDS | SENTENCES or first.kind not in ("word", "text"):
            continue
        if first.value in schema.names:
            name = show_name(first.value)
            hint = f"after {name} comes a comparison, such as >=, or words in English, such as {name} is fixed"
            return wrong(text, second.start, second.end, f"Unexpected '{second.value}': {hint}")
        if first.kind == "text" or first.value in KEYWORDS:
            continue
        words = [one.value for one in takewhile(lambda one: one.kind == "word" and one.value not in KEYWORDS, read[i:])]
        several = " ".join(words)
        meant = get_close_matches(several, [name for name in schema.names if " " in name], n=1)
        if meant:
            end = read[i + len(words) - 1].end
            return wrong(text, first.start, end, f"There is no feature '{several}'; did you mean '{meant[0]}'?")
    return None


def _plain(text: str) -> str:
    """Numbers without signs of currencies, and with no space between groups of digits."""
    return _GROUPED.sub(lambda match: re.sub(r"\s", "", match[0]), _MONEY.sub("", text))


@cached(2**22)
def _names(schema: Schema) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    """What finds quoted texts, and names and labels of several words, the longest first; the names behind labels."""
    options = {o for f in schema.features if isinstance(f, Choice) for o in f.options if isinstance(o, str)}
    given, labels = {*schema.names, *options}, Counter(label for f in schema.features for label in f.labels)
    behind = {one: f.name for f in schema.features for one in f.labels if labels[one] == 1 and one not in given}
    several = {
        name
        for name in (*given, *behind)
        if _SEVERAL.fullmatch(name)
        and (name in behind or not re.fullmatch(r"\w[\w.-]*", name))
        and name not in SENTENCES
        and not KEYWORDS & set(name.split(" "))
        and not name[0].isdigit()
    }
    if not several and not behind:
        return None, {}
    ordered = sorted(several, key=lambda name: (-len(name), name))
    spaced = "|".join(r"\s+".join(map(re.escape, name.split(" "))) for name in ordered)
    return re.compile(rf"{_QUOTED}|(?<![\w.-])(?:{spaced})(?![\w.-])" if several else _QUOTED), behind
