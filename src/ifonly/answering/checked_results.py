"""Checked results of many people, by columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ifonly.answering.values import CheckedResult, Floats, ResolvedTarget
from ifonly.results import Claims, Stop
from ifonly.results.columns import ByColumns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedResults(ByColumns[CheckedResult]):
    """The fields of `CheckedResult`, by columns: claims, and the check of their rows."""

    claims: Claims
    upper: Floats
    """Infinity without a row."""
    scores: Floats
    """NaN without a row."""
    left: Mapping[int, Stop] = field(default_factory=dict)
    breaks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Sequence[CheckedResult], factuals: Floats, outputs: int) -> CheckedResults:
        """The results of these people by columns, for a model with so many `outputs`."""
        if isinstance(results, CheckedResults):
            return results
        blank = np.full(outputs, math.nan)
        scores = [blank if one.scores is None else one.scores for one in results]
        return cls(
            claims=Claims.of([one.claim for one in results], factuals),
            upper=np.array([one.upper for one in results], dtype=np.float64),
            scores=np.array(scores, dtype=np.float64).reshape(len(results), outputs),
            left={i: one.left for i, one in enumerate(results) if one.left is not None},
            breaks={i: one.breaks for i, one in enumerate(results) if one.breaks},
        )

    @classmethod
    def merged(cls, parts: Sequence[tuple[Sequence[int], CheckedResults]]) -> CheckedResults:
        """The results of all people, from parts with the numbers of the people in each."""
        if len(parts) == 1:
            return parts[0][1]
        order = np.argsort(np.concatenate([members for members, _ in parts]))
        return cls.joined([part for _, part in parts]).take(order.tolist())

    def __len__(self) -> int:
        return len(self.claims)

    def one(self, i: int) -> CheckedResult:
        claim, left, breaks = self.claims[i], self.left.get(i), self.breaks.get(i, ())
        if claim.point is None:
            return CheckedResult(claim, left=left, breaks=breaks)
        return CheckedResult(claim, float(self.upper[i]), self.scores[i], left, breaks)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResults:
    """The target of each person, and the results."""

    resolved: list[ResolvedTarget]
    results: CheckedResults
