"""Columns of a table as values of a network (`Flow`), and columns that are looked up in a table of numbers.

Lines become one affine map of the encoded columns. Functions that are linear between knots become units relu(x - knot),
shared by all functions of one feature with the same knots; powers and logarithms become smooth units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.flow import Flow
from ifonly.model.importers.column_kinds import MOST_NUMBERS, Bent, Column, Curved, Interaction, Line, Options
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.powers import flow_of_powers
from ifonly.schema import Integer, Numeric

Floats = NDArray[np.float64]


def is_curve(column: Column, arithmetic: Columns, where: str) -> bool:
    """Does it become units of a network, and no line?"""
    if isinstance(column, Interaction) or (isinstance(column, Curved) and column.powers is not None):
        return True
    return arithmetic.bent(column, where) is not None


def flow_of(columns: Sequence[Column], arithmetic: Columns, encoded: Flow, where: str) -> Flow:
    """Columns beside one another; `encoded` is the flow of the schema's encoded columns, with its bounds."""
    bent = {j: found for j, column in enumerate(columns) if (found := arithmetic.bent(column, where)) is not None}
    products = {j: column for j, column in enumerate(columns) if isinstance(column, Interaction)}
    powers = {j: c for j, c in enumerate(columns) if isinstance(c, Curved) and c.powers is not None and j not in bent}
    straight = [j for j in range(len(columns)) if j not in bent and j not in products and j not in powers]
    parts: list[Flow] = []
    order: list[int] = []
    if straight:
        parts.append(_lines([columns[j] for j in straight], arithmetic, encoded, where))
        order += straight
    if products:
        parts.append(_interactions(list(products.values()), arithmetic, encoded, where))
        order += products
    groups: dict[tuple[int, bytes], list[int]] = {}
    for j, column in bent.items():
        groups.setdefault((column.feature, column.knots.tobytes()), []).append(j)
    for members in groups.values():
        first = bent[members[0]]
        place = int(arithmetic.schema.feature_columns[first.feature][0])
        values = np.column_stack([bent[j].values for j in members])
        errors = np.array([bent[j].error for j in members])
        number = encoded.select([place], name=where)
        parts.append(number.piecewise_linear(first.knots, values, name=where, error=errors))
        order += members
    for j, curve in powers.items():
        parts.append(_powers(curve, arithmetic, encoded, where))
        order.append(j)
    if len(parts) == 1 and order == list(range(len(columns))):
        return parts[0]
    joined = parts[0].joined(parts[1:], name=where) if len(parts) > 1 else parts[0]
    return joined.select(np.argsort(order).tolist(), name=where)


def _powers(column: Curved, arithmetic: Columns, encoded: Flow, where: str) -> Flow:
    feature, place = arithmetic.schema.features[column.feature], arithmetic.schema.feature_columns[column.feature][0]
    assert isinstance(feature, Numeric) and column.powers is not None
    return flow_of_powers(column.powers, encoded.select([int(place)], name=where), feature, where)


def _interactions(products: Sequence[Interaction], arithmetic: Columns, encoded: Flow, where: str) -> Flow:
    """Of numbers that are 0 or 1: relu(their sum, less all but one of them)."""
    factors = list(dict.fromkeys(one for product in products for one in product.factors))
    base = flow_of(factors, arithmetic, encoded, where)
    weight = np.array([[float(one in product.factors) for one in factors] for product in products])
    shift = np.array([1.0 - len(product.factors) for product in products])
    found = base.linear(weight, shift, name=where).relu()
    return found.scale([one.scale for one in products], [one.shift for one in products], name=where)


def _lines(columns: Sequence[Column], arithmetic: Columns, encoded: Flow, where: str) -> Flow:
    places = [_place(column) for column in columns]
    if all(place is not None for place in places):
        found = [int(place) for place in places if place is not None]
        return encoded if found == list(range(encoded.width)) else encoded.select(found, name=where)
    weight, shift, sizes = arithmetic.matrix(columns, where)
    return encoded.linear(weight, shift, name=where, sizes=sizes)


def _place(column: Column) -> int | None:
    """The encoded column that this one is, unchanged."""
    if not isinstance(column, Line) or column.terms or column.shift != 0.0:
        return None
    at = np.flatnonzero(column.weight)
    return int(at[0]) if len(at) == 1 and column.weight[at[0]] == 1.0 else None


def looked_up(column: Column, table: Floats, arithmetic: Columns, where: str) -> list[Column]:
    """The columns of `table`, in the row whose number this column is."""
    if isinstance(column, Options):
        numbers = _whole(arithmetic.numbers(column, where), len(table), column, arithmetic, where)
        return [Options(column.feature, values) for values in np.ascontiguousarray(table[numbers].T)]
    owner = arithmetic.number_of(column) if isinstance(column, Line) else None
    feature = None if owner is None else arithmetic.schema.features[owner]
    if owner is None or not isinstance(feature, Integer):
        raise ModelError(
            f"'{where}' looks up {arithmetic.describe(column)} in a table, which takes a whole number: declare the "
            f"feature as Categorical, Ordinal or Integer, and give it to the model as it is."
        )
    if feature.steps >= MOST_NUMBERS:
        raise ModelError(
            f"'{where}' looks up {arithmetic.describe(column)}, which has {feature.steps + 1:,} values; at most "
            f"{MOST_NUMBERS:,} are tabulated."
        )
    knots = feature.lower + feature.step * np.arange(feature.steps + 1.0)
    numbers = _whole(knots, len(table), column, arithmetic, where)
    return [Bent(owner, knots, values) for values in np.ascontiguousarray(table[numbers].T)]


def _whole(numbers: Floats, count: int, column: Column, arithmetic: Columns, where: str) -> Any:
    """Numbers of rows; a ModelError where the table has no such row."""
    wrong = [number for number in numbers.tolist() if not (0 <= number < count and number == int(number))]
    if wrong:
        raise ModelError(
            f"'{where}' has {count} rows, numbered from 0, but {arithmetic.describe(column)} can be {wrong[0]:g} "
            f"there; declare in the schema only values that the model knows, in the order of its numbers."
        )
    return numbers.astype(np.intp)
