"""What a notice says, in English and German: sentences with gaps, about reasons, their order and their proof."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.results.languages import language_of


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
    decides: str
    decides_open: str
    way: str
    way_open: str
    no_way: str
    way_unknown: str
    """What is proven of the reasons, of the data that decide alone, and of a way."""
    cents: str
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
    checked="The reasons: where one says what would have been enough, the changed data were given to the deciding "
    "model, and it decided so. Where it says that no smaller change is enough, or no change at all, this is proven for "
    "all possible data, not only for some that were tried. A reason says what counted. What could be done about it is "
    "said under the ways to another decision.",
    decides="The data that decide alone: it is proven, for all possible data and not only for some that were tried, "
    "that the deciding model never decides otherwise while these values stay as they are.",
    decides_open="The data that decide alone: nothing is proven of a part of the data, only of all of them together.",
    way="The ways: the changed data were given to the deciding model, and it decided so. It is proven that no smaller "
    "allowed change is enough.",
    way_open="The ways: the changed data were given to the deciding model, and it decided so. That no smaller allowed "
    "change is enough is not proven.",
    no_way="That there is no way is proven for all allowed changes, not only for some that were tried.",
    way_unknown="The ways: no way was found in the time there was. That there is none is not proven.",
    cents="Amounts of money are rounded to whole cents. The deciding model was given the rounded amounts, too, and "
    "decided so. The exact amounts, each less than a cent away, are in the annex.",
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
    traced="The annex is a file that belongs to this notice. A mark such as [R1] names the entry of the annex that has "
    "the proof and the numbers of the sentence before it. The long numbers above identify the model, the list of data "
    "that it takes, and the annex.",
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
    checked="Die Gründe: Wo einer sagt, was genügt hätte, wurden die geänderten Daten dem entscheidenden Modell "
    "vorgelegt, und es hat so entschieden. Wo er sagt, dass keine kleinere oder gar keine Änderung genügt, ist das für "
    "alle möglichen Angaben bewiesen und nicht nur für einige ausprobierte. Ein Grund sagt, was gezählt hat. Was sich "
    "daran ändern lässt, steht bei den Wegen zu einer anderen Entscheidung.",
    decides="Die Angaben, die allein entscheiden: Es ist für alle möglichen Angaben bewiesen und nicht nur für einige "
    "ausprobierte, dass das entscheidende Modell nie anders entscheidet, solange diese Werte so bleiben.",
    decides_open="Die Angaben, die allein entscheiden: Bewiesen ist nichts über einen Teil der Angaben, nur über alle "
    "zusammen.",
    way="Die Wege: Die geänderten Daten wurden dem entscheidenden Modell vorgelegt, und es hat so entschieden. Es ist "
    "bewiesen, dass keine kleinere erlaubte Änderung genügt.",
    way_open="Die Wege: Die geänderten Daten wurden dem entscheidenden Modell vorgelegt, und es hat so entschieden. "
    "Dass keine kleinere erlaubte Änderung genügt, ist nicht bewiesen.",
    no_way="Dass es keinen Weg gibt, ist für alle erlaubten Änderungen bewiesen und nicht nur für einige ausprobierte.",
    way_unknown="Die Wege: In der verfügbaren Zeit wurde kein Weg gefunden. Dass es keinen gibt, ist nicht bewiesen.",
    cents="Geldbeträge sind auf ganze Cent gerundet. Auch die gerundeten Beträge wurden dem entscheidenden Modell "
    "vorgelegt, und es hat so entschieden. Die genauen Beträge, jeder weniger als einen Cent entfernt, stehen in der "
    "Anlage.",
    kept="Diese Wege halten folgende Bedingungen ein: {}.",
    fill="auszufüllen: {}",
    words="Wortlaut dieses Grundes; er betrifft {}",
    code="Schlüssel {}",
    feature="Angabe",
    value="Wert",
    model="Modell (sha256)",
    schema="Schema (sha256)",
    annex="Anlage (sha256)",
    certificate="Zertifikat (sha256)",
    traced="Die Anlage ist eine Datei, die zu dieser Mitteilung gehört. Ein Zeichen wie [R1] nennt den Eintrag der "
    "Anlage, in dem der Beweis und die Zahlen des Satzes davor stehen. Die langen Nummern oben kennzeichnen das "
    "Modell, das Verzeichnis der Angaben, die es braucht, und die Anlage.",
)
NOTICE_PHRASES = {"en": ENGLISH, "de": GERMAN}


def notice_phrases(language: str) -> NoticePhrases:
    """The words of a language."""
    return NOTICE_PHRASES[language_of(language).code]
