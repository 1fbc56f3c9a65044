"""Random questions to two to four models of mixed kinds over one finite space, and the answer by trying every row.

The first model and everything else are those of `random_problems`, `random_trees` or `random_smooth`; the others are
networks, linear models, networks with smooth activations and trees over the same schema, in float64 and float32.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from random_problems import Floats, Rng, _network, _Style, _target, random_problem
from random_rules import random_ruled_problem
from random_smooth import ACTIVATIONS, _module, random_smooth_problem
from random_trees import _target as _tree_target
from random_trees import _trees, random_tree_problem

from ifonly import import_model
from ifonly.model import Model, Network, network_model
from ifonly.problem import Accepted, Fixed, Question, Range, Target
from ifonly.schema import Choice, Integer, Schema

NEAR = {"float64": 1e-9, "float32": 1e-3}
"""Scores that are as near to the margin as this may be decided either way by rounding."""


@dataclass(frozen=True)
class ChainProblem:
    """A question without the other models, these, and some people."""

    question: Question
    others: tuple[Accepted, ...]
    points: Floats

    @property
    def constraints(self) -> tuple[object, ...]:
        return (*self.question.constraints, *self.others)


def random_chain(seed: int, *, ruled: bool = False, reals: bool = False) -> ChainProblem:
    """`reals`: over a space that is not finite."""
    rng = np.random.default_rng([seed, ruled, reals, 28])
    question, points = _first(rng, seed, ruled, not reals)
    others, common = [], _wanted(rng, question, points[0])
    for k in range(int(rng.integers(1, 4))):
        kind = str(rng.choice(["network", "linear", "smooth", "trees"]))
        model, target = _other(rng, kind, question.schema, points)
        for _ in range(12 if common is not None else 0):
            if target.met(model, model.scores(common))[0]:
                break
            model, target = _other(rng, kind, question.schema, points)
        others.append(Accepted(by=model, target=target, name=f"{kind} {k}"))
    return ChainProblem(question, tuple(others), points)


def _wanted(rng: Rng, question: Question, factual: Floats) -> Floats | None:
    """Of most questions, a row that the first model accepts and the constraints allow, which the others are drawn to
    accept: else hardly any question has an answer."""
    if rng.random() < 0.2:
        return None
    rows = question.schema.sample(400, rng)
    for constraint in question.by_feature:
        if isinstance(constraint, Fixed):
            g = question.schema.index(constraint.feature)
            rows[:, g] = factual[g]
    good = question.target.met(question.model, question.model.scores(rows))
    allowed = [row for row in rows[good] if question.allows(factual, row) is None]
    return allowed[0][None, :] if allowed else None


def _first(rng: Rng, seed: int, ruled: bool, finite: bool) -> tuple[Question, Floats]:
    how = rng.random()
    if how < 0.35:
        return random_tree_problem(seed, finite=finite, ruled=ruled)
    if how < 0.55:
        made = random_smooth_problem(seed, str(rng.choice(ACTIVATIONS)), finite=finite, ruled=ruled)
        if made is not None:
            return made
    return (random_ruled_problem if ruled else random_problem)(seed, finite=finite)


def _other(rng: Rng, kind: str, schema: Schema, points: Floats) -> tuple[Model, Target]:
    style = replace(_Style.draw(rng), whole=bool(rng.random() < 0.15))
    if kind == "trees":
        target, trees = _tree_target(rng, _trees(rng, schema, points), points[0])
        names = tuple(range(max(2, trees.outputs)))
        precision = trees.ensemble.summation.precision
        return Model(function=trees, schema=schema, original=trees.ensemble.scores, classes=names,
                     precision=precision), target  # fmt: skip
    network = _network(rng, schema, style)
    if kind == "linear":
        network = Network.of([(rng.normal(size=(1, len(schema.columns))) / 2.0, rng.normal(size=1))])
    if kind == "smooth" and len(network.layers) > 1:
        single, activation = bool(rng.random() < 0.4), str(rng.choice(ACTIVATIONS))
        module = _module(network, activation, len(network.layers) > 2 and rng.random() < 0.3, schema, rng)
        model = import_model(module.float() if single else module.double(), schema)
        return model, _target(rng, schema, _Scored(model), points[0], False)[0]
    target, network = _target(rng, schema, network, points[0], style.whole)
    if rng.random() < 0.5:  # torch's own arithmetic
        module = _module_of(network, single=bool(rng.random() < 0.5))
        return import_model(module, schema, classes=tuple(range(max(2, network.outputs)))), target
    return network_model(network, schema), target


class _Scored:
    """A model in the place of a network, of which a target is drawn; its bias stays as it is."""

    def __init__(self, model: Model) -> None:
        self.outputs, self.scores = model.outputs, model.function.scores
        self.layers = Network.of([(np.ones((model.outputs, 1)), np.zeros(model.outputs))]).layers


def _module_of(network: Network, *, single: bool) -> object:
    import torch
    from torch import nn

    steps: list[nn.Module] = []
    for i, layer in enumerate(network.layers):
        steps += [nn.ReLU()] if i else []
        linear = nn.Linear(layer.weight.shape[1], layer.weight.shape[0]).double()
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(layer.weight))
            linear.bias.copy_(torch.tensor(layer.bias))
        steps.append(linear)
    module = nn.Sequential(*steps)
    return module.float() if single else module


# ---------------------------------------------------------------------- every row


def every_row(question: Question, factual: Floats) -> Floats:
    """All rows of a finite space; a real number has the one value that its constraints leave."""
    values = []
    for g, feature in enumerate(question.schema.features):
        if isinstance(feature, Choice):
            values.append(np.arange(float(len(feature.options))))
        elif isinstance(feature, Integer):
            values.append(feature.lower + feature.step * np.arange(feature.steps + 1.0))
        else:
            own = [c for c in question.by_feature if c.feature == feature.name]
            ends = [c.lower for c in own if isinstance(c, Range) and c.lower == c.upper]
            values.append(np.array([factual[g]] if any(isinstance(c, Fixed) for c in own) else ends[:1]))
    return np.array(list(itertools.product(*values))).reshape(-1, len(values))


def by_trying(
    problem: ChainProblem, factual: Floats, constraints: tuple[object, ...] | None = None
) -> tuple[float, float]:
    """The distances of the nearest row that all models may accept, and that all surely do: by their own scores of it.
    `constraints`: instead of all."""
    kept = problem.constraints if constraints is None else constraints
    question = replace(problem.question, constraints=tuple(c for c in kept if not isinstance(c, Accepted)))
    rows = every_row(replace(question, constraints=problem.question.constraints), factual)
    rows = rows[[question.allows(factual, row) is None for row in rows]] if len(rows) else rows
    if not len(rows):
        return math.inf, math.inf
    others = tuple(one for one in kept if isinstance(one, Accepted))
    may, must = _verdicts(ChainProblem(question, others, problem.points), rows)
    distance = question.measure.between(factual, rows)
    return float(distance[may].min(initial=math.inf)), float(distance[must].min(initial=math.inf))


def surely_accepted(problem: ChainProblem, rows: Floats) -> NDArray[np.bool_]:
    """Which rows all models accept, however they round."""
    return _verdicts(problem, rows)[1]


def _verdicts(problem: ChainProblem, rows: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows all models may accept, and which all surely do, by their own scores."""
    may, must = np.ones(len(rows), bool), np.ones(len(rows), bool)
    asked = [(problem.question.model, problem.question.target), *((one.by, one.target) for one in problem.others)]
    for model, target in asked:
        near, scores = NEAR[model.precision], model.scores(rows)
        trees = model.function.as_trees()
        near = 0.0 if trees is not None and trees.ensemble.summation.ordered else near
        near *= 1.0 + float(np.abs(scores).max())
        if not near:
            decided = target.met(model, scores)
            may, must = may & decided, must & decided
            continue
        c, d = target.conditions(model)
        beyond = (scores @ c.T - d).min(axis=1)
        may, must = may & (beyond >= target.margin - near), must & (beyond >= target.margin + near)
    return may, must
