"""The audit as a page of text for a terminal. (`audit_html` is the document to hand over, `audit_svg` a chart.)"""

from __future__ import annotations

from collections.abc import Callable

from ifonly.population.auditing import Audit
from ifonly.population.group import Group
from ifonly.population.moves import FlipSet
from ifonly.report import audit_sentences as findings
from ifonly.report.audit_sentences import action_text, between, cost, counted, percent
from ifonly.report.page import Block, Heading, Page, Paragraph, TextTable
from ifonly.report.text import number

MOST_LINES = 10


def audit_page(audit: Audit) -> Page:
    """One line per group, everybody last, what differs between groups, and what would help most people."""
    groups = (*audit.groups, audit.everybody)
    header = (
        audit.label(audit.by) or "group",
        "people",
        "need it",
        "have it",
        "95%",
        "have none",
        "open",
        "median",
        "95%",
        "p90",
    )
    sheet = TextTable(
        header=header,
        rows=[_line(group) for group in groups],
        right=frozenset(range(1, len(header))),
        marked=frozenset({len(groups) - 1}) if audit.groups else frozenset(),
    )
    what = (
        f"Recourse to {audit.target}: of those who need it, how many have it, how many provably have none, "
        f"and its cost ({audit.distance_name} distance of the nearest row); 95%: intervals."
    )
    sentences = [Paragraph(line) for line in findings.differences(audit)]
    notes = [Paragraph(line, quiet=True) for line in findings.notes(audit)]
    return (Paragraph(what), sheet, *sentences, *notes, *_helping(audit), *_blame(audit))


def flip_sets_page(sets: tuple[FlipSet, ...], *, most: int = 20, label: Callable[[str], str] = str) -> Page:
    """One line per set of features, under their labels."""
    if not sets:
        return (Paragraph("No answer changes anything."),)
    rows = [(", ".join(map(label, s.features)), f"{s.count:,}", number(float(s.costs[0])),
             number(float(s.costs[s.count // 2]))) for s in sets[:most]]  # fmt: skip
    sheet = TextTable(
        header=("changed together", "answers", "least cost", "median"), rows=rows, right=frozenset({1, 2, 3})
    )
    left = len(sets) - most
    return (sheet, Paragraph(f"... and {left:,} more sets", quiet=True)) if left > 0 else (sheet,)


def _line(group: Group) -> tuple[str, ...]:
    return (
        group.name, f"{group.people:,}", f"{group.needing:,}", counted(group.recourse, group),
        between(group.share_interval, percent), counted(group.without, group), counted(group.unknown, group),
        cost(group.median), between(group.median_interval), cost(group.quantile(0.9)),
    )  # fmt: skip


def _helping(audit: Audit) -> list[Block]:
    rows = [
        (
            group.name,
            action_text(action, audit),
            f"{action.helps:,} ({percent(action.helps / cover.people)})",
            f"{action.more:,}",
        )
        for group in (audit.everybody, *audit.groups)
        if (cover := group.details.cover) is not None
        for action in cover.actions
    ]
    if not rows:
        return []
    header = ("group", "action", "helps", "beyond those above")
    return [Heading("What would help most people"), TextTable(header=header, rows=rows, right=frozenset({2, 3}))]


def _blame(audit: Audit) -> list[Block]:
    blame = audit.everybody.details.blame[:MOST_LINES]
    if not blame:
        return []
    rows = [(one.words, f"{one.count:,} ({percent(one.count / one.asked)})") for one in blame]
    sheet = TextTable(header=("what rules recourse out", "people"), rows=rows, right=frozenset({1}))
    return [Heading("Who has none"), Paragraph(findings.blamed(audit.everybody)), sheet]
