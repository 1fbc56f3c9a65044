"""Answers read back from plain data: the inverse of their `to_dict`.

Reading is strict: every entry has to be there and of its type, and what follows from other entries (the note, whether
nothing needs to change, which kinds have a row) is checked, not trusted. JSON has neither infinity nor NaN: a distance
of None is infinity, a score of None is NaN, which says that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, get_type_hints

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.plain_data import entries
from ifonly.results.answer import (
    DERIVED,
    KINDS,
    OPTIONAL,
    Answer,
    Change,
    Nearest,
    Reasons,
    Relaxation,
    Usualness,
    Within,
    entries_of,
)
from ifonly.results.stop import Stop
from ifonly.schema import Translations, Value

T = TypeVar("T")
Reader: TypeAlias = Callable[[Any, str], Any]
"""Of a value and the name of its entry, which an error names."""


def answer_from_dict(data: Any) -> Answer:
    """The answer that was written so."""
    status = data.get("status") if isinstance(data, Mapping) else None
    if isinstance(data, Mapping) and not (isinstance(status, str) and status in KINDS):
        raise QuestionError(f"The entry 'status' of an answer must be one of {', '.join(KINDS)}; got {shown(status)}.")
    kind = KINDS.get(status or "", Answer)
    names = entries_of(kind)
    found = entries(data, "An answer", [entry for entry in names if entry not in OPTIONAL], OPTIONAL)
    own = {entry: name for entry, name in names.items() if entry in found and entry not in DERIVED.values()}
    answer = kind(**_fields(kind, found, own, _LENGTHS))
    _check(answer, found)
    return answer


def change_from_dict(data: Any) -> Change:
    found = entries(data, "A change", ("feature", "from", "to"), ("counted", "follows"))
    return Change(**_fields(Change, found, {entry: _CHANGE.get(entry, entry) for entry in found}))


def _object(kind: type[T], what: str, **renamed: str) -> Callable[[Any, str], T]:
    """A reader of dataclasses that are written as all their fields, some under another name."""

    def read(data: Any, name: str) -> T:
        names = {renamed.get(field, field): field for field in kind.__dataclass_fields__}  # type: ignore[attr-defined]
        return kind(**_fields(kind, entries(data, what, tuple(names)), names))

    return read


def _fields(
    kind: Any, found: Mapping[str, Any], names: Mapping[str, str], stricter: Mapping[str, Reader] | None = None
) -> dict[str, Any]:
    """The fields of a class, by the entries that they are, each read by its type."""
    types = _types(kind)
    return {
        name: (stricter or {}).get(entry, _BY_TYPE[types[name]])(found[entry], entry) for entry, name in names.items()
    }


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


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


def _listed(read: Callable[[Any, str], T]) -> Callable[[Any, str], tuple[T, ...]]:
    return lambda value, name: tuple(read(one, name) for one in listed(value, name))


read_texts = _listed(text)


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


def read_translations(value: Any, name: str) -> dict[str, dict[str, dict[str, Any]]]:
    needed = "an object with label, unit and options per feature and language"
    if not isinstance(value, Mapping) or not all(isinstance(own, Mapping) for own in value.values()):
        raise _wrong(name, needed, value)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for feature, own in value.items():
        for language, words in own.items():
            if not isinstance(words, Mapping) or not set(words) <= {"label", "unit", "options"}:
                raise _wrong(name, needed, value)
            texts = {key: text(one, name) for key, one in words.items() if key != "options"}
            options = {"options": _clauses(words["options"], name)} if "options" in words else {}
            found.setdefault(text(feature, name), {})[text(language, name)] = {**texts, **options}
    return found


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


_CHANGE = {"from": "before", "to": "after"}
_LENGTHS: dict[str, Reader] = {"distance": _length, "lower_bound": _length, "rounding_bound": _at_least_0}
"""Numbers of an answer that are more than their type."""
_BY_TYPE: dict[Any, Reader] = {
    int: read_count,
    float: number,
    float | None: _or_none(_at_least_0),
    str: text,
    bool: truth,
    Value: read_value,
    float | tuple[float, ...]: _scores,
    tuple[str, ...]: read_texts,
    tuple[Change, ...]: _listed(lambda value, name: change_from_dict(value)),
    tuple[Relaxation, ...]: _listed(_object(Relaxation, "A relaxation", lower="lower_bound")),
    Mapping[str, Value]: read_row,
    Mapping[str, Value] | None: _or_none(read_row),
    Mapping[str, tuple[str, str]]: read_words,
    Mapping[str, str]: _clauses,
    Mapping[str, Translations]: read_translations,
    Stop | None: _or_none(lambda value, name: Stop.from_dict(value)),
    Usualness | None: _object(Usualness, "The usualness of an answer"),
    Reasons | None: _or_none(_object(Reasons, "Reasons")),
}
"""How an entry is read, by the type of its field."""
