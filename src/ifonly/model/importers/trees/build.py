"""A library's tree ensemble as a Model: its columns bound to features, its original, and the comparison of the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.agreement import check_agreement, score_margin_of
from ifonly.model.importers.column_kinds import Absent, Bent, Binned, Column, Curved, Interaction, Line, Options
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.known_options import describe_unknown
from ifonly.model.importers.one_thread import FEW_ROWS, on_one_thread, openmp_on_one_thread
from ifonly.model.importers.probabilities import follow_from, settled
from ifonly.model.importers.sklearn_original import Predicted, call_model
from ifonly.model.importers.sklearn_sources import RawSource, Source, source_by
from ifonly.model.importers.transformers import transformed
from ifonly.model.model import Model
from ifonly.model.trees import Ensemble, FeatureColumns, Trees, bound_splits, edge_points, reachable
from ifonly.model.trees.zeros import without_missing_zeros
from ifonly.schema import Choice, Missing, Schema
from ifonly.schema.tables import import_pandas
from ifonly.schema.values import is_missing, plain, same_value

Floats = NDArray[np.float64]
Front: TypeAlias = list[tuple[str, Any]]
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
NEAR = 1e-5
"""Scores nearer to a tie than this are settled by the probabilities that the library itself reports."""


@dataclass(frozen=True)
class Call:
    """A method of the original, and what it is called with besides the table."""

    method: str
    options: tuple[tuple[str, Any], ...] = ()
    divisor: float = 1.0
    few: tuple[tuple[str, Any], ...] = ()
    """Further options where the table has a few rows: the number of threads."""

    def __call__(self, model: Any, source: Any, points: Floats) -> Floats:
        options = self.options + (self.few if len(points) <= FEW_ROWS else ())
        answer = call_model(model, self.method, source, points, **dict(options))
        return np.asarray(answer, dtype=np.float64).reshape(len(points), -1) / self.divisor


class BinColumns(Protocol):
    """From a table to the columns that trees split."""

    @property
    def table_columns(self) -> int:
        """How many columns the table has."""

    @property
    def features(self) -> Sequence[int]:
        """The column of the table that each of them is about."""

    @property
    def unseen(self) -> Sequence[int | None]:
        """The bin of each of them for categories that the model was fitted without; None for numbers."""

    def __call__(self, table: Any) -> Floats: ...


@dataclass(frozen=True, kw_only=True)
class ImportedTrees:
    """A tree ensemble as an importer read it from its library.

    `categories`: the columns that the library takes as categories, with the values of the codes 0, 1, ...
    `probabilities`: how the scores relate to the probabilities that the model reports, if they do.
    """

    name: str
    ensemble: Ensemble
    scores: Callable[[Any, Any, Floats], Floats]
    classes: tuple[Any, ...] = ()
    names: tuple[str, ...] | None = None
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    unseen: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Of columns of categories: the places of the options that the library was fitted without."""
    probabilities: Literal["fractions", "log-odds"] | None = None
    reported: Callable[[Any, Any, Floats], Floats] = Call("predict_proba")
    decided: bool = True
    """`predict` gives a class."""
    tie: float = 0.0
    zero_is_second: bool = False
    """A score of exactly 0 is decided for the second class."""
    as_categories: bool = False
    """The library reads categories as a column of pandas' categorical type."""
    zeros: Literal["numbers", "missing", "missing if sparse"] = "numbers"
    """Whether the library reads zeros as missing values: always, in a sparse table, or never."""
    coded_from_zero: frozenset[int] = frozenset()
    """Columns of categories whose code 0 is a category, also where zeros are missing values: so it is to LightGBM."""
    read_as_zero: float = 0.0
    """Numbers up to this size are read as 0."""
    bins: BinColumns | None = None
    """The binning that the library applies to its table before the trees read it."""
    over_features: bool = False
    """The trees read the features of the schema, not the columns of the library."""
    accepted: Any = None
    """See `Model.accepted`."""
    raw: bool = False
    """The library reads the user's own values, whatever the names of its columns."""


def classes_of(estimator: Any) -> tuple[Any, ...]:
    """The classes of an estimator, as plain values."""
    classes = tuple(plain(c) for c in np.asarray(estimator.classes_).tolist())
    if len(classes) < 2:
        raise UnsupportedModel(
            f"The {type(estimator).__name__} knows one class only, {classes[0]!r}: it decides nothing.",
            operation="one class",
        )
    return classes


def model_of(
    imported_trees: ImportedTrees,
    model: Any,
    schema: Schema,
    *,
    front: Front,
    classes: tuple[Any, ...],
    regression: bool,
) -> Model:
    """The Model, compared with the original at every split."""
    if not imported_trees.classes and classes:
        raise ModelError(
            f"{imported_trees.name} is a regression; it has no classes, but {len(classes)} class names were given."
        )
    if imported_trees.classes and regression:
        raise ModelError(f"{imported_trees.name} is a classifier, not a regression; leave out regression=True.")
    arithmetic = Columns(schema)
    source = _source(imported_trees, model, front, arithmetic)
    whole, splits = bound_to_features(imported_trees, source, front, arithmetic)
    ensemble = reachable(splits, schema)
    original = TreesOriginal(_prepared(imported_trees, source), model, imported_trees)
    imported = Model(
        function=Trees(ensemble, schema, tie=imported_trees.tie),
        schema=schema,
        original=original,
        classes=tuple(classes) or imported_trees.classes,
        source=imported_trees.name,
        precision=ensemble.summation.precision,
        for_schema=partial(model_of, imported_trees, model, front=front, classes=classes, regression=regression),
        scores_are="probabilities" if imported_trees.probabilities == "fractions" else "log-odds",
        accepted=_renamed(imported_trees, classes),
        warnings=tuple(arithmetic.warnings),
    )
    decided = None
    if imported_trees.decided and imported_trees.classes:
        decided = Predicted(model, original.source, imported_trees.classes)
    imported = replace(imported, probabilities=_probabilities(imported, original))
    return check_agreement(imported, at=edge_points(splits, schema, library=whole), decided=decided)


def bound_to_features(
    imported_trees: ImportedTrees, source: Source, front: Front, arithmetic: Columns
) -> tuple[Ensemble, Ensemble]:
    """The ensemble of the library, and the same with every split about a feature of the schema."""
    feature_columns, zeros = _feature_columns(imported_trees, source, front, arithmetic)
    whole = without_missing_zeros(imported_trees.ensemble, zeros) if zeros else imported_trees.ensemble
    return whole, bound_splits(whole, feature_columns, arithmetic.schema)


def _renamed(imported_trees: ImportedTrees, classes: tuple[Any, ...]) -> Any:
    """The class that means acceptance, by the name that the user has for it."""
    own = imported_trees.classes
    return (
        classes[own.index(imported_trees.accepted)]
        if classes and imported_trees.accepted in own
        else (imported_trees.accepted)
    )


@dataclass(frozen=True)
class TreesOriginal:
    """Scores of the fitted model itself; near a tie they follow the probabilities that it reports."""

    source: Any
    model: Any
    imported_trees: ImportedTrees

    def __call__(self, points: Floats) -> Floats:
        imported_trees = self.imported_trees
        scores = self.evaluated_by(imported_trees.scores, points)
        if imported_trees.tie > 0.0:
            near = np.flatnonzero(score_margin_of(scores) < NEAR)
            if len(near):
                reported = self.evaluated_by(imported_trees.reported, points[near])
                one = scores.shape[1] == 1
                scores[near] = settled(scores[near], reported[:, -1:] if one else reported)
        if imported_trees.zero_is_second:
            scores[scores == 0.0] = np.nextafter(0.0, 1.0)
        return scores

    def evaluated_by(self, call: Callable[[Any, Any, Floats], Floats], points: Floats) -> Floats:
        """The model's own answer; about a few rows, on one thread."""
        if len(points) > FEW_ROWS:
            return call(self.model, self.source, points)
        with openmp_on_one_thread(self.model):
            return call(self._on_one_thread, self.source, points)

    @cached_property
    def _on_one_thread(self) -> Any:
        return on_one_thread(self.model)

    def __getstate__(self) -> dict[str, Any]:  # another process makes its own copy
        return {name: value for name, value in self.__dict__.items() if name != "_on_one_thread"}


@dataclass(frozen=True)
class Reports:
    """The probabilities that the user's own object reports, one column per class."""

    original: TreesOriginal

    def __call__(self, points: Floats) -> Floats:
        own = self.original.evaluated_by(self.original.imported_trees.reported, points)
        return np.column_stack([1.0 - own, own]) if own.shape[1] == 1 else own


def _probabilities(imported: Model, original: TreesOriginal) -> Reports | None:
    """The reported probabilities, where they follow from the scores."""
    reported, kind = Reports(original), original.imported_trees.probabilities
    if kind is None:
        return None
    return reported if kind != "log-odds" or follow_from(original, reported, imported.schema) else None


# ---------------------------------------------------------------------- what the library reads


def _source(imported_trees: ImportedTrees, model: Any, front: Front, arithmetic: Columns) -> Source:
    if front:
        first = front[0][1]
        count = getattr(first, "n_features_in_", len(arithmetic.schema))
        return source_by(getattr(first, "feature_names_in_", None), count, arithmetic, raw=True)
    schema = arithmetic.schema
    names = None if imported_trees.names is None else _spelled(imported_trees.names, (*schema.names, *schema.columns))
    own = names is not None and set(names) <= set(schema.names) and not set(names) <= set(schema.columns)
    count = imported_trees.ensemble.columns if imported_trees.bins is None else imported_trees.bins.table_columns
    return source_by(names, count, arithmetic, raw=own or bool(imported_trees.categories) or imported_trees.raw)


def _spelled(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """The names as the schema spells them: LightGBM has an underscore for each space."""
    spaced = {name.replace(" ", "_"): name for name in known}
    return tuple(name if name in known else spaced.get(name, name) for name in names)


def _feature_columns(
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
    tree_columns = _Columns(imported_trees, source, tuple(step for _, step in front), tuple(owners))
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


def _check_bins(imported_trees: ImportedTrees, owners: list[int], tree_columns: _Columns, arithmetic: Columns) -> None:
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
class _Columns:
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


def _prepared(imported_trees: ImportedTrees, source: Source) -> Any:
    return (
        CategorySource(source, dict(imported_trees.categories))
        if imported_trees.as_categories and imported_trees.categories
        else source
    )


@dataclass(frozen=True)
class CategorySource:
    """A table whose categories are of pandas' own type, in the order that the library knows."""

    source: Source
    categories: dict[int, Sequence[Any]]

    def table(self, points: Floats) -> Any:
        table = self.source.table(points)
        pd = import_pandas("A model with categories of its own")
        if not isinstance(self.source, RawSource) or self.source.names is None:
            return table
        typed = {}
        for j, name in enumerate(table.columns):
            known = self.categories.get(j)
            typed[name] = table[name] if known is None else pd.Categorical(table[name], categories=list(known))
        return pd.DataFrame(typed)
