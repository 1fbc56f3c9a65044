"""Constraints in another language than that of rules, which is English: for pages that people read.

A sentence that has no form here (sums, cases) stays as it was given: it is what was asked, to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

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


def rule_in(language: str, rule: str, label: Callable[[str], str] = str) -> str:
    """A constraint as it is put in a language, if that is not the one of rules; `label`: what features are called."""
    if language != "de":
        return rule
    if case := re.fullmatch(r"if (.+?) then (.+)", rule):
        return f"wenn {rule_in(language, case[1], label)}, dann {rule_in(language, case[2], label)}"
    if total := re.fullmatch(rf"(?P<sum>[^<>=*/]+ \+ [^<>=*/]+) (?P<sign><=|>=|=) {_VALUE}", rule):
        terms = " + ".join(_quoted(one, label) for one in total["sum"].split(" + "))
        return f"{terms} {_SIGNS[total['sign']]} {_quoted(total['value'], label)}"
    for pattern, words in _GERMAN:
        if found := pattern.fullmatch(rule):
            parts = {name: _COUNTS.get(value, value) for name, value in found.groupdict().items()}
            if "name" in parts:
                parts["name"] = ", ".join(label(name.strip("'")) for name in parts["name"].split(", "))
            if words.startswith("„{name}“ ergibt"):
                parts["value"] = rule_in(language, parts["value"], label)
            elif "value" in parts and found["value"] == parts["value"]:
                parts["value"] = _quoted(parts["value"], label)
            return words.format(**parts)
    return rule


def _quoted(text: str, label: Callable[[str], str]) -> str:
    """What a feature is called, in quotes; anything else, such as a number, as it is."""
    bare = text.strip("'")
    called = label(bare)
    return f"„{called}“" if called != bare else text


def rules_in(language: str, rules: Sequence[str], label: Callable[[str], str] = str) -> list[str]:
    """Each of several constraints."""
    return [rule_in(language, rule, label) for rule in rules]
