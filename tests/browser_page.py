"""A desk and a browser for the tests of the page: the demonstration, a model whose names are markup, one of three
classes, one with rules, and trees.

python tests/browser_page.py      # serves them, to be looked at
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
MARKUP = "<img src=x onerror=window.boom=1>"
SCRIPT = "<script>window.boom=1</script>"


def registry() -> Any:
    from ifonly import Categorical, Explainer, Integer, Network, Ordinal, Real, Schema
    from ifonly.cli.serve import demonstration
    from ifonly.model import network_model
    from ifonly.service import ModelRegistry, RegisteredModel

    hostile = Schema([
        Real(MARKUP, 0, 10, label=f"<b>{MARKUP}</b>", unit="<i>"),
        Categorical("sort", [SCRIPT, "'\"><svg onload=window.boom=1>", "plain"], label=SCRIPT),
    ])  # fmt: skip
    taught = network_model(Network.of([([[1.0, 0.0, 1.0, 2.0]], [-6.0])]), hostile, classes=("<u>no</u>", SCRIPT))
    work = Schema([
        Integer("years", 0, 40),
        Real("debt", 0, 1000, step=50, missing=True, unit="%"),
        Ordinal("rating", ["low", "mid", "high"]),
        Categorical("job", ["handler", "nurse", "teacher", "cook", "driver", "baker", None]),
    ])  # fmt: skip
    work = work.labelled(
        {"years": "Berufsjahre", "job": "Beruf", "rating": "Einstufung"}, {"years": "Jahre"}, language="de",
        options={"job": {"nurse": "Pflege", None: "ohne"}, "rating": {"low": "niedrig", "mid": "mittel", "high": "hoch"}},
    )  # fmt: skip
    columns = len(work.columns)
    weights = [
        [0.1, -0.002] + [0.0, 0.4, 0.4] + [0.0] * (columns - 5),
        [0.0] * columns,
        [-0.1, 0.002] + [0.0] * (columns - 2),
    ]
    ranked = network_model(Network.of([(weights, [-3.0, 0.0, 0.5])]), work, classes=("good", "fair", "poor"))
    return ModelRegistry([
        *demonstration(rules=False),
        RegisteredModel(name="hostile", title=MARKUP, explainer=Explainer(taught, constraints=[f"'{MARKUP}' <= 9"]),
              people={SCRIPT: {MARKUP: 1.0, "sort": SCRIPT}, MARKUP: {MARKUP: 2.0, "sort": SCRIPT}}),
        RegisteredModel(name="ranked", title="Three classes", explainer=Explainer(ranked),
              people={"Ann": {"years": 3, "debt": 400, "rating": "low", "job": None}}),
        *_with_certificates(),
        *_with_causes(),
    ])  # fmt: skip


def _with_certificates() -> list[Any]:
    """A network under rules, and trees."""
    import numpy as np

    from ifonly import Explainer, Integer, Network, Schema
    from ifonly.model import Model, network_model
    from ifonly.model.trees import Ensemble, LibraryTree, Summation, Trees
    from ifonly.service import RegisteredModel

    schema = Schema([Integer("income", 0, 100), Integer("debt", 0, 100), Integer("years", 0, 40)])
    cuts = [(0, 25.0), (1, 22.0), (2, 4.0)]
    stumps = [LibraryTree(column=[g, -1, -1], threshold=[t, 0.0, 0.0], left=[1, -1, -1], right=[2, -1, -1],
                          value=[[0.0], [-1.0 if g != 1 else 1.0], [1.0 if g != 1 else -1.0]], sets={}, adds_to=0)
              for g, t in cuts]  # fmt: skip
    how = Summation(start=np.zeros(1), shift=np.zeros(1), divisor=1.0, precision="float64", ordered=True)
    trees = Trees(Ensemble.of(stumps, columns=len(schema), summation=how), schema)
    forest = Model(function=trees, schema=schema, original=trees.ensemble.scores, classes=("no", "yes"))
    layers = [([[1.0, -1.0, 0.5], [0.0, 1.0, 0.0]], [0.0, -5.0]), ([[1.0, -0.5]], [-20.0])]
    ruled = Explainer(
        network_model(Network.of(layers), schema, classes=("no", "yes")),
        constraints=["debt <= 2 * income", "if years >= 5 then income >= 30", "at most 2 changes"],
    )
    people = {"Ben": {"income": 20, "debt": 30, "years": 2}}
    return [
        RegisteredModel(name="ruled", title="Under rules", explainer=ruled, people=people),
        RegisteredModel(name="forest", title="Trees", explainer=Explainer(forest), people=people),
    ]


def _with_causes() -> list[Any]:
    """A bank for which a larger balance speaks, and one for which it does not; the balance follows from the salary."""
    from ifonly import CausalModel, Explainer, Network, Real, Schema
    from ifonly.causes import LinearEquation
    from ifonly.model import network_model
    from ifonly.service import RegisteredModel

    schema = Schema([
        Real("salary", 0, 400_000, step=1, label="Salary", unit="EUR"),
        Real("balance", -50_000, 100_000, step=1, label="Balance", unit="EUR"),
        Real("rent", 0, 5_000, step=1, label="Rent", unit="EUR"),
    ]).labelled({"salary": "Gehalt", "balance": "Guthaben", "rent": "Miete"}, language="de")  # fmt: skip
    causes, found = CausalModel(schema, {"balance": LinearEquation({"salary": 0.3})}), []
    for name, title, weights, bias in (
        ("causes", "With causes", [1.0, 5.0, 0.0], -224_999.0),
        ("held", "Against causes", [1.0, -2.0, 0.0], -30_000.0),
    ):
        model = network_model(Network.of([([weights], [bias])]), schema, classes=("denied", "approved"))
        people = {"Alice": {"salary": 75_000, "balance": 25_000, "rent": 900}}
        found.append(RegisteredModel(name=name, title=title, explainer=Explainer(model), people=people, causes=causes))
    return found


def main() -> None:
    from ifonly.service import ServiceLimits
    from ifonly.service.access import AccessPolicy
    from ifonly.service.server import ServerConfig, serve

    serve(
        registry(),
        ServiceLimits(),
        ServerConfig(
            port=int(os.environ.get("PORT", "0")), access=AccessPolicy(root_path=os.environ.get("PREFIX", ""))
        ),
        lambda address: print(address, flush=True),
    )


@contextlib.contextmanager
def served(prefix: str = "") -> Iterator[str]:
    """The address of a desk, below a path if one is given."""
    paths = filter(None, [os.environ.get("PYTHONPATH"), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PREFIX": prefix}
    process = subprocess.Popen([sys.executable, __file__], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the desk did not start"
        yield address
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


def browser_path() -> str:
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no chromium is installed")
    return found


@contextlib.contextmanager
def browsing() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = browser_path()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page that is open: what it says, and whatever went wrong in it."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self._hear(message))

    def _hear(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def open(self, fragment: str = "") -> Visit:
        self.page.goto(self.address + fragment)
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until what was asked last is answered and drawn."""
        self.page.wait_for_selector('#desk[data-settled="yes"]')

    def press_all(self, selector: str) -> None:
        """Press all such buttons at once, quicker than a hand."""
        self.page.evaluate(
            "selector => document.querySelectorAll(selector).forEach((button) => button.click())", selector
        )
        self.settle()

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    @property
    def sentence(self) -> str:
        return self.text("#sentence")


if __name__ == "__main__":
    main()
