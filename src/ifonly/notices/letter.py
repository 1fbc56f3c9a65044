"""The letter: which form a notice has, its language, what the decision maker has filled in, and their own template.

    c-1      notice of action taken and statement of reasons (sample form C-1 of US Regulation B)
    c-4      the same with a counteroffer (sample form C-4)
    gdpr     information about an automated decision (GDPR, articles 15 and 22)
    ai-act   explanation of an individual decision (EU AI Act, article 86)

What a form asks for and the library cannot know is a field. One that is not filled in is marked on the page, and never
made up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ifonly.errors import FileError, QuestionError
from ifonly.files import file_errors
from ifonly.printing import shown
from ifonly.results.languages import language_of
from ifonly.schema.arguments import path_of

NoticeForm: TypeAlias = Literal["c-1", "c-4", "gdpr", "ai-act"]
MOST_VALUE = 2000
"""Characters of a field."""
MOST_FIELDS = 200
MOST_TEMPLATE = 2**18
"""Bytes of a template."""


class FormField(NamedTuple):
    """What is to be filled in, in words, by language."""

    en: str
    de: str


FIELDS = {
    "creditor": FormField("name and address of the creditor", "Name und Anschrift des Kreditgebers"),
    "applicant": FormField("name and address of the applicant", "Name und Anschrift der antragstellenden Person"),
    "date": FormField("date", "Datum"),
    "reference": FormField("reference, such as the customer's number", "Zeichen, etwa die Kundennummer"),
    "account": FormField(
        "description of the account, transaction or credit that was asked for",
        "Beschreibung des Kontos, Geschäfts oder beantragten Kredits",
    ),
    "action": FormField("description of the action taken", "Beschreibung der Entscheidung"),
    "counteroffer": FormField("terms of what is offered instead", "Bedingungen des Gegenangebots"),
    "counteroffer_until": FormField(
        "how and until when the offer can be accepted", "wie und bis wann das Angebot angenommen werden kann"
    ),
    "outside_information": FormField(
        "information from outside sources that was used, such as a consumer report or a credit score, with what the "
        "law asks to say of it; or that there was none",
        "Auskünfte Dritter, die verwendet wurden (etwa Auskunftei, Bonitätswert), mit den vorgeschriebenen Angaben; "
        "oder dass es keine gab",
    ),
    "equal_credit_notice": FormField(
        "the notice on equal credit opportunity, with the agency that supervises the creditor",
        "der vorgeschriebene Hinweis auf gleiche Kreditchancen, mit der Aufsichtsbehörde",
    ),
    "contact": FormField("whom to ask", "Ansprechpartner"),
    "controller": FormField("name and address of the controller", "Name und Anschrift des Verantwortlichen"),
    "person": FormField("name and address of the person", "Name und Anschrift der betroffenen Person"),
    "purpose": FormField("what the data were processed for", "Zweck der Verarbeitung"),
    "consequences": FormField(
        "significance and envisaged consequences of the decision", "Tragweite und angestrebte Auswirkungen"
    ),
    "human_review": FormField(
        "how to have a person look at it, to state one's view and to contest the decision",
        "wie man das Eingreifen einer Person erwirkt, den eigenen Standpunkt darlegt und die Entscheidung anficht",
    ),
    "authority": FormField("the supervisory authority", "die Aufsichtsbehörde"),
    "deployer": FormField("name and address of the deployer", "Name und Anschrift des Betreibers"),
    "system": FormField("name of the AI system", "Bezeichnung des KI-Systems"),
    "role": FormField(
        "the role of the AI system in the decision, and what people decided",
        "die Rolle des KI-Systems bei der Entscheidung, und was Menschen entschieden haben",
    ),
}


class FormOutline(NamedTuple):
    """The title of a form, by language, and its fields."""

    en: str
    de: str
    fields: tuple[str, ...]


_LENDER = ("creditor", "applicant", "date", "account", "action")
FORMS: dict[str, FormOutline] = {
    "c-1": FormOutline(
        "Notice of action taken and statement of reasons",
        "Mitteilung der Entscheidung und ihrer Gründe",
        (*_LENDER, "outside_information", "equal_credit_notice", "contact"),
    ),
    "c-4": FormOutline(
        "Notice of action taken, statement of reasons and counteroffer",
        "Mitteilung der Entscheidung, ihrer Gründe und eines Gegenangebots",
        (*_LENDER, "counteroffer", "counteroffer_until", "outside_information", "equal_credit_notice", "contact"),
    ),
    "gdpr": FormOutline(
        "Information about an automated decision",
        "Auskunft über eine automatisierte Entscheidung",
        ("controller", "person", "date", "purpose", "consequences", "human_review", "authority", "contact"),
    ),
    "ai-act": FormOutline(
        "Explanation of an individual decision",
        "Erläuterung einer Entscheidung im Einzelfall",
        ("deployer", "person", "date", "system", "role", "human_review", "contact"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Letter:
    """How a notice is worded. `fields`: what is filled in, by name. `template`: the file of a template of your own
    (Jinja); by default an example that is shipped. `subject`: what is decided, such as "the application".
    """

    form: NoticeForm = "c-1"
    language: str = "en"
    fields: Mapping[str, str] = field(default_factory=dict)
    template: str | Path | None = None
    subject: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.form, str):
            object.__setattr__(self, "form", self.form.lower())
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise QuestionError(f"The forms of a notice are {', '.join(get_args(NoticeForm))}; got {shown(self.form)}.")
        language_of(self.language)
        if not isinstance(self.subject, str):
            raise QuestionError(f"'subject' is a text such as \"the application\"; got {shown(self.subject)}.")
        object.__setattr__(self, "fields", checked_fields(self.fields))
        if self.template is not None:
            object.__setattr__(self, "template", path_of(self.template))

    @property
    def title(self) -> str:
        return str(getattr(FORMS[self.form], self.language))

    @property
    def unfilled(self) -> tuple[str, ...]:
        """The fields of the form that nobody has filled in."""
        return tuple(name for name in FORMS[self.form].fields if not self.fields.get(name))

    def template_text(self) -> str | None:
        """The text of the own template; None where there is none."""
        if self.template is None:
            return None
        path = path_of(self.template)
        with file_errors(f"read the template '{path}'"), path.open("rb") as file:
            content = file.read(MOST_TEMPLATE + 1)
        if len(content) > MOST_TEMPLATE:
            raise FileError(f"'{path}' is larger than the {MOST_TEMPLATE >> 10} KiB that a template may have.")
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            raise FileError(f"The template '{path}' is not UTF-8 text.") from None


def field_words(name: str, language: str) -> str:
    """What a field asks for; one that no form has is called by its name."""
    return str(getattr(FIELDS[name], language)) if name in FIELDS else name


GAP = re.compile(r"\{([^{}]+)\}")
"""In a field: the value of a column, for each person."""


def kept_fields(row: Mapping[str, Any], kept: Sequence[str], stated: Mapping[str, str] | None = None) -> dict[str, str]:
    """The fields that kept columns of a table fill in: those that are called as one, and gaps in the fields that are
    stated, such as "{Name}"; the others are `reference`."""
    values = {name: "" if row.get(name) is None else str(row[name]) for name in kept}
    fields, used = {name: value for name, value in values.items() if value and name in FIELDS}, set(FIELDS)
    for name, text in (stated or {}).items():
        gaps = {gap for gap in GAP.findall(text) if gap in values}
        if gaps:
            fields[name] = GAP.sub(lambda gap: values.get(gap[1], gap[0]), text)[:MOST_VALUE]
            used |= gaps
    others = [f"{name}: {value}" for name, value in values.items() if value and name not in used]
    if others and "reference" not in fields:
        fields["reference"] = "\n".join(others)[:MOST_VALUE]
    return fields


def checked_fields(given: Any) -> dict[str, str]:
    """Texts by the names of fields."""
    if not isinstance(given, Mapping) or len(given) > MOST_FIELDS:
        raise QuestionError(f"Fields of a notice are a dict such as {{'creditor': 'Bank'}}; got {shown(given)}.")
    for name, value in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise QuestionError(f"A field has a name such as 'creditor' (letters, digits, _); got {shown(name)}.")
        if not isinstance(value, str) or len(value) > MOST_VALUE:
            raise QuestionError(f"The field '{name}' is a text of at most {MOST_VALUE} characters; got {shown(value)}.")
    return dict(given)
