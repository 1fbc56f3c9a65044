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


def reasons_fragment(told: SufficientReasons) -> str:
    """For a notebook."""
    return fragment(*reason_parts(told), paragraph(f"{told.status}; {_effort(told)}", "soft"))


def reasons_document(told: SufficientReasons, language: str = "en", subject: str = "") -> str:
    """A page about the reasons of one row."""
    phrases = PHRASES[language_of(language).code]
    parts = reason_parts(told, language, subject)
    parts.append(paragraph(phrases.proven if told.reasons else phrases.open))
    parts.append(_figures(told, language, phrases))
    return document(phrases.title.format(told.row), *parts, language=language)


def reason_parts(told: SufficientReasons, language: str = "en", subject: str = "") -> list[str]:
    """The sentence, the features of the first reason, and the other reasons."""
    phrases = PHRASES[language_of(language).code]
    parts = [paragraph(reason_sentence(told, language, subject), "sentence")]
    told = localised(told, language)
    if told.features:
        parts.append(_features(told, told.reasons[0], language))
    if others := [_named(told, reason) for reason in told.reasons[1:]]:
        parts.append(f"<h2>{words(phrases.others)}</h2>{bullets(others[:MOST_REASONS])}")
    return parts


def _features(told: SufficientReasons, reason: SufficientReason, language: str) -> str:
    say, phrases = language_of(language), PHRASES[language]
    needed = {one.feature: changed_to(told, one.changes, language) for one in reason.needed}
    rows = [
        (told.label(name), amount(told.factual.get(name), told.unit(name), language), needed.get(name, ""))
        for name in reason.features
    ]
    return table((say.feature, phrases.value, phrases.needed), rows)


def _named(told: SufficientReasons, reason: SufficientReason) -> str:
    return ", ".join(map(told.label, reason.features))


def _figures(told: SufficientReasons, language: str, phrases: ReasonPhrases) -> str:
    say, names = language_of(language), naming(told, language)
    pairs: list[tuple[str, str]] = [(say.status, phrases.statuses[told.status])]
    lists = (
        (phrases.necessary, told.necessary),
        (phrases.irrelevant, told.irrelevant),
        (phrases.follows, told.follows),
    )
    pairs += [(name, ", ".join(map(names.label, features))) for name, features in lists if features]
    pairs.append((say.method, _effort(told, language)))
    pairs += [(phrases.facts, "; ".join(rules_in(told.facts, names)))] if told.facts else []
    return facts([*pairs, (say.note, told.note)] if told.note else pairs)


def _effort(told: SufficientReasons, language: str = "en") -> str:
    took = f"{1e3 * told.seconds:.3g} ms".replace(".", language_of(language).style.decimal)
    return PHRASES[language].effort.format(method=told.method, searches=told.searches, nodes=told.nodes, took=took)
