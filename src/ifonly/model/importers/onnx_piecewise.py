"""ONNX's piecewise-linear operations beside Relu: slopes, bounds, maxima, columns, and the shapes that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ifonly.model.flow import Flow
from ifonly.model.importers.onnx_operations import OnnxCall, OnnxFinal
from ifonly.model.importers.shaped import (
    Pooling,
    Reduction,
    Shaped,
    axis_of_row,
    flow_and_shape,
    of_one_width,
    pooled,
    reduced,
    reshaped,
    with_one,
    without_one,
)

UNSAID = float(np.float32(0.01)), float(np.float32(0.2))
"""The slopes of LeakyRelu and HardSigmoid that name none."""


# ---------------------------------------------------------------------- slopes and bounds


def _leaky_relu(call: OnnxCall, x: Flow) -> Flow:
    return x.bend(call.given.get("alpha", UNSAID[0]), name=call.name)


def _prelu(call: OnnxCall, x: Flow, slope: Any) -> Flow:
    if isinstance(slope, Flow):
        raise call.refuse("has slopes that depend on the row")
    return x.bend(np.ravel(np.float64(slope)), name=call.name)


def _absolute(call: OnnxCall, x: Flow) -> Flow:
    return x.bend(-1.0, name=call.name)


def _clip(call: OnnxCall, x: Flow, least: Any = None, most: Any = None) -> Flow:
    if isinstance(least, Flow) or isinstance(most, Flow):
        raise call.refuse("has bounds that depend on the row")
    lower = call.given.get("min", -np.inf) if least is None else np.ravel(np.float64(least))
    upper = call.given.get("max", np.inf) if most is None else np.ravel(np.float64(most))
    limit = float(np.finfo(np.float32).max)  # what older files say for no bound
    lower, upper = (np.where(np.abs(end) >= limit, np.sign(end) * np.inf, end) for end in (lower, upper))
    return x.clip(lower, upper, name=call.name)


def _hard_sigmoid(call: OnnxCall, x: Flow) -> Flow:
    alpha, beta = call.given.get("alpha", UNSAID[1]), call.given.get("beta", 0.5)
    return x.scale(alpha, beta, name=call.name).clip(0.0, 1.0, name=call.name)


def _thresholded_relu(call: OnnxCall, x: Flow) -> Flow:
    if call.given.get("alpha", 1.0) != 0.0:
        raise call.refuse("jumps at its threshold; only a continuous one is supported")
    return x.relu()


def _shrink(call: OnnxCall, x: Flow) -> Flow:
    bias, edge = call.given.get("bias", 0.0), call.given.get("lambd", 0.5)
    if bias != edge:
        raise call.refuse("jumps at its threshold; only a continuous one (bias = lambd) is supported")
    return x.plus(x.clip(-edge, edge, name=call.name), name=call.name, sign=-1.0)


# ---------------------------------------------------------------------- maxima, sums and columns


def _extreme(call: OnnxCall, terms: Sequence[Any], *, largest: bool) -> Flow:
    flows = [term for term in terms if isinstance(term, Flow)]
    found = flows[0]
    for flow in flows[1:]:
        one, other = of_one_width(found, flow, name=call.name)
        found = (one.larger if largest else one.smaller)(other, name=call.name)
    for term in terms:
        if not isinstance(term, Flow):
            bound = np.ravel(np.float64(term))
            found = found.clip(**({"lower": bound} if largest else {"upper": bound}), name=call.name)
    return found


def _max(call: OnnxCall, *terms: Any) -> Flow:
    return _extreme(call, terms, largest=True)


def _min(call: OnnxCall, *terms: Any) -> Flow:
    return _extreme(call, terms, largest=False)


def _reduction(how: Reduction) -> Callable[..., Any]:
    def handle(call: OnnxCall, x: Any, axes: Any = None) -> Any:
        listed = np.ravel(call.given.get("axes", []) if axes is None else axes).tolist()
        if len(listed) != 1:
            raise call.refuse("mixes rows with one another, or reduces several dimensions")
        return reduced(
            x, axis_of_row(call, x, listed[0]), how, keep=bool(call.given.get("keepdims", 1)), name=call.name
        )

    return handle


def _max_pool(call: OnnxCall, x: Any) -> Any:
    size, given = call.given["kernel_shape"], call.given
    if len(size) != 1 or given.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID") or not isinstance(x, Shaped):
        raise call.refuse("pools in more than one dimension, or pads by a rule of its own")
    pads = given.get("pads", [0, 0])
    pool = Pooling(
        size=size[0], stride=given.get("strides", [1])[0], before=pads[0], after=pads[1],
        dilation=given.get("dilations", [1])[0], ceil=bool(given.get("ceil_mode", 0)),
    )  # fmt: skip
    return pooled(x, pool, name=call.name)


def _global_max_pool(call: OnnxCall, x: Any) -> Any:
    if not isinstance(x, Shaped) or len(x.shape) != 2:
        raise call.refuse("pools in more than one dimension")
    return reduced(x, 1, "max", keep=True, name=call.name)


def _slice(call: OnnxCall, x: Flow, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Flow:
    given = [call.given.get(name) if part is None else part
             for name, part in (("starts", starts), ("ends", ends), ("axes", axes), ("steps", steps))]  # fmt: skip
    first, last, axis, step = (None if part is None else np.ravel(part).tolist() for part in given)
    if axis is None or len(axis) != 1 or axis[0] not in (1, -1) or first is None or last is None:
        raise call.refuse("selects rows")
    return x.pick(list(range(x.width))[slice(first[0], last[0], None if step is None else step[0])], name=call.name)


def _gather(call: OnnxCall, x: Flow, indices: Any) -> Flow:
    if call.given.get("axis", 0) not in (1, -1) or np.ndim(indices) > 1:
        raise call.refuse("selects rows")
    return x.pick(np.arange(x.width)[np.ravel(indices)].tolist(), name=call.name)


# ---------------------------------------------------------------------- shapes


def _reshape(call: OnnxCall, x: Any, shape: Any = None) -> Any:
    """To (rows, ...), or, for one value per row, to anything that keeps the rows."""
    sizes = np.ravel(call.given.get("shape", []) if shape is None else shape).tolist()
    if x.width == 1 and len(sizes) <= 2:
        return flow_and_shape(x)[0] if isinstance(x, Flow | Shaped) else x
    own = flow_and_shape(x)[1] if isinstance(x, Flow | Shaped) else (x.width,)
    rest = [own[i] if size == 0 and i < len(own) else size for i, size in enumerate(sizes[1:])]
    kept = bool(rest) and (sizes[0] == 0 or (sizes[0] == -1 and (-1 not in rest or rest == [-1])))
    if isinstance(x, OnnxFinal):
        result: Any = x if kept and rest in ([-1], [x.width]) else None
    else:
        result = reshaped(x, rest) if kept else None
    if result is None:
        raise call.refuse(f"changes the shape of the table to {sizes}")
    return result


def _flatten(call: OnnxCall, x: Any) -> Any:
    axis = call.given.get("axis", 1)
    if isinstance(x, Shaped) and axis == 1:
        return x.flow
    if isinstance(x, Shaped) or (axis not in (1, -1) and x.width != 1):
        raise call.refuse("mixes rows with one another")
    return x


def _unsqueeze(call: OnnxCall, x: Any, axes: Any = None) -> Any:
    listed = np.ravel(call.given.get("axes", []) if axes is None else axes).tolist()
    for axis in sorted(axis_of_row(call, x, axis, room=len(listed)) for axis in listed):
        x = with_one(x, axis)
    return x


def _squeeze(call: OnnxCall, x: Any, axes: Any = None) -> Any:
    listed = np.ravel(call.given.get("axes", []) if axes is None else axes).tolist()
    if isinstance(x, Shaped) and listed:
        for axis in sorted((axis_of_row(call, x, axis) for axis in listed), reverse=True):
            x = without_one(x, axis)
        if x is not None:
            return x
    if isinstance(x, Shaped | None) or x.width != 1 or any(axis not in (1, -1) for axis in listed):
        raise call.refuse("removes a dimension that may hold rows")
    return x


def _split(call: OnnxCall, x: Flow, sizes: Any = None) -> tuple[Flow, ...]:
    listed = call.given.get("split") if sizes is None else np.ravel(sizes).tolist()
    if call.given.get("axis", 0) not in (1, -1) or not listed or sum(listed) != x.width:
        raise call.refuse("splits rows, or into parts of unknown sizes")
    parts = np.split(np.arange(x.width), np.cumsum(listed)[:-1])
    return tuple(x.pick(part.tolist(), name=call.name) for part in parts)


PIECEWISE: dict[str, Callable[..., Any]] = {
    "LeakyRelu": _leaky_relu,
    "PRelu": _prelu,
    "Abs": _absolute,
    "Clip": _clip,
    "HardSigmoid": _hard_sigmoid,
    "ThresholdedRelu": _thresholded_relu,
    "Shrink": _shrink,
    "Max": _max,
    "Min": _min,
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
