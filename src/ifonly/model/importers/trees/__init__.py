"""Importers of tree ensembles: each library's trees, read exactly."""

from __future__ import annotations

from typing import Any

from ifonly.errors import UnsupportedModel
from ifonly.model.importers.trees.catboost import grown_by_catboost
from ifonly.model.importers.trees.growing import Grown, model_of
from ifonly.model.importers.trees.lightgbm import grown_by_lightgbm
from ifonly.model.importers.trees.sklearn_trees import grown_by_sklearn
from ifonly.model.importers.trees.xgboost import grown_by_xgboost
from ifonly.model.model import Model
from ifonly.schema import Schema

__all__ = ["Grown", "grown_by", "import_trees", "model_of"]


def import_trees(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A model of XGBoost, LightGBM or CatBoost as a Model."""
    name = f"{type(model).__module__.partition('.')[0]} {type(model).__name__}"
    grown = grown_by(model, schema)
    if grown is None:
        raise UnsupportedModel(f"{name} is no ensemble of trees that can be imported.", operation=name)
    return model_of(grown, model, schema, front=[], classes=classes, regression=regression)


def grown_by(estimator: Any, schema: Schema) -> Grown | None:
    """The trees of an object of any library; None where it has none."""
    return (
        grown_by_xgboost(estimator)
        or grown_by_lightgbm(estimator)
        or grown_by_catboost(estimator, schema)
        or grown_by_sklearn(estimator)
    )
