"""What people read: text and progress bars, as pure functions of answers."""

from ifonly.report.audit import audit_page, audit_svg, flip_sets_page
from ifonly.report.page import Block, Commands, Facts, Heading, Page, Paragraph, Sheet, plain
from ifonly.report.summary import summary
from ifonly.report.text import answer_page, answers_page, figures_page, summary_page, text
from ifonly.waiting import ProgressBar, progress

__all__ = [
    "Block", "Commands", "Facts", "Heading", "Page", "Paragraph", "ProgressBar", "Sheet", "answer_page", "answers_page",
    "audit_page", "audit_svg", "figures_page", "flip_sets_page", "plain", "progress", "summary", "summary_page", "text",
]  # fmt: skip
