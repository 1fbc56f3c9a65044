"""Tables of values as ReLU networks over unrolled columns of their causes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model import Network
from ifonly.schema import Choice, Feature, Integer

Floats = NDArray[np.float64]

MOST_CASES = 4096
"""Combinations of values of a table."""


def cases_of(features: Sequence[Feature], follower: Feature) -> list[tuple[float, ...]]:
    """All combinations of values, as they are in points."""
    columns: list[list[float]] = []
    for feature in features:
        if isinstance(feature, Choice):
            columns.append([float(k) for k in range(len(feature.options))])
        elif isinstance(feature, Integer) and feature.count <= MOST_CASES:
            columns.append([feature.lower + k * feature.step for k in range(feature.count)])
        else:
            raise UnsupportedModel(
                f"The equation of '{follower.name}' is a table over '{feature.name}', where it jumps; "
                f"jumps are exact only over options and few whole numbers.",
                operation="table",
            )
    if math.prod(map(len, columns)) > MOST_CASES:
        raise UnsupportedModel(
            f"The equation of '{follower.name}' has more than {MOST_CASES} combinations of values of its causes.",
            operation="table",
        )
    return list(itertools.product(*columns))


def table_network(features: Sequence[Feature], values: Sequence[float]) -> Network:
    """The network of a table over unrolled columns, with values in the order of `cases_of`.

    Whole numbers x become indicators of their values t, hinge by hinge: [x = t] is relu(x - t + d) - 2 relu(x - t) +
    relu(x - t - d), over the step d. A combination of several is relu(sum of indicators - (how many - 1)).
    """
    first, bias, indicators = _indicators(features)
    rows = np.zeros((len(values), len(first)))
    for i, case in enumerate(itertools.product(*indicators)):
        for indicator in case:
            for unit, weight in indicator.items():
                rows[i, unit] += weight
    last = np.array([values], dtype=np.float64)
    if len(features) == 1:
        return Network.of([(first, bias), (last @ rows, np.zeros(1))])
    return Network.of([(first, bias), (rows, np.full(len(rows), 1.0 - len(features))), (last, np.zeros(1))])


def _indicators(features: Sequence[Feature]) -> tuple[Floats, Floats, list[list[dict[int, float]]]]:
    """A layer of units, and for each feature and each of its values how these add up to [it has the value]."""
    widths = [len(feature.options) if isinstance(feature, Choice) else 1 for feature in features]
    units: list[tuple[int, float]] = []
    """The column that each unit reads, and its bias."""
    indicators: list[list[dict[int, float]]] = []
    at = 0
    for feature, width in zip(features, widths, strict=True):
        start = len(units)
        if isinstance(feature, Choice):
            units += [(at + k, 0.0) for k in range(width)]
            indicators.append([{start + k: 1.0} for k in range(width)])
        else:
            assert isinstance(feature, Integer)
            units += [(at, -(feature.lower + k * feature.step)) for k in range(-1, feature.count + 1)]
            d = 1.0 / feature.step
            indicators.append([{start + k: d, start + k + 1: -2.0 * d, start + k + 2: d} for k in range(feature.count)])
        at += width
    first = np.zeros((len(units), at))
    first[np.arange(len(units)), [column for column, _ in units]] = 1.0
    return first, np.array([bias for _, bias in units]), indicators
