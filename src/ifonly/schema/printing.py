"""How names and values are printed: see `ifonly.printing`, which the errors below this package need too."""

from ifonly.printing import MOST, escaped, json_text, printable, shown

__all__ = ["MOST", "escaped", "json_text", "printable", "shown"]
