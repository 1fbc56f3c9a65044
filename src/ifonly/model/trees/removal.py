"""Ensembles from which trees were removed: what each tree adds to a condition, and the worst trees to lose."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.model.model import ForwardPass, Model
from ifonly.model.trees.checks import EVERY
from ifonly.model.trees.ensemble import Ensemble, Floats
from ifonly.model.trees.kind import Trees


@dataclass(frozen=True)
class Removals:
    """The ensembles that are left of a model when some of its trees are removed.

    A forest that averages its trees then averages those that are left; a sum is the sum of those.
    """

    model: Model
    trees: Trees

    @classmethod
    def of(cls, model: Model) -> Removals:
        trees = model.function.as_trees()
        if trees is None:
            raise UnsupportedModel(
                f"Trees can be removed from an ensemble of trees only, and this model is {model.function.name}; for a "
                f"network, ask for RobustToWeights.",
                operation=model.function.name,
            )
        return cls(model, trees)

    @property
    def count(self) -> int:
        return len(self.trees.ensemble.roots)

    @property
    def _averages(self) -> bool:
        how = self.trees.ensemble.summation
        return how.divisor == float(self.count) and not how.start.any()

    def without(self, gone: Collection[int]) -> Model:
        """The model without these trees: their leaves add 0."""
        ensemble = self.trees.ensemble
        leaf = ensemble.nodes.leaf >= 0
        values, how = ensemble.values.copy(), ensemble.summation
        values[ensemble.nodes.leaf[leaf][np.isin(ensemble.tree_of[leaf], list(gone))]] = 0.0
        divisor = float(self.count - len(gone)) if self._averages else how.divisor
        left = replace(ensemble, values=values, summation=replace(how, divisor=divisor, ordered=False))
        function = replace(self.trees, ensemble=left)
        made = replace(self.model, function=function, original=ForwardPass(function, self.model.schema))
        return replace(made, probabilities=None, for_schema=None, deviation=0.0)

    def terms(self, point: Floats, condition: Floats, need: float) -> tuple[float, Floats]:
        """A number and what each tree adds to it, for one row: the sum over the trees that are left is at least 0
        exactly where condition.scores of what is left is at least `need`."""
        ensemble, how = self.trees.ensemble, self.trees.ensemble.summation
        leaf = _by_output(ensemble, ensemble.leaves(point[None, :])[0]) @ condition * how.scale
        short = need - float(condition @ how.shift)
        if self._averages:
            return 0.0, leaf - short
        return float(condition @ how.start) * how.scale / how.divisor - short, leaf / how.divisor

    def worst(self, point: Floats, condition: Floats, need: float, most: int) -> tuple[float, tuple[int, ...]]:
        """The least that is left of a condition when at most so many trees are removed, and which."""
        constant, terms = self.terms(point, condition, need)
        order = np.argsort(-terms, kind="stable")[:most]
        gone = tuple(sorted(int(t) for t in order if terms[t] > 0.0))
        return constant + float(np.delete(terms, gone).sum()), gone


def _by_output(ensemble: Ensemble, leaves: Floats) -> Floats:
    """What the leaf of each tree adds to each output."""
    values = ensemble.values[leaves]
    if values.shape[1] == ensemble.outputs and (ensemble.adds_to == EVERY).all():
        return values
    return np.where(np.arange(ensemble.outputs) == ensemble.adds_to[:, None], values, 0.0)
