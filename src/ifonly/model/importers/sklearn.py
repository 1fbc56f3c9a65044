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
from ifonly.model.importers.column_flow import flow_of, is_curve
from ifonly.model.importers.column_kinds import Column
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.sklearn_estimators import reader_of
from ifonly.model.importers.sklearn_original import Predicted, SklearnOriginal, raised, reported_by
from ifonly.model.importers.sklearn_parts import best_of, by_output, check_fitted, parts_of
from ifonly.model.importers.sklearn_sources import source_of
from ifonly.model.importers.transformers import transformed
from ifonly.model.kind import Precision
from ifonly.model.model import Model
from ifonly.model.rounding import column_box
from ifonly.schema import Schema
from ifonly.schema.values import plain

Floats = NDArray[np.float64]


def import_sklearn(
    model: Any,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    output: int | str | None = None,
) -> Model:
    """A fitted scikit-learn estimator or pipeline as a Model; `output` is one of several that it gives."""
    from ifonly.model.importers.composed_model import import_composed, is_composed
    from ifonly.model.importers.gaussian_models import import_gaussian, is_gaussian
    from ifonly.model.importers.trees import model_of, read_trees

    model = by_output(model, output)
    found = best_of(model)
    front, estimator = parts_of(found)
    check_fitted(found, estimator)
    if is_composed(estimator):
        return import_composed(model, schema, classes=classes, regression=regression)
    if is_gaussian(estimator):
        return import_gaussian(model, schema, classes=classes, regression=regression)
    imported_trees = read_trees(estimator, schema)
    if imported_trees is not None:
        return model_of(imported_trees, model, schema, front=front, classes=classes, regression=regression)
    return _import_scores(model, schema, classes, regression=regression)


def _import_scores(model: Any, schema: Schema, classes: tuple[Any, ...], *, regression: bool) -> Model:
    """A linear model or a perceptron, or a pipeline that ends in one."""
    from ifonly.model.importers.trees import model_of, read_columns, tabulated, trees_behind_bins

    found = best_of(model)
    front, estimator = parts_of(found)
    name, reader = type(estimator).__name__, reader_of(estimator)
    arithmetic = Columns(schema)
    source = source_of(found, front, arithmetic)
    columns = source.columns()
    for where, step in front:
        columns = transformed(step, columns, arithmetic, where)
    if tabulated(columns, estimator, arithmetic):
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
    if any(is_curve(column, arithmetic, name) for column in columns):
        return flow_of(columns, arithmetic, Flow.of(len(schema.columns), *column_box(schema)), name)
    weight, shift, sizes = arithmetic.matrix(columns, name)
    flow = Flow.of(len(schema.columns))
    return flow.linear(weight, shift, name="the transformers before " + name, sizes=sizes)


def _precision(flow: Flow, estimator: Any, arithmetic: Columns) -> Precision:
    """float32 when the weights or an encoder's output are: then the model may compute so."""
    weights = estimator.coefs_ if hasattr(estimator, "coefs_") else [estimator.coef_]
    dtypes = {str(weight.dtype) for weight in weights} | arithmetic.dtypes
    if "float16" in dtypes:
        raise UnsupportedModel(
            "The model computes in float16, which is not supported; use float32.", operation="float16"
        )
    return "float32" if "float32" in dtypes else "float64"
