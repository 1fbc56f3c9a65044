"""Ensembles of trees: one flat form, and the same over the features of a schema."""

from ifonly.model.trees.binding import Feed, bound
from ifonly.model.trees.ensemble import EVERY, Ensemble, LibraryTree, Nodes, Summation
from ifonly.model.trees.kind import Trees

__all__ = ["EVERY", "Ensemble", "Feed", "LibraryTree", "Nodes", "Summation", "Trees", "bound"]
