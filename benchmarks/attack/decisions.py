"""Models that only their own library can evaluate: its `predict` over all rows of a finite space is the truth.

What is decided comes from the library, what is near from `distance`; nothing of either is read from ifonly.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from benchmarks.attack import distance
from benchmarks.attack.space import Feature, Row, belongs, count, is_number, rows, values
from benchmarks.attack.verdict import GAP, RELATIVE

Decision = tuple[Any, float]
"""The class of a row, and by how much its score is ahead of the next class."""
CLEAR = 1e-3
"""A row this far ahead is decided so whatever rounding does; margins and E are far smaller."""
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Truth:
    """One question about one person: what is decided of each row, and how far away it is."""

    features: Sequence[Feature]
    before: Row
    resolved: Any
    decide: Callable[[list[Row]], list[Decision]]
    spec: distance.Spec
    size: Callable[[Row], Fraction] | None = None
    """The distance from the person, where it is another than `distance.measure`."""
    allowed: Callable[[Row], bool] = lambda row: True
    known: dict[tuple[int, Any], Fraction] = field(default_factory=dict)

    def far(self, row: Row) -> float:
        measured = self.size(row) if self.size else distance.combined(self.deltas(row), len(row), self.spec)
        return distance.shown(measured, self.spec)

    def deltas(self, row: Row) -> dict[str, Fraction]:
        """The changes of the features that differ; each is computed once."""
        found = {}
        for i, (feature, a, b) in enumerate(zip(self.features, self.before, row, strict=True)):
            if not same(a, b):
                if (i, b) not in self.known:
                    self.known[i, b] = distance.change(feature, a, b, self.spec)
                found[feature["name"]] = self.known[i, b]
        return found


def wrong(truth: Truth, answer: Any, every: Iterable[Row]) -> Iterator[str]:
    """Faults of an answer; `every` are the rows to hold it against: all there are, where they can be listed."""
    if answer.status not in ("nearest", "none exists", "within", "unknown"):
        yield f"status {answer.status}: {answer.note}"
        return
    if math.isnan(answer.lower) or math.isnan(answer.upper) or answer.lower > answer.upper:
        yield f"bounds [{answer.lower!r}, {answer.upper!r}]"
    if answer.status == "nearest" and answer.upper - answer.lower > GAP * answer.upper * (1 + RELATIVE):
        yield f"nearest with a gap from {answer.lower!r} to {answer.upper!r}"
    if answer.counterfactual is not None:
        yield from wrong_row(truth, answer)
    elif answer.status in ("nearest", "within"):
        yield f"{answer.status} without a row"
    yield from beaten(truth, answer, [row for row in every if truth.allowed(row)])


def wrong_row(truth: Truth, answer: Any) -> Iterator[str]:
    """Is the counterfactual a row, allowed, decided as asked by the library, and as far as it says?"""
    names = [feature["name"] for feature in truth.features]
    if list(answer.counterfactual) != names:
        yield f"a row of {list(answer.counterfactual)}"
        return
    row = tuple(answer.counterfactual[name] for name in names)
    for feature, old, value in zip(truth.features, truth.before, row, strict=True):
        if not belongs(feature, value) and not same(old, value):
            yield f"{feature['name']} = {value!r} does not belong to it"
            return
    if not truth.allowed(row):
        yield f"{row} is not allowed"
    label, _ = truth.decide([row])[0]
    if not same(label, truth.resolved):
        yield f"refused: the model itself decides {label!r} of {row}, not {truth.resolved!r}"
    if not math.isclose(truth.far(row), answer.upper, rel_tol=RELATIVE, abs_tol=1e-300):
        yield f"{row} is at {truth.far(row)!r}, not at {answer.upper!r}"


def beaten(truth: Truth, answer: Any, every: list[Row]) -> Iterator[str]:
    """Is one of these rows clearly decided as asked, and nearer than what is called proven?"""
    decided = truth.decide(every) if every else []
    good = [row for row, (label, ahead) in zip(every, decided, strict=True)
            if same(label, truth.resolved) and ahead >= CLEAR]  # fmt: skip
    if not good:
        return
    best, row = min((truth.far(row), i) for i, row in enumerate(good))
    if answer.status == "none exists":
        yield f"none exists, but the model itself decides {truth.resolved!r} of {good[row]} at {best!r}"
    elif best < answer.lower * (1 - RELATIVE):
        yield f"{answer.status}, nothing nearer than {answer.lower!r}, but {good[row]} at {best!r}"


def same(one: Any, other: Any) -> bool:
    """The same value: 1 and 1.0 are, "1" and 1 are not, nor True and "True"."""
    if isinstance(one, str) or isinstance(other, str) or one is None or other is None:
        return type(one) is type(other) and bool(one == other)
    return bool(one == other)


def all_rows(features: Sequence[Feature], before: Row) -> list[Row]:
    """All rows; a number that is missing stays so. None at all where they are too many to list."""
    domains: list[Sequence[Any]] = []
    for feature, value in zip(features, before, strict=True):
        own = [None] if value is None and is_number(feature) else values(feature)
        if own is None:
            return []
        domains.append(own if value in own else [*own, value])
    return list(rows(domains)) if count(domains) <= MOST_ROWS else []


def ahead(scores: Sequence[float]) -> float:
    """By how much the largest of several scores is larger than the next."""
    first, second = sorted(map(float, scores))[-1:-3:-1]
    return first - second


def missing_library(names: Sequence[str]) -> str:
    """The first of these modules that is not installed, or nothing."""
    return next((name for name in names if importlib.util.find_spec(name) is None), "")
