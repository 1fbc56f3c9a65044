"""Natural-language explanations for the person: the schema's labels and units, no distances and no proofs.

    If your monthly income had been €5,776 instead of €5,120, the application would have been approved. No smaller
    allowed change would have been enough.

`str(answer)` says the same with the distance and the proof. Names of features, classes and rules stay as they were
given. The outcome is the clause that was stated for the class, if one was; the name of a class alone cannot be made
into natural English.
"""

from __future__ import annotations

from collections.abc import Sequence

from ifonly.errors import QuestionError
from ifonly.printing import capitalised, escaped, shown
from ifonly.problem.target import THE_DECISION
from ifonly.results.amounts import amount
from ifonly.results.answer import (
    Answer,
    Change,
    Failed,
    Nearest,
    NoneExists,
    Reasons,
    Relaxation,
    Unknown,
    show,
)
from ifonly.results.languages import ENGLISH, Language, language_of
from ifonly.results.localised import localised, localised_changes, naming
from ifonly.results.rule_language import rule_in, rules_in
from ifonly.results.target_language import decision_in, goal_in

POSSESSIVE = ("your ", "the ")


def plain_language(answer: Answer, language: str = "en", subject: str = "", *, further: bool = False) -> str:
    """The explanation for the person. `subject` is what is decided ("the application"); by default, the decision.

    `further`: the answer is one of several, the nearest that differs from the earlier ones.
    """
    if not isinstance(subject, str):
        raise QuestionError(f"'subject' is a text such as \"the application\"; got {shown(subject)}.")
    return escaped(_Phrasing(answer, language_of(language), subject, further).text())


def consequence(answer: Answer, language: str = "en", subject: str = "") -> str:
    """Of an answer with a row: what would have been decided with its changes, without what is proven of them."""
    return escaped(_Phrasing(answer, language_of(language), subject, False).consequence())


def guarantee(answer: Answer, language: str = "en") -> str:
    """What the answer guarantees, for the person; empty where there was no search."""
    say = language_of(language)
    if isinstance(answer, Failed) or answer.already:
        return ""
    if isinstance(answer, NoneExists):
        return say.proven_none
    if isinstance(answer, Unknown):
        return say.open
    return say.proven if isinstance(answer, Nearest) else say.unproven


def possible(answer: Answer, relaxation: Relaxation, language: str = "en") -> str:
    """What becomes possible without some constraints, for the person for whom there was no answer."""
    return escaped(_Phrasing(answer, language_of(language), "", False).possible(relaxation))


def change_of(answer: Answer, change: Change) -> str:
    """One change in a few words."""
    before, after = _amounts(change, answer.unit(change.feature), ENGLISH.code)
    with_it = " (follows)" if change.follows else ""
    return escaped(f"{answer.label(change.feature)}: {before} \N{RIGHTWARDS ARROW} {after}{with_it}")


class _Phrasing:
    """One answer in one language."""

    def __init__(self, answer: Answer, language: Language, subject: str, further: bool) -> None:
        self.given, self.answer = answer, localised(answer, language.code)
        self.names, self.language, self.further = naming(answer, language.code), language, further
        self.is_decision = answer.subject == THE_DECISION
        self.state = answer.state or answer.target
        if not self.is_decision:
            self.subject, self.state = goal_in(answer.subject, self.state, language.code)
            self.phrases = language.of_score
            return
        self.state = decision_in(self.state, language.code)
        self.subject = subject or language.decision
        self.phrases = language.of_subject if subject else language.of_decision

    def text(self) -> str:
        answer, say = self.answer, self.language
        about = {"subject": self.subject, "state": self.state}
        if isinstance(answer, Failed):
            return say.failed.format(answer.error)
        if isinstance(answer, NoneExists):
            return " ".join([self.phrases.none.format(**about), *self._why(answer.reasons)])
        if isinstance(answer, Unknown):
            return self.phrases.unknown.format(**about)
        if answer.already:
            return " ".join([capitalised(self.phrases.already.format(**about)), *self._broken()])
        smaller = say.nothing_else_smaller if self.further else say.nothing_smaller
        closing = smaller if isinstance(answer, Nearest) else say.maybe_smaller
        return " ".join([self.consequence(), closing, *self._broken()])

    def _broken(self) -> list[str]:
        """The rules that the row breaks as it stands, with what people call the features."""
        answer = self.answer
        if not answer.breaks:
            return []
        return [self.language.breaks.format("; ".join(rules_in(answer.breaks, self.names)))]

    def consequence(self) -> str:
        return self.language.would.format(changes=self._all(self.answer.changes), outcome=self._outcome())

    def _outcome(self) -> str:
        answer, state = self.answer, self.state
        if self.is_decision and answer.decision_after is not None:
            if clause := answer.outcome.get(self.language.code):
                return clause
            state = show(answer.decision_after)  # where several were asked for, the one that it became
        return self.phrases.outcome.format(subject=self.subject, state=state)

    def _why(self, reasons: Reasons | None) -> list[str]:
        if reasons is None or not reasons.blame:
            return []
        stated = rules_in(reasons.blame, self.names)
        blame = [self.language.blame.format("; ".join(stated))]
        return blame + [self.possible(first) for first in reasons.relaxations[:1]]

    def possible(self, relaxation: Relaxation) -> str:
        words = rule_in(relaxation.words, self.names)
        changes = localised_changes(self.given, relaxation.changes, self.language.code)
        return self.language.possible.format(words=words, changes=self._all(changes))

    def _all(self, changes: Sequence[Change]) -> str:
        own = [change for change in changes if not change.follows]
        with_it = [self._followed(change) for change in changes if change.follows and own]
        text = self._listed([self._changed(change) for change in own or changes])
        return f"{text} {self.language.with_it.format(self._listed(with_it))}" if with_it else text

    def _listed(self, several: Sequence[str]) -> str:
        return enumerated(several, self.language)

    def _followed(self, change: Change) -> str:
        """A derived feature, which changes with others."""
        say, (label, unit) = self.language, self.answer.words.get(change.feature, ("", ""))
        before, after = _amounts(change, unit, say.code)
        return say.followed.format(what=say.named.format(label or change.feature), before=before, after=after)

    def _changed(self, change: Change) -> str:
        say, (label, unit) = self.language, self.answer.words.get(change.feature, ("", ""))
        yes_or_no = isinstance(change.before, bool) or isinstance(change.after, bool)
        what = named_feature(change.feature, label, say, yes_or_no=yes_or_no)
        before, after = _amounts(change, unit, say.code)
        return say.changed.format(what=what, before=before, after=after)


def _amounts(change: Change, unit: str, code: str) -> tuple[str, str]:
    """Before and after a change, as a language writes them."""
    before, after = (amount(value, unit, code, counted=change.counted) for value in (change.before, change.after))
    return before, after


def named_feature(feature: str, label: str, say: Language, *, yes_or_no: bool = False) -> str:
    """A feature as part of a sentence to the person."""
    if yes_or_no:
        frame = say.asked
    else:
        frame = say.labelled if label and not label.startswith(POSSESSIVE) else say.named
    return frame.format(label or feature)


def enumerated(several: Sequence[str], say: Language) -> str:
    """Several things one after the other, with the language's word before the last."""
    *others, last = several
    return f"{', '.join(others)}{say.last}{last}" if others else last
