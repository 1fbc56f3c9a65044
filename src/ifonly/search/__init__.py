"""How we answer."""

from ifonly.search.enumerate import Enumerate
from ifonly.search.search import Search
from ifonly.search.warm import kernels_are_cached, load_kernels

__all__ = ["Enumerate", "Search", "kernels_are_cached", "load_kernels"]
