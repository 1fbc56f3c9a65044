"""Recourse under causes as a page of text: the person, what to do, what follows, what is proven."""

from __future__ import annotations

from ifonly.report.page import Page, Paragraph
from ifonly.report.text import answer_page
from ifonly.results.recourse import Recourse


def recourse_page(recourse: Recourse, language: str = "en", subject: str = "") -> Page:
    """The recourse of one row."""
    page = answer_page(recourse.answer, language, subject, own_sentence=recourse.sentence(language, subject=subject))
    return (*page, Paragraph(str(recourse))) if recourse.actions else page
