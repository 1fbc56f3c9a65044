"""Answers as pages and in notebooks: words of people, escaped; no script, nothing loaded; nothing claimed that is not proven."""

import re
from html.parser import HTMLParser

import pytest

from ifonly import Explainer, Limits, datasets
from ifonly.errors import FileError, QuestionError

HOSTILE = "<script>alert(1)</script>\"'&{x}"


class Tags(HTMLParser):
    """The tags and the text of a page; tags have to close in order."""

    VOID = ("meta", "br", "hr", "circle", "path", "rect", "line")

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)


@pytest.fixture(scope="module")
def asked():
    model, data = datasets.network("credit", rules=False), datasets.load("credit", rules=False)
    schema = model.schema.labelled(
        {"MostRecentPaymentAmount": HOSTILE, "TotalMonthsOverdue": "months overdue"}, {"TotalMonthsOverdue": "months"}
    )
    return Explainer(model, schema=schema, classes=["deny", HOSTILE]), data


def everything(asked):
    explainer, data = asked
    row, people = data.row(0), [data.row(i) for i in range(30)]
    none = explainer.explain(row, constraints=[f"{name} is fixed" for name in explainer.schema.names])
    one, many, several = (
        explainer.explain(row),
        explainer.explain_many([*people, {}]),
        explainer.explain_diverse(row, 3),
    )
    yield from (one, none, many[30], explainer.explain(row, limits=Limits(nodes=1)), many, several, many[:0])


def test_every_page_is_whole_escaped_and_loads_nothing(asked):
    for shown in everything(asked):
        for text in (shown.to_html(), shown.to_html(language="de"), shown._repr_html_()):
            read = Tags(text)
            names = {tag for tag, _ in read.tags}
            assert not names & {"script", "link", "img", "iframe", "object", "form"}
            assert not any(key.startswith("on") or key in ("src", "href") for _, attrs in read.tags for key in attrs)
            assert "alert(1)</script>" not in text
    assert HOSTILE in "".join(Tags(asked[0].explain(asked[1].row(0)).to_html()).words)


def test_a_set_claims_no_more_than_is_proven(asked):
    explainer, data = asked
    text = " ".join(Tags(explainer.explain_diverse(data.row(0), 3).to_html()).words)
    assert text.count("No smaller allowed change would have been enough.") == 1
    assert text.count("No smaller allowed change that differs from those above would have been enough.") == 2
    stopped = explainer.explain(data.row(0), limits=Limits(nodes=1))
    assert stopped.status != "nearest"
    page = " ".join(Tags(stopped.to_html()).words)
    assert "No smaller allowed change" not in page and "it is proven that no smaller change" not in page


def test_labels_units_and_the_guarantee(asked):
    explainer, data = asked
    text = re.sub(r"\s+", " ", " ".join(Tags(explainer.explain(data.row(0)).to_html(subject="the application")).words))
    assert "months overdue" in text and "4 months" in text and "the application would have been" in text
    assert "it is proven that no smaller change that is allowed does it" in text
    german = explainer.explain(data.row(0)).to_html(language="de")
    assert "bewiesen" in german and 'lang="de"' in german


def test_files(asked, tmp_path):
    explainer, data = asked
    answer = explainer.explain(data.row(0))
    assert (tmp_path / "a.html").write_text("old") and answer.to_html(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == answer.to_html()
    with pytest.raises(FileError):
        answer.to_html(tmp_path / "nowhere" / "a.html")
    with pytest.raises(QuestionError, match="en, de"):
        answer.to_html(language="fr")


def test_the_other_values_of_a_notebook(asked):
    import ifonly

    explainer, data = asked
    people = [data.row(i) for i in range(40)]
    model = datasets.network("compas", rules=False)
    certified = ifonly.check(ifonly.certify(Explainer(model), datasets.load("compas", rules=False).row(1)))
    for shown in (explainer.schema, explainer.audit(people, by="AgeGroup"), certified):
        read = Tags(shown._repr_html_())
        assert "script" not in {tag for tag, _ in read.tags} and any(word.strip() for word in read.words)
    assert "VALID" in certified._repr_html_() and "age group" in explainer.audit(people, by="AgeGroup")._repr_html_()
