"""Causes on the page: what to do, and what follows from it, where a model has causes."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from browser_page import Visit

ALICE = {"salary": 75_000, "balance": 25_000, "rent": 900}


def asked(visit: Visit, model: str, language: str = "en") -> dict[str, Any]:
    """What the desk itself says."""
    body = json.dumps({"model": model, "row": ALICE, "language": language}).encode()
    request = urllib.request.Request(visit.address + "v1/recourse", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return dict(json.loads(answer.read()))


def settle(visit: Visit) -> None:
    visit.settle()
    visit.page.wait_for_selector('#action[data-settled="yes"]')


def opened(visit: Visit, model: str, language: str = "en") -> Visit:
    visit.open(f"#model={model}&language={language}")
    settle(visit)
    return visit


def words(visit: Visit, selector: str) -> str:
    return " ".join(visit.text(selector).split())


def test_the_page_says_what_to_do_and_what_follows(visit: Visit) -> None:
    told = asked(opened(visit, "causes"), "causes")
    assert visit.text("#action-sentence") == told["sentence"]
    (action,) = told["recourse"]["actions"]
    assert action["feature"] == "salary" and action["to"] == 85_000
    assert words(visit, "#action-do") == "Salary 75,000 EUR→ to 85,000 EUR"
    assert words(visit, "#action-follows") == "Balance 25,000 EUR→ to 28,000 EUR"
    assert "Balance from Salary" in visit.text("#action-causes")


def test_it_is_said_in_german(visit: Visit) -> None:
    told = asked(opened(visit, "held", "de"), "held", "de")
    assert visit.text("#action-sentence") == told["sentence"]
    assert [one["held"] for one in told["recourse"]["actions"]] == [False, True]
    assert "Gehalt 75.000 EUR" in words(visit, "#action-do")
    assert "Guthaben bei 25.000 EUR halten, gegen die Ursachen" in words(visit, "#action-do")
    assert visit.text("#action-follows") == "Sonst ändert sich nichts."
    assert "Guthaben aus Gehalt" in visit.text("#action-causes")
    assert visit.text("#action-title") == "Der geringste Aufwand, mit dem, was daraus folgt"


def test_it_follows_the_question(visit: Visit) -> None:
    """A salary that cannot be acted on leaves the balance; with both fixed there is no action, and the page says so."""
    opened(visit, "causes")
    visit.page.locator('[data-feature="salary"] .tool.fixed').click()
    settle(visit)
    assert "Balance 25,000 EUR" in words(visit, "#action-do")
    assert visit.text("#action-follows") == "Nothing else changes."
    visit.page.locator('[data-feature="balance"] .tool.fixed').click()
    settle(visit)
    assert not visit.page.locator("#action-parts").is_visible()
    assert visit.text("#action-sentence").startswith("No allowed change")


def test_it_says_what_cannot_be_asked(visit: Visit) -> None:
    refused = json.dumps({"error": "This cannot be asked.", "where": "query"})
    visit.page.route("**/v1/recourse", lambda route: route.fulfill(status=422, body=refused))
    opened(visit, "causes")
    assert visit.text("#action-sentence") == "This cannot be asked."
    assert not visit.page.locator("#action-parts").is_visible() and visit.page.locator("#changes").is_visible()


def test_models_without_causes_have_no_such_part(visit: Visit) -> None:
    visit.open("#model=ranked")
    assert not visit.page.locator("#action").is_visible()


@pytest.mark.parametrize("visit", [{"viewport": {"width": 360, "height": 740}}], indirect=True)
def test_it_fits_a_phone(visit: Visit) -> None:
    opened(visit, "held")
    width = visit.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360 and visit.page.locator("#action-parts").is_visible()
