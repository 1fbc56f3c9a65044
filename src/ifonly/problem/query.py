"""The query: what is asked about a person, as one value.

The same value is made from the arguments of a call, from the options of a command, from a file and from a request; it
knows neither the model nor the person. `to_dict` and `from_dict` are its form as plain data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ifonly.errors import QuestionError
from ifonly.problem.distance import Distance
from ifonly.problem.plain_data import (
    constraint_from_dict,
    constraint_to_dict,
    distance_from_dict,
    entries,
    target_from_dict,
)
from ifonly.problem.target import ClassTarget, OpenTarget, Target

ENTRIES = ("target", "distance", "constraints", "fewest_first")


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
            object.__setattr__(self, "distance", Distance(self.distance))
        object.__setattr__(self, "constraints", _constraints(self.constraints))
        if not isinstance(self.fewest_first, bool):
            raise QuestionError(f"'fewest_first' is True or False; got {self.fewest_first!r}.")

    @property
    def measure(self) -> Distance:
        """The distance, as the value that it is."""
        assert isinstance(self.distance, Distance)
        return self.distance

    @property
    def distance_name(self) -> str:
        return f"fewest changes, then {self.measure.name}" if self.fewest_first else self.measure.name

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "target": None if self.target is None else self.target.to_dict(),
            "distance": self.measure.to_dict(),
            "constraints": [constraint_to_dict(one) for one in self.constraints],
            "fewest_first": self.fewest_first,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Query:
        """The inverse of `to_dict`. What is left out has its default; what is not known is refused."""
        found = entries(data, "A query", (), ENTRIES)
        target, distance = found.get("target"), found.get("distance", "l1")
        constraints = found.get("constraints", [])
        if not isinstance(constraints, list | tuple):
            raise QuestionError(f"The entry 'constraints' of a query must be a list; got {constraints!r}.")
        return cls(
            target=None if target is None else target_from_dict(target),
            distance=distance_from_dict(distance),
            constraints=tuple(constraint_from_dict(one) for one in constraints),
            fewest_first=found.get("fewest_first", False),
        )

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)


def _constraints(constraints: Any) -> tuple[Any, ...]:
    if isinstance(constraints, str) or not isinstance(constraints, Iterable):
        raise QuestionError(f"Give constraints as a list, such as [Fixed('Age')]; got {constraints!r}.")
    read = tuple(constraints)
    for one in read:
        if not isinstance(one, str) and (isinstance(one, type) or not hasattr(one, "describe")):
            raise QuestionError(f"A constraint is an object such as Fixed('Age'), or words; got {one!r}.")
    return read
