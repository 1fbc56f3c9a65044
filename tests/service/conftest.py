"""A desk in three sizes: a handler alone, the application with a handler in the place of the processes, and a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ifonly import CausalModel, Explainer, OnlyUp, datasets
from ifonly.causes import LinearEquation
from ifonly.cli.shipped import friendly_credit
from ifonly.model import save_network
from ifonly.schema import save_schema
from ifonly.service import ModelRegistry, RegisteredModel, ServiceLimits
from ifonly.service.app import AccessPolicy, Service
from ifonly.service.handler import Handler
from services import Inline, Served, Visitor, hard_network

RULE = "AgeGroup is fixed"
"""The organisation's own."""


@pytest.fixture(scope="session")
def people() -> list[dict[str, Any]]:
    return friendly_credit(rules=False)[1]


@pytest.fixture(scope="session")
def registry(people: list[dict[str, Any]]) -> ModelRegistry:
    model = friendly_credit(rules=False)[0]
    named = {"First": people[3], "Second": people[4]}
    bills = LinearEquation({"MaxBillAmountOverLast6Months": 0.8})
    causes = CausalModel(model.schema, {"MostRecentBillAmount": bills})
    return ModelRegistry([
        RegisteredModel(name="credit", title="Credit", explainer=Explainer(model), people=named, causes=causes),
        RegisteredModel(name="ruled", subject="the application", explainer=Explainer(model, constraints=[RULE, OnlyUp("EducationLevel")])),
    ])  # fmt: skip


@pytest.fixture(scope="session")
def handler(registry: ModelRegistry) -> Handler:
    return Handler(registry, ServiceLimits(), slow=True)


@pytest.fixture
def inline(handler: Handler) -> Inline:
    return Inline(handler)


@pytest.fixture
def visit(registry: ModelRegistry, inline: Inline) -> Visitor:
    return Visitor(Service(registry, ServiceLimits(), inline, AccessPolicy()))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Credit, and a network for whose questions a minute is not enough."""
    folder, shipped = tmp_path_factory.mktemp("desk"), datasets.network("credit", rules=False)
    save_network(shipped.network, folder / "credit.npz", classes=("deny", "approve"))
    save_network(hard_network(shipped.schema), folder / "hard.npz", classes=("deny", "approve"))
    save_schema(shipped.schema, folder / "credit.json")
    server = Served(
        "--model", f"credit={folder}/credit.npz", "--schema", f"credit={folder}/credit.json", "--title", "credit=Loans",
        "--model", f"hard={folder}/hard.npz", "--schema", f"hard={folder}/credit.json", "--seconds", "60",
    )  # fmt: skip
    yield server
    server.end()
