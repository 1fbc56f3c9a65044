"""Trees of every library, imported, against the library's own predict on every row of a finite schema.

The tables are made here from the rows' own values, without the importers. IFONLY_IMPORTS=100 tries so many random
models of each kind; the suite a few.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ifonly import Binary, Categorical, Integer, Schema, import_model

pandas = pytest.importorskip("pandas")
COUNT = int(os.environ.get("IFONLY_IMPORTS", "3"))
Rng = np.random.Generator
Case = tuple[Any, Schema, Any, Any]
"""A fitted model, the schema, every row as a table of the model's own, and every row as points."""


def options(rng: Rng, *, missing: bool) -> list[Any]:
    names = ["a", "b", "c", "d", "e", "f"][: int(rng.integers(2, 7))]
    return [*names, None] if missing and rng.random() < 0.5 else names


def schema_of(rng: Rng, *, missing: bool = False) -> Schema:
    return Schema([
        Categorical("town", options(rng, missing=missing)), Integer("n", int(rng.integers(-3, 1)), int(rng.integers(1, 5))),
        Binary("b"), Categorical("job", options(rng, missing=missing)), Integer("m", 0, 12, 4),
    ])  # fmt: skip


def every(schema: Schema) -> np.ndarray:
    """Each row: options by their number, numbers as they are."""
    sides = [
        np.arange(f.lower, f.upper + 1, f.step) if isinstance(f, Integer) else np.arange(len(f.options))
        for f in schema.features
    ]
    return np.array(list(itertools.product(*sides)), dtype=np.float64)


def frame_of(schema: Schema, points: np.ndarray, *, categories: bool) -> Any:
    made: dict[str, Any] = {}
    for i, feature in enumerate(schema.features):
        if isinstance(feature, Integer):
            made[feature.name] = points[:, i].astype(int)
        elif isinstance(feature, Binary):
            made[feature.name] = points[:, i].astype(bool)
        else:
            known = [option for option in feature.options if option is not None]
            values = [feature.options[int(k)] for k in points[:, i]]
            made[feature.name] = pandas.Categorical(values, categories=known) if categories else values
    return pandas.DataFrame(made)


def encoded(schema: Schema, points: np.ndarray) -> np.ndarray:
    """One-hot columns and numbers, in the order of the features."""
    parts = []
    for i, feature in enumerate(schema.features):
        choice = isinstance(feature, Categorical)
        parts.append(np.eye(len(feature.options))[points[:, i].astype(int)] if choice else points[:, [i]])
    return np.hstack(parts)


def labels(rng: Rng, points: np.ndarray, classes: int) -> np.ndarray:
    own = np.random.default_rng(int(rng.integers(1 << 30)))
    tables = [own.normal(size=20) for _ in range(points.shape[1])]
    signal = sum(table[points[:, i].astype(int)] for i, table in enumerate(tables))
    signal = signal + own.normal(0, 0.3, len(points)) * points[:, 1]
    found = np.searchsorted(np.quantile(signal, np.arange(1, classes) / classes), signal)
    found[:classes] = range(classes)
    return np.asarray(found)


def drawn(rng: Rng, schema: Schema, *, categories: bool | None) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """A training table and its labels, the table of every row, and every row."""
    rows = every(schema)
    some = rows[rng.choice(len(rows), int(rng.integers(60, 300)))]
    resolved = labels(rng, some, int(rng.integers(2, 4)))
    if categories is None:
        return encoded(schema, some), encoded(schema, rows), rows, resolved
    return (
        frame_of(schema, some, categories=categories),
        frame_of(schema, rows, categories=categories),
        rows,
        resolved,
    )


def sklearn_model(rng: Rng) -> Case:
    from sklearn import ensemble, tree

    seed, depth = int(rng.integers(1000)), int(rng.integers(1, 7))
    one = tree.DecisionTreeClassifier(max_depth=depth, random_state=seed)
    model = [
        one,
        ensemble.RandomForestClassifier(int(rng.integers(2, 12)), max_depth=depth, random_state=seed),
        ensemble.ExtraTreesClassifier(int(rng.integers(2, 12)), max_depth=depth, random_state=seed),
        ensemble.GradientBoostingClassifier(n_estimators=int(rng.integers(1, 8)), random_state=seed),
        ensemble.AdaBoostClassifier(one, n_estimators=int(rng.integers(1, 8)), random_state=seed),
        ensemble.BaggingClassifier(one, n_estimators=int(rng.integers(2, 8)), max_features=0.6, random_state=seed),
        ensemble.VotingClassifier([("one", one), ("other", ensemble.RandomForestClassifier(3, random_state=seed))],
                                  voting="soft", weights=[1.0, 2.5]),
    ][int(rng.integers(7))]  # fmt: skip
    schema = schema_of(rng)
    table, whole, rows, resolved = drawn(rng, schema, categories=None)
    return model.fit(table, resolved), schema, whole, rows


def histogram_model(rng: Rng) -> Case:
    from sklearn.ensemble import HistGradientBoostingClassifier

    schema = schema_of(rng, missing=True)
    table, whole, rows, resolved = drawn(rng, schema, categories=True)
    model = HistGradientBoostingClassifier(
        max_iter=int(rng.integers(1, 8)), categorical_features="from_dtype", min_samples_leaf=int(rng.integers(1, 10))
    )
    return model.fit(table, resolved), schema, whole, rows


def xgboost_model(rng: Rng) -> Case:
    xgboost = pytest.importorskip("xgboost")
    native = bool(rng.random() < 0.6)
    schema = schema_of(rng, missing=native)
    table, whole, rows, resolved = drawn(rng, schema, categories=True if native else None)
    more: dict[str, Any] = {"missing": 0.0} if rng.random() < 0.4 else {}
    model = xgboost.XGBClassifier(
        n_estimators=int(rng.integers(1, 8)), max_depth=int(rng.integers(1, 6)), n_jobs=1, enable_categorical=native,
        max_cat_to_onehot=int(rng.integers(1, 8)), max_cat_threshold=int(rng.integers(1, 9)), **more,
    )  # fmt: skip
    return model.fit(table, resolved), schema, whole, rows


def lightgbm_model(rng: Rng) -> Case:
    lightgbm = pytest.importorskip("lightgbm")
    native = bool(rng.random() < 0.7)
    schema = schema_of(rng, missing=native)
    table, whole, rows, resolved = drawn(rng, schema, categories=True if native else None)
    model = lightgbm.LGBMClassifier(
        n_estimators=int(rng.integers(1, 8)), num_leaves=int(rng.integers(2, 20)), verbose=-1, n_jobs=1,
        min_child_samples=int(rng.integers(1, 6)), min_data_per_group=1, cat_smooth=float(rng.choice([0.1, 10.0])),
        zero_as_missing=bool(rng.random() < 0.5), use_missing=bool(rng.random() < 0.7),
        max_cat_to_onehot=int(rng.integers(1, 8)),
    )  # fmt: skip
    return model.fit(table, resolved), schema, whole, rows


def catboost_model(rng: Rng) -> Case:
    catboost = pytest.importorskip("catboost")
    native = bool(rng.random() < 0.6)
    schema = schema_of(rng)
    table, whole, rows, resolved = drawn(rng, schema, categories=False if native else None)
    more: dict[str, Any] = {"cat_features": ["town", "job"], "max_ctr_complexity": 1} if native else {}
    more |= {"nan_mode": str(rng.choice(["Min", "Max"]))}
    policy = "SymmetricTree" if native else str(rng.choice(["SymmetricTree", "Lossguide", "Depthwise"]))
    model = catboost.CatBoostClassifier(
        iterations=int(rng.integers(1, 8)), depth=int(rng.integers(1, 5)), verbose=0, allow_writing_files=False,
        thread_count=1, one_hot_max_size=int(rng.integers(1, 8)), grow_policy=policy, **more,
    )  # fmt: skip
    return model.fit(table, resolved), schema, whole, rows


def interpret_model(rng: Rng) -> Case:
    glassbox = pytest.importorskip("interpret.glassbox")
    schema = schema_of(rng)
    table, whole, rows, resolved = drawn(rng, schema, categories=None)
    model = glassbox.ExplainableBoostingClassifier(
        max_rounds=5, outer_bags=1, interactions=int(rng.integers(0, 3)), n_jobs=1, max_bins=int(rng.integers(3, 9))
    )
    return model.fit(table, resolved % 2), schema, whole, rows


class OnnxFile:
    """A file, and what its user gets from it: labels."""

    def __init__(self, proto: Any) -> None:
        runtime = pytest.importorskip("onnxruntime")
        self.proto = proto
        self.session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])

    def predict(self, table: np.ndarray) -> np.ndarray:
        return np.asarray(self.session.run(None, {"X": table.astype(np.float32)})[0])


def onnx_model(rng: Rng) -> Case:
    export = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn import ensemble, tree

    seed, depth = int(rng.integers(1000)), int(rng.integers(1, 6))
    model = [
        tree.DecisionTreeClassifier(max_depth=depth, random_state=seed),
        ensemble.RandomForestClassifier(int(rng.integers(2, 12)), max_depth=depth, random_state=seed),
        ensemble.GradientBoostingClassifier(n_estimators=int(rng.integers(1, 8)), random_state=seed),
    ][int(rng.integers(3))]
    schema = schema_of(rng)
    table, whole, rows, resolved = drawn(rng, schema, categories=None)
    model.fit(table, resolved)
    given = {
        "initial_types": [("X", FloatTensorType([None, table.shape[1]]))],
        "options": {"zipmap": rng.random() < 0.5},
    }
    return OnnxFile(export.convert_sklearn(model, **given)), schema, whole, rows


KINDS: dict[str, Callable[[Rng], Case]] = {
    "scikit-learn": sklearn_model,
    "histogram": histogram_model,
    "xgboost": xgboost_model,
    "lightgbm": lightgbm_model,
    "catboost": catboost_model,
    "interpret": interpret_model,
    "onnx": onnx_model,
}


def disagreements(kind: str, seed: int) -> int:
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, schema, whole, rows = KINDS[kind](rng)
        imported = import_model(model.proto if isinstance(model, OnnxFile) else model, schema)
        theirs = np.ravel(model.predict(whole)).tolist()
    ours, scores = imported.decide(imported.scores(rows)), imported.exact_scores(rows)
    score_margin = (
        np.abs(scores[:, 0]) if scores.shape[1] == 1 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    )
    sure = score_margin > 2.0 * imported.error.max() + 1e-9
    wrong = np.array([imported.classes[k] for k in ours.tolist()], dtype=object) != np.array(theirs, dtype=object)
    by_function = np.array([imported.classes[k] for k in imported.decide(scores)], dtype=object)
    return int(wrong.sum() + ((by_function != np.array(theirs, dtype=object)) & sure).sum())


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", list(KINDS))
def test_imported_trees_decide_as_their_library_on_every_row(kind: str) -> None:
    with threadpool_limits(1):
        assert {seed: found for seed in range(COUNT) if (found := disagreements(kind, seed))} == {}
