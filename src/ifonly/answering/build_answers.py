"""Builds answers, in the user's own values, from checked results about points; the one place that does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.checked_results import CheckedResults, TargetResults
from ifonly.answering.json_rows import JsonRows
from ifonly.answering.values import Batch, CheckedResult, Floats, ResolvedTarget
from ifonly.errors import Contradiction
from ifonly.model import Model
from ifonly.problem import Query
from ifonly.problem.rules.derived import derived_features
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

NO_OUTCOME: Mapping[str, str] = {}


class AnswerBuilder:
    """Builds the answers and the records of one model."""

    def __init__(self, model: Model, tolerances: Tolerances) -> None:
        self.model, self.schema, self.tolerances = model, model.schema, tolerances
        self.counted = [isinstance(feature, Numeric) for feature in self.schema.features]
        self.labels = [plain(name) for name in model.classes]
        self.outcomes = model.outcomes
        self.words = {f.name: (f.label, f.unit) for f in self.schema.features if f.label or f.unit}
        self.translations = {f.name: f.translations for f in self.schema.features if f.translations}
        self._json_rows = JsonRows(model.schema)

    def answers(self, batch: Batch, rows: Sequence[int], found: TargetResults, query: Query) -> Iterator[Answer]:
        """One answer per person; `rows` are the numbers that the answers carry."""
        results, claims = found.results, found.results.claims
        lower, proven = self._verdicts(results)
        old, new, moved = self._compared(batch.points, claims.points)
        people = self._of_people(batch, rows, found, old)
        derived = derived_features(query.constraints)
        with_row = self._of_rows(results, lower.tolist(), old, new, moved, derived)
        common = {"distance_name": query.distance_name, "constraints": query.words}
        columns = zip(people, with_row, lower.tolist(), proven, claims.found.tolist(), strict=True)
        for i, (person, row, low, closed, has_row) in enumerate(columns):
            stop = results.left.get(i) or claims.stops.get(i)
            person |= common
            if has_row:
                yield (Nearest if closed else Within)(lower=low, stop=None if closed else stop, **row, **person)
            else:
                # without a row, `lower` is about rows whose score is at least so much above the margin
                bound = 0.0 if closed else row["rounding_bound"]
                yield (NoneExists if closed else Unknown)(lower=low, stop=stop, rounding_bound=bound, **person)

    def answer(self, batch: Batch, resolved: ResolvedTarget, result: CheckedResult, query: Query) -> Answer:
        """The answer of the one person of a batch."""
        results = CheckedResults.of([result], batch.points, self.model.outputs)
        return next(self.answers(batch, [0], TargetResults(resolved=[resolved], results=results), query))

    def _of_people(
        self, batch: Batch, rows: Sequence[int], found: TargetResults, old: list[Row]
    ) -> Iterator[dict[str, Any]]:
        """The fields of every answer: the person, the target, the effort."""
        claims, names = found.results.claims, self.schema.names
        columns = zip(
            rows, found.resolved, old, self.decisions(batch.decided),
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
                "translations": self.translations,
                "target": resolved.name,
                "subject": resolved.words.subject,
                "state": resolved.words.state,
                "method": method,
                "seconds": seconds,
                "nodes": nodes,
                "record": claims.records.get(i),
            }

    def _of_rows(
        self,
        results: CheckedResults,
        lower: list[float],
        old: list[Row],
        new: list[Row],
        moved: list[tuple[int, ...]],
        derived: frozenset[str],
    ) -> Iterator[dict[str, Any]]:
        """The further fields of answers with a row."""
        claims, names, counted = results.claims, self.schema.names, self.counted
        follows = [name in derived for name in names]
        scores, upper = results.scores, results.upper.tolist()
        columns = zip(
            lower, upper, old, new, moved, self._decided(scores), _scores(scores), claims.rounding_bound.tolist(),
            claims.lower_any_rounding.tolist(), strict=True,
        )  # fmt: skip
        for i, (low, far, before, after, features, decision, score, rounding_bound, lower_any_rounding) in enumerate(
            columns
        ):
            yield {
                "upper": far,
                "breaks": results.breaks.get(i, ()),
                "rounding_bound": rounding_bound,
                "lower_any_rounding": None if math.isnan(lower_any_rounding) else min(lower_any_rounding, low),
                "precision": self.model.precision,
                "counterfactual": dict(zip(names, after, strict=True)),
                "changes": tuple([Change(names[g], before[g], after[g], counted[g], follows[g]) for g in features]),
                "decision_after": decision,
                "score_after": score,
                "outcome": self.outcomes.get(decision, NO_OUTCOME) if self.outcomes else NO_OUTCOME,
            }

    def _verdicts(self, results: CheckedResults) -> tuple[Floats, list[bool]]:
        """The lower bounds, which cannot be above the distances of the rows, and for whom they prove it: that the row
        is the nearest, or, without one, that there is none.
        """
        claims, upper = results.claims, results.upper
        lower, proven = claims.lower, [True] * len(claims)
        if (lower > upper).any():
            for i in np.flatnonzero(lower > upper * (1.0 + BOUND_RELATIVE) + BOUND_ABSOLUTE).tolist():
                raise Contradiction(
                    f"Method '{claims.methods[i]}' claims that nothing is nearer than {float(lower[i])!r}, "
                    f"but its own row is at {float(upper[i])!r}."
                )
            lower = np.minimum(lower, upper)
        for i in (*self.tolerances.unsettled(lower, upper), *results.left):
            proven[i] = False
        for i in claims.stops:
            proven[i] &= bool(claims.found[i])
        return lower, proven

    def records(
        self, batch: Batch, rows: Sequence[int], results: CheckedResults, derived: frozenset[str] = frozenset()
    ) -> Records:
        """`records_of` the answers, by columns, without an object per answer."""
        claims = results.claims
        lower, proven = self._verdicts(results)
        has_row = claims.found.tolist()
        moved, own = batch.points != claims.points, [name not in derived for name in self.schema.names]
        counterfactuals = self._json_rows.rows(claims.points)
        notes = [""] * len(has_row)
        for i in sorted({*results.left, *claims.stops}):
            if not (has_row[i] and proven[i]):
                stop = results.left.get(i) or claims.stops[i]
                notes[i] = stop.words(row=has_row[i])
        columns: dict[str, list[Any]] = {
            "row": list(rows),
            "status": [_STATUS[row][closed] for row, closed in zip(has_row, proven, strict=True)],
            "distance": [far if far < math.inf else None for far in results.upper.tolist()],
            "lower_bound": [low if low < math.inf else None for low in lower.tolist()],
            "changes": self._json_rows.changes(batch.points, claims.points, derived),
            "counterfactual": [text if found else None for text, found in zip(counterfactuals, has_row, strict=True)],
            "score_before": _plain_scores(batch.scores),
            "score_after": _plain_scores(results.scores),
            "method": claims.methods,
            "seconds": claims.seconds.tolist(),
            "note": notes,
        }
        counts = zip(self.schema.names, moved.sum(axis=0).tolist(), strict=True)
        return Records(
            columns=columns,
            sizes=np.where(claims.found, moved[:, own].sum(axis=1), -1).tolist(),
            changed={name: count for name, count in counts if count},
        )

    def changes(self, before: Floats, after: Floats, derived: frozenset[str] = frozenset()) -> tuple[Change, ...]:
        """What differs between two points, and which of it follows."""
        (old,), (new,), (moved,) = self._compared(before[None, :], after[None, :])
        names = self.schema.names
        return tuple(Change(names[g], old[g], new[g], self.counted[g], names[g] in derived) for g in moved)

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
        return self.decisions(self.model.decide(scores)) if self.labels else [None] * len(scores)

    def decisions(self, decided: NDArray[np.intp]) -> list[Any]:
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
