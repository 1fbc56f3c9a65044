"""How names and values are printed: see `ifonly.printing`, which the errors below this package need too."""

from ifonly.printing import printable, shown

__all__ = ["printable", "shown"]
