"""Ensembles of trees: one flat form, and the same over the features of a schema."""

from ifonly.model.trees.binding import Feed, bound, bound_splits, reachable
from ifonly.model.trees.edges import edge_points
from ifonly.model.trees.ensemble import EVERY, Ensemble, LibraryTree, Nodes, Summation
from ifonly.model.trees.kind import Trees

__all__ = [
    "EVERY", "Ensemble", "Feed", "LibraryTree", "Nodes", "Summation", "Trees", "bound", "bound_splits", "edge_points",
    "reachable",
]  # fmt: skip
