"""Adult, COMPAS and Credit, ready to use."""

from ifonly.datasets.dataset import Dataset
from ifonly.datasets.store import load, names, network

__all__ = ["Dataset", "load", "names", "network"]
