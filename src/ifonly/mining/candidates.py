"""Candidate invariants of a sample of rows: orders and differences, equations, bounds and options given a condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ifonly.mining.clauses import Clause, FeatureCondition, Implication, LinearBounds, Points, Rows
from ifonly.mining.edges import hard_edge
from ifonly.schema import Choice, Integer, Numeric, Schema

FEWEST_ROWS = 30
"""A condition must hold in so many rows of the sample, and not hold in so many."""
FEW_VALUES = 20
"""Integers and levels with at most so many values are conditions by every value and threshold."""
MOST_CONDITIONS = 1500
MOST_TERMS = 8
"""Terms of an equation: one with more is not something that people would recognise."""
MOST_DENOMINATOR = 1000
RESIDUAL = 1e-7
"""Least squares: relative residual below which a column is a linear function of others."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Clauses that belong together, and what kind of regularity they are."""

    kind: str
    clauses: tuple[Clause, ...]

    @property
    def features(self) -> frozenset[int]:
        return frozenset(feature for clause in self.clauses for feature in clause.features)

    def broken(self, points: Points) -> Rows:
        return np.logical_or.reduce([clause.broken(points) for clause in self.clauses])

    def relevant(self, points: Points) -> Rows:
        return np.logical_or.reduce([clause.relevant(points) for clause in self.clauses])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSample:
    """Rows to look at, the share of exceptions that is tolerated, and the evidence that is needed."""

    schema: Schema
    points: Points
    share: float
    needed: float

    @property
    def numbers(self) -> list[int]:
        return [g for g, f in enumerate(self.schema.features) if isinstance(f, Numeric) and self._varies(g)]

    def _varies(self, g: int) -> bool:
        column = self.points[:, g]
        return bool(np.nanmin(column, initial=math.inf) < np.nanmax(column, initial=-math.inf))

    def tolerated(self, rows: int) -> int:
        return int(self.share * rows)


def expected_by_chance(left: Points, right: Points) -> float:
    """How many of these pairs would have left < right if they were paired at random."""
    return float(np.searchsorted(np.sort(left), right, side="left").sum()) / max(len(left), 1)


# ---------------------------------------------------------------------- orders and differences of two numbers


def differences(sample: TableSample, tick: Callable[[], None]) -> Iterator[Candidate]:
    """Bounds of a - b and of a + b, for numbers of one unit; a >= b among them."""
    numbers = sample.numbers
    for position, a in enumerate(numbers):
        for b in numbers[position + 1 :]:
            if sample.schema.features[a].unit == sample.schema.features[b].unit:
                pairs = sample.points[:, [a, b]]
                pairs = pairs[~np.isnan(pairs).any(axis=1)]
                if len(pairs) >= FEWEST_ROWS:
                    yield from _bounded(sample, (a, b), pairs[:, 0], pairs[:, 1])
        tick()


def _bounded(sample: TableSample, names: tuple[int, int], first: Points, second: Points) -> Iterator[Candidate]:
    for sign, kind in ((-1.0, "difference"), (1.0, "sum")):
        total = np.sort(first + sign * second)
        if total[0] == total[-1]:
            return  # an equation
        skip = sample.tolerated(len(total))
        lower, upper = -math.inf, math.inf
        if (low := hard_edge(total[skip:], sample.needed)) is not None:
            often = expected_by_chance(first, low[0] - sign * second)
            lower = low[0] if often >= sample.needed else lower
        if (high := hard_edge(-total[::-1][skip:], sample.needed)) is not None:
            often = expected_by_chance(-first, high[0] + sign * second)
            upper = 0.0 - high[0] if often >= sample.needed else upper
        if lower > -math.inf or upper < math.inf:
            yield _linear(kind, names, sign, lower, upper)


def _linear(kind: str, names: tuple[int, int], sign: float, lower: float, upper: float) -> Candidate:
    a, b = names
    if sign < 0.0 and (lower, upper) == (0.0, math.inf):
        return Candidate("order", (LinearBounds(((a, 1.0), (b, -1.0)), 0.0),))
    if sign < 0.0 and (lower, upper) == (-math.inf, 0.0):
        return Candidate("order", (LinearBounds(((b, 1.0), (a, -1.0)), 0.0),))
    return Candidate(kind, (LinearBounds(((a, 1.0), (b, sign)), lower, upper),))


# ---------------------------------------------------------------------- equations


def equations(sample: TableSample) -> Iterator[Candidate]:
    """Columns that are linear functions of others, with coefficients that people write."""
    numbers = sample.numbers
    rows = sample.points[:, numbers]
    rows = rows[~np.isnan(rows).any(axis=1)]
    if len(rows) < FEWEST_ROWS + len(numbers):
        return
    middle, scale = rows.mean(axis=0), rows.std(axis=0)
    scaled = (rows - middle) / scale
    basis: list[int] = []
    for j in range(len(numbers)):
        if basis:
            weights, *_ = np.linalg.lstsq(scaled[:, basis], scaled[:, j], rcond=1e-10)
            if np.sqrt(np.mean((scaled[:, j] - scaled[:, basis] @ weights) ** 2)) < RESIDUAL:
                slopes = weights * scale[j] / scale[basis]
                terms = {numbers[g]: s for g, s, w in zip(basis, slopes, weights, strict=True) if abs(w) > RESIDUAL}
                constant = float(middle[j] - sum(s * middle[numbers.index(g)] for g, s in terms.items()))
                found = _equation(sample, numbers[j], terms, constant)
                if found is not None:
                    yield found
                continue
        basis.append(j)


def _equation(sample: TableSample, target: int, slopes: dict[int, float], constant: float) -> Candidate | None:
    """The equation in round coefficients, if it has some and they fit."""
    exact = {g: _round(slope) for g, slope in slopes.items()}
    if len(exact) >= MOST_TERMS or any(value is None for value in exact.values()):
        return None
    terms = tuple((g, -float(value)) for g, value in exact.items() if value)
    whole = [(target, 1.0), *terms]
    size = max(abs(constant), *(float(np.nanmax(np.abs(sample.points[:, g]))) for g, _ in whole))
    rounded = _round(constant if abs(constant) > 1e-9 * size else 0.0)
    if rounded is None:
        return None
    scale = math.lcm(*(value.denominator for value in exact.values() if value is not None), rounded.denominator)
    if scale > 1 and len({g for g, _ in whole}) == len(whole):
        whole = [(g, coefficient * scale) for g, coefficient in whole]
    clause = LinearBounds(tuple(whole), float(rounded * scale), float(rounded * scale))
    return Candidate("equation", (_within_rounding(sample, clause),))


def _within_rounding(sample: TableSample, clause: LinearBounds) -> LinearBounds:
    """The equation; between real numbers, which rounding keeps from being equal, within what they miss it by."""
    features = [sample.schema.features[g] for g, _ in clause.terms]
    if all(isinstance(feature, Integer) for feature in features):
        return clause
    values = clause.values(sample.points)
    off = float(np.nanmax(np.abs(values - clause.lower)))
    size = sum(abs(c) * float(np.nanmax(np.abs(sample.points[:, g]))) for g, c in clause.terms)
    slack = 10.0 ** math.ceil(math.log10(max(2.0 * off, 1e-9 * size, 1e-12)))
    return LinearBounds(clause.terms, clause.lower - slack, clause.upper + slack)


def _round(value: float) -> Fraction | None:
    near = Fraction(value).limit_denominator(MOST_DENOMINATOR)
    return near if abs(float(near) - value) <= 1e-6 * max(1.0, abs(value)) else None


# ---------------------------------------------------------------------- conditions on single features


def conditions(sample: TableSample) -> list[FeatureCondition]:
    """Conditions that hold of some rows and not of others: options, levels, values and thresholds of few, atoms."""
    found = [c for g in range(len(sample.schema)) for c in _conditions_of(sample, g)]
    kept = []
    for condition in found:
        count = int(condition.holds(sample.points).sum())
        if FEWEST_ROWS <= count <= len(sample.points) - FEWEST_ROWS:
            kept.append(condition)
    return kept[:MOST_CONDITIONS]


def _conditions_of(sample: TableSample, g: int) -> Iterator[FeatureCondition]:
    feature, column = sample.schema.features[g], sample.points[:, g]
    if isinstance(feature, Choice):
        count = len(feature.options)
        yield from (FeatureCondition(g, options=frozenset([k])) for k in range(count))
        if feature.ordered and 3 <= count <= FEW_VALUES:
            yield from (FeatureCondition(g, options=frozenset(range(k))) for k in range(2, count))
            yield from (FeatureCondition(g, options=frozenset(range(k, count))) for k in range(1, count - 1))
        return
    values = np.unique(column[~np.isnan(column)])
    if isinstance(feature, Integer) and len(values) <= FEW_VALUES:
        yield from (FeatureCondition(g, float(v), float(v)) for v in values)
        yield from (FeatureCondition(g, lower=float(v)) for v in values[1:-1])
        yield from (FeatureCondition(g, upper=float(v)) for v in values[1:-1])
        if len(values) > 1:
            yield FeatureCondition(g, lower=float(values[1]))
    elif len(values) > 1 and values[0] <= feature.lower:
        yield FeatureCondition(g, upper=float(values[1]), strict=True)  # the least value alone
        yield FeatureCondition(g, lower=float(values[0]), strict=True)


# ---------------------------------------------------------------------- what a condition implies


def implications(sample: TableSample, known: list[FeatureCondition], tick: Callable[[], None]) -> list[Implication]:
    """Options that never occur, and bounds of numbers, where a condition holds."""
    points = sample.points
    columns = [np.sort(column[~np.isnan(column)]) for column in points.T]
    found: list[Implication] = []
    for condition in known:
        group = points[condition.holds(points)]
        for g, feature in enumerate(sample.schema.features):
            if g == condition.feature:
                continue
            if isinstance(feature, Choice):
                consequence = _options_left(sample, g, group[:, g])
            else:
                consequence = _bounds(sample, g, group[:, g], columns[g])
            if consequence is not None:
                found.append(Implication(condition, consequence))
        tick()
    return found


def _options_left(sample: TableSample, g: int, group: Points) -> FeatureCondition | None:
    count = len(sample.schema.features[g].options)  # type: ignore[union-attr]
    overall = np.bincount(sample.points[:, g].astype(np.int64), minlength=count)
    inside = np.bincount(group.astype(np.int64), minlength=count)
    expected = overall * (len(group) / len(sample.points))
    never = (inside <= sample.tolerated(len(group))) & (expected - inside >= sample.needed)
    left = frozenset(np.flatnonzero(~never).tolist())
    return FeatureCondition(g, options=left) if never.any() and left else None


def _bounds(sample: TableSample, g: int, group: Points, column: Points) -> FeatureCondition | None:
    values = np.sort(group[~np.isnan(group)])
    if len(values) < FEWEST_ROWS:
        return None
    share, skip = len(values) / len(column), sample.tolerated(len(values))
    lower, upper = -math.inf, math.inf
    if np.searchsorted(column, values[skip], side="left") * share >= sample.needed:
        low = hard_edge(values[skip:], sample.needed)
        if low is not None and np.searchsorted(column, low[0], side="left") * share >= sample.needed:
            lower = low[0]
    if (len(column) - np.searchsorted(column, values[-1 - skip], side="right")) * share >= sample.needed:
        high = hard_edge(-values[::-1][skip:], sample.needed)
        if high is not None:
            beyond = len(column) - np.searchsorted(column, -high[0], side="right")
            upper = -high[0] + 0.0 if beyond * share >= sample.needed else math.inf
    if lower == -math.inf and upper == math.inf:
        return None
    if lower == upper and not isinstance(sample.schema.features[g], Integer):
        return _single(sample, g, lower)
    return FeatureCondition(g, lower, upper)


def _single(sample: TableSample, g: int, value: float) -> FeatureCondition | None:
    """One value of a real number: a rule can demand it only at an end of the feature's range."""
    feature = sample.schema.features[g]
    assert isinstance(feature, Numeric)
    return FeatureCondition(g, value, value) if value in (feature.lower, feature.upper) else None
