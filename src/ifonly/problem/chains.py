"""Chains of models: at least k of several must accept; and models that a query refers to by name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from ifonly.errors import QuestionError, UnsupportedQuestion, located
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.disjunctions import Alternative, Floats, Ordinary, PersonContext
from ifonly.problem.robust import RobustToWeights
from ifonly.problem.robust_trees import RobustToTrees
from ifonly.problem.words import suggestion
from ifonly.schema import Schema
from ifonly.schema.arguments import items
from ifonly.schema.values import plain

MOST_ALTERNATIVES = 500
"""Ways to choose the models that accept: each is a search of its own."""
ACCEPTS = re.compile(
    r"""\s*(['"]?)(?P<name>.+?)\1\s+accepts(?P<lost>\s+without\s+any\s+(?:tree|(?P<most>\d{1,9})\s+trees?))?\s*"""
)
SOME_ACCEPT = re.compile(r"\s*at\s+least\s+(?P<least>\d{1,9})\s+of\s+(?P<names>.+?)\s+accept\s*")


@dataclass(frozen=True)
class AcceptedBySome:
    """At least `least` of these models must accept: `AcceptedBySome(2, of=[Accepted(...), Accepted(...), ...])`."""

    least: int
    of: Sequence[Accepted]

    def __post_init__(self) -> None:
        found, least = items(self.of), plain(self.least)
        if found is None or not found or not all(isinstance(one, Accepted) for one in found):
            raise QuestionError(
                f"Give the models as a list such as [Accepted(by=..., target=...)]; got {shown(self.of)}."
            )
        if isinstance(least, bool) or not isinstance(least, int) or not 1 <= least <= len(found):
            raise QuestionError(
                f"Of {len(found)} models, at least 1 and at most {len(found)} can be asked to accept; got "
                f"{shown(self.least)}."
            )
        if math.comb(len(found), least) > MOST_ALTERNATIVES:
            raise QuestionError(
                f"There are {math.comb(len(found), least):,} ways to choose {least} of {len(found)} models, each a "
                f"search of its own; at most {MOST_ALTERNATIVES} are searched."
            )
        object.__setattr__(self, "of", tuple(found))
        object.__setattr__(self, "least", least)

    def check(self, schema: Schema) -> None:
        for one in self.of:
            one.check(schema)

    def bound(self, schema: Schema) -> AcceptedBySome:
        """The same with the models imported."""
        return AcceptedBySome(self.least, [one.bound(schema) for one in self.of])

    def holds(self, context: PersonContext, after: Floats) -> bool:
        return sum(bool(one.accepts(context.schema, after[None, :])[0]) for one in self.of) >= self.least

    def holds_unchanged(self, context: PersonContext) -> bool:
        """Do so many accept the person's own row?"""
        own = context.before[None, :]
        return sum(bool(one.accepts_unchanged(context.schema, own)[0]) for one in self.of) >= self.least

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        for some in combinations(self.of, self.least):
            if not set(some) <= set(chosen):
                yield Alternative(0.0, some)  # type: ignore[arg-type]

    def describe(self) -> str:
        return f"at least {self.least} of {', '.join(one.name for one in self.of)} accept"


def each_choice(constraints: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The constraints, once for each way to choose the models that `AcceptedBySome` leaves open."""
    ways: list[list[tuple[Any, ...]]] = [
        list(combinations(one.of, one.least)) if isinstance(one, AcceptedBySome) else [(one,)] for one in constraints
    ]
    count = math.prod(map(len, ways))
    if count > MOST_ALTERNATIVES:
        raise UnsupportedQuestion(
            f"There are {count:,} ways to choose the models that accept; at most {MOST_ALTERNATIVES} are searched."
        )
    return [tuple(dict.fromkeys(one for part in way for one in part)) for way in product(*ways)]


def named_models(constraints: Iterable[Any], known: Mapping[str, Accepted]) -> tuple[Any, ...]:
    """The constraints with the models that they refer to by name ("fraud check accepts") or by fingerprint."""
    result = []
    for i, one in enumerate(constraints):
        with located("constraints", i):
            result.append(_named(one, known))
    return tuple(result)


def _named(one: Any, known: Mapping[str, Accepted]) -> Any:
    if isinstance(one, Accepted) and isinstance(one.by, str):
        found = known.get(one.by) or known.get(one.name) or _by_fingerprint(one.by, known)
        return one if found is None else replace(found, target=found.target if one.target is None else one.target)
    if isinstance(one, RobustToWeights | RobustToTrees) and one.of is not None:
        return replace(one, of=_named(one.of, known))
    if isinstance(one, AcceptedBySome):
        return AcceptedBySome(one.least, [_named(each, known) for each in one.of])
    if not isinstance(one, str):
        return one
    if match := SOME_ACCEPT.fullmatch(one):
        names = [name.strip(" '\"") for name in match["names"].split(",")]
        return AcceptedBySome(int(match["least"]), [_of_name(name, known) for name in names])
    if (match := ACCEPTS.fullmatch(one)) and (known or "'" in one or '"' in one):
        accepted = _of_name(match["name"], known)
        return RobustToTrees(int(match["most"] or 1), of=accepted) if match["lost"] else accepted
    return one


def _of_name(name: str, known: Mapping[str, Accepted]) -> Accepted:
    spaced = " ".join(name.split())
    if spaced in known:
        return known[spaced]
    if not known:
        return Accepted(by=spaced)
    raise QuestionError(f"No model is known as '{spaced}'; {suggestion(spaced, tuple(known))}")


def _by_fingerprint(text: str, known: Mapping[str, Accepted]) -> Accepted | None:
    return next((one for one in known.values() if one.fingerprint == text), None)
