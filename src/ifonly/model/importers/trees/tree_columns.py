"""The columns that a library's trees split, by its transformers' own arithmetic, and the feature each depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.column_kinds import Absent, Bent, Binned, Column, Curved, Interaction, Line, Options
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.known_options import describe_unknown
from ifonly.model.importers.sklearn_sources import Source
from ifonly.model.importers.transformers import transformed
from ifonly.model.importers.trees.imported import ImportedTrees
from ifonly.model.trees import FeatureColumns
from ifonly.schema import Choice, Missing
from ifonly.schema.values import is_missing, same_value

Floats = NDArray[np.float64]
Front: TypeAlias = list[tuple[str, Any]]
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


def feature_columns(
    imported_trees: ImportedTrees, source: Source, front: Front, arithmetic: Columns
) -> tuple[FeatureColumns, frozenset[int]]:
    """The columns of the trees, and which of them are numbers whose zeros are missing values."""
    columns = source.columns()
    for where, step in front:
        columns = transformed(step, columns, arithmetic, where)
    if imported_trees.over_features:
        return FeatureColumns(range(len(arithmetic.schema)), np.asarray), frozenset()
    if imported_trees.bins is not None:
        columns = [columns[i] for i in imported_trees.bins.features]
    if len(columns) != imported_trees.ensemble.columns:
        raise ModelError(
            f"{imported_trees.name} takes {imported_trees.ensemble.columns} columns, but it is given {len(columns)}."
        )
    _check_categories(imported_trees, columns, arithmetic)
    used = set(np.unique(imported_trees.ensemble.nodes.column).tolist())
    owners = [_owner(column, imported_trees.name, arithmetic) if j in used else 0 for j, column in enumerate(columns)]
    _note_none(imported_trees, columns, arithmetic)
    tree_columns = TreeColumns(imported_trees, source, tuple(step for _, step in front), tuple(owners))
    if imported_trees.bins is not None:
        _check_bins(imported_trees, owners, tree_columns, arithmetic)
    return FeatureColumns(owners, tree_columns), tree_columns.numbers_without_zeros()


def _check_categories(imported_trees: ImportedTrees, columns: list[Column], arithmetic: Columns) -> None:
    """Warn of options that the library does not know in its columns of categories."""
    for j, known in imported_trees.categories.items():
        column = columns[j]
        if isinstance(column, Options):
            arithmetic.check_known(column, known, who=imported_trees.name, missing=True)
    for j, places in imported_trees.unseen.items():
        column = columns[j]
        if isinstance(column, Options):
            arithmetic.note(describe_unknown(imported_trees.name, arithmetic.schema.features[column.feature], places))


def _check_bins(
    imported_trees: ImportedTrees, owners: list[int], tree_columns: TreeColumns, arithmetic: Columns
) -> None:
    """Warn of options that the library has no bins for."""
    assert imported_trees.bins is not None
    schema = arithmetic.schema
    for j, bin_number in enumerate(imported_trees.bins.unseen):
        feature = schema.features[owners[j]]
        if bin_number is None or not isinstance(feature, Choice) or isinstance(feature, Missing):
            continue
        points = np.repeat(schema.grid[:1], len(feature.options), axis=0)
        points[:, owners[j]] = np.arange(len(feature.options))
        places = np.flatnonzero(tree_columns(points)[:, j] == bin_number).tolist()
        arithmetic.note(describe_unknown(imported_trees.name, feature, places))


def _note_none(imported_trees: ImportedTrees, columns: list[Column], arithmetic: Columns) -> None:
    """Where None is a category of the model, a missing option is given to it as None: NaN would be none of its own."""
    for j, known in imported_trees.categories.items():
        column = columns[j]
        if isinstance(column, Options) and any(category is None for category in known):
            arithmetic.missing[column.feature] = None


def _owner(column: Column, name: str, arithmetic: Columns) -> int:
    """The feature that a column depends on; any, where it depends on none."""
    match column:
        case Options(feature=feature):
            return feature
        case Line(weight=weight):
            schema = arithmetic.schema
            owners = [i for i, columns in enumerate(schema.feature_columns) if weight[columns].any()]
            if len(owners) > 1:
                mixed = ", ".join(f"'{schema.names[i]}'" for i in owners[:4])
                raise UnsupportedModel(
                    f"A column that {name} splits mixes {len(owners)} features ({mixed}, ...); "
                    f"only trees whose splits are about one feature each are supported.",
                    operation="a mixture of features before trees",
                )
            return owners[0] if owners else 0
        case Curved(feature=feature, ordered=ordered) | Bent(feature=feature, ordered=ordered):
            if not ordered:
                raise UnsupportedModel(
                    f"{name} splits {arithmetic.describe(column)} by a function that neither grows nor falls with it; "
                    f"give the trees the number itself, which tells them the same.",
                    operation="a curve before trees",
                )
            return feature
        case Binned(feature=feature, ordered=ordered):
            if not ordered:
                raise UnsupportedModel(
                    f"{name} splits {arithmetic.describe(column)} by columns that neither grow nor fall with it; "
                    f"before trees, bin it with KBinsDiscretizer(encode='ordinal'), which tells them the same.",
                    operation="one column per bin before trees",
                )
            return feature
        case Absent() | Interaction():
            arithmetic.line(column, name)
    return 0


@dataclass(frozen=True)
class TreeColumns:
    """Points to the columns that the trees split, by the transformers' own arithmetic; categories as codes."""

    imported_trees: ImportedTrees
    source: Source
    steps: tuple[Any, ...]
    owners: tuple[int, ...]

    def __call__(self, points: Floats) -> Floats:
        table = self.source.table(points)
        for step in self.steps:
            table = called_with(step, table)
        if self.imported_trees.bins is not None:
            return self.imported_trees.bins(table)
        sparse = hasattr(table, "toarray")
        table = table.toarray() if sparse else table
        columns = [table.iloc[:, j] if hasattr(table, "iloc") else table[:, j] for j in range(len(self.owners))]
        read = [self._numbers(j, np.asarray(column)) for j, column in enumerate(columns)]
        if self.imported_trees.read_as_zero:
            read = [np.where(np.abs(column) <= self.imported_trees.read_as_zero, 0.0, column) for column in read]
        if self.zeros_are_missing(sparse):
            read = [self._without_zeros(j, column) for j, column in enumerate(read)]
        return np.column_stack(read)

    def zeros_are_missing(self, sparse: bool) -> bool:
        return self.imported_trees.zeros == "missing" or (sparse and self.imported_trees.zeros == "missing if sparse")

    def numbers_without_zeros(self) -> frozenset[int]:
        """The columns of numbers whose zeros are missing values to the library."""
        schema = self.source.arithmetic.schema
        table = self.source.table(schema.grid[0][None, :])
        for step in self.steps:
            table = called_with(step, table)
        if not self.zeros_are_missing(hasattr(table, "toarray")):
            return frozenset()
        return frozenset(j for j, i in enumerate(self.owners) if not isinstance(schema.features[i], Choice))

    def _without_zeros(self, j: int, column: Floats) -> Floats:
        """Zeros of a choice's column as missing values; a number that only float32 makes zero is none."""
        if j in self.imported_trees.coded_from_zero:
            return column
        if isinstance(self.source.arithmetic.schema.features[self.owners[j]], Choice):
            return np.where(column == 0.0, np.nan, column)
        with np.errstate(under="ignore"):
            rounded = (column != 0.0) & (column.astype(np.float32) == 0.0)
        return np.where(rounded, np.copysign(SMALLEST, column), column)

    def _numbers(self, j: int, column: NDArray[Any]) -> Floats:
        known = self.imported_trees.categories.get(j)
        if known is not None:
            values = column.tolist()
            codes = {value: _code(value, known) for value in set(values) if not is_missing(value)}
            own = [float(code) for code, category in enumerate(known) if category is None]
            codes |= dict.fromkeys([None] if own else [], own[0] if own else np.nan)
            return np.array([codes.get(value, np.nan) for value in values])
        if column.dtype.kind in "biuf":
            return column.astype(np.float64)
        try:
            return np.array([np.nan if is_missing(value) else float(value) for value in column.tolist()])
        except (TypeError, ValueError):
            raise ModelError(
                f"{self.imported_trees.name} takes column {j} as numbers, "
                f"but the schema has {column.tolist()[0]!r} there; "
                f"declare the options as the model saw them in training."
            ) from None


def _code(value: Any, known: Sequence[Any]) -> float:
    for code, category in enumerate(known):
        if same_value(value, category):
            return float(code)
    return np.nan


def called_with(step: Any, table: Any) -> Any:
    """The output of a fitted transformer for a table."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown categories that an encoder ignores, as it was configured to
        try:
            return step.transform(table)
        except Exception as error:
            raise ModelError(
                f"The model cannot answer for rows of the schema: {type(error).__name__}: {error}"
            ) from None
