"""From a solver's solution to a row that the user's model accepts.

A solver's optimum lies on the margin to within its tolerance (1e-9 a constraint, more after several layers), so its row
may miss the decision by that much. On its own linear piece the network is  h(x) = h(x0) + slope.(x - x0):  the cheapest
real feature that has already changed (any, if changing costs no jump) is moved on until every condition reaches the
margin plus the deployed model's rounding error. That costs about 1e-9 / slope in distance. When no real feature can do
it, the caller asks the solver again for a little more than the margin.
"""

from __future__ import annotations

import numpy as np

from ifonly.mip.inputs import Floats, Person
from ifonly.problem import Lowered, Norm

STEPS = 12
FURTHEST = 1e-4
"""A share of a feature's domain: a repair that needs more than this is no repair."""


def conditions(lowered: Lowered, points: Floats) -> Floats:
    """C s - d of points."""
    h = lowered.unrolled(points)
    for weight, bias in lowered.layers[:-1]:
        h = np.maximum(h @ weight.T + bias, 0.0)
    return h @ lowered.layers[-1][0].T + lowered.layers[-1][1]


def slopes(lowered: Lowered, point: Floats) -> Floats:
    """The derivative of every condition by every unrolled column, on the point's linear piece."""
    h = lowered.unrolled(point)
    derivative = np.eye(lowered.width)
    for weight, bias in lowered.layers[:-1]:
        z = weight @ h + bias
        derivative = (weight @ derivative) * (z > 0.0)[:, None]
        h = np.maximum(z, 0.0)
    return lowered.layers[-1][0] @ derivative


def repaired(lowered: Lowered, person: Person, point: Floats, need: Floats) -> Floats | None:
    """The point, moved as little as possible so that every condition reaches `need`; None when that fails."""
    point = point.copy()
    real = np.flatnonzero(lowered.numeric & (lowered.step == 0.0) & (person.lower < person.upper))
    if lowered.jump.any():
        real = real[point[real] != person.factual[real]]
    for _ in range(STEPS):
        short = need - conditions(lowered, point[None, :])[0]
        worst = int(short.argmax())
        if short[worst] <= 0.0:
            return point
        slope = slopes(lowered, point)[worst][lowered.start[:-1][real]]
        room = np.where(slope > 0.0, person.upper[real] - point[real], point[real] - person.lower[real])
        width = person.upper[real] - person.lower[real]
        step = 1.000001 * short[worst] / np.maximum(np.abs(slope), 1e-300)
        able = np.flatnonzero((slope != 0.0) & (room > 0.0) & (np.minimum(step, room) <= FURTHEST * width))
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
        if (conditions(lowered, between[None, :])[0] >= need).all():
            best, high = between, share
        else:
            low = share
    return best
