"""Sufficient reasons in a certificate: features that, held, leave no favourable row, and rows that show that all of
them are needed.

A *contrast* is an allowed favourable row in which nothing is held. Whatever set of features suffices has one that the
contrast changes. So a reason is minimal if for each of its features some contrast changes this one and no other of
them, and smallest if no set with a feature less has one of the changed features of every contrast.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ...printing import quoted
from ..format import canonical
from .alternatives import read_statements
from .distance import SQUARED
from .reading import CheckBudget, Refusal, entries, listed
from .schema import StatedSchema, read_point
from .statement import Statement

CLAIMS = ("sufficient", "minimal", "smallest")
MAX_CONTRASTS = 10_000


@dataclass(frozen=True, slots=True)
class StatedReason:
    """The features that are held, and what is claimed of them."""

    held: tuple[int, ...]
    names: tuple[str, ...]
    claim: str

    question: str
    """The sha256 of the question with the reason."""

    def held_in(self, free: Sequence[Statement]) -> tuple[Statement, ...]:
        """The question with the features held."""
        fixed = tuple({"kind": "fixed", "feature": name} for name in self.names)
        held = [replace(one, constraints=(*one.constraints, *fixed), question=self.question) for one in free]
        return tuple(one.about(one.factual) for one in held)

    @property
    def words(self) -> str:
        """What is claimed, in a sentence."""
        names = ", ".join(map(quoted, self.names)) or "nothing"
        start = f"Held are {names}, and this decides alone: no row that keeps them is decided otherwise."
        if self.claim == "sufficient":
            return start
        if self.claim == "minimal":
            return f"{start} Each of them is needed: without it, the others leave a row that is decided otherwise."
        return f"{start} Each of them is needed, and no set of fewer features decides alone."


def read_question(
    question: Any, grid: int, cost_grid: int, meter: CheckBudget, planes: Any = None
) -> tuple[tuple[Statement, ...], StatedReason | None]:
    """A question, once for each alternative of its target, in which nothing is held; and the reason, if it has one."""
    if not isinstance(question, dict) or "reason" not in question:
        return read_statements(question, grid, cost_grid, meter, planes), None
    if "causes" in question:
        raise Refusal("a reason has no causes: it is about rows, not about actions")
    own = {key: value for key, value in question.items() if key != "reason"}
    statements = read_statements(own, grid, cost_grid, meter, planes)
    stamp = hashlib.sha256(canonical(question)).hexdigest()
    return statements, _read_reason(question["reason"], statements[0].schema, stamp)


def _read_reason(value: Any, schema: StatedSchema, question: str) -> StatedReason:
    entries(value, "the reason", "held", "claim")
    names = listed(value["held"], "the features that are held")
    if not all(isinstance(name, str) and name in schema.positions for name in names) or len(set(names)) < len(names):
        raise Refusal("the features that are held must be features of the schema, each once")
    if value["claim"] not in CLAIMS:
        raise Refusal(f"a reason is claimed to be {', '.join(CLAIMS)}; not {str(value['claim'])[:60]!r}")
    return StatedReason(tuple(schema.positions[name] for name in names), tuple(names), value["claim"], question)


def check_contrasts(
    reason: StatedReason, free: Sequence[Statement], value: Any, claim: tuple[float | None, float | None]
) -> None:
    """Check the rows that show that all of a reason is needed; `free` is the question with nothing held."""
    lower, upper = claim
    if upper is not None:
        raise Refusal("a reason is about rows that are not there; it names none")
    rows = listed(value, "the contrasts")
    if len(rows) > MAX_CONTRASTS or (rows and reason.claim == "sufficient"):
        raise Refusal(f"there are more than {MAX_CONTRASTS} contrasts, or none are needed")
    changed = []
    for k, row in enumerate(rows):
        point = read_point(free[0].schema, row, "a contrast")
        refusals = [_refusal(one, point, lower) for one in free]
        if all(refusals):
            raise Refusal(f"contrast {k} fails: {refusals[0]}")
        before = free[0].factual
        changed.append(frozenset(g for g, value in enumerate(point) if value != before[g]))
    held = frozenset(reason.held)
    if reason.claim != "sufficient" and not all(any(one & held == {g} for one in changed) for g in held):
        raise Refusal("no contrast shows that each of the held features is needed")
    if reason.claim == "smallest" and _is_met(changed, len(held) - 1, free[0].meter):
        raise Refusal("the contrasts leave open that fewer features decide alone")


def _refusal(statement: Statement, point: tuple[float, ...], lower: float | None) -> str:
    if refusal := statement.allows(point):
        return refusal
    if any(value < 0 for value in statement.conditions(point)):
        return "a condition is missed"
    if lower is not None and statement.cost(point) >= Fraction(lower) ** (2 if statement.norm == SQUARED else 1):
        return f"it is not nearer than {lower!r}"
    return ""


def _is_met(sets: list[frozenset[int]], most: int, meter: CheckBudget) -> bool:
    """Do so many features meet all sets?"""
    if most < 0:
        return False
    waiting: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())]
    while waiting:
        meter.tick()
        chosen, excluded = waiting.pop()
        left = [one - excluded for one in sets if not one & chosen]
        if not left:
            return True
        if len(chosen) == most:
            continue
        smallest = min(left, key=len)
        for g in sorted(smallest):
            waiting.append((chosen | {g}, excluded))
            excluded |= {g}
    return False
