"""Keras 3 importer, for any backend: Sequential and functional models of dense layers and activations.

The model is cloned, so that later training does not change what was imported, and read node by node from its graph. A
sigmoid or softmax at the very end is taken off: the score is the logit before it, by a model that shares the cloned
layers, and the probabilities still decide ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.agreement import ROWS, comparison_rows
from ifonly.model.flow import Flow
from ifonly.model.importers.flow_operations import Final, as_inner
from ifonly.model.importers.keras_inputs import KerasInputs, is_embedding, keras_inputs
from ifonly.model.importers.keras_layers import LAYERS, KerasCall, read_layer
from ifonly.model.importers.probabilities import model_of_flow, settled
from ifonly.model.kind import Precision
from ifonly.model.model import Model
from ifonly.schema import Schema

Floats = NDArray[np.float64]
PART = 4096
"""Rows per batch of `predict`."""


def import_keras(
    model: Any,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    inputs: dict[str, Any] | None = None,
) -> Model:
    """A Keras model that maps (rows, columns), or several inputs, to (rows, outputs) as a Model."""
    if not isinstance(model, keras.Model):
        raise ModelError(f"A Keras model must be a keras.Model; got {type(model).__name__}, a part of one.")
    graph = _graph(model)
    _check_outputs(graph)
    taken = keras_inputs(graph, schema, inputs or {})
    clone = _cloned(model, taken)
    value = _KerasReader(_graph(clone)).read(taken.tables(looks_up=any(map(is_embedding, _layers(clone)))))
    if not isinstance(value, Flow | Final):
        raise UnsupportedModel("The Keras model must return one row of scores.", operation="output")
    before = _before(_graph(clone), value) if isinstance(value, Final) else None
    original, source = KerasOriginal(clone, taken, _precision(clone), before), f"keras {type(model).__name__}"
    return model_of_flow(value, original, schema, classes=classes, regression=regression, source=source)


@dataclass(frozen=True)
class KerasOriginal:
    """The user's own model. `before` gives the logits when the model gives probabilities."""

    model: Any
    inputs: KerasInputs
    precision: Precision
    before: Any = None

    def __call__(self, points: Floats) -> Floats:
        given = _predicted(self.model, self.inputs, points)
        return given if self.before is None else settled(_predicted(self.before, self.inputs, points), given)


def _predicted(model: Any, inputs: KerasInputs, points: Floats) -> Floats:
    given = model.predict(inputs.arguments(model, points), batch_size=PART, verbose=0)
    return np.asarray(given, dtype=np.float64).reshape(len(points), -1)


# ---------------------------------------------------------------------- taking the object apart


def _graph(model: Any) -> Any:
    """The functional form of the model, with its graph of nodes."""
    if isinstance(model, keras.Sequential):
        if not model.built or model._functional is None:
            raise ModelError("The Keras model is not built yet; give it an Input layer, or call it on some rows.")
        return model._functional
    if not hasattr(model, "_nodes_by_depth"):
        raise UnsupportedModel(
            f"{type(model).__name__} computes by code of its own, which cannot be read; build it as a Sequential or "
            f"functional Keras model.",
            operation=type(model).__name__,
        )
    return model


def _check_outputs(graph: Any) -> None:
    if len(graph.outputs) != 1:
        raise UnsupportedModel(
            f"The Keras model has {len(graph.outputs)} outputs; make one of them a model of its own, "
            f"keras.Model(model.inputs, model.outputs[0]), and import that.",
            operation="several outputs",
        )


def _cloned(model: Any, inputs: KerasInputs) -> Any:
    """The same model with weights of its own, compared with the user's."""
    for layer in _layers(
        model
    ):  # before anything is cloned: cloning makes layers anew from what they say of themselves
        if type(layer) not in LAYERS and not isinstance(layer, keras.Model):
            raise KerasCall.of(layer).unsupported()
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for layer in _layers(clone):
        if isinstance(layer, keras.layers.Normalization) and layer.input_mean is None:
            layer.finalize_state()
    rows = comparison_rows(inputs.schema, ROWS, seed=3)
    if not np.array_equal(_predicted(clone, inputs, rows), _predicted(model, inputs, rows), equal_nan=True):
        raise ModelError("A copy of the Keras model does not compute what the model does; is a layer changed by code?")
    return clone


def _layers(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False))


def _precision(model: Any) -> Precision:
    kinds = {str(layer.compute_dtype) for layer in _layers(model)}
    kinds |= {kind for tensor in model.inputs if "int" not in (kind := str(tensor.dtype)) and kind != "bool"}
    for kind in kinds - {"float32", "float64"}:
        raise UnsupportedModel(
            f"The Keras model computes in {kind}, which rounds too coarsely to tell nearby rows apart; build it once "
            f"more after keras.config.set_dtype_policy('float32'), give it the weights (set_weights(model."
            f"get_weights())), and decide with that model.",
            operation=kind,
        )
    return "float64" if kinds == {"float64"} else "float32"


# ---------------------------------------------------------------------- the graph


@dataclass(frozen=True)
class _KerasReader:
    """Walks the nodes of a functional model."""

    graph: Any
    inner: bool = False

    def read(self, given: Sequence[Any]) -> Any:
        values: dict[int, Any] = {id(tensor): value for tensor, value in zip(self.graph.inputs, given, strict=True)}
        for depth in sorted(self.graph._nodes_by_depth, reverse=True):
            for node in self.graph._nodes_by_depth[depth]:
                if not node.is_input:
                    values[id(node.outputs[0])] = self._node(node, values)
        return values[id(self.graph.outputs[0])]

    def _node(self, node: Any, values: dict[int, Any]) -> Any:
        layer, tensors = node.operation, node.arguments.keras_tensors
        given = [values[id(tensor)] for tensor in tensors]
        if isinstance(layer, keras.Model):
            inner = [as_inner(value) for value in given]
            if any(isinstance(value, Final) for value in inner):
                raise KerasCall.of(layer).refuse("follows a softmax, which may only come last")
            return _KerasReader(_graph(layer), inner=True).read(inner)
        result = read_layer(layer, given, tensors[0], node.arguments.args[1:])
        if self.inner and isinstance(result, Final):
            raise KerasCall.of(layer).refuse("ends a model inside the model with a sigmoid or softmax; put it outside")
        return result


def _before(graph: Any, final: Final) -> Any:
    """The model up to the logits: without the last activation, or with a last dense layer that has none."""
    layer, logits = final.source
    if isinstance(layer, keras.layers.Dense):
        config = {**layer.get_config(), "activation": "linear", "name": f"{layer.name}_logits"}
        dense = keras.layers.Dense.from_config(config)
        logits = dense(logits)
        dense.set_weights(layer.get_weights())
    return keras.Model(graph.inputs, logits)
