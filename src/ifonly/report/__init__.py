"""What people read: text and progress bars, as pure functions of answers."""

from ifonly.report.audit import audit_page, flip_sets_page
from ifonly.report.flat import audit_csv, audit_data, audit_json
from ifonly.report.handover import audit_html
from ifonly.report.origins import Provenance, provenance
from ifonly.report.page import Block, Commands, Facts, Heading, Page, Paragraph, Sheet, plain
from ifonly.report.picture import audit_svg
from ifonly.report.summary import summary
from ifonly.report.text import answer_page, answers_page, figures_page, summary_page, text
from ifonly.waiting import ProgressBar, progress

__all__ = [
    "Block", "Commands", "Facts", "Heading", "Page", "Paragraph", "ProgressBar", "Provenance", "Sheet", "answer_page",
    "answers_page", "audit_csv", "audit_data", "audit_html", "audit_json", "audit_page", "audit_svg", "figures_page",
    "flip_sets_page", "plain", "progress", "provenance", "summary", "summary_page", "text",
]  # fmt: skip
