"""A scorecard as a Model: one tree per feature, in whole units of its points, so that totals are exact.

score = total - cutoff + half a unit    for a card that decides: above 0 from the cutoff on, and never 0
score = total                           for one that does not
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.agreement import check_agreement
from ifonly.model.importers.binning import below
from ifonly.model.model import Model, class_names
from ifonly.model.scorecard import Bin, Scorecard
from ifonly.model.trees import Ensemble, FeatureColumns, LibraryTree, Summation, Trees, bound, edge_points
from ifonly.model.trees.tables import Axis, tree_of_table
from ifonly.printing import shown
from ifonly.schema import Choice, Integer, Missing, Schema
from ifonly.schema.values import same_value

Floats = NDArray[np.float64]
EXACT = 2.0**52
"""Whole numbers below this, and halves of them, have their own float64."""


def import_scorecard(
    card: Scorecard, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False
) -> Model:
    """A scorecard over the features of a schema."""
    if regression and card.cutoff is not None:
        raise ModelError("The scorecard has a cutoff, so it decides; leave out regression=True, or the cutoff.")
    if classes and card.cutoff is None:
        raise ModelError("The scorecard has no cutoff, so it decides nothing; give it one, or leave out the classes.")
    _check_features(card, schema)
    units = Units(card, schema)
    trees = [_tree(units, i) for i, feature in enumerate(schema.features) if feature.name in card.bins]
    how = Summation(start=np.array([units.start]), shift=np.zeros(1), divisor=units.per_point)
    ensemble = Ensemble.of(trees, columns=len(schema), summation=how)
    if float(np.abs(ensemble.values).sum()) + abs(units.start) >= EXACT:
        raise ModelError("The scorecard's totals have more digits than a float64 holds; round its points.")
    function = Trees(bound(ensemble, FeatureColumns(range(len(schema)), np.asarray), schema), schema)
    return check_agreement(
        Model(
            function=function,
            schema=schema,
            original=units,
            classes=class_names(classes or card.classes, 1, regression=card.cutoff is None),
            source="scorecard",
            for_schema=partial(import_scorecard, card, classes=classes, regression=regression),
        ),
        at=np.concatenate([edge_points(function.ensemble, schema), _bin_edges(card, schema)]),
    )


def _check_features(card: Scorecard, schema: Schema) -> None:
    known = {feature.name: feature for feature in schema.features}
    for name, bins in card.bins.items():
        if name not in known:
            raise ModelError(
                f"The scorecard has points for '{name}', which is no feature of the schema; its features are "
                f"{', '.join(repr(own) for own in schema.names[:6])}."
            )
        feature = known[name]
        for value in (value for one in bins for value in one.values):
            if isinstance(feature, Choice):
                if not isinstance(feature, Missing) and not any(same_value(value, o) for o in feature.options):
                    raise ModelError(
                        f"The scorecard has points for {name} = {shown(value)}, which is no option of the feature; its "
                        f"options are {', '.join(shown(option) for option in feature.options[:6])}."
                    )
            elif isinstance(value, str):
                raise ModelError(f"The scorecard has points for {name} = {shown(value)}, but the feature is a number.")


@dataclass(frozen=True)
class Units:
    """The original of a scorecard: totals of points in whole units, exact."""

    card: Scorecard
    schema: Schema

    @property
    def per_point(self) -> float:
        return float(10**self.card.decimals)

    def of(self, points: Decimal) -> int:
        return int(Fraction(points) * 10**self.card.decimals)

    @property
    def start(self) -> float:
        card = self.card
        return float(self.of(card.base)) if card.cutoff is None else self.of(card.base) - self.of(card.cutoff) + 0.5

    def value(self, i: int, coordinate: float) -> int:
        """The units of a coordinate of a point."""
        feature = self.schema.features[i]
        value = feature.options[int(coordinate)] if isinstance(feature, Choice) else coordinate
        return self.of(self.card.points(feature.name, value))

    def __call__(self, points: Floats) -> Floats:
        totals = np.full(len(points), self.start)
        for i, name in enumerate(self.schema.names):
            if name in self.card.bins:
                values, which = np.unique(points[:, i], return_inverse=True)
                totals += np.array([self.value(i, value) for value in values.tolist()], dtype=np.float64)[which]
        return (totals / self.per_point)[:, None]


def _tree(units: Units, i: int) -> LibraryTree:
    """The points of a feature as a tree."""
    feature = units.schema.features[i]
    if isinstance(feature, Choice):
        ends = np.arange(float(len(feature.options)))
    else:
        edges = np.concatenate([np.zeros(0), *map(_edges, units.card.bins[feature.name])])
        ends = np.unique([*edges[(edges >= feature.lower) & (edges < feature.upper)], feature.upper])
    values = np.array([[units.value(i, end)] for end in ends.tolist()], dtype=np.float64)
    return tree_of_table([Axis(i, ends[:-1])], values, 0)


def _bin_edges(card: Scorecard, schema: Schema) -> Floats:
    """A point at every edge of every bin, and one to either side; for choices, one at every option."""
    rng, parts = np.random.default_rng(0), []
    for i, feature in enumerate(schema.features):
        if feature.name not in card.bins:
            continue
        if isinstance(feature, Choice):
            values = np.arange(float(len(feature.options)))
        else:
            edges = np.concatenate([np.zeros(0), *map(_edges, card.bins[feature.name])])
            size = feature.step if isinstance(feature, Integer) else 0.0
            near = [edges, np.nextafter(edges + size, np.inf), np.nextafter(edges - size, -np.inf)]
            values = np.clip(np.concatenate(near), feature.lower, feature.upper)
            if isinstance(feature, Integer):
                values = feature.lower + feature.step * np.floor((values - feature.lower) / feature.step)
        points = schema.sample(len(values), rng)
        points[:, i] = values
        parts.append(points)
    return np.concatenate([np.zeros((0, len(schema))), *parts])


def _edges(one: Bin) -> Floats:
    """The largest numbers of the cells that a bin parts."""
    if one.below is not None:
        return below([one.below])
    if one.up_to is not None:
        return np.array([one.up_to])
    numbers = np.array([float(value) for value in one.values], dtype=np.float64)
    return np.concatenate([below(numbers), numbers])
