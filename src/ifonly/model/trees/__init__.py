"""Ensembles of trees: one flat form, and the same over the features of a schema."""

from ifonly.model.trees.binding import Read, bound
from ifonly.model.trees.ensemble import EVERY, Ensemble, Nodes, Summation, Tree
from ifonly.model.trees.kind import Trees

__all__ = ["EVERY", "Ensemble", "Nodes", "Read", "Summation", "Tree", "Trees", "bound"]
