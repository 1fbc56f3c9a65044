"""Reports: answers and audits as text, HTML, SVG and data, as pure functions of answers."""

from ifonly.progress import ProgressBar, progress
from ifonly.report.audit import audit_page, flip_sets_page
from ifonly.report.audit_data import audit_csv, audit_data, audit_json
from ifonly.report.audit_html import audit_html
from ifonly.report.audit_svg import audit_svg
from ifonly.report.page import Block, Commands, Facts, Heading, Page, Paragraph, TextTable, plain
from ifonly.report.provenance import Provenance, provenance
from ifonly.report.summary import summary
from ifonly.report.text import answer_page, answers_page, figures_page, summary_page, text

__all__ = [
    "Block", "Commands", "Facts", "Heading", "Page", "Paragraph", "ProgressBar", "Provenance", "TextTable",
    "answer_page",
    "answers_page", "audit_csv", "audit_data", "audit_html", "audit_json", "audit_page", "audit_svg", "figures_page",
    "flip_sets_page", "plain", "progress", "provenance", "summary", "summary_page", "text",
]  # fmt: skip
