"""Answers as flat tables: one row per person, plain values in the cells, joined to the people by the index.

    status, distance, lower_bound, decision_before, decision_after, score_before, score_after, changes, note, ...
    Age (before), Age (after), ...

`changes` is text. Whole numbers stay whole and yes/no stays yes/no, also where some rows have no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from ifonly.errors import MissingExtra, QuestionError
from ifonly.printing import shown
from ifonly.results.answer import Answer
from ifonly.schema import Value
from ifonly.schema.tables import import_pandas

Features: TypeAlias = Literal["changed", "all", "none"]
"""Which features have columns: those that change in some answer, all, or none."""


def frame_columns_of(answers: Sequence[Answer], features: Features) -> dict[str, list[Any]]:
    """The columns of the table, one value per answer; None where there is none."""
    if features not in get_args(Features):
        raise QuestionError(f"Columns are made for features='changed', 'all' or 'none'; got {shown(features)}.")
    data = [answer.to_dict() for answer in answers]
    columns: dict[str, list[Any]] = {"row": [answer.row for answer in answers]}
    for name in ("status", "target", "distance", "lower_bound", "decision_before", "decision_after"):
        columns[name] = [one[name] for one in data]
    for name in ("score_before", "score_after"):
        columns |= _scores(name, [one[name] for one in data])
    columns["changes"] = ["; ".join(map(str, answer.changes)) for answer in answers]
    for name in ("note", "method", "seconds", "nodes"):
        columns[name] = [one[name] for one in data]
    for name in _named(answers, features):
        columns[f"{name} (before)"] = [answer.factual.get(name) for answer in answers]
        columns[f"{name} (after)"] = [_after(answer, name) for answer in answers]
    return columns


def _named(answers: Sequence[Answer], features: Features) -> list[str]:
    everything = dict.fromkeys(name for answer in answers for name in answer.factual)
    if features == "none":
        return []
    changed = {change.feature for answer in answers for change in answer.changes}
    return [name for name in everything if features == "all" or name in changed]


def _after(answer: Answer, name: str) -> Value:
    return None if answer.counterfactual is None else answer.counterfactual.get(name)


def _scores(name: str, scores: list[Any]) -> dict[str, list[Any]]:
    """One column, or one per score of a model that has several."""
    width = max((len(one) for one in scores if isinstance(one, list)), default=0)
    if not width:
        return {name: scores}
    return {f"{name}_{k}": [None if one is None else one[k] for one in scores] for k in range(width)}


def pandas_frame(answers: Sequence[Answer], features: Features = "changed", ids: Sequence[Any] | None = None) -> Any:
    """A pandas DataFrame with the index of the table that was asked about, if it is known."""
    pd = import_pandas()
    columns = frame_columns_of(answers, features)
    index = ids if ids is not None else pd.RangeIndex(len(answers))
    typed = {name: pd.array(column, dtype=_dtype(column)) for name, column in columns.items()}
    return pd.DataFrame(typed, index=index)


def _dtype(column: list[Any]) -> str:
    """What pandas keeps the values of a column as, without turning whole numbers into others for a missing one."""
    present = [value for value in column if value is not None]
    if present and all(isinstance(value, bool) for value in present):
        return "boolean"
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in present)
    if not present or not numbers:
        return "object" if any(not isinstance(value, str) for value in present) else "string"
    whole = all(isinstance(value, int) and abs(value) < 2**63 for value in present)
    return "Int64" if whole else "Float64"


def polars_frame(answers: Sequence[Answer], features: Features = "changed") -> Any:
    """A polars DataFrame; polars has no index, so the number of the row is a column."""
    try:
        import polars as pl
    except ImportError:
        raise MissingExtra("polars", extra="polars", needed_for="A polars DataFrame") from None
    return pl.DataFrame(frame_columns_of(answers, features), strict=False, infer_schema_length=None)
