"""Explainable boosting machines of interpret: one table per term, of the bins of one feature or of several.

    score = intercept + sum over terms of table[bins of the row],   in float64, term by term: bit for bit

Which bin a value falls into (cuts, categories, missing and unseen values) is computed by the model itself.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.importers.detect import of_library
from ifonly.model.importers.sklearn_original import answering
from ifonly.model.importers.trees.imported import Call, ImportedTrees, classes_of
from ifonly.model.trees import EVERY, Ensemble, Summation
from ifonly.model.trees.tables import Axis, tree_of_table

Floats = NDArray[np.float64]


def ebm_trees(model: Any) -> ImportedTrees | None:
    """The tables of an explainable boosting machine as trees over its bins; None for other models."""
    if not of_library(model, "interpret", "EBMModel"):
        return None
    name, link = type(model).__name__, getattr(model, "link_", "identity")
    classes = classes_of(model) if hasattr(model, "classes_") else ()
    if link not in (("logit", "mlogit") if classes else ("identity",)):
        raise UnsupportedModel(
            f"The link '{link}' of the {name} makes its prediction another function of the sum of its terms; "
            f"supported are classifiers, and regressions whose prediction is the sum.",
            operation=f"{name} with link {link}",
        )
    start, bins = np.ravel(np.asarray(model.intercept_, dtype=np.float64)), Bins.of(model)
    several = len(start) > 1
    trees = []
    for term, scores in zip(bins.terms, model.term_scores_, strict=True):
        table = np.asarray(scores, dtype=np.float64)
        table = table if several else table[..., None]
        axes = [
            Axis(j, np.arange(count - 1.0) if bins.continuous[j] else None)
            for j, count in zip(term, table.shape, strict=False)
        ]
        trees.append(tree_of_table(axes, table, EVERY if several else 0))
    if not trees:
        raise UnsupportedModel(f"The {name} has no terms: it says the same of everybody.", operation="no terms")
    return ImportedTrees(
        name=f"interpret {name}",
        ensemble=Ensemble.of(
            trees, columns=len(bins.features), summation=Summation(start=start, shift=np.zeros(len(start)))
        ),
        scores=Call("decision_function" if classes else "predict"),
        classes=classes,
        names=_names(model),
        probabilities="log-odds" if len(classes) == 2 else None,
        bins=bins,
        raw=_reads_words(model),
    )


@dataclass(frozen=True)
class Bins:
    """From a table to the bins that a model puts its values into: one column per feature and fineness.

    A model whose tables hold the number of each cell says which cell a row falls into.
    """

    model: Any
    table_columns: int
    features: tuple[int, ...]
    """The feature of the model that each column of bins is about."""
    continuous: tuple[bool, ...]
    terms: tuple[tuple[int, ...], ...]
    """The columns of bins that each term reads."""

    @classmethod
    def of(cls, model: Any) -> Bins:
        keys: dict[tuple[int, int], int] = {}
        terms = []
        for term in model.term_features_:
            finenesses = [(int(f), min(len(model.bins_[f]), len(term))) for f in term]
            terms.append(tuple(keys.setdefault(key, len(keys)) for key in finenesses))
        numbered = copy.copy(model)
        several = np.size(model.intercept_) > 1
        shapes = [np.shape(scores)[:-1] if several else np.shape(scores) for scores in model.term_scores_]
        numbered.term_scores_ = [np.arange(np.prod(shape), dtype=np.float64).reshape(shape) for shape in shapes]
        numbered.intercept_ = np.zeros(1)
        continuous = tuple(model.feature_types_in_[f] == "continuous" for f, _ in keys)
        given = len(model.feature_types_in_)
        return cls(numbered, given, tuple(f for f, _ in keys), continuous, tuple(terms))

    @property
    def unseen(self) -> list[int | None]:
        """The last bin of each column of categories, which is that of all others."""
        sizes: dict[int, int] = {}
        for term, numbers in zip(self.terms, self.model.term_scores_, strict=True):
            sizes |= dict(zip(term, numbers.shape, strict=True))
        return [None if self.continuous[j] else sizes[j] - 1 for j in range(len(self.features))]

    def __call__(self, table: Any) -> Floats:
        with answering():
            cells = np.asarray(self.model.eval_terms(table)).astype(np.intp)
        bins = np.zeros((len(cells), len(self.features)))
        for t, (term, numbers) in enumerate(zip(self.terms, self.model.term_scores_, strict=True)):
            for j, places in zip(term, np.unravel_index(cells[:, t], numbers.shape), strict=True):
                bins[:, j] = places
        return bins


def _names(model: Any) -> tuple[str, ...] | None:
    """The names of the features, unless the model made them up."""
    names = tuple(str(name) for name in model.feature_names_in_)
    made_up = tuple(f"feature_{i:04d}" for i in range(len(names)))
    return None if names == made_up else names


def _reads_words(model: Any) -> bool:
    """Are some of its categories words? Then it was trained on the user's own values."""
    return any(not _is_number(word) for levels in model.bins_ for level in levels for word in _words(level))


def _words(level: Any) -> list[str]:
    return [str(word) for word in level] if isinstance(level, Mapping) else []


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
