"""Nearest for the model as it is deployed: float32 networks that scale their own inputs, asked alone and in batches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Answer,
    ClassTarget,
    Explainer,
    Integer,
    Limits,
    Model,
    Nearest,
    Ordinal,
    Real,
    Schema,
    certify,
    check,
)
from ifonly.methods import MipObj, Search
from ifonly.model import Network, network_model
from ifonly.model.importers import import_model
from ifonly.problem import question
from ifonly.schema import read_points
from ifonly.solvers.common import per_person as each
from ifonly.solvers.search import rounding as sure

torch = pytest.importorskip("torch")

SCHEMA = Schema(
    [
        Real("income", 0.0, 250_000.0),
        Real("debt", 0.0, 40_000.0),
        Integer("age", 18, 90),
        Integer("loans", 0, 12),
        Ordinal("grade", ["low", "middle", "high"]),
    ]
)
BATCHES = (1, 2, 7, 16, 200)


def module(seed: int, hidden: tuple[int, ...]) -> Any:
    """A float32 module that standardises its inputs with a constant among them: its std is 0, and 1e-6 is added."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    points = np.column_stack([rng.uniform(0, [250_000, 40_000], (400, 2)), rng.integers(18, 90, 400),
                              rng.integers(0, 12, 400), rng.integers(0, 3, 400)])  # fmt: skip
    encoded = torch.tensor(SCHEMA.encode(points), dtype=torch.float32)

    class Scaled(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", encoded.mean(0))
            self.register_buffer("std", encoded.std(0))
            widths = (encoded.shape[1], *hidden)
            layers: list[Any] = []
            for width, following in zip(widths, hidden, strict=False):
                layers += [torch.nn.Linear(width, following), torch.nn.ReLU()]
            self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))

        def forward(self, x: Any) -> Any:
            return self.layers((x - self.mean) / (self.std + 1e-6))

    made = Scaled().eval()
    with torch.no_grad():  # about half of the rows are favourable
        made.layers[-1].weight *= 8.0
        made.layers[-1].bias -= made(encoded).median()
    return made, points


def asked(made: Any, points: np.ndarray) -> tuple[Model, list[Answer]]:
    model = import_model(made, SCHEMA, classes=("no", "yes"))
    denied = [SCHEMA.row(point) for point in points if model.decide(model.scores(point[None, :]))[0] == 0][:40]
    return model, list(Explainer(model).using(limits=Limits(seconds=600.0)).explain_many(denied, target="yes"))


@pytest.mark.parametrize("hidden", [(20, 20), (16, 16, 16)], ids=["2x20", "3x16"])
@pytest.mark.parametrize("seed", [1, 2])
def test_float32_answers_are_nearest_and_the_module_accepts_them_in_any_batch(
    hidden: tuple[int, ...], seed: int
) -> None:
    made, points = module(seed, hidden)
    model, answers = asked(made, points)
    assert model.precision == "float32"
    assert len(answers) == 40
    assert [a.status for a in answers] == ["nearest"] * 40
    rows = SCHEMA.encode(read_points(SCHEMA, [a.counterfactual for a in answers]))
    for size in BATCHES:
        for first in range(0, len(rows), size):
            with torch.no_grad():
                scores = made(torch.tensor(rows[first : first + size], dtype=torch.float32))
            assert (scores > 0.0).all()


def test_how_near_luck_could_bring_a_row() -> None:
    """A row nearer than `lower` may be accepted by luck, and none nearer than `lower_any_rounding`, whatever sums round to."""
    made, points = module(3, (12, 12))
    model, answers = asked(made, points)
    explainer = Explainer(model).using(Search(any_rounding=True))
    lower_any_rounding = 0
    for answer in answers[:15]:
        told = explainer.explain(dict(answer.factual), target="yes")
        assert isinstance(told, Nearest)
        assert told.lower_any_rounding is not None and told.lower_any_rounding <= told.lower <= told.upper
        assert told.rounding_bound > 0.0
        lower_any_rounding += told.upper - told.lower_any_rounding > 5e-6 * told.upper
        if told.upper - told.lower_any_rounding > 5e-6 * told.upper:
            assert "rounding in float32 may bring this down by up to 0.0" in str(told)
        # in real arithmetic on the stored weights, a row that meets the plain margin lies in between
        exact = network_model(model.network, SCHEMA, classes=("no", "yes"))
        real = Explainer(exact).explain(dict(answer.factual), target=ClassTarget("yes", margin=0.0))
        assert told.lower_any_rounding <= real.upper * (1.0 + 1e-6)
        assert real.upper <= told.upper * (1.0 + 1e-6)
    assert lower_any_rounding > 0


def test_a_certificate_is_about_the_row_that_explain_returns_and_a_margin_that_covers_rounding() -> None:
    made, points = module(4, (8, 8))
    model, answers = asked(made, points)
    explainer = Explainer(model)
    for answer in answers[:8]:
        certificate = certify(explainer, dict(answer.factual), target="yes")
        checked = check(certificate)
        assert checked.valid, checked.failure
        witness = np.array([float.fromhex(v) for v in certificate.data["witness"]])
        assert SCHEMA.row(witness) == answer.counterfactual
        assert certificate.data["deployed"]["agrees"] is True


@pytest.mark.parametrize("method", [Search(), MipObj()], ids=["search", "mip"])
@pytest.mark.parametrize("guesses", [1, 6])
def test_a_row_that_is_not_sure_is_no_answer(method: Any, guesses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rounding is guessed far too small, the guess is mended, or there is no row; never one that is not sure."""
    for module_ in (question, sure, each):
        monkeypatch.setattr(module_, "GUESS", 0.3)
    for module_ in (sure, each):
        monkeypatch.setattr(module_, "GUESSES", guesses)
    made, points = module(5, (6, 6))
    model = import_model(made, SCHEMA, classes=("no", "yes"))
    asked_, rows = question.Question(model=model, target=ClassTarget("yes")), 0
    for point in points[model.decide(model.scores(points)) == 0][:6]:
        (claim,) = method.prepare(asked_).solve(point[None, :], Limits(seconds=600.0))
        if claim.point is not None:
            rows += 1
            found = claim.point[None, :]
            assert asked_.error_at(found)[0] <= claim.rounding_bound <= asked_.score_margin(found)[0][0]
    assert 0 < rows < 6 if guesses == 1 else rows > 0


def test_ties_on_the_margin_are_luck() -> None:
    """Whole numbers, margin 0: the score of n = 5 is 0 exactly. It is not sure; n = 6 is, and the answer says both."""
    schema = Schema([Integer("n", 0, 10)])
    model = network_model(Network.of([([[1.0]], [-5.0])]), schema)
    answer = Explainer(model).explain({"n": 0}, target=ClassTarget(1, margin=0.0))
    assert isinstance(answer, Nearest)
    assert answer.counterfactual == {"n": 6}
    assert answer.lower_any_rounding == pytest.approx(0.5, abs=1e-9)
    top = Explainer(model).explain({"n": 0}, target=ClassTarget(1, margin=5.0))
    assert top.status == "unknown"
    assert "rounding in float64 may decide either way" in top.note
    assert Explainer(model).explain({"n": 0}, target=ClassTarget(1, margin=5.1)).status == "none exists"


@pytest.mark.long
def test_a_deep_float64_network_is_proven_too() -> None:
    """Ten layers: rounding bounded over the schema is thousands of times what it is at a row."""
    rng = np.random.default_rng(0)
    sizes = [4, *[16] * 10, 1]
    layers = [
        (rng.normal(size=(b, a)) * np.sqrt(2.0 / a), 0.1 * rng.normal(size=b)) for a, b in itertools.pairwise(sizes)
    ]
    schema = Schema([Real(f"x{i}", 0.0, 1.0) for i in range(4)])
    points = rng.random((200, 4))
    middle = float(np.median(Network.of(layers).scores(points)))
    layers[-1] = (layers[-1][0], layers[-1][1] - middle)
    model = network_model(Network.of(layers), schema)
    assert model.error_at(points).max() < 1e-3 * model.error.max()
    denied = [schema.row(point) for point in points if model.decide(model.scores(point[None, :]))[0] == 0][:12]
    answers = Explainer(model).using(limits=Limits(seconds=600.0)).explain_many(denied, target=1)
    assert [answer.status for answer in answers] == ["nearest"] * len(denied)
