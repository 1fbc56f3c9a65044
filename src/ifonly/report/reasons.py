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


def reasons_page(found: SufficientReasons, language: str = "en", subject: str = "") -> Page:
    """The reasons of one row."""
    decided = "" if found.decision is None else f"decided {show(found.decision)}, "
    title = Heading(f"Row {found.row}: {decided}why not {found.target}")
    parts: list[Heading | Paragraph | TextTable] = [title, Paragraph(found.sentence(language, subject=subject))]
    if found.features:
        found = localised(found, language)
        needed = {one.feature: changed_to(found, one.changes, language) for one in found.reasons[0].needed}
        rows = [
            (found.label(name), amount(found.factual.get(name), found.unit(name), language), needed.get(name, ""))
            for name in found.features
        ]
        parts.append(TextTable(header=("feature", "value", "otherwise, for example, with"), rows=rows))
    if len(found.reasons) > 1:
        rows = [(str(k), one.status, ", ".join(one.features)) for k, one in enumerate(found.reasons[1:], 2)]
        parts.append(TextTable(header=("", "status", "also decides it alone"), rows=rows, right=frozenset({0})))
    return (*parts, Facts(_facts(found)))


def _facts(found: SufficientReasons) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = [(found.status, _MEANING[found.status])]
    if found.necessary:
        pairs.append(("necessary", ", ".join(found.necessary)))
    if found.irrelevant:
        pairs.append(("irrelevant", ", ".join(found.irrelevant)))
    if found.complete:
        pairs.append(("complete", "proven: there are no other minimal reasons"))
    pairs += [(name, ", ".join(what)) for name, what in (("follow", found.follows), ("missing", found.missing)) if what]
    pairs += [("among", "; ".join(found.within))] if found.within else []
    pairs += [("breaks", "; ".join(found.breaks))] if found.breaks else []
    pairs.append(("effort", f"{found.searches:,} searches, {found.nodes:,} nodes, {duration(found.seconds)}"))
    return [*pairs, ("left open", found.note)] if found.note else pairs
