"""From what was found to answers in the user's own values: the one place where answers are made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.asking.found import Askers, Floats, Found, Wanted
from ifonly.errors import Contradiction, RowError
from ifonly.model import Model
from ifonly.proof import Answer, Change, Claim, Failed, Nearest, NoneExists, Unknown, Within
from ifonly.schema import Numeric
from ifonly.schema.features import plain
from ifonly.schema.tables import user_columns
from ifonly.tolerances import BOUND_ABSOLUTE, BOUND_RELATIVE, Tolerances

FEW = 8
"""Below this many rows, going row by row is faster than going by columns."""


class Teller:
    """Turns findings about points into answers."""

    def __init__(self, model: Model, tolerances: Tolerances) -> None:
        self.model, self.schema, self.tolerances = model, model.schema, tolerances
        self.counted = [isinstance(feature, Numeric) for feature in self.schema.features]
        self.labels = [plain(name) for name in model.classes]
        self.blank = np.full(model.outputs, math.nan)
        self.words = {f.name: (f.label, f.unit) for f in self.schema.features if f.label or f.unit}

    def answers(
        self, askers: Askers, rows: Sequence[int], told: Sequence[tuple[Wanted, Found]], distance_name: str
    ) -> Iterator[Answer]:
        """One answer per person; `rows` are the numbers that the answers carry."""
        found = [one for _, one in told]
        after = np.array([p if f.claim.point is None else f.claim.point
                          for p, f in zip(askers.points, found, strict=True)])  # fmt: skip
        scores = np.array([self.blank if f.witness is None else f.witness.scores for f in found])
        old, new, moved = self._compared(askers.points, after)
        score_before, score_after = _scores(askers.scores), _scores(scores)
        decision_before, decision_after = self._decisions(askers.decided), self._decided(scores)
        names = self.schema.names
        for i, (wanted, one) in enumerate(told):
            common = {
                "row": rows[i],
                "factual": dict(zip(names, old[i], strict=True)),
                "distance_name": distance_name,
                "decision_before": decision_before[i],
                "score_before": score_before[i],
                "words": self.words,
                **_said(wanted, one),
            }
            if one.witness is None:
                kind = NoneExists if one.none_exists else Unknown
                yield kind(lower=one.lower, stop=one.stop, **common)
                continue
            after_this = {
                "counterfactual": dict(zip(names, new[i], strict=True)),
                "changes": tuple([Change(names[g], old[i][g], new[i][g], self.counted[g]) for g in moved[i]]),
                "decision_after": decision_after[i],
                "score_after": score_after[i],
            }
            yield self._with_row(one, {**common, **after_this})

    def _with_row(self, one: Found, told: dict[str, Any]) -> Answer:
        """The answer with a row: proven nearest, or within bounds."""
        assert one.witness is not None
        upper = one.witness.distance
        lower = _agreed_lower(one.claim, upper)
        lucky = None if one.claim.lucky is None else min(one.claim.lucky, lower)
        told = {**told, "blur": one.claim.blur, "lucky": lucky, "precision": self.model.precision}
        if one.left is None and self.tolerances.close(lower, upper):
            return Nearest(lower=lower, upper=upper, breaks=one.breaks, **told)
        return Within(lower=lower, upper=upper, breaks=one.breaks, stop=one.stop, **told)

    def changes(self, before: Floats, after: Floats) -> tuple[Change, ...]:
        """What differs between two points."""
        (old,), (new,), (moved,) = self._compared(before[None, :], after[None, :])
        return tuple(Change(self.schema.names[g], old[g], new[g], self.counted[g]) for g in moved)

    def _compared(self, before: Floats, after: Floats) -> tuple[list[list[Any]], list[list[Any]], list[list[int]]]:
        """Points before and after in the user's own values, row by row, and for each row the features that moved."""
        if len(before) >= FEW:
            old, new = (zip(*user_columns(self.schema, points).values(), strict=True) for points in (before, after))
            return list(map(list, old)), list(map(list, new)), _where(before != after)
        features = self.schema.features
        olds, news, moved = [], [], []
        for one, other in zip(before.tolist(), after.tolist(), strict=True):
            olds.append([feature.value(v) for feature, v in zip(features, one, strict=True)])
            news.append(olds[-1].copy())
            moved.append([g for g, (a, b) in enumerate(zip(one, other, strict=True)) if a != b])
            for g in moved[-1]:
                news[-1][g] = features[g].value(other[g])
        return olds, news, moved

    def _decided(self, scores: NDArray[np.float64]) -> list[Any]:
        return self._decisions(self.model.decide(scores)) if self.labels else [None] * len(scores)

    def _decisions(self, decided: NDArray[np.intp]) -> list[Any]:
        return [self.labels[k] for k in decided.tolist()] if self.labels else [None] * len(decided)


def _said(wanted: Wanted, one: Found) -> dict[str, Any]:
    """What an answer says of the wish and of the way it was answered."""
    claim = one.claim
    return {
        "target": wanted.name,
        "subject": wanted.words.subject,
        "state": wanted.words.state,
        "method": claim.method,
        "seconds": claim.seconds,
        "nodes": claim.nodes,
        "record": claim.record,
    }


def failed(row: int, error: RowError) -> Failed:
    """The answer of a row that could not be read."""
    return Failed(row=row, factual={}, target="", distance_name="", lower=0.0, error=str(error))


def _agreed_lower(claim: Claim, upper: float) -> float:
    """The claimed lower bound, which cannot be above the distance of the claimed row."""
    if claim.lower > upper * (1.0 + BOUND_RELATIVE) + BOUND_ABSOLUTE:
        raise Contradiction(
            f"Method '{claim.method}' claims that nothing is nearer than {claim.lower!r}, "
            f"but its own row is at {upper!r}."
        )
    return min(claim.lower, upper)


def _scores(scores: NDArray[np.float64]) -> list[Any]:
    """One float per row, or a tuple where the model has several outputs; NaN, which says that there is none, once."""
    listed = scores.tolist()
    if scores.shape[1] == 1:
        return [math.nan if math.isnan(one) else one for (one,) in listed]
    return [math.nan if math.isnan(many[0]) else tuple(many) for many in listed]


def _where(moved: NDArray[np.bool_]) -> list[list[int]]:
    """For each row, the features that moved."""
    result: list[list[int]] = [[] for _ in moved]
    rows, features = moved.nonzero()
    for i, g in zip(rows.tolist(), features.tolist(), strict=True):
        result[i].append(g)
    return result
