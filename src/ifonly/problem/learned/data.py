"""Data to learn from: its points, and the values that occur."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.constraints import Allowed, Constraint
from ifonly.schema import Choice, Feature, Numeric, Schema, read_points
from ifonly.schema.arguments import whole_number

Floats = NDArray[np.float64]


def points_of(schema: Schema, table: Any, *, whole: bool = False) -> Floats:
    """The rows of a table; only those without missing numbers, if they must be `whole`."""
    points = read_points(schema, table)
    if not len(points):
        raise QuestionError("Nothing can be learned from a table without rows.")
    if whole and schema.may_have_missing:
        points = points[~np.isnan(points).any(axis=1)]
        if not len(points):
            raise QuestionError(
                "A number is missing in every row of the table, so nothing can be learned from whole rows."
            )
    return points


def check_learning(quantiles: tuple[float, float], least: int) -> None:
    low, high = quantiles
    if not 0.0 <= low <= high <= 1.0:
        raise QuestionError(
            f"The quantiles must be two numbers in [0, 1], the lower one first; got {shown(quantiles)}."
        )
    whole_number(least, "The least count must be a whole number >= 1; it is", 1)


def ends_of(number: Numeric, values: Floats, quantiles: tuple[float, float]) -> tuple[float, float]:
    """Two quantiles, which are values of the data; the number's own ends, where the data has none."""
    values = values[~np.isnan(values)]
    if not len(values):
        return number.lower, number.upper
    low, high = np.quantile(values, quantiles, method="inverted_cdf").tolist()
    return low, high


def only(feature: Feature, occurs: Any) -> Iterator[Constraint]:
    """The options that occur, unless all do."""
    assert isinstance(feature, Choice)
    if not np.all(occurs):
        yield Allowed(feature.name, [option for option, here in zip(feature.options, occurs, strict=True) if here])


def partners_of(
    points: Floats, others: Sequence[tuple[int, Choice]], least: int
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The options of other features that occur in these rows, for the features where some do not."""
    result = []
    for h, feature in others:
        occurs = np.bincount(points[:, h].astype(np.intp), minlength=len(feature.options)) >= least
        if not occurs.all():
            result.append((feature.name, tuple(np.flatnonzero(occurs).tolist())))
    return tuple(result)
