"""Localisation: an answer with the labels, units and names of options that the schema has for a language.

Only for display: the values of a localised answer are names of options in that language, and no longer the table's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ifonly.results.answer import Answer, Change
from ifonly.results.rule_language import Naming
from ifonly.results.sufficient import SufficientReasons
from ifonly.schema import Value, option_text

Given = TypeVar("Given", Answer, SufficientReasons)


def localised(given: Given, language: str) -> Given:
    """An answer, or reasons, in the words of a language; as it is where the schema has none."""
    words = {name: own[language] for name, own in given.translations.items() if language in own}
    if not words:
        return given
    both = {
        name: (own.get("label") or given.label(name), own.get("unit") or given.unit(name))
        for name, own in words.items()
    }
    found: dict[str, Any] = {
        "words": {**given.words, **both},
        "translations": {},
        "factual": _row(given.factual, words),
    }
    if isinstance(given, SufficientReasons):
        reasons = tuple(
            replace(one, needed=tuple(replace(n, changes=_changes(n.changes, words)) for n in one.needed))
            for one in given.reasons
        )
        return replace(given, **found, reasons=reasons)
    found["changes"] = _changes(given.changes, words)
    if given.counterfactual is not None:
        found["counterfactual"] = _row(given.counterfactual, words)
    return replace(given, **found)


def localised_changes(
    given: Answer | SufficientReasons, changes: Iterable[Change], language: str
) -> tuple[Change, ...]:
    """Changes of the features of an answer, or of reasons, with the names of options in a language."""
    return _changes(changes, {name: own.get(language, {}) for name, own in given.translations.items()})


def naming(given: Answer | SufficientReasons, language: str) -> Naming:
    """What features and options are called in rules."""
    return Naming(language, given.words, given.translations)


def _row(row: Mapping[str, Value], words: Mapping[str, Mapping[str, Any]]) -> dict[str, Value]:
    return {name: _named(value, words.get(name, {})) for name, value in row.items()}


def _changes(changes: Iterable[Change], words: Mapping[str, Mapping[str, Any]]) -> tuple[Change, ...]:
    return tuple(
        replace(one, before=_named(one.before, own), after=_named(one.after, own))
        for one, own in ((one, words.get(one.feature, {})) for one in changes)
    )


def _named(value: Value, words: Mapping[str, Any]) -> Value:
    """An option by its name; anything else as it is."""
    name: Value = words.get("options", {}).get(option_text(value), value)
    return name
