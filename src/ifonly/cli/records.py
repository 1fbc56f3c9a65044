"""Answers as records of a table: the columns that files and data frames share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ifonly.cli.tables import Kind
from ifonly.proof import Answer
from ifonly.proof.answer import COLUMNS

_KINDS: dict[str, Kind] = {
    "row": "integer", "status": "text", "changes": "nested", "counterfactual": "nested", "score_before": "score",
    "score_after": "score", "method": "text", "note": "text",
}  # fmt: skip

RECORD: dict[str, Kind] = {name: _KINDS.get(name, "number") for name in (*COLUMNS, "note")}


def records(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """One record per answer, with the columns of RECORD."""
    return [{name: data[name] for name in RECORD} for data in (answer.to_dict() for answer in answers)]
