"""The page for whoever uses it: small screens, dark ones, no mouse, a reader; and names that are markup."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from browser_page import MARKUP, SCRIPT, Visit


def axe() -> str:
    """The text of axe-core, from a package that ships it or from the file that AXE names."""
    spec = find_spec("axe_playwright_python")
    found = [Path(place) / "axe.min.js" for place in (spec.submodule_search_locations or ())] if spec else []
    found += [Path(os.environ["AXE"])] if "AXE" in os.environ else []
    path = next((one for one in found if one.exists()), None)
    if path is None:
        pytest.skip("axe-core is not installed (axe-playwright-python), and AXE names no file")
    return path.read_text()


def states(visit: Visit) -> Any:
    """The page in its main states, one after the other."""
    visit.open()
    yield "first"
    visit.page.locator("#ways label").nth(2).click()
    visit.press_all(".tool.limit")
    visit.page.locator("#rule").fill("what is this")
    visit.page.wait_for_selector("#rule-told.wrong")
    visit.settle()
    yield "several answers, limits, a wrong rule"
    visit.press_all(".tool.fixed")
    yield "no way out"
    visit.page.select_option("#language", "de")
    visit.settle()
    yield "german"


def test_nothing_is_wider_than_the_screen(visit: Visit) -> None:
    for state in states(visit):
        for width in (320, 400, 800, 1400, 1800):
            visit.page.set_viewport_size({"width": width, "height": 800})
            wide = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, (state, width)
        visit.page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("visit", [{"color_scheme": "dark", "viewport": {"width": 400, "height": 800}}, {"color_scheme": "light"}], indirect=True, ids=["dark, narrow", "light"])  # fmt: skip
def test_axe_finds_nothing(visit: Visit) -> None:
    rules = axe()
    for state in states(visit):
        visit.page.evaluate(f"{rules}; 0")
        found = visit.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
        assert [(one["id"], one["impact"], one["nodes"][0]["target"]) for one in found] == [], state


@pytest.mark.parametrize("visit", [{"color_scheme": "dark"}], indirect=True)
def test_dark_and_light(visit: Visit) -> None:
    def ground() -> int:
        colour = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

    visit.open()
    assert ground() < 100
    visit.page.select_option("#look", "light")
    assert ground() == 3 * 255
    visit.page.select_option("#look", "auto")
    assert ground() < 100


def test_without_a_mouse(visit: Visit) -> None:
    visit.open()
    press = visit.page.keyboard.press

    def focused() -> str:
        return str(
            visit.page.evaluate(
                "document.activeElement.getAttribute('aria-label') || document.activeElement.id || document.activeElement.name"
            )
        )

    def tab_to(name: str) -> None:
        for _ in range(200):
            if focused() == name:
                return
            press("Tab")
        raise AssertionError(f"{name} is not reached")

    press("Tab")
    press("Enter")  # the link to the answer
    assert focused() == "answer-title"
    tab_to("ways")
    press("ArrowRight")
    visit.settle()
    assert visit.page.locator("#compare table").count() == 1
    tab_to("rule")
    visit.page.keyboard.type("AgeGroup is fixed")
    press("Enter")
    visit.page.wait_for_selector(".chip")
    visit.settle()
    assert focused() == "rule"
    tab_to("age group: may only go up")
    press("Space")
    visit.settle()
    assert visit.page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    tab_to("most recent payment: set limits")
    press("Enter")
    tab_to("most recent payment, at most")
    press("PageDown")
    visit.settle()
    assert "most recent payment at most" in visit.text("#chips")
    for chip in ("age group may only go up", "most recent payment at most"):
        visit.page.get_by_role("button", name=f"Remove: {chip}").focus()
        press("Enter")
        visit.settle()
    assert visit.page.locator(".chip").count() == 1
    tab_to("certify")
    press("Enter")
    visit.page.wait_for_selector("#certificate-check:not([hidden])")
    assert focused() == "certificate-check"


def test_names_that_are_markup_are_text(visit: Visit) -> None:
    visit.open("#model=hostile")
    assert MARKUP in visit.sentence and SCRIPT in visit.sentence
    assert MARKUP in visit.text("#model")
    visit.page.locator("#ways label").nth(1).click()
    for name in ("limit", "only_up"):
        visit.page.locator(f".tool.{name}").first.click()
        visit.settle()
    visit.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    visit.page.locator("#rule").fill(f"'{MARKUP}' <= 8 and")
    visit.page.wait_for_selector("#rule-told.wrong")
    visit.press_all(".tool.fixed")
    assert MARKUP in visit.text("#blame") and MARKUP in visit.text("#helps")
    visit.page.click("#certify")
    visit.page.wait_for_selector("#certificate-told:not(:empty)")
    assert visit.page.evaluate("window.boom") is None
    assert visit.page.locator("main img, main script, main b img, main u, main i:not([class], [id])").count() == 0


def test_a_key_is_asked_for_and_kept_in_memory(visit: Visit) -> None:
    def guard(route: Any) -> None:
        if route.request.headers.get("authorization") == "Bearer open sesame":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": "This desk needs a key.", "where": None})

    visit.page.route("**/v1/**", guard)
    visit.page.goto(visit.address)
    visit.page.wait_for_selector("#key-dialog[open]")
    visit.page.fill("#key", "wrong")
    visit.page.press("#key", "Enter")
    visit.page.wait_for_selector("#key-wrong:not([hidden])")
    visit.page.fill("#key", "open sesame")
    visit.page.press("#key", "Enter")
    visit.settle()
    assert visit.sentence.startswith("If your")
    kept = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])"
    assert "sesame" not in visit.page.evaluate(kept)


def test_a_desk_that_is_gone_comes_back(visit: Visit) -> None:
    visit.open()
    visit.page.route("**/v1/**", lambda route: route.abort())
    visit.page.locator(".tool.fixed").first.click()
    visit.page.wait_for_selector("#notice:not([hidden])")
    assert "cannot be reached" in visit.text("#notice")
    visit.page.unroute("**/v1/**")
    visit.page.click("#retry")
    visit.page.wait_for_selector("#notice", state="hidden")
    visit.page.route("**/v1/explain", lambda route: route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": "Too many.", "where": None}))  # fmt: skip
    visit.page.locator(".tool.fixed").first.click()
    visit.page.wait_for_selector("#notice:not([hidden])")
    assert "busy" in visit.text("#notice")
    visit.page.unroute("**/v1/explain")
    visit.page.wait_for_selector("#notice", state="hidden")


LINKS = [
    '{"distance":{"norm":"l1","weights":null}}', '{"distance":{"norm":5,"weights":"abc"}}', '{"distance":[]}', "[]", "null", "7",
    '{"constraints":[{"kind":"allowed","feature":"AgeGroup","values":[{"a":1}]}]}', '{"constraints":{"0":1}}',
    '{"constraints":[null]}', '{"constraints":[{"kind":"range","feature":"AgeGroup","lower":"x"}]}',
    '{"constraints":[{"kind":"fixed","feature":"__proto__"}]}', '{"target":{"class":["x"]}}', '{"target":"<img src=x>"}',
]  # fmt: skip


def test_no_link_breaks_the_page(visit: Visit) -> None:
    visit.open()
    for query in LINKS:
        visit.page.goto("about:blank")
        visit.open(f"#model=nobody&ways=99&differ=no&language=xx&query={query}")
        visit.page.evaluate("document.querySelector('#chips button.plain, #chips button')?.click()")
        visit.settle()


def test_a_refusal_stands_where_it_belongs(visit: Visit) -> None:
    visit.open('#model=credit&query={"constraints":["AgeGroup is fixed","nobody is fixed"]}')
    assert visit.page.locator(".chip.bad").count() == 1
    assert "nobody" in visit.text(".chip.bad .wrong")
    visit.page.get_by_role("button", name="Remove: nobody").click()
    visit.settle()
    assert not visit.page.locator("#answer-wrong").is_visible()
    visit.page.goto("about:blank")
    visit.open("#query={")
    assert "could not be read" in visit.text("#answer-wrong")
