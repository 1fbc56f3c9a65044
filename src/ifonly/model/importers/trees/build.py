"""A library's tree ensemble as a Model: its columns bound to features, its original, and the comparison of the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.agreement import check_agreement, score_margin_of
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.one_thread import FEW_ROWS, on_one_thread, openmp_on_one_thread
from ifonly.model.importers.probabilities import follow_from, settled
from ifonly.model.importers.sklearn_original import Predicted
from ifonly.model.importers.sklearn_sources import RawSource, Source, source_by
from ifonly.model.importers.trees.imported import ImportedTrees
from ifonly.model.importers.trees.tree_columns import Front, feature_columns
from ifonly.model.model import Model
from ifonly.model.trees import Ensemble, Trees, bound_splits, edge_points, reachable
from ifonly.model.trees.zeros import without_missing_zeros
from ifonly.schema import Schema
from ifonly.schema.tables import import_pandas

Floats = NDArray[np.float64]
NEAR = 1e-5
"""Scores nearer to a tie than this are settled by the probabilities that the library itself reports."""


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
    columns, zeros = feature_columns(imported_trees, source, front, arithmetic)
    whole = without_missing_zeros(imported_trees.ensemble, zeros) if zeros else imported_trees.ensemble
    return whole, bound_splits(whole, columns, arithmetic.schema)


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
