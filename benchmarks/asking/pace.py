"""Budgets are seconds of processor time, so that a busy machine does not make a method fail.

Solvers take limits of wall time. On an idle machine the two are the same; on a busy one a row is given as much more
wall time as the rows before it had to wait for each second of work.
"""

from __future__ import annotations

import os
from pathlib import Path

MEMORY = 0.7
"""How much of what was known stays when a new row is seen."""
MOST = 10.0
WORTH_SECONDS = 0.05
"""Shorter rows say nothing of how busy the machine is."""


class Pace:
    """Wall seconds per processor second, as the last rows had it."""

    def __init__(self) -> None:
        self.slowdown = 1.0

    def see(self, wall: float, cpu: float) -> None:
        """Learn from a row."""
        if cpu > WORTH_SECONDS:
            now = min(max(wall / cpu, 1.0), MOST)
            self.slowdown = MEMORY * self.slowdown + (1.0 - MEMORY) * now

    def wall(self, budget: float | None) -> float | None:
        """Wall seconds for a budget of processor time."""
        return None if budget is None else budget * self.slowdown


PACE = Pace()


def cpu_seconds_of(pid: int) -> float | None:
    """What a running process has spent so far; None where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
