"""Importers of tree ensembles: each library's trees, read exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_never

from ifonly.errors import FileError, UnsupportedModel
from ifonly.model.files import MAX_BYTES, check_size
from ifonly.model.importers.detect import Library
from ifonly.model.importers.trees.binned import read_columns, tabulated, trees_behind_bins
from ifonly.model.importers.trees.build import bound_to_features, model_of
from ifonly.model.importers.trees.catboost import catboost_trees, load_catboost
from ifonly.model.importers.trees.ebm import ebm_trees
from ifonly.model.importers.trees.imported import ImportedTrees
from ifonly.model.importers.trees.lightgbm import lightgbm_trees, load_lightgbm
from ifonly.model.importers.trees.sklearn_trees import sklearn_trees_of
from ifonly.model.importers.trees.xgboost import load_xgboost, xgboost_trees
from ifonly.model.model import Model
from ifonly.schema import Schema

__all__ = [
    "ImportedTrees",
    "bound_to_features",
    "import_trees",
    "load_library",
    "model_of",
    "read_columns",
    "read_trees",
    "tabulated",
    "trees_behind_bins",
]


def import_trees(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A model of XGBoost, LightGBM or CatBoost as a Model."""
    name = f"{type(model).__module__.partition('.')[0]} {type(model).__name__}"
    imported_trees = read_trees(model, schema)
    if imported_trees is None:
        raise UnsupportedModel(f"{name} is no ensemble of trees that can be imported.", operation=name)
    return model_of(imported_trees, model, schema, front=[], classes=classes, regression=regression)


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


def read_trees(estimator: Any, schema: Schema) -> ImportedTrees | None:
    """The trees of an object of any library; None where it has none."""
    return (
        xgboost_trees(estimator, schema)
        or lightgbm_trees(estimator)
        or catboost_trees(estimator, schema)
        or ebm_trees(estimator)
        or sklearn_trees_of(estimator)
    )
