"""The query: target, distance and constraints, as one value.

The same value is made from the arguments of a call, from the options of a command, from a file and from a request; it
depends neither on the model nor on the person. `to_dict` and `from_dict` are its form as plain data.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ifonly.caching import cached_property
from ifonly.errors import QuestionError, located
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.chains import AcceptedBySome
from ifonly.problem.distance import Distance, Norm
from ifonly.problem.open_target import OpenTarget
from ifonly.problem.plain_data import (
    constraint_from_dict,
    constraint_to_dict,
    distance_from_dict,
    entries,
    target_from_dict,
)
from ifonly.problem.robust import RobustToWeights
from ifonly.problem.robust_trees import RobustToTrees
from ifonly.problem.rules import AnyConstraint, Rule, read_constraint
from ifonly.problem.target import ClassTarget, Target
from ifonly.schema import Schema
from ifonly.schema.arguments import items, true_or_false
from ifonly.schema.number_text import DecimalMark

NAMED = {norm.value: Distance(norm.value) for norm in Norm}
"""The distances that need no more than a name: every call without a query makes one."""
MODELS = Accepted | AcceptedBySome | RobustToTrees | RobustToWeights
"""Constraints that other models decide about, which are imported first."""
MOST_PLAIN = 1 << 16
"""Characters of a query that is written beside its answers; of a longer one, the fingerprint is."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which decision, nearest in which distance, under which constraints.

    `target` is a class's name or a target such as ProbabilityTarget; None asks for the other of two classes.
    `constraints` are objects such as Fixed("Age"), or words such as "Age is fixed". `fewest_first`: as few changes as
    possible, and the nearest row among those.
    """

    target: Any = None
    distance: str | Mapping[str, float] | Distance = "l1"
    constraints: Sequence[Any] = ()
    fewest_first: bool = False

    def __post_init__(self) -> None:
        if self.target is not None and not isinstance(self.target, Target | OpenTarget):
            object.__setattr__(self, "target", ClassTarget(self.target))
        if not isinstance(self.distance, Distance):
            named = NAMED.get(self.distance) if isinstance(self.distance, str) else None
            object.__setattr__(self, "distance", named or Distance(self.distance))
        object.__setattr__(self, "constraints", _constraints(self.constraints))
        for name in FLAGS:
            object.__setattr__(self, name, true_or_false(getattr(self, name), name))

    @property
    def measure(self) -> Distance:
        """The distance, as the value that it is."""
        assert isinstance(self.distance, Distance)
        return self.distance

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The constraints, as answers repeat them."""
        return tuple(one if isinstance(one, str) else one.describe() for one in self.constraints)

    @property
    def distance_name(self) -> str:
        return f"fewest changes, then {self.measure.name}" if self.fewest_first else self.measure.name

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "target": None if self.target is None else self.target.to_dict(),
            "distance": self.measure.to_dict(),
            "constraints": [constraint_to_dict(one) for one in self.constraints],
            **{name: getattr(self, name) for name in FLAGS},
        }

    @classmethod
    def from_dict(cls, data: Any) -> Query:
        """The inverse of `to_dict`. What is left out has its default; what is not known is refused."""
        found = entries(data, "A query", (), [one.name for one in fields(cls)])
        target, distance = found.get("target"), found.get("distance", "l1")
        constraints = found.get("constraints", [])
        with located("constraints"):
            if not isinstance(constraints, list | tuple):
                raise QuestionError(f"The entry 'constraints' of a query must be a list; got {shown(constraints)}.")
        with located("target"):
            target = None if target is None else target_from_dict(target)
        with located("distance"):
            distance = distance_from_dict(distance)
        read = []
        for i, one in enumerate(constraints):
            with located("constraints", i):
                read.append(constraint_from_dict(one))
        flags = {name: found[name] for name in FLAGS if name in found}
        return cls(target=target, distance=distance, constraints=read, **flags)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


FLAGS = tuple(one.name for one in fields(Query) if one.type == "bool")
"""The fields of a query that are true or false: in plain data, in options and in requests without further code."""


def plain_query(query: Query) -> dict[str, Any]:
    """The query as plain data of a bounded size that identifies it; what has no JSON form is described in words."""
    try:
        data = query.to_dict()
    except QuestionError:
        data = {**replace(query, constraints=()).to_dict(), "constraints": list(map(_identified, query.constraints))}
    text = json.dumps(data, sort_keys=True)
    return data if len(text) <= MOST_PLAIN else {"sha256": hashlib.sha256(text.encode("utf-8")).hexdigest()}


def _identified(constraint: Any) -> Any:
    try:
        return constraint_to_dict(constraint)
    except QuestionError:
        return [constraint.describe(), hashlib.sha256(pickle.dumps(constraint)).hexdigest()]


def _constraints(constraints: Any) -> tuple[Any, ...]:
    given = items(constraints)
    if given is None:
        raise QuestionError(f"Give constraints as a list, such as [Fixed('Age')]; got {shown(constraints)}.")
    for one in given:
        if not isinstance(one, str) and (isinstance(one, type) or not hasattr(one, "describe")):
            raise QuestionError(f"A constraint is an object such as Fixed('Age'), or words; got {shown(one)}.")
        for name in (getattr(one, word, "") for word in ("feature", "partner")):
            if not isinstance(name, str):
                raise QuestionError(f"A constraint names its feature by a text; {shown(name)} names none.")
    return given


def read_constraints(
    constraints: Any, schema: Schema, mark: DecimalMark = DecimalMark.POINT
) -> tuple[AnyConstraint, ...]:
    """Constraints as objects, also those given in words, by the decimal mark of whoever wrote them."""
    read: list[Any] = []
    for i, one in enumerate(_constraints(constraints)):
        with located("constraints", i):
            if isinstance(one, Rule) and mark is not DecimalMark.POINT:
                read_constraint(one.text, schema, mark)
            one = read_constraint(one, schema, mark) if isinstance(one, str) else one
            read.append(one.bound(schema) if isinstance(one, MODELS) else one)
    return tuple(read)


def checked_constraints(constraints: Any, schema: Schema) -> tuple[AnyConstraint, ...]:
    """The constraints of a query as objects that fit the schema; an error says which of them does not."""
    read = read_constraints(constraints, schema)
    for i, one in enumerate(read):
        with located("constraints", i):
            if hasattr(one, "check"):
                one.check(schema)
    return read


def query_of(query: Any, target: Any = None, distance: Any = None, constraints: Any = ()) -> Query:
    """A query with the parts that are given beside it: they replace its own, and constraints are added to its own."""
    parts = Query(target=target, distance="l1" if distance is None else distance, constraints=constraints)
    if query is None:
        return parts
    if not isinstance(query, Query):
        raise QuestionError(f"A query is a Query(target=..., distance=..., constraints=...); got {shown(query)}.")
    return replace(
        query,
        target=query.target if target is None else parts.target,
        distance=query.distance if distance is None else parts.distance,
        constraints=(*query.constraints, *parts.constraints),
    )
