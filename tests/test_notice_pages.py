"""Notices: the page, the annex that every sentence on it is traced to, fields that are marked, templates in a sandbox."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, get_args

import pytest

from ifonly import Explainer, Integer, Limits, Network, Query, Real, Schema, certify
from ifonly.errors import IfonlyError, MissingExtra
from ifonly.model import network_model
from ifonly.notices import Letter, Notice, ReasonCodes, ReasonGroup, example_template, notice
from ifonly.notices.letter import FIELDS, FORMS, NoticeForm
from ifonly.notices.one_notice import annex_fingerprint
from ifonly.notices.word_document import word_document

FEATURES = [
    Integer("income", 0, 9000, step=1000, label="monthly income", unit="€"),
    Integer("debt", 0, 9),
    Integer("age", 18, 60),
    Integer("years", 0, 9, label="years <employed>"),
]
SCHEMA = Schema(FEATURES, rules=["debt <= years + 5", "age is fixed", "years only goes up"])
MODEL = network_model(Network.of([([[1e-3, -1.0, 0.0, 0.1]], [-2.5])]), SCHEMA, classes=("no", "yes"))
EXPLAINER = Explainer(MODEL)
ANN = {"income": 2000, "debt": 1, "age": 30, "years": 0}
CODES = ReasonCodes((
    ReasonGroup(code="1", text="Debt", features=("debt",)),
    ReasonGroup(code="2", text={"en": "Income & work", "de": "Einkommen"}, features=("income", "years")),
))  # fmt: skip
TOLD = notice(EXPLAINER, ANN, codes=CODES)


def at(data: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        data = data[int(part)] if isinstance(data, list) else data[part]
    return data


def shown_text(page: str) -> str:
    """What a reader sees of a page."""
    body = re.sub(r"<(style|title)>.*?</\1>", "", page, flags=re.S)
    return unescape(re.sub(r"<[^>]*>", " ", body))


def in_money() -> tuple[Explainer, dict[str, Any]]:
    """Payments are real numbers, and the most recent one is at most the highest: the nearest row has no whole cents."""
    features = [Real(name, 0, 5000, unit="$") for name in ("highest", "recent")] + [Integer("late", 0, 6)]
    schema = Schema(features, rules=["recent <= highest"])
    network = Network.of([([[0.0007, 0.0011, -1.0]], [-2.00000003])])
    return Explainer(network_model(network, schema, classes=("no", "yes"))), {"highest": 60, "recent": 40, "late": 1}


EXACT = notice(*in_money())


@pytest.mark.parametrize("form", get_args(NoticeForm))
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("made", [TOLD, EXACT], ids=["whole", "cents"])
def test_every_number_on_the_page_is_traced(form: NoticeForm, language: str, made: Notice) -> None:
    told = replace(made, letter=Letter(form=form, language=language))
    annex, page = json.loads(told.to_json()), told.to_html()
    text = " ".join(shown_text(page).split())
    for one in annex["statements"]:
        assert one["question"] and one["status"], one
        at(annex, one["evidence"])
        for number in one["numbers"]:
            assert at(annex, number["at"]) == number["value"]
            assert number["shown"] in one["text"], number
    for one in annex["data"]:
        assert annex["principal"]["sufficient"]["factual"][one["name"]] == one["value"]
    for known in (*(annex[name] for name in ("model", "schema")), annex_fingerprint(annex)):
        assert known in text
        text = text.replace(known, "")
    for one in sorted(annex["statements"], key=lambda one: -len(one["text"])):
        sentence = one["text"]
        assert sentence in text, one["mark"]
        text = text.replace(sentence, "")
        for number in sorted(one["numbers"], key=lambda number: -len(str(number["shown"]))):
            sentence = sentence.replace(number["shown"], "")
        assert not re.search(r"\d", sentence), sentence
    for one in annex["data"]:
        text = text.replace(f"{one['label']} {one['shown']}", "")
    text = re.sub(r"\[[DORSW0-9, ]+\]|(Code|Schlüssel) \d|sha256", "", text)
    assert not re.search(r"\d", text), text


@pytest.mark.parametrize("form", get_args(NoticeForm))
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_word_document_says_what_the_page_says(form: NoticeForm, language: str, tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    letter = Letter(form=form, language=language, fields={"creditor": "Bank & Co\n1 Main Street"})
    told = replace(TOLD, letter=letter)
    told.to_docx(tmp_path / "notice.docx")
    written = docx.Document(str(tmp_path / "notice.docx"))
    texts = [one.text for one in written.paragraphs]
    texts += [cell.text for table in written.tables for row in table.rows for cell in row.cells]
    numbered = re.sub(r"(^|\s)(\d\.|•)\t", " ", " ".join(texts))
    assert sorted(numbered.split()) == sorted(shown_text(told.to_html()).split())
    filled = [run for one in written.paragraphs for run in one.runs if run.font.highlight_color is not None]
    assert len(filled) == len(re.findall("<mark", told.to_html()))
    assert "Bank & Co\n1 Main Street" in texts or form in ("gdpr", "ai-act")


def test_other_html_keeps_its_words() -> None:
    docx = pytest.importorskip("docx")
    content = (
        "<ul><li>one<ol><li>two</li></ol></li></ul><table><tr><th>a</th><td>b</td></tr><tr><td>c</td></tr></table>"
    )
    content += "<blockquote>three <em>four</em></blockquote></p><p>five"
    written = docx.Document(io.BytesIO(word_document("A title", content)))
    assert [one.text for one in written.paragraphs] == ["•\tone", "1.\ttwo", "three four", "five"]
    assert [[cell.text for cell in row.cells] for row in written.tables[0].rows] == [["a", "b"], ["c", ""]]
    assert written.core_properties.title == "A title"


def test_amounts_are_told_in_cents_that_the_model_accepts() -> None:
    explainer, person = in_money()
    answers = {f"R{k}": one.answer for k, one in enumerate(EXACT.reasons.reasons, 1)}
    answers |= {f"W{k}": way for k, way in enumerate(EXACT.ways, 1)}
    assert {"W1"} < EXACT.cents.keys() and EXACT.proven
    for mark, changes in EXACT.cents.items():
        exact = {one.feature: one.after for one in answers[mark].changes}
        row = {**person, **{one.feature: one.after for one in changes}}
        assert explainer.model.decide(explainer.model.scores(explainer.schema.read(row)[None, :])).tolist() == [1]
        assert row["recent"] <= row["highest"], "rules between features hold for rounded amounts, too"
        for one in changes:
            assert one.after == round(one.after, 2) and 0.0 <= one.after - exact[one.feature] < 0.01, mark
        assert any(one.after != exact[one.feature] for one in changes)
    texts = {one.mark: one.text for one in EXACT.statements}
    assert not re.search(r"\$[\d,]+\.\d(\d\d)", " ".join(texts.values())), texts
    assert "rounded to whole cents" in EXACT.to_html() and "rounded to whole cents" not in TOLD.to_html()


def test_amounts_stay_exact_where_cents_are_no_answer() -> None:
    """The nearest amount is the largest that is allowed, so that the next whole cent is not."""
    explainer, person = in_money()
    (answer,) = notice(explainer, person, ways=1).ways
    limit = dict(answer.counterfactual)["recent"]
    query = Query(constraints=(f"recent <= {limit!r}", "late is fixed"))
    told = notice(explainer, person, query=query, ways=1)
    assert any(change.after != round(change.after, 2) for change in told.ways[0].changes)
    assert "W1" not in told.cents


def test_what_is_told_and_what_is_not() -> None:
    annex = TOLD.annex()
    marks = [one["mark"] for one in annex["statements"]]
    assert marks == ["D", "R1", "R2", "O", "S", "W1", "W2"] and TOLD.proven
    assert [(one["code"], one["text"]) for one in annex["reasons"]] == [("2", "Income & work"), ("1", "Debt")]
    assert annex["keeps"] == ["age is fixed", "years only goes up"], "rules between features are facts, not told"
    assert all(way.decision_after == "yes" for way in TOLD.ways)
    assert annex["model"] == MODEL.function.fingerprint and not re.search(r"20\d\d-\d\d", TOLD.to_json())
    assert json.loads(json.dumps(annex, allow_nan=False)) == annex
    page = TOLD.to_html()
    assert "Income &amp; work" in page and "<employed>" not in page


def test_a_reason_without_words_is_left_to_be_filled_in() -> None:
    page = notice(EXPLAINER, ANN, "gdpr").to_html()
    assert "[to be filled in: words for this reason, which is about monthly income]" in page


def test_fields_are_filled_in_or_marked() -> None:
    letter = Letter(form="c-4", fields={"creditor": "Bank <b>\nMain Street", "branch": "7"})
    assert "counteroffer" in letter.unfilled and "creditor" not in letter.unfilled
    page = replace(TOLD, letter=letter).to_html()
    assert "Bank &lt;b&gt;<br>Main Street" in page
    text = shown_text(page)
    for name in letter.unfilled:
        assert f"[to be filled in: {FIELDS[name].en}]" in text, name
    assert {one["name"]: one["value"] for one in replace(TOLD, letter=letter).annex()["fields"]}["branch"] == "7"


def test_forms_are_called_as_the_law_calls_them() -> None:
    assert Letter(form="C-1").form == "c-1"  # type: ignore[arg-type]
    assert example_template("C-1", "en") == example_template("c-1", "en")


@pytest.mark.parametrize("form", get_args(NoticeForm))
@pytest.mark.parametrize("language", ["en", "de"])
def test_the_examples_have_all_fields_of_their_form(form: str, language: str) -> None:
    used = re.findall(r'field\("(\w+)"\)', example_template(form, language))
    assert sorted(used) == sorted(FORMS[form].fields)


def test_a_limit_is_told() -> None:
    network = Network.of([([[1e-3, -1.0, 0.0, 0.1]], [-2.6])])
    asked_first = Explainer(network_model(network, SCHEMA, classes=("no", "yes")))  # the limit ends its preparation
    told = notice(asked_first.using(limits=Limits(seconds=1e-9)), ANN, codes=CODES)
    assert not told.proven
    assert "No reason could be found out" in told.to_html()


def test_no_way_is_told_with_its_proof() -> None:
    told = notice(EXPLAINER, ANN, codes=CODES, query=Query(constraints=("income is fixed", "years is fixed")))
    assert [way.status for way in told.ways] == ["none exists"]
    assert "No allowed change turns the decision into yes." in told.to_html()


def test_a_certificate_is_checked() -> None:
    explainer = Explainer(replace(MODEL, schema=Schema(FEATURES)))
    certificate = certify(explainer, ANN)
    told = notice(explainer, ANN).with_certificate(certificate)
    assert told.certificate is not None and told.certificate["sha256"] in told.to_html()
    other = notice(explainer, {**ANN, "age": 31})
    with pytest.raises(IfonlyError, match="about another row"):
        other.with_certificate(certificate)
    with pytest.raises(IfonlyError, match="The certificate is INVALID"):
        told.with_certificate(
            replace(certificate, data={**certificate.data, "claim": {"lower": "0x1p+3", "upper": None}})
        )


def templated(tmp_path: Path, text: str) -> Notice:
    path = tmp_path / "own.html"
    path.write_text(text, encoding="utf-8")
    return replace(TOLD, letter=Letter(template=path, fields={"creditor": "<script>alert(1)</script>"}))


def test_own_templates(tmp_path: Path) -> None:
    told = templated(
        tmp_path,
        "<h1>{{ title }}</h1>{% for one in notice.reasons %}<p>{{ loop.index }} {{ one.text }}</p>{% endfor %}"
        "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{{ twice('ab') }} {{ field('creditor') }} {{ field('branch') }}",
    )
    page = told.to_html()
    assert "<p>1 Income &amp; work</p><p>2 Debt</p>" in page and "abab" in page
    assert "&lt;script&gt;" in page and "<script" not in page
    assert "[to be filled in: branch]" in page and "Content-Security-Policy" in page


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\n{{ nobody }}", r"own.html', line 2: 'nobody' is undefined"),
        ("{{ title", "line 1: unexpected end of template"),
        ("{{ ''.__class__.__mro__ }}", "unsafe|undefined"),
        ("{{ field.__globals__ }}", "unsafe|undefined"),
        ("{{ notice.update({'model': 'x'}) }}", "unsafe|undefined"),
        ("{{ 'x'.ljust(9999) }}", "not safely callable"),
        ("{{ notice.reasons }}", "a gap prints a text"),
        ("{{ notice.reasons|upper }}", "a gap prints a text"),
        ("{{ 'a' + 'b' }}", r"may not use \+"),
        ("a\n{{ 'a' ~ 'b' }}", "line 2: write texts one after the other"),
        ("{{ ('x' * 10) * 10 }}", r"may not use \*"),
        ("{{ 9 ** 9 }}", r"may not use \*\*"),
        ("{{ '%99d' % 1 }}", "may not use %"),
        ("{{ 'x'|center(99) }}", "No filter named 'center'"),
        ("{% include 'c-1.en.html' %}", "no loader"),
        ("{% for x in range(9) %}{% endfor %}", "'range' is undefined"),
        ("{{ field(3) }}", "a field has a name"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("<html><body></body></html>", "content of a page, without"),
        ("{{ notice.fields[0].value|safe }}", "No filter named 'safe'"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
    ],
)  # fmt: skip
def test_templates_can_do_little(tmp_path: Path, template: str, message: str) -> None:
    with pytest.raises(IfonlyError, match=message):
        templated(tmp_path, template).to_html()


@pytest.mark.parametrize(
    "step",
    ["{% set x %}{{ x }}{{ x }}{% endset %}", "{% set x = [x, x]|join %}", "{% set x = twice(x) %}"],
)  # fmt: skip
def test_a_short_template_cannot_fill_the_memory(tmp_path: Path, step: str) -> None:
    twice = "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}"
    with pytest.raises(IfonlyError, match="a page of more than"):
        templated(tmp_path, twice + "{% set x = 'x' %}" + step * 60 + "{{ x }}").to_html()
    with pytest.raises(IfonlyError, match="prints a text"):
        templated(tmp_path, "{% set x = 'x' %}" + "{% set x = [x, x] %}" * 60 + "{{ x }}").to_html()


def test_without_jinja_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import ifonly.notices.sandbox as sandbox

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(sandbox, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'ifonly\[notice\]'"):
        TOLD.to_html()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"letter": "c-2"}, "The forms of a notice are c-1, c-4, gdpr, ai-act"),
        ({"letter": 3}, "Give the form of a notice"),
        ({"ways": 0}, "whole number from 1 to 20"),
        ({"query": Query(target="no")}, "decided as asked already"),
        ({"codes": []}, "ReasonCodes.load"),
    ],
)
def test_wrong_questions(given: dict[str, Any], message: str) -> None:
    with pytest.raises(IfonlyError, match=message):
        notice(EXPLAINER, ANN, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"language": "fr"}, "There are words in en, de"),
        ({"fields": [1]}, "Fields of a notice are a dict"),
        ({"fields": {"a b": "x"}}, "A field has a name"),
        ({"fields": {"a": "x" * 2001}}, "at most 2000 characters"),
        ({"subject": 3}, "'subject' is a text"),
    ],
)
def test_wrong_letters(given: dict[str, Any], message: str) -> None:
    with pytest.raises(IfonlyError, match=message):
        Letter(**given)


def test_wrong_template_files(tmp_path: Path) -> None:
    for name, content, message in (
        ("gone.html", None, "Cannot read the template"),
        ("large.html", b"x" * (2**18 + 1), "larger than the 256 KiB"),
        ("latin.html", "ä".encode("latin-1"), "not UTF-8"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(IfonlyError, match=message):
            replace(TOLD, letter=Letter(template=path)).to_html()
