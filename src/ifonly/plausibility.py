"""Answers that look like the data: what occurs, what occurs together, what is near, and what moves together.

    support       by feature: the options that occur and the range of the numbers        ordinary constraints
    pairs         options that occur together, and the range of a number given an option  rules (linear, whole)
    Near          within a distance of some row of the data                              a condition, by branching
    Mahalanobis   || L (x - x0) ||_1, where L^T L is the inverse covariance              a condition, or the cost itself

All of them are exact: an answer under them is the nearest plausible row, with the same proof as any other. What is
learned is only which rows count as plausible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.asking.branching import Ordinary, Person, Way
from ifonly.asking.diverse import NO_LIMITS, Asks
from ifonly.errors import QuestionError
from ifonly.exact.distances import Finding, Interval, Verdict, nearest
from ifonly.printing import shown
from ifonly.problem import Allowed, Constraint, Distance, Range
from ifonly.problem.apart import Around, check_piecewise_linear, checked_length, unrolled
from ifonly.problem.parts import Columns, Literal, Part, linear_part
from ifonly.proof import Answer, Limits, Nearest, NoneExists, Unknown, Within
from ifonly.schema import Choice, Feature, Numeric, Real, Schema, read_points
from ifonly.schema.features import show_number
from ifonly.tolerances import EDGE

Floats = NDArray[np.float64]

ROOM = 1e-9
"""Relative: how far a correlated cost may exceed its cap, which real numbers meet only up to rounding."""

MOST_CONDITION = 1e10
"""Of a covariance that is inverted: beyond it, fewer than six digits of the inverse can be trusted."""

# ---------------------------------------------------------------------- what occurs


def support(
    schema: Schema, table: Any, *, quantiles: tuple[float, float] = (0.0, 1.0), least: int = 1
) -> tuple[Constraint, ...]:
    """The options that occur at least `least` times, and the range of each number between two quantiles of the data."""
    points = _points(schema, table)
    _check_learning(quantiles, least)
    result: list[Constraint] = []
    for g, feature in enumerate(schema.features):
        if isinstance(feature, Choice):
            occurs = np.bincount(points[:, g].astype(np.intp), minlength=len(feature.options)) >= least
            result += _only(feature, occurs)
        else:
            low, high = _ends(points[:, g], quantiles)
            if low > feature.lower or high < feature.upper:
                result.append(Range(feature.name, low, high))
    return tuple(result)


def pairs(
    schema: Schema, table: Any, *, quantiles: tuple[float, float] = (0.0, 1.0), least: int = 1
) -> tuple[Ordinary, ...]:
    """`support`, and besides: options only with options that occur together with them at least `least` times, and
    numbers only in the range (between two quantiles) that occurs together with each option."""
    points = _points(schema, table)
    rules: list[Ordinary] = list(support(schema, table, quantiles=quantiles, least=least))
    choices = [(g, feature) for g, feature in enumerate(schema.features) if isinstance(feature, Choice)]
    choices.sort(key=lambda choice: len(choice[1].options))  # a pair is told once, by the one with fewer options
    for k, (g, feature) in enumerate(choices):
        chosen = points[:, g].astype(np.intp)
        common = np.bincount(chosen, minlength=len(feature.options)) >= least
        together: dict[tuple[tuple[str, tuple[int, ...]], ...], list[int]] = {}
        for option in np.flatnonzero(common).tolist():
            partners = _partners(points[chosen == option], choices[k + 1 :], least)
            together.setdefault(partners, []).append(option)
        rules += [OptionsTogether(feature.name, tuple(own), others) for others, own in together.items() if others]
        for h, number in enumerate(schema.features):
            if isinstance(number, Numeric):
                ends = [_ends(points[chosen == i, h], quantiles) if ok else (number.lower, number.upper)
                        for i, ok in enumerate(common)]  # fmt: skip
                overall = _ends(points[:, h], quantiles)
                if any(low > overall[0] or high < overall[1] for low, high in ends):
                    rules.append(NumberGivenOption(number.name, feature.name, tuple(ends)))
    return tuple(rules)


@dataclass(frozen=True)
class OptionsTogether:
    """If the feature is one of these options, then each partner is one of those: one linear part for all partners."""

    feature: str
    options: tuple[int, ...]
    partners: tuple[tuple[str, tuple[int, ...]], ...]

    def check(self, schema: Schema) -> None:
        for name in (self.feature, *(name for name, _ in self.partners)):
            if not isinstance(schema[name], Choice):
                raise QuestionError(f"Feature '{name}' is a number: it has a range given an option, not partners.")

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        if int(after[schema.index(self.feature)]) not in self.options:
            return True
        return all(int(after[schema.index(name)]) in allowed for name, allowed in self.partners)

    def parts(self, columns: Columns) -> Sequence[Part]:
        """Every partner that is elsewhere costs 1; so much is allowed only where the feature is elsewhere too."""
        weight = np.zeros(columns.width)
        start = columns.of(self.feature).start
        weight[[start + i for i in self.options]] = -float(len(self.partners))
        for name, allowed in self.partners:
            weight[[columns.of(name).start + i for i in allowed]] += 1.0
        return (linear_part(columns, Literal(weight, 0.0)),)

    def describe(self) -> str:
        return f"{self.feature} occurs in the data with {', '.join(name for name, _ in self.partners)}"


@dataclass(frozen=True)
class NumberGivenOption:
    """The number lies in the range that goes with the option of another feature."""

    number: str
    feature: str
    ends: tuple[tuple[float, float], ...]

    def check(self, schema: Schema) -> None:
        feature = schema[self.feature]
        if not isinstance(schema[self.number], Numeric) or not isinstance(feature, Choice):
            raise QuestionError(f"'{self.number}' must be a number and '{self.feature}' a feature with options.")
        if len(self.ends) != len(feature.options):
            raise QuestionError(f"There must be a range for each of the {len(feature.options)} options.")

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        low, high = self.ends[int(after[schema.index(self.feature)])]
        slack = self._slack(schema)
        return bool(low - slack <= after[schema.index(self.number)] <= high + slack)

    def _slack(self, schema: Schema) -> float:
        """A real number at the end of its range must not be lost to rounding: the range is a hair wider."""
        number = schema[self.number]
        return EDGE * number.width if isinstance(number, Real) else 0.0

    def parts(self, columns: Columns) -> Sequence[Part]:
        number, own = columns.schema[self.number], columns.of(self.feature)
        assert isinstance(number, Numeric)
        slack = self._slack(columns.schema)
        parts = []
        for side, end in ((1.0, number.lower), (-1.0, number.upper)):
            ends = np.array([pair[0] if side > 0 else pair[1] for pair in self.ends])
            if (ends == end).all():
                continue
            weight = np.zeros(columns.width)
            weight[columns.of(self.number)] = side
            weight[own] = -side * ends
            parts.append(linear_part(columns, Literal(weight, slack)))
        return tuple(parts)

    def describe(self) -> str:
        return f"{self.number} is in the range that occurs with {self.feature}"


# ---------------------------------------------------------------------- what is near


@dataclass(frozen=True, eq=False)
class Near:
    """The answer is within `at_most` of at least one row of the data.

    `Near.of(schema, table, at_most)` reads the rows. A union of balls, one a row: it is searched ball by ball, in the
    order of what each can still be worth, until no other can hold a nearer answer.
    """

    points: Floats
    at_most: float
    distance: Distance = field(default_factory=Distance)

    @classmethod
    def of(cls, schema: Schema, table: Any, at_most: float, distance: str | Distance = "l1") -> Near:
        own = distance if isinstance(distance, Distance) else Distance(distance)
        near = cls(np.unique(_points(schema, table), axis=0), checked_length("The distance to the data", at_most), own)
        near.check(schema)
        return near

    def check(self, schema: Schema) -> None:
        check_piecewise_linear(schema, self.distance)
        if self.points.ndim != 2 or self.points.shape[1] != len(schema):
            raise QuestionError(f"The rows of the data must have {len(schema)} values each; make them with Near.of.")

    @property
    def reach(self) -> float:
        """Rows at `at_most` to the last bits count as near."""
        return self.at_most * (1.0 + EDGE)

    def holds(self, person: Person, after: Floats) -> bool:
        return bool(self.distance.between(person.schema, after, self.points).min() <= self.reach)

    def ways(self, person: Person, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Way]:
        schema, before, distance = person
        away = self.distance.between(schema, before, self.points)
        same = distance == self.distance  # then the triangle inequality bounds what a ball is worth
        for i in np.argsort(away, kind="stable").tolist():
            point = self.points[i]
            rule = Around(point=point.tolist(), at_most=self.reach, distance=self.distance)
            bound = max(0.0, float(away[i]) - self.reach) if same else 0.0
            yield Way(bound * (1.0 - EDGE), (rule, *self._box(schema, point)))

    def _box(self, schema: Schema, point: Floats) -> Iterator[Constraint]:
        """What each feature can be within the ball: says no more than the rule, but to every method at once."""
        weight, scale = self.distance.weight_vector(schema), self.distance.scale_vector(schema)
        for g, feature in enumerate(schema.features):
            others = np.repeat(point[None, :], len(feature.options), axis=0) if isinstance(feature, Choice) else None
            if others is not None:
                others[:, g] = np.arange(len(others))
                yield from _only(feature, self.distance.between(schema, point, others) <= self.reach)
            elif self.distance.rate:
                radius = self.reach * len(schema) * scale[g] / (self.distance.rate * weight[g]) * (1.0 + EDGE)
                yield Range(feature.name, float(point[g]) - radius, float(point[g]) + radius)

    def describe(self) -> str:
        return f"within {self.at_most:g} ({self.distance.name}) of a row of the data"


# ---------------------------------------------------------------------- what moves together


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """|| L (z - z0) ||_1, the l1 form of the Mahalanobis distance (DACE): z are numbers, levels, and a 0/1 column a
    category; L^T L is the inverse of their covariance in the data.

    A change along the grain of the data costs little, one against it much. `within(at_most)` is a condition on the
    answer; `explain_correlated` minimises the cost itself.
    """

    schema: Schema
    factor: Floats
    """L over unrolled columns."""
    reach: Floats
    """How far a change that costs 1 can move each z."""

    @classmethod
    def of(cls, schema: Schema, table: Any, *, ridge: float = 1e-3) -> Mahalanobis:
        """From data. `ridge` is added to the variances (of standardised columns), so that constant and redundant
        columns do no harm."""
        points = _points(schema, table)
        ridge = checked_length("The ridge", ridge)
        coding = _coding(schema)
        if not len(coding):
            raise QuestionError("Nothing can change: every feature of the schema has one option only.")
        z = np.array([unrolled(schema, point) for point in points]) @ coding.T
        with np.errstate(all="ignore"):  # what overflows is refused below
            largest = np.abs(z).max(axis=0)  # squares of numbers above 1e154 would overflow
            spread = (z / np.where(largest > 0, largest, 1.0)).std(axis=0) * largest
            scale = 1.0 / np.where(spread > 0, spread, 1.0)
            covariance = np.cov(z * scale, rowvar=False, bias=True).reshape(len(scale), len(scale))
            factor = _factor(covariance + ridge * np.eye(len(scale)))
            cost, reach = (factor * scale) @ coding, np.abs(np.linalg.inv(factor)).max(axis=1) / scale
        if not (np.isfinite(cost).all() and np.isfinite(reach).all()):
            raise QuestionError("The data's numbers are too large, or too close together, to measure changes by them.")
        return cls(schema, cost, reach)

    def between(self, before: Any, after: Any) -> float:
        """The cost of a change, between rows."""
        return float(np.abs(self.terms(self.schema.read(before), self.schema.read(after))).sum())

    def terms(self, before: Floats, after: Floats) -> Floats:
        """L (z - z0), between points."""
        return np.asarray(self.factor @ (unrolled(self.schema, after) - unrolled(self.schema, before)))

    def box(self, before: Floats, at_most: float) -> Iterator[Constraint]:
        """What each feature can be after a change that costs at most so much."""
        reach = self.reach * at_most * (1.0 + ROOM)
        coding, columns, k = _coding(self.schema), Columns(self.schema), 0
        for g, feature in enumerate(self.schema.features):
            own = columns.of(feature.name)
            rows = slice(
                k, k + (len(feature.options) - 1 if isinstance(feature, Choice) and not feature.ordered else 1)
            )
            k = rows.stop
            if isinstance(feature, Choice):
                z = coding[rows, own]
                yield from _only(feature, (np.abs(z - z[:, [int(before[g])]]) <= reach[rows, None]).all(axis=0))
            else:
                yield Range(feature.name, float(before[g] - reach[rows][0]), float(before[g] + reach[rows][0]))

    def within(self, at_most: float) -> CorrelatedWithin:
        """The condition that the change costs at most so much."""
        return CorrelatedWithin(self, checked_length("The correlated change", at_most))


@dataclass(frozen=True, eq=False)
class CorrelatedWithin:
    """A sum of absolute values is at most so much, that is, for every choice of signs the signed sum is.

    The choices are far too many to list, but few of them matter: those of rows that an answer would otherwise be.
    """

    cost: Mahalanobis
    at_most: float

    def check(self, schema: Schema) -> None:
        if schema != self.cost.schema:
            raise QuestionError("This cost was learned for another schema; learn it from data of this one.")

    def holds(self, person: Person, after: Floats) -> bool:
        return bool(np.abs(self.cost.terms(person.before, after)).sum() <= self.at_most * (1.0 + ROOM))

    def ways(self, person: Person, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Way]:
        cut = self.cut(person, np.sign(self.cost.terms(person.before, after)))
        yield Way(0.0, (cut, *self.cost.box(person.before, self.at_most)))

    def cut(self, person: Person, signs: Floats) -> SignedSum:
        """What the condition says for one choice of signs."""
        weight = signs @ self.cost.factor
        start = float(weight @ unrolled(person.schema, person.before))
        return SignedSum(tuple(weight.tolist()), start + self.at_most * (1.0 + ROOM / 2.0))

    def describe(self) -> str:
        return f"a correlated change of at most {show_number(self.at_most)}"


@dataclass(frozen=True)
class SignedSum:
    """weight.u <= at_most, where u are unrolled columns."""

    weight: tuple[float, ...]
    at_most: float

    def check(self, schema: Schema) -> None:
        assert len(self.weight) == Columns(schema).width

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        return bool(np.array(self.weight) @ unrolled(schema, after) <= self.at_most)

    def parts(self, columns: Columns) -> Sequence[Part]:
        return (linear_part(columns, Literal(-np.array(self.weight), self.at_most)),)

    def describe(self) -> str:
        return "a correlated change that is small enough"


def explain_correlated(
    explainer: Asks,
    row: Any,
    cost: Mahalanobis,
    *,
    constraints: Sequence[Any] = (),
    limits: Limits = NO_LIMITS,
    **question: Any,
) -> Answer:
    """The allowed row with the least correlated cost. Its `lower` and `upper` are in that cost.

    By searching on the cost: is there a row that costs at most so much? The limits are for each such question.
    """
    schema, told = explainer.schema, []
    person = Person(schema, schema.read(row), Distance())
    found: dict[float, Answer] = {}
    signs: set[tuple[float, ...]] = set()

    def ask(more: Sequence[Ordinary]) -> Answer:
        told.append(explainer.explain(row, constraints=(*constraints, *more), limits=limits, reasons=False, **question))
        return told[-1]

    def find(budget: float) -> Finding:
        """Ask under the signs known so far, learn those of the row found, until it is within the budget."""
        condition = CorrelatedWithin(cost, budget)
        while True:
            cuts = [condition.cut(person, np.array(choice)) for choice in sorted(signs)]
            answer = ask([*cuts, *cost.box(person.before, budget)])
            if answer.counterfactual is None:
                proven, limit = isinstance(answer, NoneExists), "limit" in answer.note
                verdict = Verdict.NONE if proven else Verdict.STOPPED if limit else Verdict.UNDECIDED
                return Finding(verdict=verdict, limit=answer.note)
            point = schema.read(answer.counterfactual)
            terms = cost.terms(person.before, point)
            length = float(np.abs(terms).sum())
            found[length] = answer
            choice = tuple(np.sign(terms).tolist())
            if length <= budget * (1.0 + ROOM) or choice in signs:
                return Finding(verdict=Verdict.FOUND, point=point, distance=length)
            signs.add(choice)

    first = ask(())
    if first.counterfactual is None:
        return first
    most = float(np.abs(cost.terms(person.before, schema.read(first.counterfactual))).sum())
    found[most] = first
    known = nearest(find, first=most, most=most, allowed=explainer.tolerances.allowed) if most > 0.0 else Interval()
    upper = min(found)
    lower = min(known.proven, upper)
    proven = upper - lower <= explainer.tolerances.allowed(upper)
    kind = Nearest if proven else Within
    return kind(
        **{entry.name: getattr(found[upper], entry.name) for entry in fields(Unknown)}
        | {
            "lower": lower,
            "upper": upper,
            "distance_name": "correlated l1",
            "seconds": math.fsum(answer.seconds for answer in told),
            "nodes": sum(answer.nodes for answer in told),
            "note": "" if proven else known.limit or found[upper].note or "rounding leaves this gap",
            "record": None,
        }
    )


def _factor(covariance: Floats) -> Floats:
    """L with L^T L the inverse, where that can be computed: an inverse that is lost in rounding would prove nothing."""
    if not np.isfinite(covariance).all():
        raise QuestionError("The covariance of the data is not finite: its numbers are too large, or too near.")
    if not np.linalg.cond(covariance) < MOST_CONDITION:
        raise QuestionError("Columns of the data depend on each other; give a larger ridge, such as 1e-3.")
    inverse = np.linalg.inv(covariance)
    return np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2.0).T)


def _coding(schema: Schema) -> Floats:
    """Rows: z as linear functions of unrolled columns. Levels by their number; of k categories k - 1 have a column."""
    columns = Columns(schema)
    rows = []
    for feature in schema.features:
        own = columns.of(feature.name)
        if isinstance(feature, Choice) and not feature.ordered:
            rows += [np.eye(columns.width)[own.start + i] for i in range(1, len(feature.options))]
            continue
        row = np.zeros(columns.width)
        row[own] = np.arange(len(feature.options)) if isinstance(feature, Choice) else 1.0
        rows.append(row)
    return np.array(rows)


# ---------------------------------------------------------------------- reading data


def _points(schema: Schema, table: Any) -> Floats:
    points = read_points(schema, table)
    if not len(points):
        raise QuestionError("Nothing can be learned from a table without rows.")
    return points


def _check_learning(quantiles: tuple[float, float], least: int) -> None:
    low, high = quantiles
    if not 0.0 <= low <= high <= 1.0:
        raise QuestionError(
            f"The quantiles must be two numbers in [0, 1], the lower one first; got {shown(quantiles)}."
        )
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise QuestionError(f"The least count must be a whole number >= 1; it is {shown(least)}.")


def _ends(values: Floats, quantiles: tuple[float, float]) -> tuple[float, float]:
    """Two quantiles, which are values of the data."""
    low, high = np.quantile(values, quantiles, method="inverted_cdf").tolist()
    return low, high


def _only(feature: Feature, occurs: Any) -> Iterator[Constraint]:
    """The options that occur, unless all do."""
    assert isinstance(feature, Choice)
    if not np.all(occurs):
        yield Allowed(feature.name, [option for option, here in zip(feature.options, occurs, strict=True) if here])


def _partners(
    points: Floats, others: Sequence[tuple[int, Choice]], least: int
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The options of other features that occur in these rows, for the features where some do not."""
    result = []
    for h, feature in others:
        occurs = np.bincount(points[:, h].astype(np.intp), minlength=len(feature.options)) >= least
        if not occurs.all():
            result.append((feature.name, tuple(np.flatnonzero(occurs).tolist())))
    return tuple(result)
