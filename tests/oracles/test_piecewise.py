"""Networks that are no chain of ReLU layers: the search against every row that the model itself accepts, and against the
MIP. IFONLY_PIECEWISE=200 makes it 200 networks of each kind."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is optional, and has no wheel for every platform")

import torch
from comparison import answers, disagreements
from piecewise_networks import GRAPHS, MODULES, OnnxGraph, Random

from ifonly import ClassTarget, Distance, Explainer, Limits, Nearest, NoneExists, check, import_model
from ifonly.certifying.certifier import Certifier
from ifonly.methods import MipObj
from ifonly.problem import Question
from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, Schema
from ifonly.solvers.search import Search
from ifonly.tolerances import DEFAULT

COUNT = int(os.environ.get("IFONLY_PIECEWISE", "3"))
NORMS: tuple[Any, ...] = ("l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7})
FINITE = Schema(
    [Integer("n", -2, 3), Binary("b"), Categorical("c", ["x", "y", "z"]), Ordinal("o", ["low", "mid", "high"])]
)
EVERY = np.array(list(itertools.product(range(-2, 4), range(2), range(3), range(3))), dtype=float)
MIXED = Schema([Real("x", -2, 2), Real("y", 0, 1), Integer("n", -2, 3), Binary("b"), Categorical("c", ["x", "y", "z"])])


def made(kind: str, schema: Schema, seed: int) -> Any:
    """A random network of this kind, whose score is not the same everywhere, and 0 on no plateau."""
    for attempt in range(100):
        columns, rng = len(schema.columns), np.random.default_rng([seed, len(schema), attempt])
        rows = schema.sample(100, rng)
        if kind in MODULES:
            module: Any = Random(kind, columns, rng)
            with torch.no_grad():
                scores = module(torch.from_numpy(schema.encode(rows)).float()).numpy()
            for layer in (module.last, module.longer):
                layer.bias.data += float(np.quantile(scores, 0.6) + 1e-3) * (1.0 if kind == "wide and deep" else -1.0)
        else:
            g = OnnxGraph(columns, rng)
            output = GRAPHS[kind](g)
            scores = import_model(g.model(output), schema).scores(rows)
            module = g.model(g("Sub", output, g.constant(np.quantile(scores, 0.6) + 1e-3)))
        if np.quantile(scores, 0.8) > np.quantile(scores, 0.4) + 1e-3:
            break
    return module


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("kind", [*MODULES, *GRAPHS])
def test_the_nearest_row_is_that_of_the_model_itself(kind: str) -> None:
    answered = 0
    for seed in range(COUNT):
        model = import_model(made(kind, FINITE, seed), FINITE)
        scores, error = model.scores(EVERY)[:, 0], model.error_at(EVERY)[:, 0]
        person, norm = EVERY[(37 * seed) % len(EVERY)], NORMS[seed % len(NORMS)]
        resolved = int(model.scores(person[None])[0, 0] <= 0.0)
        score_margin = (scores if resolved else -scores) - 1e-6
        explainer = Explainer(model).using(Search(table_rows=0))
        answer = explainer.explain(FINITE.row(person), target=ClassTarget(resolved, margin=1e-6), distance=norm)
        far = Distance(norm).between(FINITE, person, EVERY)
        robustly, perhaps = (far[score_margin >= least].min(initial=np.inf) for least in (3.0 * error, -3.0 * error))
        assert perhaps - 1e-9 <= answer.upper <= robustly + 1e-9, f"{kind}, seed {seed}"
        assert answer.lower <= robustly + 1e-9, f"{kind}, seed {seed}"
        if robustly == perhaps:
            assert isinstance(answer, Nearest if np.isfinite(robustly) else NoneExists), (
                f"{kind}, seed {seed}: {answer}"
            )
            answered += bool(np.isfinite(robustly))
    assert answered >= COUNT // 2


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("kind", [*MODULES, *GRAPHS])
def test_the_search_agrees_with_the_mip(kind: str) -> None:
    wrong = []
    for seed in range(COUNT):
        model, rng = import_model(made(kind, MIXED, seed), MIXED), np.random.default_rng(seed)
        points = MIXED.sample(1, rng)
        resolved = int(model.scores(points)[0, 0] <= 0.0)
        question = Question(
            model=model, target=ClassTarget(resolved, margin=1e-4), distance=Distance(NORMS[seed % len(NORMS)])
        )
        found = disagreements(answers(question, points, Search()), answers(question, points, MipObj()), mip=True)
        wrong += [f"{kind}, seed {seed}, {sentence}" for sentence in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", MODULES)
def test_certificates_are_valid(kind: str) -> None:
    model = import_model(made(kind, MIXED, 7).double(), MIXED)  # a certificate is about real arithmetic
    points = MIXED.sample(1, np.random.default_rng(7))
    resolved = int(model.scores(points)[0, 0] <= 0.0)
    question = Question(model=model, target=ClassTarget(resolved, margin=1e-4), distance=Distance("l1"))
    checked = check(Certifier(question, DEFAULT).proven(points[0], Limits(seconds=600.0)))
    assert checked.valid, checked.failure
    assert checked.upper - checked.lower <= DEFAULT.allowed(checked.upper)
    answer = answers(question, points, Search())[0]
    assert checked.lower <= answer.upper + 1e-9
