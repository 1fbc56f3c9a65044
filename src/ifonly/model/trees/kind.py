"""Decision tree ensemble over the features of a schema: a kind of model, piecewise constant on cells.

numbers   the cuts of a feature, c_1 < c_2 < ..., part it into x <= c_1, c_1 < x <= c_2, ...
choices   each option is a cell
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.kind import Kind, Precision
from ifonly.model.trees.ensemble import Ensemble, Floats
from ifonly.printing import shown
from ifonly.schema import Choice, Schema


@dataclass(frozen=True, eq=False)
class Trees(Kind):
    """An ensemble that reads the points of a schema: cuts by `x <= cut` in float64 on numbers, sets of options.

    `tie`: scores that are closer to a tie may have equal probabilities in the library's own arithmetic.
    """

    exact_sums: ClassVar[bool] = True
    search: ClassVar[str] = "trees"

    ensemble: Ensemble
    schema: Schema
    name: str = "an ensemble of trees"
    tie: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.ensemble, Ensemble) or not isinstance(self.schema, Schema):
            raise ModelError(f"Trees are made of an ensemble and a schema; got {shown(self.ensemble)}.")
        ensemble, nodes = self.ensemble, self.ensemble.nodes
        if ensemble.columns != len(self.schema):
            raise ModelError(f"The trees read {ensemble.columns} features, but the schema has {len(self.schema)}.")
        if ensemble.comparison != "<=" or ensemble.compared_in != "float64":
            raise ModelError("Trees over features compare by <= in float64; bind the ensemble to the schema first.")
        choice = np.array([isinstance(feature, Choice) for feature in self.schema.features])
        inner = nodes.column >= 0
        widest = max((len(f.options) for f in self.schema.features if isinstance(f, Choice)), default=0)
        if ensemble.sets.shape[1] != widest:
            raise ModelError(f"Trees over features have sets of {widest} options; these have {ensemble.sets.shape[1]}.")
        if (choice[nodes.column[inner]] != (nodes.chosen[inner] >= 0)).any():
            raise ModelError("Trees over features split numbers by cuts, and choices by sets of options.")

    @property
    def inputs(self) -> int:
        return len(self.schema.columns)

    @property
    def outputs(self) -> int:
        return self.ensemble.outputs

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.ensemble.fingerprint.encode())
        digest.update(repr([feature.to_dict() for feature in self.schema.features]).encode())
        digest.update(repr((tuple(self.schema.columns), self.tie)).encode())
        return digest.hexdigest()

    def points(self, encoded: Floats) -> Floats:
        """The points of encoded rows."""
        x = np.asarray(encoded, dtype=np.float64)
        points = np.empty((len(x), len(self.schema)))
        for i, (feature, columns) in enumerate(zip(self.schema.features, self.schema.feature_columns, strict=True)):
            match feature.encoding if isinstance(feature, Choice) else "number":
                case "onehot":
                    points[:, i] = x[:, columns].argmax(axis=1)
                case "dummy":
                    points[:, i] = (x[:, columns] * np.arange(1, len(columns) + 1)).sum(axis=1)
                case "thermometer":
                    points[:, i] = x[:, columns].sum(axis=1) - 1.0
                case _:
                    points[:, i] = x[:, columns[0]]
        return points

    def scores(self, x: Floats) -> Floats:
        return self.ensemble.scores(self.points(x))

    def same_scores(self, before: Floats, after: Floats) -> NDArray[np.bool_]:
        """Numbers between the same cuts go the same ways."""
        same, moved = np.ones(len(before), dtype=np.bool_), before != after
        for g in np.flatnonzero(moved.any(axis=0)).tolist():
            if isinstance(self.schema.features[g], Choice):
                same &= ~moved[:, g]
            else:
                same &= np.searchsorted(self.cuts[g], before[:, g]) == np.searchsorted(self.cuts[g], after[:, g])
        return same

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """0 where the sum is the library's own, bit for bit; else the error of another order of summation."""
        ensemble = self.ensemble
        other = np.zeros(self.outputs) if ensemble.summation.ordered else 2.0 * ensemble.rounding()
        return np.broadcast_to(other + self.tie, (len(lower), self.outputs)).copy()

    def in_any_order(self) -> Trees:
        """The same trees, with an unknown order of summation."""
        ensemble = self.ensemble
        return replace(self, ensemble=replace(ensemble, summation=replace(ensemble.summation, ordered=False)))

    def as_trees(self) -> Trees:
        return self

    def sizes(self) -> dict[str, Any]:
        ensemble = self.ensemble
        sizes = {"trees": len(ensemble.roots), "leaves": len(ensemble.values), "depth": ensemble.depth}
        return {**sizes, "outputs": self.outputs}

    # ------------------------------------------------------------------ cells

    @cached_property
    def cuts(self) -> tuple[Floats, ...]:
        """For each feature the cuts that part its numbers, in order; none for a choice."""
        nodes = self.ensemble.nodes
        number = (nodes.column >= 0) & (nodes.chosen < 0) & np.isfinite(nodes.threshold)
        return tuple(np.unique(nodes.threshold[number & (nodes.column == i)]) for i in range(len(self.schema)))

    @cached_property
    def option_sets(self) -> tuple[NDArray[np.bool_], ...]:
        """For each feature the sets of options that go left somewhere, shape (sets, options); none for a number."""
        nodes, result = self.ensemble.nodes, []
        for i, feature in enumerate(self.schema.features):
            rows = np.unique(nodes.chosen[(nodes.column == i) & (nodes.chosen >= 0)])
            width = len(feature.options) if isinstance(feature, Choice) else 0
            result.append(self.ensemble.sets[rows][:, :width])
        return tuple(result)
