"""The kinds of answer. A verdict is never a bool.

    Nearest      a row that the user's own model decides as asked; proven: nothing nearer exists (up to the gap)
    NoneExists   proven: no allowed row is decided as asked
    Within       a valid row, and a proven lower bound, but a limit was hit before they met
    Unknown      a limit was hit before any row was found; the lower bound is still proven
    Failed       the row could not be asked about (only in `explain_many`, where one bad row must not stop the rest)

Answers are plain data in the user's own values: picklable, JSON, still true tomorrow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, overload

from ifonly.errors import MissingExtra
from ifonly.schema import Value


@dataclass(frozen=True, slots=True)
class Change:
    """One feature, before and after."""

    feature: str
    before: Value
    after: Value

    def __str__(self) -> str:
        return f"{self.feature}: {show(self.before)} -> {show(self.after)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What all answers have. Distances are in the question's distance; scores are the user's own model's."""

    status: ClassVar[str]
    row: int
    factual: Mapping[str, Value]
    target: str
    distance_name: str
    lower: float
    upper: float = math.inf
    counterfactual: Mapping[str, Value] | None = None
    changes: tuple[Change, ...] = ()
    decision_before: Value = None
    decision_after: Value = None
    score_before: float | tuple[float, ...] = math.nan
    score_after: float | tuple[float, ...] = math.nan
    method: str = ""
    seconds: float = 0.0
    nodes: int = 0
    note: str = ""
    record: Any = field(default=None, repr=False, compare=False)

    @property
    def distance(self) -> float:
        """The distance of the counterfactual (infinity without one)."""
        return self.upper

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: no NaN, no infinity."""
        return {
            "row": self.row,
            "status": self.status,
            "target": self.target,
            "distance": _finite(self.upper),
            "distance_name": self.distance_name,
            "lower_bound": _finite(self.lower),
            "changes": [{"feature": c.feature, "from": c.before, "to": c.after} for c in self.changes],
            "factual": dict(self.factual),
            "counterfactual": None if self.counterfactual is None else dict(self.counterfactual),
            "decision_before": self.decision_before,
            "decision_after": self.decision_after,
            "score_before": _scores(self.score_before),
            "score_after": _scores(self.score_after),
            "method": self.method,
            "seconds": self.seconds,
            "nodes": self.nodes,
            "note": self.note,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def __str__(self) -> str:
        return sentence(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(_Answer):
    """A valid row; nothing nearer exists, up to upper - lower."""

    status: ClassVar[str] = "nearest"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneExists(_Answer):
    """Proven: no allowed row is decided as asked."""

    status: ClassVar[str] = "none exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Within(_Answer):
    """A valid row at `upper`; nothing nearer than `lower` exists; `note` says what stopped the search."""

    status: ClassVar[str] = "within"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(_Answer):
    """No row found; nothing nearer than `lower` exists; `note` says what stopped the search."""

    status: ClassVar[str] = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(_Answer):
    """The row could not be asked about; `note` says why."""

    status: ClassVar[str] = "error"


Answer: TypeAlias = Nearest | NoneExists | Within | Unknown | Failed

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


class Answers(Sequence[Answer]):
    """Many answers, in the order of the rows."""

    def __init__(self, answers: Sequence[Answer], *, seconds: float = 0.0) -> None:
        self._answers = tuple(answers)
        self.seconds = seconds

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> Answers: ...
    def __getitem__(self, index: int | slice) -> Answer | Answers:
        return Answers(self._answers[index]) if isinstance(index, slice) else self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def counts(self) -> dict[str, int]:
        """How many answers of each kind."""
        kinds = (Nearest, NoneExists, Within, Unknown, Failed)
        return {kind.status: sum(isinstance(a, kind) for a in self._answers) for kind in kinds}

    def to_dicts(self) -> list[dict[str, Any]]:
        return [answer.to_dict() for answer in self._answers]

    def to_frame(self) -> Any:
        """A pandas DataFrame: one record a row."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", extra="pandas", needed_for="A DataFrame") from None
        return pd.DataFrame(self.to_dicts(), columns=[*COLUMNS, "note"])

    def __repr__(self) -> str:
        counted = ", ".join(f"{count} {status}" for status, count in self.counts().items() if count)
        return f"<Answers: {counted or 'none'}>"


def show(value: Value) -> str:
    """A value as a person writes it."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        # every digit: a rounded value might not flip the decision
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:,}"
    return str(value)


def sentence(answer: Any) -> str:
    """One sentence per answer."""
    if isinstance(answer, Failed):
        return f"This row could not be asked about: {answer.note}"
    if isinstance(answer, NoneExists):
        because = f" ({answer.note})" if answer.note else ""
        return f"No allowed change makes the decision {answer.target}{because} (proven)."
    if isinstance(answer, Unknown):
        return (
            f"No change that makes the decision {answer.target} was found ({answer.note}); "
            f"none exists within distance {answer.lower:.6g} (proven)."
        )
    if not answer.changes:
        return f"The decision is {answer.target} already; nothing needs to change."
    changed = [f"{c.feature} had been {show(c.after)} instead of {show(c.before)}" for c in answer.changes]
    listed = changed[0] if len(changed) == 1 else ", ".join(changed[:-1]) + " and " + changed[-1]
    start = f"If {listed}, the decision would have been {answer.target}"
    if isinstance(answer, Nearest):
        return f"{start}; no smaller change does it (proven, {answer.distance_name} distance {answer.upper:.6g})."
    known = f", but none within {answer.lower:.6g} exists (proven)" if answer.lower > 0 else ""
    return f"{start} (distance {answer.upper:.6g}); a smaller change was not ruled out ({answer.note}){known}."


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _scores(scores: float | tuple[float, ...]) -> Any:
    return [_finite(s) for s in scores] if isinstance(scores, tuple) else _finite(scores)
