"""A composed scikit-learn estimator (`composed`) as a Model: its form as a function, its members' own scores as the
original, and its own `predict` for the decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.agreement import check_agreement
from ifonly.model.flow import Flow
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.composed import COMPOSED
from ifonly.model.importers.forms import Floats, Form, Mixture, outputs_of, weighted
from ifonly.model.importers.members import Call, MemberReader, ScoredMember, is_forest
from ifonly.model.importers.probabilities import as_labelled, follow_from
from ifonly.model.importers.sklearn_original import Predicted, Probabilities
from ifonly.model.importers.sklearn_parts import Front, best_of, check_fitted, parts_of
from ifonly.model.importers.sklearn_sources import Source, source_by
from ifonly.model.importers.transformers import sklearn_name
from ifonly.model.kind import Precision
from ifonly.model.model import Model
from ifonly.model.rounding import column_box
from ifonly.model.trees import Ensemble, Trees, reachable
from ifonly.schema import Real, Schema
from ifonly.schema.values import plain


def is_composed(estimator: Any) -> bool:
    """Is it made of other estimators, and not of trees alone?"""
    return sklearn_name(estimator, COMPOSED) is not None and not is_forest(estimator)


def import_composed(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A fitted composed estimator, or a pipeline that ends in one, as a Model."""
    front, estimator = parts_of(best_of(model))
    name, arithmetic = type(estimator).__name__, Columns(schema)
    source = _source(front, estimator, arithmetic)
    trees = partial(_bound_trees, source, arithmetic)
    encoded = Flow.of(len(schema.columns), *column_box(schema))
    member = MemberReader(source, arithmetic, encoded, trees, COMPOSED).read(estimator, front)
    is_regression = member.kind == "prediction"
    if is_regression and classes:
        raise ModelError(f"{name} is a regression; it has no classes, but {len(classes)} class names were given.")
    if regression and not is_regression:
        raise ModelError(f"{name} is a classifier, not a regression; leave out regression=True.")
    own = () if is_regression else tuple(plain(c) for c in estimator.classes_)
    decided = Predicted(model, source, own) if own else None
    form, call = _as_scores(member, schema)
    imported = Model(
        function=_function(form, arithmetic, member.tie),
        schema=schema,
        original=call if decided is None else Decided(call, decided),
        classes=tuple(classes) or own,
        source=f"sklearn {name}",
        precision=_precision(form, arithmetic),
        for_schema=partial(import_composed, model, classes=tuple(classes), regression=regression),
        scores_are="probabilities" if member.kind == "probability" else "log-odds",
        warnings=tuple(arithmetic.warnings),
    )
    if member.kind in ("log-odds", "probability") and hasattr(model, "predict_proba"):
        reported = Probabilities(source, model)
        if member.kind == "probability" or follow_from(imported.original, reported, schema):
            imported = replace(imported, probabilities=reported)
    return check_agreement(imported, decided=decided)


@dataclass(frozen=True)
class Decided:
    """The scores of the members, and the decision of the whole."""

    call: Call
    decided: Predicted

    def __call__(self, points: Floats) -> Floats:
        return as_labelled(self.call(points), self.decided(points))


@dataclass(frozen=True)
class Both:
    """The probabilities of two classes from that of the second."""

    call: Call

    def __call__(self, points: Floats) -> Floats:
        own = self.call(points)
        return np.column_stack([1.0 - own, own])


def _as_scores(member: ScoredMember, schema: Schema) -> tuple[Form, Call]:
    """One score per class where it is a probability; else the score as it is."""
    if member.kind != "probability" or outputs_of(member.form) > 1:
        return member.form, member.call
    weight, shift = np.array([[-1.0], [1.0]]), np.array([1.0, 0.0])
    return weighted([member.form], weight, shift, schema, name=member.name), Both(member.call)


def _function(form: Form, arithmetic: Columns, tie: float) -> Any:
    schema = arithmetic.schema
    if isinstance(form, Mixture):
        check_finite(schema)
        return form.to_kind(schema, "float32" if "float32" in arithmetic.dtypes else "float64")
    return form.to_network() if isinstance(form, Flow) else Trees(reachable(form, schema), schema, tie=tie)


def check_finite(schema: Schema) -> None:
    """A sum of trees and other models is searched over finite features only."""
    for feature in schema.features:
        if isinstance(feature, Real) and feature.grid is None and feature.lower < feature.upper:
            raise UnsupportedModel(
                f"This adds up trees and other models (or curves of forests), which is searched value by value, but "
                f"'{feature.name}' is a real number without a step: declare it in steps, such as Real({feature.name!r}"
                f", {feature.lower:g}, {feature.upper:g}, step=0.01), or compose it of trees only, or of others only.",
                operation="a mixture over real numbers",
            )


def _precision(form: Form, arithmetic: Columns) -> Precision:
    if isinstance(form, Ensemble):
        return form.summation.precision
    if isinstance(form, Mixture) and any(one.summation.precision == "float32" for one in form.ensembles):
        return "float32"
    return "float32" if "float32" in arithmetic.dtypes else "float64"


# ---------------------------------------------------------------------- what it reads


def _leaves(estimator: Any) -> Iterator[tuple[Front, Any]]:
    """The estimators that a composed one is made of, each with the transformers inside it."""
    front, inner = parts_of(best_of(estimator))
    if sklearn_name(inner, COMPOSED) is None:
        check_fitted(inner, inner)
        yield front, inner
        return
    parts = [part.estimator for part in getattr(inner, "calibrated_classifiers_", ())]
    parts = parts or [one for one in getattr(inner, "estimators_", ()) if not isinstance(one, str)]
    for part in parts or [getattr(inner, "estimator_", None) or inner.estimator]:
        for more, leaf in _leaves(part):
            yield [*front, *more], leaf


def _source(front: Front, estimator: Any, arithmetic: Columns) -> Source:
    """The table that the whole reads: the user's own values where transformers come first, or by its names."""
    inside = list(_leaves(estimator))
    first = [step for _, step in front[:1]] + [steps[0][1] for steps, _ in inside if steps]
    holders = [*first, estimator, *(leaf for _, leaf in inside)]
    schema = arithmetic.schema
    names = next((found for one in holders if (found := getattr(one, "feature_names_in_", None)) is not None), None)
    count = next((int(one.n_features_in_) for one in holders if hasattr(one, "n_features_in_")), len(schema.columns))
    own = names is not None and set(names) <= set(schema.names) and not set(names) <= set(schema.columns)
    return source_by(names, count, arithmetic, raw=bool(first) or own)


def _bound_trees(source: Source, arithmetic: Columns, estimator: Any, front: Front) -> tuple[Any, Ensemble] | None:
    """The trees of an estimator behind transformers, over the features of the schema."""
    from ifonly.model.importers.trees import bound_to_features, read_trees

    found = read_trees(estimator, arithmetic.schema)
    return None if found is None else (found, bound_to_features(found, source, front, arithmetic)[1])
