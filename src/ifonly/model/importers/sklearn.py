"""scikit-learn importer: linear models and multi-layer perceptrons, alone or at the end of a Pipeline.

    schema's encoded columns --(one affine map: the transformers)--> the estimator's columns --(estimator)--> scores

An estimator alone reads the schema's encoded columns. A pipeline reads the user's own values, feature by feature (or
the encoded columns, when it was fitted on a table that has those). Scores are the decision function; for perceptrons
the value before the output's sigmoid or softmax, which is the log-odds without the rounding of a probability.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.agreement import check_agreement
from ifonly.model.flow import Flow
from ifonly.model.importers.binning import Binning, is_binning_process
from ifonly.model.importers.column_flow import flow_of
from ifonly.model.importers.columns import Binned, Column, Columns
from ifonly.model.importers.detect import of_library
from ifonly.model.importers.sklearn_estimators import reader_of
from ifonly.model.importers.sklearn_original import Predicted, SklearnOriginal, raised, reported_by
from ifonly.model.importers.sklearn_sources import source_of
from ifonly.model.importers.transformers import sklearn_name, steps_of, transformed
from ifonly.model.kind import Precision
from ifonly.model.model import Model
from ifonly.model.rounding import column_box
from ifonly.schema import Schema
from ifonly.schema.values import plain

Floats = NDArray[np.float64]


def import_sklearn(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A fitted scikit-learn estimator or pipeline as a Model."""
    from ifonly.model.importers.trees import model_of, read_columns, read_trees, trees_behind_bins

    found = _best(model)
    front, estimator = _parts(found)
    _check_fitted(found, estimator)
    imported_trees = read_trees(estimator, schema)
    if imported_trees is not None:
        return model_of(imported_trees, model, schema, front=front, classes=classes, regression=regression)
    name, reader = type(estimator).__name__, reader_of(estimator)
    arithmetic = Columns(schema)
    source = source_of(found, front, arithmetic)
    columns = source.columns()
    for where, step in front:
        columns = transformed(step, columns, arithmetic, where)
    if any(isinstance(column, Binned) for column in columns):
        bins = trees_behind_bins(estimator, columns, arithmetic, partial(read_columns, source, [s for _, s in front]))
        imported = model_of(bins, model, schema, front=front, classes=classes, regression=regression)
        return replace(imported, for_schema=partial(import_sklearn, model, classes=classes, regression=regression))
    flow = _input_flow(columns, estimator, schema, arithmetic, plainly=source.identity and not front)
    read = reader(estimator, flow)
    if read.answer == "predict" and classes:
        raise ModelError(f"{name} is a regression; it has no classes, but {len(classes)} class names were given.")
    if read.answer != "predict" and regression:
        raise ModelError(f"{name} is a classifier, not a regression; leave out regression=True.")
    own = () if read.answer == "predict" else tuple(plain(c) for c in estimator.classes_)
    imported = Model(
        function=read.flow.to_network(),
        schema=schema,
        original=SklearnOriginal(source, raised(model) if read.answer == "logits" else model, read.answer, name),
        classes=tuple(classes) or own,
        source=f"sklearn {name}",
        precision=_precision(read.flow, estimator, arithmetic),
        for_schema=partial(import_sklearn, model, classes=tuple(classes), regression=regression),
        warnings=tuple(arithmetic.warnings),
    )
    imported = replace(imported, probabilities=reported_by(imported, model, estimator, source))
    return check_agreement(imported, decided=Predicted(model, source, own) if own else None)


def _input_flow(columns: list[Column], estimator: Any, schema: Schema, arithmetic: Columns, *, plainly: bool) -> Flow:
    """The schema's encoded columns on their way into the estimator."""
    if plainly:
        return Flow.of(len(schema.columns))
    name = type(estimator).__name__
    expected = getattr(estimator, "n_features_in_", len(columns))
    if expected != len(columns) or not columns:
        raise ModelError(f"{name} takes {expected} columns, but the transformers before it give {len(columns)}.")
    if any(arithmetic.bent(column, name) is not None for column in columns):
        return flow_of(columns, arithmetic, Flow.of(len(schema.columns), *column_box(schema)), name)
    weight, shift, sizes = arithmetic.matrix(columns, name)
    flow = Flow.of(len(schema.columns))
    return flow.linear(weight, shift, name="the transformers before " + name, sizes=sizes)


# ---------------------------------------------------------------------- taking the object apart


def _best(model: Any) -> Any:
    """What a finished search found; anything else itself."""
    if sklearn_name(model, ("BaseSearchCV",)):
        if not hasattr(model, "best_estimator_"):
            raise ModelError(f"The {type(model).__name__} is not fitted, or was fitted without refit; call fit first.")
        return model.best_estimator_
    return model


def _parts(model: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The transformers in front, with their paths, and the estimator at the end."""
    front: list[tuple[str, Any]] = []
    path = ""
    while sklearn_name(model, ("Pipeline",)):
        if not hasattr(model.steps[-1][1], "predict"):
            raise ModelError("The pipeline does not end in an estimator: there is nothing that decides.")
        steps = list(steps_of(model))
        front += [(path + name, step) for name, step in steps[:-1]]
        path += steps[-1][0] + "."
        model = steps[-1][1]
    if of_library(model, "optbinning", "Scorecard"):
        bins, model = _scorecard_parts(model)
        front.append((path + "binning process", bins))
    return [(where, Binning(s) if is_binning_process(s) else s) for where, s in front], model


def _scorecard_parts(scorecard: Any) -> tuple[Binning, Any]:
    """The bins of optbinning's Scorecard, with its own values for missing numbers and special codes; its estimator."""
    if not hasattr(scorecard, "estimator_"):
        raise ModelError("The Scorecard is not fitted; call fit before importing it.")
    options = (("metric_special", scorecard._metric_special), ("metric_missing", scorecard._metric_missing))
    return Binning(scorecard.binning_process_, options), scorecard.estimator_


def _check_fitted(model: Any, estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class; pass a fitted object of it.")
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        raise ModelError(f"The {type(estimator).__name__} is not fitted; call fit before importing it.") from None


def _precision(flow: Flow, estimator: Any, arithmetic: Columns) -> Precision:
    """float32 when the weights or an encoder's output are: then the model may compute so."""
    weights = estimator.coefs_ if hasattr(estimator, "coefs_") else [estimator.coef_]
    dtypes = {str(weight.dtype) for weight in weights} | arithmetic.dtypes
    if "float16" in dtypes:
        raise UnsupportedModel(
            "The model computes in float16, which is not supported; use float32.", operation="float16"
        )
    return "float32" if "float32" in dtypes else "float64"
