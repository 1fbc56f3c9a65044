"""Keras 3, with any backend: Sequential and functional models of dense layers, ReLU and what is linear around them.

The model is cloned, so that later training does not change what was imported, and read node by node from its graph. A
sigmoid or softmax at the very end is taken off: the score is the logit before it, by a model that shares the cloned
layers, and the probabilities still decide ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import keras
import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.agreement import ROWS, check_agreement, comparison_rows
from ifonly.model.flow import Flow
from ifonly.model.importers.probabilities import check_final, reported, settled
from ifonly.model.kind import Precision
from ifonly.model.model import Model, class_names, describe_columns
from ifonly.schema import Schema

Floats = NDArray[np.float64]
Ends = Literal["sigmoid", "softmax"]
ENDS: dict[Any, Ends] = {
    keras.activations.sigmoid: "sigmoid",
    keras.activations.softmax: "softmax",
    keras.activations.log_softmax: "softmax",
}
PART = 4096
"""Rows that the model is asked about at a time."""


def import_keras(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A Keras model that maps (rows, columns) to (rows, outputs) as a Model."""
    if not isinstance(model, keras.Model):
        raise ModelError(f"A Keras model must be a keras.Model; got {type(model).__name__}, a part of one.")
    graph = _graph(model)
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise UnsupportedModel(
            f"The Keras model has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs; only one table of "
            f"columns and one of scores are supported.",
            operation="several inputs or outputs",
        )
    shape = graph.inputs[0].shape
    if len(shape) != 2 or shape[1] != len(schema.columns):
        raise ModelError(f"The Keras model takes rows of shape {tuple(shape[1:])}, but {describe_columns(schema)}.")
    clone = _cloned(model, schema)
    value = _KerasReader(_graph(clone)).read(Flow.of(len(schema.columns)))
    final = value if isinstance(value, KerasFinal) else None
    flow = value.flow if isinstance(value, KerasFinal) else value
    if final is not None:
        check_final(final.operation, final.activation, flow.width, regression=regression)
    network = flow.finish()
    names = class_names(classes, network.outputs, regression=regression)
    original = KerasOriginal(clone, schema, None if final is None else _before(_graph(clone), final))
    return check_agreement(
        Model(
            function=network,
            schema=schema,
            original=original,
            classes=names,
            source=f"keras {type(model).__name__}",
            precision=_precision(clone),
            probabilities=None if final is None else reported(original, KerasOriginal(clone, schema), schema),
        )
    )


@dataclass(frozen=True)
class KerasOriginal:
    """The user's own model. `before` gives the logits when the model gives probabilities."""

    model: Any
    schema: Schema
    before: Any = None

    def __call__(self, points: Floats) -> Floats:
        rows = np.atleast_2d(self.schema.encode(points))
        given = _asked(self.model, rows)
        return given if self.before is None else settled(_asked(self.before, rows), given)


def _asked(model: Any, rows: Floats) -> Floats:
    given = model.predict(rows.astype(str(model.inputs[0].dtype)), batch_size=PART, verbose=0)
    return np.asarray(given, dtype=np.float64).reshape(len(rows), -1)


# ---------------------------------------------------------------------- taking the object apart


def _graph(model: Any) -> Any:
    """The functional model that says what is computed from what."""
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


def _cloned(model: Any, schema: Schema) -> Any:
    """The same model with weights of its own, compared with the user's."""
    for layer in _layers(
        model
    ):  # before anything is cloned: cloning makes layers anew from what they say of themselves
        if type(layer) not in LAYERS and not isinstance(layer, keras.Model):
            raise _refused(layer)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for layer in _layers(clone):
        if isinstance(layer, keras.layers.Normalization) and layer.input_mean is None:
            layer.finalize_state()
    rows = np.atleast_2d(schema.encode(comparison_rows(schema, ROWS, seed=3)))
    if not np.array_equal(_asked(clone, rows), _asked(model, rows), equal_nan=True):
        raise ModelError("A copy of the Keras model does not compute what the model does; is a layer changed by code?")
    return clone


def _layers(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False))


def _refused(layer: Any, why: str = "") -> UnsupportedModel:
    name = type(layer).__name__
    reason = why or (
        "is not supported: only dense layers, ReLU, batch normalisation and what is linear have an exact "
        "piecewise-linear form here"
    )
    return UnsupportedModel(f"The layer {name} ('{layer.name}') of the Keras model {reason}.", operation=name)


def _precision(model: Any) -> Precision:
    kinds = {str(layer.compute_dtype) for layer in _layers(model)} | {str(model.inputs[0].dtype)}
    for kind in kinds - {"float32", "float64"}:
        raise UnsupportedModel(
            f"The Keras model computes in {kind}, which is not supported; use float32.", operation=kind
        )
    return "float64" if kinds == {"float64"} else "float32"


# ---------------------------------------------------------------------- the graph


@dataclass(frozen=True)
class KerasFinal:
    """The value of an activation that may only stand at the end: of this layer, which was given this tensor."""

    flow: Flow
    layer: Any
    given: Any
    activation: Ends

    @property
    def operation(self) -> str:
        return f"{type(self.layer).__name__} ({self.layer.name})"


@dataclass(frozen=True)
class _KerasReader:
    """Walks the nodes of a functional model."""

    graph: Any
    inner: bool = False

    def read(self, flow: Flow) -> Flow | KerasFinal:
        values: dict[int, Any] = {id(self.graph.inputs[0]): flow}
        for depth in sorted(self.graph._nodes_by_depth, reverse=True):
            for node in self.graph._nodes_by_depth[depth]:
                if not node.is_input:
                    values[id(node.outputs[0])] = self._node(node, values)
        result: Flow | KerasFinal = values[id(self.graph.outputs[0])]
        return result

    def _node(self, node: Any, values: dict[int, Any]) -> Any:
        layer = node.operation
        given = [values[id(tensor)] for tensor in node.arguments.keras_tensors]
        if any(isinstance(value, KerasFinal) for value in given) and type(layer) not in SAME:
            raise _refused(layer, "follows a sigmoid or softmax, which may only come last")
        if isinstance(layer, keras.Model):
            return _KerasReader(_graph(layer), inner=True).read(given[0])
        if type(layer) not in LAYERS:
            raise _refused(layer)
        made = LAYERS[type(layer)](layer, *given)
        if type(layer) is keras.layers.Softmax:
            return self._final(made, node, "softmax")
        activation = getattr(layer, "activation", keras.activations.linear)
        if activation in ENDS:
            return self._final(made, node, ENDS[activation])
        if activation is keras.activations.relu:
            return made.relu()
        if activation is not keras.activations.linear:
            name = getattr(activation, "__name__", str(activation))
            raise _refused(layer, f"has the activation {name}, which has no exact piecewise-linear form here")
        return made

    def _final(self, flow: Flow, node: Any, activation: Ends) -> KerasFinal:
        if self.inner:
            raise _refused(node.operation, "ends a model inside the model with a sigmoid or softmax; put it outside")
        return KerasFinal(flow, node.operation, node.arguments.keras_tensors[0], activation)


def _before(graph: Any, final: KerasFinal) -> Any:
    """The model up to the logits: without the last activation, or with a last dense layer that has none."""
    logits = final.given
    if isinstance(final.layer, keras.layers.Dense):
        config = {**final.layer.get_config(), "activation": "linear", "name": f"{final.layer.name}_logits"}
        dense = keras.layers.Dense.from_config(config)
        logits = dense(final.given)
        dense.set_weights(final.layer.get_weights())
    return keras.Model(graph.inputs, logits)


# ---------------------------------------------------------------------- layers


def _numbers(values: Any) -> Floats:
    return np.asarray(keras.ops.convert_to_numpy(values), dtype=np.float64)


def _dense(layer: Any, flow: Flow) -> Flow:
    if getattr(layer, "quantization_mode", None):
        raise _refused(layer, "is quantised")
    bias = _numbers(layer.bias) if layer.use_bias else None
    return flow.linear(_numbers(layer.kernel).T, bias, name=layer.name)


def _batch_normalization(layer: Any, flow: Flow) -> Flow:
    if layer.axis not in (1, -1):
        raise _refused(layer, "normalises rows by one another")
    mean, scale = _numbers(layer.moving_mean), 1.0 / np.sqrt(_numbers(layer.moving_variance) + layer.epsilon)
    scale = scale * _numbers(layer.gamma) if layer.scale else scale
    shift = _numbers(layer.beta) if layer.center else np.zeros_like(mean)
    return flow.scale(scale, shift - mean * scale, name=layer.name, size_shift=np.abs(mean * scale) + np.abs(shift))


def _normalization(layer: Any, flow: Flow) -> Flow:
    if layer.invert or layer.axis not in ((-1,), (1,), -1, 1, (), None):
        raise _refused(layer, "is inverted, or normalises along the rows")
    mean, variance = np.ravel(_numbers(layer.mean)), np.ravel(_numbers(layer.variance))
    scale = 1.0 / np.maximum(np.sqrt(variance), keras.config.epsilon())
    return flow.scale(1.0, -mean, name=layer.name).scale(scale, name=layer.name)


def _rescaling(layer: Any, flow: Flow) -> Flow:
    return flow.scale(_numbers(layer.scale), name=layer.name).scale(1.0, _numbers(layer.offset), name=layer.name)


def _relu(layer: Any, flow: Flow) -> Flow:
    if layer.max_value is not None or np.any(layer.negative_slope) or np.any(layer.threshold):
        raise _refused(layer, "is a ReLU with a ceiling, a slope or a threshold, which is not supported")
    return flow.relu()


def _softmax(layer: Any, flow: Flow) -> Flow:
    if layer.axis not in (1, -1):
        raise _refused(layer, "compares rows with one another")
    return flow


def _add(layer: Any, *flows: Flow) -> Flow:
    total = flows[0]
    for flow in flows[1:]:
        total = total.plus(flow, name=layer.name)
    return total


def _concatenate(layer: Any, *flows: Flow) -> Flow:
    if layer.axis not in (1, -1):
        raise _refused(layer, "joins rows")
    return flows[0].joined(flows[1:], name=layer.name)


def _same(layer: Any, flow: Any) -> Any:
    return flow


SAME = (
    keras.layers.Dropout,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
    keras.layers.AlphaDropout,
    keras.layers.ActivityRegularization,
    keras.layers.Identity,
    keras.layers.Flatten,
    keras.layers.InputLayer,
)
LAYERS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(SAME, _same),
    keras.layers.Dense: _dense,
    keras.layers.Activation: _same,
    keras.layers.BatchNormalization: _batch_normalization,
    keras.layers.Normalization: _normalization,
    keras.layers.Rescaling: _rescaling,
    keras.layers.ReLU: _relu,
    keras.layers.Softmax: _softmax,
    keras.layers.Add: _add,
    keras.layers.Concatenate: _concatenate,
}
"""By the very class: a subclass may compute something else."""
