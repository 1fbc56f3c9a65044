"""The notice that is handed to a person: principal reasons, ways to another decision, what is proven, and the annex.

    row -> principal reasons, ways -> statements -> annex (plain data) -> page

The page is made from the annex alone, so nothing stands on it that the annex does not have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ifonly.certificate.check import check
from ifonly.certificate.format import Certificate
from ifonly.certifying import certified_query
from ifonly.errors import QuestionError
from ifonly.explainer import Explainer
from ifonly.notices.letter import FORMS, Letter, field_words
from ifonly.notices.phrases import notice_phrases
from ifonly.notices.principal import PrincipalReasons, checked_codes, facts_only, group_query, reasons_by
from ifonly.notices.reason_codes import ReasonCodes
from ifonly.notices.statements import NoticeStatement, proven_sentences, statements
from ifonly.notices.whole_cents import in_cents
from ifonly.printing import json_text, json_value, shown
from ifonly.problem.query import Query, query_of
from ifonly.results import Answer, Change
from ifonly.results.amounts import amount
from ifonly.results.answer import kept_text
from ifonly.results.localised import localised, naming
from ifonly.schema import write_whole
from ifonly.schema.io import schema_fingerprint
from ifonly.schema.values import plain

FORMAT, VERSION = "ifonly-notice", 2
WAYS = 2
"""Ways to another decision, unless told otherwise."""
MOST_WAYS = 20
CERTIFICATE_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Notice:
    """What is told to one person, with its proof. `ways`: the nearest allowed changes, each different from the earlier
    ones; or the one answer that there is none. `annex` is all of it as plain data, `to_html` the page."""

    letter: Letter
    reasons: PrincipalReasons
    ways: tuple[Answer, ...]
    schema: str
    """The fingerprint of the schema; that of the model is in the reasons."""
    certificate: dict[str, Any] | None = None
    """Of a certificate of the first way: its fingerprint and what a check of it says."""
    cents: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    """By mark (R1, W1): the changes with amounts in whole cents, where those of the answer are not (`whole_cents`)."""

    @property
    def statements(self) -> tuple[NoticeStatement, ...]:
        return statements(self.reasons, self.ways, self.letter, self.cents)

    @property
    def proven(self) -> bool:
        """Is everything on the page proven: the order, every reason, what decides alone, every way?"""
        return (
            self.reasons.ranked and self.reasons.why.status == "smallest" and all(way.stop is None for way in self.ways)
        )

    def annex(self) -> dict[str, Any]:
        """Plain data, ready for JSON: every statement with its question, status and bound, and what these rest on."""
        letter, principal = self.letter, self.reasons
        named = naming(principal.why, letter.language)
        names = dict.fromkeys((*FORMS[letter.form].fields, *letter.fields))
        fields = [
            {"name": name, "label": field_words(name, letter.language), "value": letter.fields.get(name) or None}
            for name in names
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "ifonly": import_module("ifonly").__version__,
            "form": letter.form,
            "language": letter.language,
            "model": principal.model,
            "schema": self.schema,
            "certificate": self.certificate,
            "fields": fields,
            "statements": [one.to_dict() for one in self.statements],
            "proven": proven_sentences(principal, self.ways, letter, self.cents),
            "reasons": [
                {"mark": f"R{k}", "code": one.group.code, "text": one.group.words(letter.language),
                 "about": [named.label(name) for name in one.group.features]}
                for k, one in enumerate(principal.reasons, 1)
            ],
            "data": self._data(),
            "keeps": [rule for rule in self.ways[0].constraints if rule not in principal.why.facts],
            "principal": principal.to_dict(),
            "ways": [way.to_dict() for way in self.ways],
            "cents": {mark: [change.to_dict() for change in changes] for mark, changes in self.cents.items()},
        }  # fmt: skip

    def to_json(self, path: str | Path | None = None) -> str:
        """The annex as JSON; written to `path` if one is given."""
        return kept_text(annex_text(self.annex()), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page, by the letter's template; written to `path` if one is given. Needs the extra `notice`."""
        from ifonly.notices.pages import NoticePages

        return kept_text(NoticePages.of(self.letter).page(self.annex()), path)

    def to_docx(self, path: str | Path | None = None) -> bytes:
        """The same as a Word document; written to `path` if one is given. Needs the extra `docx`."""
        from ifonly.notices.pages import NoticePages

        content = NoticePages.of(self.letter).word(self.annex())
        if path is not None:
            write_whole(path, content)
        return content

    def with_certificate(self, certificate: Certificate | str | Path) -> Notice:
        """The notice, with the fingerprint of a certificate of its first way, which is checked: it must be about this
        model and this row, and valid."""
        certificate = certificate if isinstance(certificate, Certificate) else Certificate.load(certificate)
        checked = check(certificate, seconds=CERTIFICATE_SECONDS)
        if not checked.valid:
            raise QuestionError(f"The certificate is {checked.verdict}: {checked.failure or checked.statement[:200]}")
        _, row = certified_query(certificate)
        if checked.network != self.reasons.model or row != dict(self.reasons.why.factual):
            what = "model" if checked.network != self.reasons.model else "row"
            raise QuestionError(f"The certificate is about another {what} than the notice; make one for this {what}.")
        stamp = str(certificate.data["sha256"])
        marks = {"sha256": stamp, "verdict": checked.verdict, "lower_bound": json_value(checked.lower)}
        return replace(self, certificate=marks)

    def _data(self) -> list[dict[str, Any]]:
        """The data that the decision was made on, as they are shown."""
        why, own = self.reasons.why, localised(self.reasons.why, self.letter.language)
        return [
            {"name": name, "label": own.label(name), "value": value,
             "shown": amount(own.factual[name], own.unit(name), self.letter.language)}
            for name, value in why.factual.items()
        ]  # fmt: skip


def notice(
    explainer: Explainer,
    row: Any,
    letter: Letter | str = "c-1",
    *,
    codes: ReasonCodes | None = None,
    query: Query | None = None,
    ways: int = WAYS,
) -> Notice:
    """The notice for a row that is not decided as the query asks (by default: the other of two classes).

    `letter` is a form, or a `Letter`, which also has the language, the fields and the template. The ways keep to the
    constraints of the schema, the explainer and the query; reasons are about the decision and do not. Limits are those
    of the explainer, for each search.
    """
    request = NoticeRequest(explainer=explainer, letter=letter, codes=codes, query=query, ways=ways)
    return request.notice(row)


@dataclass(frozen=True, kw_only=True)
class NoticeRequest:
    """What the notices of many people have in common; the parts are those of `notice`."""

    explainer: Explainer
    letter: Letter | str = "c-1"
    codes: ReasonCodes | None = None
    query: Query | None = None
    ways: int = WAYS
    alone: Explainer = field(init=False, repr=False)
    """The explainer that reasons are found with."""

    def __post_init__(self) -> None:
        if not isinstance(self.explainer, Explainer):
            raise QuestionError(f"A notice is made with an Explainer(model); got {shown(self.explainer)}.")
        object.__setattr__(self, "letter", checked_letter(self.letter))
        object.__setattr__(self, "codes", checked_codes(self.codes))
        object.__setattr__(self, "query", query_of(self.query))
        object.__setattr__(self, "ways", checked_ways(self.ways))
        object.__setattr__(self, "alone", facts_only(self.explainer))

    def notice(self, row: Any, fields: Mapping[str, str] | None = None) -> Notice:
        """The notice of one person; `fields` are filled in for this person only."""
        letter, query = checked_letter(self.letter), query_of(self.query)
        principal = reasons_by(self.alone, row, self.codes, query.target)
        ways = _ways(self.explainer, row, query, self.ways)
        return Notice(
            letter=replace(letter, fields={**letter.fields, **fields}) if fields else letter,
            reasons=principal,
            ways=ways,
            schema=schema_fingerprint(self.explainer.schema),
            cents=self._cents(principal, ways),
        )

    def _cents(self, principal: PrincipalReasons, ways: tuple[Answer, ...]) -> dict[str, tuple[Change, ...]]:
        """By mark: the changes in whole cents."""
        query = query_of(self.query)
        alone = [(f"R{k}", self.alone, one.answer, group_query(self.alone, one.group, principal.why, query.target))
                 for k, one in enumerate(principal.reasons, 1)]  # fmt: skip
        every = [*alone, *((f"W{k}", self.explainer, way, query) for k, way in enumerate(ways, 1))]
        found = {mark: in_cents(explainer, answer, asked) for mark, explainer, answer, asked in every}
        return {mark: changes for mark, changes in found.items() if changes is not None}


def checked_letter(letter: Any) -> Letter:
    """A letter, from one or from the name of a form."""
    if isinstance(letter, str):
        return Letter(form=letter)  # type: ignore[arg-type]  # the letter says which there are
    if not isinstance(letter, Letter):
        raise QuestionError(f"Give the form of a notice, such as 'c-1', or a Letter(form=...); got {shown(letter)}.")
    return letter


def checked_ways(ways: Any) -> int:
    number = plain(ways)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_WAYS:
        raise QuestionError(f"The ways of a notice are a whole number from 1 to {MOST_WAYS}; it is {shown(ways)}.")
    return number


def _ways(explainer: Explainer, row: Any, query: Query, several: int) -> tuple[Answer, ...]:
    """With the fewest changes first there is one way: sets of answers know no such order."""
    if several > 1 and not query.fewest_first and (found := tuple(explainer.explain_diverse(row, several, query))):
        return found
    return (explainer.explain(row, query),)


def annex_text(annex: dict[str, Any]) -> str:
    """An annex as it is written, which its fingerprint is of."""
    return json_text(annex, indent=1) + "\n"


def annex_fingerprint(annex: dict[str, Any]) -> str:
    return hashlib.sha256(annex_text(annex).encode("utf-8")).hexdigest()


def unnamed_reason(reason: dict[str, Any], language: str) -> str:
    """What is to be filled in for a reason without words."""
    return notice_phrases(language).words.format(", ".join(reason["about"]))
