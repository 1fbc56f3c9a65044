"""Recourse under causes: what to do, what follows from it, what it costs, and what is proven. Plain data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifonly.errors import QuestionError
from ifonly.printing import escaped, shown
from ifonly.problem.plain_data import entries
from ifonly.problem.target import THE_DECISION
from ifonly.results.answer import Answer, Change, Nearest, Within, kept_text
from ifonly.results.from_dict import answer_from_dict, change_from_dict, listed, truth
from ifonly.results.localised import naming
from ifonly.results.plain_language import consequence

_PHRASES = {
    "en": (
        "For this, the present value has to be held against its causes: {}.",
        "No cheaper action would have been enough.",
        "A cheaper action may be enough as well; that was not found out.",
    ),
    "de": (
        "Dafür muss der jetzige Wert gegen seine Ursachen gehalten werden: {}.",
        "Kein geringerer Aufwand hätte genügt.",
        "Vielleicht genügt auch ein geringerer Aufwand; das wurde nicht geklärt.",
    ),
}
"""What is held, and what is proven, by language."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """A feature that is acted on, and the value it is put to. `held`: its own value, against its causes."""

    change: Change
    held: bool = False

    @property
    def feature(self) -> str:
        return self.change.feature

    @property
    def value(self) -> Any:
        """The value that the feature is put to."""
        return self.change.after

    def to_dict(self) -> dict[str, Any]:
        return {**self.change.to_dict(), "held": self.held}

    def __str__(self) -> str:
        if self.held:
            return f"{self.feature}: held at {self.change.shown(self.value)}"
        return str(self.change)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Recourse:
    """The cheapest action after which the model decides as asked.

    `answer` is about the row that follows: its status says what is proven, its distance is the cost of the action, and
    the changes that follow are marked so.
    """

    answer: Answer
    actions: tuple[Intervention, ...] = ()

    @property
    def status(self) -> str:
        """That of the answer: "nearest" is a cheapest action, proven."""
        return self.answer.status

    @property
    def cost(self) -> float:
        """Of the action; infinity without one."""
        return self.answer.upper

    @property
    def lower(self) -> float:
        """Proven: no action is cheaper."""
        return self.answer.lower

    @property
    def row(self) -> Any:
        """The row that follows; None without an action."""
        return self.answer.counterfactual

    @property
    def follows(self) -> tuple[Change, ...]:
        """What changes without being acted on."""
        return self.answer.derived_changes

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"actions": [one.to_dict() for one in self.actions], "answer": self.answer.to_dict()}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Any) -> Recourse:
        """The inverse of `to_dict`."""
        found = entries(data, "Recourse", ("actions", "answer"))
        read = cls(
            answer=answer_from_dict(found["answer"]),
            actions=tuple(_intervention(one) for one in listed(found["actions"], "actions")),
        )
        moved = tuple(one.change for one in read.actions if not one.held)
        if moved != read.answer.own_changes:
            raise QuestionError(f"The actions of this recourse are not the changes of its answer: {shown(moved)}.")
        return read

    def sentence(self, language: str = "en", *, subject: str = "") -> str:
        """The explanation for the person, in "en" or "de"."""
        answer = self.answer
        if not isinstance(answer, Nearest | Within) or answer.already:
            return answer.sentence(language, subject=subject)
        sentences = [consequence(answer, language, subject)]
        held, nothing_cheaper, maybe_cheaper = _PHRASES[language]
        if names := [naming(answer, language).label(one.feature) for one in self.actions if one.held]:
            sentences.append(held.format(", ".join(names)))
        return escaped(" ".join([*sentences, nothing_cheaper if isinstance(answer, Nearest) else maybe_cheaper]))

    def to_html(self, path: str | Path | None = None, language: str = "en", *, subject: str = "") -> str:
        """A page to print and hand over; written to `path` if one is given."""
        from ifonly.results.html import answer_document

        return kept_text(
            answer_document(self.answer, language, subject, own_sentence=self.sentence(language, subject=subject)), path
        )

    def __str__(self) -> str:
        """The exact sentence: what to do, what follows, what it costs, and what is proven."""
        return escaped(_sentence(self))

    def __repr__(self) -> str:
        what = f"cost {self.cost:.6g}, {', '.join(map(str, self.actions))}" if self.actions else self.answer.target
        return f"<Recourse: {self.status}, {escaped(what)}>"


def _sentence(recourse: Recourse) -> str:
    answer = recourse.answer
    if not isinstance(answer, Nearest | Within) or answer.already:
        return str(answer)
    *first, last = [_do(one) for one in recourse.actions]
    do = f"{', '.join(first)}, and {last}" if first else last
    follows = ", ".join(f"{c.feature} is {c.shown(c.after)} instead of {c.shown(c.before)}" for c in recourse.follows)
    subject, state = answer.subject, answer.state or answer.target
    becomes = "changes to" if subject == THE_DECISION else "is"
    then = f"Then {follows}, and {subject}" if follows else f"Then {subject}"
    start = f"{do[:1].upper()}{do[1:]}. {then} {becomes} {state}"
    cost = f"{answer.distance_name} cost {answer.upper:.6g}"
    if isinstance(answer, Nearest):
        return f"{start}; no cheaper action does it (proven, {cost})."
    return f"{start} ({cost}); none cheaper than {answer.lower:.6g} exists (proven); in between, {answer.note}."


def _do(action: Intervention) -> str:
    change = action.change
    if action.held:
        return f"hold {action.feature} at {change.shown(change.after)} against its causes"
    return f"set {action.feature} to {change.shown(change.after)} instead of {change.shown(change.before)}"


def _intervention(data: Any) -> Intervention:
    if not isinstance(data, dict) or "held" not in data:
        raise QuestionError(f"An action is a change that says whether it is held; got {shown(data)}.")
    held = truth(data["held"], "held")
    change = change_from_dict({name: value for name, value in data.items() if name != "held"})
    if held != (change.before == change.after):
        raise QuestionError(f"An action is held where its value stays what it was; got {shown(data)}.")
    return Intervention(change, held)
