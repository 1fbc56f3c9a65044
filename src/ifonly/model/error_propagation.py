"""Backward error propagation (reverse mode, interval slopes): how much the scores amplify the error of each step.

The derivative of the scores by the values of a step is a matrix of intervals, kept as centre and radius. Every step
multiplies it by its own slopes and passes it to the steps whose values it takes. `rounding` adds up the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.model.operations import (
    AffineOperation,
    Clip,
    Floats,
    Gather,
    LeakyReLU,
    Maximum,
    OperationGraph,
    PiecewiseLinear,
    Shift,
    Smooth,
    Step,
    Total,
)

Box: TypeAlias = tuple[Floats, Floats]
ROUNDOFF = 2.0**-53


def propagated_errors(
    operations: OperationGraph,
    errors: Sequence[Floats],
    local_errors: Sequence[Floats | None],
    slopes: Sequence[Box | None],
) -> Floats:
    """The sum over all steps of |J| times the local error; `errors` are as wide as the steps' values."""
    error = errors[-1]
    outputs = error.shape[1]
    back: dict[int, Box] = {
        len(operations.steps) - 1: _no_radius(np.broadcast_to(np.eye(outputs), (len(error), outputs, outputs)))
    }
    total = np.zeros_like(error)
    for k in range(len(operations.steps) - 1, -1, -1):
        if k not in back:
            continue
        centre, radius = back.pop(k)
        local_error = local_errors[k]
        if local_error is not None:
            reach = np.abs(centre) + radius
            total = total + np.einsum("bow,bw->bo", reach, np.where(reach.any(axis=1), local_error, 0.0))
        for source, passed in _to_sources(operations.steps[k], (centre, radius), slopes[k], errors):
            back[source] = _sum(back[source], passed) if source in back else passed
    return np.asarray(total * (1.0 + 1e-9))


def _to_sources(step: Step, back: Box, slopes: Box | None, errors: Sequence[Floats]) -> list[tuple[int, Box]]:
    """The derivative of the scores by the values of each source."""
    centre, radius = back
    source = step.sources[0] if step.sources else -1
    match step.operation:
        case AffineOperation(weight=weight) as affine:
            rounded = radius + 4.0 * len(weight) * ROUNDOFF * np.abs(centre)
            return [(source, (_back(centre, weight), _back(rounded, affine.absolute)))]
        case Shift(sign=sign):
            return [(source, (centre * sign, radius))]
        case Total(sign=sign):
            return [(source, (centre, radius)), (step.sources[1], (sign * centre, radius))]
        case Gather(columns=columns):
            widths = [errors[k].shape[1] for k in step.sources]
            return list(zip(step.sources, _broadcast(columns, widths, centre, radius), strict=True))
        case Maximum() if slopes is not None:
            rest = 1.0 - slopes[1], 1.0 - slopes[0]
            return [
                (step.sources[0], _sloped(centre, radius, slopes)),
                (step.sources[1], _sloped(centre, radius, rest)),
            ]
        case LeakyReLU(plain=True) if slopes is not None:
            return [(source, _relu_sloped(centre, radius, slopes))]
        case Smooth() if slopes is not None:
            middle, reach = _sloped(centre, radius, slopes)
            return [(source, (middle, reach + 1e-15 * (np.abs(middle) + reach)))]
        case PiecewiseLinear() if slopes is not None:
            middle, reach = (part.sum(axis=2, keepdims=True) for part in _sloped(centre, radius, slopes))
            rounded = 1e-12 * np.abs(centre * slopes[1][:, None, :]).sum(axis=2, keepdims=True)
            return [(source, (middle, reach * (1.0 + 1e-12) + rounded))]
        case LeakyReLU() | Clip() if slopes is not None:
            return [(source, _sloped(centre, radius, slopes))]
        case _:
            return []


def _broadcast(
    columns: tuple[NDArray[np.intp] | None, ...], widths: Sequence[int], centre: Floats, radius: Floats
) -> list[Box]:
    """Back from columns beside one another to the values that they were taken from."""
    found, first = [], 0
    for chosen, width in zip(columns, widths, strict=True):
        last = first + (width if chosen is None else len(chosen))
        parts = [part[:, :, first:last] for part in (centre, radius, np.abs(centre))]
        if chosen is not None:
            for i, part in enumerate(parts):
                parts[i] = np.zeros((*centre.shape[:2], width))
                np.add.at(parts[i], (slice(None), slice(None), chosen), part)  # type: ignore[arg-type]
        found.append((parts[0], parts[1] + 1e-13 * parts[2]))
        first = last
    return found


def _relu_sloped(centre: Floats, radius: Floats, slopes: Box) -> Box:
    """`_sloped` for the slopes of a ReLU."""
    on, off = slopes[0][:, None, :] == 1.0, slopes[1][:, None, :] == 0.0
    low, high = np.minimum(centre - radius, 0.0), np.maximum(centre + radius, 0.0)
    middle = np.where(on, centre, np.where(off, 0.0, 0.5 * (low + high)))
    return middle, np.where(on, radius, np.where(off, 0.0, 0.5 * (high - low)))


def _no_radius(centre: Floats) -> Box:
    return centre, np.zeros_like(centre)


def _sum(one: Box, other: Box) -> Box:
    rounding = 2.0 * ROUNDOFF * (np.abs(one[0]) + np.abs(other[0]))
    return one[0] + other[0], one[1] + other[1] + rounding


def _sloped(centre: Floats, radius: Floats, slopes: Box) -> Box:
    """An interval times one of slopes, each as centre and radius."""
    least, most = (slope[:, None, :] for slope in slopes)
    low, high = centre - radius, centre + radius
    products = low * least, low * most, high * least, high * most
    low, high = np.minimum.reduce(products), np.maximum.reduce(products)
    same = least == most
    return (
        np.where(same, centre * least, 0.5 * (low + high)),
        np.where(same, radius * np.abs(least), 0.5 * (high - low)),
    )


def _back(rows: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows * weight if weight.ndim == 1 else rows @ weight
