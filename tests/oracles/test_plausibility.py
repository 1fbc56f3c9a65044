"""Plausibility learned from data: no answer outside it, and none nearer inside it, against loops over all rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ifonly import (
    Binary,
    Categorical,
    Distance,
    Explainer,
    Fixed,
    Integer,
    Limits,
    Network,
    NoneExists,
    Ordinal,
    Real,
    Schema,
    certify,
    datasets,
)
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.methods import Enumerate, Search
from ifonly.model import network_model
from ifonly.plausibility import LocalOutlierFactor, Mahalanobis, Near, pairs, support
from ifonly.problem import Query
from ifonly.problem.distance_rules import unrolled
from ifonly.problem.parts import UnrolledColumns
from ifonly.results import Method

SMALL = Schema([Integer("a", 0, 6), Ordinal("b", ["x", "y", "z"]), Categorical("c", ["u", "v", "w"]), Binary("d")])
ROWS = np.array(list(itertools.product(range(7), range(3), range(3), range(2))), dtype=np.float64)
METHODS = [pytest.param(Enumerate(), id="enumerate"), pytest.param(Search(), id="search")]


def problem(seed: int) -> tuple[Explainer, list[dict], dict]:
    """An explainer with a random network, some data, and a person from it who is decided 0."""
    rng = np.random.default_rng(seed)
    width = len(SMALL.columns)
    layers = [(rng.normal(size=(6, width)), rng.normal(size=6)), (rng.normal(size=(1, 6)), np.zeros(1))]
    scores = Network.of(layers).scores(SMALL.encode(ROWS))[:, 0]
    layers[-1] = (layers[-1][0], -np.quantile(scores, [0.8]))
    explainer = Explainer(network_model(Network.of(layers), SMALL))
    data = ROWS[rng.choice(len(ROWS), 25)]
    denied = ROWS[explainer.model.decide(explainer.model.scores(ROWS)) == 0]
    return explainer, [SMALL.row(point) for point in data], SMALL.row(denied[rng.integers(len(denied))])


def best(explainer: Explainer, person: dict, cost, allowed) -> float:
    """The least cost of the rows that are decided 1 and allowed."""
    before = SMALL.read(person)
    good = ROWS[explainer.model.decide(explainer.model.scores(ROWS)) == 1]
    return min((cost(before, row) for row in good if allowed(row)), default=math.inf)


def l1(before: np.ndarray, row: np.ndarray) -> float:
    return float(Distance().between(SMALL, before, row))


@pytest.mark.parametrize("method", METHODS)
def test_what_occurs(method: Method) -> None:
    bites = 0
    for seed in range(25):
        explainer, data, person = problem(seed)
        points = np.array([SMALL.read(row) for row in data])
        least = 1 + seed % 2

        def occurs(row, of, points=points, least=least):
            return (points[:, of] == row[of]).all(axis=1).sum() >= least

        def by_feature(row, points=points, occurs=occurs):
            return points[:, 0].min() <= row[0] <= points[:, 0].max() and all(occurs(row, [g]) for g in (1, 2, 3))

        def by_pair(row, points=points, occurs=occurs, by_feature=by_feature):
            with_ = (points[points[:, g] == row[g], 0] for g in (1, 2, 3))
            return (
                by_feature(row)
                and all(occurs(row, list(two)) for two in itertools.combinations((1, 2, 3), 2))
                and all(own.min() <= row[0] <= own.max() for own in with_)
            )

        for learned, allowed in (
            (support(SMALL, data, least=least), by_feature),
            (pairs(SMALL, data, least=least), by_pair),
        ):
            answer = explainer.using(method, reasons=False).explain(person, constraints=learned)
            nearest = best(explainer, person, l1, allowed)
            assert answer.upper == pytest.approx(nearest, abs=1e-9)
            assert isinstance(answer, NoneExists) == math.isinf(nearest)
            assert answer.counterfactual is None or allowed(SMALL.read(answer.counterfactual))
            bites += nearest > best(explainer, person, l1, lambda row: True) + 1e-9
    assert bites > 8


def test_parts_agree_with_the_row_check() -> None:
    _, data, _ = problem(3)
    columns = np.array([unrolled(SMALL, row) for row in ROWS])
    rules = [rule for rule in pairs(SMALL, data) if hasattr(rule, "parts")]
    assert len(rules) >= 4
    for rule in rules:
        rule.check(SMALL)
        held = np.all([part.value(columns) >= 0 for part in rule.parts(UnrolledColumns(SMALL))], axis=0)
        assert all(part.whole for part in rule.parts(UnrolledColumns(SMALL)))
        assert held.tolist() == [rule.allows_row(SMALL, row, row) for row in ROWS]
        assert rule.describe()


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", ["l1", "l0"])
def test_near_a_row_of_the_data(method: Method, norm: str) -> None:
    bites = 0
    for seed in range(12):
        explainer, data, person = problem(seed)
        points = np.array([SMALL.read(row) for row in data[:6]])
        for cap in (0.04, 0.25):
            near = Near.of(SMALL, data[:6], cap, norm)

            def allowed(row, points=points, cap=cap):
                return Distance(norm).between(SMALL, row, points).min() <= cap * (1 + 1e-12)

            answer = explainer.using(method, reasons=False).explain(person, constraints=[near])
            nearest = best(explainer, person, l1, allowed)
            assert answer.upper == pytest.approx(nearest, abs=1e-9)
            assert isinstance(answer, NoneExists) == math.isinf(nearest)
            bites += nearest > best(explainer, person, l1, lambda row: True) + 1e-9
    assert bites > 8


def embedded(points: np.ndarray) -> np.ndarray:
    """Columns of which the l1 distance is ours: numbers in ranges, levels, halves of 0/1 columns."""
    columns = [
        0.5 * np.eye(len(f.options))[points[:, g].astype(int)]
        if f.kind in ("binary", "categorical")
        else points[:, [g]] / (f.width if isinstance(f, Integer) else len(f.options))
        for g, f in enumerate(SMALL.features)
    ]
    return np.concatenate(columns, axis=1) / len(SMALL)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("method", METHODS)
def test_the_local_outlier_factor(method: Method) -> None:
    sklearn = pytest.importorskip("sklearn.neighbors")
    bites = 0
    for seed in range(8):
        explainer, data, person = problem(seed)
        points = np.unique([SMALL.read(row) for row in data[:10]], axis=0)
        away = np.array([Distance().between(SMALL, row, points) for row in ROWS])
        between = np.array([Distance().between(SMALL, row, points) for row in points])
        radius = np.where(np.eye(len(points)), np.inf, between).min(axis=1)
        ratio = np.where(away <= away.min(axis=1)[:, None] + 1e-9, away / radius, 0.0).max(axis=1)
        for cap in (1.0, 1.5, 2.2):
            fine = {tuple(row) for row in ROWS[ratio < cap - 1e-9]}
            limited = LocalOutlierFactor.of(SMALL, data[:10], cap)
            answer = explainer.using(method, reasons=False).explain(person, constraints=[limited])
            nearest = best(explainer, person, l1, lambda row, fine=fine: tuple(row) in fine)
            assert answer.upper == pytest.approx(nearest, abs=1e-9)
            assert isinstance(answer, NoneExists) == math.isinf(nearest)
            bites += nearest > best(explainer, person, l1, lambda row: True) + 1e-9
            if answer.counterfactual is not None:
                fitted = sklearn.LocalOutlierFactor(n_neighbors=1, metric="manhattan", novelty=True)
                fitted.fit(embedded(points))
                fitted.offset_ = -cap
                found = SMALL.read(answer.counterfactual)[None, :]
                assert fitted.predict(embedded(found))[0] == 1
                assert limited.factors(SMALL, found)[0] == pytest.approx(-fitted.score_samples(embedded(found))[0])
    assert bites > 5


def test_a_local_outlier_factor_needs_rows() -> None:
    for table, cap, words in (
        ([ROWS[0]], 1.5, "from 2 to"),
        (ROWS[:3], 0.5, "from 1 on"),
        (ROWS[:3], "x", "from 1 on"),
    ):
        with pytest.raises(QuestionError, match=words):
            LocalOutlierFactor.of(SMALL, [SMALL.row(row) for row in table], cap)
    with pytest.raises(QuestionError, match="cannot be asked exactly in l2"):
        LocalOutlierFactor.of(SMALL, [SMALL.row(row) for row in ROWS[:3]], 1.5, "l2")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("method", METHODS)
def test_the_correlated_cost(method: Method) -> None:
    differs = 0
    for seed in range(8):
        explainer, data, person = problem(seed)
        cost = Mahalanobis.of(SMALL, data)

        def length(before, row, cost=cost):
            return cost.between(SMALL.row(before), SMALL.row(row))

        least = best(explainer, person, length, lambda row: True)
        answer = explainer.using(method).explain_correlated(person, cost)
        assert answer.status == "nearest"
        assert answer.upper == pytest.approx(least, rel=2e-6)
        assert answer.upper == pytest.approx(cost.between(person, answer.counterfactual))
        cap = 1.2 * least
        capped = explainer.using(method, reasons=False).explain(person, constraints=[cost.within(cap)])
        before = SMALL.read(person)
        allowed = lambda row, cap=cap, length=length, before=before: length(before, row) <= cap  # noqa: E731
        assert capped.upper == pytest.approx(best(explainer, person, l1, allowed), abs=1e-9)
        plain = explainer.using(method).explain(person)
        differs += cost.between(person, plain.counterfactual) > least * 1.01
    assert differs > 2


def test_the_correlated_cost_under_constraints() -> None:
    met = 0
    for seed in range(6):
        explainer, data, person = problem(seed)
        cost, before = Mahalanobis.of(SMALL, data), SMALL.read(person)

        def length(_, row, cost=cost, person=person):
            return cost.between(person, SMALL.row(row))

        def allowed(row, before=before):
            return row[0] == before[0] and row[1] >= before[1]

        least = best(explainer, person, length, allowed)
        asked = Query(constraints=["a is fixed"])
        answer = explainer.explain_correlated(person, cost, asked, target=1, constraints=["b only goes up"])
        assert answer.upper == pytest.approx(least, rel=2e-6)
        met += answer.status == "nearest"
    assert met > 2


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["compas", "credit", "adult"])
def test_no_answer_is_outside_the_support(name: str) -> None:
    """500 people in all; the check reads the data, not the rules."""
    data, model = datasets.load(name, rules=False), datasets.network(name, rules=False)
    train, test = data.split()
    table = {column: values[train] for column, values in data.columns.items()}
    points = data.points()
    people = test[model.decide(model.scores(points[test])) == 0]
    people = people[np.unique(points[people], axis=0, return_index=True)[1]][:170]
    schema, explainer = model.schema, Explainer(model)
    least = 5
    learned = pairs(schema, table, least=least)
    answers = explainer.explain_many(
        [data.row(int(i)) for i in people], constraints=learned, limits=Limits(seconds=600.0)
    )
    counts = {}
    seen = points[train]
    for answer in answers:
        assert answer.status in ("nearest", "none exists"), answer
        if answer.counterfactual is None:
            continue
        row = schema.read(answer.counterfactual)
        for g, h in itertools.permutations(range(len(schema)), 2):
            if not hasattr(schema.features[g], "options"):
                continue
            key = (g, row[g], h, row[h] if hasattr(schema.features[h], "options") else None)
            if key not in counts:
                with_ = seen[seen[:, g] == row[g], h]
                counts[key] = (with_ == row[h]).sum() if key[3] is not None else (with_.min(), with_.max())
            if key[3] is not None:
                assert counts[key] >= least
            else:
                low, high = counts[key]
                slack = 1e-11 * (high - low + 1) if isinstance(schema.features[h], Real) else 0.0
                assert low - slack <= row[h] <= high + slack
    assert sum(answer.counterfactual is not None for answer in answers) > 50


def test_near_and_the_support_on_a_data_set() -> None:
    """With real numbers: the answer is near a row, no nearer answer is, and people can be asked about together."""
    data, model = datasets.load("credit", rules=False), datasets.network("credit", rules=False)
    train, test = data.split()
    points = data.points()
    table = {column: values[train[:300]] for column, values in data.columns.items()}
    near = Near.of(model.schema, table, 0.02)
    explainer = Explainer(model)
    people = [data.row(int(i)) for i in test[model.decide(model.scores(points[test])) == 0][:4]]
    told = []
    answers = explainer.using(listen=told.append).explain_many(people, constraints=[near, Fixed("isMale")])
    assert [event.finished for event in told] == [1, 2, 3, 4]
    bites = 0
    for person, answer in zip(people, answers, strict=True):
        assert answer.status == "nearest"
        row = model.schema.read(answer.counterfactual)
        away = near.distance.between(model.schema, row, near.points)
        assert away.min() <= 0.02 * (1 + 1e-12)
        free = explainer.explain(person, constraints=[Fixed("isMale")])
        bites += answer.lower > free.upper + 1e-6
        assert answer.upper >= free.lower
    assert bites


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda data: support(SMALL, data, quantiles=(0.9, 0.1)), "two numbers in [0, 1], the lower one first"),
        (lambda data: pairs(SMALL, data, least=0), "a whole number >= 1; it is 0"),
        (lambda data: support(SMALL, []), "learned from a table without rows"),
        (lambda data: Near.of(SMALL, data, 0.0), "must be a number > 0; it is 0.0"),
        (lambda data: Near.of(SMALL, data, 0.1, "l2"), "not piecewise linear"),
        (lambda data: Mahalanobis.of(SMALL, data, ridge=0), "The ridge must be a number > 0"),
        (lambda data: Mahalanobis.of(SMALL, data).within(-1), "The correlated change must be a number > 0"),
    ],
)
def test_what_cannot_be_learned_is_said(make, words: str) -> None:
    with pytest.raises(QuestionError) as error:
        make(problem(0)[1])
    assert words in str(error.value)


def test_conditions_and_the_fewest_changes_do_not_mix() -> None:
    explainer, data, person = problem(0)
    with pytest.raises(QuestionError, match="fewest changes"):
        explainer.explain(person, Query(fewest_first=True), constraints=[Near.of(SMALL, data, 0.1)])


def test_a_certificate_cannot_state_a_condition() -> None:
    data = datasets.load("compas", rules=False)
    explainer = Explainer(datasets.network("compas", rules=False), constraints=[Near(data.points()[:50], 0.3)])
    with pytest.raises(UnsupportedQuestion, match="a certificate cannot state it"):
        certify(explainer, data.row(1))
