"""From what was found to answers in the user's own values: the one place where answers are made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.checked_results import CheckedResults, TargetResults
from ifonly.answering.json_rows import JsonRows
from ifonly.answering.values import Batch, Floats
from ifonly.errors import Contradiction
from ifonly.model import Model
from ifonly.results import Answer, Change, Nearest, NoneExists, Unknown, Within
from ifonly.results.records import Records
from ifonly.schema import Numeric
from ifonly.schema.tables import user_columns
from ifonly.schema.values import plain
from ifonly.tolerances import BOUND_ABSOLUTE, BOUND_RELATIVE, FEW, Tolerances

Row = tuple[Any, ...]
"""A row in the user's own values."""
_STATUS = ((Unknown.status, NoneExists.status), (Within.status, Nearest.status))
"""By whether there is a row, and whether it is proven."""


class AnswerBuilder:
    """Turns findings about points into answers."""

    def __init__(self, model: Model, tolerances: Tolerances) -> None:
        self.model, self.schema, self.tolerances = model, model.schema, tolerances
        self.counted = [isinstance(feature, Numeric) for feature in self.schema.features]
        self.labels = [plain(name) for name in model.classes]
        self.words = {f.name: (f.label, f.unit) for f in self.schema.features if f.label or f.unit}
        self._json_rows = JsonRows(model.schema)

    def answers(
        self,
        batch: Batch,
        rows: Sequence[int],
        told: TargetResults,
        distance_name: str,
        constraints: tuple[str, ...],
    ) -> Iterator[Answer]:
        """One answer per person; `rows` are the numbers that the answers carry."""
        found, claims = told.found, told.found.claims
        lower, proven = self._verdicts(found)
        old, new, moved = self._compared(batch.points, claims.points)
        everyone = self._of_people(batch, rows, told, old)
        with_row = self._of_rows(found, lower.tolist(), old, new, moved)
        columns = zip(everyone, with_row, lower.tolist(), proven, claims.found.tolist(), strict=True)
        for i, (person, row, low, sure, there) in enumerate(columns):
            stop = found.left.get(i) or claims.stops.get(i)
            person |= {"distance_name": distance_name, "constraints": constraints}
            if there:
                yield (Nearest if sure else Within)(lower=low, stop=None if sure else stop, **row, **person)
            else:
                bound = (
                    0.0 if sure else row["rounding_bound"]
                )  # `lower` is about rows that are as much above the margin
                yield (NoneExists if sure else Unknown)(lower=low, stop=stop, rounding_bound=bound, **person)

    def _of_people(
        self, batch: Batch, rows: Sequence[int], told: TargetResults, old: list[Row]
    ) -> Iterator[dict[str, Any]]:
        """What every answer says of the person, of the wish, and of the way it was answered."""
        claims, names = told.found.claims, self.schema.names
        columns = zip(
            rows, told.resolved, old, self._decisions(batch.decided),
            _scores(batch.scores), claims.methods,
            claims.seconds.tolist(), claims.nodes.tolist(), strict=True,
        )  # fmt: skip
        for i, (row, resolved, before, decision, score, method, seconds, nodes) in enumerate(columns):
            yield {
                "row": row,
                "factual": dict(zip(names, before, strict=True)),
                "decision_before": decision,
                "score_before": score,
                "words": self.words,
                "target": resolved.name,
                "subject": resolved.words.subject,
                "state": resolved.words.state,
                "method": method,
                "seconds": seconds,
                "nodes": nodes,
                "record": claims.records.get(i),
            }

    def _of_rows(
        self, found: CheckedResults, lower: list[float], old: list[Row], new: list[Row], moved: list[tuple[int, ...]]
    ) -> Iterator[dict[str, Any]]:
        """What an answer with a row says of it."""
        claims, names, counted = found.claims, self.schema.names, self.counted
        scores, upper = found.witnesses.scores, found.witnesses.distances.tolist()
        columns = zip(
            lower, upper, old, new, moved, self._decided(scores), _scores(scores), claims.rounding_bound.tolist(),
            claims.lower_any_rounding.tolist(), strict=True,
        )  # fmt: skip
        for i, (low, far, before, after, features, decision, score, rounding_bound, lower_any_rounding) in enumerate(
            columns
        ):
            yield {
                "upper": far,
                "breaks": found.breaks.get(i, ()),
                "rounding_bound": rounding_bound,
                "lower_any_rounding": None if math.isnan(lower_any_rounding) else min(lower_any_rounding, low),
                "precision": self.model.precision,
                "counterfactual": dict(zip(names, after, strict=True)),
                "changes": tuple([Change(names[g], before[g], after[g], counted[g]) for g in features]),
                "decision_after": decision,
                "score_after": score,
            }

    def _verdicts(self, found: CheckedResults) -> tuple[Floats, list[bool]]:
        """The lower bounds, which cannot be above the distances of the rows, and for whom they prove it: that the row
        is the nearest, or, without one, that there is none.
        """
        claims, upper = found.claims, found.witnesses.distances
        lower, proven = claims.lower, [True] * len(claims)
        if (lower > upper).any():
            for i in np.flatnonzero(lower > upper * (1.0 + BOUND_RELATIVE) + BOUND_ABSOLUTE).tolist():
                raise Contradiction(
                    f"Method '{claims.methods[i]}' claims that nothing is nearer than {float(lower[i])!r}, "
                    f"but its own row is at {float(upper[i])!r}."
                )
            lower = np.minimum(lower, upper)
        for i in (*self.tolerances.unsettled(lower, upper), *found.left):
            proven[i] = False
        for i in claims.stops:
            proven[i] &= bool(claims.found[i])
        return lower, proven

    def records(self, batch: Batch, rows: Sequence[int], told: TargetResults) -> Records:
        """What `records_of` makes of the answers, by columns and without them: a stream has no use for objects."""
        found = told.found
        claims, scores, upper = found.claims, found.witnesses.scores, found.witnesses.distances
        lower, proven = self._verdicts(found)
        there = claims.found.tolist()
        moved = batch.points != claims.points
        counterfactuals = self._json_rows.rows(claims.points)
        notes = [""] * len(there)
        for i in sorted({*found.left, *claims.stops}):
            if not (there[i] and proven[i]):
                stop = found.left.get(i) or claims.stops[i]
                notes[i] = stop.words(row=there[i])
        columns: dict[str, list[Any]] = {
            "row": list(rows),
            "status": [_STATUS[row][sure] for row, sure in zip(there, proven, strict=True)],
            "distance": [far if far < math.inf else None for far in upper.tolist()],
            "lower_bound": [low if low < math.inf else None for low in lower.tolist()],
            "changes": self._json_rows.changes(batch.points, claims.points),
            "counterfactual": [text if good else None for text, good in zip(counterfactuals, there, strict=True)],
            "score_before": _plain_scores(batch.scores),
            "score_after": _plain_scores(scores),
            "method": claims.methods,
            "seconds": claims.seconds.tolist(),
            "note": notes,
        }
        often = zip(self.schema.names, moved.sum(axis=0).tolist(), strict=True)
        return Records(
            columns=columns,
            sizes=np.where(claims.found, moved.sum(axis=1), -1).tolist(),
            changed={name: count for name, count in often if count},
        )

    def changes(self, before: Floats, after: Floats) -> tuple[Change, ...]:
        """What differs between two points."""
        (old,), (new,), (moved,) = self._compared(before[None, :], after[None, :])
        return tuple(Change(self.schema.names[g], old[g], new[g], self.counted[g]) for g in moved)

    def _compared(self, before: Floats, after: Floats) -> tuple[list[Row], list[Row], list[tuple[int, ...]]]:
        """Points before and after in the user's own values, row by row, and for each row the features that moved.

        Tuples, which Python's collector of garbage soon leaves alone: it takes longer than all of this.
        """
        if len(before) >= FEW:
            old, new = (zip(*user_columns(self.schema, points).values(), strict=True) for points in (before, after))
            return list(old), list(new), _where(before != after)
        features = self.schema.features
        olds: list[Row] = []
        news: list[Row] = []
        moved: list[tuple[int, ...]] = []
        for one, other in zip(before.tolist(), after.tolist(), strict=True):
            own = [feature.value(v) for feature, v in zip(features, one, strict=True)]
            olds.append(tuple(own))
            moved.append(tuple([g for g, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]))
            for g in moved[-1]:
                own[g] = features[g].value(other[g])
            news.append(tuple(own))
        return olds, news, moved

    def _decided(self, scores: NDArray[np.float64]) -> list[Any]:
        return self._decisions(self.model.decide(scores)) if self.labels else [None] * len(scores)

    def _decisions(self, decided: NDArray[np.intp]) -> list[Any]:
        return [self.labels[k] for k in decided.tolist()] if self.labels else [None] * len(decided)


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


def _where(moved: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """For each row, the features that moved."""
    result: list[tuple[int, ...]] = [()] * len(moved)
    rows, features = moved.nonzero()
    for i, g in zip(rows.tolist(), features.tolist(), strict=True):
        result[i] = (*result[i], g)
    return result
