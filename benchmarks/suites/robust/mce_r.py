"""MCE-R, written again from its description: raise the required margin until a check of robustness passes.

The check is exact here, and right for negative inputs: the lowest score over all networks within delta, by the bound
that is exact for one hidden layer, else by an attack that refutes it, else by a mixed-integer program over the values
of the first hidden layer (two hidden layers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ifonly import Answer, ClassTarget, Explainer, Model
from ifonly.model.own_layers import own_layers
from ifonly.model.weight_attack import lowest_network
from ifonly.model.weight_box import WeightBox

STEP = 0.05
"""By which the margin of the score is raised, in log-odds."""
MOST = 400


def raised_until_robust(explainer: Explainer, row: Any, target: Any, delta: float) -> Answer | None:
    """The first of the nearest rows under growing margins that all networks within delta accept."""
    for k in range(MOST):
        answer = explainer.explain(row, target=ClassTarget(target, margin=max(k * STEP, 1e-6)))
        if answer.counterfactual is None:
            return None
        if accepted_by_all(explainer.model, explainer.schema.read(answer.counterfactual)[None, :], delta):
            return answer
    return None


def accepted_by_all(model: Model, point: Any, delta: float) -> bool:
    """Do all networks within delta give the row a score above 0?"""
    box, encoded, condition = WeightBox(own_layers(model), delta), model.schema.encode(point), np.ones((1, 1))
    if box.lowest(encoded, condition)[0, 0] > 0.0:
        return True
    if box.is_exact or lowest_network(box, encoded[0], condition[0])[0] <= 0.0:
        return False
    if len(box.layers) > 3:
        return False
    return least_of_two_layers(box, encoded) > 0.0


def least_of_two_layers(box: WeightBox, encoded: Any) -> float:
    """min over values h of the first hidden layer, between their ends, of the network above it at its worst weights:
    of each neuron of the second layer the least value where its outgoing weight is >= 0, else the largest."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    low, high = (end[0] for end in box.activations(encoded)[1])
    (least, least_bias), (largest, largest_bias) = box.layers[1]
    out, offset = box.layers[2][0]
    falls = out[0] < 0.0
    weight, bias = np.where(falls[:, None], largest, least), np.where(falls, largest_bias, least_bias)
    n, m = len(low), len(bias)
    up, down = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
    most, fewest = up @ high + down @ low + bias, up @ low + down @ high + bias
    most, fewest = np.maximum(most, 0.0) + 1e-9, np.minimum(fewest, 0.0) - 1e-9
    eye, none = np.eye(m), np.zeros((m, n))
    rows = np.vstack([
        np.hstack([-weight, eye, np.zeros((m, m))]),  # v >= weight h + bias
        np.hstack([-weight, eye, -np.diag(fewest)]),  # v <= weight h + bias - fewest (1 - on)
        np.hstack([none, eye, -np.diag(most)]),  # v <= most on
    ])  # fmt: skip
    ends = np.concatenate([bias, np.full(m, -np.inf), np.full(m, -np.inf)])
    tops = np.concatenate([np.full(m, np.inf), bias - fewest, np.zeros(m)])
    cost = np.concatenate([np.zeros(n), out[0], np.zeros(m)])
    found = milp(
        cost, constraints=LinearConstraint(rows, ends, tops),
        bounds=Bounds(np.concatenate([low, np.zeros(2 * m)]), np.concatenate([high, most, np.ones(m)])),
        integrality=np.concatenate([np.zeros(n + m), np.ones(m)]),
    )  # fmt: skip
    return float(found.fun + offset[0]) if found.success else -np.inf
