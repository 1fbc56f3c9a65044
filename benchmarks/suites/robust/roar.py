"""ROAR, written again from its description: gradient steps on a loss at the worst weights of a local linear model.

The network is replaced by a linear model around the person, fitted to its log-odds at rows drawn nearby. Each step
takes the weights within `WEIGHTS` (each) that are worst for the present row, and descends the log-loss there plus the
l1 cost of the change. Options are rounded to the nearest one in the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WEIGHTS = 0.1
DRAWN, SPREAD = 1000, 0.25
"""Rows that the linear model is fitted to, and their deviation from the person, in units of ranges."""
COST, RATE, STEPS = 0.1, 0.02, 1000


def roar(model: Any, network: Any, row: Any) -> Any:
    """The row that is found; None where the steps end without one that the linear model accepts."""
    schema, scaler = model.schema, network[0]
    own = scaler.transform(schema.encode(schema.read(row)[None, :]))[0]
    weight, bias = _linear_around(network, own)
    x = own.copy()
    for _ in range(STEPS):
        worst, lowest = weight - WEIGHTS * np.sign(x), bias - WEIGHTS
        score = float(worst @ x + lowest)
        if score > 0.0:
            break
        gradient = -worst / (1.0 + np.exp(score)) + COST * np.sign(x - own) / len(x)
        x = np.clip(x - RATE * gradient, 0.0, 1.0)
    else:
        return None
    return schema.row(_rounded(schema, scaler.inverse_transform(x[None, :])[0]))


def _linear_around(network: Any, own: Any) -> tuple[Any, float]:
    """Least squares on the network's log-odds."""
    drawn = own + np.random.default_rng(0).normal(0.0, SPREAD, (DRAWN, len(own)))
    share = np.clip(network[-1].predict_proba(drawn)[:, 1], 1e-6, 1.0 - 1e-6)
    columns = np.hstack([drawn, np.ones((DRAWN, 1))])
    found = np.linalg.lstsq(columns, np.log(share / (1.0 - share)), rcond=None)[0]
    return found[:-1], float(found[-1])


def _rounded(schema: Any, encoded: Any) -> Any:
    """The point whose encoding is nearest: of a number its value, of a choice the nearest option."""
    point = schema.read(schema.row(np.array([0.0 if hasattr(f, "options") else f.lower for f in schema.features])))
    for g, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        if hasattr(feature, "options"):
            rows = np.repeat(point[None, :], len(feature.options), axis=0)
            rows[:, g] = np.arange(len(rows))
            point[g] = float(np.abs(schema.encode(rows)[:, columns] - encoded[columns]).sum(axis=1).argmin())
        else:
            value = float(np.clip(encoded[columns[0]], feature.lower, feature.upper))
            point[g] = round(value) if feature.kind == "integer" else value
    return point
