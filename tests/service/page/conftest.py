"""One browser and one desk for a module of tests of the page; none is left for others, whose event loops it would disturb."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser_page import Visit, browsing, served


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def address(browser: Any) -> Iterator[str]:
    pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
    with served() as found:
        yield found


@pytest.fixture
def visit(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh page; `indirect` parameters are those of the browser's context."""
    context = browser.new_context(
        **{
            "viewport": {"width": 1280, "height": 900},
            "locale": "en-US",
            "reduced_motion": "reduce",
            **getattr(request, "param", {}),
        }
    )
    context.set_default_timeout(120_000)  # the first answer waits for kernels to load, on a machine that may be busy
    found = Visit(context.new_page(), address)
    yield found
    context.close()
    assert not found.errors
