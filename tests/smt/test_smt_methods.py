"""MIP-SAT and SAT: the formula says what the network does, and the answers are the reference optima."""

import numpy as np
import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from cases import load
from ifonly import ClassTarget, Explainer, Limits, Network
from ifonly.methods import Mace, MipSat
from ifonly.model import network_model
from ifonly.problem import Distance, Question, lower
from ifonly.schema import Categorical, Integer, Ordinal, Real, Schema
from ifonly.solvers.common.bounds import linear_bounds
from ifonly.solvers.common.distances import farthest
from ifonly.solvers.common.inputs import Person
from ifonly.solvers.smt.formula import exact, formula, load_z3

SCHEMA = Schema([Real("a", 0, 10), Integer("b", 0, 9, 3), Ordinal("c", ["x", "y", "z"]), Categorical("d", [1, 2, 3])])


def small(norm="l1", seed=0):
    rng = np.random.default_rng(seed)
    columns = len(SCHEMA.columns)
    layers = [
        (rng.normal(size=(4, columns)), rng.normal(size=4)),
        (rng.normal(size=(3, 4)), rng.normal(size=3)),
        (rng.normal(size=(1, 3)), rng.normal(size=1)),
    ]
    scores = network_model(Network.of(layers), SCHEMA).scores(SCHEMA.sample(500, rng))
    layers[-1] = (layers[-1][0], layers[-1][1] - float(np.median(scores)))
    return Question(model=network_model(Network.of(layers), SCHEMA), target=ClassTarget(1), distance=Distance(norm))


@pytest.mark.parametrize("reduced", [False, True], ids=["plain", "reduced"])
@pytest.mark.parametrize("norm", ["l0", "l1", "linf", "l2"])
def test_with_the_row_fixed_the_formula_is_the_forward_pass_and_the_distance(norm, reduced):
    z3 = load_z3()
    question = small(norm)
    lowered = lower(question)
    rng = np.random.default_rng(1)
    someone = Person.of(lowered.domains(SCHEMA.sample(1, rng)), 0)
    bounds = linear_bounds(lowered, someone) if reduced else None
    for point in SCHEMA.sample(4, rng):
        score = float(question.model.scores(point[None, :])[0, 0])
        distance = float(question.distance.between(SCHEMA, someone.factual, point))
        for more, wider, possible in ((-1e-9, 1e-9, True), (1e-9, 1e-9, False), (-1e-9, -1e-9, distance < 1e-9)):
            made = formula(lowered, someone, max(distance + wider, 0.0), np.array([score + more]), bounds)
            solver = z3.Solver()
            solver.add(*made.assertions)
            solver.add(*(term == exact(point[g]) for g, term in made.numbers.items()))
            solver.add(*(chosen == bool(k == point[g]) for g, options in made.choices.items() for k, chosen in options))
            assert (solver.check() == z3.sat) == possible
            if possible:
                assert made.read(solver.model(), someone) == pytest.approx(point, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("variant", ["norm", "raw"])
def test_reduced_finds_the_reference_optima_of_compas(norm, variant):
    model, points, optima = load("compas", "2x10", variant)
    known = np.flatnonzero(np.isfinite(optima[norm]))[:2]
    answers = (
        Explainer(model)
        .using(MipSat())
        .explain_many(
            [model.schema.row(points[i]) for i in known],
            target=ClassTarget(1, 0.0),
            distance=norm,
            limits=Limits(seconds=600.0),
        )
    )
    for i, answer in zip(known, answers, strict=True):
        assert answer.status == "nearest"
        assert answer.upper == pytest.approx(optima[norm][i], abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("norm", ["l0", "l1", "linf"])
def test_plain_and_reduced_agree_on_a_small_network(norm):
    question = small(norm, seed=3)
    row = SCHEMA.row(SCHEMA.sample(1, np.random.default_rng(4))[0])
    explainer = Explainer(question.model)
    search = explainer.explain(row, distance=norm)
    for method in (Mace(gap=1e-3), MipSat(gap=1e-3)):
        answer = explainer.using(method).explain(row, distance=norm, limits=Limits(seconds=600.0))
        assert answer.lower <= search.upper + 1e-9 and answer.upper >= search.lower - 1e-9
        assert answer.upper - answer.lower <= 1e-3


def test_a_time_limit_is_a_limit():
    model, points, optima = load("compas")
    answer = (
        Explainer(model)
        .using(Mace())
        .explain(model.schema.row(points[0]), target=ClassTarget(1, 0.0), distance="l1", limits=Limits(seconds=0.3))
    )
    assert answer.status in ("unknown", "within") and answer.stop is not None and answer.stop.is_limit
    assert answer.lower <= optima["l1"][0]


def test_no_row_is_farther_than_the_farthest():
    for norm in ("l0", "l1", "l2", "linf"):
        lowered = lower(small(norm))
        factual, *points = SCHEMA.sample(200, np.random.default_rng(5))
        someone = Person.of(lowered.domains(factual[None, :]), 0)
        distances = lowered.question.distance.between(SCHEMA, factual, np.array(points))
        assert (distances <= farthest(lowered, someone)).all()
