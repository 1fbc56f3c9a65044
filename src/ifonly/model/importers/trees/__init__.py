"""Importers of tree ensembles: each library's trees, read exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_never

from ifonly.errors import FileError, UnsupportedModel
from ifonly.model.files import MAX_BYTES, check_size
from ifonly.model.importers.foreign import Library
from ifonly.model.importers.trees.binned import grown_behind_bins, read_columns
from ifonly.model.importers.trees.catboost import grown_by_catboost, load_catboost
from ifonly.model.importers.trees.ebm import grown_by_ebm
from ifonly.model.importers.trees.growing import Grown, model_of
from ifonly.model.importers.trees.lightgbm import grown_by_lightgbm, load_lightgbm
from ifonly.model.importers.trees.sklearn_trees import grown_by_sklearn
from ifonly.model.importers.trees.xgboost import grown_by_xgboost, load_xgboost
from ifonly.model.model import Model
from ifonly.schema import Schema

__all__ = ["Grown", "grown_behind_bins", "grown_by", "import_trees", "load_library", "model_of", "read_columns"]


def import_trees(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A model of XGBoost, LightGBM or CatBoost as a Model."""
    name = f"{type(model).__module__.partition('.')[0]} {type(model).__name__}"
    grown = grown_by(model, schema)
    if grown is None:
        raise UnsupportedModel(f"{name} is no ensemble of trees that can be imported.", operation=name)
    return model_of(grown, model, schema, front=[], classes=classes, regression=regression)


def load_library(path: Path, library: Library) -> Any:
    """A model file, as its own library reads it."""
    if not path.is_file():
        raise FileError(f"Cannot read the model '{path}': no such file.")
    check_size(path, MAX_BYTES)
    match library:
        case "xgboost":
            return load_xgboost(path)
        case "lightgbm":
            return load_lightgbm(path)
        case "catboost":
            return load_catboost(path)
    assert_never(library)


def grown_by(estimator: Any, schema: Schema) -> Grown | None:
    """The trees of an object of any library; None where it has none."""
    return (
        grown_by_xgboost(estimator)
        or grown_by_lightgbm(estimator)
        or grown_by_catboost(estimator, schema)
        or grown_by_ebm(estimator)
        or grown_by_sklearn(estimator)
    )
