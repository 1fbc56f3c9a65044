"""The verbs: explain one row, explain many.

    row -> point -> method's claim -> witness check with the user's own model -> answer

A method only claims. What becomes an answer is decided here, once, for all methods.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import Contradiction, ModelError, QuestionError, RowError
from ifonly.model import Model, Network, network_model
from ifonly.problem import ClassTarget, Constraint, Distance, Question, Target
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
)
from ifonly.schema import Schema, read_points
from ifonly.schema.tables import user_columns
from ifonly.search import Enumerate
from ifonly.tolerances import DEFAULT, Tolerances

CAUTION = 16.0
TRIES = 3
NO_LIMITS = Limits()


class Explainer:
    """Prepares a model once and answers any number of people.

    `model` is an ifonly Model or Network, a path to a network or ONNX file, or a fitted scikit-learn or torch model; all but
    the first need `schema`. `classes` names the classes where the model does not.
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
        self.model = _as_model(model, schema, tuple(classes))
        self.schema = self.model.schema
        self.tolerances = tolerances
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise QuestionError(f"The number of threads must be a whole number >= 1; it is {threads!r}.")
        self.threads = threads
        self._solvers: dict[Any, Solver] = {}

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
        return self._answer(point[None, :], [0], asked)[0]

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
        """One answer a row, in order; a row that does not fit the schema gives a `Failed` answer. Limits are per row."""
        begun = time.perf_counter()
        errors: list[RowError | None] = []
        points = read_points(self.schema, table, errors=errors)
        good = [i for i, error in enumerate(errors) if error is None]
        asked = _Asked(target, distance, constraints, method, limits, listen)
        answers: list[Answer] = [
            Failed(row=i, factual={}, target="", distance_name="", lower=0.0, note=str(error))
            for i, error in enumerate(errors)
        ]
        for i, answer in zip(good, self._answer(points[good], good, asked), strict=True):
            answers[i] = answer
        return Answers(answers, seconds=time.perf_counter() - begun)

    # ------------------------------------------------------------------ from points to answers

    def _answer(self, points: NDArray[np.float64], rows: list[int], asked: _Asked) -> list[Answer]:
        if not len(points):
            return []
        before = self.model.scores(points)
        decided = self.model.decide(before) if self.model.is_classifier else np.zeros(len(points), dtype=np.intp)
        answers: list[Answer | None] = [None] * len(points)
        for target, members in self._targets(asked.target, decided):
            question = Question(
                model=self.model,
                target=target,
                distance=asked.distance if isinstance(asked.distance, Distance) else Distance(asked.distance),
                constraints=asked.constraints,
            )
            unique, first, inverse = _distinct(points[members])
            checked = self._checked(question, unique, asked)
            made = self._made(question, points[members], before[members], decided[members], [checked[i] for i in inverse])
            for k, i in enumerate(members):
                answers[i] = replace(made[k], row=rows[i]) if made[k].row != rows[i] else made[k]
        return [answer for answer in answers if answer is not None]

    def _targets(self, target: Any, decided: NDArray[np.intp]) -> list[tuple[Target, list[int]]]:
        """The target of each person: what was asked for, or, for two classes, the other class."""
        everyone = list(range(len(decided)))
        if target is not None:
            return [(target if hasattr(target, "conditions") else ClassTarget(target), everyone)]
        if len(self.model.classes) != 2:
            raise QuestionError(
                "Say which decision is wanted with target=...: " + (
                    f"one of {', '.join(map(repr, self.model.classes))}." if self.model.classes
                    else "a ScoreTarget, since this model is a regression."
                )
            )  # fmt: skip
        groups = [(ClassTarget(self.model.classes[1 - k]), np.flatnonzero(decided == k).tolist()) for k in (0, 1)]
        return [(t, members) for t, members in groups if members]

    def _solver(self, question: Question, method: Method) -> Solver:
        key = (id(question.model), question.target, question.distance, question.constraints, question.caution, method)
        try:
            if key not in self._solvers:
                if len(self._solvers) >= 64:
                    self._solvers.clear()
                self._solvers[key] = method.prepare(question, self.tolerances)
            return self._solvers[key]
        except TypeError:  # something unhashable in the question: prepare it anew
            return method.prepare(question, self.tolerances)

    def _checked(
        self, question: Question, points: NDArray[np.float64], asked: _Asked
    ) -> list[tuple[Claim, Witness | None]]:
        """Claims whose rows the user's own model accepts. Where it refuses one, ask again with more caution."""
        method = asked.method or Enumerate()
        result: list[tuple[Claim, Witness | None]] = [(_NOTHING, None)] * len(points)
        waiting = list(range(len(points)))
        for attempt in range(TRIES):
            careful = question.more_careful(CAUTION**attempt) if attempt else question
            claims = self._solver(careful, method).solve(
                points[waiting], asked.limits, threads=self.threads, listen=asked.listen
            )
            found = [k for k, claim in enumerate(claims) if claim.point is not None]
            witnesses: dict[int, Witness] = {}
            if found:
                rows = np.array([claims[k].point for k in found])
                checks = check_witnesses(question, points[[waiting[k] for k in found]], rows)
                witnesses = dict(zip(found, checks, strict=True))
            refused = []
            for k, claim in enumerate(claims):
                witness = witnesses.get(k)
                if witness is not None and witness.refusal:
                    if not witness.deciding:
                        raise Contradiction(f"Method '{method.name}' returned a row that does not pass: {witness.refusal}.")
                    refused.append(waiting[k])
                    result[waiting[k]] = (replace(claim, point=None, limit=_REFUSED), None)
                else:
                    result[waiting[k]] = (claim, witness)
            waiting = refused
            if not waiting:
                break
        return result

    def _made(
        self,
        question: Question,
        points: NDArray[np.float64],
        before: NDArray[np.float64],
        decided: NDArray[np.intp],
        checked: list[tuple[Claim, Witness | None]],
    ) -> list[Answer]:
        """Answers in the user's own values."""
        names, classes = self.schema.names, self.model.classes
        after = np.array([p if c.point is None else c.point for p, (c, _) in zip(points, checked, strict=True)])
        old = list(zip(*user_columns(self.schema, points).values(), strict=True))
        new = list(zip(*user_columns(self.schema, after).values(), strict=True))
        target, distance = question.target.describe(), question.distance.name
        answers: list[Answer] = []
        for i, (claim, witness) in enumerate(checked):
            common: dict[str, Any] = {
                "row": i, "factual": dict(zip(names, old[i], strict=True)), "target": target, "distance_name": distance,
                "decision_before": classes[decided[i]] if classes else None, "score_before": _score(before[i]),
                "method": claim.method, "seconds": claim.seconds, "nodes": claim.nodes, "note": claim.limit,
                "record": claim.record,
            }  # fmt: skip
            if witness is None:
                kind = NoneExists if claim.lower == math.inf and not claim.limit else Unknown
                if kind is Unknown and not claim.limit:
                    common["note"] = "the only candidates sit on the margin to the last bit"
                answers.append(kind(lower=claim.lower, **common))
                continue
            upper = witness.distance
            if claim.lower > upper * (1 + 1e-9) + 1e-12:
                raise Contradiction(
                    f"Method '{claim.method}' claims that nothing is nearer than {claim.lower!r}, "
                    f"but its own row is at {upper!r}."
                )
            lower = min(claim.lower, upper)
            proven = upper - lower <= self.tolerances.allowed(upper)
            if not proven and not claim.limit:
                common["note"] = "the deployed model's rounding leaves this gap"
            moved = np.flatnonzero(points[i] != after[i])
            answers.append(
                (Nearest if proven else Within)(
                    lower=lower,
                    upper=upper,
                    counterfactual=dict(zip(names, new[i], strict=True)),
                    changes=tuple(Change(names[g], old[i][g], new[i][g]) for g in moved.tolist()),
                    decision_after=classes[int(self.model.decide(witness.scores[None, :])[0])] if classes else None,
                    score_after=_score(witness.scores),
                    **common,
                )
            )
        return answers


class _Asked:
    """The arguments of a call, together."""

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
        self.target, self.distance, self.constraints = target, distance, tuple(constraints)
        self.method, self.limits, self.listen = method, limits, listen


_REFUSED = "the deployed model refuses every row found near the margin; ask for a larger margin"
_NOTHING = Claim(point=None, lower=0.0, method="")


def _score(scores: NDArray[np.float64]) -> float | tuple[float, ...]:
    return float(scores[0]) if len(scores) == 1 else tuple(scores.tolist())


def _distinct(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[int], list[int]]:
    """Distinct rows in order of first appearance, and for each row which of them it is."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    inverse: list[int] = []
    for i, point in enumerate(points):
        key = point.tobytes()
        if key not in seen:
            seen[key] = len(first)
            first.append(i)
        inverse.append(seen[key])
    return points[first], first, inverse


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
