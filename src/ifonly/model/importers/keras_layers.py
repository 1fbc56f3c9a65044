"""Keras's layers and activations, each as an operation of the flow (`flow_operations`).

A layer is the operation of its class, then its activation. Tables at the end are by the exact class or function: a
subclass may compute something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import keras
import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers import flow_operations as flows
from ifonly.model.importers.column_flow import looked_up
from ifonly.model.importers.column_tables import ColumnTable
from ifonly.model.importers.flow_operations import Final, OperationCall, as_inner
from ifonly.model.importers.shaped import Pooling, Shaped, in_shape, pooled

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KerasCall(OperationCall):
    """A layer of a Keras model."""

    framework: ClassVar[str] = "Keras model"
    noun: ClassVar[str] = "layer"

    layer: Any

    @classmethod
    def of(cls, layer: Any) -> KerasCall:
        return cls(layer.name, type(layer).__name__, layer)

    def number(self, value: Any) -> Floats:
        """A constant as the layer takes it: in the precision that it computes in."""
        return np.asarray(value, dtype=str(self.layer.compute_dtype)).astype(np.float64)

    def unsupported(self) -> UnsupportedModel:
        return self.refuse(
            "is not supported: only dense layers, ReLU and its piecewise-linear relatives, smooth activations, maxima, "
            "sums, batch normalisation and what is linear are"
        )


def read_layer(layer: Any, values: Sequence[Any], tensor: Any, more: Sequence[Any] = ()) -> Any:
    """The value of a layer; `tensor` is its first input, before which a last activation is taken off; `more`: what an
    operation takes beside values."""
    call, handler = KerasCall.of(layer), LAYERS.get(type(layer))
    if handler is None and type(layer).__name__ == "GetItem":
        return _selected(call, values[0], *more)
    if handler is None:
        raise call.unsupported()
    if handler not in OF_TABLES:
        values = [value.flow(call.name) if isinstance(value, ColumnTable) else value for value in values]
    if handler not in AFTER_FINAL:
        values = [as_inner(value) for value in values]
        if any(isinstance(value, Final) for value in values):
            raise call.refuse("follows a softmax, which may only come last")
    try:
        value = handler(call, *values)
        activation = getattr(layer, "activation", keras.activations.linear)
        if type(layer) is keras.layers.Softmax or activation in SOFTMAX:
            return flows.last_softmax(call, value, (layer, tensor), getattr(layer, "axis", -1))
        if activation is keras.activations.sigmoid:
            return flows.last_sigmoid(call, value, (layer, tensor))
        if activation not in ACTIVATIONS:
            name = getattr(activation, "__name__", str(activation))
            raise call.refuse(f"has the activation {name}, which is not supported")
        return ACTIVATIONS[activation](call, value)
    except (TypeError, AttributeError, IndexError) as error:
        raise call.refuse(f"is used in a way that is not supported ({error})") from None


def _selected(call: KerasCall, value: Any, index: Any) -> Any:
    """x[:, i], x[:, a:b] of columns or of a row's values."""
    if not isinstance(index, tuple) or len(index) != 2 or index[0] not in (slice(None), Ellipsis):
        raise call.refuse("selects rows")
    if isinstance(value, ColumnTable) and not value.flat:
        chosen = np.arange(len(value.columns))[index[1]]
        return value.of([value.columns[j] for j in np.atleast_1d(chosen).tolist()], flat=chosen.ndim == 0)
    if not isinstance(value, Flow) or not isinstance(index[1], slice):
        raise call.refuse("selects one value of each row, or of values in another shape; select a slice, x[:, i:i + 1]")
    return value.select(np.arange(value.width)[index[1]].tolist(), name=call.name)


def _embedding(call: KerasCall, table: Any) -> Any:
    """The row of the weights whose number each column is."""
    layer = call.layer
    if layer.mask_zero or getattr(layer, "quantization_mode", None) or getattr(layer, "lora_enabled", False):
        raise call.refuse("masks zeros, is quantised or adapted (mask_zero, quantize, enable_lora); build it without")
    if not isinstance(table, ColumnTable):
        raise call.refuse("looks up what a layer computes; give it the column of a Categorical or Integer feature")
    weight = _numbers(layer.embeddings)
    found = [one for column in table.columns for one in looked_up(column, weight, table.arithmetic, call.name)]
    flow = table.of(found).flow(call.name)
    return flow if table.flat else in_shape(flow, (len(table.columns), weight.shape[1]))


def _normalises(call: KerasCall, value: Any) -> Any:
    raise call.refuse(
        "divides the values of a row by their own deviation, which has no exact form here; train with "
        "BatchNormalization instead, which is a scaling by fixed numbers when it predicts"
    )


def _numbers(values: Any) -> Floats:
    return np.asarray(keras.ops.convert_to_numpy(values), dtype=np.float64)


def _dense(call: KerasCall, value: Flow) -> Flow:
    if getattr(call.layer, "quantization_mode", None):
        raise call.refuse("is quantised")
    bias = _numbers(call.layer.bias) if call.layer.use_bias else None
    return flows.matmul(call, value, _numbers(call.layer.kernel), bias)


def _batch_normalization(call: KerasCall, value: Flow) -> Flow:
    layer = call.layer
    if layer.axis not in (1, -1):
        raise call.refuse("normalises rows by one another")
    return flows.batch_normalization(
        call,
        value,
        mean=_numbers(layer.moving_mean),
        deviation=np.sqrt(_numbers(layer.moving_variance) + layer.epsilon),
        factor=_numbers(layer.gamma) if layer.scale else 1.0,
        shift=_numbers(layer.beta) if layer.center else 0.0,
    )


def _normalization(call: KerasCall, value: Flow) -> Flow:
    layer = call.layer
    if layer.invert or layer.axis not in ((-1,), (1,), -1, 1, (), None):
        raise call.refuse("is inverted, or normalises along the rows")
    mean, variance = np.ravel(_numbers(layer.mean)), np.ravel(_numbers(layer.variance))
    scale = 1.0 / np.maximum(np.sqrt(variance), keras.config.epsilon())
    return flows.multiply(call, flows.subtract(call, value, mean), scale)


def _rescaling(call: KerasCall, value: Flow) -> Flow:
    return flows.add(call, flows.multiply(call, value, _numbers(call.layer.scale)), _numbers(call.layer.offset))


def _relu(call: KerasCall, value: Flow) -> Flow:
    """slope z below 0, z above, at most `max_value`."""
    layer = call.layer
    if np.any(layer.threshold):
        raise call.refuse("jumps at its threshold, which is not supported")
    leaky = flows.leaky_relu(call, value, call.number(layer.negative_slope))
    return leaky if layer.max_value is None else flows.clip(call, leaky, most=call.number(layer.max_value))


def _leaky_relu(call: KerasCall, value: Flow) -> Flow:
    return flows.leaky_relu(call, value, call.number(call.layer.negative_slope))


def _prelu(call: KerasCall, value: Flow) -> Flow:
    return flows.leaky_relu(call, value, _numbers(call.layer.alpha))


def _elu(call: KerasCall, value: Flow) -> Flow:
    return flows.elu(call, value, call.layer.alpha)


def _concatenate(call: KerasCall, *values: Flow) -> Flow:
    return flows.concatenate(call, values, call.layer.axis)


def _activation_alone(call: KerasCall, value: Flow) -> Flow:
    return value


def _flatten(call: KerasCall, value: Any) -> Any:
    if isinstance(value, Shaped) and call.layer.data_format == "channels_first":
        raise call.refuse("moves channels while it flattens")
    return flows.flatten(call, value)


def _reshape(call: KerasCall, value: Any) -> Any:
    return flows.reshape(call, value, "same", list(call.layer.target_shape))


def _max_pooling(call: KerasCall, value: Any) -> Any:
    layer = call.layer
    if layer.padding != "valid" or not isinstance(value, Shaped) or len(value.shape) != 2:
        raise call.refuse("pools in more than one dimension, or pads by a rule of its own")
    pool = Pooling(size=layer.pool_size[0], stride=layer.strides[0])
    return _steps_last(call, value, lambda lines: pooled(lines, pool, name=call.name))


def _steps_last(call: KerasCall, value: Shaped, operation: Callable[[Any], Any]) -> Any:
    """An operation on the last axis, for values of which the steps are the first axis, unless channels are."""
    if call.layer.data_format == "channels_first":
        return operation(value)
    return _transposed(call, operation(_transposed(call, value)))


def _transposed(call: KerasCall, value: Shaped) -> Shaped:
    order = np.arange(value.width).reshape(value.shape).T
    return Shaped(value.flow.select(order.ravel().tolist(), name=call.name), order.shape)


def _global_max_pooling(call: KerasCall, value: Any) -> Any:
    axis = 2 if call.layer.data_format == "channels_first" else 1
    if not isinstance(value, Shaped) or len(value.shape) != 2:
        raise call.refuse("pools in more than one dimension")
    return flows.reduce(call, value, [axis], "max", keep=call.layer.keepdims)


SOFTMAX = (keras.activations.softmax, keras.activations.log_softmax)
ACTIVATIONS: dict[Any, Callable[..., Any]] = {
    keras.activations.linear: flows.identity,
    keras.activations.relu: flows.relu,
    keras.activations.tanh: flows.smooth("tanh"),
    keras.activations.silu: flows.smooth("silu"),
    keras.activations.gelu: flows.smooth("gelu"),
    keras.activations.elu: flows.elu,
    keras.activations.softplus: flows.softplus,
    keras.activations.hard_sigmoid: flows.hard_sigmoid,
    keras.activations.relu6: lambda call, value: flows.clip(call, value, 0.0, 6.0),
    keras.activations.leaky_relu: lambda call, value: flows.leaky_relu(call, value, call.number(0.2)),
}
"""With the parameters that an activation has by its name."""

AFTER_FINAL: tuple[Callable[..., Any], ...] = (flows.identity, _flatten, _reshape)
"""Those that may follow a last sigmoid or softmax."""

LAYERS: dict[Any, Callable[..., Any]] = {
    keras.layers.Dropout: flows.identity,
    keras.layers.GaussianDropout: flows.identity,
    keras.layers.GaussianNoise: flows.identity,
    keras.layers.AlphaDropout: flows.identity,
    keras.layers.ActivityRegularization: flows.identity,
    keras.layers.Identity: flows.identity,
    keras.layers.InputLayer: flows.identity,
    keras.layers.Flatten: _flatten,
    keras.layers.Reshape: _reshape,
    keras.layers.Activation: _activation_alone,
    keras.layers.Softmax: _activation_alone,
    keras.layers.Dense: _dense,
    keras.layers.BatchNormalization: _batch_normalization,
    keras.layers.Normalization: _normalization,
    keras.layers.Rescaling: _rescaling,
    keras.layers.ReLU: _relu,
    keras.layers.LeakyReLU: _leaky_relu,
    keras.layers.PReLU: _prelu,
    keras.layers.ELU: _elu,
    keras.layers.Add: flows.total,
    keras.layers.Subtract: flows.subtract,
    keras.layers.Average: flows.average,
    keras.layers.Maximum: flows.maximum,
    keras.layers.Minimum: flows.minimum,
    keras.layers.Concatenate: _concatenate,
    keras.layers.MaxPooling1D: _max_pooling,
    keras.layers.GlobalMaxPooling1D: _global_max_pooling,
    keras.layers.Embedding: _embedding,
    keras.layers.LayerNormalization: _normalises,
    keras.layers.GroupNormalization: _normalises,
    keras.layers.UnitNormalization: _normalises,
}

OF_TABLES: tuple[Callable[..., Any], ...] = (_embedding, flows.identity)
"""Those that take columns before they are values of a network."""
