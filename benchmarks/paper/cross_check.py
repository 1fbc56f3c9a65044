"""Do the exact methods agree, row by row? Differences are listed, whoever is to blame."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.asking.records import Record
from benchmarks.paper.style import EXACT, LOOKS

AGREE = 1e-6
"""What every exact method proves: absolute, and relative above distance 1."""


@dataclass
class Agreement:
    """Rows that two or more exact methods finished, and what does not fit together."""

    rows: int = 0
    pairs: int = 0
    largest: float = 0.0
    differences: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.differences


def agreement(found: Sequence[Record]) -> Agreement:
    """Distances of finished answers, bounds against rows that exist, and proofs that none exists against rows found."""
    groups: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for r in found:
        if r.method in EXACT and not r.way.startswith("k="):
            groups[(*r.cell, r.row)].append(r)
    result = Agreement()
    for place, group in groups.items():
        proven = [r for r in group if r.proven]
        result.rows += len(proven) > 1
        result.pairs += len(proven) * (len(proven) - 1) // 2
        distances = [r.upper for r in proven]
        if distances and all(math.isfinite(d) for d in distances):
            result.largest = max(result.largest, max(distances) - min(distances))
        result.differences += [f"{_where(place)}: {text}" for text in _contradictions(group)]
    return result


def _contradictions(group: Sequence[Record]) -> list[str]:
    proven = [r for r in group if r.proven]
    pairs = [(a, b) for i, a in enumerate(proven) for b in proven[i + 1 :]]
    differ = [
        f"{LOOKS[a.method].name} {a.upper!r}, {LOOKS[b.method].name} {b.upper!r}"
        for a, b in pairs
        if a.upper != b.upper and not abs(a.upper - b.upper) <= AGREE * max(1.0, a.upper)
    ]
    refuted = [
        f"{LOOKS[a.method].name} bounds at {a.lower!r}, {LOOKS[b.method].name} has {b.upper!r}"
        for a in group
        for b in group
        if b.valid and a.lower > b.upper * (1.0 + AGREE) + AGREE
    ]
    return differ + refuted


def _where(place: tuple[object, ...]) -> str:
    dataset, arch, variant, norm, row = place
    return f"{dataset} {arch} {variant}, {norm}, row {row}"
