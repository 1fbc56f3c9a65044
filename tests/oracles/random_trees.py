"""Random questions about random ensembles of trees: the schemas, people, distances and constraints of `random_problems`,
with trees in the place of the network. Leaves are often small whole numbers, so that sums tie; cuts often lie on a
person's own value, or part nothing at all.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
from random_problems import MARGINS, Floats, Rng, _score_target, random_problem
from random_rules import random_ruled_problem

from ifonly.model import Model
from ifonly.model.trees import EVERY, Ensemble, LibraryTree, Summation, Trees
from ifonly.problem import ClassTarget, Question, Target
from ifonly.schema import Choice, Integer, Numeric, Schema


def random_tree_problem(seed: int, *, finite: bool = False, ruled: bool = False) -> tuple[Question, Floats]:
    """A question and one to three factuals."""
    question, points = random_ruled_problem(seed, finite=finite) if ruled else random_problem(seed, finite=finite)
    rng = np.random.default_rng([seed, finite, ruled, 14])
    trees = _trees(rng, question.schema, points)
    target, trees = _target(rng, trees, points[0])
    model = Model(
        function=trees,
        schema=question.schema,
        original=lambda rows, trees=trees: trees.ensemble.scores(rows),
        classes=tuple(range(max(2, trees.outputs))),
        precision=trees.ensemble.summation.precision,
    )
    return Question(model=model, target=target, distance=question.distance, constraints=question.constraints), points


def _trees(rng: Rng, schema: Schema, points: Floats) -> Trees:
    outputs, whole = (3 if rng.random() < 0.25 else 1), bool(rng.random() < 0.4)
    every = outputs > 1 and bool(rng.random() < 0.5)
    trees = []
    for t in range(int(rng.integers(1, 9))):
        adds_to = EVERY if every or outputs == 1 else t % outputs
        trees.append(_tree(rng, schema, points, whole, outputs if every else 1, adds_to))
    if outputs == 1:
        trees = [replace(tree, adds_to=0) for tree in trees]
    summation = Summation(
        start=rng.integers(-1, 2, outputs).astype(np.float64),
        shift=np.zeros(outputs),
        divisor=float(rng.choice([1.0, len(trees)])),
        precision=str(rng.choice(["float32", "float64"])),
        ordered=bool(rng.random() < 0.7),
    )
    ensemble = Ensemble.of(trees, columns=len(schema), summation=summation)
    widest = max((len(f.options) for f in schema.features if isinstance(f, Choice)), default=0)
    sets = np.zeros((len(ensemble.sets), widest), dtype=bool)
    sets[:, : ensemble.sets.shape[1]] = ensemble.sets[:, :widest]
    return Trees(replace(ensemble, sets=sets), schema)


def _tree(rng: Rng, schema: Schema, points: Floats, whole: bool, width: int, adds_to: int) -> LibraryTree:
    column, threshold, left, right, sets, value = [], [], [], [], {}, []

    def grow(depth: int) -> int:
        node = len(column)
        for row, first in ((column, -1), (threshold, 0.0), (left, -1), (right, -1)):
            row.append(first)
        value.append(rng.integers(-3, 4, width).astype(float) if whole else rng.normal(size=width))
        if depth and rng.random() < 0.85:
            g = int(rng.integers(len(schema)))
            feature = schema.features[g]
            column[node] = g
            if isinstance(feature, Choice):
                sets[node] = np.flatnonzero(rng.random(len(feature.options)) < 0.5).tolist()
            else:
                threshold[node] = _cut(rng, feature, points[:, g])
            left[node], right[node] = grow(depth - 1), grow(depth - 1)
        return node

    grow(int(rng.integers(0, 4)))
    return LibraryTree(
        column=column, threshold=threshold, left=left, right=right, value=value, sets=sets, adds_to=adds_to
    )


def _cut(rng: Rng, feature: Numeric, own: Floats) -> float:
    how = rng.random()
    if how < 0.1:
        return float(rng.choice([-math.inf, math.inf, feature.upper]))
    if how < 0.3:
        return float(rng.choice(own))
    if isinstance(feature, Integer):
        return float(feature.lower + feature.step * rng.integers(0, feature.steps + 1))
    return float(np.round(feature.lower + feature.width * rng.random(), int(rng.integers(1, 5))))


def _target(rng: Rng, trees: Trees, factual: Floats) -> tuple[Target, Trees]:
    """A target, and the trees shifted so that it is usually neither free nor impossible."""
    margin, ensemble = float(rng.choice(MARGINS)), trees.ensemble
    scores, now = ensemble.scores(trees.schema.sample(400, rng)), ensemble.scores(factual[None, :])[0]
    if trees.outputs > 1:
        if rng.random() < 0.3:
            return _score_target(rng, scores[:, 1], margin, output=1), trees
        return ClassTarget(int((now.argmax() + rng.integers(1, 3)) % 3), margin), trees
    if rng.random() < 0.2:
        return _score_target(rng, scores[:, 0], margin, output=0), trees
    shift = float(np.quantile(np.unique(scores), rng.choice([0.05, 0.3, 0.5, 0.8, 0.95])))
    up = bool(now[0] < shift) if rng.random() < 0.85 else bool(rng.random() < 0.5)
    how = replace(ensemble.summation, shift=np.array([float(np.float32(-shift))]))
    return ClassTarget(int(up), margin), replace(trees, ensemble=replace(ensemble, summation=how))


def nearest_by_cells(
    question: Question, factual: Floats, most: int = 300_000, *, any_rounding_forest: bool = False
) -> float | None:
    """The least distance of a surely favourable row, by trying every value at which anything changes; None: too many.
    `any_rounding_forest`: of one that the luck of rounding may make acceptable.

    Of a number these are its own value, the ends of ranges, the cuts and their next numbers above; of an integer and of
    a choice all values.
    """
    trees, values = question.model.function, []
    assert isinstance(trees, Trees)
    for g, feature in enumerate(question.schema.features):
        mine = [c for c in question.by_feature if c.feature == feature.name]
        if isinstance(feature, Choice):
            tried = np.arange(float(len(feature.options)))
        elif isinstance(feature, Integer):
            tried = feature.lower + feature.step * np.arange(feature.steps + 1.0)
        else:
            ends = [e for c in mine for e in (getattr(c, "lower", None), getattr(c, "upper", None)) if e is not None]
            cuts = trees.cuts[g]
            tried = np.concatenate([[factual[g], feature.lower, feature.upper], ends, cuts, np.nextafter(cuts, np.inf)])
            tried = np.unique(tried[(tried >= feature.lower) & (tried <= feature.upper)])
        fine = [v for v in tried.tolist() if all(c.allows(feature, float(factual[g]), v) for c in mine)]
        values.append(fine)
    if math.prod(map(len, values)) > most:
        return None
    rows = np.array(list(itertools.product(*values))).reshape(-1, len(values))
    if not len(rows):
        return math.inf
    scores = question.model.exact_scores(rows)
    c, d = question.conditions
    least = question.target.margin + (-1.0 if any_rounding_forest else 1.0) * question.error
    sure = (scores @ c.T - d >= least).all(axis=1)
    if not any_rounding_forest or question.largest_error == 0.0:
        sure &= question.target.met(question.model, scores)
    rows = rows[sure]
    if question.rules:
        rows = rows[[question.broken_rule(factual, row) is None for row in rows]].reshape(-1, len(values))
    return float(question.measure.between(factual, rows).min()) if len(rows) else math.inf
