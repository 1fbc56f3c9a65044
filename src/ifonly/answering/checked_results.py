"""What is known of many people, by columns: each of them is a `CheckedResult`, made when somebody looks at it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ifonly.answering.values import CheckedResult, Floats, ResolvedTarget
from ifonly.results import Claims, Stop, Witnesses
from ifonly.results.columns import ByColumns, shifted, taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedResults(ByColumns[CheckedResult]):
    """Claims whose rows the user's own model accepts; the witnesses of claims without a row say nothing."""

    claims: Claims
    witnesses: Witnesses
    left: Mapping[int, Stop] = field(default_factory=dict)
    breaks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Sequence[CheckedResult], factuals: Floats, outputs: int) -> CheckedResults:
        """The same of people about whom each was found alone; the model has so many `outputs`."""
        if isinstance(found, CheckedResults):
            return found
        blank = np.full(outputs, math.nan)
        scores = [blank if one.witness is None else one.witness.scores for one in found]
        return cls(
            claims=Claims.of([one.claim for one in found], factuals),
            witnesses=Witnesses(
                distances=np.array([one.upper for one in found], dtype=np.float64),
                scores=np.array(scores, dtype=np.float64).reshape(len(found), outputs),
            ),
            left={i: one.left for i, one in enumerate(found) if one.left is not None},
            breaks={i: one.breaks for i, one in enumerate(found) if one.breaks},
        )

    @classmethod
    def joined(cls, parts: Sequence[tuple[Sequence[int], CheckedResults]]) -> CheckedResults:
        """Those of all people, from parts with the numbers of the people in each."""
        if len(parts) == 1:
            return parts[0][1]
        findings = [part for _, part in parts]
        starts = np.cumsum([0, *map(len, findings[:-1])]).tolist()
        whole = cls(
            claims=Claims.joined([part.claims for part in findings]),
            witnesses=Witnesses(
                distances=np.concatenate([part.witnesses.distances for part in findings]),
                scores=np.concatenate([part.witnesses.scores for part in findings]),
            ),
            left=shifted([part.left for part in findings], starts),
            breaks=shifted([part.breaks for part in findings], starts),
        )
        return whole.take(np.argsort(np.concatenate([members for members, _ in parts])).tolist())

    def take(self, members: Sequence[int]) -> CheckedResults:
        """What is known of these people, in this order."""
        return CheckedResults(
            claims=self.claims.take(members),
            witnesses=self.witnesses.take(members),
            left=taken(self.left, members),
            breaks=taken(self.breaks, members),
        )

    def __len__(self) -> int:
        return len(self.claims)

    def one(self, i: int) -> CheckedResult:
        claim = self.claims[i]
        witness = None if claim.point is None else self.witnesses[i]
        return CheckedResult(claim, witness, self.left.get(i), self.breaks.get(i, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResults:
    """What each person wants, and what is known."""

    resolved: list[ResolvedTarget]
    found: CheckedResults
