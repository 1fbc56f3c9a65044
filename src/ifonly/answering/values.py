"""Value objects of the answering layer: settings of a search, batches of people, resolved targets, checked results.

All of them are about points, in the order of the schema's features; the user's own values appear only in answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import OpenTarget, Target
from ifonly.problem.target import Words
from ifonly.results import Claim, Limits, Listener, Method, Stop
from ifonly.tolerances import Tolerances

Floats = NDArray[np.float64]


class CheckedResult(NamedTuple):
    """What is known of one person: a method's claim, and the check of its row by the user's own model."""

    claim: Claim
    upper: float = math.inf
    """The distance of the row, computed anew; infinity without one."""
    scores: Floats | None = None
    """The model's own scores of the row."""
    left: Stop | None = None
    """What else is left unproven."""
    breaks: tuple[str, ...] = ()
    """Of a person who meets the target already: the constraints that the unchanged row breaks."""

    @property
    def point(self) -> Floats | None:
        """The row, if there is one."""
        return self.claim.point

    @property
    def lower(self) -> float:
        """Nothing nearer exists."""
        return self.claim.lower

    @property
    def stop(self) -> Stop | None:
        """What stopped it, if anything did."""
        return self.left or self.claim.stop

    @property
    def none_exists(self) -> bool:
        """Is it proven that there is no row?"""
        return self.point is None and self.lower == math.inf and self.claim.stop is None

    def is_nearest(self, tolerances: Tolerances) -> bool:
        """Is there a row that is proven to be the nearest?"""
        return self.point is not None and self.left is None and tolerances.close(self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target as it applies to people of one class: its name, its wording, and the plain targets that meet it."""

    name: str
    words: Words
    alternatives: tuple[Target, ...]
    target: OpenTarget | None = None
    """The open target that the alternatives stand for, if it is one."""
    now: int = 0
    """The present class of these people (for open targets)."""
    other: bool = False
    """It is the other one of two classes: nobody meets it already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How a query is answered. `limits` are per row; `listen` is called with the progress; `reasons`: say why where no
    row exists."""

    method: Method
    limits: Limits
    threads: int = 1
    listen: Listener | None = None
    reasons: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """People with the same query: their points, and the model's own scores and classes of these."""

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
    inner = listen
    return lambda event: inner(replace(event, finished=0))


def shifted(listen: Listener | None, finished: int, people: int) -> Listener | None:
    """A listener that counts over all groups of people, not one."""
    if listen is None:
        return None
    inner = listen
    return lambda event: inner(replace(event, finished=finished + event.finished, people=people))


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
