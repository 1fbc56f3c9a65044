"""What a notice says, in English and German: sentences with gaps, about reasons, their order and their proof."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.results.plain_language import language_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticePhrases:
    """The sentences of one language, with gaps."""

    decided: str
    not_reached: str
    alone: str
    perhaps: str
    never: str
    open: str
    """Of a reason: its change alone is enough and nothing less is; or perhaps less is; never; not found out."""
    order: str
    no_order: str
    no_reason: str
    checked: str
    kept: str
    fill: str
    words: str
    """What is to be filled in; `words` are those of a reason that the list of codes does not name."""
    code: str
    feature: str
    value: str
    model: str
    schema: str
    annex: str
    certificate: str
    traced: str


ENGLISH = NoticePhrases(
    decided="The decision: {}.",
    not_reached="Not reached: {subject} {state}.",
    alone="{consequence} No smaller change of this alone would have been enough.",
    perhaps="{consequence} Perhaps a smaller change of this alone is enough; that was not found out.",
    never="No change of this alone would have been enough; it counted together with the others.",
    open="It counted together with the others. Whether a change of this alone would have been enough was not found "
    "out.",
    order="The order of the reasons: first what alone could have changed the decision, the smallest change first; "
    "then what counted only together with others. That no other reason comes before one of these is proven.",
    no_order="The order of the reasons: first what alone could have changed the decision, the smallest change first; "
    "then what counted only together with others. That this is the right order is not proven.",
    no_reason="No reason could be found out in the time there was.",
    checked="Where a reason says what would have been enough, the changed data was given to the deciding model "
    "itself, which decided so. Where it says that nothing smaller is enough, or nothing at all, this is proven for "
    "all data that are possible and not only for those that were tried. A reason says what counted; what you can do "
    "is said under the ways to another decision.",
    kept="These ways keep to: {}.",
    fill="to be filled in: {}",
    words="words for this reason, which is about {}",
    code="Code {}",
    feature="data",
    value="value",
    model="model (sha256)",
    schema="schema (sha256)",
    annex="annex (sha256)",
    certificate="certificate (sha256)",
    traced="Marks such as [R1] name the entry of the annex in which the question, what is proven, and the numbers of "
    "the sentence are found.",
)
GERMAN = NoticePhrases(
    decided="Die Entscheidung lautet: {}.",
    not_reached="Nicht erreicht: {subject} {state}.",
    alone="{consequence} Keine kleinere Änderung allein daran hätte genügt.",
    perhaps="{consequence} Vielleicht genügt auch eine kleinere Änderung allein daran; das wurde nicht geklärt.",
    never="Keine Änderung allein daran hätte genügt; es zählte zusammen mit den anderen Gründen.",
    open="Es zählte zusammen mit den anderen Gründen. Ob eine Änderung allein daran genügt hätte, wurde nicht geklärt.",
    order="Die Reihenfolge der Gründe: zuerst, was allein die Entscheidung hätte ändern können, die kleinste "
    "Änderung zuerst; dann, was nur zusammen mit anderem zählte. Dass kein anderer Grund vor einen von diesen "
    "gehört, ist bewiesen.",
    no_order="Die Reihenfolge der Gründe: zuerst, was allein die Entscheidung hätte ändern können, die kleinste "
    "Änderung zuerst; dann, was nur zusammen mit anderem zählte. Dass dies die richtige Reihenfolge ist, ist nicht "
    "bewiesen.",
    no_reason="In der verfügbaren Zeit konnte kein Grund geklärt werden.",
    checked="Wo ein Grund sagt, was genügt hätte, wurden die geänderten Daten dem entscheidenden Modell selbst "
    "vorgelegt, und es hat so entschieden. Wo er sagt, dass nichts Kleineres genügt oder gar nichts, ist das bewiesen, "
    "für alle möglichen Angaben und nicht nur für ausprobierte. Ein Grund sagt, was gezählt hat; was Sie tun können, "
    "steht bei den Wegen zu einer anderen Entscheidung.",
    kept="Diese Wege halten ein: {}.",
    fill="auszufüllen: {}",
    words="Worte für diesen Grund; er betrifft {}",
    code="Schlüssel {}",
    feature="Angabe",
    value="Wert",
    model="Modell (sha256)",
    schema="Schema (sha256)",
    annex="Anlage (sha256)",
    certificate="Zertifikat (sha256)",
    traced="Zeichen wie [R1] nennen den Eintrag der Anlage, in dem die Frage, was bewiesen ist und die Zahlen des "
    "Satzes stehen.",
)
NOTICE_PHRASES = {"en": ENGLISH, "de": GERMAN}


def notice_phrases(language: str) -> NoticePhrases:
    """The words of a language."""
    return NOTICE_PHRASES[language_of(language).code]
