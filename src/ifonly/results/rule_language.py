"""Constraints as people read them: with labels of features and names of options, in English (the language of rules)
or German.

A sentence that has no German form here (sums with factors) stays as it was given, with labels for names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ifonly.schema import Translations

_COUNTS = {"no": "keine", "one": "eine", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
_SIGNS = {"<=": "zusammen höchstens", ">=": "zusammen mindestens", "=": "zusammen genau"}
_NAME = r"'?(?P<name>[^<>=+*/\[\]']+?)'?"
_VALUE = r"(?P<value>[^<>=,;]+?)"
_GERMAN = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (rf"{_NAME} is fixed", "„{name}“ bleibt, wie es ist"),
        (rf"{_NAME} only goes up", "„{name}“ darf nur steigen"),
        (rf"{_NAME} only goes down", "„{name}“ darf nur sinken"),
        (rf"{_NAME} is free", "„{name}“ darf sich ändern"),
        (rf"{_NAME} in \[(?P<low>[^,]+), (?P<high>[^\]]+)\]", "„{name}“ von {low} bis {high}"),
        (rf"{_NAME} in \((?P<value>[^()]+)\)", "„{name}“ ist eines von: {value}"),
        (rf"{_NAME} not in \((?P<value>[^()]+)\)", "„{name}“ ist keines von: {value}"),
        (rf"{_NAME} follows from (?P<value>.+)", "„{name}“ ergibt sich aus: {value}"),
        (rf"{_NAME} > {_VALUE}", "„{name}“ mehr als {value}"),
        (rf"{_NAME} < {_VALUE}", "„{name}“ weniger als {value}"),
        (rf"{_NAME} >= {_VALUE}", "„{name}“ mindestens {value}"),
        (rf"{_NAME} <= {_VALUE}", "„{name}“ höchstens {value}"),
        (rf"{_NAME} = {_VALUE}", "„{name}“ ist {value}"),
        (rf"{_NAME} != {_VALUE}", "„{name}“ ist nicht {value}"),
        (rf"{_NAME} changes by at most {_VALUE}", "„{name}“ ändert sich um höchstens {value}"),
        (rf"{_NAME} changes in steps of {_VALUE}", "„{name}“ ändert sich in Schritten von {value}"),
        (rf"{_NAME} changes only with (?P<value>.+)", "„{name}“ ändert sich nur zusammen mit {value}"),
        (rf"{_NAME} may be filled in", "„{name}“ darf ergänzt werden"),
        (rf"{_NAME} may be filled in at {_VALUE}", "„{name}“ darf ergänzt werden, was als {value} zählt"),
        (r"only (?P<name>.+) may change", "nur „{name}“ darf sich ändern"),
        (rf"{_NAME} may change", "„{name}“ darf sich ändern"),
        (r"at most (?:1|one) change", "höchstens eine Änderung"),
        (r"at most (?P<value>\w+) changes", "höchstens {value} Änderungen"),
        (rf"{_NAME} accepts", "„{name}“ stimmt zu"),
    )
)


@dataclass(frozen=True)
class Naming:
    """What features and options are called in a language: of features, label and unit; and what languages say."""

    language: str = "en"
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    translations: Mapping[str, Translations] = field(default_factory=dict)

    def _own(self, feature: str) -> Mapping[str, Any]:
        return self.translations.get(feature, {}).get(self.language, {})

    def label(self, feature: str) -> str:
        """A feature by its label; any other text as it is."""
        return self._own(feature).get("label") or self.words.get(feature, ("", ""))[0] or feature

    def option(self, feature: str, text: str) -> str:
        """An option of a feature by its name; any other text as it is."""
        bare = text.strip("'")
        name: str = self._own(feature).get("options", {}).get(bare, text)
        return name

    @cached_property
    def _named(self) -> re.Pattern[str] | None:
        """What finds names of features that have a label."""
        names = sorted({*self.words, *self.translations}, key=lambda name: (-len(name), name))
        either = "|".join(re.escape(name) for name in names if self.label(name) != name)
        return re.compile(rf"'(?:{either})'|(?<![\w'])(?:{either})(?![\w'])") if either else None

    def labelled(self, rule: str) -> str:
        """A rule with the labels of features in the place of their names."""
        frame = "„{}“" if self.language == "de" else "{}"
        named = self._named
        return rule if named is None else named.sub(lambda one: frame.format(self.label(one[0].strip("'"))), rule)


def rule_in(rule: str, names: Naming) -> str:
    """A constraint as it is put in a language."""
    if names.language != "de":
        return names.labelled(rule)
    return _german(rule, names) or names.labelled(rule)


def _german(rule: str, names: Naming) -> str:
    """A constraint in German; empty where there is no form for it."""
    label = names.label
    if case := re.fullmatch(r"if (.+?) then (.+)", rule):
        return f"wenn gilt: {rule_in(case[1], names)}, dann gilt: {rule_in(case[2], names)}"
    if total := re.fullmatch(rf"(?P<sum>[^<>=*/]+ \+ [^<>=*/]+) (?P<sign><=|>=|=) {_VALUE}", rule):
        terms = " + ".join(_quoted(one, names) for one in total["sum"].split(" + "))
        return f"{terms} {_SIGNS[total['sign']]} {_quoted(total['value'], names)}"
    for pattern, words in _GERMAN:
        if found := pattern.fullmatch(rule):
            parts = {name: _COUNTS.get(value, value) for name, value in found.groupdict().items()}
            feature = parts.get("name", "").strip("'")
            if "name" in parts:
                parts["name"] = ", ".join(label(name.strip("'")) for name in parts["name"].split(", "))
            if words.startswith("„{name}“ ergibt"):
                parts["value"] = rule_in(parts["value"], names)
            elif "value" in parts and found["value"] == parts["value"]:
                named = [names.option(feature, one) for one in parts["value"].split(", ")]
                parts["value"] = _quoted(", ".join(named), names)
            return words.format(**parts)
    return ""


def _quoted(text: str, names: Naming) -> str:
    """What a feature is called, in quotes; anything else, such as a number, as it is."""
    bare = text.strip("'")
    called = names.label(bare)
    return f"„{called}“" if called != bare else text


def rules_in(rules: Sequence[str], names: Naming) -> list[str]:
    """Each of several constraints."""
    return [rule_in(rule, names) for rule in rules]
