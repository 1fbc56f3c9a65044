"""Answers as records of a table: the columns that files and data frames share, and the counts of many.

Nested values (the changes, the row) are JSON text here, as they stand in files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ifonly.printing import json_text
from ifonly.results.answer import Answer, Failed, Nearest, Within
from ifonly.schema import Choice, Feature, Integer

Kind: TypeAlias = Literal["integer", "number", "numbers", "text", "nested"]
"""What a column of a file holds; numbers are a list of them."""

COLUMNS = (
    "row",
    "status",
    "distance",
    "lower_bound",
    "changes",
    "counterfactual",
    "score_before",
    "score_after",
    "method",
    "seconds",
)
NAMES = (*COLUMNS, "note")
_KINDS: dict[str, Kind] = {
    "row": "integer", "status": "text", "changes": "nested", "counterfactual": "nested", "method": "text",
    "note": "text",
}  # fmt: skip


def record_kinds(outputs: int) -> dict[str, Kind]:
    """The columns of a record, and what they hold, for a model with so many scores."""
    score: Kind = "number" if outputs == 1 else "numbers"
    return {name: score if name.startswith("score") else _KINDS.get(name, "number") for name in NAMES}


def value_kind(feature: Feature) -> Kind:
    """What a column of a feature's values holds."""
    return "text" if isinstance(feature, Choice) else "integer" if isinstance(feature, Integer) else "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Answers by columns, as they are written. `sizes` are the changes of each row (-1 without one), `changed` says how
    many rows change a feature, `contradictions` how many failed by a bug (`errors.Contradiction`).
    """

    columns: Mapping[str, list[Any]]
    sizes: list[int]
    changed: Mapping[str, int] = field(default_factory=dict)
    contradictions: int = 0

    def __len__(self) -> int:
        return len(self.sizes)


def records_of(answers: Sequence[Answer]) -> Records:
    """The records of answers: what they are, by definition."""
    rows = [record(answer) for answer in answers]
    return Records(
        columns={name: [row[name] for row in rows] for name in NAMES},
        sizes=[len(answer.own_changes) if isinstance(answer, Nearest | Within) else -1 for answer in answers],
        changed=Counter(change.feature for answer in answers for change in answer.changes),
        contradictions=sum(isinstance(answer, Failed) and answer.contradiction for answer in answers),
    )


def record(answer: Answer) -> dict[str, Any]:
    """One answer as a record."""
    data = answer.to_dict()
    return {name: json_text(data[name]) if isinstance(data[name], dict) or name == "changes" else data[name]
            for name in NAMES}  # fmt: skip


def merged(count: int, parts: Sequence[tuple[Sequence[int], Records]]) -> Records:
    """Records of several groups of rows, each with the places of its rows, as one."""
    (places, first), *rest = parts
    if not rest and len(places) == count:
        return first
    more = dict.fromkeys(name for _, part in parts for name in part.columns)
    columns: dict[str, list[Any]] = {name: [None] * count for name in (dict.fromkeys(NAMES) | more)}
    sizes, changed = [-1] * count, Counter[str]()
    for places, part in parts:
        for name, values in part.columns.items():
            column = columns[name]
            for place, value in zip(places, values, strict=True):
                column[place] = value
        for place, size in zip(places, part.sizes, strict=True):
            sizes[place] = size
        changed.update(part.changed)
    bugs = sum(part.contradictions for _, part in parts)
    return Records(columns=columns, sizes=sizes, changed=changed, contradictions=bugs)
