"""Linear operators of ai.onnx.ml, and the operations that converters add after the last sigmoid or softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.flow import Flow
from ifonly.model.importers.onnx_operations import OnnxCall, OnnxFinal
from ifonly.model.importers.onnx_tables import ML, SCALER

# ---------------------------------------------------------------------- linear operators


def _numbers(call: OnnxCall, name: str) -> NDArray[np.float64]:
    return np.ravel(np.float64(call.attributes.get(name, [])))


def _linear(call: OnnxCall, x: Flow) -> Flow:
    weight, bias = _numbers(call, "coefficients"), _numbers(call, "intercepts")
    if not weight.size or weight.size % x.width:
        raise ModelError(f"'{call.name}' has {weight.size} coefficients for {x.width} values.")
    return x.linear(weight.reshape(-1, x.width), bias if bias.size else None, name=call.name)


def _regressor(call: OnnxCall, x: Flow) -> Flow:
    if call.attributes.get("post_transform", b"NONE") != b"NONE":
        raise call.refuse(f"ends with {call.attributes['post_transform'].decode()}")
    return _linear(call, x)


def _classifier(call: OnnxCall, x: Flow) -> tuple[None, Flow | OnnxFinal]:
    """The scores of the classes; with two and a sigmoid, the log-odds of the second."""
    activation = call.attributes.get("post_transform", b"NONE").decode()
    names = call.attributes.get("classlabels_strings") or call.attributes.get("classlabels_ints") or []
    scores = _linear(call, x)
    if scores.width != len(names):
        raise call.refuse(f"has {scores.width} score for {len(names)} classes; give each class its coefficients")
    if activation == "NONE":
        return None, scores
    if activation not in ("LOGISTIC", "SOFTMAX"):
        raise call.refuse(f"ends with {activation}")
    if activation == "LOGISTIC" and scores.width == 2:
        if not _opposite(call, scores):
            raise call.refuse("has two scores that are not opposite, so their sigmoids are no probabilities")
        second = scores.select([1], name=call.name)
        return None, OnnxFinal(second, call.result, "sigmoid", call.operation, inside=True, second=True)
    each_alone = activation == "LOGISTIC"
    return None, OnnxFinal(scores, call.result, "softmax", call.operation, inside=True, each_alone=each_alone)


def _opposite(call: OnnxCall, scores: Flow) -> bool:
    """Are two scores each other's opposite, on every row?"""
    return opposite_flows(*(scores.select([k], name=call.name) for k in (0, 1)))


def opposite_flows(one: Flow, other: Flow) -> bool:
    """Are the values each other's opposite on every row?"""
    return _is_zero(one.plus(other, name="a score"))


def equal_flows(one: Flow, other: Flow) -> bool:
    """Are the values the same on every row?"""
    return one is other or (one.width == other.width and _is_zero(one.plus(other, name="a score", sign=-1.0)))


def _is_zero(flow: Flow) -> bool:
    total = flow.expression
    return not total.bias.any() and not any(weight.any() for _, weight, _ in total.parts)


def _scaler(call: OnnxCall, x: Flow) -> Flow:
    offset, scale = (np.ravel(np.float64(call.attributes.get(key, default))) for key, default in SCALER)
    return x.scale(1.0, -offset, name=call.name).scale(scale, name=call.name)


def _pick(call: OnnxCall, x: Flow, places: Any) -> Flow:
    return x.select([int(j) for j in np.ravel(places)], name=call.name)


def _normalizer(call: OnnxCall, x: Any) -> Any:
    raise call.refuse("divides a row by its own length, which is not piecewise linear")


MACHINE_LEARNING: dict[str, Callable[..., Any]] = {
    f"{ML}LinearRegressor": _regressor,
    f"{ML}LinearClassifier": _classifier,
    f"{ML}Scaler": _scaler,
    f"{ML}ArrayFeatureExtractor": _pick,
    f"{ML}Normalizer": _normalizer,
}


# ---------------------------------------------------------------------- after the last activation


@dataclass(frozen=True)
class Complement:
    """1 minus the probability of the second class."""

    of: OnnxFinal


@dataclass(frozen=True)
class Sizes:
    """The absolute values of probabilities, or their sum."""

    of: OnnxFinal
    summed: bool = False


AfterFinal: TypeAlias = OnnxFinal | Complement | Sizes
LAST = "follows a sigmoid or softmax, which may only come last"


def _less(call: OnnxCall, one: Any, final: Any) -> Complement:
    if not isinstance(final, OnnxFinal) or final.columns != 1 or np.size(one) != 1 or float(np.ravel(one)[0]) != 1.0:
        raise call.refuse(LAST)
    return Complement(final)


def _both(call: OnnxCall, *parts: Any) -> OnnxFinal:
    match parts:
        case (Complement(of=final), OnnxFinal() as other) if other is final and call.attributes.get("axis") in (1, -1):
            return replace(final, both=True)
    raise call.refuse(LAST)


def _sizes(call: OnnxCall, final: Any) -> Sizes:
    if not isinstance(final, OnnxFinal):
        raise call.refuse(LAST)
    return Sizes(final)


def _summed(call: OnnxCall, sizes: Any, axes: Any = None) -> Sizes:
    listed = np.ravel(call.attributes.get("axes", []) if axes is None else axes).tolist()
    if (
        not isinstance(sizes, Sizes)
        or sizes.summed
        or listed not in ([1], [-1])
        or not call.attributes.get("keepdims", 1)
    ):
        raise call.refuse(LAST)
    return replace(sizes, summed=True)


def _divided(call: OnnxCall, final: Any, sizes: Any) -> OnnxFinal:
    if not isinstance(sizes, Sizes) or not sizes.summed or sizes.of is not final:
        raise call.refuse(LAST)
    return _shares(call, final)


def _normalized(call: OnnxCall, final: Any) -> OnnxFinal:
    if not isinstance(final, OnnxFinal) or call.attributes.get("norm", b"MAX") != b"L1":
        raise call.refuse(LAST)
    return _shares(call, final)


def _shares(call: OnnxCall, final: OnnxFinal) -> OnnxFinal:
    """Divided by their sum: a softmax stays what it is. Sigmoids of opposite scores have a sum of 1; those of classes
    that stand alone keep their order."""
    if final.activation == "softmax":
        return replace(final)
    if final.width == 2 and _opposite(call, final.flow):
        return replace(final, flow=final.flow.select([1], name=call.name), second=True)
    if final.width == 1:
        raise call.refuse(LAST)
    return replace(final, activation="softmax", each_alone=True)


AFTER: dict[str, Callable[..., Any]] = {
    "Sub": _less,
    "Concat": _both,
    "Abs": _sizes,
    "ReduceSum": _summed,
    "Div": _divided,
    f"{ML}Normalizer": _normalized,
}
"""Operations that converters add after a sigmoid or softmax and that do not change the decision."""
