"""Models: classifiers and regressions as functions with rounding error bounds, and importers for them."""

from ifonly.model.agreement import check_agreement
from ifonly.model.files import load_network, save_network
from ifonly.model.kind import Kind
from ifonly.model.model import Model, always_accepting, network_model
from ifonly.model.network import Affine, Network
from ifonly.model.scorecard import Scorecard
from ifonly.model.trees.files import save_trees

__all__ = [
    "Affine", "Kind", "Model", "Network", "Scorecard", "always_accepting", "check_agreement", "load_network",
    "network_model",
    "save_network", "save_trees",
]  # fmt: skip
