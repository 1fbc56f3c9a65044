"""Languages of explanations: each is a value with sentences that have gaps, and with how numbers are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.target import THE_DECISION
from ifonly.results.amounts import STYLES, ValueStyle
from ifonly.results.answer import KINDS


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


def language_of(name: str) -> Language:
    """The words of a language, by its name."""
    if not isinstance(name, str) or name not in LANGUAGES:
        raise QuestionError(f"There are words in {', '.join(LANGUAGES)}; got {shown(name)}.")
    return LANGUAGES[name]
