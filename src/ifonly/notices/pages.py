"""Pages of notices: an annex, put into a template (Jinja) in the decision maker's words.

A template is the content of the page, without <html> and <head>; it is text with gaps:

    {{ title }}  {{ decision }}  {{ reasons }}  {{ ways }}  {{ decides }}  {{ proven }}  {{ data }}  {{ fingerprints }}
    {{ field("creditor") }}      what was filled in, or a mark that it is to be
    {{ reference }}              kept columns, such as the customer's number; nothing where there are none
    {{ notice.reasons }} ...     the annex itself, for a layout of one's own

A template runs in a sandbox (`sandbox`); the page that it becomes has no script and loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ifonly.errors import MissingExtra, QuestionError
from ifonly.html.fragments import document, facts, paragraph, style, table, words
from ifonly.notices.letter import MOST_VALUE, Letter, field_words
from ifonly.notices.one_notice import annex_fingerprint, unnamed_reason
from ifonly.notices.phrases import NoticePhrases, notice_phrases
from ifonly.notices.sandbox import MOST_PAGE, compiled_template
from ifonly.notices.word_document import word_document
from ifonly.printing import lines, shown
from ifonly.results.rule_language import Naming, rules_in

MOST_PEOPLE = 5000
"""On one page for printing."""
SHEET = "notice.css"
_WHOLE = re.compile(r"<\s*/?\s*(?:html|head|body|script|iframe|object|embed|base|meta|link)\b|<!doctype", re.IGNORECASE)


class NoticePages:
    """The pages of one letter; its template is read and checked once."""

    def __init__(self, source: str, name: str, title: str, language: str) -> None:
        self.name, self.title, self.language = name, title, language
        self.template = self._guarded(lambda: compiled_template(source))

    @classmethod
    def of(cls, letter: Letter) -> NoticePages:
        """Of the letter's own template, or the example for its form and language."""
        own = letter.template_text()
        name = f"{letter.form}.{letter.language}.html" if own is None else str(letter.template)
        source = example_template(letter.form, letter.language) if own is None else own
        return cls(source, name, letter.title, letter.language)

    def page(self, annex: Mapping[str, Any]) -> str:
        """The page of one person."""
        return self.printout([annex])

    def word(self, annex: Mapping[str, Any]) -> bytes:
        """The same content as a Word document."""
        return word_document(self.title, self.body(annex))

    def printout(self, annexes: Sequence[Mapping[str, Any]]) -> str:
        """One page of several people, each on sheets of their own."""
        bodies = [f'<article class="ifonly-notice">\n{self.body(annex)}\n</article>' for annex in annexes]
        look = f"<style>\n{style(SHEET)}</style>"
        return document(self.title, look, *bodies, language=self.language, headed=False)

    def body(self, annex: Mapping[str, Any]) -> str:
        """The content of a page."""
        text = self._guarded(lambda: self._filled(annex))
        if found := _WHOLE.search(text):
            raise QuestionError(
                f"The template '{self.name}' has {shown(found.group())}: a template is the content of a page, without "
                f"<html>, <head>, <body>, scripts and what is loaded from elsewhere."
            )
        return text

    def _filled(self, annex: Mapping[str, Any]) -> str:
        parts, length = [], 0
        for part in self.template.generate({"title": self.title, **_blocks(annex)}):
            parts.append(part)
            length += len(part)
            if length > MOST_PAGE:
                raise QuestionError(f"it makes a page of more than {MOST_PAGE:,} characters")
        return "".join(parts)

    def _guarded(self, make: Callable[[], Any]) -> Any:
        """What a template makes, or a sentence about what is wrong with it."""
        try:
            return make()
        except MissingExtra:
            raise
        except Exception as error:  # whatever a template does
            line = getattr(error, "lineno", None) or _line(error)
            where = f", line {line}" if line else ""
            what = str(getattr(error, "message", None) or error) or type(error).__name__
            raise QuestionError(f"The template '{self.name}'{where}: {lines(what, 500).rstrip('.')}.") from None


def example_template(form: str, language: str) -> str:
    """A template that is shipped: an example to start from, and no legal advice."""
    letter = Letter(form=form, language=language)  # type: ignore[arg-type]  # it says which there are
    return (Path(__file__).parent / "templates" / f"{letter.form}.{language}.html").read_text(encoding="utf-8")


def _line(error: Exception) -> int | None:
    """The line of the template that an error comes from."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


# ---------------------------------------------------------------------- what a template is given


def _blocks(annex: Mapping[str, Any]) -> dict[str, Any]:
    """The gaps of a template, filled from an annex: HTML that is escaped already, and the annex itself."""
    language = annex["language"]
    say, statements = notice_phrases(language), {one["mark"]: one for one in annex["statements"]}
    ways = [one for mark, one in statements.items() if mark.startswith("W")]
    labels = {one["name"]: (one["label"], "") for one in annex["data"]}
    own = annex["principal"]["sufficient"].get("translations", {})
    keeps = rules_in(annex["keeps"], Naming(language, labels, own))
    kept = paragraph(say.kept.format("; ".join(keeps)), "soft") if keeps else ""
    data = [(one["label"], one["shown"]) for one in annex["data"]]
    blocks = {
        "decision": f"<p>{_marked(statements['D'])}</p>",
        "reasons": _reasons(annex, statements, say, language),
        "decides": f"<p>{_marked(statements['S'])}</p>",
        "ways": f'<ol class="ifonly-ways">{"".join(f"<li>{_marked(one)}</li>" for one in ways)}</ol>{kept}',
        "proven": f"<ul>{''.join(f'<li>{_marked(one)}</li>' for one in annex['proven'])}</ul>",
        "data": table((say.feature, say.value), data),
        "fingerprints": _fingerprints(annex, say),
    }
    markup = import_module("markupsafe").Markup
    filled = {one["name"]: one["value"] for one in annex["fields"]}
    blocks["reference"] = f"<p>{_lines(filled['reference'])}</p>" if filled.get("reference") else ""

    def field(name: Any) -> Any:
        """What was filled in, or the mark of a field that was not."""
        if not isinstance(name, str) or not name.isidentifier():
            raise QuestionError(f"a field has a name such as 'creditor'; got {shown(name)}")
        value = filled.get(name)
        return markup(_to_fill(field_words(name, language), say) if not value else _lines(value))

    field.of_the_page = True  # type: ignore[attr-defined]
    return {**{name: markup(block) for name, block in blocks.items()}, "field": field, "notice": annex}


def _marked(statement: Mapping[str, Any]) -> str:
    """A sentence with its mark, or the marks of those that it is about."""
    marks = ", ".join(statement.get("about") or [statement["mark"]])
    return f'{words(statement["text"])} <span class="ifonly-mark-of">[{words(marks)}]</span>'


def _reasons(annex: Mapping[str, Any], statements: Mapping[str, Any], say: NoticePhrases, language: str) -> str:
    if not annex["reasons"]:
        return paragraph(say.no_reason)
    listed = []
    for one in annex["reasons"]:
        text = words(one["text"]) if one["text"] else _to_fill(unnamed_reason(one, language), say)
        code = f' <span class="ifonly-code">{words(say.code.format(one["code"]))}</span>' if one["code"] else ""
        listed.append(f"<li><b>{text}</b>{code}<br>{_marked(statements[one['mark']])}</li>")
    return f'<ol class="ifonly-reasons">{"".join(listed)}</ol><p class="ifonly-soft">{_marked(statements["O"])}</p>'


def _to_fill(what: str, say: NoticePhrases) -> str:
    return f'<mark class="ifonly-fill">[{words(say.fill.format(what))}]</mark>'


def _lines(value: str) -> str:
    """What was filled in, line by line."""
    return "<br>".join(map(words, value[:MOST_VALUE].split("\n")))


def _fingerprints(annex: Mapping[str, Any], say: NoticePhrases) -> str:
    pairs = [(say.model, annex["model"]), (say.schema, annex["schema"])]
    if annex["certificate"] is not None:
        pairs.append((say.certificate, annex["certificate"]["sha256"]))
    pairs.append((say.annex, annex_fingerprint(dict(annex))))
    return f'<div class="ifonly-marks">{facts(pairs)}{paragraph(say.traced, "soft")}</div>'
