"""Linear models after discretisation: a sum over features of a value per bin, as an ensemble of one tree per feature.

    score = intercept + sum over columns of weight * column,   each column constant on the cells of one feature

A feature's columns that are never nonzero together (one-hot ones) are one tree: their sum has one term. Others are a
tree each, so that the bound on rounding counts every term. A whole number that stays linear has a cell for each of its
values. A real number that stays linear has none, and no network jumps as bins do: the two together are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.binning import every_number
from ifonly.model.importers.column_kinds import Bent, Binned, Column, Curved, Options
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.sklearn_estimators import LOGISTIC, reader_of
from ifonly.model.importers.transformers import sklearn_name
from ifonly.model.importers.trees.imported import Call, ImportedTrees, classes_of
from ifonly.model.importers.trees.tree_columns import called_with
from ifonly.model.trees import EVERY, Ensemble, LibraryTree, Summation
from ifonly.model.trees.tables import Axis, tree_of_table
from ifonly.schema import Choice, Integer, Schema

Floats = NDArray[np.float64]
NOWHERE = -1
"""The owner of a column that is the same for all rows."""


def trees_behind_bins(
    estimator: Any, columns: list[Column], arithmetic: Columns, read: Callable[[Floats], Floats]
) -> ImportedTrees:
    """The trees that a linear estimator is over the features of the schema. `read`: points to its columns."""
    schema, name = arithmetic.schema, type(estimator).__name__
    weight, start, answer = _weights(estimator, len(columns))
    owned = [_owned(column, arithmetic, name) for column in columns]
    trees: list[LibraryTree] = []
    for owner in sorted({owner for owner, _ in owned}):
        mine = [j for j, (other, _) in enumerate(owned) if other == owner]
        cells = _FeatureCells.of(owner, [owned[j][1] for j in mine], schema)
        values = np.atleast_2d(read(cells.points))[:, mine]
        trees += [cells.tree(values[:, part] @ weight[:, [mine[j] for j in part]].T) for part in _apart(values)]
    classes = classes_of(estimator) if answer != "predict" else ()
    logistic = sklearn_name(estimator, LOGISTIC) or getattr(estimator, "loss", None) == "log_loss"
    return ImportedTrees(
        name=f"sklearn {name}",
        ensemble=Ensemble.of(
            trees,
            columns=len(schema),
            summation=Summation(start=start, shift=np.zeros(len(start)), ordered=False),
        ),
        scores=Call(answer),
        classes=classes,
        probabilities="log-odds" if len(classes) == 2 and logistic else None,
        over_features=True,
    )


def read_columns(source: Any, steps: Sequence[Any], points: Floats) -> Floats:
    """The columns after these transformers, as a function of points."""
    table = source.table(points)
    for step in steps:
        table = called_with(step, table)
    return np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)


def _weights(estimator: Any, columns: int) -> tuple[Floats, Floats, str]:
    """Weights, shape (outputs, columns), the intercepts, and the method that gives the scores."""
    name = type(estimator).__name__
    if not hasattr(estimator, "coef_") or hasattr(estimator, "support_vectors_"):
        raise UnsupportedModel(
            f"{name} stands behind bins, where only linear models and trees are supported: bins jump, and what follows "
            f"them must be a sum over bins.",
            operation=f"bins before {name}",
        )
    answer = reader_of(estimator)(estimator, Flow.of(columns)).answer
    coefficients = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else estimator.coef_
    weight = np.atleast_2d(np.asarray(coefficients))
    if weight.dtype != np.float64:
        raise UnsupportedModel(
            f"{name} computes in {weight.dtype} behind bins; fit it on numbers in float64.",
            operation=f"{weight.dtype} behind bins",
        )
    start = np.broadcast_to(np.ravel(np.asarray(estimator.intercept_, dtype=np.float64)), (len(weight),))
    return weight, start.copy(), answer


def tabulated(columns: list[Column], estimator: Any, arithmetic: Columns) -> bool:
    """Is it read as a sum over bins? So are bins, and curves before linear models where all numbers have few values."""
    if any(isinstance(column, Binned) for column in columns):
        return True
    if not any(isinstance(column, Curved) for column in columns) or not _is_linear(estimator):
        return False
    try:
        for column in columns:
            _owned(column, arithmetic, type(estimator).__name__)
    except UnsupportedModel:
        return False
    return True


def _is_linear(estimator: Any) -> bool:
    weights = getattr(estimator, "coef_", None)
    return weights is not None and not hasattr(estimator, "support_vectors_") and weights.dtype == np.float64


def _owned(column: Column, arithmetic: Columns, name: str) -> tuple[int, Floats]:
    """The feature that a column depends on, and the cuts between which it is constant."""
    nothing = np.zeros(0)
    match column:
        case Binned(feature=feature, cuts=cuts):
            return feature, cuts
        case Options(feature=feature):
            return feature, nothing
        case Bent(feature=feature) | Curved(feature=feature):
            numbers = every_number(arithmetic.schema.features[feature])
            if numbers is not None or isinstance(arithmetic.schema.features[feature], Choice):
                return feature, nothing if numbers is None else numbers
    line = arithmetic.line(column, name)
    schema = arithmetic.schema
    owners = [g for g, places in enumerate(schema.feature_columns) if line.weight[places].any()]
    if not owners:
        return NOWHERE, nothing
    if len(owners) == 1 and isinstance(schema.features[owners[0]], Choice):
        return owners[0], nothing
    if len(owners) == 1 and (numbers := every_number(schema.features[owners[0]])) is not None:
        return owners[0], numbers
    raise UnsupportedModel(
        f"{name} takes {arithmetic.describe(line)} as it is and others in bins: that is neither a network nor a sum "
        f"over bins; bin all real numbers (KBinsDiscretizer), or none.",
        operation="bins beside linear numbers",
    )


def _apart(values: Floats) -> list[list[int]]:
    """The columns in groups in which no two are nonzero together."""
    groups: list[tuple[NDArray[np.bool_], list[int]]] = []
    for j, used in enumerate((values != 0.0).T):
        for i, (taken, members) in enumerate(groups):
            if not (taken & used).any():
                groups[i] = (taken | used, [*members, j])
                break
        else:
            groups.append((used, [j]))
    return [members for _, members in groups]


def _whole(feature: Integer, cuts: Floats) -> Floats:
    """The largest numbers of the feature up to these."""
    rank = np.floor((np.clip(cuts, feature.lower - feature.step, feature.upper) - feature.lower) / feature.step)
    rank -= feature.lower + feature.step * rank > cuts
    rank += feature.lower + feature.step * (rank + 1.0) <= cuts
    return feature.lower + feature.step * rank


@dataclass(frozen=True, eq=False)
class _FeatureCells:
    """The cells of a feature, and a point in each."""

    axes: list[Axis]
    points: Floats

    @classmethod
    def of(cls, owner: int, cuts: Sequence[Floats], schema: Schema) -> _FeatureCells:
        usual = schema.grid[0]
        if owner == NOWHERE:
            return cls([], usual[None, :].copy())
        feature = schema.features[owner]
        if isinstance(feature, Choice):
            ends = np.arange(float(len(feature.options)))
        else:
            inside = np.concatenate([np.zeros(0), *cuts])
            if isinstance(feature, Integer):
                inside = _whole(feature, inside)
            ends = np.unique([*inside[(inside >= feature.lower) & (inside < feature.upper)], feature.upper])
        points = np.repeat(usual[None, :], len(ends), axis=0)
        points[:, owner] = ends
        return cls([Axis(owner, ends[:-1])], points)

    def tree(self, values: Floats) -> LibraryTree:
        """The tree of one value per cell and output."""
        several = values.shape[1] > 1
        table = values if self.axes else values[0]
        return tree_of_table(self.axes, table, EVERY if several else 0)
