"""What decides."""

from ifonly.model.agreement import check_agreement
from ifonly.model.files import load_network, save_network
from ifonly.model.model import Model, network_model
from ifonly.model.network import Affine, Network
from ifonly.model.rounding import rounding_error

__all__ = [
    "Affine", "Model", "Network", "check_agreement", "load_network", "network_model", "rounding_error", "save_network",
]  # fmt: skip
