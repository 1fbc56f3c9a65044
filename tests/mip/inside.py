"""Rows of a domain and a budget, and whether bounds of neurons hold them."""

import numpy as np

from ifonly.solvers.common.distance_box import samples


def rows_within(lowered, someone, cut, budget, count, rng):
    """Rows of `cut`, the person's domain for the budget, that are within it; those of real features pulled closer."""
    found = [np.empty((0, lowered.features))]
    real = lowered.numeric & (lowered.step == 0.0)
    between, schema = lowered.question.distance.between, lowered.question.schema
    for _ in range(50):
        points = samples(lowered, cut, count, rng)
        pulled = someone.factual + rng.random((count, 1)) ** 2 * (points - someone.factual)
        points = np.where(real, np.clip(pulled, cut.lower, cut.upper), points)
        found.append(points[between(schema, someone.factual, points) <= budget])
        if sum(map(len, found)) >= count:
            break
    return np.concatenate(found)[:count]


def outside(lowered, bounds, points):
    """How many pre-activations of these rows lie outside their bounds, by more than numpy's own rounding."""
    h, wrong = lowered.unrolled(points), 0
    for i, (weight, bias) in enumerate(lowered.layers):
        z = h @ weight.T + bias
        slack = 1e-12 * (1.0 + np.abs(h) @ np.abs(weight).T + np.abs(bias))
        wrong += int(((z < bounds.lower[i] - slack) | (z > bounds.upper[i] + slack)).sum())
        h = np.maximum(z, 0.0)
    return wrong
