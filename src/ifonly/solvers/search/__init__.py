"""How we answer."""

from ifonly.solvers.search.compiled import kernels_are_cached, load_kernels
from ifonly.solvers.search.enumerate import Enumerate
from ifonly.solvers.search.search import Search

__all__ = ["Enumerate", "Search", "kernels_are_cached", "load_kernels"]
