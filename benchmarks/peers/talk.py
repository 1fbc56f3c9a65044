"""One process per peer and network: a row goes in, rows come out, and who takes longer than the budget is ended."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from benchmarks.asking.pace import MOST, cpu_seconds_of

SCRIPT = Path(__file__).resolve().parent / "inside" / "main.py"
SETUP_SECONDS = 600.0
LOOK_SECONDS = 0.5
"""How often a peer that does not answer is looked at."""


@dataclass(frozen=True)
class Said:
    """What came back for a row."""

    points: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    error: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the peer says of its rows."""


class Peer:
    """A peer at work; started when it is first asked, and again after it had to be ended."""

    def __init__(self, python: Path, name: str, task: Path) -> None:
        self._command = [str(python), str(SCRIPT), name, str(task)]
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._readers: list[threading.Thread] = []
        self.versions, self.setup_seconds = "", 0.0

    def ask(self, point: NDArray[Any], k: int, budget: float) -> Said:
        """The rows that the peer returns, or why there are none."""
        if self._process is None:
            problem = self._start()
            if problem:
                return Said(error=problem)
        assert self._process is not None and self._process.stdin is not None
        begun = time.perf_counter()
        try:
            self._process.stdin.write(json.dumps({"point": point.tolist(), "k": k}) + "\n")
            self._process.stdin.flush()
            said = json.loads(self._answer(budget))
        except queue.Empty:
            self.close()
            return Said(error=f"time limit of {budget:g} s", seconds=time.perf_counter() - begun, cpu_seconds=budget)
        except (OSError, json.JSONDecodeError):
            self.close()
            return Said(error="the process of the peer ended", seconds=time.perf_counter() - begun)
        return Said(**said)

    def _answer(self, budget: float) -> str:
        """The next line that the process says, while it has not spent its budget of processor time."""
        assert self._process is not None
        before = cpu_seconds_of(self._process.pid)
        begun = time.perf_counter()
        while True:
            try:
                return self._lines.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                wall = time.perf_counter() - begun
                now = cpu_seconds_of(self._process.pid)
                spent = wall if before is None or now is None else now - before
                if spent > budget or wall > MOST * budget:
                    raise

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for thread in self._readers:
                thread.join()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            self._process, self._readers = None, []

    def _start(self) -> str:
        """Start the process and wait until it is ready; the reason if it does not get there."""
        self._lines = queue.Queue()
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._readers = [threading.Thread(target=_read, args=(self._process, self._lines), daemon=True)]
        self._readers[0].start()
        try:
            said = json.loads(self._lines.get(timeout=SETUP_SECONDS))
        except (queue.Empty, json.JSONDecodeError):
            self.close()
            return "the peer does not start in its environment"
        self.versions, self.setup_seconds = said["versions"], said["seconds"]
        if said["error"]:
            self.close()
        return said["error"]


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    """Hand on what the process says, and an empty line when it ends."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")
