"""HTML rendering: escaped text, tables, documents, small charts as inline SVG; no script, nothing loaded"""

from .charts import arrow, curve
from .fragments import document, facts, table, words

__all__ = ["arrow", "curve", "document", "facts", "table", "words"]
