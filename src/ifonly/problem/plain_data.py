"""Serialisation of targets, distances and constraints: the plain data of a query in a file, a request or a log.

    target        {"class": "approve", "margin": 1e-06}         a class's name alone will do
    distance      {"norm": "l1", "weights": {"Age": 2.0}}       a norm's name alone will do
    constraint    {"kind": "fixed", "feature": "Age"}           a sentence of the rule language will do: "Age is fixed"

Reading is strict: an entry that is unknown, missing or of the wrong type is refused by a sentence that names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.chains import AcceptedBySome
from ifonly.problem.constraints import (
    Allowed,
    Fixed,
    Imputable,
    MaxDelta,
    OnlyDown,
    OnlyUp,
    Range,
    Steps,
    Unconstrained,
)
from ifonly.problem.distance import Distance
from ifonly.problem.open_target import OneOfTarget, OpenTarget, OtherTarget, TopTarget
from ifonly.problem.robust import RobustToWeights
from ifonly.problem.robust_trees import RobustToTrees
from ifonly.problem.rules.derived import Derived
from ifonly.problem.rules.rule import Rule
from ifonly.problem.support import Actionable, MaxChanges, OnlyWith
from ifonly.problem.target import AheadTarget, ClassTarget, ProbabilityTarget, ScoreTarget, Target

CONSTRAINTS: dict[str, type[Any]] = {
    "fixed": Fixed,
    "only_up": OnlyUp,
    "only_down": OnlyDown,
    "range": Range,
    "allowed": Allowed,
    "max_delta": MaxDelta,
    "steps": Steps,
    "unconstrained": Unconstrained,
    "imputable": Imputable,
    "max_changes": MaxChanges,
    "only_with": OnlyWith,
    "actionable": Actionable,
    "rule": Rule,
    "derived": Derived,
    "accepted": Accepted,
    "accepted_by_some": AcceptedBySome,
    "robust_to_weights": RobustToWeights,
    "robust_to_trees": RobustToTrees,
}
_NOT_GIVEN = {MaxChanges: ("uncounted",), Derived: ("text",), RobustToWeights: ("_made",), RobustToTrees: ("_made",)}
_ENDS = {"lower": -math.inf, "upper": math.inf}
"""What a range without this end has there: JSON has no infinity."""


def entries(value: Any, what: str, needed: Sequence[str] = (), optional: Sequence[str] = ()) -> dict[str, Any]:
    """The entries of a JSON object, none of them unknown and none of those needed missing."""
    if not isinstance(value, Mapping):
        raise QuestionError(
            f"{what} must be an object with entries such as '{(*needed, *optional)[0]}'; got {shown(value)}."
        )
    known = (*needed, *optional)
    for name in value:
        if name not in known:
            raise QuestionError(f"{what} has no entry {str(name)!r}; its entries are {', '.join(known)}.")
    for name in needed:
        if name not in value:
            raise QuestionError(f"{what} needs the entry '{name}'; it has {', '.join(map(str, value)) or 'none'}.")
    return dict(value)


# ---------------------------------------------------------------------- targets

_TARGETS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[dict[str, Any]], Target | OpenTarget]]] = {
    "probability_of": (
        ("probability_of", "at_least"),
        ("margin",),
        lambda e: ProbabilityTarget(e.pop("probability_of"), **e),
    ),
    "ahead_of": (
        ("class", "ahead_of"),
        ("margin",),
        lambda e: AheadTarget(e.pop("class"), _listed("ahead_of", e.pop("ahead_of")), **e),
    ),
    "among_highest": (
        ("class", "among_highest"),
        ("margin",),
        lambda e: TopTarget(e.pop("class"), e.pop("among_highest"), **e),
    ),
    "one_of": (("one_of",), ("margin",), lambda e: OneOfTarget(_listed("one_of", e.pop("one_of")), **e)),
    "other": (("other",), ("margin",), lambda e: _other(e)),
    "class": (("class",), ("margin",), lambda e: ClassTarget(e.pop("class"), **e)),
}
"""By the entry that identifies a kind of target: the entries that it needs, those that it may have, how it is made."""


def target_from_dict(data: Any) -> Target | OpenTarget:
    """A target from the plain data that its `to_dict` gives, or from a class's name."""
    if not isinstance(data, Mapping):
        if isinstance(data, list | tuple):
            raise QuestionError(f'Several classes are asked for with {{"one_of": [...]}}; got {shown(data)}.')
        return ClassTarget(data)
    for entry, (needed, optional, made) in _TARGETS.items():
        if entry in data:
            return made(entries(data, f"The target '{entry}'", needed, optional))
    if not {"at_least", "at_most"} & set(data):
        known = ", ".join([*_TARGETS, "at_least", "at_most"])
        raise QuestionError(f"A target has one of the entries {known}; got {shown(dict(data))}.")
    return ScoreTarget(**entries(data, "A score target", (), ("at_least", "at_most", "output", "margin")))


def _other(data: dict[str, Any]) -> OtherTarget:
    if data.pop("other") is not True:
        raise QuestionError('The entry "other" of a target says true, or is left out.')
    return OtherTarget(**data)


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise QuestionError(f"The entry '{name}' of a target must be a list of classes; got {shown(value)}.")
    return tuple(value)


# ---------------------------------------------------------------------- distances


def distance_from_dict(data: Any) -> Distance:
    """A distance from the plain data that its `to_dict` gives, or from a norm's name."""
    if isinstance(data, str):
        return Distance(data)
    found = entries(data, "The distance", ("norm",), ("weights", "scales", "up", "down", "transitions"))
    if "transitions" in found:
        found["transitions"] = _moves(found["transitions"])
    return Distance(**found)


def _moves(table: Any) -> dict[str, dict[tuple[Any, Any], float]]:
    """{feature: [[before, after, change], ...]} as the table that a distance has."""
    if not isinstance(table, Mapping):
        raise QuestionError(f"The transitions must be lists by feature; got {shown(table)}.")
    result: dict[str, dict[tuple[Any, Any], float]] = {}
    for name, moves in table.items():
        if not isinstance(moves, list | tuple) or not all(isinstance(m, list | tuple) and len(m) == 3 for m in moves):
            raise QuestionError(
                f"The transitions of '{name}' must be lists of [before, after, change]; got {shown(moves)}."
            )
        if any(isinstance(end, list | tuple | Mapping) for before, after, _ in moves for end in (before, after)):
            raise QuestionError(f"The transitions of '{name}' go from option to option; got {shown(moves)}.")
        result[name] = {(before, after): change for before, after, change in moves}
    return result


# ---------------------------------------------------------------------- constraints


def constraint_to_dict(constraint: Any) -> str | dict[str, Any]:
    """Words as they are; a constraint as its kind and its fields."""
    if isinstance(constraint, str):
        return constraint
    kind = next((name for name, cls in CONSTRAINTS.items() if cls is type(constraint)), None)
    if kind is None:
        raise QuestionError(f"'{constraint.describe()}' has no form as plain data; it can be asked in Python only.")
    if isinstance(constraint, Accepted):
        target = {} if constraint.target is None else {"target": constraint.target.to_dict()}
        return {"kind": kind, "by": constraint.fingerprint, "name": constraint.name, **target}
    if isinstance(constraint, AcceptedBySome):
        return {"kind": kind, "least": constraint.least, "of": [constraint_to_dict(one) for one in constraint.of]}
    if isinstance(constraint, RobustToWeights) and constraint.of is not None:
        return {"kind": kind, "delta": constraint.delta, "relative": constraint.relative,
                "of": constraint_to_dict(constraint.of)}  # fmt: skip
    if isinstance(constraint, RobustToTrees):
        return {"kind": kind, "most": constraint.most, "of": constraint_to_dict(constraint.of)}
    named = {name: getattr(constraint, name) for name in _entries_of(type(constraint))}
    optional = _optional(type(constraint))
    kept = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in named.items()
        if name not in optional or (value is not None and value != _ENDS.get(name))
    }
    return {"kind": kind, **kept}


def _entries_of(kind: type[Any]) -> list[str]:
    """The fields of a constraint that somebody gives."""
    return [field.name for field in fields(kind) if field.name not in _NOT_GIVEN.get(kind, ())]


def _optional(kind: type[Any]) -> list[str]:
    """Those of them that may be left out: they have a default."""
    return [name for name in _entries_of(kind) if kind.__dataclass_fields__[name].default is not MISSING]


def constraint_from_dict(data: Any) -> Any:
    """The inverse of `constraint_to_dict`."""
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping):
        raise QuestionError(f"A constraint is a sentence such as 'Age is fixed', or an object; got {shown(data)}.")
    kind = data.get("kind")
    cls = CONSTRAINTS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise QuestionError(f"There is no kind of constraint {shown(kind)}; the kinds are {', '.join(CONSTRAINTS)}.")
    if cls is Accepted:
        return _accepted(data)
    if cls is AcceptedBySome:
        some = entries(data, "The constraint 'accepted_by_some'", ("kind", "least", "of"))
        if not isinstance(some["of"], list | tuple):
            raise QuestionError(f"The entry 'of' of 'accepted_by_some' must be a list; got {shown(some['of'])}.")
        return AcceptedBySome(some["least"], [_accepted(one) for one in some["of"]])
    optional = _optional(cls)
    names = _entries_of(cls)
    found = entries(data, f"The constraint '{kind}'", ["kind", *(n for n in names if n not in optional)], optional)
    del found["kind"]
    if cls in (RobustToWeights, RobustToTrees) and found.get("of") is not None:
        found["of"] = _accepted(found["of"])
    for name in ("feature", "partner", "text", "definition"):
        if name in found and not isinstance(found[name], str):
            raise QuestionError(
                f"The entry '{name}' of the constraint '{kind}' must be text; got {shown(found[name])}."
            )
    return cls(**found)


def _accepted(data: Any) -> Accepted:
    """A model by its fingerprint or its name, which the explainer knows."""
    found = entries(data, "The constraint 'accepted'", ("kind", "by"), ("name", "target"))
    for name in ("by", "name"):
        if not isinstance(found.get(name, ""), str):
            raise QuestionError(
                f"The entry '{name}' of the constraint 'accepted' must be text; got {shown(found[name])}."
            )
    target = found.get("target")
    return Accepted(
        by=found["by"], target=None if target is None else target_from_dict(target), name=found.get("name", "")
    )
