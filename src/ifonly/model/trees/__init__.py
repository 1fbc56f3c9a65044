"""Decision tree ensembles: one flat form for all libraries, and the same over the features of a schema."""

from ifonly.model.trees.bind_features import FeatureColumns, bound, bound_splits, reachable
from ifonly.model.trees.checks import EVERY
from ifonly.model.trees.edges import edge_points
from ifonly.model.trees.ensemble import Ensemble, LibraryTree, Nodes, Summation
from ifonly.model.trees.kind import Trees

__all__ = [
    "EVERY", "Ensemble", "FeatureColumns", "LibraryTree", "Nodes", "Summation", "Trees", "bound", "bound_splits",
    "edge_points",
    "reachable",
]  # fmt: skip
