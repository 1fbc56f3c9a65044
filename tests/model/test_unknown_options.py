"""Every importer with an encoder: refused where it knows none of a feature's options, told where it knows not all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from ifonly.errors import ModelError
from ifonly.model.importers import import_model
from ifonly.schema import Categorical, Real, Schema

TOWNS = ["01067", "01069", "10115", "20095"]


def data(kind: type = str) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    town, rate = rng.integers(0, 4, 300), rng.normal(size=300)
    values = np.array(TOWNS if kind is str else [kind(name) for name in TOWNS], dtype=object)[town]
    frame = pd.DataFrame({"town": values, "rate": rate})
    return frame if kind is str else frame.astype({"town": kind}), (rate + 2.0 * (town == 0) > 0.5).astype(int)


def encoded(encoder: Any, estimator: Any) -> Any:
    from sklearn.compose import ColumnTransformer

    frame, labels = data()
    front = ColumnTransformer([("e", encoder, ["town"])], remainder="passthrough")
    return make_pipeline(front, estimator).fit(frame, labels)


def one_hot() -> Any:
    return encoded(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())


def one_hot_rare() -> Any:
    return encoded(OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2), LogisticRegression())


def ordinal() -> Any:
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return encoded(encoder, RandomForestClassifier(5, random_state=0))


def target() -> Any:
    return encoded(TargetEncoder(), LogisticRegression())


def histogram() -> Any:
    frame, labels = data()
    return HistGradientBoostingClassifier(max_iter=5, categorical_features=["town"]).fit(frame, labels)


def lightgbm() -> Any:
    lgb = pytest.importorskip("lightgbm")
    frame, labels = data()
    frame["town"] = frame["town"].astype("category")
    return lgb.LGBMClassifier(n_estimators=5, min_child_samples=2, verbose=-1).fit(frame, labels)


def xgboost() -> Any:
    xgb = pytest.importorskip("xgboost")
    frame, labels = data()
    frame["town"] = frame["town"].astype("category")
    return xgb.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True).fit(frame, labels)


def catboost(one_hot_size: int) -> Any:
    cb = pytest.importorskip("catboost")
    frame, labels = data()
    settings = {"iterations": 5, "depth": 2, "max_ctr_complexity": 1, "verbose": 0, "allow_writing_files": False}
    return cb.CatBoostClassifier(cat_features=["town"], one_hot_max_size=one_hot_size, **settings).fit(frame, labels)


def catboost_counted() -> Any:
    return catboost(2)


def catboost_one_hot() -> Any:
    return catboost(10)


def boosting_machine() -> Any:
    glassbox = pytest.importorskip("interpret.glassbox")
    frame, labels = data()
    kinds = ["nominal", "continuous"]
    machine = glassbox.ExplainableBoostingClassifier(
        feature_types=kinds, max_rounds=20, interactions=0, outer_bags=1, n_jobs=1
    )
    return machine.fit(frame, labels)


def binning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optbinning's own, about pandas
        optbinning = pytest.importorskip("optbinning")
        frame, labels = data()
        process = optbinning.BinningProcess(["town", "rate"], categorical_variables=["town"])
        return make_pipeline(process, LogisticRegression()).fit(frame, labels)


def onnx_one_hot() -> Any:
    return to_onnx(one_hot())


def onnx_label() -> Any:
    return to_onnx(encoded(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), LogisticRegression()))


def to_onnx(pipeline: Any) -> Any:
    skl2onnx = pytest.importorskip("skl2onnx")
    types = skl2onnx.common.data_types
    inputs = [("town", types.StringTensorType([None, 1])), ("rate", types.FloatTensorType([None, 1]))]
    return skl2onnx.convert_sklearn(pipeline, initial_types=inputs, options={"zipmap": False})


ENCODERS: list[Callable[[], Any]] = [
    one_hot, one_hot_rare, ordinal, target, histogram, lightgbm, xgboost, catboost_counted, catboost_one_hot,
    boosting_machine, binning, onnx_one_hot, onnx_label,
]  # fmt: skip
LISTS_USED = (catboost_one_hot,)
"""Those that list the categories that splits use, and not all that they were fitted on: what is not listed is no news."""


def schema_of(towns: list[Any]) -> Schema:
    return Schema([Categorical("town", towns), Real("rate", -4, 4)])


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("made", ENCODERS, ids=lambda made: made.__name__)
def test_all_options_known_says_nothing(made: Any) -> None:
    assert import_model(made(), schema_of(TOWNS)).warnings == ()


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("made", ENCODERS, ids=lambda made: made.__name__)
def test_no_option_known_is_refused(made: Any) -> None:
    model = made()
    with pytest.raises(ModelError, match="knows none of the options of feature 'town'") as told:
        import_model(model, schema_of([name.lstrip("0") + "x" for name in TOWNS]))
    assert "'1067x'" in str(told.value)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("made", [m for m in ENCODERS if m not in LISTS_USED], ids=lambda made: made.__name__)
def test_options_that_are_not_known_are_listed(made: Any) -> None:
    model = made()
    with pytest.warns(UserWarning, match="fitted without the options '1067', 'nowhere' of feature 'town'"):
        imported = import_model(model, schema_of([*TOWNS, "1067", "nowhere"]))
    assert len(imported.warnings) == 1


@pytest.mark.parametrize(
    ("fitted", "declared"),
    [(int, ["1067", "1069", "10115", "20095"]), (str, [1067, 1069, 10115, 20095]), (str, [1067.0, 1069.0, 10115.0])],
)
def test_values_that_differ_in_type_only_are_other_values(fitted: type, declared: list[Any]) -> None:
    frame, labels = data(fitted)
    frame = frame if fitted is int else frame.assign(town=frame["town"].str.lstrip("0"))
    for encoder in (OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(handle_unknown="error")):
        model = make_pipeline(encoder, LogisticRegression()).fit(frame[["town"]], labels)
        with pytest.raises(ModelError, match="knows none of the options of feature 'town'") as told:
            import_model(model, Schema([Categorical("town", declared)]))
        if not isinstance(declared[0], float):
            assert "which differ in type only" in str(told.value)


def test_true_is_not_the_text_true() -> None:
    frame = pd.DataFrame({"flag": ["True", "False"] * 20})
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(frame, [1, 0] * 20)
    with pytest.raises(ModelError, match="knows none of the options of feature 'flag'"):
        import_model(model, Schema([Categorical("flag", [True, False])]))


def test_whole_numbers_are_the_same_as_floats() -> None:
    frame = pd.DataFrame({"level": [1, 2, 3] * 20})
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(frame, [1, 0, 0] * 20)
    assert import_model(model, Schema([Categorical("level", [1.0, 2.0, 3.0])])).warnings == ()


def test_a_missing_option_that_is_imputed_is_known() -> None:
    from sklearn.impute import SimpleImputer

    frame = pd.DataFrame({"town": ["a", "b", None] * 20})
    frame["town"] = frame["town"].astype(object).where(frame["town"].notna(), np.nan)
    coded = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    model = make_pipeline(coded, LogisticRegression()).fit(frame, [1, 0, 0] * 20)
    assert import_model(model, Schema([Categorical("town", ["a", "b", None])])).warnings == ()
