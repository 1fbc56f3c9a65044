"""Scores that sit on the margin over a whole region, integers with very many values, few rows and many ReLUs."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from cases import load
from certificate.far_problems import far_problem
from ifonly import Distance, Explainer, Integer, Limits, Network, Real, Rule, Schema
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import Enumerate, Search
from ifonly.model import network_model
from ifonly.problem import ClassTarget, Question
from ifonly.results import Progress, Stop, StoppedBy
from ifonly.schema import Binary
from ifonly.solvers.search.table import rows_in_chunks


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("seed", [70, 116, 197, 234, 239, 243, 269])
def test_a_region_on_the_margin_is_not_set_apart_row_by_row(seed):
    question, point = far_problem(seed)
    claim = Search(table_rows=0).prepare(question).solve(point[None, :], Limits(nodes=5_000))[0]
    assert claim.stop is None


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_dead_and_cancelling_neurons(norm):
    """relu(x) - relu(x) and a dead neuron: the score is 0 everywhere, which is the margin itself."""
    schema = Schema([Integer("a", 0, 1_000_000), Integer("b", -500_000, 500_000), Real("r", 0.0, 1.0)])
    weight = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.1, 0.3, 0.0], [0.0, 0.0, -1.0]]
    network = Network.of([(weight, [0.1, 0.1, -1e7, -0.5]), ([[0.7, -0.7, 5.0, 3.0]], [0.0])])
    model = network_model(network, schema)
    question = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm))
    claim = Search().prepare(question).solve(np.array([[5.0, 3.0, 0.5]]), Limits(nodes=2_000))[0]
    assert claim.stop is None and claim.point is None and claim.lower < math.inf


@pytest.mark.parametrize(
    ("weight", "bias", "row", "distance", "nodes"),
    [
        ([3.0, 3.0, -1.0], -8875.0, [8987.0, 3259.0, 8230.0], ("l0", 1 / 3), 100),
        ([3.0, 3.0, -1.0], -8875.0, [8987.0, 3259.0, 8230.0], ("l1", 6545 / 30_000), 60_000),
        ([3.0, 3.0, -1.0], -8875.0, [8987.0, 3259.0, 8230.0], ("l2", math.hypot(3100, 3100, 1033) / 3**0.5 / 1e4), 10),
        ([3.0, 3.0, -1.0], -8875.0, [8987.0, 3259.0, 8230.0], ("linf", 2978 / 30_000), 10),
        ([2.0, 2.0, 3.0], -973.0, [3464.0, 1041.0, 9056.0], ("l2", math.hypot(3464, 1041, 8732) / 3**0.5 / 1e4), 100),
    ],
)
def test_no_row_of_a_half_space_on_the_margin_can_be_returned(weight, bias, row, distance, nodes):
    """-relu(3a + 3b - c - 8875) is at best 0, the margin, which some rounding misses: only a distance can be proven, and
    the rows on the edge of the half space are many."""
    norm, nearest = distance
    schema = Schema([Integer(name, 0, 10_000) for name in "abc"])
    model = network_model(Network.of([([weight], [bias]), ([[-1.0]], [0.0])]), schema)
    question = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm))
    claim = Search().prepare(question).solve(np.array([row]), Limits(nodes=nodes))[0]
    assert claim.stop is None and claim.point is None
    assert claim.lower == pytest.approx(nearest, rel=1e-6)


@pytest.mark.parametrize("top", [10**8, 10**9, 10**15])
def test_integers_with_very_many_values(top):
    schema = Schema([Integer("income", 0, top)])
    explainer = Explainer(network_model(Network.of([([[1.0 / top]], [-0.5])]), schema))
    tracemalloc.start()
    try:
        answer = explainer.explain({"income": 3}, target=ClassTarget(1, margin=0.0))
        with pytest.raises(UnsupportedQuestion, match="use another method"):
            explainer.using(Enumerate()).explain({"income": 3})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.upper == pytest.approx(0.5, rel=1e-6)
    assert peak < 100 * 2**20


def test_a_fixed_integer_with_very_many_values_is_one_value():
    schema = Schema([Integer("income", 0, 10**15), Binary("b")])
    explainer = Explainer(network_model(Network.of([([[0.0, 1.0]], [-0.5])]), schema))
    answer = explainer.using(Enumerate()).explain({"income": 3, "b": False}, constraints=["income is fixed"])
    assert answer.upper == pytest.approx(0.5)


def test_rows_in_chunks():
    schema = Schema([Integer("a", 3, 9, 3), Binary("b")])
    rows = np.concatenate(list(rows_in_chunks(schema, [3, 2])))
    assert rows.tolist() == [[3, 0], [3, 1], [6, 0], [6, 1], [9, 0], [9, 1]]


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_small_spaces_under_rules_are_tabulated(norm):
    """The same answers as by search and by looking at every row."""
    rng = np.random.default_rng(0)
    schema = Schema([Integer("a", 0, 6), Integer("b", 0, 6), Binary("c")])
    rules = [Rule("a + b <= 8"), Rule("if c then a >= 2")]
    for _ in range(20):
        network = Network.of([(rng.normal(size=(6, 3)), rng.normal(size=6)), (rng.normal(size=(1, 6)), [0.0])])
        model, distance = network_model(network, schema), Distance(norm)
        question = Question(model=model, target=ClassTarget(1, margin=0.0), distance=distance, constraints=rules)
        points = schema.sample(5, rng)
        prepared = Search().prepare(question)
        assert prepared.table is not None and prepared.table.judged
        tabulated, searched, seen = (
            method.prepare(question).solve(points, Limits()) for method in (Search(), Search(table_rows=0), Enumerate())
        )
        for one, two, three in zip(tabulated, searched, seen, strict=True):
            assert one.lower == pytest.approx(three.lower, rel=1e-9)
            assert one.lower == pytest.approx(two.lower, rel=1e-6, abs=1e-9)
            assert (one.point is None) == (three.point is None)


def test_few_rows_and_many_relus_are_split_by_their_rows():
    """Twenty rows: the search needs at most some nodes per row, however many ReLUs bend among them."""
    rng = np.random.default_rng(3)
    schema = Schema([Integer("a", 0, 4), Binary("b"), Binary("c")])
    for _ in range(5):
        layers = [(rng.normal(size=(30, 3)) * 5.0, rng.normal(size=30) * 5.0)]
        layers += [(rng.normal(size=(30, 30)), rng.normal(size=30)) for _ in range(2)]
        layers += [(rng.normal(size=(1, 30)), [0.0])]
        scores = Network.of(layers).scores(schema.encode(schema.sample(200, rng)))
        layers[-1] = layers[-1][0], [-float(scores.max())]
        question = Question(model=network_model(Network.of(layers), schema), target=ClassTarget(1, margin=0.0))
        for method in (Search(records=True), Search(table_rows=0)):
            claim = method.prepare(question).solve(schema.sample(1, rng), Limits(nodes=20_000))[0]
            assert claim.stop is None


def test_records_count_as_memory():
    model, points, _ = load("credit")
    question = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance("l2"))
    limits = Limits(memory_bytes=2 * 2**20)
    solver = Search(records=True).prepare(question)
    stopped = 0
    for point in points:
        claim = solver.solve(point[None, :], limits)[0]
        stopped += claim.stop == Stop(StoppedBy.MEMORY, 2 << 20)
        assert claim.record.log.nbytes <= limits.memory_bytes
    assert stopped


def test_many_people_are_packed_in_parts():
    """The arrays of all people together would take gigabytes; those of a part do not. Answers come in order."""
    rng = np.random.default_rng(1)
    schema = Schema([Real(f"x{i}", 0.0, 1.0) for i in range(3)])
    weight = rng.normal(size=(400, 3))
    network = Network.of([(weight, -weight.sum(axis=1) / 2.0), (np.eye(1, 400), [-0.1])])
    question = Question(model=network_model(network, schema), target=ClassTarget(1, margin=0.0))
    points = schema.sample(8_000, rng)
    prepared = Search().prepare(question)
    told: list[Progress] = []
    tracemalloc.start()
    try:
        claims = prepared.solve(points, Limits(), listen=told.append)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(claims) == len(points) and peak < 80 * 2**20
    assert told[-1].finished == len(points) and [p.finished for p in told] == sorted(p.finished for p in told)
    for i in (0, 3_001, 7_999):
        alone = prepared.solve(points[i : i + 1], Limits())[0]
        assert alone.lower == claims[i].lower and np.array_equal(alone.point, claims[i].point)


def test_a_large_network_gives_some_row_early():
    rng = np.random.default_rng(0)
    sizes = [50, *[200] * 5, 1]
    layers = [
        (rng.normal(size=(b, a)) * math.sqrt(2.0 / a), np.zeros(b)) for a, b in zip(sizes, sizes[1:], strict=False)
    ]
    schema = Schema([Real(f"x{i}", -1.0, 1.0) for i in range(50)])
    question = Question(model=network_model(Network.of(layers), schema), target=ClassTarget(1, margin=0.0))
    scores = question.model.network.scores(points := schema.sample(50, rng))[:, 0]
    person = points[scores < 0.0][:1]
    told: list[Progress] = []
    claim = Search().prepare(question).solve(person, Limits(nodes=1), listen=told.append)[0]
    assert claim.stop is not None and claim.point is not None
    assert question.model.network.scores(claim.point[None, :])[0, 0] > 0.0
    assert told and told[0].nodes == 0 and math.isfinite(told[0].upper)
