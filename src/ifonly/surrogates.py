"""Surrogates: counterfactuals for a model that can only be called (nearest neighbours, kernels, a remote service).

Of such a model nothing can be proven: between the rows that it was asked about it may decide anything. What can be had
is a row that the model itself accepts, found with a network that imitates it around the person:

    label    the model decides rows of the table, mixed a little, and rows near the person
    fit      a small ReLU network learns these decisions
    explain  the nearest row that the network accepts, under all constraints
    check    the model is asked about that row: accepted, or it becomes a further example and the network is fitted anew

An answer says that the model accepts its row, how often network and model decide alike, and never that it is nearest.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import MissingExtra, ModelError, QuestionError
from ifonly.explainer import Explainer
from ifonly.printing import shown, some_of
from ifonly.problem import ClassTarget, Distance
from ifonly.problem.learned.data import points_of
from ifonly.problem.query import Query, query_of
from ifonly.problem.rules import AnyConstraint
from ifonly.results import Answer, Change, Unknown, Within
from ifonly.schema import Schema, Value
from ifonly.schema.arguments import whole_number
from ifonly.schema.values import plain

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

__all__ = ["BlackBox", "Fidelity", "SurrogateAnswer"]

HIDDEN = (16, 16)
HELD_OUT = 500
"""Rows of the table, at most, that no network learns from: on these it is compared with the model."""
NEAR_PERSON = 1000
NEAR_REFUSED = 320
"""Rows that the model is asked about around the person, and around each row that it refuses."""
MOST_DRAWS = 1_000_000
WEIGHT = 20
"""A refused row counts as so many."""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How often a surrogate and its model decide alike, on rows that the surrogate has not learned from."""

    alike: int
    of: int

    @property
    def share(self) -> float:
        return self.alike / self.of

    def __str__(self) -> str:
        return f"{self.alike} of {self.of} rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurrogateAnswer:
    """A row that the model itself has accepted, or none; nothing is proven about nearer rows.

    `answer` has the row and the changes as any other answer has them: `Within`, with 0 for a lower bound, or `Unknown`.
    """

    answer: Within | Unknown
    fidelity: Fidelity
    """Of the surrogate that gave the row, over the held-out rows of the table."""
    refused: int
    """Rows that a surrogate took for accepted and the model refused, before this one."""
    asked: int
    """Rows that the model was asked about for this answer."""

    @property
    def status(self) -> str:
        return "not found" if self.answer.counterfactual is None else "accepted"

    @property
    def counterfactual(self) -> Mapping[str, Value] | None:
        return self.answer.counterfactual

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.answer.changes

    @property
    def distance(self) -> float:
        """The distance of the row: an upper bound of the least one. Infinity without a row."""
        return self.answer.upper

    def to_dict(self) -> dict[str, Any]:
        distance = self.distance if math.isfinite(self.distance) else None
        row = None if self.counterfactual is None else dict(self.counterfactual)
        return {
            "status": self.status,
            "distance": distance,
            "counterfactual": row,
            "changes": [change.to_dict() for change in self.changes],
            "alike": self.fidelity.alike,
            "compared": self.fidelity.of,
            "refused": self.refused,
            "asked": self.asked,
        }

    def sentence(self, language: str = "en", *, subject: str = "") -> str:
        """What the person is told, as of any answer whose distance is not proven."""
        return self.answer.sentence(language, subject=subject)

    def __str__(self) -> str:
        compared = f"The surrogate decides {self.fidelity} as the model does."
        if self.counterfactual is None:
            return f"No row was found that the model accepts; there may be one. {compared}"
        changes = "; ".join(map(str, self.changes)) or "nothing"
        return (
            f"The model accepts this row ({self.answer.distance_name} distance {self.distance:.6g}): {changes}. "
            f"A nearer one may exist: it was found with a surrogate. {compared}"
        )


class BlackBox:
    """A model that can only be called, and counterfactuals that it accepts.

    `predict` gets a list of rows, each a dictionary in the schema's own values, and returns their classes. `table` has
    real rows, which the surrogates learn from. `rounds`: how many surrogates are tried for one person. The same `seed`
    gives the same answers, as long as `predict` does.
    """

    def __init__(
        self,
        predict: Callable[[list[dict[str, Value]]], Any],
        table: Any,
        *,
        schema: Schema | None = None,
        draws: int = 4000,
        rounds: int = 12,
        seed: int = 0,
    ) -> None:
        if not callable(predict):
            hint = "; pass its method: model.predict" if hasattr(predict, "predict") else ""
            raise ModelError(f"Give a function from a list of rows to their classes{hint}; got {shown(predict)}.")
        self._predict = predict
        self.schema = Schema.infer(table) if schema is None else schema
        if not isinstance(self.schema, Schema):
            raise ModelError(f"Say what a row is with a Schema; got {shown(schema)}.")
        self.draws = whole_number(draws, "The number of drawn rows is a whole number from 100; it is", 100)
        if self.draws > MOST_DRAWS:
            raise QuestionError(f"The number of drawn rows is at most {MOST_DRAWS:,}; it is {self.draws}.")
        self.rounds = whole_number(rounds, "The number of rounds is a whole number from 1; it is", 1)
        self.seed = whole_number(seed, "A seed is a whole number from 0; it is", 0)
        self.asked = 0
        """Rows that the model was asked about so far."""
        points = np.unique(points_of(self.schema, table, whole=True), axis=0)
        if len(points) < 10:
            raise ModelError(f"A surrogate needs a table of at least 10 different rows; this one has {len(points)}.")
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(points))
        held_out = min(HELD_OUT, len(points) // 5)
        self._held_out, self._people = points[order[:held_out]], points[order[held_out:]]
        self._drawn = self._mixed(self._people[rng.integers(len(self._people), size=self.draws)], 1 / 3, rng)
        decided = [*self._decisions(self._held_out), *self._decisions(self._drawn)]
        self.classes = tuple(sorted(set(decided), key=lambda one: (str(type(one)), one)))
        if len(self.classes) < 2:
            raise ModelError(
                f"The model gives all {len(decided)} rows that it was asked about one class, {shown(decided[0])}."
            )
        numbers = self._numbers(decided)
        self._held_out_classes, self._drawn_classes = numbers[:held_out], numbers[held_out:]

    def __repr__(self) -> str:
        return f"<BlackBox: {len(self.schema)} features, classes {some_of(list(map(str, self.classes)))}>"

    def explain(
        self,
        row: Any,
        query: Query | None = None,
        *,
        target: Any = None,
        distance: str | Distance | None = None,
        constraints: Sequence[AnyConstraint | str] = (),
    ) -> SurrogateAnswer:
        """A near row that the model itself decides as asked. `target` is a class; of two, by default the other one."""
        before, point = self.asked, self.schema.read(row)
        if missing := self.schema.missing_names(point):
            raise QuestionError(f"A surrogate needs every number of a row; {some_of(missing)} is missing.")
        decision = self._decisions(point[None, :])[0]
        asked = self._class(query_of(query, target, distance, constraints).target, decision)
        query = query_of(query, ClassTarget(asked), distance, constraints)
        rng = np.random.default_rng(self.seed)
        near = np.vstack([point, self._mixed(np.repeat(point[None, :], NEAR_PERSON, axis=0), 0.15, rng)])
        points, classes = [self._drawn, near], [self._drawn_classes, self._numbers(self._decisions(near))]
        refused, accepted, tried = 0, False, True
        while tried and not accepted:
            surrogate = _fitted(self.schema.encode(np.vstack(points)), np.concatenate(classes))
            answer = Explainer(surrogate, schema=self.schema, classes=self.classes).explain(row, query)
            if decision == asked or answer.counterfactual is None:
                break
            found = self.schema.read(answer.counterfactual)
            after = self._decisions(found[None, :])[0]
            accepted = after == asked
            refused += not accepted
            tried = refused < self.rounds
            if tried and not accepted:
                around = self._mixed(np.repeat(found[None, :], NEAR_REFUSED, axis=0), 0.15, rng)
                points += [np.repeat(found[None, :], WEIGHT, axis=0), around]
                classes += [self._numbers([after] * WEIGHT), self._numbers(self._decisions(around))]
        return SurrogateAnswer(
            answer=_unproven(answer, decision, asked, accepted),
            fidelity=self._fidelity(surrogate),
            refused=refused,
            asked=self.asked - before,
        )

    # ------------------------------------------------------------------ the model

    def _decisions(self, points: Floats) -> list[Value]:
        """The model's own decisions of points."""
        self.asked += len(points)
        try:
            decided = self._predict([self.schema.row(point) for point in points])
        except Exception as error:  # it is the user's, and may raise anything
            raise ModelError(f"The function failed on {len(points)} rows: {shown(str(error))}.") from error
        if not hasattr(decided, "__len__") or len(decided) != len(points):
            got = len(decided) if hasattr(decided, "__len__") else shown(decided)
            raise ModelError(f"The function must return one class per row: for {len(points)} rows it returned {got}.")
        classes = [plain(one) for one in decided]
        for one in classes:
            if not isinstance(one, bool | int | str | float) or one != one:
                raise ModelError(
                    f"A class must be a text, a whole number or a truth value; the function gave {shown(one)}."
                )
        return classes

    def _numbers(self, decided: Sequence[Value]) -> Indices:
        """Classes by their position."""
        position = {one: i for i, one in enumerate(self.classes)}
        for one in decided:
            if one not in position:
                known = some_of(list(map(str, self.classes)))
                raise ModelError(
                    f"The function gave the class {shown(one)}, which it gave for no row of the table ({known})."
                )
        return np.array([position[one] for one in decided], dtype=np.intp)

    def _class(self, target: Any, decision: Value) -> Value:
        """The class that is asked for."""
        if target is None and len(self.classes) == 2:
            return self.classes[1 - self.classes.index(decision)] if decision in self.classes else self.classes[0]
        name = target.label if isinstance(target, ClassTarget) else target
        if name not in self.classes:
            known = some_of(list(map(str, self.classes)))
            raise QuestionError(f"Ask a black box for one of its classes, target={known}; got {shown(name)}.")
        return name

    def _fidelity(self, surrogate: Any) -> Fidelity:
        alike = surrogate.predict(self.schema.encode(self._held_out)) == self._held_out_classes
        return Fidelity(int(alike.sum()), len(alike))

    # ------------------------------------------------------------------ rows to ask about

    def _mixed(self, points: Floats, share: float, rng: np.random.Generator) -> Floats:
        """Points, of which each feature has with this probability the value of another person, or a number on the way
        to it: rows of the schema near those that are given."""
        others = self._people[rng.integers(len(self._people), size=points.shape), np.arange(len(self.schema))]
        way = np.where(rng.random(points.shape) < 0.5, 1.0, rng.random(points.shape) ** 3)
        moved = np.where(rng.random(points.shape) < share, points + way * (others - points), points)
        lower, upper, step = self.schema.grid
        by = np.where(step > 0.0, step, 1.0)
        moved = np.where(step > 0.0, lower + by * np.rint((moved - lower) / by), moved).clip(lower, upper)
        for g, grid in self.schema.grids.items():
            moved[:, g] = grid.nearest_to(moved[:, g])
        return np.where(self.schema.admits(moved)[:, None], moved, points)


def _unproven(answer: Answer, decision: Value, asked: Value, accepted: bool) -> Within | Unknown:
    """What is known of the model, from the answer of a surrogate: an accepted row or none, and no bound."""
    kind = Within if accepted or decision == asked else Unknown
    known = {one.name: getattr(answer, one.name) for one in fields(kind)}
    known |= {"lower": 0.0, "lower_any_rounding": None, "rounding_bound": 0.0, "stop": None, "record": None}
    known |= {"score_before": math.nan, "score_after": math.nan, "method": "a surrogate", "nodes": 0}
    known |= {"decision_before": decision, "decision_after": asked if kind is Within else None}
    if decision == asked:
        known |= {"upper": 0.0, "changes": (), "counterfactual": answer.factual}
    elif not accepted:
        known |= {"upper": math.inf, "changes": (), "counterfactual": None}
    return kind(**known)


def _fitted(columns: Floats, classes: Indices) -> Any:
    """A small network that decides rows as these were decided."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise MissingExtra("scikit-learn", extra="sklearn", needed_for="A surrogate") from None
    network = MLPClassifier(HIDDEN, alpha=1e-2, learning_rate_init=3e-3, max_iter=60, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(StandardScaler(), network).fit(columns, classes)
