"""The result of a check for people: verdict first, now and instead, what is proven, what is no part of the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..html.fragments import bullets, document, facts, paragraph, table
from ..printing import escaped, json_object

if TYPE_CHECKING:
    from .check.checker import CheckResult

ANOTHER = 5
"""Exit code: proven, but of another model, schema or person."""
WIDEST = 60
"""Characters of a column of the table in text."""
IN_FILE = (
    "This is about the model in the file. Whose model that is was not compared: give the model, the schema and the row "
    "(ifonly check FILE --model, --schema, --rows, --row)."
)
NOT_PROVEN = (
    "that the model in the file is the one that decides, and that the row is the person's: these are compared, or not, "
    "as said above",
    "what the deployed model computes in floating point: its scores of the row are recorded, not checked",
    "that bounds, constraints and costs are the right ones for this person, and that a change can be made in life",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Is what was proven about this one? `what` is "model", "schema" or "person"; `words` says it in a sentence."""

    what: str
    same: bool
    words: str

    def to_dict(self) -> dict[str, Any]:
        return json_object(self)


def verdict_words(checked: CheckResult, compared: Sequence[Comparison] = ()) -> str:
    """The verdict, and that it is about another model, schema or person, where that was found."""
    other = [one.what.upper() for one in compared if not one.same]
    return f"{checked.verdict}, BUT OF ANOTHER {' AND ANOTHER '.join(other)}" if other else checked.verdict


def as_text(checked: CheckResult, compared: Sequence[Comparison] = ()) -> str:
    """The verdict is alone on the first line and on the last; what a file can choose is indented between."""
    verdict, parts = verdict_words(checked, compared), [checked.failure] if checked.failure else []
    if checked.statement:
        claims, rest = _claims(checked)
        told = [one.words for one in compared] or [IN_FILE]
        parts = [*claims, *_table(checked), *told, *rest, checked.deployed]
        parts += ["Not part of the proof:", *(f"- {one}" for one in NOT_PROVEN)]
    lines = [line for part in parts if part for line in part.split("\n")]
    return "\n".join([verdict, *("  " + escaped(line) for line in lines), verdict])


def _claims(checked: CheckResult) -> tuple[list[str], list[str]]:
    """The sentences that say what is claimed, and the lines after them."""
    lines = checked.statement.split("\n")
    first = 2 if checked.trusted else 1
    return lines[:first], lines[first:]


def _table(checked: CheckResult) -> list[str]:
    changes = [(one.name, one.now, one.instead or "") for one in checked.features if one.changed]
    if not changes:
        return []
    rows = [("", "now", "instead"), *changes]
    wide = [min(max(len(row[j]) for row in rows), WIDEST) for j in range(2)]
    return [f"  {name:<{wide[0]}}  {now:<{wide[1]}}  {instead}".rstrip() for name, now, instead in rows]


def as_html(checked: CheckResult, compared: Sequence[Comparison] = ()) -> str:
    """The same as a page, which loads nothing and is readable on paper."""
    verdict = verdict_words(checked, compared)
    if not checked.statement:
        return document(f"Certificate: {verdict}", paragraph(checked.failure))
    claims, rest = _claims(checked)
    told = [one.words for one in compared] or [IN_FILE]
    shown = [
        (one.name, one.now, (one.instead or "") if one.changed else "", one.limits or "free")
        for one in checked.features
    ]
    stated = [line for line in rest if not line.startswith(("Feature ", "Rule: ", "Causes: "))]
    parts = [
        *(paragraph(one, "sentence" if k == len(claims) - 1 else "") for k, one in enumerate(claims)),
        *map(paragraph, told),
        "<h2>Now and instead</h2>",
        table(("feature", "now", "instead", "constraints"), shown),
    ]
    if checked.rules:
        parts += ["<h2>Rules</h2>", bullets(checked.rules)]
    parts += ["<h2>What is proven about</h2>", *map(paragraph, stated)]
    whats = facts([
        ("model", checked.network), ("schema", checked.schema), ("question", checked.question),
        ("proof", f"{checked.nodes:,} nodes, {checked.leaves:,} leaves" if checked.nodes else "none"),
    ])  # fmt: skip
    parts += ["<h2>Fingerprints (sha256)</h2>", whats, "<h2>Not part of the proof</h2>", bullets(NOT_PROVEN)]
    parts += [paragraph(checked.deployed)] if checked.deployed else []
    return document(f"Certificate: {verdict}", *parts)
