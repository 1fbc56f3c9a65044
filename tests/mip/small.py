"""A small question with a feature of every kind."""

from itertools import pairwise

import numpy as np

from ifonly import Categorical, Distance, Integer, Network, Ordinal, Real, Schema
from ifonly.model import network_model
from ifonly.problem import ClassTarget, Question
from ifonly.solvers.common.inputs import Person

SCHEMA = Schema([Real("a", 0, 10), Integer("b", 0, 9, 3), Ordinal("c", ["x", "y", "z"]), Categorical("d", [1, 2, 3])])


def question(norm="l1", hidden=(6, 5), seed=0):
    rng = np.random.default_rng(seed)
    widths = [len(SCHEMA.columns), *hidden, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(widths)]
    model = network_model(Network.of(layers), SCHEMA)
    middle = float(np.median(model.scores(SCHEMA.sample(500, rng))))
    layers[-1] = (layers[-1][0], layers[-1][1] - middle)
    model = network_model(Network.of(layers), SCHEMA)
    return Question(model=model, target=ClassTarget(1), distance=Distance(norm))


def person(lowered, seed=1):
    return Person.of(lowered.domains(SCHEMA.sample(1, np.random.default_rng(seed))), 0)
