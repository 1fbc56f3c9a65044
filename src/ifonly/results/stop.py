"""Termination reasons: what stopped a search, each with its cause and its remedy in words.

A method says what stopped it as a value; nothing looks into a sentence. That a search ran to its end is no stop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, assert_never

from ifonly.errors import QuestionError
from ifonly.printing import shown

TOO_CLOSE = "the scores of nearer rows are too close to the margin for float64 to tell"
REFUSAL = "the model refuses a row that the imported one accepts by more than rounding explains"


class StoppedBy(Enum):
    """What can stop a search before its bounds meet. `amount` of a `Stop` is in the unit named here."""

    SECONDS = "seconds"
    """The time limit, in seconds."""
    NODES = "nodes"
    """The limit on nodes."""
    MEMORY = "memory"
    """The limit on memory, in bytes."""
    QUESTIONS = "questions"
    """As many questions as may be asked to explain one answer."""
    STEPS = "steps"
    """As many distances as may be tried."""
    GAP = "gap"
    """The gap that the method itself is set to close."""
    ROUNDING = "rounding"
    """No row is accepted under any rounding: the scores of those left are within E (the amount) of the margin."""
    CLOSE = "close"
    """Nearer rows have scores that float64, in which the search computes, cannot tell from what they must reach."""
    EDGE = "edge"
    """Nearer rows lie on the edge of a rule about real numbers, and float64 cannot tell on which side."""
    BOUND = "bound"
    """Nearer rows may be accepted by all networks within a distance of the weights: a bound does not decide it."""
    TOLERANCES = "tolerances"
    """A solver's own tolerances."""
    REFUSED = "refused"
    """The user's model refuses a row that the imported model accepts; the amount is a margin that avoids it."""
    TROUBLE = "trouble"
    """A solver met numerical trouble."""
    UNDECIDED = "undecided"
    """A solver does not know; `detail` is its own word."""
    INTERRUPTED = "interrupted"
    """Another thread failed, or the user interrupted it."""
    FEWER = "fewer"
    """Fewer changes than the amount were not ruled out; `cause` says why."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What stopped a search, and the number that decided. `detail` is a precision or a solver's own word."""

    by: StoppedBy
    amount: float | None = None
    detail: str = ""
    cause: Stop | None = None

    @property
    def is_limit(self) -> bool:
        """Was it a limit that the user can raise?"""
        limits = (StoppedBy.SECONDS, StoppedBy.NODES, StoppedBy.MEMORY, StoppedBy.QUESTIONS, StoppedBy.STEPS)
        return self.by in limits or (self.cause is not None and self.cause.is_limit)

    def words(self, *, row: bool = True) -> str:
        """What happened and what to do about it; `row`: was a row found?"""
        amount = self.amount or 0.0
        match self.by:
            case StoppedBy.SECONDS:
                return f"time limit of {amount:g} s"
            case StoppedBy.NODES:
                return f"node limit of {amount:.0f}"
            case StoppedBy.MEMORY:
                return f"memory limit of {amount / 2**20:,.0f} MiB"
            case StoppedBy.QUESTIONS:
                return f"more than {amount:.0f} questions"
            case StoppedBy.STEPS:
                return f"the nearest distance was not found in {amount:.0f} steps; ask for a larger gap"
            case StoppedBy.GAP:
                return f"the method's own gap of {amount:g} was reached"
            case StoppedBy.ROUNDING:
                return self._rounding()
            case StoppedBy.CLOSE:
                return f"{TOO_CLOSE}; narrow the schema's bounds"
            case StoppedBy.EDGE:
                return "nearer rows lie on the edge of a rule, and float64 cannot tell on which side of it"
            case StoppedBy.BOUND:
                return "whether all networks within that distance accept a nearer row could not be decided"
            case StoppedBy.TOLERANCES:
                return "the solver's tolerances leave this gap; use the search"
            case StoppedBy.REFUSED:
                return f"{REFUSAL}; ask for a larger margin, such as {amount:g}"
            case StoppedBy.TROUBLE:
                return "the solver met numerical trouble; use another method"
            case StoppedBy.UNDECIDED:
                return f"the solver does not know ({self.detail})"
            case StoppedBy.INTERRUPTED:
                return "interrupted"
            case StoppedBy.FEWER:
                why = "" if self.cause is None else f": {self.cause.words(row=row)}"
                return f"fewer than {amount:.0f} changes were not ruled out{why}"
            case _:
                assert_never(self.by)

    def _rounding(self) -> str:
        """The words for what rounding leaves open."""
        remedy = "import the model in float64" if self.detail == "float32" else "narrow the schema's bounds"
        return (
            f"the scores of the rows left are within {self.amount or 0.0:.2g} of the margin, where rounding in "
            f"{self.detail or 'float64'} may decide either way; to tell them apart, {remedy}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        cause = None if self.cause is None else self.cause.to_dict()
        amount = "infinity" if self.amount == math.inf else self.amount
        return {"by": self.by.value, "amount": amount, "detail": self.detail, "cause": cause}

    @classmethod
    def from_dict(cls, data: Any) -> Stop:
        """The inverse of `to_dict`."""
        if not isinstance(data, Mapping) or set(data) != {"by", "amount", "detail", "cause"}:
            raise QuestionError(
                f"What stopped a search has the entries by, amount, detail and cause; got {shown(data)}."
            )
        if not isinstance(data["by"], str) or data["by"] not in [one.value for one in StoppedBy]:
            raise QuestionError(f"Nothing is stopped by {shown(data['by'])}.")
        amount, detail = data["amount"], data["detail"]
        if amount == "infinity":
            amount = math.inf
        elif amount is not None and (isinstance(amount, bool) or not isinstance(amount, int | float)):
            raise QuestionError(f"The amount that stopped a search is a number; got {shown(amount)}.")
        elif amount is not None and not math.isfinite(amount):
            raise QuestionError(f"The amount that stopped a search is finite, or the text 'infinity'; got {amount}.")
        if not isinstance(detail, str):
            raise QuestionError(f"The detail of what stopped a search is a text; got {shown(detail)}.")
        cause = None if data["cause"] is None else cls.from_dict(data["cause"])
        return cls(StoppedBy(data["by"]), amount, detail, cause)
