"""The verbs: explain one row, explain many.

    row -> point -> method's claim -> witness check with the user's own model -> answer

A method only claims. Its claims are checked in `finding`, and what becomes an answer is decided here, once, for all
methods.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ifonly.asking.branching import Branching, Person, as_conditions, is_condition
from ifonly.asking.diverse import DiverseAnswers, Diversity, explain_diverse
from ifonly.asking.finder import PREPARING, ROUNDING, Asked, Finder, Found, Wanted, uncounted
from ifonly.asking.reasons import find_reasons
from ifonly.errors import Contradiction, ModelError, QuestionError, RowError, UnsupportedQuestion
from ifonly.model import Model, Network, network_model
from ifonly.model.model import class_list
from ifonly.population.threads import run_chunks
from ifonly.printing import shown
from ifonly.problem import ClassTarget, Distance, OpenTarget, Target
from ifonly.problem.rules import AnyConstraint, merged, read_constraint
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
    Progress,
    Reasons,
    Unknown,
    Within,
)
from ifonly.schema import Numeric, Schema, read_points
from ifonly.schema.features import plain
from ifonly.schema.given import items
from ifonly.schema.tables import user_columns
from ifonly.search import Search
from ifonly.tolerances import BOUND_ABSOLUTE, BOUND_RELATIVE, DEFAULT, Tolerances

PEOPLE_A_CHUNK = 128
"""Distinct people that one thread takes through at a time."""
FEW = 8
"""Below this many rows, going row by row is faster than going by columns."""
NO_LIMITS = Limits()


class Explainer:
    """Prepares a model once and answers any number of people.

    `model` is an ifonly Model or Network, a path to a network or ONNX file, or a fitted scikit-learn or torch model;
    all but the first need `schema`. `classes` names the classes where the model does not. `constraints` (objects, or
    words such as "Age is fixed") hold for everybody, as the schema's own rules do; those of one question are added.
    """

    def __init__(
        self,
        model: Any,
        *,
        schema: Schema | None = None,
        classes: Sequence[Any] = (),
        constraints: Sequence[AnyConstraint | str] = (),
        threads: int = 1,
        tolerances: Tolerances = DEFAULT,
    ) -> None:
        with PREPARING:
            self.model = _as_model(model, schema, class_list(classes))
        self.schema = self.model.schema
        if not isinstance(tolerances, Tolerances):
            raise QuestionError(f"Give tolerances as Tolerances(gap=...); got {shown(tolerances)}.")
        self.tolerances = tolerances
        threads = plain(threads)
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise QuestionError(f"The number of threads must be a whole number >= 1; it is {shown(threads)}.")
        self.threads = threads
        self.constraints = self._read(constraints)
        self._everybody = merged(self.schema, (), self.constraints)
        self._finder = Finder(self.model, tolerances)

    def explain(
        self,
        row: Any,
        *,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[AnyConstraint | str] = (),
        fewest_first: bool = False,
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
        reasons: bool = True,
    ) -> Answer:
        """The nearest allowed row that the model decides as asked, or the proof that there is none.

        `target` is a class name, or a target such as ProbabilityTarget; for two classes it defaults to the other class.
        `fewest_first`: as few changes as possible, and the nearest row among those. `reasons`: where there is none, say
        which constraints rule it out and what would help; the limits hold for each question that this takes, and ten
        times as many seconds for all of them.
        """
        point = self.schema.read(row)
        asked = self._asked(target, distance, constraints, fewest_first, method, limits, None)
        answer = self._answer(point[None, :], [0], asked, self.threads)[0]
        return self._with_reasons(answer, point, asked) if _flag("reasons", reasons) else answer

    def standing(self, row: Any, *, target: Any = None, distance: str | Distance = "l1", constraints: Any = ()) -> Any:
        """The answer of someone who is decided as asked already, asked of the model alone; None for anybody else."""
        point = self.schema.read(row)
        asked = self._asked(target, distance, constraints, False, None, NO_LIMITS, None)
        before = self.model.scores(point[None, :])
        decided = self.model.decide(before) if self.model.is_classifier else np.zeros(1, dtype=np.intp)
        return self._standing(_Batch(rows=[0], points=point[None, :], before=before, decided=decided), asked).get(0)

    def nearest_allowed(
        self,
        row: Any,
        *,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[AnyConstraint | str] = (),
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
    ) -> Answer:
        """The nearest row that the constraints allow, also for someone who is decided as asked already.

        `explain` says of them that nothing needs to change; what else there is, diverse sets ask for.
        """
        asked = replace(self._asked(target, distance, constraints, False, method, limits, None), as_it_is=False)
        return self._answer(self.schema.read(row)[None, :], [0], asked, self.threads)[0]

    def explain_many(
        self,
        table: Any,
        *,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[AnyConstraint | str] = (),
        fewest_first: bool = False,
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
        reasons: bool = False,
        listen: Listener | None = None,
    ) -> Answers:
        """One answer a row, in order; a row that does not fit the schema gives a `Failed` one. Limits are a row's."""
        begun = time.perf_counter()
        asked = self._asked(target, distance, constraints, fewest_first, method, limits, listen)
        errors: list[RowError | None] = []
        points = read_points(self.schema, table, errors=errors)
        good = [i for i, error in enumerate(errors) if error is None]
        answered = self._answer_all(points[good], good, asked)
        if _flag("reasons", reasons):
            answered = self._with_all_reasons(answered, points[good], asked)
        rest = iter(answered)
        answers = [next(rest) if error is None else _failed(i, error) for i, error in enumerate(errors)]
        return Answers(answers, seconds=time.perf_counter() - begun)

    def explain_diverse(
        self,
        row: Any,
        *,
        k: int,
        apart: float = 0.01,
        differ: Literal["distance", "features", "values"] = "distance",
        apart_distance: str | Distance | None = None,
        target: Any = None,
        distance: str | Distance = "l1",
        constraints: Sequence[AnyConstraint | str] = (),
        method: Method | None = None,
        limits: Limits = NO_LIMITS,
    ) -> DiverseAnswers:
        """Up to k answers, nearest first, each the nearest that differs from all earlier ones.

        `differ`: by at least `apart` in distance (in `apart_distance`, or else in the question's), in the features that
        change, or in a value. Limits are an answer's. Where there are fewer than k, `ended` of the set says why.
        """
        diversity = Diversity(k=k, apart=apart, differ=differ, apart_distance=apart_distance)
        self._check_limits(limits)
        return explain_diverse(
            self,
            row,
            diversity,
            target=target,
            distance=distance,
            constraints=self._read(constraints),
            method=method,
            limits=limits,
        )

    def _asked(
        self,
        target: Any,
        distance: str | Distance,
        constraints: Sequence[AnyConstraint | str],
        fewest_first: bool,
        method: Method | None,
        limits: Limits,
        listen: Listener | None,
    ) -> Asked:
        """The arguments of a call, checked, with the constraints that hold for everybody."""
        if method is not None and not hasattr(method, "prepare"):
            raise QuestionError(f"A method is an object such as Search(); got {shown(method)}.")
        self._check_limits(limits)
        named = target is None or isinstance(target, Target | OpenTarget)
        wanted: Target | OpenTarget | None = target if named else ClassTarget(target)
        if isinstance(wanted, OpenTarget):
            wanted.check(self.model)
        return Asked(
            target=wanted,
            distance=distance if isinstance(distance, Distance) else Distance(distance),
            constraints=self.constraints_for(constraints),
            fewest_first=_flag("fewest_first", fewest_first),
            method=method or Search(),
            limits=limits,
            listen=listen,
        )

    @staticmethod
    def _check_limits(limits: Any) -> None:
        if not isinstance(limits, Limits):
            raise QuestionError(f"Give limits as Limits(seconds=...); got {shown(limits)}.")

    def _read(self, constraints: Any) -> tuple[AnyConstraint, ...]:
        """Constraints as objects, also those given in words."""
        given = items(constraints)
        if given is None:
            raise QuestionError(f"Give constraints as a list, such as [Fixed('Age')]; got {shown(constraints)}.")
        read = tuple(read_constraint(c, self.schema) if isinstance(c, str) else c for c in given)
        for constraint in read:
            if not hasattr(constraint, "describe"):
                raise QuestionError(
                    f"A constraint is an object such as Fixed('Age'), or words; got {shown(constraint)}."
                )
            for name in (getattr(constraint, word, "") for word in ("feature", "partner")):
                if not isinstance(name, str):
                    raise QuestionError(f"A constraint names its feature by a text; {shown(name)} names none.")
        return read

    def constraints_for(self, constraints: Any) -> tuple[AnyConstraint, ...]:
        """The schema's own rules, those for everybody, and a person's; `Free` ones undo what holds for the feature."""
        own = self._read(constraints)
        return merged(self.schema, own, self.constraints) if own else self._everybody

    # ------------------------------------------------------------------ reasons

    def _with_reasons(self, answer: Answer, point: NDArray[np.float64], asked: Asked) -> Answer:
        """The answer; where none exists, with the constraints that rule it out and what would help."""
        if not isinstance(answer, NoneExists):
            return answer

        def ask(constraints: tuple[Any, ...]) -> Answer:
            other = replace(asked, constraints=constraints, listen=uncounted(asked.listen))
            try:
                return self._answer(point[None, :], [answer.row], other, self.threads)[0]
            except UnsupportedQuestion:  # e.g. the enumerator, when a real number is no longer fixed
                return self._answer(point[None, :], [answer.row], replace(other, method=Search()), self.threads)[0]

        return replace(answer, reasons=find_reasons(asked.constraints, ask, seconds=asked.limits.seconds))

    def _with_all_reasons(self, answers: list[Answer], points: NDArray[np.float64], asked: Asked) -> list[Answer]:
        """The same for many people, one after another; identical people have identical reasons."""
        known: dict[bytes, Reasons | None] = {}
        result = list(answers)
        for i, (answer, point) in enumerate(zip(answers, points, strict=True)):
            if isinstance(answer, NoneExists):
                who = point.tobytes()
                if who not in known:
                    told = self._with_reasons(answer, point, asked)
                    known[who] = told.reasons if isinstance(told, NoneExists) else None
                result[i] = replace(answer, reasons=known[who])
        return result

    # ------------------------------------------------------------------ from points to answers

    def _answer_all(self, points: NDArray[np.float64], rows: list[int], asked: Asked) -> list[Answer]:
        """`_answer`, on several threads where there are people enough; identical people share a chunk."""
        if self.threads == 1 or len(points) < 2 * PEOPLE_A_CHUNK:
            return self._answer(points, rows, asked, self.threads)
        unique, inverse = _distinct(points)
        of = np.array(inverse) // PEOPLE_A_CHUNK
        chunks = [np.flatnonzero(of == k).tolist() for k in range(-(-len(unique) // PEOPLE_A_CHUNK))]

        def task(members: list[int], heard: Listener) -> list[Answer]:
            return self._answer(points[members], [rows[i] for i in members], replace(asked, listen=heard), 1)

        sizes = [min(PEOPLE_A_CHUNK, len(unique) - k * PEOPLE_A_CHUNK) for k in range(len(chunks))]
        told = run_chunks(task, chunks, sizes, self.threads, asked.listen)
        answers = {i: answer for members, part in zip(chunks, told, strict=True)
                   for i, answer in zip(members, part, strict=True)}  # fmt: skip
        return [answers[i] for i in range(len(points))]

    def _answer(self, points: NDArray[np.float64], rows: list[int], asked: Asked, threads: int) -> list[Answer]:
        """One answer a point, in order; `rows` are the numbers that the answers carry."""
        if not len(points):
            return []
        if not asked.fewest_first:
            asked = replace(asked, constraints=as_conditions(asked.constraints, self.schema))
        if any(map(is_condition, asked.constraints)):
            self._check_conditions(asked)
        with PREPARING:  # frameworks import and compile at their first call
            before = self.model.scores(points)
        blank = np.flatnonzero(np.isnan(before).any(axis=1))
        if len(blank):
            raise ModelError(f"The model gives no score (NaN) for row {rows[blank[0]]}, so nothing can be said of it.")
        decided = self.model.decide(before) if self.model.is_classifier else np.zeros(len(points), dtype=np.intp)
        everybody = _Batch(rows=rows, points=points, before=before, decided=decided)
        answers: dict[int, Answer] = {}
        if asked.as_it_is:
            answers |= self._standing(everybody, asked)
        rest = [i for i in range(len(points)) if i not in answers]
        done = len(_distinct(points[sorted(answers)])[0])
        there = _shifted(asked.listen, done, done + len(_distinct(points[rest])[0]))
        if there is not None and not rest:
            there(Progress(finished=0, people=0))
        asked, others = replace(asked, listen=there, as_it_is=False), everybody.part(rest)
        ways = self._answer_under if any(map(is_condition, asked.constraints)) else self._searched
        answers |= zip(rest, ways(others, asked, threads), strict=True)
        return [answers[i] for i in range(len(points))]

    def _standing(self, batch: _Batch, asked: Asked) -> dict[int, Answer]:
        """The answers of those who are decided as asked already."""
        answers: dict[int, Answer] = {}
        conditions = [c for c in asked.constraints if is_condition(c)]
        ordinary = replace(asked, constraints=tuple(c for c in asked.constraints if not is_condition(c)))
        for wanted, members in self._wanted(asked, batch.decided):
            mine = batch.part(members)
            found: dict[int, Found] = {}
            for k, one in enumerate(self._finder.standing(wanted, mine.points, mine.before, ordinary)):
                if one is not None:
                    person = Person(self.schema, mine.points[k], asked.distance)
                    unmet = [c.describe() for c in conditions if not c.holds(person, mine.points[k])]
                    found[k] = one._replace(breaks=(*one.breaks, *unmet))
            if found:
                told = replace(mine.part(list(found)), found=list(found.values()))
                answers |= zip([members[k] for k in found], self._made(wanted, asked, told), strict=True)
        return answers

    def _searched(self, batch: _Batch, asked: Asked, threads: int) -> list[Answer]:
        """Answers by the method."""
        answers: dict[int, Answer] = {}
        groups = [
            (wanted, members, *_distinct(batch.points[members]))
            for wanted, members in (self._wanted(asked, batch.decided) if batch.rows else ())
        ]
        finished, people = 0, sum(len(unique) for _, _, unique, _ in groups)
        for wanted, members, unique, inverse in groups:
            heard = _shifted(asked.listen, finished, people)
            found = self._finder.found(wanted, unique, asked, threads, heard)
            finished += len(unique)
            told = replace(batch.part(members), found=[found[k] for k in inverse])
            answers.update(zip(members, self._made(wanted, asked, told), strict=True))
        return [answers[i] for i in range(len(batch.rows))]

    def _check_conditions(self, asked: Asked) -> None:
        if asked.fewest_first:
            raise QuestionError("The fewest changes cannot be asked for under a condition such as Near: use l0.")
        for condition in filter(is_condition, asked.constraints):
            condition.check(self.schema)

    def _answer_under(self, batch: _Batch, asked: Asked, threads: int) -> list[Answer]:
        """Answers under conditions that are met in one of several ways: person by person, branching on these."""
        conditions = [c for c in asked.constraints if is_condition(c)]
        ordinary = tuple(c for c in asked.constraints if not is_condition(c))
        answers: list[Answer] = []
        for point, row in zip(batch.points, batch.rows, strict=True):

            def ask(chosen: tuple[Any, ...], left: Limits, point: Any = point, row: int = row) -> Answer:
                inner = replace(asked, constraints=(*ordinary, *chosen), limits=left, listen=None)
                return self._answer(point[None, :], [row], inner, threads)[0]

            person = Person(self.schema, point, asked.distance)
            answers.append(Branching(ask, person, self.tolerances).nearest(conditions, asked.limits))
            if asked.listen is not None:
                asked.listen(Progress(finished=len(answers), people=len(batch.rows)))
        return answers

    def _wanted(self, asked: Asked, decided: NDArray[np.intp]) -> list[tuple[Wanted, list[int]]]:
        """The target of each person: what was asked for, or, for two classes, the other class."""
        target, classes = asked.target, self.model.classes
        if target is not None and not isinstance(target, OpenTarget):
            return [(Wanted(target.describe(), target.words(), (target,)), list(range(len(decided))))]
        if target is None and len(classes) != 2:
            listed = (
                f"one of {', '.join(map(repr, classes))}, or OtherTarget() for any but the present one"
                if classes
                else "a ScoreTarget, since this is a regression"
            )
            raise QuestionError(f"Say which decision is wanted with target=...: {listed}.")
        groups: list[tuple[Wanted, list[int]]] = []
        for now in sorted(set(decided.tolist())):
            if target is None:
                other = ClassTarget(classes[1 - now])
                wanted = Wanted(other.describe(), other.words(), (other,))
            else:
                words = target.words(self.model, now)
                wanted = Wanted(target.describe(), words, target.alternatives(self.model, now), target, now)
            groups.append((wanted, np.flatnonzero(decided == now).tolist()))
        return groups

    # ------------------------------------------------------------------ from what is found to answers

    def _made(self, wanted: Wanted, asked: Asked, batch: _Batch) -> Iterator[Answer]:
        """Answers in the user's own values."""
        names, n = self.schema.names, len(batch.rows)
        counted = [isinstance(feature, Numeric) for feature in self.schema.features]
        after = np.array([p if f.claim.point is None else f.claim.point
                          for p, f in zip(batch.points, batch.found, strict=True)])  # fmt: skip
        blank = np.full(self.model.network.outputs, np.nan)
        scores = np.array([blank if f.witness is None else f.witness.scores for f in batch.found])
        old, new = self._values(batch.points), self._values(after)
        moved = _where(batch.points != after)
        score_before, score_after = _scores(batch.before), _scores(scores)
        decision_before, decision_after = self._decisions(batch.decided), [None] * n
        if self.model.is_classifier:
            decision_after = self._decisions(self.model.decide(scores))
        for i, (claim, witness, left, breaks) in enumerate(batch.found):
            common = {
                "row": batch.rows[i],
                "factual": dict(zip(names, old[i], strict=True)),
                "target": wanted.name,
                "subject": wanted.words.subject,
                "state": wanted.words.state,
                "distance_name": asked.distance_name,
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
            proven = not left and upper - lower <= self.tolerances.allowed(upper)
            yield (Nearest if proven else Within)(
                lower=lower,
                upper=upper,
                counterfactual=dict(zip(names, new[i], strict=True)),
                changes=tuple([Change(names[g], old[i][g], new[i][g], counted[g]) for g in moved[i]]),
                decision_after=decision_after[i],
                score_after=score_after[i],
                note="" if proven else left or claim.limit or ROUNDING,
                breaks=breaks,
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
    """People who ask the same question: their numbers, points, scores and classes before, and what was found."""

    rows: list[int]
    points: NDArray[np.float64]
    before: NDArray[np.float64]
    decided: NDArray[np.intp]
    found: list[Found] = field(default_factory=list)

    def part(self, members: list[int]) -> _Batch:
        """Only these people, before anything is found."""
        return _Batch(
            rows=[self.rows[i] for i in members],
            points=self.points[members],
            before=self.before[members],
            decided=self.decided[members],
        )


def _failed(row: int, error: RowError) -> Failed:
    return Failed(row=row, factual={}, target="", distance_name="", lower=0.0, note=str(error))


def _without_row(claim: Claim, common: dict[str, Any]) -> NoneExists | Unknown:
    if claim.lower == math.inf and not claim.limit:
        return NoneExists(lower=claim.lower, **common)
    return Unknown(lower=claim.lower, note=claim.limit or ROUNDING, **common)


def _agreed_lower(claim: Claim, upper: float) -> float:
    """The claimed lower bound, which cannot be above the distance of the claimed row."""
    if claim.lower > upper * (1.0 + BOUND_RELATIVE) + BOUND_ABSOLUTE:
        raise Contradiction(
            f"Method '{claim.method}' claims that nothing is nearer than {claim.lower!r}, "
            f"but its own row is at {upper!r}."
        )
    return min(claim.lower, upper)


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


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise QuestionError(f"'{name}' is True or False; got {shown(value)}.")
    return bool(value)


def _as_model(model: Any, schema: Schema | None, classes: tuple[Any, ...]) -> Model:
    if schema is not None and not isinstance(schema, Schema):
        raise ModelError(f"Say what a row is with a Schema; got {shown(schema)}.")
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
