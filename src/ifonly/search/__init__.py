"""How we answer."""

from ifonly.search.enumerate import Enumerate
from ifonly.search.search import Search

__all__ = ["Enumerate", "Search"]
