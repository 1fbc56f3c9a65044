"""Foreign models about a few rows: one thread, the same scores, and the user's own object as it was."""

from __future__ import annotations

import json
import pickle
from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from ifonly import Explainer, Real, Schema, import_model
from ifonly.model.importers.one_thread import FEW_ROWS, on_one_thread, openmp_on_one_thread

SCHEMA = Schema([Real("a", 0, 10), Real("b", 0, 10), Real("c", 0, 10)])
POINTS = SCHEMA.sample(400, np.random.default_rng(0))
LABELS = (POINTS[:, 0] + POINTS[:, 1] > 9).astype(int)
FOREST = RandomForestClassifier(10, max_depth=3, random_state=0, n_jobs=2)
MODELS: dict[str, Any] = {
    "forest": FOREST,
    "xgboost": xgboost.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=2),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=2),
    "catboost": catboost.CatBoostClassifier(iterations=10, verbose=0, allow_writing_files=False, thread_count=2),
    "histograms": HistGradientBoostingClassifier(max_iter=10),
    "pipeline": make_pipeline(StandardScaler(), FOREST),
    "voting": VotingClassifier([("a", FOREST), ("b", FOREST)], voting="soft", n_jobs=2),
    "bagging": BaggingClassifier(FOREST, 3, n_jobs=2, random_state=0),
    "grid": GridSearchCV(FOREST, {"max_depth": [2]}, cv=2),
}
SUMMED_IN_NO_ORDER = ("forest", "pipeline", "voting", "bagging", "grid")


@pytest.fixture(scope="module", params=list(MODELS))
def fitted(request: pytest.FixtureRequest) -> tuple[str, Any]:
    return request.param, MODELS[request.param].fit(POINTS, LABELS)


@pytest.mark.long(keep=2)
def test_scores_of_few_rows_are_those_of_many(fitted: tuple[str, Any]) -> None:
    name, model = fitted
    imported = import_model(model, SCHEMA)
    many, few = imported.scores(POINTS), np.concatenate([imported.scores(row[None, :]) for row in POINTS[:60]])
    if name in SUMMED_IN_NO_ORDER:
        np.testing.assert_allclose(few, many[:60], rtol=0.0, atol=1e-15)
    else:
        assert (few == many[:60]).all()


@pytest.mark.long(keep=2)
def test_an_explainer_of_it_goes_to_another_process(fitted: tuple[str, Any]) -> None:
    explainer = Explainer(fitted[1], schema=SCHEMA)
    first = explainer.explain(POINTS[0])
    again = pickle.loads(pickle.dumps(explainer)).explain(POINTS[0])
    assert (first.status, first.upper, first.score_before) == (again.status, again.upper, again.score_before)


def test_the_own_model_is_asked_twice_about_one_row_each(
    fitted: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, asked = Explainer(fitted[1], schema=SCHEMA), []
    original = type(explainer.model.original)
    call = original.__call__
    monkeypatch.setattr(original, "__call__", lambda self, points: asked.append(len(points)) or call(self, points))
    assert explainer.explain(POINTS[1]).counterfactual is not None
    assert asked == [1, 1]


def threads_of(model: Any) -> list[Any]:
    """The numbers of threads that a model and its members are set to."""
    for inner in ("best_estimator_", "estimators_"):
        members = getattr(model, inner, None)
        if members is not None and not isinstance(model, RandomForestClassifier):
            each = members if isinstance(members, list) else [members]
            return [getattr(model, "n_jobs", None), *(one for member in each for one in threads_of(member))]
    if hasattr(model, "steps"):
        return threads_of(model.steps[-1][1])
    if hasattr(model, "get_booster"):
        return [json.loads(model.get_booster().save_config())["learner"]["generic_param"]["nthread"]]
    return [model.n_jobs]


@pytest.mark.parametrize("name", ["forest", "xgboost", "pipeline", "voting", "bagging", "grid"])
def test_a_copy_has_one_thread_and_the_own_object_as_many_as_before(name: str) -> None:
    model = MODELS[name].fit(POINTS, LABELS)
    before = threads_of(model)
    assert {str(count) for count in threads_of(on_one_thread(model))} <= {"1", "None"}
    assert threads_of(model) == before
    assert "2" in map(str, before)


@pytest.mark.parametrize(("name", "option"), [("lightgbm", "num_threads"), ("catboost", "thread_count")])
def test_options_say_one_thread_for_few_rows_only(name: str, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS[name].fit(POINTS, LABELS)
    imported, seen = import_model(model, SCHEMA), []
    own = type(model).predict
    monkeypatch.setattr(type(model), "predict", lambda self, *a, **k: seen.append(k.get(option)) or own(self, *a, **k))
    imported.scores(POINTS[:FEW_ROWS])
    assert set(seen) == {1}
    seen.clear()
    imported.scores(POINTS[: FEW_ROWS + 1])
    assert seen[0] is None


def openmp_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"}


def test_openmp_has_one_thread_while_histograms_are_asked() -> None:
    model = MODELS["histograms"].fit(POINTS, LABELS)
    before = openmp_threads()
    with openmp_on_one_thread(make_pipeline(StandardScaler(), model)):
        assert openmp_threads() == {1}
    assert openmp_threads() == before
    with openmp_on_one_thread(FOREST):
        assert openmp_threads() == before


def test_a_booster_stays_as_it_is() -> None:
    booster = MODELS["xgboost"].fit(POINTS, LABELS).get_booster()
    before = booster.save_config()
    imported = import_model(booster, SCHEMA)
    few = imported.scores(POINTS[:3])
    assert booster.save_config() == before
    assert (few == imported.scores(POINTS)[:3]).all()
