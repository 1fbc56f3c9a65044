"""The audit to hand over: whole, strict, accessible, the same in all forms, and with every name shown as text."""

from __future__ import annotations

import csv
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ifonly import Categorical, Explainer, Integer, Limits, Nearest, Network, NoneExists, Query, Schema, audit
from ifonly.population import Grouping
from ifonly.report import Provenance, audit_csv, audit_html, audit_json, audit_page, audit_svg, plain, provenance
from ifonly.report.provenance import distance_words, files_fingerprint, rows_fingerprint
from ifonly.results import Change, Reasons, Stop, StoppedBy, Unknown

GOLDEN = Path(__file__).parent / "audit.json"
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;", "\x1b[31mred\x1b[0m", "\u202eabc",
           "a\nb", "=1+1", "' onmouseover='x", "z" * 300, "</style><b>", "{}", "-->", "%s", "ä→"]  # fmt: skip
WHERE = Provenance(
    model="a network", model_fingerprint="ab" * 32, schema_fingerprint="cd" * 32, data="people.csv, 7 rows",
    data_fingerprint="ef" * 32, target="yes", distance="l1", constraints=("Age is fixed",), effort="method search",
    made="2030-01-02 03:04 UTC", versions=(("ifonly", "9.9"),),
)  # fmt: skip


def answer(row: int, group: str, cost: float | None = None, feature: str = "n", target: str = "yes") -> Any:
    common: dict[str, Any] = {"row": row, "factual": {"g": group}, "target": target, "distance_name": "l1"}
    if cost is None:
        reasons = Reasons(blame=(f"{feature} is fixed",), minimal=True, relaxations=())
        return NoneExists(lower=math.inf, reasons=reasons, **common)
    return Nearest(lower=cost, upper=cost, counterfactual={}, changes=(Change(feature, "x", group),), **common)


def people(names: list[str]) -> list[Any]:
    """Groups of forty, of which each has recourse less often and at a higher cost than the one before."""
    return [answer(i, g, 0.01 * (k + 1) * (i + 1) if i > 4 * k else None, g, g)
            for k, g in enumerate(names) for i in range(40)]  # fmt: skip


class Reader(HTMLParser):
    """A strict reader: every tag closed in its turn, every attribute known, and the words that a person sees."""

    VOID = frozenset({"meta", "br", "rect", "line", "circle", "path"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "section",
        "svg",
        "defs",
        "pattern",
        "rect",
        "path",
        "line",
        "circle",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "b",
        "strong",
        "span",
        "div",
        "figure",
        "figcaption",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "dl",
        "dt",
        "dd",
        "code",
        "br",
    ]
)


@pytest.mark.parametrize("names", [["a", "b"], HOSTILE, ["alone"]], ids=["plain", "hostile", "one"])
def test_the_page_is_strict_and_loads_nothing(names: list[str]) -> None:
    page = audit_html(audit(people(names), by="g"), WHERE)
    reader = read(page)
    assert {tag for tag, _ in reader.tags} <= TAGS
    for _, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "xlink:href")]
    assert "url(" not in re.sub(r"url\(#(hatched|dotted)\)", "", page) and "@import" not in page
    assert "http" not in re.sub("http-equiv", "", page)
    assert page.replace("\n", "").isprintable()
    policies = [a.get("content") or "" for t, a in reader.tags if t == "meta" and a.get("http-equiv")]
    assert policies[0].startswith("default-src 'none'")


def test_names_are_shown_as_text() -> None:
    told = audit(people(HOSTILE), by=Grouping("g", least=20))
    words = " ".join(" ".join(read(audit_html(told, WHERE)).words).split())
    for name in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;", "\\x1b[31mred\\x1b[0m", "\\u202eabc",
                 "a\\nb", "</style><b>", "z" * 197 + "..."):  # fmt: skip
        assert name in words or name[:-3] in words, name
    assert plain(audit_page(told)).replace("\n", "").isprintable()
    assert "<script" not in audit_svg(told)
    cells = csv.reader(audit_csv(told, WHERE).splitlines())
    assert all(cell[:1] not in "=+@" or not cell for row in cells for cell in row if not _number(cell))
    assert json.loads(audit_json(told, WHERE))["groups"]


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_the_page_can_be_read_aloud() -> None:
    reader = read(audit_html(audit(people(["a", "b", "c"]), by="g"), WHERE))
    assert [tag for tag, _ in reader.tags].count("h1") == 1
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-3]", tag)]
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))
    assert all(a.get("scope") in ("row", "col") for tag, a in reader.tags if tag == "th")
    charts = [a for tag, a in reader.tags if a.get("class") == "chart"]
    assert charts and all(a.get("role") == "img" and len(a.get("aria-label") or "") > 20 for a in charts)
    assert any(a.get("lang") == "en" for tag, a in reader.tags if tag == "html")


def test_the_page_says_what_was_asked() -> None:
    words = " ".join(read(audit_html(audit(people(["a", "b"]), by="g"), WHERE)).words)
    for said in ("ab" * 32, "cd" * 32, "ef" * 32, "people.csv", "Age is fixed", "2030-01-02", "ifonly 9.9", "seed 0",
                 "Clopper and Pearson", "Differences between groups", "provably have none"):  # fmt: skip
        assert said in words, said


def test_everything_is_in_all_forms() -> None:
    told = audit(people(["a", "b", "c"]), by="g")
    data = json.loads(audit_json(told, WHERE))
    rows = list(csv.DictReader(audit_csv(told, WHERE).splitlines()))
    shares = {row["group"]: (float(row["value"]), float(row["low"]), float(row["high"]))
              for row in rows if row["section"] == "share"}  # fmt: skip
    words = " ".join(read(audit_html(told, WHERE)).words)
    for group in (*data["groups"], data["everybody"]):
        assert shares[group["name"]] == (group["share"], *group["share_interval"])
        assert f"{group['share']:.1%}" in words or group["share"] == 1.0
        assert f"{group['p50']:.3g}" in words
    told_of = {(row["group"], row["item"]): row["value"] for row in rows if row["section"] == "difference"}
    for one in data["differences"]:
        assert told_of[one["group"], f"{one['what']}: chance"] == repr(one["chance"])
    assert data["provenance"]["model"]["sha256"] == "ab" * 32


def test_the_golden_json() -> None:
    """An audit that is kept as a file: a change of its form is a change for those who read it."""
    answers = [*people(["a", "b"]), Unknown(lower=0.0, stop=Stop(StoppedBy.SECONDS, 1.0), row=99, factual={"g": "few"},
               target="a", distance_name="l1")]  # fmt: skip
    told, kept = (json.loads(text) for text in (audit_json(audit(answers, by="g"), WHERE), GOLDEN.read_text("utf-8")))
    assert rounded(told) == rounded(kept)


def rounded(data: Any) -> Any:
    """The last digits of logarithms differ from one machine to the next."""
    if isinstance(data, dict):
        return {name: rounded(value) for name, value in data.items()}
    if isinstance(data, list):
        return [rounded(value) for value in data]
    return float(f"{data:.9g}") if isinstance(data, float) else data


def test_audits_of_nobody_and_of_people_who_need_nothing() -> None:
    content = Nearest(
        row=0, factual={"g": 1}, target="yes", distance_name="l1", lower=0.0, upper=0.0, counterfactual={}
    )
    for answers in ([], [content], [answer(0, "a")]):
        for by in (None, "g"):
            told = audit(answers, by=by)
            read(audit_html(told))
            assert audit_csv(told) and json.loads(audit_json(told)) and plain(audit_page(told))


def test_where_it_comes_from() -> None:
    schema = Schema([Integer("Age", 18, 90), Categorical("Job", ["a", "b"])], rules=["Age only goes up"])
    explainer = Explainer(Network.of([([[1.0, 0.0, 1.0]], [-50.5])]), schema=schema, classes=["no", "yes"])
    query = Query(target="yes", distance={"l0": 0.5, "l1": 0.5}, constraints=["Job is fixed"])
    told = provenance(explainer.using(limits=Limits(seconds=2, nodes=500)), query, data="x")
    assert told.constraints == ("Age only goes up", "Job is fixed")
    assert told.model_fingerprint == explainer.model.function.fingerprint
    assert told.effort == "method search, at most 2 seconds and 500 nodes per person"
    assert "0.5 times the share of features that change plus 0.5 times" in told.distance
    assert dict(told.versions)["ifonly"] and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", told.made)
    assert "as few changes as possible, then l1" in distance_words(Query().measure, fewest=True)
    one, other = {"file": "x.csv", "sha256": "ab"}, {"file": "y.csv", "sha256": "cd"}
    assert (files_fingerprint([one]), files_fingerprint([one, {"rows": 5}]), files_fingerprint(None)) == (
        "ab",
        "ab",
        "",
    )
    assert len({files_fingerprint(files) for files in ([one, other], [other, one], [one])}) == 3
    assert rows_fingerprint([{"a": 1}]) == rows_fingerprint(iter([{"a": 1}])) != rows_fingerprint([{"a": 2}])


def test_pages_say_labels_and_units() -> None:
    features = [Integer("inc", 0, 90, label="monthly income", unit="€"), Categorical("job", ["a", "b"], label="work")]
    model = Network.of([([[1.0, 0.0, 1.0]], [-50.5])])
    explainer = Explainer(model, schema=Schema(features), classes=["no", "yes"])
    rows = [{"inc": i, "job": "a"} for i in range(40)]
    asked = explainer.audit(rows, Query(target="yes"), by="job")
    counted = audit(explainer.explain_many(rows, target="yes"), by="job")  # labels of the answers themselves
    for made in (asked, counted):
        page, terminal = audit_html(made), plain(audit_page(made))
        assert "monthly income: up" in page and "by work" in page and "work" in terminal
        assert "inc:" not in page and "by job" not in page
    assert "monthly income → €51" in audit_html(asked) and "monthly income -> €51" in plain(audit_page(asked))
    assert "words" not in asked.to_dict()
