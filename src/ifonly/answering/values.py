"""What is asked, of whom, and what is found: the values that the loops of this package pass around.

All of it is about points, in the order of the schema's features; the user's own values appear only at the door.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Distance, OpenTarget, Target
from ifonly.problem.rules import AnyConstraint
from ifonly.problem.target import Words
from ifonly.results import Claim, Limits, Listener, Method, Stop, Witness
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]


class CheckedResult(NamedTuple):
    """What is known of one person: a claim, the check of its row, and what else is left unproven."""

    claim: Claim
    witness: Witness | None
    left: Stop | None = None
    breaks: tuple[str, ...] = ()
    """Of someone who has what is asked already: the constraints that the row as it stands breaks."""

    @property
    def lower(self) -> float:
        """Nothing nearer exists."""
        return self.claim.lower

    @property
    def upper(self) -> float:
        """The distance of the row; infinity without one."""
        return math.inf if self.witness is None else self.witness.distance

    @property
    def stop(self) -> Stop | None:
        """What stopped it, if anything did."""
        return self.left or self.claim.stop

    @property
    def none_exists(self) -> bool:
        """Is it proven that there is no row?"""
        return self.witness is None and self.claim.lower == math.inf and self.claim.stop is None

    def is_nearest(self, tolerances: Tolerances) -> bool:
        """Is there a row that is proven to be the nearest?"""
        return self.witness is not None and self.left is None and tolerances.close(self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target of some people: its name, its words, the plain targets that meet it, and the open one that it may be."""

    name: str
    words: Words
    alternatives: tuple[Target, ...]
    target: OpenTarget | None = None
    now: int = 0
    """The class that these people have (for open targets)."""
    other: bool = False
    """It is the class, of two, that these people do not have: nobody has it already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuery:
    """A query as it is put to a method: its constraints are those that hold for everybody and those of the query."""

    target: Target | OpenTarget | None
    distance: Distance
    constraints: tuple[AnyConstraint, ...]
    words: tuple[str, ...]
    """The constraints of the query, as its answers repeat them."""
    fewest_first: bool
    method: Method
    limits: Limits
    listen: Listener | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """People who ask the same: their points, and the model's own scores and classes of these."""

    points: Floats
    scores: Floats
    decided: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.points)

    def part(self, members: Sequence[int]) -> Batch:
        """Only these people, given in order."""
        if len(members) == len(self):
            return self
        chosen = list(members)
        return Batch(points=self.points[chosen], scores=self.scores[chosen], decided=self.decided[chosen])


def uncounted(listen: Listener | None) -> Listener | None:
    """A listener to a part of the work on some people, after which none of them is finished."""
    if listen is None:
        return None
    with_progress = listen
    return lambda event: with_progress(replace(event, finished=0))


def shifted(listen: Listener | None, finished: int, people: int) -> Listener | None:
    """A listener that counts over all groups of people, not one."""
    if listen is None:
        return None
    with_progress = listen
    return lambda event: with_progress(replace(event, finished=finished + event.finished, people=people))


def distinct(points: Floats) -> tuple[Floats, list[int]]:
    """Distinct rows in order of first appearance, and for each row which of them it is."""
    if len(points) == 1:
        return points, [0]
    whole = np.ascontiguousarray(points)
    keys = whole.view(f"V{whole.shape[1] * whole.itemsize}").ravel().tolist() if len(whole) else []
    seen: dict[bytes, int] = {}
    inverse = [seen.setdefault(key, len(seen)) for key in keys]
    if len(seen) == len(whole):
        return points, inverse
    first = {k: i for i, k in reversed(list(enumerate(inverse)))}
    return points[[first[k] for k in range(len(seen))]], inverse
