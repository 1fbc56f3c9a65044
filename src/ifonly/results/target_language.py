"""Targets that are about a score, a probability or a rank, in the words of a language: subject and state, as in
"the score" and "at least 0.5". Words that a language does not have stay as they are.
"""

from __future__ import annotations

import re

_NUMBER = r"(-?[\d.]+(?:e[+-]?\d+)?(?: %)?)"
_SUBJECTS = {"de": ((r"the score", "Der Punktwert"), (r"the probability of (.+)", r"Die Wahrscheinlichkeit von „\1“"))}
_STATES = {
    "de": (
        (rf"at least {_NUMBER}", r"ist mindestens \1"),
        (rf"at most {_NUMBER}", r"ist höchstens \1"),
        (rf"in \[{_NUMBER}, {_NUMBER}\]", r"liegt im Bereich von \1 bis \2"),
        (r"among the (\d+) highest", r"ist unter den \1 höchsten"),
        (r"highest", "ist am höchsten"),
    )
}
_DECISIONS = {"de": ((r"anything but (.+)", r"etwas anderes als \1"), (r"one of (.+)", r"eines von \1"))}
"""What a decision is to be, where that is not one class."""


def goal_in(subject: str, state: str, language: str) -> tuple[str, str]:
    """The subject and the state of a target that is not about the decision."""
    said = _worded(state, _STATES.get(language, ()))
    if said != state:
        said = re.sub(r"(?<=\d)\.(?=\d)", ",", said)
    return _worded(subject, _SUBJECTS.get(language, ())), said


def decision_in(state: str, language: str) -> str:
    """What the decision is to be: a class stays as it is."""
    return _worded(state, _DECISIONS.get(language, ()))


def _worded(text: str, forms: tuple[tuple[str, str], ...]) -> str:
    for pattern, said in forms:
        if found := re.fullmatch(pattern, text):
            return found.expand(said)
    return text
