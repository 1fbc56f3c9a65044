"""The bounds of a search over time: the proven lower bound rises, the distance of the best row falls, until they meet.

The bounds are those that the search reports while it runs, every few tenths of a second, between two that are always
known: at first nothing, at last the answer. Where an answer takes several searches (one per alternative class, for
example), those of the last search are shown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ifonly.explainer import Explainer
from ifonly.html.charts import stairs
from ifonly.html.fragments import fragment, paragraph
from ifonly.printing import json_object
from ifonly.problem.query import Query, query_of
from ifonly.results import Answer, Listener, Nearest, NoneExists, Progress
from ifonly.results.plots import INK, SOFT, bare, new_axes, plainly
from ifonly.tolerances import Tolerances


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BoundsOverTime:
    """From `seconds[k]` after the question on, nothing nearer than `lower[k]` exists, and a row at `upper[k]` is known.

    Infinity: no row is known (upper), none exists (lower). `answer` is how it ended.
    """

    seconds: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    answer: Answer

    def __repr__(self) -> str:
        return f"<BoundsOverTime: {self._ending()}>"

    def _repr_html_(self) -> str:
        picture = stairs(self.seconds, self.lower, self.upper, alternative=f"Bounds of a search. {self._ending()}")
        return fragment(picture, paragraph(self._ending(), "soft"))

    def plot(self, axes: Any = None) -> Any:
        """Both bounds against time, by matplotlib."""
        axes = new_axes(axes, height=3.2)
        known = [i for i, value in enumerate(self.upper) if math.isfinite(value)]
        proven = [value if math.isfinite(value) else math.nan for value in self.lower]
        axes.step(self.seconds, proven, where="post", color=INK, linewidth=1.8, label="nothing nearer exists")
        if known:
            times, values = [self.seconds[i] for i in known], [self.upper[i] for i in known]
            axes.step(times, values, "--", where="post", color="black", linewidth=1.4, label="a row is known")
            axes.fill_between(times, values, [proven[i] for i in known], step="post", color=SOFT, alpha=0.25, lw=0)
            axes.plot(times[-1:], values[-1:], "o", color="black", markersize=6)
        axes.set_xlabel("seconds since the question")
        axes.set_ylabel(plainly(f"{self.answer.distance_name} distance"))
        axes.set_ylim(bottom=0.0)
        axes.set_title(plainly(self._ending()), loc="left", fontsize="medium")
        axes.legend(frameon=False)
        bare(axes)
        return axes

    def to_dict(self) -> dict[str, list[float | None]]:
        """Three columns; None for infinity."""
        return json_object(self, ("seconds", "lower", "upper"), lower="lower_bound", upper="upper_bound")

    def _ending(self) -> str:
        took = f"after {self.seconds[-1]:.3g} s and {self.answer.nodes:,} nodes"
        if isinstance(self.answer, NoneExists):
            return f"Proven {took}: none exists."
        if isinstance(self.answer, Nearest):
            return f"Proven {took}: the nearest is at {self.upper[-1]:.4g}."
        known = f"a row at {self.upper[-1]:.4g} is known" if math.isfinite(self.upper[-1]) else "no row is known"
        return f"Stopped {took}: nothing nearer than {self.lower[-1]:.4g} exists, {known}."


def bounds_over_time(
    explainer: Explainer,
    row: Any,
    query: Query | None = None,
    *,
    target: Any = None,
    distance: Any = None,
    constraints: Sequence[Any] = (),
) -> BoundsOverTime:
    """Explain a row, and keep what was known when."""
    recorder = _Recorder(explainer.listen)
    recording = explainer.using(
        listen=recorder, reasons=False
    )  # reasons take further searches, with bounds of their own
    answer = recording.explain(row, query_of(query, target, distance, constraints))
    return recorder.until(answer, explainer.tolerances)


class _Recorder:
    """A listener that records the events of the last search, with their times."""

    def __init__(self, listen: Listener | None) -> None:
        self._listen = listen
        self._events: list[tuple[float, Progress]] = []
        self._started = time.perf_counter()

    def __call__(self, event: Progress) -> None:
        if event.finished < event.people:
            last = self._events[-1][1] if self._events else event
            if event.nodes < last.nodes or event.seconds < last.seconds:  # another search
                self._events.clear()
            self._events.append((time.perf_counter() - self._started, event))
        if self._listen is not None:
            self._listen(event)

    def until(self, answer: Answer, tolerances: Tolerances) -> BoundsOverTime:
        """What was known, never more than the answer has: a row that the model then refused was none."""
        seconds, lower, upper = [0.0], [0.0], [math.inf]
        for at, event in self._events:
            here = max(event.upper, answer.upper) if tolerances.close(event.upper, answer.upper) else math.inf
            seconds.append(at)
            lower.append(max(lower[-1], min(event.lower, answer.lower)))
            upper.append(min(upper[-1], here))
        return BoundsOverTime(
            seconds=(*seconds, time.perf_counter() - self._started),
            lower=(*lower, answer.lower),
            upper=(*upper, answer.upper),
            answer=answer,
        )
