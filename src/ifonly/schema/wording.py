"""Names, labels and units of features for display, also by language, and positions of values in messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ifonly.errors import SchemaError
from ifonly.printing import is_printable, quoted, shown, some_of
from ifonly.schema.values import Value

MAX_NAME = 200
"""Characters of a feature's name."""
MAX_UNIT = 40
"""Characters of its unit."""
LANGUAGE_CODES = ("en", "de")
"""The languages that people are told an answer in."""

Translations = Mapping[str, Mapping[str, Any]]
"""Per language: "label" and "unit", which are texts, and "options", which maps the text of an option to its name."""


@dataclass(frozen=True)
class FeatureWording:
    """Display text of a feature: `label` for its name ("monthly income"), `unit` after or before its values
    ("€", "months"); `translations`: other ones in a language, and names of options there:
    `{"de": {"label": "Beruf", "options": {"nurse": "Pflegekraft"}}}`. All are optional and decide nothing."""

    label: str = field(default="", kw_only=True, repr=False)
    unit: str = field(default="", kw_only=True, repr=False)
    translations: Translations = field(default_factory=dict, kw_only=True, repr=False, hash=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """What it is called: the label, and those of languages."""
        every = (self.label, *(own.get("label", "") for own in self.translations.values()))
        return tuple(dict.fromkeys(one for one in every if one))

    def _words(self) -> dict[str, Any]:
        """Those that are set, as plain data."""
        own = (("label", self.label), ("unit", self.unit), ("translations", self.translations))
        return {key: value for key, value in own if value}


def option_text(option: Value) -> str:
    """An option in names of columns and in translations."""
    return "missing" if option is None else str(option)


def check_name(name: Any) -> None:
    """Refuse a name that cannot be printed."""
    if not isinstance(name, str) or not name:
        raise SchemaError(f"A feature's name must be a non-empty string; got {shown(name)}.")
    if len(name) > MAX_NAME:
        raise SchemaError(
            f"A feature's name may have at most {MAX_NAME} characters; {quoted(name, 40)} has more: rename the column."
        )
    if not is_printable(name):
        wrong = next(i for i, c in enumerate(name) if not is_printable(c))
        raise SchemaError(
            f"A feature's name must be printable; {quoted(name)} has {quoted(name[wrong])} at place {wrong}: "
            f"rename the column."
        )


def check_words(feature: Any) -> None:
    """Refuse a label or a unit that cannot be printed, in any language."""
    for key in _MOST:
        _check_text(feature, key, getattr(feature, key), key)
    given = feature.translations
    if not isinstance(given, Mapping) or not all(one in LANGUAGE_CODES for one in given):
        raise SchemaError(
            f"Feature '{feature.name}': 'translations' are by language ({', '.join(LANGUAGE_CODES)}), such as "
            f'{{"de": {{"label": "Einkommen"}}}}; got {shown(given)}.'
        )
    read = {language: _translation(feature, language, own) for language, own in given.items()}
    object.__setattr__(feature, "translations", {language: own for language, own in read.items() if own})


TRUTH = {"true": "True", "false": "False"}
"""As JSON writes them, and as options do."""
_MOST = {"label": MAX_NAME, "unit": MAX_UNIT}
"""Characters of each."""


def _translation(feature: Any, language: str, given: Any) -> dict[str, Any]:
    """What one language says of a feature, without what is empty."""
    if not isinstance(given, Mapping) or not set(given) <= {*_MOST, "options"}:
        raise SchemaError(
            f"Feature '{feature.name}': the translation into '{language}' has 'label', 'unit' and 'options'; got "
            f"{shown(given)}."
        )
    named = given.get("options", {})
    if not isinstance(named, Mapping):
        raise SchemaError(
            f"Feature '{feature.name}': 'options' of the translation into '{language}' has a name per option, such as "
            f'{{"nurse": "Pflegekraft"}}; got {shown(named)}.'
        )
    known = [option_text(option) for option in getattr(feature, "options", ())]
    names = {option_text(option): name for option, name in named.items()}
    names = {TRUTH.get(option, option) if option not in known else option: name for option, name in names.items()}
    for option, name in names.items():
        if known.count(option) != 1:
            what = "which has no options" if not known else f"whose options are {some_of(known)}"
            raise SchemaError(
                f"Feature '{feature.name}', {what}: the translation into '{language}' names {shown(option)}."
            )
        _check_text(feature, "label", name, f"{option} in '{language}'")
    for key in _MOST:
        _check_text(feature, key, given.get(key, ""), f"{key} in '{language}'")
    return {**{key: given[key] for key in _MOST if given.get(key)}, **({"options": names} if names else {})}


def _check_text(feature: Any, key: str, words: Any, what: str) -> None:
    if not isinstance(words, str) or len(words) > _MOST[key] or (words and not is_printable(words)):
        raise SchemaError(
            f"Feature '{feature.name}': '{what}' must be a printable text of at most {_MOST[key]} characters; it is "
            f"{shown(words)}."
        )


def at_row(row: int | None) -> str:
    """Where something is, in a sentence."""
    return "" if row is None else f" in row {row}"


def who_has(row: int | None) -> str:
    """Whose value it is, in a sentence."""
    return "the row has" if row is None else f"row {row} has"
