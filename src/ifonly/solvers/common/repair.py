"""Repair of a solver's solution: to a row that the user's model accepts.

A solver's optimum lies on the margin to within its tolerance (1e-9 per constraint, more after several layers), so its
row may miss the decision by that much. On its own linear piece the network is  h(x) = h(x0) + slope.(x - x0):  the
cheapest real feature that has already changed (any, if changing costs no jump) is moved on until every condition
reaches the margin plus the deployed model's rounding error. That costs about 1e-9 / slope in distance. When no real
feature can do it, the caller asks the solver again for a little more than the margin. A rule that the row breaks
(judged by the rule itself) is one more such condition: its neuron must reach 0 and a little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered, Norm
from ifonly.problem.rule_edges import rounder
from ifonly.solvers.common.inputs import Floats, Person

STEPS = 12
RULE_EDGE = 1e-14
"""Relative to the sum of its terms: how far inside a rule about real numbers a repaired row is put."""
FURTHEST = 1e-4
"""A share of a feature's domain: a repair that needs more than this is no repair."""


def conditions(lowered: Lowered, points: Floats) -> Floats:
    """C s - d of points; of trees by the library's own sum."""
    if lowered.question.model.function.exact_sums:
        c, d = lowered.question.conditions
        return np.asarray(lowered.question.model.exact_scores(points) @ c.T - d)
    h = lowered.unrolled(points)
    for weight, bias in lowered.layers[:-1]:
        h = np.maximum(h @ weight.T + bias, 0.0)
    return h @ lowered.layers[-1][0].T + lowered.layers[-1][1]


def decided(lowered: Lowered, person: Person, points: Floats, need: Floats) -> NDArray[np.bool_]:
    """Which points reach `need` in every condition; of trees, whose scores are the library's own, also on a tie."""
    good = np.asarray((conditions(lowered, points) >= need).all(axis=1))
    question = lowered.question
    if person.rounding_bound >= 0.0 and question.model.function.exact_sums:
        good &= question.target.met(question.model, question.model.exact_scores(points))
    return good


def favourable(lowered: Lowered, person: Person, points: Floats, need: Floats) -> NDArray[np.bool_]:
    """Which points are decided as asked, and break no rule."""
    good = decided(lowered, person, points, need)
    if lowered.question.rules:
        for i in np.flatnonzero(good).tolist():
            good[i] = lowered.question.broken_rule(person.factual, points[i]) is None
    return good


def slopes(lowered: Lowered, point: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Conditions and their derivatives by every unrolled column, on the point's linear piece; then those of the rules'
    neurons.
    """
    h = lowered.unrolled(point)
    derivative = np.eye(lowered.width)
    values, gradients = [np.zeros(0)], [np.zeros((0, lowered.width))]
    for k, (weight, bias) in enumerate(lowered.layers):
        z, gradient = weight @ h + bias, weight @ derivative
        mine = lowered.required[lowered.required[:, 0] == k, 1]
        values.append(z[mine])
        gradients.append(gradient[mine])
        derivative = gradient * (z > 0.0)[:, None]
        h = np.maximum(z, 0.0)
    if lowered.question.model.function.exact_sums:
        z = conditions(lowered, point[None, :])[0]
    order = np.argsort(np.argsort(lowered.required[:, 0], kind="stable"), kind="stable")
    return z, gradient, np.concatenate(values)[order], np.concatenate(gradients)[order]


def _broken(lowered: Lowered, person: Person, point: Floats) -> NDArray[np.bool_]:
    """Which of the rules' neurons stand for a rule that the point breaks."""
    question = lowered.question
    bad = [not rule.allows_row(question.schema, person.factual, point) for rule in question.rules]
    return np.array([bad[r] for r in lowered.required_rule.tolist()], dtype=bool)


def repaired(lowered: Lowered, person: Person, point: Floats, need: Floats) -> Floats | None:
    """The point, moved as little as possible so that every condition reaches `need` and every rule holds; None if it
    cannot.
    """
    moved = _moved(lowered, person, point, need)
    if moved is not None or not len(lowered.required):
        return moved
    near = rounder(lowered, person.factual, person.lower, person.upper, point)
    return next((row for row in near if favourable(lowered, person, row[None, :], need)[0]), None)


def _moved(lowered: Lowered, person: Person, point: Floats, need: Floats) -> Floats | None:
    point = point.copy()
    real = np.flatnonzero(lowered.numeric & (lowered.step == 0.0) & (person.lower < person.upper))
    if lowered.jump.any():
        real = real[point[real] != person.factual[real]]
    for _ in range(STEPS):
        z, gradient, rules, rule_gradient = slopes(lowered, point)
        edge = RULE_EDGE * (1.0 + np.abs(rule_gradient) @ np.abs(lowered.unrolled(point)))
        missing = np.where(_broken(lowered, person, point), edge - rules, -np.inf)
        short, steep = np.concatenate([need - z, missing]), np.concatenate([gradient, rule_gradient])
        worst = int(short.argmax())
        if short[worst] <= 0.0 and not decided(lowered, person, point[None, :], need)[0]:
            return None  # a tie that is lost
        if short[worst] <= 0.0:
            return point if lowered.question.broken_rule(person.factual, point) is None else None
        slope = steep[worst][lowered.start[:-1][real]]
        reach = np.where(slope > 0.0, person.upper[real] - point[real], point[real] - person.lower[real])
        width = person.upper[real] - person.lower[real]
        step = 1.000001 * short[worst] / np.maximum(np.abs(slope), 1e-300)
        able = np.flatnonzero((slope != 0.0) & (reach > 0.0) & (np.minimum(step, reach) <= FURTHEST * width))
        if not len(able):
            return None
        price = lowered.rate[real] if lowered.norm is not Norm.L0 else 1.0 / width
        best = able[(np.abs(slope) / price)[able].argmax()]
        moved = point[real[best]] + np.sign(slope[best]) * max(step[best], np.spacing(abs(point[real[best]])))
        point[real[best]] = min(max(moved, person.lower[real[best]]), person.upper[real[best]])
    return None


def pulled(lowered: Lowered, person: Person, point: Floats, row: Floats, need: Floats) -> Floats:
    """A point that meets `need`, moved towards a nearer row that does not, as far as it still meets it.

    For points that came of asking for more than `need`. Only where nothing but real features differs.
    """
    real = lowered.numeric & (lowered.step == 0.0)
    if (point != row)[~real].any():
        return point
    best, low, high = point, 0.0, 1.0  # the share of the way from the row to the point
    for _ in range(STEPS * 4):
        share = 0.5 * (low + high)
        between = np.where(real, np.clip(row + share * (point - row), person.lower, person.upper), point)
        if favourable(lowered, person, between[None, :], need)[0]:
            best, high = between, share
        else:
            low = share
    return best
