"""The statements of a notice: each sentence with its mark, the question that was asked, and what is proven of it.

    D      the decision, which the deciding model itself was asked for
    R1..   a principal reason            O      their order
    S      the data that decide alone    W1..   a way to another decision

`evidence` is a JSON pointer into the annex; `numbers` are those of the sentence, each with the place of its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ifonly.notices.letter import Letter
from ifonly.notices.phrases import NoticePhrases, notice_phrases
from ifonly.notices.principal import PrincipalReason, PrincipalReasons
from ifonly.printing import escaped, json_value
from ifonly.problem.target import THE_DECISION
from ifonly.results import Answer, Change, Nearest, NoneExists, Unknown
from ifonly.results.amounts import amount
from ifonly.results.answer import show
from ifonly.results.localised import localised, localised_changes
from ifonly.results.plain_language import consequence, plain_language
from ifonly.results.reason_language import reason_sentence
from ifonly.results.sufficient import SufficientReasons
from ifonly.results.target_language import goal_in
from ifonly.schema import Value


@dataclass(frozen=True, slots=True)
class TracedNumber:
    """A value as it stands in a sentence, and where the annex has it."""

    shown: str
    value: Value
    place: str

    def to_dict(self) -> dict[str, Any]:
        return {"shown": self.shown, "value": self.value, "at": self.place}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeStatement:
    """A sentence and what it rests on. `status`, `lower` and `distance` are those of the answer to `question`."""

    mark: str
    text: str
    question: str
    status: str
    evidence: str
    lower: float | None = None
    distance: float | None = None
    numbers: tuple[TracedNumber, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "mark": self.mark,
            "text": self.text,
            "question": self.question,
            "status": self.status,
            "lower_bound": json_value(self.lower),
            "distance": json_value(self.distance),
            "evidence": self.evidence,
            "numbers": [number.to_dict() for number in self.numbers],
        }


Cents: TypeAlias = Mapping[str, tuple[Change, ...]]
"""By mark: the changes in whole cents, where those of the answer are not."""


def statements(
    principal: PrincipalReasons, ways: Sequence[Answer], letter: Letter, cents: Cents
) -> tuple[NoticeStatement, ...]:
    """All sentences of a notice about its person, in the order of the marks."""
    reasons = [_reason(principal, one, k, letter, cents) for k, one in enumerate(principal.reasons)]
    order = [_order(principal, letter)] if reasons else []
    found = [_way(way, k, letter, cents) for k, way in enumerate(ways)]
    return (_decision(principal.why, letter), *reasons, *order, _sufficient(principal.why, letter), *found)


def proven_sentences(
    principal: PrincipalReasons, ways: Sequence[Answer], letter: Letter, cents: Cents
) -> list[dict[str, Any]]:
    """What is proven of the statements, in plain words, with the marks of those that each sentence is about."""
    say = notice_phrases(letter.language)
    behind = [
        ([f"R{k}" for k in range(1, len(principal.reasons) + 1)], say.checked),
        (["S"], say.decides if principal.why.reasons else say.decides_open),
        *(([f"W{k}"], _way_proven(way, say)) for k, way in enumerate(ways, 1)),
        (list(cents), say.cents),
    ]
    sentences: dict[str, list[str]] = {}
    for marks, text in behind:
        if marks and text:
            sentences.setdefault(text, []).extend(marks)
    return [{"about": marks, "text": text} for text, marks in sentences.items()]


def _decision(why: SufficientReasons, letter: Letter) -> NoticeStatement:
    say = notice_phrases(letter.language)
    if why.decision is None:
        about, state = goal_in(why.subject, why.state, letter.language)
        text = say.not_reached.format(subject=about, state=state)
    else:
        text = say.decided.format(show(why.decision))
    return NoticeStatement(
        mark="D", text=escaped(text), question="What does the model decide of this row?", status="model",
        evidence="/principal/sufficient/decision",
    )  # fmt: skip


def _way_proven(way: Answer, say: NoticePhrases) -> str:
    match way:
        case Nearest():
            return say.way
        case NoneExists():
            return say.no_way
        case Unknown():
            return say.way_unknown
        case _:
            return say.way_open


def _reason(
    principal: PrincipalReasons, reason: PrincipalReason, place: int, letter: Letter, cents: Cents
) -> NoticeStatement:
    say, at = notice_phrases(letter.language), f"/principal/reasons/{place}"
    answer, changes = _worded(reason.answer, f"R{place + 1}", cents, f"{at}/changes")
    match reason.verdict:
        case "alone":
            frame = say.alone if isinstance(answer, Nearest) else say.perhaps
            text = frame.format(consequence=consequence(answer, letter.language, letter.subject))
        case "never":
            text = say.never
        case _:
            text = say.open
    return NoticeStatement(
        mark=f"R{place + 1}",
        text=text,
        question=f"Which least change ({principal.distance_name}) of {', '.join(reason.group.features)} alone, all "
        f"other data as they are, would have been enough?",
        status=answer.status,
        evidence=at,
        lower=answer.lower,
        distance=answer.upper,
        numbers=tuple(_numbers(answer, answer.changes, changes, letter)),
    )


def _worded(answer: Answer, mark: str, cents: Cents, changes: str) -> tuple[Answer, str]:
    """An answer as its sentence tells it, in whole cents where these are known, and where the annex has its changes."""
    return (replace(answer, changes=cents[mark]), f"/cents/{mark}") if mark in cents else (answer, changes)


def _order(principal: PrincipalReasons, letter: Letter) -> NoticeStatement:
    say = notice_phrases(letter.language)
    return NoticeStatement(
        mark="O", text=say.order if principal.ranked else say.no_order, question="Is this the order by the rule?",
        status="proven" if principal.ranked else "not proven", evidence="/principal/ranked",
    )  # fmt: skip


def _sufficient(why: SufficientReasons, letter: Letter) -> NoticeStatement:
    own = localised(why, letter.language)
    numbers = [
        TracedNumber(amount(own.factual.get(name), own.unit(name), letter.language), why.factual.get(name), _at(name))
        for name in why.features
    ]
    return NoticeStatement(
        mark="S",
        text=reason_sentence(why, letter.language, letter.subject),
        question="Which smallest set of the data decides alone, whatever the other data are?",
        status=why.status,
        evidence="/principal/sufficient",
        lower=why.at_least,
        distance=float(len(why.features)) if why.reasons else None,
        numbers=tuple(numbers),
    )


def _way(way: Answer, place: int, letter: Letter, cents: Cents) -> NoticeStatement:
    at = f"/ways/{place}"
    way, changes = _worded(way, f"W{place + 1}", cents, f"{at}/changes")
    further = " that differs from the earlier ones" if place else ""
    goal = way.target if way.subject == THE_DECISION else f"{way.subject} {way.state}"
    numbers = list(_numbers(way, way.changes, changes, letter))
    if isinstance(way, NoneExists) and way.reasons is not None:
        for relaxation in way.reasons.relaxations[:1]:
            numbers += _numbers(way, relaxation.changes, f"{at}/reasons/relaxations/0/changes", letter)
    return NoticeStatement(
        mark=f"W{place + 1}",
        text=plain_language(way, letter.language, letter.subject, further=place > 0),
        question=f"Which least allowed change ({way.distance_name}){further} leads to: {goal}?",
        status=way.status,
        evidence=at,
        lower=way.lower,
        distance=way.upper,
        numbers=tuple(numbers),
    )


def _numbers(answer: Answer, changes: Sequence[Change], at: str, letter: Letter) -> Iterator[TracedNumber]:
    shown_answer, named = localised(answer, letter.language), localised_changes(answer, changes, letter.language)
    for k, (change, own) in enumerate(zip(changes, named, strict=True)):
        for value, name, entry in ((change.before, own.before, "from"), (change.after, own.after, "to")):
            shown = amount(name, shown_answer.unit(change.feature), letter.language, counted=change.counted)
            yield TracedNumber(shown, value, f"{at}/{k}/{entry}")


def _at(feature: str) -> str:
    """The place of the person's value of a feature in the annex."""
    return "/principal/sufficient/factual/" + feature.replace("~", "~0").replace("/", "~1")
