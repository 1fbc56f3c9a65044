"""Sufficient reasons as HTML: a fragment for notebooks, and a page to print and hand over."""

from __future__ import annotations

from ifonly.html.fragments import bullets, document, facts, fragment, paragraph, table, words
from ifonly.results.amounts import amount
from ifonly.results.languages import language_of
from ifonly.results.localised import localised, naming
from ifonly.results.reason_language import PHRASES, ReasonPhrases, changed_to, reason_sentence
from ifonly.results.rule_language import rules_in
from ifonly.results.sufficient import SufficientReason, SufficientReasons

MOST_REASONS = 50
"""Further reasons on a page."""


def reasons_fragment(found: SufficientReasons) -> str:
    """For a notebook."""
    return fragment(*reason_parts(found), paragraph(f"{found.status}; {_effort(found)}", "soft"))


def reasons_document(found: SufficientReasons, language: str = "en", subject: str = "") -> str:
    """A page about the reasons of one row."""
    phrases = PHRASES[language_of(language).code]
    parts = reason_parts(found, language, subject)
    parts.append(paragraph(phrases.proven if found.reasons else phrases.open))
    parts.append(_figures(found, language, phrases))
    return document(phrases.title.format(found.row), *parts, language=language)


def reason_parts(found: SufficientReasons, language: str = "en", subject: str = "") -> list[str]:
    """The sentence, the features of the first reason, and the other reasons."""
    phrases = PHRASES[language_of(language).code]
    parts = [paragraph(reason_sentence(found, language, subject), "sentence")]
    found = localised(found, language)
    if found.features:
        parts.append(_features(found, found.reasons[0], language))
    if others := [_named(found, reason) for reason in found.reasons[1:]]:
        parts.append(f"<h2>{words(phrases.others)}</h2>{bullets(others[:MOST_REASONS])}")
    return parts


def _features(found: SufficientReasons, reason: SufficientReason, language: str) -> str:
    say, phrases = language_of(language), PHRASES[language]
    needed = {one.feature: changed_to(found, one.changes, language) for one in reason.needed}
    rows = [
        (found.label(name), amount(found.factual.get(name), found.unit(name), language), needed.get(name, ""))
        for name in reason.features
    ]
    return table((say.feature, phrases.value, phrases.needed), rows)


def _named(found: SufficientReasons, reason: SufficientReason) -> str:
    return ", ".join(map(found.label, reason.features))


def _figures(found: SufficientReasons, language: str, phrases: ReasonPhrases) -> str:
    say, names = language_of(language), naming(found, language)
    pairs: list[tuple[str, str]] = [(say.status, phrases.statuses[found.status])]
    lists = (
        (phrases.necessary, found.necessary),
        (phrases.irrelevant, found.irrelevant),
        (phrases.follows, found.follows),
    )
    pairs += [(name, ", ".join(map(names.label, features))) for name, features in lists if features]
    pairs.append((say.method, _effort(found, language)))
    pairs += [(phrases.facts, "; ".join(rules_in(found.facts, names)))] if found.facts else []
    return facts([*pairs, (say.note, found.note)] if found.note else pairs)


def _effort(found: SufficientReasons, language: str = "en") -> str:
    took = f"{1e3 * found.seconds:.3g} ms".replace(".", language_of(language).style.decimal)
    return PHRASES[language].effort.format(method=found.method, searches=found.searches, nodes=found.nodes, took=took)
