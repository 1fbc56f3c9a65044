"""The yardstick is asked like every method, and keeps its limits."""

import time
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.asking.yardstick import BigM, available
from ifonly import Categorical, Distance, Explainer, Integer, Limits, Network, Ordinal, Real, Schema, Within
from ifonly.model import network_model
from ifonly.problem import ClassTarget, Question

SCHEMA = Schema([Real("a", 0, 10), Integer("b", 0, 9, 3), Ordinal("c", ["x", "y", "z"]), Categorical("d", [1, 2, 3])])
BACKENDS = [backend for backend in ("gurobi", "highs") if available(backend)]


def question(norm="l1", hidden=(6, 5), seed=0):
    rng = np.random.default_rng(seed)
    widths = [len(SCHEMA.columns), *hidden, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(widths)]
    model = network_model(Network.of(layers), SCHEMA)
    middle = float(np.median(model.scores(SCHEMA.sample(500, rng))))
    layers[-1] = (layers[-1][0], layers[-1][1] - middle)
    model = network_model(Network.of(layers), SCHEMA)
    return Question(model=model, target=ClassTarget(1), distance=Distance(norm))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_time_limit_is_kept_and_its_bound_is_a_bound(backend):
    asked = question(hidden=(40, 40))
    rows = [SCHEMA.row(point) for point in SCHEMA.sample(1, np.random.default_rng(5))]
    explainer = Explainer(asked.model)
    best = BigM(backend="highs" if "gurobi" not in BACKENDS else "gurobi")
    full = explainer.using(best).explain_many(rows, target=1)
    worked = time.process_time()  # others on the machine do not stretch it
    cut = explainer.using(BigM(backend=backend)).explain_many(rows, target=1, limits=Limits(seconds=0.02))
    assert time.process_time() - worked < 2.0
    assert cut[0].lower <= full[0].upper + 1e-9
    assert not isinstance(cut[0], Within) or (cut[0].stop is not None and cut[0].stop.is_limit)
