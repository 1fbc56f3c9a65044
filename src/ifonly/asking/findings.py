"""What is known of many people, by columns: each of them is a `Found`, made when somebody looks at it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ifonly.asking.found import Floats, Found, Wanted
from ifonly.proof import Claims, Stop, Witnesses
from ifonly.proof.by_columns import ByColumns, shifted, taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings(ByColumns[Found]):
    """Claims whose rows the user's own model accepts; the witnesses of claims without a row say nothing."""

    claims: Claims
    witnesses: Witnesses
    left: Mapping[int, Stop] = field(default_factory=dict)
    breaks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Sequence[Found], factuals: Floats, outputs: int) -> Findings:
        """The same of people about whom each was found alone; the model has so many `outputs`."""
        if isinstance(found, Findings):
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
    def joined(cls, parts: Sequence[tuple[Sequence[int], Findings]]) -> Findings:
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

    def take(self, members: Sequence[int]) -> Findings:
        """What is known of these people, in this order."""
        return Findings(
            claims=self.claims.take(members),
            witnesses=self.witnesses.take(members),
            left=taken(self.left, members),
            breaks=taken(self.breaks, members),
        )

    def __len__(self) -> int:
        return len(self.claims)

    def one(self, i: int) -> Found:
        claim = self.claims[i]
        witness = None if claim.point is None else self.witnesses[i]
        return Found(claim, witness, self.left.get(i), self.breaks.get(i, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What each person wants, and what is known."""

    wanted: list[Wanted]
    found: Findings
