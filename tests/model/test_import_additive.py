"""Additive models: explainable boosting machines and linear models behind bins are ensembles of trees, exactly."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from ifonly import Binary, Categorical, Explainer, Integer, Model, Nearest, Real, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel
from model.forests import SCHEMA, everywhere, points_and_labels

QUICK = {"outer_bags": 2, "max_rounds": 40, "n_jobs": 1, "random_state": 0}
NUMBERS, OTHERS = ["rate", "age", "debt"], ["level", "owner"]


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    with threadpool_limits(1):
        yield


def frame_of(points: Any, schema: Schema = SCHEMA) -> pd.DataFrame:
    rows = [schema.row(point) for point in points]
    return pd.DataFrame({name: [row[name] for row in rows] for name in schema.names})


def k_bins(bins: int = 5, encode: str = "onehot", **more: Any) -> KBinsDiscretizer:
    return KBinsDiscretizer(bins, encode=encode, strategy="uniform", **more)


# ---------------------------------------------------------------------- explainable boosting machines


def agrees(imported: Model, model: Any, table_of: Any) -> None:
    """Bit for bit, on random rows and at every cut, in a batch and alone."""
    rows = everywhere(imported)
    ask = model.decision_function if imported.is_classifier else model.predict
    theirs = np.asarray(ask(table_of(rows))).reshape(len(rows), -1)
    assert np.array_equal(imported.exact_scores(rows), theirs)
    alone = [np.ravel(ask(table_of(rows[i : i + 1]))) for i in range(0, len(rows), len(rows) // 20)]
    assert np.array_equal(np.array(alone), theirs[:: len(rows) // 20])
    assert imported.deviation == 0.0 and imported.function.ensemble.summation.ordered and not imported.error.any()
    again = pickle.loads(pickle.dumps(imported))
    assert np.array_equal(again.scores(rows[:20]), imported.scores(rows[:20]))
    if imported.is_classifier:
        decided = np.ravel(model.predict(table_of(rows))).tolist()
        assert [model.classes_[k] for k in imported.decide(imported.scores(rows))] == decided


@pytest.mark.parametrize("classes", [2, 3])
def test_boosting_machines(classes: int) -> None:
    points, labels = points_and_labels(classes=classes)
    model = ExplainableBoostingClassifier(interactions=3, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pairs of three classes are not graphed
        model.fit(SCHEMA.encode(points), labels)
    imported = import_model(model, SCHEMA)
    assert imported.source == "interpret ExplainableBoostingClassifier"
    agrees(imported, model, SCHEMA.encode)
    assert (imported.probabilities is not None) == (classes == 2)


def test_a_pair_of_features_is_one_tree_over_both() -> None:
    points, labels = points_and_labels()
    model = ExplainableBoostingClassifier(interactions=[(0, 1), (0, 9)], **QUICK).fit(SCHEMA.encode(points), labels)
    assert [term for term in model.term_features_ if len(term) == 2]
    nodes = import_model(model, SCHEMA).function.ensemble
    features = [set(nodes.nodes.column[(nodes.tree_of == t) & (nodes.nodes.column >= 0)]) for t in range(12)]
    assert {0, 1} in features and {0, 5} in features


@pytest.mark.long
def test_terms_may_be_larger_or_fewer_and_stand_behind_transformers() -> None:
    points, labels = points_and_labels()
    small = {**QUICK, "outer_bags": 1, "max_rounds": 15, "max_interaction_bins": 6}
    scaled = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(sparse_output=False), ["town"]))
    behind = make_pipeline(scaled, ExplainableBoostingClassifier(interactions=[(0, 1, 2)], **small))
    with pytest.warns(UserWarning, match="3 or more terms are not graphed"):
        behind.fit(frame_of(points), labels)
    agrees(import_model(behind, SCHEMA), behind, frame_of)
    model = ExplainableBoostingClassifier(interactions=0, **small).fit(frame_of(points), labels)
    for term in reversed(range(1, 6)):
        model.remove_terms([term])
        imported = import_model(model, SCHEMA)
        assert len(imported.function.ensemble.roots) == term and imported.deviation == 0.0
    model.remove_terms([0])
    with pytest.raises(UnsupportedModel, match="has no terms"):
        import_model(model, SCHEMA)


def test_a_cut_belongs_to_the_upper_bin() -> None:
    schema = Schema([Real("x", 0.0, 1.0), Binary("b")])
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.choice(np.arange(0, 1.1, 0.1), 300), rng.integers(0, 2, 300)])
    model = ExplainableBoostingClassifier(interactions=0, **QUICK).fit(x, (x[:, 0] > 0.45) ^ (rng.random(300) < 0.1))
    cuts = import_model(model, schema).function.cuts[0]
    known = np.asarray(model.bins_[0][0])
    assert set(cuts) <= set(np.nextafter(known, -np.inf)) and len(cuts) > 3


RAW = Schema(
    [
        Real("rate", -3.0, 3.0, missing=True),
        Categorical("town", ["x", "y", "z", "unseen", None]),
        Integer("age", 0, 60),
        Binary("owner", ("no", "yes")),
    ]
)


def test_categories_missing_values_and_unseen_ones() -> None:
    rng = np.random.default_rng(3)
    points = RAW.sample(400, rng)
    frame = frame_of(points, RAW)
    frame["town"] = frame["town"].where(frame["town"] != "unseen", "x")
    frame.loc[rng.random(400) < 0.2, "rate"] = np.nan
    labels = (frame["rate"].fillna(1.5) + (frame["town"] == "y") + points[:, 2] / 30 > 1.2).to_numpy().astype(int)
    with pytest.warns(UserWarning, match="Missing values detected"):
        model = ExplainableBoostingClassifier(interactions=[(0, 1)], **QUICK).fit(frame, labels)
    with pytest.warns(UserWarning, match="fitted without the option 'unseen' of feature 'town'"):
        imported = import_model(model, RAW, classes=("no", "yes"))
    assert imported.deviation == 0.0
    rows = everywhere(imported)
    assert np.array_equal(imported.exact_scores(rows)[:, 0], model.decision_function(frame_of(rows, RAW)))
    with_missing = imported.for_schema(RAW.with_missing(("rate",)))
    assert with_missing.deviation == 0.0
    without = {"rate": None, "town": "z", "age": 1, "owner": "no"}
    answer = Explainer(imported).explain(without, target="yes")
    assert isinstance(answer, Nearest) and answer.counterfactual["rate"] is None
    asked = frame_of(points[:1], RAW).assign(**{**answer.counterfactual, "rate": np.nan})
    assert model.predict(asked)[0] == 1


def test_regressions_and_links() -> None:
    points, _ = points_and_labels()
    x, y = SCHEMA.encode(points), points[:, 0] + points[:, 5] / 1e5
    model = ExplainableBoostingRegressor(interactions=2, **QUICK).fit(x, y)
    agrees(import_model(model, SCHEMA), model, SCHEMA.encode)
    counts = ExplainableBoostingRegressor(objective="poisson_deviance", interactions=0, **QUICK).fit(x, np.exp(y / 9))
    with pytest.raises(UnsupportedModel, match="link 'log' of the ExplainableBoostingRegressor"):
        import_model(counts, SCHEMA)


def test_a_number_that_is_a_category_to_the_model() -> None:
    points, labels = points_and_labels()
    types = ["continuous", "nominal", *["continuous"] * 8]
    model = ExplainableBoostingClassifier(feature_types=types, interactions=0, **QUICK)
    model.fit(SCHEMA.encode(points), labels)
    with pytest.raises(ModelError, match="split feature 'age' by categories, but the schema calls it a number"):
        import_model(model, SCHEMA)


# ---------------------------------------------------------------------- linear models behind bins


def behind_bins(estimator: Any, **bins: Any) -> Any:
    return make_pipeline(
        make_column_transformer((k_bins(**bins), NUMBERS), (OneHotEncoder(), ["town"]), ("passthrough", OTHERS)),
        estimator,
    )


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("encode", ["ordinal", "onehot", "onehot-dense"])
@pytest.mark.parametrize("estimator", [LogisticRegression(), RidgeClassifier(), LinearRegression()])
@pytest.mark.parametrize("classes", [2, 3])
def test_bins_before_a_linear_model(encode: str, estimator: Any, classes: int) -> None:
    points, labels = points_and_labels(classes=classes)
    model = behind_bins(estimator, encode=encode).fit(frame_of(points), labels)
    imported = import_model(model, SCHEMA)
    rows = everywhere(imported)
    theirs = model.decision_function(frame_of(rows)) if imported.is_classifier else model.predict(frame_of(rows))
    difference = np.abs(imported.exact_scores(rows) - theirs.reshape(len(rows), -1)).max(axis=0)
    assert (difference <= imported.error).all() and imported.error.max() < 1e-12
    assert len(imported.function.ensemble.roots) == len(SCHEMA)
    assert (imported.probabilities is not None) == (isinstance(estimator, LogisticRegression) and classes == 2)
    edges = model[0].named_transformers_["kbinsdiscretizer"].bin_edges_
    assert np.array_equal(imported.function.cuts[0], np.nextafter(edges[0][1:-1], -np.inf))
    if imported.is_classifier:
        assert [model.classes_[k] for k in imported.decide(imported.scores(rows))] == model.predict(
            frame_of(rows)
        ).tolist()


def test_columns_of_one_feature_that_are_nonzero_together_count_as_terms() -> None:
    """A scaler that centres one-hot columns makes all of them nonzero: more terms, a larger bound."""
    points, labels = points_and_labels()
    bins = make_pipeline(k_bins(encode="onehot-dense"), StandardScaler())
    model = make_pipeline(make_column_transformer((bins, NUMBERS)), LogisticRegression())
    imported = import_model(model.fit(frame_of(points), labels), SCHEMA)
    assert len(imported.function.ensemble.roots) == 15
    rows = everywhere(imported)
    difference = np.abs(imported.exact_scores(rows)[:, 0] - model.decision_function(frame_of(rows)))
    assert 0.0 < difference.max() <= imported.error.max() < 1e-12


def test_a_binarizer_sends_its_threshold_down() -> None:
    points, labels = points_and_labels()
    model = make_pipeline(make_column_transformer((Binarizer(threshold=0.3), ["rate"])), LogisticRegression())
    imported = import_model(model.fit(frame_of(points), labels), SCHEMA)
    assert imported.function.cuts[0].tolist() == [0.3]
    rows = points[:3].copy()
    rows[:, 0] = 0.3, np.nextafter(0.3, 1.0), np.nextafter(0.3, 0.0)
    scores = imported.scores(rows)[:, 0]
    assert scores[0] == scores[2] != scores[1]


def test_a_whole_number_far_from_zero_keeps_its_side() -> None:
    """edge - lower rounds to a whole number where the edge itself does not."""
    schema = Schema([Integer("n", -(2**50), 2**50, 5)])
    x = np.arange(-2000, 2000, 5.0)[:, None] + 3
    model = make_pipeline(k_bins(7), LogisticRegression()).fit(x, x[:, 0] > 3)
    imported = import_model(model, schema)
    rows = (schema["n"].lower + 5 * np.arange((2**50 - 300) // 5, (2**50 + 300) // 5, dtype=np.float64))[:, None]
    assert (imported.decide(imported.scores(rows)) == model.predict(rows)).all()
    assert np.abs(imported.exact_scores(rows)[:, 0] - model.decision_function(rows)).max() <= imported.error.max()


@pytest.mark.long
def test_trees_behind_bins() -> None:
    points, labels = points_and_labels()
    model = behind_bins(DecisionTreeClassifier(max_depth=5, random_state=0), encode="ordinal")
    imported = import_model(model.fit(frame_of(points), labels), SCHEMA)
    rows = everywhere(imported)
    assert np.array_equal(imported.exact_scores(rows), model.predict_proba(frame_of(rows)))


def test_what_stands_beside_or_behind_bins_and_is_refused() -> None:
    points, labels = points_and_labels()
    table = frame_of(points)
    refusals = {
        "takes feature 'debt' as it is and others in bins": make_pipeline(
            make_column_transformer((k_bins(), ["rate", "age"]), ("passthrough", ["debt"])), LogisticRegression()
        ),
        "MLPClassifier stands behind bins": behind_bins(MLPClassifier((3,), max_iter=3)),
        "neither grow nor fall": behind_bins(DecisionTreeClassifier(max_depth=4)),
        "after other transformers have changed it": make_pipeline(
            make_column_transformer((make_pipeline(StandardScaler(), k_bins()), NUMBERS)), LogisticRegression()
        ),
        "rounds numbers to float32": behind_bins(LogisticRegression(), dtype=np.float32),
    }
    for words, model in refusals.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # three rounds do not converge
            model.fit(table, labels)
        with pytest.raises(UnsupportedModel, match=words):
            import_model(model, SCHEMA)


def test_a_whole_number_beside_bins_has_a_cell_for_each_value() -> None:
    points, labels = points_and_labels()
    model = make_pipeline(
        make_column_transformer((k_bins(), ["rate", "debt"]), (StandardScaler(), ["age"])), LogisticRegression()
    )
    imported = import_model(model.fit(frame_of(points), labels), SCHEMA)
    rows = everywhere(imported)
    assert np.abs(imported.exact_scores(rows)[:, 0] - model.decision_function(frame_of(rows))).max() < 1e-13
    assert len(imported.function.cuts[1]) == 20
