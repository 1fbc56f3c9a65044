"""Exact solvers: branch and bound for networks and tree ensembles, and enumeration of finite spaces."""

from ifonly.solvers.search.compiled import load_kernels
from ifonly.solvers.search.enumerate import Enumerate
from ifonly.solvers.search.search import Search

__all__ = ["Enumerate", "Search", "load_kernels"]
