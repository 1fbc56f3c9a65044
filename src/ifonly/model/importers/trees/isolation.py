"""Isolation forest importer: scikit-learn's own `predict`, as a sum of path lengths over trees against one threshold.

    score_samples = -2 ^ -(sum of path lengths / denominator),   inlier  iff  score_samples - offset_ >= 0

The score grows with the sum, so the decision is a threshold on it. The threshold is found by bisection over all float64
numbers, in scikit-learn's own arithmetic; the path lengths are added up tree by tree, as scikit-learn does.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import MissingExtra, UnsupportedModel
from ifonly.model.importers.sklearn_original import call_model
from ifonly.model.trees import EVERY, LibraryTree
from ifonly.schema.values import plain

Floats = NDArray[np.float64]

OUTLIER, INLIER = -1, 1
"""As `predict` says them."""
NEIGHBOURS = 64
"""Numbers on either side of the threshold for which it is checked that the decision changes there only."""


def fitted_forest(rows: Floats, outliers: float, trees: int) -> Any:
    """An isolation forest of these rows, with scikit-learn's own defaults but for what is given."""
    try:
        from sklearn.ensemble import IsolationForest
    except ImportError:
        raise MissingExtra("sklearn", extra="sklearn", needed_for="Fitting an isolation forest") from None
    return IsolationForest(n_estimators=trees, contamination=outliers, random_state=0).fit(rows)


def path_lengths(tree: Any) -> Floats:
    """What each node, as a leaf, adds to the sum: its depth, and what isolating its own rows would take on average."""
    from sklearn.ensemble._iforest import _average_path_length

    return np.asarray(tree.compute_node_depths() + _average_path_length(tree.n_node_samples) - 1.0)


@dataclass(frozen=True)
class PathLengths:
    """The sum of path lengths above the threshold, from the scores of scikit-learn itself; its sign is `predict`'s."""

    denominator: float
    offset: float
    last_outlier: float

    @classmethod
    def of(cls, forest: Any) -> PathLengths:
        from sklearn.ensemble._iforest import _average_path_length

        denominator = float((len(forest.estimators_) * _average_path_length([forest._max_samples]))[0])
        if denominator == 0.0:
            raise UnsupportedModel(
                "The IsolationForest was fitted on single rows, so all rows have the same score.",
                operation="IsolationForest(max_samples=1)",
            )
        offset = float(plain(forest.offset_))
        return cls(denominator, offset, _last_outlier(denominator, offset, len(forest.estimators_)))

    def __call__(self, model: Any, source: Any, points: Floats) -> Floats:
        scores = np.asarray(call_model(model, "score_samples", source, points), dtype=np.float64)
        inside = ~(scores - self.offset < 0)  # all that `predict` adds to the scores
        sums = -self.denominator * np.log2(-scores) - self.last_outlier
        least = np.nextafter(0.0, 1.0)
        return np.where(inside, np.maximum(sums, least), np.minimum(sums, 0.0)).reshape(-1, 1)


def _is_inlier(sums: Floats, denominator: float, offset: float) -> NDArray[np.bool_]:
    """scikit-learn's decision on sums of path lengths, operation by operation."""
    scores = -(2 ** (-np.divide(sums, np.array([denominator]))))
    return np.asarray(~(scores - offset < 0))


def _last_outlier(denominator: float, offset: float, trees: int) -> float:
    """The largest sum of path lengths that is an outlier's: the next number above it is an inlier's."""
    low, high = 0.0, 1e6 * trees
    if _is_inlier(np.array([low]), denominator, offset)[0]:
        return float(np.nextafter(0.0, -1.0))
    if not _is_inlier(np.array([high]), denominator, offset)[0]:
        return high
    first, last = _place(low), _place(high)
    while last - first > 1:
        middle = (first + last) // 2
        if _is_inlier(np.array([_number(middle)]), denominator, offset)[0]:
            last = middle
        else:
            first = middle
    beside = [_number(k) for k in range(max(first - NEIGHBOURS, 0), last + NEIGHBOURS)]
    if not (_is_inlier(np.array(beside), denominator, offset) == (np.array(beside) > _number(first))).all():
        raise UnsupportedModel(
            "Around its threshold the IsolationForest decides neither way throughout, since powers of 2 are not "
            "computed monotonically here; set its offset_ a little lower.",
            operation="IsolationForest threshold",
        )
    return _number(first)


def _place(number: float) -> int:
    """The numbers >= 0 in order."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _number(place: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", place))[0])


def isolation_trees(forest: Any, tree_of: Any) -> list[LibraryTree]:
    """The trees, with path lengths at their leaves, over the columns that each was drawn."""
    trees = []
    for member, features in zip(forest.estimators_, forest.estimators_features_, strict=True):
        tree = tree_of(member.tree_, path_lengths(member.tree_), EVERY)
        chosen = np.asarray(features)
        column = np.asarray(tree.column)
        trees.append(replace(tree, column=np.where(column < 0, -1, chosen[column]), adds_to=0))
    return trees
