"""XGBoost, LightGBM and CatBoost: the imported function is the library's, bit for bit, also at every threshold."""

from __future__ import annotations

import pickle
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from ifonly import Binary, Categorical, Integer, Model, Real, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel
from model.forests import SCHEMA, everywhere, points_and_labels

QUIET_LIGHT = {"n_estimators": 20, "verbose": -1, "min_child_samples": 5, "n_jobs": 1}
QUIET_CAT = {"iterations": 20, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
RAW = Schema(
    [
        Real("rate", -3.0, 3.0),
        Categorical("town", ["x", "y", "z", "w"]),
        Integer("age", 0, 60),
        Categorical("code", [10, 20, 30]),
        Binary("owner", ("no", "yes")),
    ]
)
WITH_MISSING = Schema([RAW["rate"], Categorical("town", ["x", "y", "z", None]), *RAW.features[2:]])


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Small models: threads that wait for each other would take most of the time."""
    with threadpool_limits(1):
        yield


def margins(model: Any, table: Any) -> Any:
    """What the library itself gives as scores."""
    if isinstance(model, xgboost.Booster):
        return model.predict(xgboost.DMatrix(table, enable_categorical=True), output_margin=True)
    options = {"xgboost": {"output_margin": True}, "lightgbm": {"raw_score": True}}
    by_default = {"prediction_type": "RawFormulaVal"}
    return model.predict(table, **options.get(type(model).__module__.partition(".")[0], by_default))


def agrees(imported: Model, original: Any, table_of: Any) -> None:
    rows = everywhere(imported)
    theirs = np.asarray(margins(original, table_of(rows)), dtype=np.float64).reshape(len(rows), -1)
    assert np.array_equal(imported.exact_scores(rows), theirs)
    alone = [np.ravel(margins(original, table_of(rows[i : i + 1]))) for i in range(0, len(rows), len(rows) // 20)]
    assert np.array_equal(np.array(alone), theirs[:: len(rows) // 20])
    assert imported.deviation == 0.0
    assert imported.function.ensemble.summation.ordered
    again = pickle.loads(pickle.dumps(imported))
    assert np.array_equal(again.scores(rows[:20]), imported.scores(rows[:20]))
    if hasattr(original, "classes_"):
        decided = np.ravel(original.predict(table_of(rows))).tolist()
        assert [original.classes_[k] for k in imported.decide(imported.scores(rows))] == decided


def estimators() -> Any:
    for boosting in ("gbdt", "dart"):
        yield lightgbm.LGBMClassifier(boosting_type=boosting, **QUIET_LIGHT)
    yield lightgbm.LGBMClassifier(**{**QUIET_LIGHT, "n_estimators": 3}, num_leaves=2)
    yield xgboost.XGBClassifier(n_jobs=1, n_estimators=20, max_depth=4)
    yield xgboost.XGBClassifier(n_jobs=1, n_estimators=20, max_depth=3, base_score=0.3)
    yield xgboost.XGBClassifier(n_jobs=1, n_estimators=20, max_depth=3, multi_strategy="multi_output_tree")
    yield xgboost.XGBRFClassifier(n_jobs=1, n_estimators=20, max_depth=4)
    for policy in ("SymmetricTree", "Lossguide", "Depthwise"):
        yield catboost.CatBoostClassifier(grow_policy=policy, **QUIET_CAT)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", list(estimators()), ids=lambda e: type(e).__name__)
def test_classifiers(estimator: Any, classes: int) -> None:
    points, labels = points_and_labels(classes=classes)
    estimator.fit(SCHEMA.encode(points), labels)
    imported = import_model(estimator, SCHEMA)
    agrees(imported, estimator, SCHEMA.encode)
    rows = everywhere(imported)
    theirs = estimator.predict_proba(SCHEMA.encode(rows))
    share = np.exp(imported.scores(rows))
    by_softmax = np.allclose(share / share.sum(axis=1, keepdims=True), theirs, rtol=0.0, atol=1e-6)
    assert (imported.probabilities is not None) == (classes == 2 or by_softmax)
    if imported.probabilities is not None:
        assert np.array_equal(imported.probabilities(rows), theirs)


@pytest.mark.parametrize(
    "estimator",
    [
        xgboost.XGBRegressor(n_jobs=1, n_estimators=20),
        lightgbm.LGBMRegressor(**QUIET_LIGHT),
        lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, **QUIET_LIGHT),
        catboost.CatBoostRegressor(**QUIET_CAT),
    ],
    ids=lambda e: type(e).__name__,
)
def test_regressions(estimator: Any) -> None:
    points, _ = points_and_labels()
    estimator.fit(SCHEMA.encode(points), points[:, 0] + points[:, 5])
    imported = import_model(estimator, SCHEMA)
    rows = everywhere(imported)
    assert np.array_equal(imported.exact_scores(rows)[:, 0], estimator.predict(SCHEMA.encode(rows)))
    assert not imported.is_classifier and not imported.error.any()


def test_dart_of_xgboost_is_within_its_bound() -> None:
    points, labels = points_and_labels(classes=3)
    dart = xgboost.XGBClassifier(n_jobs=1, n_estimators=20, booster="dart", rate_drop=0.3).fit(
        SCHEMA.encode(points), labels
    )
    imported = import_model(dart, SCHEMA)
    assert 0.0 <= imported.deviation <= imported.error.max() < 1e-4


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_what_stopped_early_counts_up_to_its_best_round(library: str) -> None:
    points, labels = points_and_labels()
    x = SCHEMA.encode(points)
    if library == "xgboost":
        model = xgboost.XGBClassifier(n_jobs=1, n_estimators=50, early_stopping_rounds=2, learning_rate=1.0)
        model.fit(x[:300], labels[:300], eval_set=[(x[300:], labels[300:])], verbose=0)
        rounds = model.best_iteration + 1
    else:
        model = lightgbm.LGBMClassifier(n_estimators=300, learning_rate=1.0, verbose=-1, n_jobs=1)
        stop = lightgbm.early_stopping(2, verbose=False)
        model.fit(x[:300], labels[:300], eval_X=x[300:], eval_y=labels[300:], callbacks=[stop])
        rounds = model.best_iteration_
    imported = import_model(model, SCHEMA)
    assert len(imported.function.ensemble.roots) == rounds
    agrees(imported, model, SCHEMA.encode)


# ---------------------------------------------------------------------- categories and missing values


def table_of(schema: Schema, points: Any, *, as_categories: bool = True) -> Any:
    frame = pd.DataFrame([schema.row(point) for point in points])
    if as_categories:
        for feature in schema.features:
            if isinstance(feature, Categorical | Binary):
                known = [option for option in feature.options if option is not None]
                frame[feature.name] = pd.Categorical(frame[feature.name], categories=known)
    return frame


def raw_rows(schema: Schema) -> tuple[Any, Any]:
    points = schema.sample(500, np.random.default_rng(3))
    signal = points[:, 0] + 2 * (points[:, 1] == 2) - (points[:, 1] == 3) + (points[:, 3] == 1) + points[:, 4]
    return points, (signal > 1).astype(int)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("one_hot", [1, 10])
def test_categories_of_xgboost(one_hot: int) -> None:
    points, labels = raw_rows(WITH_MISSING)
    model = xgboost.XGBClassifier(
        n_jobs=1, n_estimators=20, max_depth=5, enable_categorical=True, max_cat_to_onehot=one_hot
    )
    model.fit(table_of(WITH_MISSING, points), labels)
    imported = import_model(model, WITH_MISSING)
    agrees(imported, model, lambda rows: table_of(WITH_MISSING, rows))
    assert len(imported.function.option_sets[1]) > 2 and not imported.function.option_sets[0].size
    booster = model.get_booster()
    agrees(import_model(booster, WITH_MISSING), booster, lambda rows: table_of(WITH_MISSING, rows))


@pytest.mark.parametrize("kind", ["estimator", "booster"])
def test_categories_of_xgboost_beyond_ascii(kind: str) -> None:
    """Which it stores cut at the wrong places; the model is asked in its own words all the same."""
    jobs = ["Straße", "Büro", "Koch", "日本"]
    schema = Schema([Integer("age", 0, 60), Categorical("job", jobs)])
    rng = np.random.default_rng(0)
    age, job = rng.integers(0, 61, 400), rng.integers(0, 4, 400)
    table = pd.DataFrame({"age": age, "job": pd.Categorical.from_codes(job, jobs)})
    labels = ((age > 30) ^ np.isin(job, (0, 2))).astype(int)
    fitted = xgboost.XGBClassifier(n_estimators=8, max_depth=3, enable_categorical=True, n_jobs=1).fit(table, labels)
    model = import_model(fitted if kind == "estimator" else fitted.get_booster(), schema)
    own = fitted.predict(table, output_margin=True)
    assert (model.exact_scores(np.column_stack([age, job]).astype(float))[:, 0] == own).all()
    assert (np.diff(model.exact_scores(np.array([[40.0, k] for k in range(4)]))[:, 0]) != 0).any()
    turned = Schema([schema["age"], Categorical("job", jobs[::-1])])
    with pytest.raises(UnsupportedModel, match="categories of 'job' cut at the wrong places.*in the order"):
        import_model(fitted, turned)


def test_categories_of_lightgbm() -> None:
    points, labels = raw_rows(WITH_MISSING)
    model = lightgbm.LGBMClassifier(**QUIET_LIGHT, min_data_per_group=1, cat_smooth=0, max_cat_to_onehot=1)
    model.fit(table_of(WITH_MISSING, points), labels)
    imported = import_model(model, WITH_MISSING)
    agrees(imported, model, lambda rows: table_of(WITH_MISSING, rows))
    agrees(import_model(model.booster_, WITH_MISSING), model.booster_, lambda rows: table_of(WITH_MISSING, rows))


@pytest.mark.parametrize("one_hot", [2, 10])
def test_categories_of_catboost(one_hot: int) -> None:
    points, labels = raw_rows(RAW)
    model = catboost.CatBoostClassifier(
        cat_features=["town", "code", "owner"], max_ctr_complexity=1, one_hot_max_size=one_hot, **QUIET_CAT
    )
    model.fit(table_of(RAW, points, as_categories=False), labels)
    agrees(import_model(model, RAW), model, lambda rows: table_of(RAW, rows, as_categories=False))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "estimator",
    [
        xgboost.XGBClassifier(n_jobs=1, n_estimators=20),
        lightgbm.LGBMClassifier(**QUIET_LIGHT),
        catboost.CatBoostClassifier(**QUIET_CAT),
    ],
    ids=lambda e: type(e).__name__,
)
def test_at_the_end_of_a_pipeline(estimator: Any) -> None:
    points, labels = raw_rows(WITH_MISSING)
    columns = make_column_transformer(
        (StandardScaler(), ["rate", "age"]),
        (OneHotEncoder(sparse_output=False), ["town", "code"]),
        (OrdinalEncoder(), ["owner"]),
    )
    table = table_of(WITH_MISSING, points, as_categories=False)
    pipeline = make_pipeline(columns, estimator).fit(table, labels)
    imported = import_model(pipeline, WITH_MISSING)
    rows = everywhere(imported)
    inside = pipeline[:-1].transform(table_of(WITH_MISSING, rows, as_categories=False))
    assert np.array_equal(imported.exact_scores(rows)[:, 0], margins(pipeline[-1], inside))
    assert imported.deviation == 0.0


@pytest.mark.long
def test_zeros_of_a_sparse_table_are_missing_to_xgboost() -> None:
    points, labels = raw_rows(RAW)
    table = table_of(RAW, points, as_categories=False)
    coded = make_column_transformer((OneHotEncoder(sparse_output=True), ["town", "code"]))
    pipeline = make_pipeline(coded, xgboost.XGBClassifier(n_jobs=1, n_estimators=20)).fit(table, labels)
    assert import_model(pipeline, RAW).deviation == 0.0
    mixed = make_column_transformer(
        (StandardScaler(), ["rate"]),
        ("passthrough", ["age"]),
        (OneHotEncoder(sparse_output=True), ["town", "code"]),
        sparse_threshold=1.0,
    )
    pipeline = make_pipeline(mixed, xgboost.XGBClassifier(n_jobs=1, n_estimators=20)).fit(table, labels)
    imported = import_model(pipeline, RAW)
    rows = everywhere(imported)
    zeros = rows[:300].copy()
    zeros[:, 0], zeros[150:, 2] = pipeline[0].named_transformers_["standardscaler"].mean_[0], 0
    rows = np.concatenate([rows, zeros])
    inside = pipeline[:-1].transform(table_of(RAW, rows, as_categories=False))
    assert (inside[-len(zeros) :, [0]].toarray() == 0.0).all()
    assert np.array_equal(imported.exact_scores(rows)[:, 0], margins(pipeline[-1], inside))


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_zeros_that_a_library_takes_for_missing(library: str) -> None:
    points, labels = points_and_labels()
    model = lightgbm.LGBMClassifier(zero_as_missing=True, **QUIET_LIGHT)
    if library == "xgboost":
        model = xgboost.XGBClassifier(n_jobs=1, n_estimators=20, max_depth=4, missing=0.0)
    model.fit(SCHEMA.encode(points), labels)
    imported = import_model(model, SCHEMA)
    rows = everywhere(imported)
    zeros, tiny = rows[:200].copy(), rows[:200].copy()
    zeros[:, [0, 1, 5]], tiny[:, 0] = 0.0, np.resize([1e-36, -1e-36, 1e-34, -1e-44, 2.0**-150, 5e-324], 200)
    rows = np.concatenate([rows, zeros, tiny])
    assert np.array_equal(imported.exact_scores(rows)[:, 0], margins(model, SCHEMA.encode(rows)))


# ---------------------------------------------------------------------- refusals


def refusals() -> Any:
    points, labels = points_and_labels()
    x, y = SCHEMA.encode(points), labels
    yield xgboost.XGBClassifier(n_jobs=1, booster="gblinear").fit(x, y), "'gblinear' of XGBoost has no trees"
    yield xgboost.XGBClassifier(n_jobs=1, n_estimators=2, missing=-1.0).fit(x, y), "takes -1.0 for a missing value"
    yield lightgbm.LGBMClassifier(linear_tree=True, **QUIET_LIGHT).fit(x, y), "Linear trees"
    yield lightgbm.LGBMRegressor(objective="poisson", **QUIET_LIGHT).fit(x, y), "'poisson' of LightGBM"
    yield catboost.CatBoostRegressor(loss_function="Poisson", **QUIET_CAT).fit(x, y), "'Poisson' of CatBoost"
    moved = catboost.CatBoostClassifier(**QUIET_CAT).fit(x, y)
    moved.set_probability_threshold(0.3)
    yield moved, "decides at a probability of 0.3"


@pytest.mark.filterwarnings("ignore")
def test_refusals_say_why() -> None:
    for model, words in refusals():
        with pytest.raises(UnsupportedModel, match=words):
            import_model(model, SCHEMA)


def test_unfitted_and_misnamed() -> None:
    points, labels = points_and_labels()
    for unfitted in (xgboost.XGBClassifier(n_jobs=1), lightgbm.LGBMClassifier(), catboost.CatBoostClassifier()):
        with pytest.raises(ModelError, match="is not fitted"):
            import_model(unfitted, SCHEMA)
    regression = lightgbm.LGBMRegressor(**QUIET_LIGHT).fit(SCHEMA.encode(points), labels)
    with pytest.raises(ModelError, match="is a regression; it has no classes"):
        import_model(regression, SCHEMA, classes=("a", "b"))
    classifier = xgboost.XGBClassifier(n_jobs=1, n_estimators=2).fit(SCHEMA.encode(points), labels)
    with pytest.raises(ModelError, match="is a classifier, not a regression"):
        import_model(classifier, SCHEMA, regression=True)
    with pytest.raises(ModelError, match="columns"):
        import_model(classifier, Schema(RAW.features[:3]))
    assert import_model(classifier, SCHEMA, classes=("no", "yes")).classes == ("no", "yes")
