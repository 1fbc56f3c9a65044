"""Anomaly models as constraints: an isolation forest that is fitted here, and autoencoders."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from ifonly import (
    Accepted,
    Categorical,
    Distance,
    Explainer,
    Integer,
    Nearest,
    Network,
    NoneExists,
    Real,
    Schema,
    ScoreTarget,
)
from ifonly.errors import ModelError, QuestionError, UnsupportedModel
from ifonly.methods import Enumerate, MipObj, Search
from ifonly.model import network_model
from ifonly.plausibility import dense, inliers, reconstructed

SCHEMA = Schema([Integer("A", -3, 3), Integer("B", 0, 5), Categorical("C", ["x", "y"])])
REALS = Schema([Real("A", -3, 3), Real("B", 0, 5)])
POINTS = np.array([[a, b, c] for a in range(-3, 4) for b in range(6) for c in range(2)], dtype=np.float64)


def random_layers(rng: np.random.Generator, sizes: list[int]) -> Network:
    return Network.of([(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in zip(sizes, sizes[1:], strict=False)])


@pytest.mark.parametrize("seed", range(12))
def test_the_nearest_row_with_a_small_error_by_trying_every_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = network_model(random_layers(rng, [4, 3, 1]), SCHEMA, classes=("no", "yes"))
    hidden = [3] * (seed % 3)
    autoencoder = network_model(random_layers(rng, [4, *hidden, 4]), SCHEMA, regression=True)
    encoded = SCHEMA.encode(POINTS)
    differences = np.abs(autoencoder.scores(POINTS) - encoded)
    norm = ("l1", "linf")[seed // 3 % 2]
    errors = differences.sum(axis=1) if norm == "l1" else differences.max(axis=1)
    at_most = float(np.quantile(errors, 0.3)) + 1e-5
    check = reconstructed(autoencoder, SCHEMA, at_most, norm=norm)
    assert (check.accepts(SCHEMA, POINTS) == (errors <= at_most)).all()
    good = (model.scores(POINTS)[:, 0] > 1e-6) & (errors <= at_most)
    person = int(np.flatnonzero(model.scores(POINTS)[:, 0] <= 0.0)[0])
    for method in (Search(table_rows=0), Enumerate(), MipObj())[: 3 if seed < 3 else 1]:
        explainer = Explainer(model).using(method, reasons=False)
        answer = explainer.explain(SCHEMA.row(POINTS[person]), target="yes", constraints=[check])
        if not good.any():
            assert isinstance(answer, NoneExists)
            continue
        question, _ = explainer.question(SCHEMA.row(POINTS[person]))
        before = np.repeat(POINTS[person][None, :], len(POINTS), axis=0)
        assert isinstance(answer, Nearest)
        assert answer.upper == pytest.approx(question.measure.between(before, POINTS)[good].min(), abs=1e-6)


def test_an_autoencoder_of_torch_in_its_own_arithmetic() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    model = network_model(Network.of([([[1.0, 1.0]], [-4.0])]), REALS, classes=("no", "yes"))
    for norm in ("l1", "linf"):
        check = reconstructed(module, REALS, 5.5, norm=norm)
        answer = Explainer(model).explain({"A": 0.0, "B": 1.0}, constraints=[check])
        assert isinstance(answer, Nearest)
        x = torch.tensor([[answer.counterfactual["A"], answer.counterfactual["B"]]], dtype=torch.float32)
        error = (module(x) - x).abs().detach()
        assert float(error.sum() if norm == "l1" else error.max()) <= 5.5


def test_rows_that_look_like_the_data() -> None:
    rng = np.random.default_rng(0)
    table = {"A": rng.normal(0, 0.5, 300).clip(-3, 3), "B": rng.normal(2, 0.5, 300).clip(0, 5)}
    model = network_model(Network.of([([[1.0, 0.2]], [-1.2])]), REALS, classes=("no", "yes"))
    check = inliers(REALS, table, trees=10)
    answer = Explainer(model).explain({"A": -0.5, "B": 2.0}, constraints=[check])
    assert check.accepts(REALS, REALS.read(answer.counterfactual)[None, :])[0]
    assert "isolation forest accepts" in check.describe()
    shares = [1.0 - check.accepts(REALS, np.column_stack(list(table.values()))).mean()
              for check in (check, inliers(REALS, table, trees=10, outliers=0.3))]  # fmt: skip
    assert shares == pytest.approx([0.05, 0.3], abs=0.02)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: inliers(REALS, {"A": [], "B": []}), QuestionError, "a table without rows"),
        (lambda: inliers(REALS, {"A": [1.0], "B": [1.0]}, outliers=0.9), QuestionError, "between 0 and 0.5; it is 0.9"),
        (lambda: inliers(REALS, {"A": [1.0], "B": [1.0]}, trees=0), QuestionError, "A forest has a whole number"),
        (lambda: dense(REALS, {"A": [], "B": []}), QuestionError, "a table without rows"),
        (lambda: dense(REALS, {"A": [1.0], "B": [1.0]}, outliers=0.9), QuestionError, "between 0 and 0.5; it is 0.9"),
        (lambda: dense(REALS, {"A": [1.0], "B": [1.0]}, components=0), QuestionError, "from 1 to 100; it is 0"),
        (lambda: dense(REALS, {"A": [1.0], "B": [1.0]}, components=101), QuestionError, "from 1 to 100; it is 101"),
        (lambda: dense(REALS, {"A": [1.0], "B": [1.0]}), QuestionError, "fitted on more rows than that; the table has 1"),
        (lambda: dense(REALS, {"A": [1.0], "B": [1.0]}, covariance="round"), QuestionError, "one of full, tied, diag"),  # type: ignore[arg-type]
        (lambda: reconstructed(network_model(Network.of([(np.eye(2), [0, 0])]), REALS), REALS, 1.0), ModelError,
         "returns numbers, not classes"),
        (lambda: reconstructed(network_model(Network.of([([[1, 0]], [0])]), REALS, regression=True), REALS, 1.0),
         ModelError, "rows of the schema have 2 columns, but it returns 1"),
        (lambda: reconstructed(torch.nn.Linear(2, 2), REALS, -1.0), QuestionError, "a number >= 0; it is -1"),
        (lambda: reconstructed(torch.nn.Linear(2, 2), REALS, 1.0, norm="l2"), QuestionError, "'l1' or 'linf'"),
        (lambda: reconstructed(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 2)),
                               REALS, 1.0), ModelError, "exact for piecewise-linear networks"),
    ],
)  # fmt: skip
def test_wrong_input_gets_a_sentence(make, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        make()


@pytest.mark.long
def test_plausible_answers_look_like_the_table() -> None:
    """Options that occur, numbers in the range of the table, and an inlier to scikit-learn's own forest."""
    rng = np.random.default_rng(4)
    points = np.stack([rng.integers(-1, 3, 300), rng.integers(1, 5, 300), np.zeros(300)], axis=1).astype(np.float64)
    table = [SCHEMA.row(point) for point in points]
    model = network_model(Network.of([([[1.0, 1.0, 0.0, 4.0]], [-4.5])]), SCHEMA, classes=("no", "yes"))
    person = {"A": 0, "B": 2, "C": "x"}
    explainer = Explainer(model)
    asked = explainer.plausible(table)
    plain, answer = explainer.explain(person), asked.explain(person)
    assert isinstance(plain, Nearest)
    assert plain.counterfactual["A"] == 3  # which nobody in the table has
    assert isinstance(answer, Nearest)
    row = SCHEMA.read(answer.counterfactual)
    assert answer.counterfactual["C"] == "x"
    assert (points.min(axis=0) <= row).all()
    assert (row <= points.max(axis=0)).all()
    forest = inliers(SCHEMA, table)
    inside = [forest.accepts(SCHEMA, point[None, :])[0] for point in POINTS]
    good = np.array(inside) & (model.scores(POINTS)[:, 0] > 0.0) & (POINTS[:, 2] == 0.0)
    good &= ((points.min(axis=0) <= POINTS) & (points.max(axis=0) >= POINTS)).all(axis=1)
    question, _ = explainer.question(person)
    before = np.repeat(SCHEMA.read(person)[None, :], len(POINTS), axis=0)
    assert answer.upper == pytest.approx(question.measure.between(before, POINTS)[good].min(), abs=1e-9)
    assert explainer.explain(person).upper == plain.upper  # the explainer itself is what it was
    assert asked.explain(person, constraints=["isolation forest accepts"]).upper == answer.upper


@pytest.mark.parametrize(
    "name", ["neighbors.KernelDensity", "covariance.EllipticEnvelope", "mixture.BayesianGaussianMixture"]
)
def test_densities_without_an_exact_form_are_refused_with_a_remedy(name: str) -> None:
    module, kind = name.split(".")
    fitted = getattr(importlib.import_module(f"sklearn.{module}"), kind)().fit(
        REALS.sample(30, np.random.default_rng(0))
    )
    model = network_model(Network.of([([[1.0, 1.0]], [-4.0])]), REALS, classes=("no", "yes"))
    check = Accepted(by=fitted, name="density")
    with pytest.raises(UnsupportedModel, match=r"'density': \w+ has no exact form here.*plausibility.dense"):
        Explainer(model).explain({"A": 0.0, "B": 1.0}, constraints=[check])


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_rows_where_the_data_is_dense(components: int, covariance: str) -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.choice([-2.0, 2.0], 300) + rng.normal(0, 0.3, 300), rng.normal(2, 0.5, 300)])
    table = {"A": points[:, 0].clip(-3, 3), "B": points[:, 1].clip(0, 5)}
    check = dense(REALS, table, components=components, covariance=covariance, outliers=0.1)
    inside = check.accepts(REALS, np.column_stack(list(table.values())))
    assert inside.mean() == pytest.approx(0.9, abs=0.01)
    model = network_model(Network.of([([[1.0, 0.2]], [-1.2])]), REALS, classes=("no", "yes"))
    answer = Explainer(model).explain({"A": -0.5, "B": 4.9}, constraints=[check])
    assert isinstance(answer, Nearest)
    assert check.accepts(REALS, REALS.read(answer.counterfactual)[None, :])[0]
    assert check.describe() == "gaussian mixture accepts"
    grid = np.array([[a, b] for a in np.linspace(-3, 3, 121) for b in np.linspace(0, 5, 101)])
    good = grid[check.accepts(REALS, grid) & (model.scores(grid)[:, 0] > 1e-6)]
    distance = Distance().between(REALS, REALS.read({"A": -0.5, "B": 4.9}), good)
    assert answer.lower <= distance.min()
    assert answer.upper <= distance.min() + 1e-12


def test_a_mixture_of_ones_own_with_a_threshold() -> None:
    mixture = GaussianMixture(2, random_state=0).fit(SCHEMA.encode(SCHEMA.sample(80, np.random.default_rng(0))))
    scores = mixture.score_samples(SCHEMA.encode(POINTS))
    threshold = float(np.sort(scores)[40:42].mean())
    check = Accepted(by=mixture, target=ScoreTarget(at_least=threshold, margin=0.0), name="mixture")
    bound = check.bound(SCHEMA)
    for one in (check, bound):
        assert (one.accepts(SCHEMA, POINTS) == (scores >= threshold)).all()
    assert bound.by.accepted == 1
    model = network_model(Network.of([([[1.0, 1.0, 0.0, 0.0]], [-2.0])]), SCHEMA, classes=("no", "yes"))
    for target, message in ((None, "decides nothing without a threshold"),
                            (ScoreTarget(at_most=1.0), "asked to be at least so much"),
                            (1, "decides nothing without a threshold")):  # fmt: skip
        with pytest.raises(UnsupportedModel, match=message):
            Explainer(model).explain(SCHEMA.row(POINTS[0]), constraints=[Accepted(by=mixture, target=target)])
