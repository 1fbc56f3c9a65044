"""Robustness to removed trees, against brute force: every row, every set of trees, by the ensembles that are left."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from ifonly import (
    Accepted,
    Binary,
    Categorical,
    Distance,
    Explainer,
    Integer,
    NoneExists,
    Query,
    RobustToTrees,
    Schema,
    import_model,
)
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.model import Network, network_model

ensembles = pytest.importorskip("sklearn.ensemble")

SCHEMA = Schema([Integer("a", 0, 6), Integer("b", 0, 4), Categorical("c", ["u", "v", "w"]), Binary("d")])
ROWS = np.array(list(itertools.product(range(7), range(5), range(3), range(2))), dtype=np.float64)


def problem(seed: int):
    """A fitted ensemble, and which rows each set of removed trees leaves accepted, by scikit-learn's own parts."""
    rng = np.random.default_rng(seed)
    x, rows = SCHEMA.encode(ROWS), rng.choice(len(ROWS), 60)
    values = x @ rng.normal(size=x.shape[1]) + rng.normal(size=len(x))
    labels = (values > np.quantile(values, 0.6)).astype(int)
    if seed % 2:
        made = ensembles.GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=seed)
        made.fit(x[rows], labels[rows])
        start = made.decision_function(x) - made.learning_rate * sum(tree.predict(x) for tree in made.estimators_[:, 0])
        added = made.learning_rate * np.array([tree.predict(x) for tree in made.estimators_[:, 0]])

        def score(gone):
            return start + np.delete(added, gone, axis=0).sum(axis=0)

    else:
        made = ensembles.RandomForestClassifier(n_estimators=7, max_depth=3, random_state=seed).fit(
            x[rows], labels[rows]
        )
        shares = np.array([tree.predict_proba(x)[:, 1] for tree in made.estimators_])

        def score(gone):
            return 2.0 * np.delete(shares, gone, axis=0).mean(axis=0) - 1.0

    return made, score


@pytest.mark.parametrize("seed", range(12))
def test_the_nearest_row_that_no_lost_trees_refuse(seed: int) -> None:
    made, score = problem(seed)
    model, most = import_model(made, SCHEMA), 1 + seed % 3
    trees = len(made.estimators_)
    sets = [gone for k in range(most + 1) for gone in itertools.combinations(range(trees), k)]
    least = np.min([score(list(gone)) for gone in sets], axis=0)
    explainer = Explainer(model).using(reasons=False)
    for person in ROWS[np.random.default_rng(seed).choice(np.flatnonzero(score([]) < -1e-6), 3)]:
        robust = RobustToTrees(most, of=Accepted(by=model, target=1))
        answer = explainer.explain(SCHEMA.row(person), target=1, constraints=[robust])
        away = Distance().between(SCHEMA, person, ROWS)
        nearest = away[least >= 1e-6].min(initial=math.inf)
        assert answer.upper == pytest.approx(nearest, abs=1e-9)
        assert isinstance(answer, NoneExists) == math.isinf(nearest)
        if answer.counterfactual is None:
            continue
        found = int(np.flatnonzero((SCHEMA.read(answer.counterfactual) == ROWS).all(axis=1))[0])
        assert least[found] > 0.0
        says = explainer.robustness(answer)
        assert says.removals >= most and says.trees == trees
        if says.deciding is not None:
            assert len(says.deciding) == says.removals + 1 and score(list(says.deciding))[found] <= 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_trees_with_less_weight(seed: int) -> None:
    """What no removal of at most so many trees refuses, no smaller weights of as many trees refuse."""
    made, _ = problem(seed)
    model, most, rng = import_model(made, SCHEMA), 1 + seed % 3, np.random.default_rng(seed)
    x, trees = SCHEMA.encode(ROWS), np.array(made.estimators_).ravel()
    if seed % 2:
        added = made.learning_rate * np.array([tree.predict(x) for tree in trees])
        rest = made.decision_function(x) - added.sum(axis=0)
    else:  # the sign of a weighted mean is that of the weighted sum
        added, rest = 2.0 * np.array([tree.predict_proba(x)[:, 1] for tree in trees]) - 1.0, np.zeros(len(x))
    person = ROWS[np.flatnonzero(rest + added.sum(axis=0) < -1e-6)[0]]
    robust = RobustToTrees(most, of=Accepted(by=model, target=1))
    answer = Explainer(model).using(reasons=False).explain(SCHEMA.row(person), target=1, constraints=[robust])
    assert answer.counterfactual is not None
    found = int(np.flatnonzero((SCHEMA.read(answer.counterfactual) == ROWS).all(axis=1))[0])
    for _ in range(500):
        weights = np.ones(len(trees))
        weights[rng.choice(len(trees), most, replace=False)] = rng.random(most)
        assert rest[found] + weights @ added[:, found] > 0.0


def test_lost_trees_in_words_and_json() -> None:
    made, _ = problem(0)
    model = import_model(made, SCHEMA)
    check = Accepted(by=model, target=1, name="second opinion")
    explainer, person = Explainer(model).knowing(check).using(reasons=False), SCHEMA.row(ROWS[0])
    for most in (1, 2):
        asked = RobustToTrees(most, of=check)
        expected = explainer.explain(person, target=1, constraints=[asked])
        assert explainer.explain(person, target=1, constraints=[asked.describe()]).upper == expected.upper
        query = Query(target=1, constraints=[asked])
        data = json.loads(query.to_json())
        accepted = {"by": check.fingerprint, "kind": "accepted", "name": "second opinion", "target": {"class": 1}}
        (written,) = data["constraints"]
        assert written["kind"] == "robust_to_trees" and written["most"] == most
        assert {**accepted, **written["of"]} == written["of"]
        assert explainer.explain(person, Query.from_dict(data)).upper == expected.upper
        assert RobustToTrees(most, of=check) == asked != RobustToTrees(most + 1, of=check)
    for words, message in (
        ("second opinon accepts without any tree", "did you mean 'second opinion'"),
        ("second opinion accepts without any 0 trees", "whole number >= 1"),
    ):
        with pytest.raises(QuestionError, match=message):
            explainer.explain(person, target=1, constraints=[words])
    with pytest.raises(QuestionError, match="No model called 'second opinion'"):
        Explainer(model).explain(person, target=1, constraints=["second opinion accepts without any 2 trees"])
    with pytest.raises(QuestionError, match="needs the entry 'of'"):
        Query.from_dict({"target": 1, "constraints": [{"kind": "robust_to_trees", "most": 1}]})


def test_what_has_no_trees_to_lose() -> None:
    made, _ = problem(0)
    model = import_model(made, SCHEMA)
    network = network_model(Network.of([(np.ones((1, len(SCHEMA.columns))), np.zeros(1))]), SCHEMA)
    explainer, person = Explainer(model), SCHEMA.row(ROWS[0])
    for most, of, words in (
        (7, Accepted(by=model, target=1), "has 7 trees, so at most 6"),
        (1, Accepted(by=network, target=1), "RobustToWeights"),
    ):
        with pytest.raises((QuestionError, UnsupportedQuestion), match=words):
            explainer.explain(person, target=1, constraints=[RobustToTrees(most, of=of)])
    for wrong in (0, "2", 1.5):
        with pytest.raises(QuestionError, match="whole number >= 1"):
            RobustToTrees(wrong, of=Accepted(by=model, target=1))
    with pytest.raises(QuestionError, match="of=Accepted"):
        RobustToTrees(1, of=model)
    assert (
        RobustToTrees(2, of=Accepted(by=model, target=1, name="forest")).describe()
        == "forest accepts without any 2 trees"
    )
