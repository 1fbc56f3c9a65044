"""How much is done for a proof: what is verified before it is written, and until when."""

from __future__ import annotations

import math
import time
from enum import Enum
from typing import NamedTuple


class Verify(Enum):
    """Which leaves of floating point the checker looks at, before they are written."""

    NONE = "none"
    DOUBTFUL = "doubtful"
    """Those that were closed by a narrow margin, and every one of a small tree."""
    ALL = "all"


class OutOfTime(Exception):
    """The time for writing a proof is over."""


class Effort(NamedTuple):
    """`until` is in the seconds of `time.perf_counter`."""

    verify: Verify = Verify.DOUBTFUL
    until: float = math.inf

    def check_time(self) -> None:
        if time.perf_counter() > self.until:
            raise OutOfTime


USUAL = Effort()
