"""Metrics in the text format of Prometheus: numbers only, never anything of a request's body."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ifonly.service.pool import Pool

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the histogram's buckets, in seconds."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of requests by path and status, their durations, and how searches ended."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.histograms: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.outcomes: Counter[str] = Counter()
        self.disconnects = self.bugs = 0

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a finished request; `path` is that of a route, never one that a client made up."""
        self.requests[path, status] += 1
        self.seconds[path] += seconds
        self.histograms[path][bisect_left(BUCKETS, seconds)] += 1

    def text(self, pool: Pool) -> str:
        requests = [(f'{{path="{path}",status="{status}"}}', n) for (path, status), n in sorted(self.requests.items())]
        lanes = [(f'{{lane="{lane.name}"}}', lane) for lane in pool.lanes]
        parts = [
            _family("requests_total", "counter", "Requests by path and status.", requests),
            _family("request_seconds", "histogram", "How long requests took.", self._histogram()),
            _family("searches_total", "counter", "Searches by how they ended.",
                    [(f'{{ending="{outcome}"}}', n) for outcome, n in sorted(self.outcomes.items())]),
            _family("clients_left_total", "counter", "Clients that left before their answer.",
                    [("", self.disconnects)]),
            _family("errors_total", "counter", "Errors that should not happen.", [("", self.bugs)]),
            _family("waiting", "gauge", "Requests that wait for a process.",
                    [(at, len(lane.waiting)) for at, lane in lanes]),
            _family("at_work", "gauge", "Requests that a process has.",
                    [(at, sum(len(worker.jobs) for worker in lane.workers)) for at, lane in lanes]),
            _family("processes", "gauge", "Processes that are ready.",
                    [(at, sum(worker.ready for worker in lane.workers)) for at, lane in lanes]),
            _family("ready", "gauge", "Can questions be answered?", [("", pool.unavailable() is None)]),
            _family("processes_lost_total", "counter", "Processes that ended by themselves.",
                    [(at, lane.lost) for at, lane in lanes]),
        ]  # fmt: skip
        return "".join(parts)

    def _histogram(self) -> list[tuple[str, float]]:
        samples: list[tuple[str, float]] = []
        names = [*(f"{bucket:g}" for bucket in BUCKETS), "+Inf"]
        for path, counts in sorted(self.histograms.items()):
            up_to = list(accumulate(counts))
            samples += [(f'_bucket{{path="{path}",le="{name}"}}', n) for name, n in zip(names, up_to, strict=True)]
            samples += [(f'_sum{{path="{path}"}}', self.seconds[path]), (f'_count{{path="{path}"}}', up_to[-1])]
        return samples


def _family(name: str, kind: str, help_text: str, values: Sequence[tuple[str, float]]) -> str:
    full = f"ifonly_service_{name}"
    lines = [
        f"# HELP {full} {help_text}",
        f"# TYPE {full} {kind}",
        *(f"{full}{at} {value:.10g}" for at, value in values),
    ]
    return "\n".join(lines) + "\n"
