"""From what was found to answers in the user's own values: the one place where answers are made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.asking.found import Askers, Floats, Found, Wanted
from ifonly.asking.spelling import Speller
from ifonly.errors import Contradiction, RowError
from ifonly.model import Model
from ifonly.proof import Answer, Change, Claim, Failed, Nearest, NoneExists, Unknown, Within
from ifonly.proof.records import Records
from ifonly.schema import Numeric
from ifonly.schema.tables import user_columns
from ifonly.schema.values import plain
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
        self._speller = Speller(model.schema)

    def answers(
        self, askers: Askers, rows: Sequence[int], told: Sequence[tuple[Wanted, Found]], distance_name: str
    ) -> Iterator[Answer]:
        """One answer per person; `rows` are the numbers that the answers carry."""
        found = [one for _, one in told]
        after = _rows_after(askers, found)
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
            kind, lower = self._verdict(one)
            if one.witness is None:
                yield kind(lower=lower, stop=one.stop, **common)
                continue
            yield kind(
                lower=lower,
                upper=one.witness.distance,
                breaks=one.breaks,
                stop=None if kind is Nearest else one.stop,
                blur=one.claim.blur,
                lucky=None if one.claim.lucky is None else min(one.claim.lucky, lower),
                precision=self.model.precision,
                counterfactual=dict(zip(names, new[i], strict=True)),
                changes=tuple([Change(names[g], old[i][g], new[i][g], self.counted[g]) for g in moved[i]]),
                decision_after=decision_after[i],
                score_after=score_after[i],
                **common,
            )

    def _verdict(self, one: Found) -> tuple[type[Answer], float]:
        """Which kind of answer it is, and its lower bound: proven nearest, or within bounds; without a row, proven
        that there is none, or not.
        """
        if one.witness is None:
            return NoneExists if one.none_exists else Unknown, one.lower
        lower = _agreed_lower(one.claim, one.witness.distance)
        nearest = one.left is None and self.tolerances.close(lower, one.witness.distance)
        return Nearest if nearest else Within, lower

    def records(self, askers: Askers, rows: Sequence[int], told: Sequence[tuple[Wanted, Found]]) -> Records:
        """What `records_of` makes of the answers, by columns and without them: a stream has no use for objects."""
        found = [one for _, one in told]
        after = _rows_after(askers, found)
        scores = np.array([self.blank if f.witness is None else f.witness.scores for f in found])
        verdicts = [self._verdict(one) for one in found]
        there = [one.witness is not None for one in found]
        moved = askers.points != after
        sizes = np.where(there, moved.sum(axis=1), -1).tolist()
        counterfactuals = self._speller.rows(after)
        columns: dict[str, list[Any]] = {
            "row": list(rows),
            "status": [kind.status for kind, _ in verdicts],
            "distance": [None if one.witness is None else one.witness.distance for one in found],
            "lower_bound": [lower if lower < math.inf else None for _, lower in verdicts],
            "changes": self._speller.changes(askers.points, after),
            "counterfactual": [text if good else None for text, good in zip(counterfactuals, there, strict=True)],
            "score_before": _plain_scores(askers.scores),
            "score_after": _plain_scores(scores),
            "method": [one.claim.method for one in found],
            "seconds": [one.claim.seconds for one in found],
            "note": [
                "" if kind is Nearest or one.stop is None else one.stop.words(row=one.witness is not None)
                for (kind, _), one in zip(verdicts, found, strict=True)
            ],
        }
        often = zip(self.schema.names, moved.sum(axis=0).tolist(), strict=True)
        return Records(columns=columns, sizes=sizes, changed={name: count for name, count in often if count})

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


def _rows_after(askers: Askers, found: Sequence[Found]) -> Floats:
    """The row found for each person; without one, the person's own."""
    return np.array([p if f.claim.point is None else f.claim.point for p, f in zip(askers.points, found, strict=True)])


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


def _plain_scores(scores: NDArray[np.float64]) -> list[Any]:
    """The same as `to_dict` writes them: neither NaN nor infinity."""
    good = np.isfinite(scores)
    if scores.shape[1] == 1 and good.all():
        return scores[:, 0].tolist()
    if scores.shape[1] == 1:
        return [one if fine else None for (one,), (fine,) in zip(scores.tolist(), good.tolist(), strict=True)]
    return [
        None if math.isnan(many[0]) else [one if fine else None for one, fine in zip(many, fines, strict=True)]
        for many, fines in zip(scores.tolist(), good.tolist(), strict=True)
    ]


def _where(moved: NDArray[np.bool_]) -> list[list[int]]:
    """For each row, the features that moved."""
    result: list[list[int]] = [[] for _ in moved]
    rows, features = moved.nonzero()
    for i, g in zip(rows.tolist(), features.tolist(), strict=True):
        result[i].append(g)
    return result
