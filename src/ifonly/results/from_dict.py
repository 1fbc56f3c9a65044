"""Answers read back from plain data: the inverse of their `to_dict`.

Reading is strict: every entry has to be there and of its type, and what follows from other entries (the note, whether
nothing needs to change, which kinds have a row) is checked, not trusted. JSON has neither infinity nor NaN: a distance
of None is infinity, a score of None is NaN, which says that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.plain_data import entries
from ifonly.results.answer import (
    Answer,
    Change,
    Failed,
    Nearest,
    NoneExists,
    Reasons,
    Relaxation,
    Unknown,
    Usualness,
    Within,
)
from ifonly.results.stop import Stop
from ifonly.schema import Value

T = TypeVar("T")
KINDS: dict[str, type[Any]] = {kind.status: kind for kind in (Nearest, NoneExists, Within, Unknown, Failed)}
FIELDS = {
    "row": "row",
    "target": "target",
    "distance": "upper",
    "distance_name": "distance_name",
    "lower_bound": "lower",
    "changes": "changes",
    "factual": "factual",
    "counterfactual": "counterfactual",
    "decision_before": "decision_before",
    "decision_after": "decision_after",
    "score_before": "score_before",
    "score_after": "score_after",
    "method": "method",
    "seconds": "seconds",
    "nodes": "nodes",
    "stop": "stop",
    "rounding_bound": "rounding_bound",
    "lower_any_rounding": "lower_any_rounding",
    "precision": "precision",
    "subject": "subject",
    "state": "state",
    "breaks": "breaks",
}
"""Entries that every answer has, and the fields that they are."""
DERIVED = ("status", "note", "already")
OPTIONAL = ("words", "outcome", "constraints", "usual")
OWN = {"none exists": "reasons", "error": "error"}
"""The entry that only this kind has."""


def answer_from_dict(data: Any) -> Answer:
    """The answer that was written so."""
    status = data.get("status") if isinstance(data, Mapping) else None
    if isinstance(data, Mapping) and not (isinstance(status, str) and status in KINDS):
        raise QuestionError(f"The entry 'status' of an answer must be one of {', '.join(KINDS)}; got {shown(status)}.")
    own = (OWN[status],) if status in OWN else ()
    found = entries(data, "An answer", (*FIELDS, *DERIVED, *own), OPTIONAL)
    answer: Answer = KINDS[found["status"]](
        **{_field(name): _READ[name](found[name], name) for name in (*FIELDS, *own, *(set(OPTIONAL) & set(found)))}
    )
    _check(answer, found)
    return answer


def change_from_dict(data: Any) -> Change:
    found = entries(data, "A change", ("feature", "from", "to"), ("counted", "follows"))
    return Change(
        text(found["feature"], "feature"),
        read_value(found["from"], "from"),
        read_value(found["to"], "to"),
        truth(found.get("counted", False), "counted"),
        truth(found.get("follows", False), "follows"),
    )


def relaxation_from_dict(data: Any) -> Relaxation:
    found = entries(data, "A relaxation", ("dropped", "words", "distance", "lower_bound", "proven", "changes"))
    return Relaxation(
        dropped=read_texts(found["dropped"], "dropped"),
        words=text(found["words"], "words"),
        distance=number(found["distance"], "distance"),
        lower=number(found["lower_bound"], "lower_bound"),
        proven=truth(found["proven"], "proven"),
        changes=_changes(found["changes"], "changes"),
    )


def usualness_from_dict(data: Any) -> Usualness:
    found = entries(data, "The usualness of an answer", ("nearest_row", "nearest_distance", "breaks", "unseen"))
    return Usualness(
        nearest_row=read_count(found["nearest_row"], "nearest_row"),
        nearest_distance=number(found["nearest_distance"], "nearest_distance"),
        breaks=read_texts(found["breaks"], "breaks"),
        unseen=read_texts(found["unseen"], "unseen"),
    )


def reasons_from_dict(data: Any) -> Reasons:
    found = entries(data, "Reasons", ("blame", "minimal", "relaxations", "note"))
    return Reasons(
        blame=read_texts(found["blame"], "blame"),
        minimal=truth(found["minimal"], "minimal"),
        relaxations=tuple(relaxation_from_dict(one) for one in listed(found["relaxations"], "relaxations")),
        note=text(found["note"], "note"),
    )


def _field(name: str) -> str:
    return FIELDS.get(name, name)


def _check(answer: Answer, found: Mapping[str, Any]) -> None:
    """Does what is written beside the answer follow from it?"""
    for name in ("note", "already"):
        derived = getattr(answer, name)
        if found[name] != derived or type(found[name]) is not type(derived):
            raise QuestionError(
                f"The entry '{name}' of this answer would be {shown(derived)}; it is {shown(found[name])}."
            )
    after = answer.counterfactual
    if (after is not None) != isinstance(answer, Nearest | Within) or (after is None) != math.isinf(answer.upper):
        raise QuestionError(
            f"An answer with the status '{answer.status}' has "
            f"{'a row and its distance' if isinstance(answer, Nearest | Within) else 'neither a row nor a distance'}."
        )
    for change in answer.changes:
        before = answer.factual.get(change.feature)
        if after is None or (before, after.get(change.feature)) != (change.before, change.after):
            raise QuestionError(f"The change of '{change.feature}' is not that from the factual to the counterfactual.")


# ---------------------------------------------------------------------- entries of a type


def _wrong(name: str, needed: str, value: Any) -> QuestionError:
    return QuestionError(f"The entry '{name}' of an answer must be {needed}; got {shown(value)}.")


def text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "a text", value)
    return value


def truth(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(name, "a finite number", value)
    return value


def _length(value: Any, name: str) -> float:
    """A distance, or a bound on one."""
    return math.inf if value is None else _at_least_0(value, name)


def _at_least_0(value: Any, name: str) -> float:
    if number(value, name) < 0.0:
        raise _wrong(name, "at least 0", value)
    return value


def read_count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _wrong(name, "a whole number >= 0", value)
    return value


def read_value(value: Any, name: str) -> Value:
    if value is None or isinstance(value, str | bool):
        return value
    return number(value, name)


def listed(value: Any, name: str) -> list[Any]:
    """The entry, which has to be a list."""
    if not isinstance(value, list | tuple):
        raise _wrong(name, "a list", value)
    return list(value)


def read_texts(value: Any, name: str) -> tuple[str, ...]:
    return tuple(text(one, name) for one in listed(value, name))


def _changes(value: Any, name: str) -> tuple[Change, ...]:
    return tuple(change_from_dict(one) for one in listed(value, name))


def read_row(value: Any, name: str) -> dict[str, Value]:
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object with a value per feature", value)
    return {text(feature, name): read_value(own, name) for feature, own in value.items()}


def read_words(value: Any, name: str) -> dict[str, tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object with a label and a unit per feature", value)
    words: dict[str, tuple[str, str]] = {}
    for feature, own in value.items():
        both = read_texts(own, name)
        if len(both) != 2:
            raise _wrong(name, "an object with a label and a unit per feature", value)
        words[text(feature, name)] = (both[0], both[1])
    return words


def _score(value: Any, name: str) -> float:
    return math.nan if value is None else number(value, name)


def _scores(value: Any, name: str) -> float | tuple[float, ...]:
    return tuple(_score(one, name) for one in value) if isinstance(value, list | tuple) else _score(value, name)


def _or_none(read: Callable[..., T]) -> Callable[[Any, str], T | None]:
    return lambda value, name: None if value is None else read(value, name)


def _clauses(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise QuestionError(f"The entry '{name}' of an answer must be an object; got {shown(value)}.")
    return {text(language, name): text(clause, name) for language, clause in value.items()}


_READ: dict[str, Callable[[Any, str], Any]] = {
    "row": read_count,
    "target": text,
    "distance": _length,
    "distance_name": text,
    "lower_bound": _length,
    "changes": _changes,
    "factual": read_row,
    "counterfactual": _or_none(read_row),
    "decision_before": read_value,
    "decision_after": read_value,
    "score_before": _scores,
    "score_after": _scores,
    "method": text,
    "seconds": number,
    "nodes": read_count,
    "stop": _or_none(lambda value, name: Stop.from_dict(value)),
    "rounding_bound": _at_least_0,
    "lower_any_rounding": _or_none(_at_least_0),
    "precision": text,
    "subject": text,
    "state": text,
    "breaks": read_texts,
    "constraints": read_texts,
    "usual": lambda value, name: usualness_from_dict(value),
    "reasons": _or_none(lambda value, name: reasons_from_dict(value)),
    "error": text,
    "words": read_words,
    "outcome": _clauses,
}
