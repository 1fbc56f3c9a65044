"""What changes cost and which are allowed, in numbers: the part of the canonical form that needs no model.

Costs are additive over features: the distance is their sum (l0, l1, mixtures), the root of their sum (l2), or their
maximum (linf). A numeric feature costs  jump * [changed] + rate * |change|  (l2: (rate * |change|)^2), with a rate for
either direction; an option costs what the table says for the factual's own option.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import QuestionError
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.constraints import Constraint, Domains, Steps, narrowed
from ifonly.problem.distance import Norm
from ifonly.problem.parts import UnrolledColumns
from ifonly.problem.question import Question
from ifonly.problem.support import MaxChanges, OnlyWith
from ifonly.schema import Integer, Numeric, Real
from ifonly.schema.decimals import Grid, stepped, steps_to, written

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a question says of changes in numbers, whatever kind its model is of: their costs, and what is allowed.

    `start[g]:start[g+1]` are the unrolled columns of feature g.
    """

    question: Question
    numeric: NDArray[np.bool_]
    step: Floats
    """Of numbers that move in steps: integers, and reals that have one; 0 for other reals; unused for choices."""
    start: NDArray[np.int64]
    norm: Norm
    jump: Floats
    rate: Floats
    """Of going up."""
    rate_down: Floats
    option_cost: tuple[Floats, ...]
    """For each choice feature a (k, k) table: the cost of going from option i to option j; (1, 1) zeros for numbers."""
    most_changes: int
    """How many features may change, of those that count."""
    counts: NDArray[np.bool_]
    """Of each feature: does it count that it changes? Derived features do not."""
    partners: NDArray[np.int64]
    """(pair, 2): a feature, and the one without which it does not change."""

    @property
    def features(self) -> int:
        return len(self.numeric)

    @property
    def width(self) -> int:
        return int(self.start[-1])

    @cached_property
    def in_steps(self) -> NDArray[np.bool_]:
        """Numbers that move in steps."""
        return self.numeric & (self.step > 0.0)

    def unrolled(self, points: Floats) -> Floats:
        """Points as unrolled columns."""
        many = np.atleast_2d(points)
        result = np.zeros((len(many), self.width))
        result[:, self.start[self.numbers]] = many[:, self.numbers]
        chosen = self.start[self.choices] + many[:, self.choices].astype(np.intp)
        result[np.arange(len(many))[:, None], chosen] = 1.0
        return result if np.ndim(points) == 2 else result[0]

    @cached_property
    def numbers(self) -> NDArray[np.intp]:
        """The features that are numbers."""
        return np.flatnonzero(self.numeric)

    @cached_property
    def choices(self) -> NDArray[np.intp]:
        """The features that are choices."""
        return np.flatnonzero(~self.numeric)

    @cached_property
    def feature_of(self) -> NDArray[np.intp]:
        """The feature of each unrolled column."""
        return np.repeat(np.arange(self.features), np.diff(self.start))

    def on_steps(self, factual: Floats, points: Floats) -> Floats:
        """Points (one per person) with every real number that moves in steps at the decimal that its step is."""
        if self.question.schema.grids:
            places, grids = self.question.schema.on_grids
            now, own = points[:, places], factual[:, places]
            points[:, places] = np.where(now == own, own, grids.nearest_to(now))
        for constraint in self.question.by_feature:
            g = self.question.schema.index(constraint.feature)
            if isinstance(constraint, Steps) and isinstance(self.question.schema.features[g], Real):
                step = float(self.step[g])
                pairs = zip(factual[:, g].tolist(), points[:, g].tolist(), strict=True)
                points[:, g] = [stepped(old, steps_to(old, new, step), step) for old, new in pairs]
        return points

    @cached_property
    def grid_rounding(self) -> float:
        """How far the distance of a row can be from that of its steps, if these were exact numbers.

        A real number on a grid is the float64 nearest to it, and so are the factual and the step: the change is off by
        at most 4 last digits of the number.
        """
        stepped = self.reals_in_steps
        if not len(stepped):
            return 0.0
        low, high = self._ends
        digits = 4.0 * 2.0**-53 * np.maximum(np.abs(low), np.abs(high))
        return float((np.maximum(self.rate, self.rate_down) * digits)[stepped].sum())

    @cached_property
    def reals_in_steps(self) -> NDArray[np.intp]:
        """Real numbers that move in steps: their values are decimals, worked out exactly."""
        reals = [isinstance(feature, Real) for feature in self.question.schema.features]
        return np.flatnonzero(reals & (self.step > 0.0))

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The ends of every number's domain in the schema, on its grid; 0 for choices."""
        least, most, step = self.question.schema.grid
        low, high = np.where(self.numeric, least, 0.0), np.where(self.numeric, most, 0.0)
        whole = self.numeric & (step > 0.0)
        low[whole], high[whole] = _inward(least[whole], most[whole], least[whole], step[whole])
        return low, high

    @cached_property
    def _costs(self) -> tuple[NDArray[np.intp], NDArray[np.int64], Floats]:
        """Of each column: its feature, and where its costs begin in the table of all of them, which comes last."""
        lengths = np.repeat([len(cost) for cost in self.option_cost], np.diff(self.start))
        table = np.concatenate([cost.T.ravel() for cost in self.option_cost])  # (after, before)
        return self.feature_of, np.cumsum(lengths) - lengths, table

    @cached_property
    def _constraints(self) -> list[tuple[int, list[Constraint]]]:
        """The features that have constraints, and these."""
        by_feature: dict[int, list[Constraint]] = {}
        for constraint in self.question.by_feature:
            by_feature.setdefault(self.question.schema.index(constraint.feature), []).append(constraint)
        return list(by_feature.items())

    def domains(self, points: Floats) -> People:
        """What each of many people may change, under the schema and the constraints."""
        low, high = self._ends
        lower, upper = np.where(self.numeric, low, points), np.where(self.numeric, high, points)
        option = np.where(self.numeric, 0.0, points).astype(np.int64)
        allowed = np.ones((len(points), self.width), dtype=bool)
        features, starts, table = self._costs
        cost = table.take(option.take(features, axis=1) + starts)
        for g, constraints in self._constraints:
            feature, here = self.question.schema.features[g], slice(int(self.start[g]), int(self.start[g + 1]))
            domain = Domains(lower[:, g].copy(), upper[:, g].copy(), allowed[:, here].copy())
            domain = narrowed(feature, points[:, g], constraints, domain)
            if isinstance(feature, Numeric):
                if isinstance(feature, Integer):
                    _to_grid(domain, feature)
                lower[:, g], upper[:, g] = domain.lower, domain.upper
                allowed[:, here] = (domain.lower <= domain.upper)[:, None]
            else:
                allowed[:, here] = domain.allowed
        grid_offset = self._onto_grids(points, lower, upper)
        if self.question.schema.grids:
            places, _ = self.question.schema.on_grids
            allowed[:, self.start[places]] = lower[:, places] <= upper[:, places]
        return People(points, option, lower, upper, allowed, cost, grid_offset)

    def domains_in(self, point: Floats, boxes: FeatureBoxes) -> People:
        """What one person may change in each of many boxes. What moves in steps from its own value is left as it is."""
        every = self.domains(point[None, :]).part([0] * len(boxes))
        for g, feature in enumerate(self.question.schema.features):
            here = slice(int(self.start[g]), int(self.start[g + 1]))
            if not self.numeric[g]:
                every.allowed[:, here] &= boxes.allowed[g]
            elif not self.relative(g):
                lower = np.maximum(every.lower[:, g], boxes.lower[:, g])
                domain = Domains(lower, np.minimum(every.upper[:, g], boxes.upper[:, g]), every.allowed[:, here])
                if isinstance(feature, Integer):
                    _to_grid(domain, feature)
                every.lower[:, g], every.upper[:, g] = domain.lower, domain.upper
        self._onto_grids(every.factual, every.lower, every.upper)
        for g in np.flatnonzero(self.numeric).tolist():
            every.allowed[:, self.start[g]] = every.lower[:, g] <= every.upper[:, g]
        return every

    def relative(self, g: int) -> bool:
        """Must the feature move by whole steps from the person's own value?"""
        return any(isinstance(one, Steps) for h, some in self._constraints if h == g for one in some)

    def _onto_grids(self, points: Floats, lower: Floats, upper: Floats) -> Floats:
        """Move the ends of the real numbers that have a grid onto it (in place); the lead of every number."""
        grid_offset = np.zeros((len(points), self.features))
        if not self.question.schema.grids:
            return grid_offset
        places, grids = self.question.schema.on_grids
        now, (least, most) = points[:, places], grids.ends
        bound = (lower[:, places] != least) | (upper[:, places] != most) | (grids.nearest_to(now) != now)
        for i, k in np.argwhere(bound).tolist():
            g = int(places[k])
            own, *ends = (float(column[i, g]) for column in (points, lower, upper))
            grid = self.question.schema.grids[g]
            lower[i, g], upper[i, g], grid_offset[i, g] = on_grid(grid, own, ends, self.relative(g))
            if lower[i, g] > upper[i, g]:  # by so much that no rounding to steps can bring them together
                lower[i, g], upper[i, g] = own + 2.0 * self.step[g], own - 2.0 * self.step[g]
        return grid_offset


@dataclass(frozen=True)
class People:
    """For each person: the factual point, the interval of each number (of a choice: the factual), the allowed options
    and their costs."""

    factual: Floats
    option: NDArray[np.int64]
    """The factual's options; 0 for numbers."""
    lower: Floats
    upper: Floats
    allowed: NDArray[np.bool_]
    cost: Floats
    grid_offset: Floats
    """Of numbers whose own value is off their grid: how many steps (less than one) the next value above it is away."""

    def __len__(self) -> int:
        return len(self.factual)

    def part(self, members: list[int]) -> People:
        """Only these people, in their order."""
        if len(members) == len(self):
            return self
        return People(*(getattr(self, part.name)[members] for part in fields(self)))

    @property
    def off_grid(self) -> NDArray[np.bool_]:
        """(person, feature): is the person's own value off the feature's grid?"""
        return np.asarray(self.grid_offset > 0.0)


def on_grid(grid: Grid, own: float, ends: Sequence[float], relative: bool) -> tuple[float, float, float]:
    """The least and the largest value between the ends that is the person's own or on the grid; and the lead.

    `relative`: it must also be whole steps of a constraint away from the person's own value, as the ends are already.
    Where that is off the grid, nothing else is.
    """
    lower, upper = ends
    grid_offset = float(-grid.place(own) % 1)
    if grid_offset == 0.0 and relative:
        return lower, upper, 0.0
    first, last = grid.between(lower, upper)
    values = [grid.value(first), grid.value(last)] if first <= last and not relative else []
    values += [own] if lower <= own <= upper else []
    return (min(values), max(values), grid_offset) if values else (math.inf, -math.inf, 0.0)


def _to_grid(domain: Domains, feature: Integer) -> None:
    """Move the ends inward to the integer feature's grid."""
    domain.lower, domain.upper = _inward(domain.lower, domain.upper, feature.lower, feature.step)


def _inward(lower: Floats, upper: Floats, base: Floats | float, step: Floats | float) -> tuple[Floats, Floats]:
    """Ends of intervals, moved inward to base + k step; the last step undoes a rounding in the division."""
    low = base + step * np.ceil((lower - base) / step)
    high = base + step * np.floor((upper - base) / step)
    return np.where(low < lower, low + step, low), np.where(high > upper, high - step, high)


def costs_of(question: Question) -> Costs:
    """The part of a question that needs no model: what changes cost, and which are allowed."""
    schema, rates = question.schema, question.measure.rates
    return Costs(
        question=question,
        numeric=np.array([isinstance(f, Numeric) for f in schema.features]),
        step=_steps(question),
        start=UnrolledColumns(schema).start,
        norm=question.distance.kind,
        jump=rates.jump,
        rate=rates.up,
        rate_down=rates.down,
        option_cost=rates.tables,
        most_changes=min([len(schema), *(rule.most for rule in question.rules if isinstance(rule, MaxChanges))]),
        counts=np.array([name not in question.uncounted for name in schema.names]),
        partners=_partners(question),
    )


def _partners(question: Question) -> NDArray[np.int64]:
    """(feature, partner): pairs of which the first changes only with the second."""
    place = question.schema.index
    pairs = [(place(rule.feature), place(rule.partner)) for rule in question.rules if isinstance(rule, OnlyWith)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _steps(question: Question) -> Floats:
    """The grid of each number: its own step, or the one that a constraint asks for (a multiple of it); 0 for none."""
    step = np.array([float(f.step) if isinstance(f, Integer) else 0.0 for f in question.schema.features])
    for constraint in question.by_feature:
        if isinstance(constraint, Steps):
            g = question.schema.index(constraint.feature)
            step[g] = _common_step(question.schema.names[g], step[g], constraint.step)
    for g, grid in question.schema.grids.items():
        step[g] = step[g] or float(grid.step)
    return step


def _common_step(name: str, one: float, other: float) -> float:
    """The coarsest grid that is on both."""
    if one == 0.0 or written(other) % written(one) == 0:
        return other
    if written(one) % written(other) == 0:
        return one
    raise QuestionError(f"'{name}' may not move by steps of {one:g} and of {other:g} at once; give one of them.")
