"""The content of a notice's page as a Word document (python-docx), to be edited and sent as letters are.

Headings, paragraphs, lists, tables, bold and italic words and what is to be filled in are kept; of other HTML the words
are.
"""

from __future__ import annotations

import io
from html.parser import HTMLParser
from importlib import import_module
from typing import Any

from ifonly.errors import MissingExtra

HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4}
BLOCKS = {"p", "div", "article", "section", "dl", "dt", "dd", "ul", "ol", "li", "table", "caption", "tr", *HEADINGS}
BOLD, ITALIC = {"b", "strong", "dt", "th"}, {"i", "em"}
MARKS = "ifonly-mark-of"
"""The class of marks that lead to the annex."""


def word_document(title: str, content: str) -> bytes:
    """The document of a page's content, as a file."""
    try:
        docx, shared, text = (import_module(name) for name in ("docx", "docx.shared", "docx.enum.text"))
    except ImportError:
        raise MissingExtra("python-docx", extra="docx", needed_for="A notice as a Word document") from None
    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author, properties.comments = title, "", ""
    document.styles["Normal"].font.size = shared.Pt(11)
    writer = _Writer(document, shared, text)
    writer.feed(content)
    writer.close()
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


class _Writer(HTMLParser):
    """Writes words into the paragraph of the block that they are in; a block begins a paragraph when it has words."""

    def __init__(self, document: Any, shared: Any, text: Any) -> None:
        super().__init__(convert_charrefs=True)
        self.document, self.shared, self.text = document, shared, text
        self.open: list[tuple[str, str]] = []
        """The elements that are open, with their classes."""
        self.numbers: list[int] = []
        """Of the lists that are open, how many entries there were; -1 where they have no numbers."""
        self.paragraph: Any = None
        self.cells: list[Any] = []
        """The paragraphs of the row of a table that is open."""
        self.table: Any = None
        self.space = False
        """Is there a space before the next word?"""
        self.mark = ""
        """The number of the entry that begins."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            if self.paragraph is not None:
                self.paragraph.add_run().add_break()
                self.space = False
            return
        if tag in BLOCKS:
            self._end()
        self.open.append((tag, dict(attrs).get("class") or ""))
        if tag in ("ul", "ol"):
            self.numbers.append(0 if tag == "ol" else -1)
        elif tag == "li" and self.numbers:
            if self.numbers[-1] >= 0:
                self.numbers[-1] += 1
            self.mark = f"{self.numbers[-1]}.\t" if self.numbers[-1] > 0 else "•\t"
        elif tag == "table":
            self.table = None
        elif tag == "tr":
            self.cells = []
        elif tag in ("td", "th"):
            self._cell()

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self._end()
        if tag in ("ul", "ol") and self.numbers:
            self.numbers.pop()
        while any(name == tag for name, _ in self.open):  # what is not closed ends with what it is in
            if self.open.pop()[0] == tag:
                break

    def handle_data(self, data: str) -> None:
        words = data.split()
        if not words:
            self.space |= bool(data) and self.paragraph is not None
            return
        if self.paragraph is None:
            self._begin()
        before = " " if self.paragraph.runs and (self.space or data[0].isspace()) else ""
        run = self.paragraph.add_run(before + " ".join(words))
        self.space = data[-1].isspace()
        tags = {name for name, _ in self.open}
        run.bold, run.italic = bool(tags & BOLD) or None, bool(tags & ITALIC) or None
        if "mark" in tags:
            run.font.highlight_color = self.text.WD_COLOR_INDEX.YELLOW
        if any(MARKS in kind for _, kind in self.open):
            run.font.size = self.shared.Pt(8)

    def _end(self) -> None:
        """The next words begin a paragraph."""
        self.paragraph, self.space = None, False

    def _begin(self) -> None:
        level = next((HEADINGS[name] for name, _ in reversed(self.open) if name in HEADINGS), None)
        if level is not None:
            self.paragraph = self.document.add_heading(level=level)
            return
        self.paragraph = self.document.add_paragraph()
        if self.numbers:
            place = self.paragraph.paragraph_format
            place.left_indent = self.shared.Cm(0.75 * len(self.numbers))
            place.first_line_indent = self.shared.Cm(-0.75)
            place.tab_stops.add_tab_stop(self.shared.Cm(0.75 * len(self.numbers)))
            if self.mark:
                self.paragraph.add_run(self.mark)
                self.mark, self.space = "", False

    def _cell(self) -> None:
        """The next cell of the row; the table has as many columns as its first row."""
        if self.table is None:
            self.table = self.document.add_table(rows=0, cols=0, style="Table Grid")
        if not self.cells and len(self.table.columns):
            self.table.add_row()
        if not len(self.table.rows):
            self.table.add_row()
        place = len(self.cells)
        if place >= len(self.table.columns):
            self.table.add_column(self.shared.Cm(8))
        self.paragraph = self.table.rows[-1].cells[place].paragraphs[0]
        self.cells.append(self.paragraph)
        self.space = False
