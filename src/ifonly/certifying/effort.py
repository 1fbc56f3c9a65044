"""How much is done for a proof: what is verified before it is written, and what that may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ifonly.certificate.check.reading import CheckBudget
from ifonly.errors import UnsupportedQuestion
from ifonly.resources import LimitReached, check_limits, limited
from ifonly.results.claim import Limits


class Verification(Enum):
    """Which leaves of floating point the checker looks at, before they are written."""

    NONE = "none"
    DOUBTFUL = "doubtful"
    """Those that were closed by a narrow margin, and every one of a small tree."""
    ALL = "all"


class Effort(NamedTuple):
    """What is verified; and how many splits there may be beyond the search's own nodes (None: as many as it takes)."""

    verify: Verification = Verification.DOUBTFUL
    nodes: int | None = None

    def check_splits(self, splits: int) -> None:
        if self.nodes is not None and splits > self.nodes:
            raise LimitReached("nodes")


USUAL = Effort()


@dataclass
class ProofBudget(CheckBudget):
    """Budget of the checker's arithmetic while a proof is written: it keeps to the limits around the call."""

    kept: int = 0
    """Bits."""

    def tick(self) -> None:
        check_limits()

    def keep(self, bits: int) -> None:
        self.kept += bits
        check_limits(self.kept // 8)


@contextmanager
def within_limits(limits: Limits, spent: float = 0.0) -> Iterator[None]:
    """What is done inside keeps to the limits, of which so many seconds are spent, or ends in a sentence."""
    try:
        with limited(limits.after(spent).seconds, limits.memory_bytes):
            yield
    except LimitReached as reached:
        raise UnsupportedQuestion(
            f"The proof could not be written out within the {limits.stop(reached).words()}; raise it, or ask "
            "`explain`, which gives the answer without proof."
        ) from None
