"""From people to findings: whose target is which, who has it already, and either-or conditions by branching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.asking.branching import Ask, Branching
from ifonly.asking.finder import Finder, PreparedMethod
from ifonly.asking.findings import Findings, Outcomes
from ifonly.asking.found import Asked, Askers, Floats, Found, Wanted, distinct, shifted
from ifonly.caching import PREPARING, SizedCache, bytes_of
from ifonly.errors import ModelError, QuestionError
from ifonly.model import Model
from ifonly.printing import shown
from ifonly.problem import ClassTarget, OpenTarget, OtherTarget, Target
from ifonly.problem.conditions import Condition, Situation, as_conditions, is_condition
from ifonly.proof import Limits, Progress
from ifonly.tolerances import Tolerances

WANTED_BYTES = 2**20
"""What people want, by target and class."""


class Asker:
    """Puts a query to a method for any number of people. `prepared`: where prepared questions are kept, if not here."""

    def __init__(
        self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod] | None = None
    ) -> None:
        self.model, self.tolerances = model, tolerances
        self.finder = Finder(model, tolerances, prepared)
        self._wanted: SizedCache[Wanted] = SizedCache(WANTED_BYTES, bytes_of)

    def askers(self, points: Floats, rows: Sequence[int]) -> Askers:
        """The people, with what the model itself says of them; `rows` are the numbers that a complaint names."""
        with PREPARING:  # frameworks import and compile at their first call
            scores = self.model.scores(points)
        blank = np.isnan(scores)
        if blank.any():
            row = rows[int(np.argwhere(blank)[0, 0])]
            raise ModelError(f"The model gives no score (NaN) for row {row}, so nothing can be said of it.")
        decided = self.model.decide(scores) if self.model.is_classifier else np.zeros(len(points), dtype=np.intp)
        return Askers(points=points, scores=scores, decided=decided)

    def wanted(self, target: Target | OpenTarget | None, now: int) -> Wanted:
        """What someone of this class wants: what was asked for, or, for two classes, the other class."""
        return self._wanted.get_or_make((target, now), lambda: self._want(target, now))

    def _want(self, target: Target | OpenTarget | None, now: int) -> Wanted:
        model = self.model
        if target is None:
            self._check_two_classes()
            target = OtherTarget()
        other = False
        if isinstance(target, OtherTarget) and len(model.classes) == 2:
            target, other = ClassTarget(model.classes[1 - now], target.margin), True
        if isinstance(target, OpenTarget):
            target.check(model)
            return Wanted(target.describe(), target.words(model, now), target.alternatives(model, now), target, now)
        return Wanted(target.describe(), target.words(), (target,), other=other)

    def _check_two_classes(self) -> None:
        classes = self.model.classes
        if len(classes) == 2:
            return
        listed = (
            f"one of {', '.join(map(shown, classes))}, or OtherTarget() for any but the present one"
            if classes
            else "a ScoreTarget, since this is a regression"
        )
        raise QuestionError(f"Say which decision is wanted with target=...: {listed}.")

    def groups(self, asked: Asked, decided: NDArray[np.intp]) -> list[tuple[Wanted, list[int]]]:
        """People by what they want: those of one class want the same."""
        if len(decided) == 1 or (asked.target is not None and not isinstance(asked.target, OpenTarget)):
            return [(self.wanted(asked.target, int(decided[0])), list(range(len(decided))))]
        return [
            (self.wanted(asked.target, now), np.flatnonzero(decided == now).tolist())
            for now in sorted(set(decided.tolist()))
        ]

    # ------------------------------------------------------------------ many people

    def find(self, askers: Askers, asked: Asked, threads: int) -> Outcomes:
        """What each wants, and what is found: the row as it is of those who have it, the nearest row of the others.

        `asked` must be `branched` already.
        """
        wants: list[Wanted] = []
        order: list[int] = []
        parts: list[tuple[list[int], Findings]] = []
        apart = []
        for wanted, members in self.groups(asked, askers.decided):
            order += members
            wants += [wanted] * len(members)
            standing = self.standing(wanted, askers.part(members), asked)
            if has := {i: found for i, found in zip(members, standing, strict=True) if found is not None}:
                parts.append((list(has), Findings.of(list(has.values()), askers.points[list(has)], self.model.outputs)))
            waiting = [i for i in members if i not in has] if has else members
            if waiting:
                apart.append((wanted, waiting, *distinct(askers.part(waiting).points)))
        done = sum(len(distinct(askers.points[has])[0]) for has, _ in parts)
        people = done + sum(len(unique) for _, _, unique, _ in apart)
        if asked.listen is not None and not apart:
            asked.listen(Progress(finished=done, people=people))
        for wanted, members, unique, inverse in apart:
            heard = asked if asked.listen is None else replace(asked, listen=shifted(asked.listen, done, people))
            found = Findings.of(self.nearest(wanted, unique, heard, threads), unique, self.model.outputs)
            done += len(unique)
            parts.append((members, found if len(unique) == len(members) else found.take(inverse)))
        if len(order) > 1 and order != sorted(order):
            wants = [wants[k] for k in np.argsort(order).tolist()]
        return Outcomes(wanted=wants, found=Findings.joined(parts))

    def branched(self, asked: Asked) -> Asked:
        """The same, with those rules as conditions that are better branched on than searched, all of them checked."""
        schema = self.model.schema
        if not asked.fewest_first:
            asked = replace(asked, constraints=as_conditions(asked.constraints, schema))
        for condition in filter(is_condition, asked.constraints):
            if asked.fewest_first:
                raise QuestionError("The fewest changes cannot be asked for under a condition such as Near: use l0.")
            condition.check(schema)
        return asked

    def standing(self, wanted: Wanted, askers: Askers, asked: Asked) -> list[Found | None]:
        """For each person who has what is wanted already: the row as it is, and the constraints that it breaks."""
        conditions, ordinary = parted(asked.constraints)
        plainly = replace(asked, constraints=ordinary) if conditions else asked
        result = self.finder.standing(wanted, askers.points, askers.scores, plainly)
        if not conditions:
            return result
        for k, found in enumerate(result):
            if found is not None:
                situation = Situation(self.model.schema, askers.points[k], asked.distance)
                unmet = [c.describe() for c in conditions if not c.holds(situation, askers.points[k])]
                result[k] = found._replace(breaks=(*found.breaks, *unmet))
        return result

    def nearest(self, wanted: Wanted, points: Floats, asked: Asked, threads: int) -> Sequence[Found]:
        """The nearest row of each person, also of those who have what they want: by the method, or by branching."""
        conditions, _ = parted(asked.constraints)
        if not conditions:
            return self.finder.found(wanted, points, asked, threads, asked.listen)
        found: list[Found] = []
        for point in points:
            branching = self.branching(wanted, point, asked, threads)
            found.append(branching.nearest(conditions, asked.limits))
            if asked.listen is not None:
                asked.listen(Progress(finished=len(found), people=len(points)))
        return found

    # ------------------------------------------------------------------ one person, again and again

    def branching(self, wanted: Wanted, point: Floats, asked: Asked, threads: int) -> Branching:
        """The search over either-or choices for one person."""
        situation = Situation(self.model.schema, point, asked.distance)
        return Branching(self.ask(wanted, point, asked, threads), situation, self.tolerances)

    def ask(self, wanted: Wanted, point: Floats, asked: Asked, threads: int) -> Ask:
        """The person's nearest row under the ordinary constraints of the query and further ones."""
        _, ordinary = parted(asked.constraints)

        def ask(chosen: tuple[Any, ...], left: Limits) -> Found:
            inner = replace(asked, constraints=(*ordinary, *chosen), limits=left, listen=None)
            return self.finder.found(wanted, point[None, :], inner, threads, None)[0]

        return ask


def parted(constraints: Sequence[Any]) -> tuple[list[Condition], tuple[Any, ...]]:
    """The either-or conditions, and the ordinary constraints."""
    conditions = [c for c in constraints if is_condition(c)]
    return conditions, tuple(c for c in constraints if not is_condition(c)) if conditions else tuple(constraints)
