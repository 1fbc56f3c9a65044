"""Pieces of pages: escaped words, tables, small charts as inline SVG; no script, nothing loaded from anywhere"""

from ifonly.drawing.html import document, facts, table, words
from ifonly.drawing.marks import arrow, curve

__all__ = ["arrow", "curve", "document", "facts", "table", "words"]
