"""Progress events of a search, and the lower bound that is proven so far."""

from __future__ import annotations

import math
import threading

from ifonly.results import Listener, Progress
from ifonly.solvers.search.kernels.layout import BEST, BOUND, HEAP, HEAP_SIZE, LOWER, NODES, RADIUS, RESIDUAL, Tree


class ProgressReporter:
    """Counts finished people and passes progress on, one event at a time."""

    def __init__(self, people: int, listen: Listener | None) -> None:
        self.people, self.finished, self._listen, self._lock = people, 0, listen, threading.Lock()

    def done(self, count: int) -> None:
        if self._listen is None:
            return
        with self._lock:
            self.finished += count
            if self.finished < self.people:
                self._listen(Progress(finished=self.finished, people=self.people))

    def all_done(self) -> None:
        if self._listen is not None:
            self._listen(Progress(finished=self.people, people=self.people))

    def under_way(self, tree: Tree, squared: bool, seconds: float) -> None:
        if self._listen is None:
            return
        numbers = [proven(tree), float(tree.number[BEST]), float(tree.number[RADIUS])]
        low, best, radius = (math.sqrt(v) for v in numbers) if squared else numbers
        self.report(low, best, int(tree.count[NODES]), seconds, radius)

    def report(self, lower: float, upper: float, nodes: int, seconds: float, radius: float = 0.0) -> None:
        """What is known of one person who is not finished."""
        if self._listen is None:
            return
        with self._lock:
            self._listen(
                Progress(
                    finished=self.finished,
                    people=self.people,
                    radius=radius,
                    nodes=nodes,
                    lower=lower,
                    upper=upper,
                    seconds=seconds,
                )
            )


def proven(tree: Tree) -> float:
    """The proven lower bound (cost) of a search under way: the least bound of an open or unresolved node."""
    bounds = [float(tree.number[place]) for place in (RADIUS, RESIDUAL, BEST)]
    if tree.count[HEAP_SIZE] > 0:
        bounds.append(float(tree.num[BOUND, tree.idx[HEAP, 0]]))
    return max(float(tree.number[LOWER]), min(bounds))
