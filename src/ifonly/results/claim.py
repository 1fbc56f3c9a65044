"""The interface of methods: limits, progress, and claims, which are not checked yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, assert_never

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem import Question
from ifonly.resources import LimitReached
from ifonly.results.stop import Stop, StoppedBy
from ifonly.schema.values import plain
from ifonly.tolerances import DEFAULT, Tolerances

NO_TIME = 1e-9
"""Seconds: a limit is never 0."""
MOST = 2**62
"""A limit on nodes or bytes that nothing reaches: more cannot be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one person's search may spend. None means no limit."""

    seconds: float | None = None
    nodes: int | None = None
    memory_bytes: int | None = 2**30

    def __post_init__(self) -> None:
        for name in ("seconds", "nodes", "memory_bytes"):
            value = plain(getattr(self, name))
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise QuestionError(f"The limit '{name}' must be a positive number; it is {shown(value)}.")
            object.__setattr__(self, name, value if name == "seconds" else int(min(value, MOST)))

    def reached(self, *, seconds: float = 0.0, nodes: int = 0) -> Stop | None:
        """Which limit so much is beyond, if any."""
        if self.seconds is not None and seconds >= self.seconds:
            return Stop(StoppedBy.SECONDS, self.seconds)
        return Stop(StoppedBy.NODES, self.nodes) if self.nodes is not None and nodes >= self.nodes else None

    def after(self, seconds: float, nodes: int = 0) -> Limits:
        """What is left of them after so many seconds and nodes."""
        left = self if self.nodes is None or nodes <= 0 else replace(self, nodes=max(self.nodes - nodes, 1))
        if left.seconds is None or seconds <= 0.0:
            return left
        return replace(left, seconds=max(left.seconds - seconds, NO_TIME))

    def stop(self, reached: LimitReached) -> Stop:
        """What stops a search that reaches a limit while it is prepared."""
        match reached.resource:
            case "seconds":
                return Stop(StoppedBy.SECONDS, self.seconds)
            case "memory":
                return self.memory
            case "nodes":
                return Stop(StoppedBy.NODES, self.nodes)
            case _:
                assert_never(reached.resource)

    @property
    def memory(self) -> Stop:
        """What stops a search that runs out of memory."""
        return Stop(StoppedBy.MEMORY, self.memory_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a search has come: every favourable row is at least `lower` away, one at `upper` is known."""

    finished: int
    """People answered so far; the other fields speak of one who is not."""
    people: int
    radius: float = 0.0
    nodes: int = 0
    lower: float = 0.0
    upper: float = math.inf
    seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Of a run through a table: the answers so far by status, of earlier runs too; `rate` is rows per second."""
    rate: float = 0.0


Listener = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """No allowed favourable row is nearer than `lower`; `point`, if any, is one. `stop` is what stopped the method.

    Favourable is a row whose exact score is at least `rounding_bound` above the margin, which is as much as the
    deployed model can lose at `point` by rounding: the model accepts such a row in whatever order it adds up. Rows
    below that may be accepted under some roundings; nothing nearer than `lower_any_rounding` is, where that is known.
    `lower` = infinity claims that no row is accepted under any rounding. The distance of `point` is recomputed, not
    claimed.
    """

    point: NDArray[np.float64] | None
    lower: float
    method: str
    stop: Stop | None = None
    nodes: int = 0
    seconds: float = 0.0
    record: Any = None
    rounding_bound: float = 0.0
    lower_any_rounding: float | None = None

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or self.lower < 0.0:
            raise ValueError(f"A lower bound of {self.lower} on a distance is a bug.")


class Solver(Protocol):
    """A method prepared for one question: answers any number of people."""

    def solve(
        self, points: NDArray[np.float64], limits: Limits, *, threads: int = 1, listen: Listener | None = None
    ) -> Sequence[Claim]: ...


class Method(Protocol):
    """A way of answering: a small frozen object that prepares itself for a question.

    It may also have `refuses(question)`, which says why it cannot take a question (another kind of model, for
    instance), or nothing when it can.
    """

    @property
    def name(self) -> str: ...

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> Solver: ...
