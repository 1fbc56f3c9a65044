"""The kinds of attack, by name."""

from __future__ import annotations

import random
from typing import Any, Protocol

from benchmarks.attack.asking import Outcome
from benchmarks.attack.kinds import finite

Case = dict[str, Any]


class Kind(Protocol):
    """`make` draws a case, `run` runs one; a case is plain JSON."""

    def make(self, chance: random.Random) -> Case: ...

    def run(self, case: Case) -> Outcome: ...
