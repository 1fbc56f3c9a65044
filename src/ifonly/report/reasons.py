"""Sufficient reasons as a page of text: the sentence, the features, what is proven."""

from __future__ import annotations

from ifonly.report.page import Facts, Heading, Page, Paragraph, TextTable
from ifonly.report.text import duration
from ifonly.results import amount, show
from ifonly.results.localised import localised
from ifonly.results.reason_language import changed_to
from ifonly.results.sufficient import SufficientReasons

_MEANING = {
    "smallest": "proven: no smaller set decides it alone",
    "minimal": "proven: no part of it decides it alone",
    "sufficient": "proven to decide it; whether all of it is needed is open",
    "unknown": "nothing smaller than the whole row is proven to decide it",
}


def reasons_page(told: SufficientReasons, language: str = "en", subject: str = "") -> Page:
    """The reasons of one row."""
    decided = "" if told.decision is None else f"decided {show(told.decision)}, "
    title = Heading(f"Row {told.row}: {decided}why not {told.target}")
    parts: list[Heading | Paragraph | TextTable] = [title, Paragraph(told.sentence(language, subject=subject))]
    if told.features:
        told = localised(told, language)
        needed = {one.feature: changed_to(told, one.changes, language) for one in told.reasons[0].needed}
        rows = [
            (told.label(name), amount(told.factual.get(name), told.unit(name), language), needed.get(name, ""))
            for name in told.features
        ]
        parts.append(TextTable(header=("feature", "value", "otherwise, for example, with"), rows=rows))
    if len(told.reasons) > 1:
        rows = [(str(k), one.status, ", ".join(one.features)) for k, one in enumerate(told.reasons[1:], 2)]
        parts.append(TextTable(header=("", "status", "also decides it alone"), rows=rows, right=frozenset({0})))
    return (*parts, Facts(_facts(told)))


def _facts(told: SufficientReasons) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = [(told.status, _MEANING[told.status])]
    if told.necessary:
        pairs.append(("necessary", ", ".join(told.necessary)))
    if told.irrelevant:
        pairs.append(("irrelevant", ", ".join(told.irrelevant)))
    if told.complete:
        pairs.append(("complete", "proven: there are no other minimal reasons"))
    pairs += [(name, ", ".join(what)) for name, what in (("follow", told.follows), ("missing", told.missing)) if what]
    pairs += [("among", "; ".join(told.within))] if told.within else []
    pairs += [("breaks", "; ".join(told.breaks))] if told.breaks else []
    pairs.append(("effort", f"{told.searches:,} searches, {told.nodes:,} nodes, {duration(told.seconds)}"))
    return [*pairs, ("left open", told.note)] if told.note else pairs
