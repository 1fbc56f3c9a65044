"""Trees over fewer features: splits of features that follow from one with few values become splits of its values.

Every row reaches the leaves that it reached, so the scores are the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ifonly.model.trees.ensemble import Bools, Ensemble, Floats, Nodes
from ifonly.model.trees.kind import Trees
from ifonly.schema import Choice, Schema

KEPT = 4
"""Of the trees of one model, for as many questions."""


@dataclass(frozen=True)
class FeatureSource:
    """Where a feature is among fewer: its place there; and where that one is a choice whose options stand for values,
    the value that the feature has with each option."""

    place: int
    values: tuple[float, ...] = ()


Sources = tuple[FeatureSource, ...]
_KNOWN: WeakKeyDictionary[Trees, dict[Sources, Trees]] = WeakKeyDictionary()
_KNOWN_NODES: WeakKeyDictionary[Nodes, dict[Sources, tuple[Nodes, Bools]]] = WeakKeyDictionary()
"""Ensembles that differ in the values of leaves only share their nodes, and still do over fewer features."""


def over_fewer(trees: Trees, sources: Sequence[FeatureSource], schema: Schema) -> Trees:
    """The same trees over `schema`; of each feature of theirs, where it is."""
    known, key = _KNOWN.setdefault(trees, {}), tuple(sources)
    found = known.get(key)
    if found is None or found.schema != schema:
        nodes, sets = _nodes(trees.ensemble, key, schema)
        ensemble = replace(trees.ensemble, columns=len(schema), nodes=nodes, sets=sets)
        found = replace(trees, ensemble=ensemble, schema=schema)
        if len(known) >= KEPT:
            known.pop(next(iter(known)))
        known[key] = found
    return found


def _nodes(ensemble: Ensemble, sources: Sources, schema: Schema) -> tuple[Nodes, Bools]:
    known = _KNOWN_NODES.setdefault(ensemble.nodes, {})
    if sources not in known:
        if len(known) >= KEPT:
            known.pop(next(iter(known)))
        known[sources] = _moved(ensemble, sources, schema)
    return known[sources]


def _moved(ensemble: Ensemble, sources: Sources, schema: Schema) -> tuple[Nodes, Bools]:
    """The nodes over fewer features, and the sets of options that go left."""
    nodes = ensemble.nodes
    widest = max((len(f.options) for f in schema.features if isinstance(f, Choice)), default=0)
    column, threshold, chosen = nodes.column.copy(), nodes.threshold.copy(), nodes.chosen.copy()
    tables: list[Bools] = []
    for g, source in enumerate(sources):
        here = np.flatnonzero(nodes.column == g)
        column[here] = source.place
        if not len(here) or not (source.values or (nodes.chosen[here] >= 0).any()):
            continue
        left, which = _sets(ensemble, here, source, schema)
        table = np.zeros((len(left), widest), dtype=np.bool_)
        table[:, : left.shape[1]] = left
        chosen[here] = which + sum(map(len, tables))
        threshold[here] = 0.0
        tables.append(table)
    sets = np.concatenate(tables) if tables else np.zeros((0, widest), dtype=np.bool_)
    return replace(nodes, column=column, threshold=threshold, chosen=chosen), sets


def _sets(
    ensemble: Ensemble, here: NDArray[np.intp], source: FeatureSource, schema: Schema
) -> tuple[Bools, NDArray[np.intp]]:
    """The different sets of options that go left at these nodes of one feature, and which of them each node has."""
    nodes, feature = ensemble.nodes, schema.features[source.place]
    assert isinstance(feature, Choice)
    if not source.values:
        rows, which = np.unique(nodes.chosen[here], return_inverse=True)
        return ensemble.sets[rows][:, : len(feature.options)], which.ravel()
    values: Floats = np.array(source.values)
    if (nodes.chosen[here] >= 0).all():
        rows, which = np.unique(nodes.chosen[here], return_inverse=True)
        return ensemble.sets[rows][:, values.astype(np.intp)], which.ravel()
    cuts, which = np.unique(nodes.threshold[here], return_inverse=True)
    return values <= cuts[:, None], which.ravel()
