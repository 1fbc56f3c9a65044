"""Claims about many people, by columns: a method that answers thousands of people makes no object for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.results.claim import Claim, Limits
from ifonly.results.columns import ByColumns
from ifonly.results.stop import Stop, StoppedBy

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Claims(ByColumns[Claim]):
    """The fields of `Claim`, by columns."""

    points: Floats
    """The claimed rows; where there is none, the person's own."""
    found: NDArray[np.bool_]
    lower: Floats
    methods: list[str]
    nodes: NDArray[np.int64]
    seconds: Floats
    rounding_bound: Floats
    lower_any_rounding: Floats
    """NaN where it is not known."""
    stops: Mapping[int, Stop] = field(default_factory=dict)
    records: Mapping[int, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, claims: Sequence[Claim], factuals: Floats) -> Claims:
        """The claims about these people."""
        if isinstance(claims, Claims):
            return claims
        pairs = list(zip(claims, factuals, strict=True))
        return cls(
            points=np.array([own if c.point is None else c.point for c, own in pairs]).reshape(factuals.shape),
            found=np.array([c.point is not None for c in claims], dtype=np.bool_),
            lower=np.array([c.lower for c in claims], dtype=np.float64),
            methods=[c.method for c in claims],
            nodes=np.array([c.nodes for c in claims], dtype=np.int64),
            seconds=np.array([c.seconds for c in claims], dtype=np.float64),
            rounding_bound=np.array([c.rounding_bound for c in claims], dtype=np.float64),
            lower_any_rounding=np.array(
                [math.nan if c.lower_any_rounding is None else c.lower_any_rounding for c in claims], dtype=np.float64
            ),
            stops={i: c.stop for i, c in enumerate(claims) if c.stop is not None},
            records={i: c.record for i, c in enumerate(claims) if c.record is not None},
        )

    def __len__(self) -> int:
        return len(self.found)

    def one(self, i: int) -> Claim:
        lower_any_rounding = float(self.lower_any_rounding[i])
        return Claim(
            point=self.points[i] if self.found[i] else None,
            lower=float(self.lower[i]),
            method=self.methods[i],
            stop=self.stops.get(i),
            nodes=int(self.nodes[i]),
            seconds=float(self.seconds[i]),
            record=self.records.get(i),
            rounding_bound=float(self.rounding_bound[i]),
            lower_any_rounding=None if math.isnan(lower_any_rounding) else lower_any_rounding,
        )

    def counting(self, spent: float, limits: Limits) -> Claims:
        """Of a method that had `limits.after(spent)`: where time was up, it is the whole limit that was."""
        late = [i for i, stop in self.stops.items() if stop.by is StoppedBy.SECONDS]
        if not late:
            return self
        seconds = self.seconds.copy()
        seconds[late] += spent
        whole = Stop(StoppedBy.SECONDS, limits.seconds)
        return replace(self, seconds=seconds, stops={**self.stops, **dict.fromkeys(late, whole)})
