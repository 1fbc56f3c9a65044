"""Checks of the arrays of an ensemble: their shapes, and that its nodes form trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.printing import shown

if TYPE_CHECKING:
    from ifonly.model.trees.ensemble import Ensemble

MAX_NODES = 20_000_000
MAX_TREES = 1_000_000
MAX_SETS = 400_000_000
"""Entries of the table of category sets."""
EVERY = -1
"""Adds to every output: its leaves hold one value per output."""


def frozen_array(array: Any, kind: Any, name: str, dimensions: int) -> NDArray[Any]:
    array = np.asarray(array)
    if array.dtype.kind not in "biuf" or array.ndim != dimensions:
        raise ModelError(f"'{name}' of an ensemble must be an array of numbers of {dimensions} dimension(s).")
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.array(array, dtype=kind, order="C")
    if np.dtype(kind).kind == "i" and not np.array_equal(result, array):
        raise ModelError(f"'{name}' of an ensemble must be whole numbers below 2^31.")
    result.flags.writeable = False
    return result


def check_shapes(ensemble: Ensemble) -> None:
    outputs, trees = len(ensemble.summation.start), len(ensemble.roots)
    if not 1 <= trees <= MAX_TREES or not 1 <= len(ensemble.nodes) <= MAX_NODES or ensemble.sets.size > MAX_SETS:
        raise ModelError(f"An ensemble has at most {MAX_TREES} trees and {MAX_NODES} nodes; this has {trees} trees.")
    if len(ensemble.adds_to) != trees or ((ensemble.adds_to < EVERY) | (ensemble.adds_to >= outputs)).any():
        raise ModelError(f"Each tree adds to one of the {outputs} outputs, or to all (-1).")
    vector = bool((ensemble.adds_to == EVERY).any())
    if ensemble.values.shape[1] != (outputs if vector else 1) or (vector and not (ensemble.adds_to == EVERY).all()):
        raise ModelError(f"Leaves have {ensemble.values.shape[1]} values, for {outputs} outputs.")
    numbers = (ensemble.values, ensemble.summation.start, ensemble.summation.shift)
    if not all(np.isfinite(array).all() for array in numbers):
        raise ModelError("An ensemble has NaN or infinite values at its leaves; the model is damaged.")
    if not isinstance(ensemble.columns, int) or ensemble.columns < 1:
        raise ModelError(f"An ensemble reads at least one column; got {shown(ensemble.columns)}.")


def check_trees(ensemble: Ensemble) -> None:
    """Every node is in one tree, every way ends at a leaf, and nothing points outside."""
    nodes, count = ensemble.nodes, len(ensemble.nodes)
    inner, own = nodes.column >= 0, np.arange(count)
    damaged = ModelError("The nodes of an ensemble do not form trees; the model is damaged.")
    children = np.concatenate([nodes.left, nodes.right])
    if (children < 0).any() or (children >= count).any() or ((ensemble.roots < 0) | (ensemble.roots >= count)).any():
        raise damaged
    entered = np.concatenate([nodes.left[inner], nodes.right[inner], ensemble.roots])
    if len(entered) != count or (np.bincount(entered, minlength=count) != 1).any():  # each once, by its parent
        raise damaged
    if ((nodes.left != own) | (nodes.right != own))[~inner].any() or (nodes.column >= ensemble.columns).any():
        raise damaged
    leaves = np.sort(nodes.leaf[~inner])
    if not np.array_equal(leaves, np.arange(len(ensemble.values))) or (nodes.leaf[inner] != -1).any():
        raise damaged
    if (nodes.chosen < -1).any() or (nodes.chosen >= len(ensemble.sets)).any() or np.isnan(nodes.threshold).any():
        raise damaged
    if (ensemble.tree_of < 0).any():  # a ring that no root reaches
        raise damaged
