"""Node records: a tree that covers the space, whose leaves are closed for a reason."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from random_problems import random_problem

from cases import load
from ifonly import ClassTarget, Distance, Explainer, Limits, Nearest
from ifonly.methods import Search
from ifonly.problem import Norm, Question, lower
from ifonly.problem.lowering import Lowered
from ifonly.results import Claim
from ifonly.solvers.search.record import NodeRecord, Record

CASES = [("credit", "2x10", "norm"), ("adult", "2x10", "raw"), ("compas", "2x10", "norm")]
every_norm = pytest.mark.parametrize(
    "norm", ["l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7}], ids=["l0", "l1", "l2", "linf", "mixture"]
)


def recorded(question: Question, points: np.ndarray) -> list[Claim]:
    return Search(records=True, table_rows=0).prepare(question).solve(points, Limits())


def last_phase(record: Record) -> tuple[dict[int, NodeRecord], dict[int, list[NodeRecord]]]:
    """The nodes of the last phase by name, and the children of each."""
    nodes = {node.name: node for node in record.nodes if node.phase == record.phases}
    children = defaultdict(list)
    for node in nodes.values():
        children[node.parent].append(node)
    return nodes, children


def questions(norm: Any) -> Iterator[tuple[Question, np.ndarray]]:
    for case in CASES:
        model, points, _ = load(*case)
        yield Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm)), points[:12]
    for seed in (3, 8, 21, 34, 55):
        question, points = random_problem(seed)
        distance = Distance(norm, question.distance.weights, question.distance.scales)
        yield (
            Question(model=question.model, target=question.target, distance=distance, constraints=question.constraints),
            points,
        )


@every_norm
def test_the_answer_is_the_one_without_records(norm: Any) -> None:
    for question, points in questions(norm):
        plain = Search(table_rows=0).prepare(question).solve(points, Limits())
        for a, b in zip(recorded(question, points), plain, strict=True):
            assert a.record is not None
            assert b.record is None
            assert (a.lower, a.nodes) == (b.lower, b.nodes)
            assert (a.point is None and b.point is None) or (a.point == b.point).all()


@every_norm
def test_records_form_a_tree(norm: Any) -> None:
    split_nodes = 0
    for question, points in questions(norm):
        hidden, features = sum(question.model.network.hidden), len(question.schema)
        conditions = len(question.conditions[1])
        for claim in recorded(question, points):
            nodes, children = last_phase(claim.record)
            roots = children.pop(-1)
            assert len(roots) == 1
            assert len(nodes) <= claim.nodes
            for name, pair in children.items():
                parent = nodes[name]
                assert len(pair) == 2
                assert parent.split != -1
                assert not parent.closed
                assert all(child.name > name and child.bound >= parent.bound for child in pair)
                split_nodes += 1
            for node in nodes.values():
                assert -2 - hidden < node.split < features
                assert node.slopes.shape == (hidden,)
                assert set(node.slopes.tolist()) <= {0, 1}
                assert all(-1 - hidden < row.about + 1 <= conditions for row in node.rows)
    assert split_nodes > 20 or norm == "l0"


@every_norm
def test_every_leaf_is_closed_and_its_rows_have_multipliers(norm: Any) -> None:
    closed = 0
    for question, points in questions(norm):
        for claim in recorded(question, points):
            nodes, children = last_phase(claim.record)
            proven = cost(question, claim.lower)
            for name, node in nodes.items():
                if name in children:
                    continue
                assert node.bound >= proven * (1.0 - 1e-9) or math.isinf(proven), "an open leaf below the proven bound"
                if node.closed:
                    closed += 1
                    assert node.split == -1
                    assert all(row.multiplier >= 0.0 for row in node.rows)
                    assert node.rows or node.bound == math.inf or nearly(node.bound, node.cutoff)
    assert closed > 50


def cost(question: Question, distance: float) -> float:
    return distance**2 if question.distance.kind is Norm.L2 else distance


def nearly(a: float, b: float) -> bool:
    return a == pytest.approx(b, rel=1e-9)


@pytest.mark.long(keep=1)
@every_norm
def test_splits_cover_the_space_and_bounds_hold_at_its_points(norm: Any) -> None:
    """Follow random favourable points down the tree: each ends in a leaf that does not rule it out."""
    followed = 0
    for question, points in questions(norm):
        lowered = lower(question)
        rng = np.random.default_rng(0)
        c, d = question.conditions
        for i, claim in enumerate(recorded(question, points)):
            _, children = last_phase(claim.record)
            if claim.point is None:
                continue
            pool = np.concatenate([question.schema.sample(100, rng), near(question, points[i], claim.point, rng)])
            pool = [point for point in pool if question.allows(points[i], point) is None]
            for point in [*pool, claim.point]:
                scores = question.model.network.scores(question.schema.encode(point)) @ c.T - d
                if (scores < question.target.margin + 2.0 * question.error).any():
                    continue
                followed += 1
                price = cost(question, question.distance.between(question.schema, points[i], point))
                for leaf in reached(lowered, points[i], point, children):
                    assert price >= min(leaf.bound, leaf.cutoff) * (1.0 - 1e-9), "a leaf rules a favourable point out"
    assert followed > 100


def near(question: Question, factual: np.ndarray, best: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Points between the factual and the answer, and around the answer."""
    other = question.schema.sample(100, rng)
    share = np.where(rng.random((100, 1)) < 0.5, 0.0, rng.random((100, 1)) * 0.1)
    mixed = best + share * (other - best)
    kinds = [feature.kind for feature in question.schema.features]
    for g, kind in enumerate(kinds):
        if kind != "real":
            mixed[:, g] = np.where(rng.random(100) < 0.8, best[g], other[:, g])
    back = rng.random((100, 1)) < 0.5
    return np.where((rng.random(mixed.shape) < 0.3) & back, factual, mixed)


def reached(
    lowered: Lowered, factual: np.ndarray, point: np.ndarray, children: dict[int, list[NodeRecord]]
) -> list[NodeRecord]:
    """The leaves that hold a point; on the border of a split it is in both halves, and must be ruled out by none."""
    h, hidden = lowered.unrolled(point), []
    for weight, bias in lowered.layers[:-1]:
        z = weight @ h + bias
        hidden += z.tolist()
        h = np.maximum(z, 0.0)
    step = np.where(lowered.step > 0, lowered.step, 1.0)
    change = np.where(lowered.numeric, (point - factual) / step, point)
    leaves, open_nodes = [], list(children[-1])
    while open_nodes:
        node = open_nodes.pop()
        pair = children.get(node.name, [])
        if not pair:
            leaves.append(node)
            continue
        if node.split < 0:
            z = hidden[-2 - node.split]
            sides = (z >= -1e-9, z <= 1e-9)
        elif not lowered.numeric[node.split]:
            sides = (change[node.split] == node.value, change[node.split] != node.value)
        elif lowered.step[node.split] > 0:
            sides = (change[node.split] < node.value + 0.5, change[node.split] > node.value + 0.5)
        else:
            sides = (change[node.split] <= node.value, change[node.split] >= node.value)
        assert any(sides)
        if all(sides):  # rounding decides on which side the search saw it
            return []
        open_nodes.append(pair[0] if sides[0] else pair[1])
    return leaves


def test_records_come_with_answers_and_may_be_left_out() -> None:
    model, points, _ = load("credit")
    row = model.schema.row(points[0])
    with_records = Explainer(model).using(Search(records=True)).explain(row)
    without = Explainer(model).explain(row)
    assert isinstance(with_records, Nearest)
    assert isinstance(with_records.record, Record)
    assert without.record is None
    assert "record" not in with_records.to_dict()


@pytest.mark.long
def test_the_log_grows_as_long_as_it_must() -> None:
    """Thousands of nodes: every one has its record."""
    model, points, _ = load("credit", "2x50", "norm")
    question = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance("l2"))
    plain = Search(table_rows=0).prepare(question).solve(points, Limits())
    hardest = int(np.argmax([claim.nodes for claim in plain]))
    (claim,) = recorded(question, points[hardest : hardest + 1])
    assert claim.nodes > 1000
    assert [node.name for node in claim.record.nodes] == list(range(1, claim.nodes + 1))


@every_norm
def test_a_limit_leaves_a_partial_record(norm: Any) -> None:
    model, points, _ = load("credit")
    question = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm))
    for claim in Search(records=True).prepare(question).solve(points[:5], Limits(nodes=3)):
        assert 1 <= len(claim.record.nodes) <= claim.nodes
