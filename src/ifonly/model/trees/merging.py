"""Several ensembles of trees over one schema as one list of trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.model.trees.checks import EVERY
from ifonly.model.trees.ensemble import NODE_FIELDS, Ensemble, Floats, Nodes, Summation
from ifonly.model.trees.kind import Trees


def merged(several: Sequence[Trees]) -> Trees:
    """The trees of all, in order. A leaf has one value per output of all, 0 where its tree belongs to another ensemble:
    adding it is exact in any arithmetic. How the sums become scores is not part of it (`Summation.plain`)."""
    if len(several) == 1:
        return several[0]
    outputs = sum(one.outputs for one in several)
    if all(one.ensemble.nodes is several[0].ensemble.nodes for one in several):  # as when trees were removed
        return _same_trees(several, outputs)
    parts: dict[str, list[Any]] = {name: [] for name in NODE_FIELDS}
    values, roots, sets, before = [], [], [], 0
    nodes = leaves = rows = 0
    for one in several:
        ensemble, own = one.ensemble, one.ensemble.nodes
        for name in NODE_FIELDS:
            array = getattr(own, name)
            shift = {"left": nodes, "right": nodes}.get(name, 0)
            kept = {"leaf": leaves, "chosen": rows}.get(name)
            parts[name].append(array + shift if kept is None else np.where(array >= 0, array + kept, -1))
        table = np.zeros((len(ensemble.values), outputs))
        table[:, before : before + one.outputs] = _by_output(ensemble)
        values.append(table)
        roots.append(ensemble.roots + nodes)
        sets.append(ensemble.sets)
        nodes, leaves, rows, before = (
            nodes + len(own), leaves + len(table), rows + len(ensemble.sets), before + one.outputs
        )  # fmt: skip
    joined = Ensemble(
        columns=several[0].ensemble.columns,
        nodes=Nodes(**{name: np.concatenate(part).astype(NODE_FIELDS[name]) for name, part in parts.items()}),
        values=np.concatenate(values),
        roots=np.concatenate(roots),
        adds_to=np.full(sum(map(len, roots)), EVERY),
        summation=Summation.plain(outputs),
        sets=np.concatenate(sets),
    )
    return Trees(joined, several[0].schema)


def _same_trees(several: Sequence[Trees], outputs: int) -> Trees:
    """Ensembles that differ in the values of their leaves only."""
    first = several[0].ensemble
    same = replace(
        first,
        values=np.concatenate([_by_output(one.ensemble) for one in several], axis=1),
        adds_to=np.full(len(first.roots), EVERY),
        summation=Summation.plain(outputs),
    )
    return Trees(same, several[0].schema)


def _by_output(ensemble: Ensemble) -> Floats:
    """(leaf, output): the values of the leaves, 0 for outputs that their tree does not add to."""
    if ensemble.values.shape[1] == ensemble.outputs:
        return ensemble.values
    leaf = ensemble.nodes.leaf >= 0
    output = np.zeros(len(ensemble.values), dtype=np.intp)
    output[ensemble.nodes.leaf[leaf]] = ensemble.adds_to[ensemble.tree_of[leaf]]
    return np.where(np.arange(ensemble.outputs) == output[:, None], ensemble.values, 0.0)
