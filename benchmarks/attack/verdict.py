"""What is false about an answer, in sentences; none where it is right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from benchmarks.attack import target
from benchmarks.attack.constraints import Constraint, allows, nearly
from benchmarks.attack.space import Row, belongs
from benchmarks.attack.world import World

RELATIVE = 1e-9
"""Two ways to add up a distance may differ by this much."""
GAP = 1e-6

Rows = Sequence[tuple[Fraction, Row]]


def wrong(
    world: World, answer: Any, near: Rows | None, constraints: Sequence[Constraint] | None = None
) -> Iterator[str]:
    """Faults of an answer; `near` are all favourable rows, nearest first, or None where nobody can list them."""
    held = world.constraints if constraints is None else constraints
    if answer.status not in ("nearest", "none exists", "within", "unknown"):
        yield f"status {answer.status}: {answer.note}"
        return
    if math.isnan(answer.lower) or math.isnan(answer.upper) or answer.lower > answer.upper:
        yield f"bounds [{answer.lower!r}, {answer.upper!r}]"
    if answer.counterfactual is not None:
        yield from wrong_row(world, answer, held)
    elif answer.status in ("nearest", "within"):
        yield f"{answer.status} without a row"
    if answer.status == "nearest" and answer.upper - answer.lower > GAP * answer.upper * (1 + RELATIVE):
        yield f"nearest with a gap from {answer.lower!r} to {answer.upper!r}"
    if world.settled and (answer.status != "nearest" or answer.upper != 0 or answer.changes):
        yield f"decided as asked already, but {answer.status} at {answer.upper!r}"
    if near:
        yield from wrong_bound(world, answer, near)


def wrong_bound(world: World, answer: Any, near: Rows) -> Iterator[str]:
    """Is a favourable row nearer than what is called proven? `lower` is about rows that every rounding accepts."""
    size, row = near[0]
    best = world.shown(size)
    if answer.status == "none exists":
        yield f"none exists, but {row} at {best!r}"
        return
    lower_any_rounding = answer.lower_any_rounding
    if (
        answer.counterfactual is None and answer.stop.by.value == "rounding"
    ):  # no row is left that every rounding accepts
        lower_any_rounding = answer.lower
    if lower_any_rounding is not None and lower_any_rounding > best * (1 + RELATIVE) + 1e-300:
        yield f"{answer.status}, under no rounding nearer than {lower_any_rounding!r}, but {row} at {best!r}"
    sure = next(((size, row) for size, row in near if world.sure(row, answer.rounding_bound)), None)
    if sure is not None and answer.lower > world.shown(sure[0]) * (1 + RELATIVE) + 1e-300:
        yield f"{answer.status}, nothing nearer than {answer.lower!r}, but {sure[1]} at {world.shown(sure[0])!r}"


def wrong_row(world: World, answer: Any, held: Sequence[Constraint]) -> Iterator[str]:
    """Is the counterfactual a row, allowed, decided as asked, and as far as it says?"""
    names = [feature["name"] for feature in world.features]
    if list(answer.counterfactual) != names:
        yield f"a row of {list(answer.counterfactual)}"
        return
    row = tuple(answer.counterfactual[name] for name in names)
    for feature, value in zip(world.features, row, strict=True):
        if not belongs(feature, value):
            yield f"{feature['name']} = {value!r} does not belong to it"
            return
    settled = row == world.row and world.settled
    for constraint in held:
        if not settled and not _kept(constraint, world, row):
            yield f"{row} breaks {constraint}"
    scores = world.deployed.scores(row)
    if not settled and not target.met(world.target, scores, world.decided):
        yield f"{row} is refused: scores {scores} for {world.target}"
    distance = world.shown(world.size(row))
    if not math.isclose(distance, answer.upper, rel_tol=RELATIVE, abs_tol=1e-300):
        yield f"{row} is at {distance!r}, not at {answer.upper!r}"
    changed = [name for name, a, b in zip(names, world.row, row, strict=True) if a != b]
    if [change.feature for change in answer.changes] != changed:
        yield f"changes {answer.changes} between {world.row} and {row}"


def _kept(constraint: Constraint, world: World, row: Row) -> bool:
    if constraint["is"] in ("steps", "by", "percent"):
        at = next(i for i, f in enumerate(world.features) if f["name"] == constraint["of"])
        if world.features[at]["kind"] == "real":
            return nearly(constraint, world.features[at], world.row[at], row[at])
    return allows(constraint, world.features, world.row, row)
