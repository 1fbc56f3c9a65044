"""Settings shared by all tests: hypothesis draws the same examples every time, on every machine; kernels are compiled first."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("IFONLY_COMPILE", "first")  # what is tested is what is compiled, in every process of a test

settings.register_profile(
    "ifonly",
    derandomize=True,
    deadline=None,  # a first call may load what is compiled
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ifonly")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="also the long tests: oracles on many problems, killed runs, fuzzing"
    )
    parser.addoption(
        "--rest",
        action="store_true",
        help="only what is left out without --all and by tools/check extras; of random problems by number every sixth",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --all, of a test that is marked `long(keep=n)` only its first n cases run (none where nothing is said)."""
    if config.getoption("--all"):
        return
    short, rest, cases = list[pytest.Item](), list[pytest.Item](), Counter[str]()
    for item in items:
        mark, test = item.get_closest_marker("long"), item.nodeid.partition("[")[0]
        cases[test] += 1
        (short if mark is None or cases[test] <= mark.kwargs.get("keep", 0) else rest).append(item)
    if config.getoption("--rest"):
        rest, others = thinned(rest)
        items[:], left_out = rest, [*short, *others]
    else:
        items[:], left_out = short, rest
    config.hook.pytest_deselected(items=left_out)


def thinned(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Of oracles over numbered random problems every sixth, so that all checks together take half an hour, and nothing
    that `tools/check extras` runs in full; and what that leaves out."""
    kept, left_out, cases = list[pytest.Item](), list[pytest.Item](), Counter[str]()
    for item in items:
        test, _, case = item.nodeid.partition("[")
        numbered = test.startswith("tests/oracles/") and re.fullmatch(r"(.*-)?\d+\]", case) is not None
        elsewhere = test.startswith("tests/certificate/test_javascript.py")
        (left_out if elsewhere or (numbered and cases[test] % 6) else kept).append(item)
        cases[test] += numbered
    return kept, left_out


@pytest.fixture(scope="session", autouse=True)
def compiled() -> Iterator[None]:
    """No test compiles: every set of kernels is compiled before the first one, each by one process of several, and no
    question asks for a second signature of a kernel, which would be compiled while somebody waits for the answer."""
    from ifonly.compiling import ALL_KERNELS
    from ifonly.link_time import link_time_optimisation

    places = [where.split(":") for where in ALL_KERNELS]
    sets = [getattr(import_module(module), name) for module, name in places]
    second = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2  # of two processes one begins at the end
    for kernels in sets[::-1] if second else sets:
        if not kernels.cached:
            kernels.load()
    with link_time_optimisation():  # of what only tests compile, too
        yield
    twice = [name for kernels in sets for name, function in kernels.functions.items() if len(function.signatures) > 1]
    assert not twice, f"compiled for more than one signature: {twice}"
