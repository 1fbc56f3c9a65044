"""How we answer."""

from ifonly.search.enumerate import Enumerate

__all__ = ["Enumerate"]
