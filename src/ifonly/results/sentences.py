"""One exact sentence per answer, with the distance and what is proven. (`plain_language` is for the person.)"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ifonly.printing import escaped
from ifonly.problem.target import THE_DECISION
from ifonly.results.answer import Failed, Nearest, NoneExists, Reasons, Unknown, show

LONGEST = 250
"""Characters of constraints that are listed below an answer."""
VISIBLE = 5e-6
"""Relative: what shows in six digits of a distance."""


def sentence(answer: Any, *, given: str = "") -> str:
    """One sentence per answer, and one more where there is a reason to give; printable, whatever labels say.

    `given` says under what else nothing smaller does it, such as ", given the answers above".
    """
    text = _sentence(answer, given)
    if answer.breaks and not answer.already:
        text += f" As it is, the row breaks: {'; '.join(answer.breaks)}; so the answer need not keep that."
    if answer.usual is not None:
        text += f" {answer.usual}"
    return escaped(text)


def _sentence(answer: Any, given: str) -> str:
    if isinstance(answer, Failed):
        return f"This row could not be answered: {answer.note}"
    subject, state = answer.subject, answer.state or answer.target
    decision, makes = subject == THE_DECISION, reaching(answer)
    if isinstance(answer, NoneExists):
        return f"No allowed change {makes} (proven)." if answer.reasons is None else _why_none(makes, answer.reasons)
    if isinstance(answer, Unknown):
        return (
            f"No change that {makes} was found ({answer.note}); "
            f"none exists within distance {answer.lower:.6g} (proven)."
        )
    if answer.already:
        start = f"T{subject[1:]}" if subject.startswith("the ") else subject  # not the name of a class
        reached = f"is already as asked ({state})" if decision else f"is {state} already"
        broken = f", though as it is the row breaks: {'; '.join(answer.breaks)}" if answer.breaks else ""
        return f"{start} {reached}; nothing needs to change{broken}."
    own, derived = answer.own_changes, answer.derived_changes
    changed = [f"{c.feature} had been {c.shown(c.after)} instead of {c.shown(c.before)}" for c in own or derived]
    with_it = [f"{c.feature} {c.shown(c.after)} instead of {c.shown(c.before)}" for c in derived if own]
    would = "would have changed to" if decision else "would have been"
    followed = f" (and with {'it' if len(own) == 1 else 'them'} {_and(with_it)})" if with_it else ""
    start = f"If {_and(changed)}{followed}, {subject} {would} {_outcome(answer, state)}"
    if isinstance(answer, Nearest):
        proven = f"proven, {answer.distance_name} distance {answer.upper:.6g}{_rounding_bounded(answer)}"
        return f"{start}; no smaller allowed change does it{given} ({proven})."
    known = f", but none within {answer.lower:.6g} exists (proven)" if answer.lower > 0 else ""
    return f"{start} (distance {answer.upper:.6g}); a smaller change was not ruled out ({answer.note}){known}."


def reaching(answer: Any) -> str:
    """What a change to the target does, as a verb: "turns the decision into approve"."""
    subject, state = answer.subject, answer.state or answer.target
    return f"turns {subject} into {state}" if subject == THE_DECISION else f"makes {subject} {state}"


def _rounding_bounded(answer: Any) -> str:
    """How much nearer a row might be that is accepted under some rounding only, where that shows in the distance."""
    if answer.lower_any_rounding is None or answer.upper - answer.lower_any_rounding <= VISIBLE * answer.upper:
        return ""
    by = answer.upper - answer.lower_any_rounding
    places = max(0, -math.floor(math.log10(by)))
    most = math.ceil(by * 10**places) / 10**places
    return f"; rounding in {answer.precision} may bring this down by up to {most:.{places}f}"


def _outcome(answer: Any, state: str) -> str:
    """The target; where that was left open ("one of a, b"), the decision that it became."""
    if answer.subject != THE_DECISION or answer.decision_after is None or show(answer.decision_after) == state:
        return state
    return f"{show(answer.decision_after)} ({state})"


def _why_none(makes: str, reasons: Reasons) -> str:
    """Why no allowed change does it, and what would help."""
    if not reasons.blame:
        return f"No row at all {makes}, whatever may change (proven)."
    how = "together rule" if len(reasons.blame) > 1 else "rules"
    why = f"No allowed change {makes}: {_and(reasons.blame)} {how} it out (proven)."
    if reasons.relaxations:
        first, rest = reasons.relaxations[0], len(reasons.relaxations) - 1
        why += f" Possible {first}"
        why += f", and in {rest} other way{'s' if rest > 1 else ''}." if rest else "."
    return why + (f" Not proven: {reasons.note}." if reasons.note else "")


def under(constraints: Sequence[str]) -> str:
    """The constraints of an answer in a line: the last, which are the query's own, in full, and how many more."""
    shown: list[str] = []
    for words in reversed(constraints):
        if shown and sum(map(len, shown)) + len(words) > LONGEST:
            break
        shown.insert(0, words)
    more = len(constraints) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


def _and(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]
