"""Sufficient reasons in words: a sentence for the person (English, German), and the exact one for experts.

    Your income (€1,200) and your age (30) alone decide this: whatever your other data were, the decision would be deny.
    No smaller set of your data decides it alone.

A language is a value below; how features and values are written is that of `plain_language`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from ifonly.errors import QuestionError
from ifonly.printing import capitalised, escaped, shown
from ifonly.problem.target import THE_DECISION
from ifonly.results.amounts import amount
from ifonly.results.answer import Change, show
from ifonly.results.languages import Language, language_of
from ifonly.results.localised import localised, localised_changes, naming
from ifonly.results.plain_language import enumerated, named_feature
from ifonly.results.rule_language import rules_in
from ifonly.results.sufficient import Sufficient, SufficientReason, SufficientReasons
from ifonly.results.target_language import decision_in, goal_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonPhrases:
    """The sentences of one language, with gaps."""

    one: str
    several: str
    nothing: str
    unknown: str
    same: str
    """The outcome that stays; `never` is one that is not reached."""
    never: str
    never_score: str
    """The same of a score."""
    same_of: str
    never_of: str
    """The same of a stated subject, such as "the application"."""
    smallest: str
    minimal: str
    sufficient: str
    within: str
    missing: str
    breaks: str
    title: str
    value: str
    needed: str
    others: str
    necessary: str
    irrelevant: str
    follows: str
    proven: str
    """What is proven, in plain words; `figures` below it are for experts."""
    open: str
    effort: str
    statuses: Mapping[str, str]
    facts: str


ENGLISH = ReasonPhrases(
    one="{features} alone decides this: whatever your other data were, {outcome}.",
    several="{features} alone decide this: whatever your other data were, {outcome}.",
    nothing="Whatever your data were, {outcome}.",
    unknown="Which of your data alone decide this was not found out.",
    same="{subject} would be {state}",
    never="{subject} would not be {state}",
    never_score="{subject} would not be {state}",
    same_of="{subject} would be {state}",
    never_of="{subject} would not be {state}",
    smallest="No smaller set of your data decides it alone.",
    minimal="Without any one of them, it can be decided otherwise.",
    sufficient="Perhaps not all of them are needed; that was not found out.",
    within="This is about data that meet: {}.",
    missing="What is missing stays missing: {}.",
    breaks="Your data break a rule that other data obey: {}.",
    title="Row {}: which data decide it",
    value="value",
    needed="with the others as they are, it is decided otherwise if",
    others="Other sets of data that decide it alone",
    necessary="in every such set",
    irrelevant="in none of them",
    follows="follow from other data",
    proven="What stands behind this: it is proven, for all data that are possible and not only for those that were "
    "tried, that the deciding model never decides otherwise while these values stay as they are.",
    open="What stands behind this: nothing is proven of a set smaller than all of the data.",
    effort="{method}, {searches:,} searches, {nodes:,} nodes, {took}",
    statuses={name: name for name in get_args(Sufficient)},
    facts="rules that all data obey",
)
GERMAN = ReasonPhrases(
    one="Allein {features} entscheidet: Wie auch immer Ihre übrigen Angaben lauten, {outcome}.",
    several="Allein {features} entscheiden: Wie auch immer Ihre übrigen Angaben lauten, {outcome}.",
    nothing="Wie auch immer Ihre Angaben lauten, {outcome}.",
    unknown="Welche Ihrer Angaben allein entscheiden, wurde nicht geklärt.",
    same="{subject} lautet „{state}“",
    never="{subject} lautet nicht „{state}“",
    never_score="dies wird nicht erreicht: {subject} {state}",
    same_of="{subject} hat das Ergebnis „{state}“",
    never_of="{subject} hat nicht das Ergebnis „{state}“",
    smallest="Keine kleinere Auswahl Ihrer Angaben entscheidet es allein.",
    minimal="Ändert sich auch nur eine davon, kann anders entschieden werden.",
    sufficient="Vielleicht sind nicht alle davon nötig; das wurde nicht geklärt.",
    within="Das gilt für Angaben, die dies einhalten: {}.",
    missing="Was fehlt, fehlt weiterhin: {}.",
    breaks="Ihre Angaben verletzen eine Regel, die andere einhalten: {}.",
    title="Zeile {}: welche Angaben entscheiden",
    value="Wert",
    needed="bleiben die anderen, wird anders entschieden bei",
    others="Andere Angaben, die allein entscheiden",
    necessary="in jeder solchen Auswahl",
    irrelevant="in keiner",
    follows="folgen aus anderen Angaben",
    proven="Was dahinter steht: Es ist bewiesen, für alle möglichen Angaben und nicht nur für ausprobierte, dass das "
    "entscheidende Modell nie anders entscheidet, solange diese Werte so bleiben.",
    open="Was dahinter steht: Von keiner Auswahl, die kleiner ist als alle Angaben, ist etwas bewiesen.",
    effort="{method}; Suchen: {searches}; Knoten: {nodes}; {took}",
    statuses={
        "smallest": "kleinste Auswahl (bewiesen)",
        "minimal": "keine Angabe entbehrlich (bewiesen)",
        "sufficient": "genügt (bewiesen)",
        "unknown": "offen",
    },
    facts="Regeln, die alle Angaben einhalten",
)
PHRASES = {"en": ENGLISH, "de": GERMAN}


def reason_sentence(found: SufficientReasons, language: str = "en", subject: str = "") -> str:
    """The first reason for the person."""
    if not isinstance(subject, str):
        raise QuestionError(f"'subject' is a text such as \"the application\"; got {shown(subject)}.")
    say, phrases = language_of(language), PHRASES[language_of(language).code]
    names, found = naming(found, say.code), localised(found, say.code)
    parts = []
    if not found.reasons:
        parts.append(phrases.unknown)
    else:
        outcome = _outcome(found, say, phrases, subject)
        features = [feature_value(found, name, say) for name in found.features]
        frame = phrases.nothing if not features else phrases.one if len(features) == 1 else phrases.several
        start = frame.format(features=enumerated(features, say) if features else "", outcome=outcome)
        parts.append(capitalised(start))
        parts += [getattr(phrases, found.status)] if features else []
    parts += [phrases.within.format("; ".join(rules_in(found.within, names)))] if found.within else []
    parts += [phrases.missing.format(", ".join(map(found.label, found.missing)))] if found.missing else []
    parts += [phrases.breaks.format("; ".join(rules_in(found.breaks, names)))] if found.breaks else []
    return escaped(" ".join(parts))


def feature_value(found: SufficientReasons, name: str, say: Language) -> str:
    """A feature and its value: "your income (€1,200)", "your late payments (of 6): 2"."""
    value = found.factual.get(name)
    label = found.words.get(name, ("", ""))[0]
    what = named_feature(name, label, say, yes_or_no=isinstance(value, bool))
    shown = amount(value, found.unit(name), say.code)
    return f"{what}: {shown}" if what.endswith(")") else f"{what} ({shown})"


def _outcome(found: SufficientReasons, say: Language, phrases: ReasonPhrases, subject: str) -> str:
    if found.subject != THE_DECISION:
        about, state = goal_in(found.subject, found.state, say.code)
        return phrases.never_score.format(subject=about, state=state)
    about = subject or say.decision
    if found.otherwise:
        return (phrases.same_of if subject else phrases.same).format(subject=about, state=show(found.decision))
    state = decision_in(found.state or found.target, say.code)
    return (phrases.never_of if subject else phrases.never).format(subject=about, state=state)


def changed_to(found: SufficientReasons, changes: tuple[Change, ...], language: str = "en") -> str:
    """The changes of a row that is decided otherwise, in a few words."""
    parts, changes, found = [], localised_changes(found, changes, language), localised(found, language)
    for change in changes:
        after = amount(change.after, found.unit(change.feature), language, counted=change.counted)
        parts.append(f"{found.label(change.feature)}: {after}")
    return "; ".join(parts)


def exact_sentence(found: SufficientReasons) -> str:
    """All of it, with what is proven."""
    if not found.reasons:
        why = f" ({found.note})" if found.note else ""
        return escaped(f"No set smaller than the whole row is proven to decide it{why}.")
    parts = [_exact(found, found.reasons[0])]
    parts += [f"Also: {_held(found, reason)} ({reason.status})." for reason in found.reasons[1:]]
    if found.necessary:
        parts.append(f"In every reason (proven): {', '.join(found.necessary)}.")
    if found.complete:
        rest = f"; in none of them: {', '.join(found.irrelevant)}" if found.irrelevant else ""
        parts.append(f"There are no other minimal reasons (proven){rest}.")
    if found.note:
        parts.append(f"Left open: {found.note}.")
    return escaped(" ".join(parts))


def _exact(found: SufficientReasons, reason: SufficientReason) -> str:
    others = len(found.factual) - len(reason.features) - len(found.follows) - len(found.missing)
    if found.subject == THE_DECISION and found.otherwise:
        outcome = f"is decided otherwise than {show(found.decision)}"
    elif found.subject == THE_DECISION:
        outcome = f"is decided as {found.state or found.target}"
    else:
        outcome = f"has {found.subject} {found.state}"
    size = {
        "smallest": "; no set of fewer features does" if found.at_least is not None else "; no set of less weight does",
        "minimal": "; no part of it does",
        "sufficient": "",
        "unknown": "",
    }[reason.status]
    among = f" (counting only rows that meet: {'; '.join(found.within)})" if found.within else ""
    rest = f"the other {others} features are" if others > 1 else "the other feature is"
    whatever = f", whatever {rest}," if reason.features and others else ""
    held = f"with {_held(found, reason)}" if reason.features else "at all"
    return f"No row {held}{whatever} {outcome}{among}{size} (proven)."


def _held(found: SufficientReasons, reason: SufficientReason) -> str:
    values = [f"{name} = {show(found.factual.get(name))}" for name in reason.features]
    return enumerated(values, language_of("en")) if values else "no feature at all"
