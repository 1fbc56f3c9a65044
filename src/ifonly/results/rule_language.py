"""Constraints as people read them: with labels of features, names of options and units, in English or German.

A sentence that has no form here (sums with factors) stays in the rule language, with labels for names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ifonly.results.amounts import amount
from ifonly.schema import Translations

QUOTE = "'"
"""Around names that are no words, in rules."""

_NAME = r"'?(?P<name>[^<>=+*/\[\]']+?)'?"
_VALUE = r"(?P<value>[^<>=,;]+?)"
_AMOUNT = r"(?P<value>[^<>=;]+?)"
"""A number of a relaxation, which has separators of thousands."""
_NUMBER = re.compile(r"-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")
_FORMS = {
    form: re.compile(pattern)
    for form, pattern in {
        "fixed": rf"{_NAME} is fixed",
        "up": rf"{_NAME} only goes up",
        "down": rf"{_NAME} only goes down",
        "only": r"only (?P<name>.+) may change",
        "one change more": r"more than (?:1|one) may change",
        "changes more": r"more than (?P<value>\w+) may change",
        "free": rf"{_NAME} (?:is free|may change)",
        "also down": rf"{_NAME} may also go down",
        "also up": rf"{_NAME} may also go up",
        "above": rf"{_NAME} may be above {_AMOUNT}",
        "below": rf"{_NAME} may be below {_AMOUNT}",
        "outside": rf"{_NAME} may be outside \[(?P<low>[^\]]+?), (?P<high>[^\]]+)\]",
        "delta more": rf"{_NAME} may change by more than {_AMOUNT}",
        "any steps": rf"{_NAME} may change by any amount",
        "alone": rf"{_NAME} may change without (?P<value>.+)",
        "refuses": rf"{_NAME} may refuse",
        "fewer": r"fewer than (?P<value>\w+) of (?P<name>.+) may accept",
        "range": rf"{_NAME} in \[(?P<low>[^,]+), (?P<high>[^\]]+)\]",
        "none of": rf"{_NAME} not in \((?P<value>[^()]+)\)",
        "one of": rf"{_NAME} in \((?P<value>[^()]+)\)",
        "follows": rf"{_NAME} follows from (?P<value>.+)",
        ">": rf"{_NAME} > {_VALUE}",
        "<": rf"{_NAME} < {_VALUE}",
        ">=": rf"{_NAME} >= {_VALUE}",
        "<=": rf"{_NAME} <= {_VALUE}",
        "=": rf"{_NAME} = {_VALUE}",
        "!=": rf"{_NAME} != {_VALUE}",
        "delta": rf"{_NAME} changes by at most {_VALUE}",
        "steps": rf"{_NAME} changes in steps of {_VALUE}",
        "with": rf"{_NAME} changes only with (?P<value>.+)",
        "filled": rf"{_NAME} may be filled in",
        "filled at": rf"{_NAME} may be filled in at {_VALUE}",
        "one change": r"at most (?:1|one) change",
        "changes": r"at most (?P<value>\w+) changes",
        "accepts": rf"{_NAME} accepts",
    }.items()
}
"""The forms of sentences about features, constraints and what holds without one; the first that fits."""
_OF_ONE = {"one of": "=", "none of": "!="}
"""What a list of one value amounts to."""
_OTHER = re.compile(rf"{_NAME} may be other than (?P<value>.+)")
_DROPPED = re.compile(r"the rule '(?P<rule>(?:(?!' is dropped).)+)' is dropped")


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePhrases:
    """How a language puts constraints. A form that it does not have stays in the words of the rule language."""

    label: str
    """A label inside a sentence."""
    name: str
    """A name of a feature that has no label."""
    case: str
    otherwise: str
    joined: Mapping[str, str]
    sums: Mapping[str, str]
    forms: Mapping[str, str]
    dropped: str
    """A rule that does not hold any longer."""
    counts: Mapping[str, str] = field(default_factory=dict)


ENGLISH = RulePhrases(
    label="“{}”",
    name="{}",
    case="if {condition}, then {then}",
    otherwise="{case}, otherwise {rest}",
    joined={"or": " or ", "and": " and "},
    sums={"<=": "is at most", ">=": "is at least", "=": "is"},
    dropped="this rule is dropped: {}",
    forms={
        "above": "{name} may be above {value}",
        "below": "{name} may be below {value}",
        "outside": "{name} may be outside {low} to {high}",
        "other": "{name} may be other than {value}",
        "delta more": "{name} may change by more than {value}",
        "range": "{name} is from {low} to {high}",
        "none of": "{name} is none of {value}",
        "one of": "{name} is one of {value}",
        "follows": "{name} follows from: {value}",
        ">": "{name} is more than {value}",
        "<": "{name} is less than {value}",
        ">=": "{name} is at least {value}",
        "<=": "{name} is at most {value}",
        "=": "{name} is {value}",
        "!=": "{name} is not {value}",
    },
)
GERMAN = RulePhrases(
    label="„{}“",
    name="„{}“",
    case="wenn gilt: {condition}, dann gilt: {then}",
    otherwise="{case}, sonst: {rest}",
    joined={"or": " oder ", "and": " und "},
    sums={"<=": "sind zusammen höchstens", ">=": "sind zusammen mindestens", "=": "sind zusammen genau"},
    dropped="diese Regel entfällt: {}",
    forms={
        "one change more": "mehr als eine Änderung ist erlaubt",
        "changes more": "mehr als {value} Änderungen sind erlaubt",
        "also down": "{name} darf auch sinken",
        "also up": "{name} darf auch steigen",
        "above": "{name} darf über {value} liegen",
        "below": "{name} darf unter {value} liegen",
        "outside": "{name} darf außerhalb von {low} bis {high} liegen",
        "other": "{name} darf etwas anderes sein als {value}",
        "delta more": "{name} darf sich um mehr als {value} ändern",
        "any steps": "{name} darf sich um beliebige Beträge ändern",
        "alone": "{name} darf sich ohne {value} ändern",
        "refuses": "{name} darf ablehnen",
        "fewer": "weniger als {value} von {name} dürfen zustimmen",
        "fixed": "{name} bleibt, wie es ist",
        "up": "{name} darf nur steigen",
        "down": "{name} darf nur sinken",
        "free": "{name} darf sich ändern",
        "range": "{name} liegt im Bereich von {low} bis {high}",
        "none of": "{name} ist keines von: {value}",
        "one of": "{name} ist eines von: {value}",
        "follows": "{name} ergibt sich aus: {value}",
        ">": "{name} ist größer als {value}",
        "<": "{name} ist kleiner als {value}",
        ">=": "{name} ist mindestens {value}",
        "<=": "{name} ist höchstens {value}",
        "=": "{name} ist {value}",
        "!=": "{name} ist nicht {value}",
        "delta": "{name} ändert sich um höchstens {value}",
        "steps": "{name} ändert sich in Schritten von {value}",
        "with": "{name} ändert sich nur zusammen mit {value}",
        "filled": "{name} darf ergänzt werden",
        "filled at": "{name} darf ergänzt werden, was als {value} zählt",
        "only": "nur {name} darf sich ändern",
        "one change": "höchstens eine Änderung",
        "changes": "höchstens {value} Änderungen",
        "accepts": "{name} stimmt zu",
    },
    counts={"no": "keine", "one": "eine", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"},
)
PHRASES = {"en": ENGLISH, "de": GERMAN}


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

    def unit(self, feature: str) -> str:
        """The unit of a feature; of anything else, none."""
        unit: str = self._own(feature).get("unit") or self.words.get(feature, ("", ""))[1]
        return unit

    def option(self, feature: str, text: str) -> str:
        """An option of a feature by its name; any other text as it is."""
        bare = text.strip(QUOTE)
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
        frame, named = PHRASES[self.language].label, self._named
        return rule if named is None else named.sub(lambda one: frame.format(self.label(one[0].strip(QUOTE))), rule)


def rule_in(rule: str, names: Naming) -> str:
    """A constraint as it is put in a language."""
    return _worded(rule, names, PHRASES[names.language]) or names.labelled(rule)


def _worded(rule: str, names: Naming, say: RulePhrases) -> str:
    """A constraint in words; empty where there is no form for it."""
    if case := re.fullmatch(r"if (.+?) then (.+)", rule):
        return say.case.format(condition=rule_in(case[1], names), then=rule_in(case[2], names))
    if " may " in rule and " and " in rule and QUOTE not in rule:  # several constraints that are dropped
        return say.joined["and"].join(rule_in(one, names) for one in rule.split(" and "))
    if other := _OTHER.fullmatch(rule):
        parts = _parts("other", {**other.groupdict(), "value": other["value"].replace(" or ", ", ")}, names, say)
        return say.forms["other"].format(**parts)
    if dropped := _DROPPED.fullmatch(rule):
        return say.dropped.format(rule_in(dropped["rule"], names))
    for word, joint in say.joined.items():
        several = rule.split(f" {word} ")
        if len(several) > 1 and not set("()'") & set(rule):
            return joint.join(rule_in(one, names) for one in several)
    if total := re.fullmatch(rf"(?P<sum>[^<>=*/]+ \+ [^<>=*/]+) (?P<sign><=|>=|=) {_VALUE}", rule):
        first, *_ = terms = total["sum"].split(" + ")
        said = " + ".join(_value(one, names, "") for one in terms)
        return f"{said} {say.sums[total['sign']]} {_value(total['value'], names, first.strip(QUOTE))}"
    if rule.startswith("not "):
        return ""
    for form, pattern in _FORMS.items():
        if found := pattern.fullmatch(rule):
            if form in _OF_ONE and ", " not in found["value"]:
                return _worded(f"{found['name']} {_OF_ONE[form]} {found['value']}", names, say)
            words = say.forms.get(form, "")
            return words and words.format(**_parts(form, found.groupdict(), names, say))
    return ""


def _parts(form: str, found: Mapping[str, str], names: Naming, say: RulePhrases) -> dict[str, str]:
    """What a form says, in the words of the language."""
    parts = {key: say.counts.get(text, text) for key, text in found.items()}
    feature = parts.get("name", "").strip(QUOTE)
    if "name" in parts:
        several = [one.strip(QUOTE) for one in parts["name"].split(", ")]
        parts["name"] = ", ".join((say.name if names.label(one) == one else say.label).format(names.label(one))
                                  for one in several)  # fmt: skip
    if form == "follows":
        parts["value"] = _definition(parts["value"], names, say, feature)
        return parts
    for key in {"value", "low", "high"} & set(parts):
        if parts[key] == found[key]:
            parts[key] = ", ".join(_value(one, names, feature) for one in parts[key].split(", "))
    return parts


def _definition(text: str, names: Naming, say: RulePhrases, feature: str) -> str:
    """What a derived feature follows from: cases, or a condition, or a sum."""
    if case := re.fullmatch(r"if (?P<condition>.+?) then (?P<then>.+?) else (?P<rest>.+)", text):
        first = say.case.format(condition=rule_in(case["condition"], names), then=_value(case["then"], names, feature))
        return say.otherwise.format(case=first, rest=_definition(case["rest"], names, say, feature))
    return _value(text, names, feature) if " " not in text else rule_in(text, names)


def _value(text: str, names: Naming, feature: str) -> str:
    """A name of a feature by its label, an option of the feature by its name, a number with its unit."""
    bare = text.strip(QUOTE)
    called = names.label(bare)
    if called != bare:
        return PHRASES[names.language].label.format(called)
    if re.search(r" [*+-] ", text):
        return names.labelled(text)
    if not _NUMBER.fullmatch(text) or names.option(feature, text) != text:
        return names.option(feature, text)
    unit = names.unit(feature)
    plain = text.replace(",", "")
    return amount(float(plain) if "." in plain else int(plain), unit, names.language, counted=bool(unit))


def rules_in(rules: Sequence[str], names: Naming) -> list[str]:
    """Each of several constraints."""
    return [rule_in(rule, names) for rule in rules]
