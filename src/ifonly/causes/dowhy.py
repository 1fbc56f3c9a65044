"""Causal models of DoWhy (`gcm.InvertibleStructuralCausalModel`), fitted: their graph, and the regression of each node.

A node with causes has an `AdditiveNoiseModel`, x = f(causes) + u, whose f is a model of scikit-learn of its causes in
the order of their names; one without causes has a distribution, of which a person's own value is all that counts.
DoWhy is not imported: what is given is read by its attributes.
"""

from __future__ import annotations

from typing import Any

from ifonly.causes.equations import ModelEquation
from ifonly.causes.graphs import graph_of
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.printing import shown
from ifonly.schema import Choice, Feature, Schema

ADDITIVE = "AdditiveNoiseModel"


def equations_of_dowhy(model: Any, schema: Any) -> dict[str, ModelEquation]:
    """The equations of a fitted model of DoWhy, about features of a schema."""
    if not isinstance(schema, Schema):
        raise ModelError(f"Say what a row is with a Schema; got {shown(schema)}.")
    if not hasattr(model, "graph") or not callable(getattr(model, "causal_mechanism", None)):
        raise ModelError(
            f"A causal model of DoWhy is a fitted gcm.InvertibleStructuralCausalModel; got "
            f"{shown(type(model).__name__)}."
        )
    found = {}
    for name, parents in graph_of(model.graph, schema).items():
        try:
            mechanism = model.causal_mechanism(name)
        except KeyError:
            raise ModelError(
                f"'{name}' has no causal mechanism yet; assign one (gcm.auto.assign_causal_mechanisms) and fit the "
                f"model (gcm.fit)."
            ) from None
        causes = tuple(sorted(parents))
        found[name] = ModelEquation(causes, _regression(name, mechanism, [schema[one] for one in causes]))
    return found


def _regression(name: str, mechanism: Any, causes: list[Feature]) -> Any:
    """The model of scikit-learn of a mechanism."""
    kind = type(mechanism).__name__
    if kind != ADDITIVE:
        raise UnsupportedModel(
            f"The causal mechanism of '{name}' is a {kind}; give it an {ADDITIVE} with a regression, so that it is a "
            f"function of its causes plus noise.",
            operation=kind,
        )
    predicts = mechanism.prediction_model
    regression = getattr(predicts, "sklearn_model", None)
    if regression is None:
        raise UnsupportedModel(
            f"The causal mechanism of '{name}' predicts by a {type(predicts).__name__}; supported are regressions of "
            f"scikit-learn, such as gcm.ml.create_linear_regressor().",
            operation=type(predicts).__name__,
        )
    encoders = getattr(predicts, "_encoders", None) or {}
    for k, feature in enumerate(causes):
        _check_columns(name, feature, encoders.get(k))
    return regression


def _check_columns(name: str, feature: Feature, encoder: Any) -> None:
    """Raise unless a cause has the columns in the schema that the regression reads."""
    if encoder is None:
        if len(feature.column_names) > 1:
            raise ModelError(
                f"In the mechanism of '{name}', '{feature.name}' is one number, but in the schema it has "
                f"{len(feature.column_names)} columns; make it a number, or ordinal with encoding='code'."
            )
        return
    options = list(encoder.categories_[0]) if hasattr(encoder, "categories_") else []
    good = isinstance(feature, Choice) and feature.encoding == "onehot" and list(feature.options) == options
    if not good:
        raise ModelError(
            f"In the mechanism of '{name}', '{feature.name}' has a column for each of {shown(options)}; make it "
            f"Categorical with these options, in this order, and encoding='onehot'."
        )
