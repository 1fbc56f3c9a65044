"""Streaming counts and quantiles of answers, in constant memory.

Quantiles come from a histogram with 64 buckets per doubling, so they are right to one percent; minimum and maximum are
exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ifonly.errors import FileError
from ifonly.printing import shown
from ifonly.results.answer import KINDS
from ifonly.results.records import Records

QUANTILES = {"min": 0.0, "median": 0.5, "p90": 0.9, "max": 1.0}
BUCKETS = 64
"""Per doubling."""
ZERO = -(10**6)
"""The bucket of 0."""
MOST_NOTES = 100
"""Distinct notes of searches that are counted apart."""


@dataclass(slots=True)
class SizeHistogram:
    """Histogram of numbers >= 0, with buckets on a logarithmic scale."""

    steps: Counter[int] = field(default_factory=Counter)
    least: float = math.inf
    most: float = -math.inf

    def add(self, values: Sequence[float]) -> None:
        if not len(values):
            return
        numbers = np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore"):
            steps = np.where(numbers > 0.0, np.floor(np.log2(numbers) * BUCKETS), ZERO).astype(np.int64)
        found, counts = np.unique(steps, return_counts=True)
        self.steps.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
        self.least, self.most = min(self.least, float(numbers.min())), max(self.most, float(numbers.max()))

    def merge(self, other: SizeHistogram) -> None:
        self.steps.update(other.steps)
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    def quantiles(self) -> dict[str, float] | None:
        """Minimum, median, 90th percentile and maximum; None where there is no number."""
        total = sum(self.steps.values())
        return {name: self._at(share, total) for name, share in QUANTILES.items()} if total else None

    def _at(self, share: float, total: int) -> float:
        if share in (0.0, 1.0):
            return self.most if share else self.least
        seen = 0
        for step in sorted(self.steps):
            seen += self.steps[step]
            if seen >= share * total:
                break
        middle = 0.0 if step == ZERO else 2.0 ** ((step + 0.5) / BUCKETS)
        return min(max(middle, self.least), self.most)

    def to_data(self) -> dict[str, Any]:
        steps = [[step, count] for step, count in sorted(self.steps.items())]
        return {"steps": steps, "least": self.least, "most": self.most} if steps else {}

    @classmethod
    def from_data(cls, data: Any) -> SizeHistogram:
        return cls(Counter(dict(map(tuple, data["steps"]))), data["least"], data["most"]) if data else cls()


@dataclass(slots=True)
class AnswerCounts:
    """Counts of answers: their statuses, what stopped some, distances, what changes, and the seconds that they took."""

    counts: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    distances: SizeHistogram = field(default_factory=SizeHistogram)
    seconds: SizeHistogram = field(default_factory=SizeHistogram)
    contradictions: int = 0
    """Error rows that are bugs."""

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    def add(self, records: Records) -> None:
        """Count these answers."""
        columns, statuses = records.columns, records.columns["status"]
        self.counts.update(statuses)
        self.contradictions += records.contradictions
        self.changed.update(records.changed)
        self.sizes.update(size for size in records.sizes if size >= 0)
        self.distances.add([far for far, size in zip(columns["distance"], records.sizes, strict=True) if size > 0])
        self.seconds.add([s for s, status in zip(columns["seconds"], statuses, strict=True) if status != "error"])
        if self.counts["within"] or self.counts["unknown"]:
            stopped = zip(statuses, columns["note"], strict=True)
            self._note(Counter(note for status, note in stopped if status in ("within", "unknown")))

    def merge(self, other: AnswerCounts) -> None:
        """Add the counts of another."""
        self.counts.update(other.counts)
        self.contradictions += other.contradictions
        self.changed.update(other.changed)
        self.sizes.update(other.sizes)
        self.distances.merge(other.distances)
        self.seconds.merge(other.seconds)
        self._note(other.notes)

    def _note(self, notes: Mapping[str, int]) -> None:
        for note, count in notes.items():
            self.notes[note if note in self.notes or len(self.notes) < MOST_NOTES else "other reasons"] += count

    def summary(self, distance_name: str, seconds: float) -> dict[str, Any]:
        """The figures that `report.summary` gives of answers."""
        moved = Counter({size: count for size, count in self.sizes.items() if size})
        return {
            "rows": self.rows,
            "counts": {status: self.counts[status] for status in KINDS},
            "stopped_by": dict(self.notes.most_common(5)),
            "distance_name": distance_name if self.rows > self.counts["error"] else "",
            "distance": self.distances.quantiles(),
            "changed_features": _of_counts(moved),
            "changed_most": dict(self.changed.most_common(5)),
            "unchanged": self.sizes[0],
            "seconds": self.seconds.quantiles(),
            "total_seconds": seconds,
        }

    def to_data(self) -> dict[str, Any]:
        """Plain data, for a manifest."""
        return {
            "counts": {status: self.counts[status] for status in KINDS},
            "notes": dict(self.notes),
            "changed": dict(self.changed),
            "changes_per_row": [[size, count] for size, count in sorted(self.sizes.items())],
            "distances": self.distances.to_data(),
            "seconds": self.seconds.to_data(),
            "contradictions": self.contradictions,
        }

    @classmethod
    def from_data(cls, data: Any) -> AnswerCounts:
        """The inverse of `to_data`."""
        try:
            return cls(
                counts=Counter(data["counts"]),
                notes=Counter(data["notes"]),
                changed=Counter(data["changed"]),
                sizes=Counter(dict(map(tuple, data["changes_per_row"]))),
                distances=SizeHistogram.from_data(data["distances"]),
                seconds=SizeHistogram.from_data(data["seconds"]),
                contradictions=int(data.get("contradictions", 0)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"The counts in a manifest cannot be read: {shown(error)}.") from None


def _of_counts(counts: Counter[int]) -> dict[str, float] | None:
    if not counts:
        return None
    values = np.repeat(list(counts), [min(count, 10**6) for count in counts.values()])
    return dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values())).tolist(), strict=True))
