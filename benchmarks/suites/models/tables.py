"""Models of tables: scikit-learn, boosting, and composed estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from benchmarks.suites.models.people import CHOICES, NUMBERS, applications, schema
from benchmarks.suites.models.subjects import Subject, Trained


def framed(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows)


def columns(numbers: Any = None, choices: Any = None) -> ColumnTransformer:
    """Numbers and choices through transformers of their own."""
    return ColumnTransformer(
        [
            ("numbers", StandardScaler() if numbers is None else numbers, NUMBERS),
            ("choices", OneHotEncoder(handle_unknown="ignore") if choices is None else choices, CHOICES),
        ]
    )


def logs() -> Any:
    return make_pipeline(SimpleImputer(strategy="median"), FunctionTransformer(np.log1p), StandardScaler())


def fit(make: Callable[[], Any], *, holes: bool = False, labels: str = "labels", **options: Any) -> Trained:
    """A pipeline of the table's own values."""
    data = applications()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(data.holes if holes else data.table, getattr(data, labels))

    def predict(rows: list[dict[str, Any]]) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(np.asarray(model.predict(framed(rows))).tolist())

    return Trained(model=model, schema=schema(), predict=predict, options=options)


def subject(
    family: str, name: str, make: Callable[[], Any], advice: str = "", remedy: Any = None, **how: Any
) -> Subject:
    return Subject(
        family=family, name=name, train=partial(fit, make, **how), advice=advice,
        remedy=None if remedy is None else partial(fit, remedy, **how),
    )  # fmt: skip


def perceptron(**how: Any) -> MLPClassifier:
    return MLPClassifier((12,), max_iter=150, random_state=0, **how)


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(20, max_depth=5, random_state=0)


def boosting() -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=30, max_depth=3, random_state=0)


def with_interactions(estimator: Any) -> Any:
    inside = make_pipeline(OneHotEncoder(), PolynomialFeatures(2, interaction_only=True, include_bias=False))
    return make_pipeline(columns(choices=inside), estimator)


SKLEARN = [
    subject(
        "scikit-learn",
        "logistic regression, scaled, one-hot, imputed",
        lambda: make_pipeline(columns(make_pipeline(SimpleImputer(), StandardScaler())), LogisticRegression()),
        holes=True,
    ),
    subject(
        "scikit-learn",
        "logistic regression of log1p",
        lambda: make_pipeline(columns(logs()), LogisticRegression()),
        holes=True,
    ),
    subject(
        "scikit-learn",
        "logistic regression, PowerTransformer",
        lambda: make_pipeline(columns(PowerTransformer()), LogisticRegression()),
    ),
    subject(
        "scikit-learn",
        "logistic regression, SplineTransformer(degree=1)",
        lambda: make_pipeline(columns(SplineTransformer(degree=1)), LogisticRegression()),
    ),
    subject(
        "scikit-learn",
        "logistic regression, KBinsDiscretizer",
        lambda: make_pipeline(columns(KBinsDiscretizer(5)), LogisticRegression()),
    ),
    subject("scikit-learn", "perceptron of log1p", lambda: make_pipeline(columns(logs()), perceptron())),
    subject(
        "scikit-learn",
        "perceptron, QuantileTransformer",
        lambda: make_pipeline(columns(QuantileTransformer(n_quantiles=50)), perceptron()),
    ),
    subject(
        "scikit-learn",
        "forest, log1p and OrdinalEncoder, GridSearchCV",
        lambda: GridSearchCV(
            make_pipeline(columns(logs(), OrdinalEncoder()), forest()),
            {"randomforestclassifier__max_depth": [4, 5]},
            cv=2,
        ),
    ),
    subject(
        "scikit-learn",
        "logistic regression, interactions of choices",
        lambda: with_interactions(LogisticRegression()),
        "boosted trees",
        lambda: make_pipeline(columns(), boosting()),
    ),
    subject(
        "scikit-learn",
        "SVC with a polynomial kernel",
        lambda: make_pipeline(columns(), SVC(kernel="poly")),
        "kernel='linear'",
        lambda: make_pipeline(columns(), SVC(kernel="linear")),
    ),
]


def xgboost(**how: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=30, max_depth=3, **how)


def lightgbm(**how: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=30, num_leaves=8, verbose=-1, **how)


class Categories:
    """A library with categories of its own: options as pandas' categorical type."""

    @staticmethod
    def typed(table: pd.DataFrame) -> pd.DataFrame:
        described = {f.name: list(f.options) for f in schema().features if f.name in ("job", "region")}
        return table.assign(
            **{name: pd.Categorical(table[name], categories=known) for name, known in described.items()}
        )


def native(make: Callable[[], Any]) -> Trained:
    """A model that reads categories itself."""
    data = applications()
    model = make().fit(Categories.typed(data.table), data.labels)
    return Trained(
        model=model, schema=schema(), predict=lambda rows: model.predict(Categories.typed(framed(rows))).tolist()
    )


def catboost() -> Trained:
    from catboost import CatBoostClassifier

    data = applications()
    text = data.table.assign(owner=data.table.owner.astype(str))
    model = CatBoostClassifier(iterations=30, depth=4, verbose=False, allow_writing_files=False, max_ctr_complexity=1)
    model.fit(text[[*NUMBERS, "job", "region"]], data.labels, cat_features=["job", "region"])
    kept = type(schema())([one for one in schema().features if one.name != "owner"])
    return Trained(
        model=model,
        schema=kept,
        predict=lambda rows: np.ravel(model.predict(framed(rows)[[*NUMBERS, "job", "region"]])).tolist(),
    )


def additive() -> Trained:
    from interpret.glassbox import ExplainableBoostingClassifier

    data = applications()
    model = ExplainableBoostingClassifier(interactions=2, max_rounds=50).fit(data.table, data.labels)
    return Trained(model=model, schema=schema(), predict=lambda rows: model.predict(framed(rows)).tolist())


BOOSTING = [
    subject("boosting", "XGBoost after a pipeline", lambda: make_pipeline(columns(), xgboost())),
    subject("boosting", "XGBoost after log1p, imputed", lambda: make_pipeline(columns(logs()), xgboost()), holes=True),
    Subject(
        family="boosting",
        name="XGBoost with its own categories",
        train=partial(native, partial(xgboost, enable_categorical=True)),
    ),
    subject(
        "boosting",
        "LightGBM after QuantileTransformer",
        lambda: make_pipeline(columns(QuantileTransformer(n_quantiles=100)), lightgbm()),
    ),
    Subject(family="boosting", name="LightGBM with its own categories", train=partial(native, lightgbm)),
    Subject(family="boosting", name="CatBoost with cat_features", train=catboost),
    Subject(
        family="boosting",
        name="HistGradientBoosting with its own categories",
        train=partial(native, lambda: HistGradientBoostingClassifier(max_iter=30, categorical_features="from_dtype")),
    ),
    subject(
        "boosting", "GradientBoosting, PowerTransformer", lambda: make_pipeline(columns(PowerTransformer()), boosting())
    ),
    subject("boosting", "AdaBoost", lambda: make_pipeline(columns(), AdaBoostClassifier(n_estimators=30))),
    Subject(family="boosting", name="explainable boosting machine", train=additive),
]


def linear() -> Any:
    return make_pipeline(columns(), LogisticRegression())


def net() -> Any:
    return make_pipeline(columns(), perceptron())


def voting(how: str, *members: Any) -> Any:
    return VotingClassifier([(f"m{i}", one) for i, one in enumerate(members)], voting=how)


def stacking(*members: Any) -> Any:
    return StackingClassifier([(f"m{i}", one) for i, one in enumerate(members)], LogisticRegression(), cv=3)


def several_outputs() -> Trained:
    data = applications()
    model = make_pipeline(columns(), MultiOutputClassifier(LogisticRegression()))
    model.fit(data.table, np.column_stack([data.labels, data.grades > 1]))
    return Trained(
        model=model,
        schema=schema(),
        options={"output": 1},
        predict=lambda rows: model.predict(framed(rows))[:, 1].tolist(),
    )


COMPOSED = [
    subject(
        "composed",
        "CalibratedClassifierCV of LinearSVC",
        lambda: CalibratedClassifierCV(make_pipeline(columns(), LinearSVC()), cv=3),
    ),
    subject(
        "composed",
        "CalibratedClassifierCV, isotonic, of a logistic regression",
        lambda: CalibratedClassifierCV(linear(), method="isotonic", cv=3),
    ),
    subject(
        "composed",
        "CalibratedClassifierCV of a forest",
        lambda: CalibratedClassifierCV(make_pipeline(columns(), forest()), cv=3),
    ),
    subject(
        "composed",
        "FixedThresholdClassifier of XGBoost",
        lambda: FixedThresholdClassifier(make_pipeline(columns(), xgboost()), threshold=0.4),
    ),
    subject(
        "composed",
        "TunedThresholdClassifierCV of HistGradientBoosting",
        lambda: TunedThresholdClassifierCV(make_pipeline(columns(), HistGradientBoostingClassifier(max_iter=30)), cv=3),
    ),
    subject("composed", "soft vote of logistic regression and perceptron", lambda: voting("soft", linear(), net())),
    subject(
        "composed",
        "soft vote of a forest, boosting and logistic regression",
        lambda: voting("soft", make_pipeline(columns(), forest()), make_pipeline(columns(), boosting()), linear()),
    ),
    subject(
        "composed",
        "stack of a forest, logistic regression and perceptron",
        lambda: stacking(make_pipeline(columns(), forest()), linear(), net()),
    ),
    subject("composed", "OneVsRestClassifier, three grades", lambda: OneVsRestClassifier(linear()), labels="grades"),
    Subject(family="composed", name="MultiOutputClassifier, one output", train=several_outputs),
]
