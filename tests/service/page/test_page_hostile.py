"""The page among strangers: links that attack, numbers of another language, answers that come too late."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from browser_page import MARKUP, Visit

ODD = {"toString": 1, "valueOf": 1}
"""What cannot become a text."""


def fragment(query: Any, **more: str) -> str:
    text = query if isinstance(query, str) else json.dumps(query)
    return "#" + "&".join(f"{name}={quote(value)}" for name, value in {**more, "query": text}.items())


LINKS = [
    fragment({"constraints": [{"kind": "allowed", "feature": "AgeGroup", "values": [ODD, [], None]}]}),
    fragment({"constraints": [{"kind": "max_changes", "most": ODD}]}),
    fragment({"constraints": [{"kind": ODD, "feature": ODD}, {"__proto__": {"kind": "fixed"}}]}),
    fragment('{"constraints": [{"kind": "range", "feature": "TotalMonthsOverdue", "lower": 1e999, "upper": -1e999}]}'),
    fragment('{"constraints": [{"a": ' + "[" * 9000 + "]" * 9000 + "}]}"),
    fragment('{"__proto__": {"constraints": 1}, "distance": {"norm": "l1", "weights": {"__proto__": 9, "AgeGroup": 1e308}}}'),
    fragment({"constraints": ["x" * 50] * 300}),
    fragment({"constraints": [MARKUP, "javascript:alert(1)"], "target": ODD, "distance": {"norm": ODD, "scales": ODD, "weights": "abc"}}),
    fragment({}, model="__proto__", language="constructor", ways="1e999", differ="toString"),
    fragment("null"), fragment("[]"), fragment("{"), "#query=%", "#" + "a" * 30_000,
]  # fmt: skip


def test_a_link_of_a_stranger_leaves_a_page_that_works(visit: Visit) -> None:
    visit.open()
    for link in LINKS:
        visit.page.evaluate("link => { location.hash = link; }", link)
        visit.page.wait_for_timeout(30)
        visit.settle()
        assert not visit.errors, (link[:100], visit.errors)
    visit.page.evaluate("() => { location.hash = ''; }")
    visit.open(fragment({"constraints": [{"kind": "fixed", "feature": "AgeGroup"}]}, again="1"))
    assert visit.page.locator("#chips .chip").count() == 1
    assert visit.page.evaluate("() => [window.boom, ({}).kind, ({}).constraints]") == [None, None, None]


def test_a_link_can_be_the_first_thing_that_is_opened(visit: Visit) -> None:
    for link in LINKS[:5]:
        visit.page.goto("about:blank")
        visit.open(link)
        assert visit.page.locator(".feature").count() == 14, link[:100]


def test_a_whole_number_has_no_three_decimals(visit: Visit) -> None:
    """10.000 on an English page may be ten thousand; spaces stand between groups of three."""
    visit.open()
    read = """async ([tag, texts, whole]) => {
        const [{ parsed }, { setLanguage }] = await Promise.all([import("/page/format.js"), import("/page/words.js")]);
        setLanguage(tag);
        return texts.map((text) => parsed(text, whole));
    }"""
    texts = ["10.000", "10,000", "1 000 000", "12 34", "10.0"]
    assert visit.page.evaluate(read, ["en", texts, True]) == [None, 10000, 1000000, None, 10]
    assert visit.page.evaluate(read, ["en", texts, False]) == [10, 10000, 1000000, None, 10]
    assert visit.page.evaluate(read, ["de", texts, True]) == [10000, None, 1000000, None, None]


def test_amounts_with_cents_have_both_digits(visit: Visit) -> None:
    visit.open()
    read = """async ([tag, unit, value]) => {
        const [{ amount, shown }, { setLanguage }] = await Promise.all([import("/page/format.js"), import("/page/words.js")]);
        setLanguage(tag);
        const feature = { name: "a", kind: "real", lower: 0, upper: 9000, unit };
        return [amount(feature, value), shown(feature, value)];
    }"""
    assert visit.page.evaluate(read, ["de", "€", 1272.1]) == ["1.272,10", "1.272,10\u00a0€"]
    assert visit.page.evaluate(read, ["en", "$", 1272.1]) == ["1,272.10", "$1,272.10"]
    assert visit.page.evaluate(read, ["en", "$", 1272]) == ["1,272", "$1,272"]
    assert visit.page.evaluate(read, ["en", "", 0.5]) == ["0.5", "0.5"]


def test_a_sign_of_another_language_is_not_skipped(visit: Visit) -> None:
    """1,5 is 1.5 to many, and was 15."""
    visit.open()
    read = """async ([tag, texts]) => {
        const [{ parsed }, { setLanguage }] = await Promise.all([import("/page/format.js"), import("/page/words.js")]);
        setLanguage(tag);
        return texts.map(parsed);
    }"""
    for tag, group, point in (("en", ",", "."), ("de", ".", ",")):
        texts = [
            f"1{group}5",
            f"0{group}500",
            f"12{group}34",
            f"1{group}500",
            f"1{group}234{group}567{point}8",
            f"1{point}5",
            f"{point}5",
            f"-1{group}000",
        ]
        assert visit.page.evaluate(read, [tag, texts]) == [None, None, None, 1500, 1234567.8, 1.5, 0.5, -1000]  # fmt: skip
    assert visit.page.evaluate(read, ["en", ["1e309", "NaN", "Infinity", "1e308", "0x10", ""]]) == [
        None,
        None,
        None,
        1e308,
        None,
        None,
    ]


def test_a_certificate_that_comes_too_late_is_not_kept(visit: Visit) -> None:
    visit.open()
    waiting: list[Any] = []
    visit.page.route("**/v1/certify", lambda route: waiting.append(route))
    visit.page.click("#certify")
    visit.page.wait_for_timeout(100)
    visit.page.locator('[data-feature="AgeGroup"] .tool.fixed').click()
    visit.settle()
    waiting[0].continue_()
    visit.page.wait_for_function("() => !document.querySelector('#certificate-told').textContent.includes('…')")
    visit.page.wait_for_timeout(500)
    assert visit.page.locator("#certificate-save").is_hidden()
