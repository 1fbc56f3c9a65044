"""ONNX's operations that reduce, pool, select columns or change shapes, each as an operation of the flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ifonly.model.flow import Flow
from ifonly.model.importers import flow_operations as flows
from ifonly.model.importers.onnx_operations import OnnxCall
from ifonly.model.importers.shaped import Pooling, Reduction, Shaped, pooled, reduced


def _reduction(how: Reduction) -> Callable[..., Any]:
    def handle(call: OnnxCall, x: Any, axes: Any = None) -> Any:
        return flows.reduce(call, x, call.listed("axes", axes), how, keep=bool(call.attributes.get("keepdims", 1)))

    return handle


def _max_pool(call: OnnxCall, x: Any) -> Any:
    size, attributes = call.attributes["kernel_shape"], call.attributes
    if (
        len(size) != 1
        or attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID")
        or not isinstance(x, Shaped)
    ):
        raise call.refuse("pools in more than one dimension, or pads by a rule of its own")
    pads = attributes.get("pads", [0, 0])
    pool = Pooling(
        size=size[0], stride=attributes.get("strides", [1])[0], before=pads[0], after=pads[1],
        dilation=attributes.get("dilations", [1])[0], ceil=bool(attributes.get("ceil_mode", 0)),
    )  # fmt: skip
    return pooled(x, pool, name=call.name)


def _global_max_pool(call: OnnxCall, x: Any) -> Any:
    if not isinstance(x, Shaped) or len(x.shape) != 2:
        raise call.refuse("pools in more than one dimension")
    return reduced(x, 1, "max", keep=True, name=call.name)


def _slice(call: OnnxCall, x: Flow, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Flow:
    arguments = [call.attributes.get(name) if part is None else part
             for name, part in (("starts", starts), ("ends", ends), ("axes", axes), ("steps", steps))]  # fmt: skip
    first, last, axis, step = (None if part is None else np.ravel(part).tolist() for part in arguments)
    if axis is None or len(axis) != 1 or axis[0] not in (1, -1) or first is None or last is None:
        raise call.refuse("selects rows")
    return flows.select(call, x, slice(first[0], last[0], None if step is None else step[0]))


def _gather(call: OnnxCall, x: Flow, indices: Any) -> Flow:
    if call.attributes.get("axis", 0) not in (1, -1) or np.ndim(indices) > 1:
        raise call.refuse("selects rows")
    return flows.select(call, x, np.ravel(indices))


def _split(call: OnnxCall, x: Flow, sizes: Any = None) -> tuple[Flow, ...]:
    return flows.split(call, x, call.listed("split", sizes), call.attributes.get("axis", 0))


def _reshape(call: OnnxCall, x: Any, shape: Any = None) -> Any:
    """To (rows, ...): 0 keeps the size of an axis."""
    sizes = call.listed("shape", shape)
    own = x.shape if isinstance(x, Shaped) else (x.width,)
    rest = [own[i] if size == 0 and i < len(own) else size for i, size in enumerate(sizes[1:])]
    return flows.reshape(call, x, "same" if sizes[:1] == [0] else next(iter(sizes), None), rest)


def _flatten(call: OnnxCall, x: Any) -> Any:
    return flows.flatten(call, x, call.attributes.get("axis", 1))


def _unsqueeze(call: OnnxCall, x: Any, axes: Any = None) -> Any:
    return flows.unsqueeze(call, x, call.listed("axes", axes))


def _squeeze(call: OnnxCall, x: Any, axes: Any = None) -> Any:
    listed = call.listed("axes", axes)
    if not isinstance(x, Shaped) and (x.width != 1 or any(axis not in (1, -1) for axis in listed)):
        raise call.refuse("removes a dimension that may hold rows")
    return flows.squeeze(call, x, listed)


SHAPE_HANDLERS: dict[str, Callable[..., Any]] = {
    "ReduceMax": _reduction("max"),
    "ReduceMin": _reduction("min"),
    "ReduceSum": _reduction("sum"),
    "ReduceMean": _reduction("mean"),
    "MaxPool": _max_pool,
    "GlobalMaxPool": _global_max_pool,
    "Slice": _slice,
    "Gather": _gather,
    "Split": _split,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
}
