"""Natural-language explanations for the person: the schema's labels and units, no distances and no proofs.

    If your monthly income had been €5,776 instead of €5,120, the application would have been approved. No smaller
    allowed change would have been enough.

`str(answer)` says the same with the distance and the proof. A language is a value below: sentences with gaps, and how
numbers are written. Names of features, classes and rules stay as they were given. The outcome is the clause that was
stated for the class, if one was; the name of a class alone cannot be made into natural English.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ifonly.errors import QuestionError
from ifonly.printing import escaped, shown
from ifonly.problem.target import THE_DECISION
from ifonly.results.amounts import STYLES, ValueStyle, amount
from ifonly.results.answer import (
    KINDS,
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
from ifonly.results.localised import localised, localised_changes, naming
from ifonly.results.rule_language import rule_in, rules_in
from ifonly.results.target_language import decision_in, goal_in

POSSESSIVE = ("your ", "the ")


class Phrases(NamedTuple):
    """How a target is put, of a subject and its state: as a clause after "if", reached already, out of reach, or not
    found."""

    outcome: str
    already: str
    none: str
    unknown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The sentences of one language, with gaps."""

    code: str
    last: str
    """Before the last of several."""
    labelled: str
    named: str
    asked: str
    """A feature with a label, one without, one that is answered by yes or no."""
    changed: str
    followed: str
    with_it: str
    follows: str
    """Of derived features, which change with others."""
    decision: str
    of_decision: Phrases
    """Of the decision, which changes to a class: the name of a class cannot be conjugated."""
    of_subject: Phrases
    """Of a stated subject of the decision, such as "the application", which the name of a class can follow."""
    of_score: Phrases
    """Of scores, probabilities and ranks."""
    would: str
    nothing_smaller: str
    nothing_else_smaller: str
    """The same of one of several answers, which has to differ from the earlier ones."""
    maybe_smaller: str
    breaks: str
    blame: str
    possible: str
    failed: str
    proven: str
    unproven: str
    proven_none: str
    open: str
    """The guarantee of an answer."""
    row: str
    title: str
    many: str
    several: str
    feature: str
    now: str
    instead: str
    person: str
    stay: str
    stay_one: str
    distance: str
    """Of pages: titles and columns."""
    status: str
    measured: str
    nearer: str
    score: str
    method: str
    effort: str
    statuses: Mapping[str, str]
    is_proven: str
    more: str
    note: str
    under: str
    """Of the figures below an answer."""

    @property
    def style(self) -> ValueStyle:
        """How it writes values."""
        return STYLES[self.code]


_IS_STATE = Phrases(
    outcome="{subject} would have been {state}",
    already="{subject} is {state} already; nothing needs to change.",
    none="No allowed change makes {subject} {state}.",
    unknown="No change that makes {subject} {state} was found in the time there was. There may be one.",
)
ENGLISH = Language(
    code="en",
    last=" and ",
    labelled="your {}",
    named="{}",
    asked='the answer to "{}"',
    changed="{what} had been {after} instead of {before}",
    followed="{what} {after} instead of {before}",
    with_it="(and with that {})",
    follows="(follows)",
    decision=THE_DECISION,
    of_decision=Phrases(
        outcome="{subject} would have changed to {state}",
        already="{subject} is already as asked ({state}); nothing needs to change.",
        none="No allowed change turns {subject} into {state}.",
        unknown="No change that turns {subject} into {state} was found in the time there was. There may be one.",
    ),
    of_subject=_IS_STATE,
    of_score=_IS_STATE,
    would="If {changes}, {outcome}.",
    nothing_smaller="No smaller allowed change would have been enough.",
    nothing_else_smaller="No smaller allowed change that differs from those above would have been enough.",
    maybe_smaller="A smaller change may be enough as well; that was not found out.",
    breaks="The data as they are break: {}.",
    blame="What stands in the way: {}.",
    possible="It becomes possible if {words}: it would have been enough if {changes}.",
    failed="This could not be answered: {}",
    proven="What stands behind this: the changed data was given to the deciding model itself, which decided so; and it "
    "is proven that no smaller change that is allowed does it.",
    unproven="What stands behind this: the changed data was given to the deciding model itself, which decided so. That "
    "no smaller change does it is not proven.",
    proven_none="What stands behind this: it is proven, for all changes that are allowed and not only for those that "
    "were tried.",
    open="Nothing is proven but that no smaller change than a certain size does it; see below.",
    row="Row {}",
    title="{}: what would have to be different",
    many="{} answers",
    several="{} ways to another decision",
    feature="feature",
    now="now",
    instead="instead",
    person="The data that the decision was made on",
    stay="The {} other features stay as they are.",
    stay_one="The other feature stays as it is.",
    distance="distance",
    status="status",
    measured="{} distance",
    nearer="nothing nearer than",
    score="score",
    method="found by",
    effort="{method}, {nodes:,} nodes, {took}",
    statuses={name: name for name in KINDS},
    is_proven="{} (proven)",
    more="... and {:,} more",
    note="note",
    under="constraints, as understood",
)
_LAUTET = Phrases(
    outcome="hätte {subject} „{state}“ gelautet",
    already="{subject} lautet schon „{state}“. Es muss sich nichts ändern.",
    none="Keine erlaubte Änderung führt dazu, dass {subject} „{state}“ lautet.",
    unknown="In der verfügbaren Zeit wurde keine Änderung gefunden, nach der {subject} „{state}“ lautet. Vielleicht "
    "gibt es eine.",
)
_HAT_ERGEBNIS = Phrases(
    outcome="hätte {subject} das Ergebnis „{state}“ gehabt",
    already="{subject} hat schon das Ergebnis „{state}“. Es muss sich nichts ändern.",
    none="Keine erlaubte Änderung führt dazu, dass {subject} das Ergebnis „{state}“ hat.",
    unknown="In der verfügbaren Zeit wurde keine Änderung gefunden, nach der {subject} das Ergebnis „{state}“ hat. "
    "Vielleicht gibt es eine.",
)
GERMAN = Language(
    code="de",
    last=" und ",
    labelled="„{}“",
    named="„{}“",
    asked="die Antwort auf „{}“",
    changed="{what} {after} statt {before}",
    followed="{what} {after} statt {before}",
    with_it="(und damit {})",
    follows="(folgt daraus)",
    decision="die Entscheidung",
    of_decision=_LAUTET,
    of_subject=_HAT_ERGEBNIS,
    of_score=Phrases(
        outcome="wäre dies erreicht worden: {subject} {state}",
        already="Das ist schon so: {subject} {state}. Es muss sich nichts ändern.",
        none="Keine erlaubte Änderung führt dazu: {subject} {state}.",
        unknown="In der verfügbaren Zeit wurde keine Änderung gefunden, die dazu führt: {subject} {state}. Vielleicht "
        "gibt es eine.",
    ),
    would="Wäre {changes} gewesen, {outcome}.",
    nothing_smaller="Keine kleinere erlaubte Änderung hätte genügt.",
    nothing_else_smaller="Keine kleinere erlaubte Änderung, die sich von den obigen unterscheidet, hätte genügt.",
    maybe_smaller="Vielleicht genügt auch eine kleinere Änderung; das wurde nicht geklärt.",
    breaks="Die jetzigen Angaben verstoßen gegen: {}.",
    blame="Im Weg steht: {}.",
    possible="Möglich wird es, wenn dies gilt: {words}. Es hätte genügt, wenn {changes} gewesen wäre.",
    failed="Das konnte nicht beantwortet werden: {}",
    proven="Was dahinter steht: Die geänderten Daten wurden dem entscheidenden Modell selbst vorgelegt, und es hat "
    "so entschieden. Es ist bewiesen, dass keine kleinere erlaubte Änderung genügt.",
    unproven="Was dahinter steht: Die geänderten Daten wurden dem entscheidenden Modell selbst vorgelegt, und es hat "
    "so entschieden. Dass keine kleinere Änderung genügt, ist nicht bewiesen.",
    proven_none="Was dahinter steht: Das ist bewiesen, für alle erlaubten Änderungen und nicht nur für ausprobierte.",
    open="Bewiesen ist nur, dass keine Änderung unterhalb einer bestimmten Größe genügt; siehe unten.",
    row="Zeile {}",
    title="{}: was anders sein müsste",
    many="{} Antworten",
    several="{} Wege zu einer anderen Entscheidung",
    feature="Merkmal",
    now="jetzt",
    instead="stattdessen",
    person="Die Daten, über die entschieden wurde",
    stay="Die {} anderen Merkmale bleiben, wie sie sind.",
    stay_one="Das andere Merkmal bleibt, wie es ist.",
    distance="Abstand",
    status="Ergebnis",
    measured="Abstand ({})",
    nearer="nichts näher als",
    score="Punktwert",
    method="gefunden durch",
    effort="{method}; Knoten: {nodes}; {took}",
    statuses={
        "nearest": "nächstliegend",
        "none exists": "keine möglich",
        "within": "gefunden, nicht bewiesen",
        "unknown": "offen",
        "error": "Fehler",
    },
    is_proven="{} (bewiesen)",
    more="... und {} weitere",
    note="Hinweis",
    under="Bedingungen, wie verstanden",
)
LANGUAGES = {language.code: language for language in (ENGLISH, GERMAN)}


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


def language_of(name: str) -> Language:
    """The words of a language, by its name."""
    if not isinstance(name, str) or name not in LANGUAGES:
        raise QuestionError(f"There are words in {', '.join(LANGUAGES)}; got {shown(name)}.")
    return LANGUAGES[name]


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
    unit = answer.unit(change.feature)
    before, after = (amount(value, unit, counted=change.counted) for value in (change.before, change.after))
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
            return " ".join([_capital(self.phrases.already.format(**about)), *self._broken()])
        smaller = say.nothing_else_smaller if self.further else say.nothing_smaller
        told = smaller if isinstance(answer, Nearest) else say.maybe_smaller
        return " ".join([self.consequence(), told, *self._broken()])

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
        told = self._listed([self._changed(change) for change in own or changes])
        return f"{told} {self.language.with_it.format(self._listed(with_it))}" if with_it else told

    def _listed(self, several: Sequence[str]) -> str:
        return enumerated(several, self.language)

    def _followed(self, change: Change) -> str:
        """A derived feature, which changes with others."""
        say, (label, unit) = self.language, self.answer.words.get(change.feature, ("", ""))
        before, after = (
            amount(value, unit, say.code, counted=change.counted) for value in (change.before, change.after)
        )
        return say.followed.format(what=say.named.format(label or change.feature), before=before, after=after)

    def _changed(self, change: Change) -> str:
        say, (label, unit) = self.language, self.answer.words.get(change.feature, ("", ""))
        yes_or_no = isinstance(change.before, bool) or isinstance(change.after, bool)
        what = named_feature(change.feature, label, say, yes_or_no=yes_or_no)
        before, after = (
            amount(value, unit, say.code, counted=change.counted) for value in (change.before, change.after)
        )
        return say.changed.format(what=what, before=before, after=after)


def _amounts(change: Change, unit: str, say: Language) -> tuple[str, str]:
    """Before and after a change."""
    before, after = (amount(value, unit, say.code, counted=change.counted) for value in (change.before, change.after))
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
