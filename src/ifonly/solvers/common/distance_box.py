"""Domain reduction by a known row: the box of what costs no more than it does.

A favourable row at distance d is found by sampling, then moved back to the factual feature by feature. No
feature of the nearest row can then cost more than d, which narrows every domain and with it every big-M.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ifonly.problem import Lowered, Norm
from ifonly.solvers.common.inputs import Floats, Person
from ifonly.solvers.common.repair import favourable

SAMPLES = 500
STARTS = 2
STOPS = 64
"""How many values between a row's and the factual's are tried, for each number."""


def known_row(lowered: Lowered, person: Person, need: Floats) -> Floats | None:
    """A favourable row that is not far, or None. Deterministic."""
    points = samples(lowered, person, SAMPLES, np.random.default_rng(0))
    good = points[favourable(lowered, person, points, need)]
    if not len(good):
        return None
    between, schema = lowered.question.distance.between, lowered.question.schema
    nearest = good[np.argsort(between(schema, person.factual, good), kind="stable")[:STARTS]]
    better = np.array([_taken_back(lowered, person, point, need) for point in nearest])
    return np.asarray(better[between(schema, person.factual, better).argmin()])


def samples(lowered: Lowered, person: Person, count: int, rng: np.random.Generator) -> Floats:
    """Rows that keep most of the factual's values (where those are allowed) and draw the others uniformly."""
    points = np.empty((count, lowered.features))
    for g in range(lowered.features):
        at, end = int(lowered.start[g]), int(lowered.start[g + 1])
        stays = rng.random(count) < np.linspace(0.1, 0.9, count)
        if lowered.numeric[g]:
            low, high, step = person.lower[g], person.upper[g], lowered.step[g]
            drawn = rng.uniform(low, high, count)
            if step:
                drawn = low + step * np.round((drawn - low) / step)
            inside = low <= person.factual[g] <= high
        else:
            options = np.flatnonzero(person.allowed[at:end])
            drawn = rng.choice(options, count).astype(np.float64)
            inside = bool(person.allowed[at + int(person.factual[g])])
        points[:, g] = np.where(stays & inside, person.factual[g], drawn)
    return lowered.on_steps(np.tile(person.factual, (count, 1)), points)


def _taken_back(lowered: Lowered, person: Person, point: Floats, need: Floats) -> Floats:
    """The point with every feature as near to the factual as the others allow, dearest first."""
    point = point.copy()
    for g in np.argsort(-feature_costs(lowered, person, point)).tolist():
        values = _way_back(lowered, person, g, float(point[g]))
        if len(values):
            candidates = np.repeat(point[None, :], len(values), axis=0)
            candidates[:, g] = values
            candidates = lowered.on_steps(np.tile(person.factual, (len(values), 1)), candidates)
            good = np.flatnonzero(favourable(lowered, person, candidates, need))
            point = candidates[good[0]] if len(good) else point
    return point


def _way_back(lowered: Lowered, person: Person, g: int, value: float) -> Floats:
    """Values between the factual's, which comes first, and this one."""
    factual = float(person.factual[g])
    if value == factual:
        return np.empty(0)
    if not lowered.numeric[g]:
        allowed = person.allowed[int(lowered.start[g]) + int(factual)]
        return np.array([factual] if allowed else [])
    values = np.linspace(factual, value, STOPS, endpoint=False)
    if lowered.step[g]:
        values = factual + lowered.step[g] * np.round((values - factual) / lowered.step[g])
    return values[(values >= person.lower[g]) & (values <= person.upper[g])]


def feature_costs(lowered: Lowered, person: Person, point: Floats) -> Floats:
    """What each feature of a point costs."""
    number = number_costs(lowered, point - person.factual)
    if lowered.norm is Norm.L2:
        number = number**2
    columns = lowered.start[:-1] + np.where(lowered.numeric, 0.0, point).astype(np.intp)
    return np.where(lowered.numeric, number, person.cost[columns])


def number_costs(lowered: Lowered, change: Floats) -> Floats:
    """What changes of numbers cost (l2: before squaring)."""
    return lowered.jump * (change != 0.0) + np.where(change > 0.0, lowered.rate * change, -lowered.rate_down * change)


def within(lowered: Lowered, person: Person, point: Floats) -> Person:
    """The person with every domain cut to what costs no more than the known row does."""
    costs = feature_costs(lowered, person, point)
    return cut(lowered, person, float(costs.max() if lowered.norm is Norm.LINF else costs.sum()))


def within_distance(lowered: Lowered, person: Person, distance: float) -> Person:
    """The person with every domain cut to what costs no more than this distance. Domains may become empty."""
    return cut(lowered, person, distance**2 if lowered.norm is Norm.L2 else distance)


def cut(lowered: Lowered, person: Person, most: float) -> Person:
    """Every domain cut to what costs at most this (l2: squared), with a margin for rounding."""
    budget = most * (1.0 + 1e-9) + 1e-30
    up, down = (_reach(lowered, rate, budget) for rate in (lowered.rate, lowered.rate_down))
    lower, upper = person.lower.copy(), person.upper.copy()
    number = lowered.numeric
    lower[number] = np.maximum(lower, person.factual - down)[number]
    upper[number] = np.minimum(upper, person.factual + up)[number]
    whole = number & (lowered.step > 0.0)
    step = np.where(whole, lowered.step, 1.0)
    lower[whole] = (person.lower + step * np.ceil((lower - person.lower) / step - 1e-9))[whole]
    upper[whole] = (person.lower + step * np.floor((upper - person.lower) / step + 1e-9))[whole]
    choice = np.repeat(~number, np.diff(lowered.start))
    allowed = person.allowed & (~choice | (person.cost <= budget))
    return replace(person, lower=lower, upper=upper, allowed=allowed)


def _reach(lowered: Lowered, rate: Floats, budget: float) -> Floats:
    """How far each number can go for a budget."""
    rate = rate**2 if lowered.norm is Norm.L2 else rate
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.nan_to_num(np.where(budget >= lowered.jump, (budget - lowered.jump) / rate, 0.0), posinf=np.inf)
    return np.asarray(np.sqrt(reach) if lowered.norm is Norm.L2 else reach)
