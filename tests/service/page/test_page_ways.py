"""The main ways through the page, in a browser, against a desk that answers."""

from __future__ import annotations

import json
import urllib.request
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

import pytest

from browser_page import Visit, served

PAYMENT, OVERDUE = "MostRecentPaymentAmount", "TotalMonthsOverdue"


def ask(visit: Visit, path: str, body: Any = None) -> Any:
    """What the desk itself says."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(visit.address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def first_person(visit: Visit) -> dict[str, Any]:
    return dict(ask(visit, "v1/schema")["people"][0]["row"])


def asked(visit: Visit) -> dict[str, Any]:
    """The query in the address, which follows after a rest."""
    visit.page.wait_for_timeout(400)
    return dict(json.loads(parse_qs(visit.page.url.partition("#")[2])["query"][0]))


def tool(visit: Visit, feature: str, name: str) -> Any:
    return visit.page.locator(f'[data-feature="{feature}"] .tool.{name}')


def click(visit: Visit, feature: str, name: str) -> None:
    tool(visit, feature, name).click()
    visit.settle()


def test_the_first_view_says_what_the_desk_says(visit: Visit) -> None:
    visit.open()
    told = ask(visit, "v1/explain", {"row": first_person(visit)})
    assert visit.sentence.replace("\n", " ") == told["sentence"]
    assert visit.text("#guarantee") == told["guarantee"]
    assert visit.text("#decision") == told["answer"]["decision_before"] == "deny"
    assert visit.page.locator("#changes > li").count() == len(told["answer"]["changes"])
    assert visit.page.locator(".feature").count() == 14
    visit.page.wait_for_selector("#live:not(:empty)", state="attached")
    assert visit.page.locator("#live").text_content() == told["sentence"]


def test_a_slider_changes_the_answer(visit: Visit) -> None:
    visit.open()
    visit.page.locator(f'[data-feature="{OVERDUE}"] input[type=range]').focus()
    for _ in range(2):
        visit.page.keyboard.press("ArrowRight")
    visit.settle()
    row = first_person(visit)
    told = ask(visit, "v1/explain", {"row": {**row, OVERDUE: row[OVERDUE] + 2}})
    assert visit.sentence.replace("\n", " ") == told["sentence"]
    assert "instead of 7" in visit.sentence


def test_the_last_of_many_movements_is_answered_and_read_once(visit: Visit) -> None:
    visit.open()
    visit.page.wait_for_selector("#live:not(:empty)", state="attached")
    read = visit.page.evaluate(
        """async (feature) => {
          let read = 0;
          new MutationObserver(() => { read += 1; }).observe(document.getElementById("live"), { childList: true, characterData: true, subtree: true });
          const slider = document.querySelector(`[data-feature="${feature}"] input[type=range]`);
          for (let k = 0; k < 60; k += 1) {
            slider.value = String(100 * k);
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            await new Promise((done) => setTimeout(done, 8));
          }
          return read;
        }""",
        PAYMENT,
    )
    assert read == 0
    visit.settle()
    told = ask(visit, "v1/explain", {"row": {**first_person(visit), PAYMENT: 5900}})
    assert visit.sentence.replace("\n", " ") == told["sentence"]


def test_sliders_and_limits_follow_the_mouse(visit: Visit) -> None:
    def drag(thumb: Any, start: float, end: float) -> None:
        thumb.scroll_into_view_if_needed()
        box = thumb.bounding_box()
        where = [(box["x"] + 8 + share * (box["width"] - 16), box["y"] + box["height"] / 2) for share in (start, end)]
        visit.page.mouse.move(*where[0])
        visit.page.mouse.down()
        visit.page.mouse.move(*where[1], steps=6)
        visit.page.mouse.up()
        visit.settle()

    visit.open()
    slider = visit.page.locator(f'[data-feature="{OVERDUE}"] .track:not(.double) input')
    drag(slider, 5 / 36, 0.5)
    assert slider.input_value() == "18"
    assert "instead of 18" in visit.sentence
    click(visit, OVERDUE, "limit")
    least, most = visit.page.locator(f'[data-feature="{OVERDUE}"] .double input').all()
    drag(most, 1.0, 0.75)
    drag(least, 0.0, 0.25)
    (limit,) = asked(visit)["constraints"]
    assert limit == {"kind": "range", "feature": OVERDUE, "lower": 9, "upper": 27}


def test_a_number_that_does_not_fit_is_said_beside_it(visit: Visit) -> None:
    visit.open()
    before = visit.sentence
    field = visit.page.locator(f'[data-feature="{OVERDUE}"] input[type=text]')
    field.fill("99")
    assert "between 0 and 36" in visit.text(f'[data-feature="{OVERDUE}"] .wrong')
    assert visit.sentence == before
    field.fill("30")
    visit.settle()
    assert not visit.page.locator(f'[data-feature="{OVERDUE}"] .wrong').is_visible()
    assert visit.sentence != before


def test_one_click_each(visit: Visit) -> None:
    visit.open()
    click(visit, OVERDUE, "fixed")
    assert {"kind": "fixed", "feature": OVERDUE} in asked(visit)["constraints"]
    assert visit.page.locator("#changes", has_text="months overdue").count() == 0
    click(visit, OVERDUE, "only_up")
    assert asked(visit)["constraints"] == [{"kind": "only_up", "feature": OVERDUE}]
    click(visit, OVERDUE, "only_up")
    click(visit, PAYMENT, "cost")
    assert asked(visit)["distance"]["weights"] == {PAYMENT: 4}
    click(visit, "EducationLevel", "limit")
    visit.page.locator('[data-feature="EducationLevel"] .boxes input').first.uncheck()
    visit.settle()
    assert asked(visit)["constraints"] == [
        {"kind": "allowed", "feature": "EducationLevel", "values": ["high-school", "university", "graduate"]}
    ]
    click(visit, PAYMENT, "limit")
    limit = visit.page.get_by_role("textbox", name="most recent payment, at most")
    limit.fill("500")
    limit.press("Enter")
    visit.settle()
    assert {"kind": "range", "feature": PAYMENT, "upper": 500} in asked(visit)["constraints"]
    row = first_person(visit)
    told = ask(visit, "v1/explain", {"row": row, "query": asked(visit)})
    assert visit.sentence.replace("\n", " ") == told["sentence"]
    assert visit.page.locator(".chip").count() == 3


def test_a_rule_in_words(visit: Visit) -> None:
    visit.open()
    rule = visit.page.locator("#rule")
    rule.fill("most recent payment <= nonsense")
    visit.page.wait_for_selector("#rule-told.wrong")
    assert rule.get_attribute("aria-invalid") == "true"
    rule.fill("most recent payment <= 600")
    visit.page.wait_for_selector("#rule-told.right")
    rule.press("Enter")
    visit.settle()
    assert asked(visit)["constraints"] == [f"{PAYMENT} <= 600"]
    assert "most recent payment <= 600" in visit.text("#chips")
    assert "$600" in visit.sentence or "most recent payment" not in visit.sentence
    visit.page.get_by_role("button", name="Remove: most recent payment").click()
    visit.settle()
    assert asked(visit)["constraints"] == []


def test_several_answers_side_by_side(visit: Visit) -> None:
    visit.open()
    first = visit.sentence
    visit.page.locator("#ways label").nth(2).click()
    visit.settle()
    assert visit.page.locator("#compare thead th").count() == 5
    assert visit.sentence == first
    visit.page.locator("#way-part label").nth(1).click()
    assert visit.sentence != first
    told = ask(visit, "v1/diverse", {"row": first_person(visit), "diversity": {"count": 3, "differ": "features"}})
    assert visit.sentence.replace("\n", " ") == told["answers"][1]["sentence"]


@pytest.mark.parametrize("ways", [1, 2])
def test_no_way_out_and_what_would_help(visit: Visit, ways: int) -> None:
    visit.open()
    visit.page.locator("#ways label").nth(ways - 1).click()
    visit.press_all(".tool.fixed")
    assert visit.sentence.startswith("No allowed change")
    assert visit.page.locator("#blame li").count() > 1
    locked = len(asked(visit)["constraints"])
    visit.page.locator("#helps button").first.click()
    visit.settle()
    assert len(asked(visit)["constraints"]) == locked - 1
    assert visit.sentence.startswith("If your most recent payment")
    assert visit.page.evaluate("document.activeElement.id") == "answer-title"


def test_a_certificate_is_made_and_checked(visit: Visit, tmp_path: Any) -> None:
    visit.open()
    visit.page.click("#certify")
    visit.page.wait_for_selector("#certificate-check:not([hidden])")
    sent: list[str] = []
    visit.page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    visit.page.click("#certificate-check")
    visit.page.wait_for_selector('#verdict[data-verdict="VALID"]:not([hidden])')
    assert all(one.startswith(f"GET {visit.address}page/") for one in sent), sent  # it is checked in the browser
    assert "nearer" in visit.text("#verdict-statement") or "distance" in visit.text("#verdict-statement")
    with visit.page.expect_download() as saved:
        visit.page.click("#certificate-save")
    broken = tmp_path / "broken.cert"
    content = saved.value.path().read_bytes()
    assert len(content) > 100
    broken.write_bytes(content[: len(content) // 2])
    visit.page.set_input_files("#drop-file", broken)
    visit.page.wait_for_selector("#certificate-told.wrong, #verdict:not([data-verdict=VALID]):not([hidden])")
    click(visit, OVERDUE, "fixed")
    assert not visit.page.locator("#certificate-save").is_visible()


@pytest.mark.parametrize("title", ["Under rules", "Trees"])
def test_a_certificate_under_rules_and_of_trees_is_checked_in_the_browser(visit: Visit, title: str) -> None:
    visit.open()
    visit.page.select_option("#model", label=title)
    visit.settle()
    visit.page.click("#certify")
    visit.page.wait_for_selector("#certificate-check:not([hidden])")
    visit.page.click("#certificate-check")
    visit.page.wait_for_selector("#verdict:not([hidden])")
    assert visit.page.get_attribute("#verdict", "data-verdict") == "VALID"
    assert "income" in visit.text("#verdict-statement")


def test_german(visit: Visit) -> None:
    visit.open()
    visit.page.select_option("#language", "de")
    visit.settle()
    assert visit.page.evaluate("document.documentElement.lang") == "de"
    assert visit.sentence.startswith("Wäre „")
    assert "letzte Zahlung" in visit.sentence and "letzte Zahlung" in visit.text("#features")
    assert (visit.text("#decision"), visit.text("#gauge-right")) == ("Ablehnung", "Bewilligung")
    assert "erster Antrag" in visit.text("#examples") and "Rechnungen und Zahlungen" in visit.text("#features")
    for word in ("deny", "approve", "payment", "applicant", "overdue"):
        assert word not in visit.text("body"), word
    assert "1.071,03\N{NO-BREAK SPACE}$" in visit.text("#changes")
    field = visit.page.locator(f'[data-feature="{PAYMENT}"] input[type=text]')
    field.fill("1.234,5")
    field.blur()
    visit.settle()
    assert field.input_value() == "1.234,50"
    assert "1.234,50 $" in visit.sentence


def test_the_names_of_a_language(visit: Visit) -> None:
    """Labels, units and options that the schema has for German are those of the German page, and of no other."""
    visit.open("#model=ranked")
    assert "Berufsjahre" not in visit.text("#features") and "years" in visit.text("#features")
    visit.page.select_option("#language", "de")
    visit.settle()
    shown = visit.text("#features")
    for words in ("Berufsjahre", "Jahre", "Beruf", "Pflege", "ohne", "teacher", "niedrig", "hoch"):
        assert words in shown, words
    assert "nurse" not in shown and "low" not in shown
    visit.page.select_option("#target", "good")
    visit.settle()
    told = visit.sentence + visit.text("#changes")
    assert "„Einstufung“ mittel statt niedrig" in told or "Berufsjahre" in told
    assert "years" not in told and "rating" not in told
    rule = visit.page.locator("#rule")
    rule.fill("Berufsjahre <= 30")
    visit.page.wait_for_selector("#rule-told.right")
    rule.press("Enter")
    visit.settle()
    assert asked(visit)["constraints"] == ["years <= 30"]
    assert "Berufsjahre" in visit.text("#chips")


def test_a_link_carries_the_question_and_nobody(visit: Visit) -> None:
    visit.open()
    click(visit, "AgeGroup", "fixed")
    click(visit, OVERDUE, "cost")
    visit.page.locator("#ways label").nth(1).click()
    visit.page.select_option("#target", "approve")
    visit.page.locator(f'[data-feature="{PAYMENT}"] input[type=text]').fill("4321.5")
    visit.settle()
    asked(visit)
    link = visit.page.url.partition("#")[2]
    parts = parse_qs(link)
    assert set(parts) == {"model", "language", "ways", "differ", "query"}
    assert "4321" not in link
    assert asked(visit).keys() == {"distance", "constraints", "fewest_first", "target"}
    chips, told = visit.text("#chips"), asked(visit)
    visit.page.goto("about:blank")
    visit.open(f"#{link}")
    assert (visit.text("#chips"), asked(visit)) == (chips, told)
    assert visit.page.locator("#ways input").nth(1).is_checked()


def test_other_models(visit: Visit) -> None:
    visit.open()
    visit.page.select_option("#model", "ranked")
    visit.page.wait_for_selector('[data-feature="years"]')
    visit.settle()
    assert "fair" in visit.sentence
    visit.page.select_option("#target", "good")
    visit.settle()
    assert "would have changed to good" in visit.sentence
    visit.page.get_by_label("not known").check()
    visit.settle()
    assert "no value" in visit.text('[data-feature="debt"] .wrong')


def test_bounds_close_in_where_an_answer_takes_long(visit: Visit) -> None:
    visit.open()
    answer = ask(visit, "v1/explain", {"row": first_person(visit), "query": {"constraints": [f"{OVERDUE} is fixed"]}})
    bounds = {"lower": 0.001, "upper": 0.02, "nodes": 1000, "seconds": 0.5}
    stream = f":\n\nevent: bounds\ndata: {json.dumps(bounds)}\n\nevent: answer\ndata: {json.dumps(answer)}\n\n"
    visit.page.route("**/v1/explain", lambda route: None)
    visit.page.route("**/v1/explain/stream", lambda route: route.fulfill(content_type="text/event-stream", body=stream))
    click(visit, OVERDUE, "fixed")
    assert visit.sentence.replace("\n", " ") == answer["sentence"]


def test_what_is_handed_over(visit: Visit) -> None:
    visit.open()
    with visit.page.expect_download() as saved:
        visit.page.click("#save-html")
    assert "<html" in saved.value.path().read_text()
    visit.page.select_option("#notice-form", "gdpr")
    with visit.page.expect_download() as notice:
        visit.page.click("#save-notice")
    assert notice.value.suggested_filename == "notice.html"
    assert "Information about an automated decision" in notice.value.path().read_text()
    visit.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    visit.page.emulate_media(media="print")
    assert "$1,090" in visit.text("#printed")
    assert str(datetime.now().year) in visit.text("#printed") and "Credit applications" in visit.text("#printed")
    assert not visit.page.locator("#features").is_visible()
    assert visit.page.locator("#sentence").is_visible()


def test_an_answer_is_marked_while_a_field_holds_no_value(visit: Visit) -> None:
    visit.open()
    field = visit.page.locator(f'[data-feature="{PAYMENT}"] input[inputmode=decimal]')
    assert not visit.page.locator("#stale").is_visible()
    for wrong in ("abc", "-5", ""):
        field.fill(wrong)
        assert "is about the last valid value of “most recent payment”" in visit.text("#stale")
        assert "outdated" in visit.page.locator("#answer").get_attribute("class")
    visit.page.select_option("#language", "de")  # the fields are drawn anew, with the values that are answered
    visit.settle()
    assert not visit.page.locator("#stale").is_visible()
    field.fill("x")
    assert "den letzten gültigen Wert" in visit.text("#stale")
    field.fill("100")
    visit.settle()
    assert not visit.page.locator("#stale").is_visible()
    assert "outdated" not in visit.page.locator("#answer").get_attribute("class")


def ready(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{address}readyz").status == 200)
    except OSError:
        return False


def test_the_page_works_below_a_path(browser: Any) -> None:
    with served("/tools/desk") as address:
        assert address.endswith("/tools/desk/")
        page = browser.new_context(locale="en-US").new_page()
        visit = Visit(page, address.rstrip("/"))
        while not ready(address):
            page.wait_for_timeout(200)
        asked_for: list[str] = []
        page.on("request", lambda request: asked_for.append(request.url))
        visit.open()
        assert page.url.startswith(address) and "instead of" in visit.sentence
        assert len(asked_for) > 10 and all(url.startswith(visit.address) for url in asked_for)
        page.context.close()
        assert not visit.errors
