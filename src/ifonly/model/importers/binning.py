"""Discretisation: KBinsDiscretizer and Binarizer of scikit-learn, BinningProcess of optbinning.

    KBinsDiscretizer  x >= edge is in the upper bin
    Binarizer         x > threshold is in the upper bin
    BinningProcess    x >= split is in the upper bin; special codes are bins of their own

Edges of bins are exact to the last bit, so the number must not be scaled before: an edge would then be one of rounded
numbers. The value of a bin is computed by the transformer itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.column_kinds import MOST_NUMBERS, Absent, Binned, Column, Line, Options
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.detect import of_library
from ifonly.model.importers.tables import made_of
from ifonly.schema import Integer
from ifonly.schema.features import Feature

Floats = NDArray[np.float64]


def below(edges: Any) -> Floats:
    """The largest numbers below these."""
    return np.nextafter(np.asarray(edges, dtype=np.float64), -np.inf)


def k_bins(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """KBinsDiscretizer: the number of the bin, or one column per bin."""
    if transformer.dtype is not None and np.dtype(transformer.dtype) != np.float64:
        raise UnsupportedModel(
            f"The KBinsDiscretizer '{where}' rounds numbers to {np.dtype(transformer.dtype).name} before it bins them; "
            f"fit it with dtype=None.",
            operation="KBinsDiscretizer in float32",
        )
    result: list[Column] = []
    for column, edges in zip(columns, transformer.bin_edges_, strict=True):
        inner = np.asarray(edges, dtype=np.float64)[1:-1]
        number = binned(column, below(inner), arithmetic, where)
        if isinstance(number, Options):
            places = np.searchsorted(inner, arithmetic.numbers(number, where), side="right")
            number = Options(number.feature, places.astype(np.float64))
        result += [number] if transformer.encode == "ordinal" else _one_hot(number, len(inner) + 1)
    return result


def _one_hot(number: Binned | Options, count: int) -> Sequence[Column]:
    if isinstance(number, Binned):
        return [replace(number, ordered=False)] * count
    return [Options(number.feature, (number.values == k).astype(np.float64)) for k in range(count)]


def binarizer(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """1 above the threshold, else 0."""
    result: list[Column] = []
    for column in columns:
        number = binned(column, np.array([float(transformer.threshold)]), arithmetic, where)
        if isinstance(number, Options):
            above = arithmetic.numbers(number, where) > transformer.threshold
            number = Options(number.feature, above.astype(np.float64))
        result.append(number)
    return result


def binned(column: Column, cuts: Floats, arithmetic: Columns, where: str) -> Binned | Options:
    """A number that is parted at these cuts; what depends on a choice, as its options."""
    if isinstance(column, Options):
        return column
    if isinstance(column, Binned):
        return column
    line = arithmetic.line(column, where)
    choice = arithmetic.of_choice(line)
    if choice is not None:
        return choice
    feature = arithmetic.number_of(line)
    if feature is None:
        raise UnsupportedModel(
            f"'{where}' bins {arithmetic.describe(column)} after other transformers have changed it, which moves the "
            f"edges by their rounding; let it read the table's own numbers.",
            operation="binning of changed numbers",
        )
    return Binned(feature, np.unique(cuts), ordered=True)


# ---------------------------------------------------------------------- optbinning


@dataclass(frozen=True)
class Binning:
    """A fitted BinningProcess, with its settings for special codes and missing values."""

    process: Any
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def n_features_in_(self) -> int:
        return len(self.process.variable_names)

    @property
    def feature_names_in_(self) -> list[str]:
        return [str(name) for name in self.process.variable_names]

    def transform(self, table: Any) -> Any:
        return self.process.transform(table, **dict(self.options))


def is_binning_process(thing: Any) -> bool:
    return of_library(thing, "optbinning", "BinningProcess")


def binning_process(binning: Binning, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """One column per selected variable."""
    result: list[Column] = []
    for i in binning.process.get_support(indices=True).tolist():
        name, column = binning.feature_names_in_[i], columns[i]
        variable = binning.process.get_binned_variable(name)
        if isinstance(column, Absent):
            arithmetic.line(column, where)
        if type(variable).__name__ not in ("OptimalBinning", "ContinuousOptimalBinning", "MulticlassOptimalBinning"):
            raise UnsupportedModel(
                f"'{where}' bins '{name}' by {type(variable).__name__}, which is not constant inside a bin.",
                operation=type(variable).__name__,
            )
        number = binned(column, _variable_cuts(variable, column, arithmetic), arithmetic, where)
        if isinstance(number, Options):
            if variable.dtype == "categorical":
                others = getattr(variable, "_cat_others", None)
                groups = [*variable.splits, *([] if others is None else [others]), _special_codes(variable)]
                known = [value for group in groups for value in np.ravel(group).tolist()]
                arithmetic.check_known(number, known, who=f"'{where}' (BinningProcess)", missing=True)
            transformed = _transformed_options(binning, columns, i, number, where)
            result.append(Options(number.feature, transformed[:, len(result)].astype(np.float64)))
        else:
            result.append(replace(number, ordered=False))
    return result


def _transformed_options(binning: Binning, columns: list[Column], i: int, options: Options, where: str) -> NDArray[Any]:
    """The output of the process for rows with the options of its variable i."""
    usual = [column.values[:1] if isinstance(column, Options) else np.zeros(1) for column in columns]
    listed = [options.values if k == i else value.repeat(len(options.values)) for k, value in enumerate(usual)]
    return made_of(binning, listed, where)


def _variable_cuts(variable: Any, column: Column, arithmetic: Columns) -> Floats:
    """Where a variable of optbinning may change with its number."""
    feature = arithmetic.number_of(column) if isinstance(column, Line) else None
    if feature is None:
        return np.zeros(0)
    if variable.dtype != "numerical":
        cuts = every_number(arithmetic.schema.features[feature])
        if cuts is None:
            raise ModelError(
                f"'{variable.name}' is a category to the model, but the schema calls it a number; declare it as "
                f"Categorical or Ordinal, with the values that the model knows."
            )
        return cuts
    special = np.array([float(code) for code in _special_codes(variable)], dtype=np.float64)
    special = special[np.isfinite(special)]
    return np.concatenate([below(variable.splits), below(special), special])


def _special_codes(variable: Any) -> list[Any]:
    """The values that a variable of optbinning puts into bins of their own."""
    codes = variable.special_codes
    listed = [] if codes is None else list(codes.values()) if isinstance(codes, dict) else list(codes)
    return [code for group in listed for code in np.ravel(group).tolist()]


def every_number(feature: Feature) -> Floats | None:
    """Cuts between all numbers of a feature, where they are few."""
    if not isinstance(feature, Integer) or feature.steps >= MOST_NUMBERS:
        return None
    return feature.lower + feature.step * np.arange(float(feature.steps))
