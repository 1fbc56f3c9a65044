"""Column expressions: each column before, between and after transformers as a function of the schema's row.

A column is a function of the schema's row, of one of six kinds:

    Line     an affine function of the schema's encoded columns:  w . x + c
    Options  any function of one feature with options, as the list of its values, one per option
    Binned   any function of one number that is constant between cuts
    Bent     a continuous function of one number that is linear between knots
    Curved   any other function of one number: its values are found by the transformers themselves; powers and
             logarithms also have a form that networks take
    Interaction  of columns of different choices that are 0 or 1

Scaling keeps the kind. An encoder turns Options into Options. At the end, for a network, every column must be a line,
bent or a sum of powers (`column_flow`): a function of options is linear in one-hot columns (w = values) and in
thermometer columns (w = differences), and in the option's number linear if its values are equally spaced, else bent.

Each number has a `size`, a bound on the sum of |terms| that it was computed from, for the rounding error bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.importers.column_errors import (
    clips,
    described,
    no_line,
    no_number,
    not_linear_in_number,
    without_value,
)
from ifonly.model.importers.column_kinds import (
    MOST_KNOTS,
    MOST_NUMBERS,
    Absent,
    Bent,
    Binned,
    Column,
    Curved,
    Interaction,
    Line,
    Options,
)
from ifonly.model.importers.known_options import describe_unknown, unknown_places
from ifonly.model.operations import Majorant, underflow_counts
from ifonly.schema import Choice, Integer, Missing, Numeric, Schema
from ifonly.schema.values import is_missing

Floats = NDArray[np.float64]
SPACING = 1e-13
"""Relative: how far values may be from equally spaced and still be a line in the option's number."""


_CODED = 8.0
"""Operations that turn the values of options into a line over their columns."""


def _scaled_underflows(factor: float, underflows: float, largest: float) -> float:
    """Underflows of factor * value + shift: see `Majorant`. (x - centre) / scale has no more operations."""
    return abs(factor) * (underflows + 4.0) + 9.0 + largest


def option_array(values: Sequence[Any]) -> NDArray[Any]:
    """Values of options as the array that a table would hold: bool, int, float, or objects."""
    listed = list(values)
    kinds = {type(value) for value in listed}
    if kinds == {bool}:
        return np.array(listed, dtype=bool)
    if kinds == {int} and all(abs(value) < 2**62 for value in listed):
        return np.array(listed, dtype=np.int64)
    if kinds <= {int, float} and not all(map(is_missing, listed)):
        return np.array(listed, dtype=np.float64)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


@dataclass(frozen=True)
class Columns:
    """Arithmetic on columns of one schema. `missing` notes which marker each feature's missing option stands for."""

    schema: Schema
    missing: dict[int, Any] = field(default_factory=dict)
    dtypes: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    """What the user should know of the import, one sentence each."""

    # ------------------------------------------------------------------ making columns

    def encoded(self, index: int) -> Column:
        """One encoded column of the schema. An option's number is a function of the option."""
        g = self._numbered.get(index)
        if g is None:
            return self._unit(index)
        feature = self.schema.features[g]
        assert isinstance(feature, Choice)
        return Options(g, self.raw_values(g) if isinstance(feature, Missing) else feature.codes[:, 0])

    @cached_property
    def _numbered(self) -> dict[int, int]:
        """The encoded columns that are an option's number, and whose."""
        return {
            int(columns[0]): g
            for g, (feature, columns) in enumerate(zip(self.schema.features, self.schema.feature_columns, strict=True))
            if isinstance(feature, Choice) and feature.encoding == "code"
        }

    def raw(self, feature: int) -> Column:
        """One feature as the user's own values."""
        described = self.schema.features[feature]
        if isinstance(described, Numeric):
            return self._unit(int(self.schema.feature_columns[feature][0]))
        return Options(feature, self.raw_values(feature))

    def raw_values(self, feature: int) -> NDArray[Any]:
        """The values of the options of a feature, with the marker for a missing one that the model knows."""
        described = self.schema.features[feature]
        assert isinstance(described, Choice)
        marker = self.missing.get(feature, np.nan)
        if isinstance(described, Missing) and isinstance(marker, int | float):
            return np.array([marker], dtype=np.float64)  # a number's column holds numbers
        return option_array([marker if option is None else option for option in described.options])

    def constant(self, number: float) -> Line:
        """The same for every row."""
        nothing = np.zeros(len(self.schema.columns))
        return Line(nothing, number, nothing, 0.0)

    def _unit(self, index: int) -> Line:
        weight = np.zeros(len(self.schema.columns))
        weight[index] = 1.0
        return Line(weight, 0.0, np.zeros_like(weight), 0.0)

    # ------------------------------------------------------------------ columns to columns

    def scaled(self, column: Column, factor: float, shift: float, *, where: str, size: float | None = None) -> Column:
        """factor * column + shift; `size` bounds the terms that the shift is the sum of, if more than |shift|."""
        if not np.isfinite([factor, shift]).all():
            raise ModelError(f"'{where}' scales by NaN or infinity; the model is damaged.")
        size = abs(shift) if size is None else size
        if isinstance(column, Binned):
            return column
        if isinstance(column, Curved):
            inner, powers = column.function, column.powers and column.powers.scaled(factor, shift)
            return replace(column, function=lambda x: factor * inner(x) + shift, powers=powers)
        if isinstance(column, Interaction):
            return Interaction(column.factors, factor * column.scale, factor * column.shift + shift)
        if isinstance(column, Bent):
            size = abs(factor) * float(np.abs(column.values).max()) + size
            error = abs(factor) * column.error + 8.0 * 2.0**-53 * size
            return Bent(column.feature, column.knots, factor * column.values + shift, error)
        if isinstance(column, Options):
            numbers = self.numbers(column, where)
            largest = max(column.size, float(np.nan_to_num(np.abs(numbers)).max()))
            return Options(
                column.feature,
                factor * numbers + shift,
                abs(factor) * largest + size,
                column.terms + 4,
                _scaled_underflows(factor, column.underflows, largest),
            )
        line = self.line(column, where)
        return Line(
            factor * line.weight,
            factor * line.shift + shift,
            abs(factor) * np.maximum(line.size_weight, np.abs(line.weight)),
            abs(factor) * max(line.size_shift, abs(line.shift)) + size,
            line.terms + 4,
            _scaled_underflows(factor, line.underflows, line.largest),
            line.largest,
        )

    def clipped(self, column: Column, lower: float, upper: float, *, where: str) -> Column:
        """The column held inside [lower, upper], if that is still linear."""
        if isinstance(column, Binned):
            return column
        if isinstance(column, Bent):
            column = self.curved(column, where)
        if isinstance(column, Curved):
            inner = column.function
            return replace(column, function=lambda x: np.clip(inner(x), lower, upper), powers=None)
        if isinstance(column, Options):
            return Options(
                column.feature,
                np.clip(self.numbers(column, where), lower, upper),
                column.size,
                column.terms,
                column.underflows,
            )
        line = self.line(column, where)
        least, most = self.interval(line)
        slack = 1e-12 * max(abs(lower), abs(upper), abs(least), abs(most))
        if least < lower - slack or most > upper + slack:
            raise clips(self.schema, column, (lower, upper), (least, most), where)
        return line

    def mixed(self, columns: Sequence[Column], weight: Floats, shift: Floats, *, where: str) -> list[Column]:
        """weight @ columns + shift, as lines."""
        rows, offset, sizes = self.matrix(columns, where)
        size = np.abs(weight)
        return [
            Line(row, start, size_row, size_start, sizes.terms + len(columns) + 4, underflows, sizes.peak)
            for row, start, size_row, size_start, underflows in zip(
                weight @ rows,
                (weight @ offset + shift).tolist(),
                size @ sizes.weight,
                (size @ sizes.bias + np.abs(shift)).tolist(),
                (underflow_counts(size) * (1.0 + len(columns) * sizes.peak) + size @ sizes.underflows).tolist(),
                strict=True,
            )
        ]

    def check_known(self, column: Options, known: Sequence[Any], *, who: str, missing: bool = False) -> None:
        """Note the options whose values an encoder was fitted without; a ModelError where it knows none of them.

        `missing`: it knows a missing value, whatever the values that it was fitted on.
        """
        feature = self.schema.features[column.feature]
        values = column.values.tolist()
        places = [i for i in unknown_places(values, known) if not (missing and is_missing(values[i]))]
        if not isinstance(feature, Missing):
            self.note(describe_unknown(who, feature, places, known))

    def note(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence and sentence not in self.warnings:
            self.warnings.append(sentence)

    # ------------------------------------------------------------------ columns to numbers

    def numbers(self, column: Options, where: str) -> Floats:
        """The values of options as numbers, NaN where missing."""
        if column.values.dtype.kind in "biuf":
            return column.values.astype(np.float64)
        for value in column.values.tolist():
            if not is_missing(value) and not isinstance(value, bool | int | float):
                raise no_number(self.schema, column, value, where)
        return np.array([np.nan if is_missing(v) else float(v) for v in column.values.tolist()])

    def line(self, column: Column, where: str) -> Line:
        """The column as an affine function of the schema's encoded columns."""
        if isinstance(column, Line):
            return column
        if isinstance(column, Absent | Binned | Bent | Curved | Interaction):
            raise no_line(self.schema, column, where)
        numbers, feature = self.numbers(column, where), self.schema.features[column.feature]
        assert isinstance(feature, Choice)
        if np.isnan(numbers).any():
            raise without_value(self.schema, column, np.isnan(numbers), where)
        weight, columns = np.zeros(len(self.schema.columns)), self.schema.feature_columns[column.feature]
        shift = float(numbers[0]) if feature.encoding in ("dummy", "code") else 0.0
        match feature.encoding:
            case "onehot":
                weight[columns] = numbers
            case "dummy":
                weight[columns] = numbers[1:] - shift
            case "thermometer":
                weight[columns] = np.diff(numbers, prepend=0.0)
            case "code":
                slope = (numbers[-1] - numbers[0]) / max(len(numbers) - 1, 1)
                deviation = np.abs(shift + slope * np.arange(len(numbers)) - numbers)
                if deviation.max() > SPACING * max(np.abs(numbers).max(), column.size):
                    raise not_linear_in_number(self.schema, column, where)
                weight[columns] = slope
        size = max(column.size, float(np.abs(numbers).max())) + float(np.abs(weight).sum())
        return Line(
            weight, shift, np.zeros_like(weight), size, column.terms + 4, column.underflows + _CODED * (1.0 + size)
        )

    def grid(self, feature: int, most: int = MOST_NUMBERS) -> Floats | None:
        """All numbers of a feature, where they are few."""
        described = self.schema.features[feature]
        if not isinstance(described, Integer) or described.steps >= most:
            return None
        return described.lower + described.step * np.arange(described.steps + 1.0)

    def curved(self, column: Bent, where: str) -> Curved:
        """The same by its values alone."""
        return Curved(
            column.feature, where, lambda x: np.asarray(np.interp(x, column.knots, column.values)), column.ordered
        )

    def bent(self, column: Column, where: str) -> Bent | None:
        """The column as a function that is linear between knots; None where it is a line, or neither."""
        if isinstance(column, Curved):
            knots = self.grid(column.feature, MOST_KNOTS)
            if knots is None:
                return None
            values = np.asarray(column.function(knots), dtype=np.float64)
            return Bent(column.feature, knots, values, 2.0**-48 * float(np.abs(values).max()))
        if not isinstance(column, Options):
            return column if isinstance(column, Bent) else None
        feature = self.schema.features[column.feature]
        if not isinstance(feature, Choice) or feature.encoding != "code" or len(feature.options) < 3:
            return None
        numbers = self.numbers(column, where)
        steps = np.diff(numbers)
        if np.isnan(numbers).any() or np.ptp(steps) <= SPACING * max(np.abs(numbers).max(), column.size):
            return None  # refused as it is, or a line
        error = 2.0**-53 * column.terms * max(column.size, float(np.abs(numbers).max()))
        return Bent(column.feature, np.arange(float(len(numbers))), numbers, error)

    def matrix(self, columns: Sequence[Column], where: str) -> tuple[Floats, Floats, Majorant]:
        """Many columns as one affine map of the encoded columns: weight, shift, and their sizes."""
        lines = [self.line(column, where) for column in columns]
        weight, shift = np.array([line.weight for line in lines]), np.array([line.shift for line in lines])
        sizes = Majorant(
            np.maximum([line.size_weight for line in lines], np.abs(weight)),
            np.maximum([line.size_shift for line in lines], np.abs(shift)),
            max(line.terms for line in lines),
            np.array([line.underflows for line in lines]),
            max(line.largest for line in lines),
        )
        return weight, shift, sizes

    def of_choice(self, line: Line) -> Options | None:
        """A line of one choice's columns as a function of its options."""
        owners = [g for g, columns in enumerate(self.schema.feature_columns) if line.weight[columns].any()]
        if len(owners) != 1:
            return None
        feature = self.schema.features[owners[0]]
        if not isinstance(feature, Choice):
            return None
        return Options(owners[0], feature.codes @ line.weight[self.schema.feature_columns[owners[0]]] + line.shift)

    def number_of(self, line: Line) -> int | None:
        """The feature whose number the line is, unchanged."""
        at = np.flatnonzero(line.weight)
        if len(at) != 1 or line.weight[at[0]] != 1.0 or line.shift != 0.0 or line.terms:
            return None
        owner = next(g for g, columns in enumerate(self.schema.feature_columns) if at[0] in columns)
        return owner if isinstance(self.schema.features[owner], Numeric) else None

    def interval(self, line: Line) -> tuple[float, float]:
        """The least and the largest value of a line over all rows of the schema."""
        least = most = line.shift
        for feature, columns in zip(self.schema.features, self.schema.feature_columns, strict=True):
            ends = np.array([[feature.lower], [feature.upper]]) if isinstance(feature, Numeric) else feature.codes
            values = ends @ line.weight[columns]
            least, most = least + float(values.min()), most + float(values.max())
        return least, most

    def describe(self, column: Column) -> str:
        """The features that a column depends on, for messages."""
        return described(self.schema, column)
