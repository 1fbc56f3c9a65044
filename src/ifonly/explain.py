"""The verbs: explain one row, explain many.

    row -> point -> method's claim -> witness check with the user's own model -> answer

A method only claims. What becomes an answer is decided here, once, for all methods.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import Contradiction, ModelError, QuestionError, RowError
from ifonly.model import Model, Network, network_model
from ifonly.problem import ClassTarget, Constraint, Distance, Question, ScoreTarget, Target
from ifonly.proof import (
    Answer,
    Answers,
    Change,
    Claim,
    Failed,
    Limits,
    Listener,
    Method,
    Nearest,
    NoneExists,
    Solver,
    Unknown,
    Within,
    Witness,
    check_witnesses,
    tidied,
)
from ifonly.schema import Schema, read_points
from ifonly.schema.features import plain
from ifonly.schema.tables import user_columns
from ifonly.search import Search
from ifonly.threads import run_chunks
from ifonly.tolerances import BOUND_ABSOLUTE, BOUND_RELATIVE, DEFAULT, Tolerances

CAUTION = 16.0
"""By how much more a refused row's rounding error is taken for, attempt after attempt."""
TRIES = 3
MOST_SOLVERS = 64
PEOPLE_A_CHUNK = 128
"""Distinct people that one thread takes through at a time."""
FEW = 8
"""Below this many rows, going row by row is faster than going by columns."""
NO_LIMITS = Limits()


class Explainer:
    """Prepares a model once and answers any number of people.

    `model` is an ifonly Model or Network, a path to a network or ONNX file, or a fitted scikit-learn or torch model;
    all but the first need `schema`. `classes` names the classes where the model does not.
    """

    def __init__(
        self,
        model: Any,
        *,
        schema: Schema | None = None,
        classes: Sequence[Any] = (),
        threads: int = 1,
        tolerances: Tolerances = DEFAULT,
    ) -> None:
        if isinstance(classes, str) or not isinstance(classes, Iterable):
            raise ModelError(f"Give the class names as a list, such as ['denied', 'approved']; got {classes!r}.")
        self.model = _as_model(model, schema, tuple(plain(name) for name in classes))
        self.schema = self.model.schema
        self.tolerances = tolerances
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise QuestionError(f"The number of threads must be a whole number >= 1; it is {threads!r}.")
        self.threads = threads
        self._solvers: dict[Any, Solver] = {}
        self._preparing = threading.Lock()

    def explain(
        self,
        row: Any,
        *,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[Constraint] = (),
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
    ) -> Answer:
        """The nearest allowed row that the model decides as asked, or the proof that there is none.

        `target` is a class name, a ClassTarget or a ScoreTarget; for two classes it defaults to the other class.
        """
        point = self.schema.read(row)
        asked = _Asked(target, distance, constraints, method, limits, None)
        return self._answer(point[None, :], [0], asked, self.threads)[0]

    def explain_many(
        self,
        table: Any,
        *,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[Constraint] = (),
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
        listen: Listener | None = None,
    ) -> Answers:
        """One answer a row, in order; a row that does not fit the schema gives a `Failed` one. Limits are a row's."""
        begun = time.perf_counter()
        asked = _Asked(target, distance, constraints, method, limits, listen)
        errors: list[RowError | None] = []
        points = read_points(self.schema, table, errors=errors)
        good = [i for i, error in enumerate(errors) if error is None]
        answered = iter(self._answer_all(points[good], good, asked))
        answers = [next(answered) if error is None else _failed(i, error) for i, error in enumerate(errors)]
        return Answers(answers, seconds=time.perf_counter() - begun)

    # ------------------------------------------------------------------ from points to answers

    def _answer_all(self, points: NDArray[np.float64], rows: list[int], asked: _Asked) -> list[Answer]:
        """`_answer`, on several threads where there are people enough; identical people share a chunk."""
        if self.threads == 1 or len(points) < 2 * PEOPLE_A_CHUNK:
            return self._answer(points, rows, asked, self.threads)
        unique, inverse = _distinct(points)
        of = np.array(inverse) // PEOPLE_A_CHUNK
        chunks = [np.flatnonzero(of == k).tolist() for k in range(-(-len(unique) // PEOPLE_A_CHUNK))]

        def task(members: list[int], heard: Listener) -> list[Answer]:
            return self._answer(points[members], [rows[i] for i in members], asked.heard_by(heard), 1)

        sizes = [min(PEOPLE_A_CHUNK, len(unique) - k * PEOPLE_A_CHUNK) for k in range(len(chunks))]
        told = run_chunks(task, chunks, sizes, self.threads, asked.listen)
        answers = {i: answer for members, part in zip(chunks, told, strict=True)
                   for i, answer in zip(members, part, strict=True)}  # fmt: skip
        return [answers[i] for i in range(len(points))]

    def _answer(self, points: NDArray[np.float64], rows: list[int], asked: _Asked, threads: int) -> list[Answer]:
        """One answer a point, in order; `rows` are the numbers that the answers carry."""
        if not len(points):
            return []
        before = self.model.scores(points)
        blank = np.flatnonzero(np.isnan(before).any(axis=1))
        if len(blank):
            raise ModelError(f"The model gives no score (NaN) for row {rows[blank[0]]}, so nothing can be said of it.")
        decided = self.model.decide(before) if self.model.is_classifier else np.zeros(len(points), dtype=np.intp)
        answers: dict[int, Answer] = {}
        groups = [(target, members, *_distinct(points[members])) for target, members in self._targets(asked, decided)]
        finished, people = 0, sum(len(unique) for _, _, unique, _ in groups)
        for target, members, unique, inverse in groups:
            question = Question(model=self.model, target=target, distance=asked.distance, constraints=asked.constraints)
            heard = _shifted(asked.listen, finished, people)
            checked = self._checked(question, unique, asked, threads, heard)
            finished += len(unique)
            batch = _Batch(
                rows=[rows[i] for i in members],
                points=points[members],
                before=before[members],
                decided=decided[members],
                checked=[checked[k] for k in inverse],
            )
            answers.update(zip(members, self._made(question, batch), strict=True))
        return [answers[i] for i in range(len(points))]

    def _targets(self, asked: _Asked, decided: NDArray[np.intp]) -> list[tuple[Target, list[int]]]:
        """The target of each person: what was asked for, or, for two classes, the other class."""
        if asked.target is not None:
            return [(asked.target, list(range(len(decided))))]
        classes = self.model.classes
        if len(classes) != 2:
            listed = (
                f"one of {', '.join(map(repr, classes))}" if classes else "a ScoreTarget, since this is a regression"
            )
            raise QuestionError(f"Say which decision is wanted with target=...: {listed}.")
        groups = [(ClassTarget(classes[1 - k]), np.flatnonzero(decided == k).tolist()) for k in (0, 1)]
        return [(target, members) for target, members in groups if members]

    def _solver(self, question: Question, method: Method) -> Solver:
        key = (question.target, question.distance, question.constraints, question.caution, method)
        try:
            known = self._solvers.get(key)
        except TypeError:  # something unhashable in the question or the method: prepare it anew
            return method.prepare(question, self.tolerances)
        if known is None:
            with self._preparing:
                known = self._solvers.get(key)
                if known is None:
                    if len(self._solvers) >= MOST_SOLVERS:
                        self._solvers.clear()
                    known = self._solvers[key] = method.prepare(question, self.tolerances)
        return known

    def _checked(
        self, question: Question, points: NDArray[np.float64], asked: _Asked, threads: int, heard: Listener | None
    ) -> list[tuple[Claim, Witness | None]]:
        """Claims whose rows the user's own model accepts. Where it refuses one, ask again with more caution."""
        method = asked.method or Search()
        result: list[tuple[Claim, Witness | None]] = [(_NOTHING, None)] * len(points)
        waiting = list(range(len(points)))
        for attempt in range(TRIES):
            careful = question.more_careful(CAUTION**attempt) if attempt else question
            claims = self._solver(careful, method).solve(points[waiting], asked.limits, threads=threads, listen=heard)
            if len(claims) != len(waiting):
                raise Contradiction(f"Method '{method.name}' gave {len(claims)} claims for {len(waiting)} people.")
            claims, witnesses = _witnessed(question, points[waiting], claims, self.tolerances)
            refused = []
            for i, claim, witness in zip(waiting, claims, witnesses, strict=True):
                if witness is None or not witness.refusal:
                    result[i] = (claim, witness)
                elif witness.deciding:
                    refused.append(i)
                    result[i] = (_refused(claim), None)
                else:
                    raise Contradiction(f"Method '{method.name}' returned a wrong row: {witness.refusal}.")
            if not refused:
                break
            waiting, heard = refused, None
        return result

    def _made(self, question: Question, batch: _Batch) -> Iterator[Answer]:
        """Answers in the user's own values."""
        names, n = self.schema.names, len(batch.rows)
        target, distance_name = question.target.describe(), question.distance.name
        after = np.array(
            [p if c.point is None else c.point for p, (c, _) in zip(batch.points, batch.checked, strict=True)]
        )
        blank = np.full(self.model.network.outputs, np.nan)
        scores = np.array([blank if w is None else w.scores for _, w in batch.checked])
        old, new = self._values(batch.points), self._values(after)
        moved = _where(batch.points != after)
        score_before, score_after = _scores(batch.before), _scores(scores)
        decision_before, decision_after = self._decisions(batch.decided), [None] * n
        if self.model.is_classifier:
            decision_after = self._decisions(self.model.decide(scores))
        for i, (claim, witness) in enumerate(batch.checked):
            common = {
                "row": batch.rows[i],
                "factual": dict(zip(names, old[i], strict=True)),
                "target": target,
                "distance_name": distance_name,
                "decision_before": decision_before[i],
                "score_before": score_before[i],
                "method": claim.method,
                "seconds": claim.seconds,
                "nodes": claim.nodes,
                "record": claim.record,
            }
            if witness is None:
                yield _without_row(claim, common)
                continue
            upper = witness.distance
            lower = _agreed_lower(claim, upper)
            proven = upper - lower <= self.tolerances.allowed(upper)
            yield (Nearest if proven else Within)(
                lower=lower,
                upper=upper,
                counterfactual=dict(zip(names, new[i], strict=True)),
                changes=tuple([Change(names[g], old[i][g], new[i][g]) for g in moved[i]]),
                decision_after=decision_after[i],
                score_after=score_after[i],
                note="" if proven else claim.limit or _ROUNDING,
                **common,
            )

    def _values(self, points: NDArray[np.float64]) -> list[tuple[Any, ...]]:
        """Points in the user's own values, row by row."""
        if len(points) < FEW:
            return [tuple(self.schema.row(point).values()) for point in points]
        return list(zip(*user_columns(self.schema, points).values(), strict=True))

    def _decisions(self, decided: NDArray[np.intp]) -> list[Any]:
        labels = [plain(name) for name in self.model.classes]
        return [labels[k] for k in decided.tolist()] if labels else [None] * len(decided)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """People who ask the same question: their numbers, points, scores and classes before, and the checked claims."""

    rows: list[int]
    points: NDArray[np.float64]
    before: NDArray[np.float64]
    decided: NDArray[np.intp]
    checked: list[tuple[Claim, Witness | None]]


class _Asked:
    """The arguments of a call, together and checked."""

    __slots__ = ("constraints", "distance", "limits", "listen", "method", "target")

    def __init__(
        self,
        target: Any,
        distance: str | Distance,
        constraints: Sequence[Constraint],
        method: Method | None,
        limits: Limits,
        listen: Listener | None,
    ) -> None:
        if isinstance(constraints, str) or not isinstance(constraints, Iterable):
            raise QuestionError(f"Give constraints as a list, such as [Fixed('Age')]; got {constraints!r}.")
        if method is not None and not hasattr(method, "prepare"):
            raise QuestionError(f"A method is an object such as Search(); got {method!r}.")
        if not isinstance(limits, Limits):
            raise QuestionError(f"Give limits as Limits(seconds=...); got {limits!r}.")
        named = target is None or isinstance(target, ClassTarget | ScoreTarget)
        self.target: Target | None = target if named else ClassTarget(target)
        self.distance = distance if isinstance(distance, Distance) else Distance(distance)
        self.constraints, self.method, self.limits, self.listen = tuple(constraints), method, limits, listen

    def heard_by(self, listen: Listener) -> _Asked:
        """The same, told to somebody else."""
        return _Asked(self.target, self.distance, self.constraints, self.method, self.limits, listen)


_REFUSED = "the deployed model refuses every row found near the margin; ask for a larger margin"
_ROUNDING = "the deployed model's rounding leaves this gap"
_ON_MARGIN = "the only candidates sit on the margin to the last bit"
_NOTHING = Claim(point=None, lower=0.0, method="")


def _refused(claim: Claim) -> Claim:
    """A claim whose row the deployed model refuses. It is then not the model that the bound was proven for."""
    return replace(claim, point=None, lower=0.0, limit=_REFUSED)


def _failed(row: int, error: RowError) -> Failed:
    return Failed(row=row, factual={}, target="", distance_name="", lower=0.0, note=str(error))


def _without_row(claim: Claim, common: dict[str, Any]) -> NoneExists | Unknown:
    if claim.lower == math.inf and not claim.limit:
        return NoneExists(lower=claim.lower, **common)
    return Unknown(lower=claim.lower, note=claim.limit or _ON_MARGIN, **common)


def _agreed_lower(claim: Claim, upper: float) -> float:
    """The claimed lower bound, which cannot be above the distance of the claimed row."""
    if claim.lower > upper * (1.0 + BOUND_RELATIVE) + BOUND_ABSOLUTE:
        raise Contradiction(
            f"Method '{claim.method}' claims that nothing is nearer than {claim.lower!r}, "
            f"but its own row is at {upper!r}."
        )
    return min(claim.lower, upper)


def _witnessed(
    question: Question, points: NDArray[np.float64], claims: list[Claim], tolerances: Tolerances
) -> tuple[list[Claim], list[Witness | None]]:
    """The claims, tidied where the model agrees, and the check of each claimed row (None for claims without one)."""
    tidy = tidied(question, points, claims, tolerances)
    witnesses = _witnesses(question, points, tidy)
    again = [k for k, w in enumerate(witnesses) if w is not None and w.refusal and tidy[k] is not claims[k]]
    for k, witness in zip(again, _witnesses(question, points[again], [claims[k] for k in again]), strict=True):
        tidy[k], witnesses[k] = claims[k], witness
    return tidy, witnesses


def _witnesses(question: Question, points: NDArray[np.float64], claims: list[Claim]) -> list[Witness | None]:
    """The check of each claimed row; None for claims without one."""
    found = [k for k, claim in enumerate(claims) if claim.point is not None]
    result: list[Witness | None] = [None] * len(claims)
    if found:
        rows = np.array([claims[k].point for k in found])
        for k, witness in zip(found, check_witnesses(question, points[found], rows), strict=True):
            result[k] = witness
    return result


def _scores(scores: NDArray[np.float64]) -> list[Any]:
    """A float a row, or a tuple where the model has several outputs."""
    return scores[:, 0].tolist() if scores.shape[1] == 1 else list(map(tuple, scores.tolist()))


def _where(moved: NDArray[np.bool_]) -> list[list[int]]:
    """For each row, the features that moved."""
    result: list[list[int]] = [[] for _ in moved]
    for i, g in zip(*(index.tolist() for index in np.nonzero(moved)), strict=True):
        result[i].append(g)
    return result


def _shifted(listen: Listener | None, finished: int, people: int) -> Listener | None:
    """A listener that counts over all groups of people, not one."""
    if listen is None:
        return None
    hear = listen
    return lambda event: hear(replace(event, finished=finished + event.finished, people=people))


def _distinct(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[int]]:
    """Distinct rows in order of first appearance, and for each row which of them it is."""
    seen: dict[bytes, int] = {}
    inverse = [seen.setdefault(point.tobytes(), len(seen)) for point in points]
    first = {k: i for i, k in reversed(list(enumerate(inverse)))}
    return points[[first[k] for k in range(len(seen))]], inverse


def _as_model(model: Any, schema: Schema | None, classes: tuple[Any, ...]) -> Model:
    if isinstance(model, Model):
        if schema is not None and schema != model.schema:
            raise ModelError("This model already has a schema of its own; leave out schema=..., or import it anew.")
        return replace(model, classes=classes) if classes else model
    if schema is None:
        raise ModelError("Say what a row is with schema=...; Schema.infer(frame) proposes one.")
    if isinstance(model, Network):
        return network_model(model, schema, classes=classes)
    from ifonly.model.importers import import_model

    return import_model(Path(model) if isinstance(model, str) else model, schema, classes=classes)


def explain(model: Any, row: Any, *, schema: Schema | None = None, **question: Any) -> Answer:
    """`Explainer(model, schema=schema).explain(row, ...)` in one call, for a single question."""
    return Explainer(model, schema=schema).explain(row, **question)
