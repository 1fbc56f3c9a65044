"""Answers about trees: the enumerator over the imported function against the library's own decisions on every row."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from interpret.glassbox import ExplainableBoostingClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from ifonly import (
    Binary,
    Categorical,
    Distance,
    Explainer,
    Integer,
    Nearest,
    NoneExists,
    Ordinal,
    ProbabilityTarget,
    Schema,
    import_model,
)
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import Enumerate, Mace, MipExp, MipObj, MipSat, Search
from ifonly.results import Method

SCHEMA = Schema(
    [Integer("n", 0, 9), Binary("b"), Categorical("c", ["x", "y", "z"]), Ordinal("o", ["low", "mid", "high"])]
)
EVERY = np.array(list(itertools.product(range(10), range(2), range(3), range(3))), dtype=float)
ENCODED = SCHEMA.encode(EVERY)
MAKERS = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=5, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(7, max_depth=4, random_state=seed),
    "extra trees": lambda seed: ExtraTreesClassifier(6, max_depth=4, random_state=seed),
    "bagging": lambda seed: BaggingClassifier(n_estimators=5, max_features=0.6, random_state=seed),
    "gradient boosting": lambda seed: GradientBoostingClassifier(n_estimators=8, random_state=seed),
    "histograms": lambda seed: HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=3),
    "ada boost": lambda seed: AdaBoostClassifier(n_estimators=8, random_state=seed),
    "xgboost": lambda seed: xgboost.XGBClassifier(n_estimators=8, max_depth=3, random_state=seed, n_jobs=1),
    "lightgbm": lambda seed: lightgbm.LGBMClassifier(n_estimators=8, min_child_samples=3, verbose=-1, n_jobs=1),
    "ebm": lambda seed: ExplainableBoostingClassifier(outer_bags=2, max_rounds=30, interactions=0, n_jobs=1),
    "ebm, pairs": lambda seed: ExplainableBoostingClassifier(outer_bags=2, max_rounds=30, interactions=3, n_jobs=1),
    "bins": lambda seed: make_pipeline(
        make_column_transformer((KBinsDiscretizer(2 + seed, strategy="uniform"), [0]), remainder="passthrough"),
        LogisticRegression(),
    ),
    "catboost": lambda seed: catboost.CatBoostClassifier(
        iterations=8, depth=4, verbose=0, allow_writing_files=False, random_seed=seed, thread_count=1
    ),
}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Rows are asked one by one here: threads that wait for each other would take most of the time."""
    with threadpool_limits(1):
        yield


def trained(maker: Any, seed: int, classes: int) -> Any:
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(EVERY), 120)
    signal = EVERY[rows] @ rng.normal(size=4) + rng.normal(size=120)
    labels = np.searchsorted(np.quantile(signal, np.arange(1, classes) / classes), signal)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="For multiclass")  # pairs are not graphed
        return maker(seed).fit(ENCODED[rows], labels)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", MAKERS)
def test_nearest_rows_are_those_of_the_library(name: str) -> None:
    """200 questions: five models (two of them with three classes), ten people, four norms."""
    for seed in range(5):
        estimator = trained(MAKERS[name], seed, classes=3 if seed > 2 else 2)
        model = import_model(estimator, SCHEMA)
        scores, decided = model.scores(EVERY), np.ravel(estimator.predict(ENCODED))
        score_margin = np.sort(scores, axis=1)
        sure = (np.abs(scores[:, 0]) if scores.shape[1] == 1 else score_margin[:, -1] - score_margin[:, -2]) >= 1e-6
        explainer = Explainer(model).using(Enumerate())
        for person, norm in itertools.product(range(seed, len(EVERY), 18), ("l0", "l1", "l2", "linf")):
            wanted = (decided[person] + 1) % len(model.classes)
            there = EVERY[(decided == wanted) & sure]
            answer = explainer.explain(SCHEMA.row(EVERY[person]), target=int(wanted), distance=norm)
            if not len(there):
                assert isinstance(answer, NoneExists)
                continue
            assert isinstance(answer, Nearest)
            nearest = Distance(norm).between(SCHEMA, EVERY[person], there).min()
            assert answer.upper == pytest.approx(nearest, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_a_forest_can_be_asked_for(classes: int) -> None:
    estimator = trained(MAKERS["forest"], 1, classes)
    explainer = Explainer(import_model(estimator, SCHEMA)).using(Enumerate())
    own = estimator.predict_proba(ENCODED)
    for person, wanted in itertools.product(range(0, len(EVERY), 29), (0.4, 0.7)):
        answer = explainer.explain(SCHEMA.row(EVERY[person]), target=ProbabilityTarget(1, at_least=wanted))
        there = EVERY[own[:, 1] >= wanted + 1e-6]
        assert isinstance(answer, Nearest) and len(there)
        if own[person, 1] < wanted:
            nearest = Distance("l1").between(SCHEMA, EVERY[person], there).min()
            assert answer.upper == pytest.approx(nearest, abs=1e-12)


METHODS = [Search(), MipObj(), MipExp(), MipSat(), Mace()]


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("name", MAKERS)
def test_the_program_finds_what_the_enumerator_finds(name: str) -> None:
    """Two and three classes, four norms; several hundred leaves in some."""
    for classes in (2, 3):
        estimator = trained(MAKERS[name], classes, classes)
        model = import_model(estimator, SCHEMA)
        for person, norm in zip(range(classes, len(EVERY), 45), ("l0", "l1", "l2", "linf"), strict=True):
            row, wanted = SCHEMA.row(EVERY[person]), int((np.ravel(estimator.predict(ENCODED))[person] + 1) % classes)
            answer, every = (
                Explainer(model).using(how).explain(row, target=wanted, distance=norm)
                for how in (MipObj(), Enumerate())
            )
            assert answer.status == every.status
            assert answer.upper == pytest.approx(every.upper, abs=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_takes_a_forest(method: Method) -> None:
    estimator = trained(MAKERS["forest"], 0, 2)
    explainer = Explainer(import_model(estimator, SCHEMA))
    row = SCHEMA.row(EVERY[0])
    wanted = 1 - int(estimator.predict(ENCODED[:1])[0])
    answer, every = (explainer.using(how).explain(row, target=wanted) for how in (method, Enumerate()))
    assert answer.status == "nearest" and answer.method == method.name
    assert answer.upper == pytest.approx(every.upper, abs=1e-9)


@pytest.mark.parametrize("method", METHODS[1:], ids=lambda method: method.name)
def test_a_method_that_cannot_take_so_many_trees_names_one_that_can(
    method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = Explainer(import_model(trained(MAKERS["forest"], 0, 2), SCHEMA))
    monkeypatch.setattr("ifonly.solvers.common.trees.LARGEST", 3)
    said = f"The method '{method.name}' takes trees with at most 3 splits in all, but these have [0-9]+; use search or"
    with pytest.raises(UnsupportedQuestion, match=said):
        explainer.using(method).explain(SCHEMA.row(EVERY[0]))
    monkeypatch.undo()
    monkeypatch.setattr("ifonly.solvers.common.trees.DEEPEST", 1)
    with pytest.raises(UnsupportedQuestion, match="takes trees of depth 1 at most, but one has [0-9]+; use search or"):
        explainer.using(method).explain(SCHEMA.row(EVERY[0]))
