"""The yardstick: does the program say what the network does?"""

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.mip import BigM, available
from benchmarks.mip.ball import known_row, within
from benchmarks.mip.inputs import Person, make_inputs, read_point
from benchmarks.mip.program import formulate, intervals
from benchmarks.mip.repair import conditions
from ifonly import Categorical, Distance, Explainer, Integer, Limits, Network, Ordinal, Real, Schema, Within
from ifonly.model import network_model
from ifonly.problem import ClassTarget, Question, lower

SCHEMA = Schema([Real("a", 0, 10), Integer("b", 0, 9, 3), Ordinal("c", ["x", "y", "z"]), Categorical("d", [1, 2, 3])])
BACKENDS = [backend for backend in ("gurobi", "highs") if available(backend)]


def question(norm="l1", hidden=(6, 5), seed=0):
    rng = np.random.default_rng(seed)
    widths = [len(SCHEMA.columns), *hidden, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(widths)]
    model = network_model(Network.of(layers), SCHEMA)
    middle = float(np.median(model.scores(SCHEMA.sample(500, rng))))
    layers[-1] = (layers[-1][0], layers[-1][1] - middle)
    model = network_model(Network.of(layers), SCHEMA)
    return Question(model=model, target=ClassTarget(1), distance=Distance(norm))


def person(lowered, seed=1):
    return Person.of(lowered.domains(SCHEMA.sample(1, np.random.default_rng(seed))), 0)


def test_intervals_hold_every_sampled_row():
    lowered = lower(question())
    bounds = intervals(lowered, person(lowered))
    h = lowered.unrolled(SCHEMA.sample(2000, np.random.default_rng(2)))
    for i, (weight, bias) in enumerate(lowered.layers):
        z = h @ weight.T + bias
        assert (z >= bounds.lower[i] - 1e-9).all() and (z <= bounds.upper[i] + 1e-9).all()
        h = np.maximum(z, 0.0)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf", "mixture"])
def test_a_row_and_its_activations_satisfy_the_program_at_the_cost_of_its_distance(norm):
    asked = question({"l0": 0.3, "l1": 0.7} if norm == "mixture" else norm)
    lowered = lower(asked)
    someone = person(lowered)
    program = formulate(lowered, someone, np.array([-np.inf]))
    for point in SCHEMA.sample(200, np.random.default_rng(3)):
        values = solution(lowered, someone, program, point)
        assert (program.rows @ values <= program.limit + 1e-9).all()
        assert (values >= program.lower - 1e-9).all() and (values <= program.upper + 1e-9).all()
        cost = (program.cost @ values + program.square @ values**2) / program.scale + program.offset
        distance = asked.distance.between(SCHEMA, someone.factual, point)
        assert cost == pytest.approx(distance**2 if norm == "l2" else distance, abs=1e-12)
        assert read_point(lowered, someone, program.inputs, values[: len(program.inputs)]) == pytest.approx(point)


def solution(lowered, someone, program, point):
    """The program's columns at a row, worked out by hand."""
    inputs, columns = program.inputs, lowered.unrolled(point)
    change = columns[inputs.plus] - inputs.base[inputs.plus]
    v = np.where(inputs.minus >= 0, columns[inputs.plus], change / inputs.unit)
    v = np.where(inputs.signed, v, np.maximum(v, 0.0))
    changed = [g for g in np.unique(inputs.feature) if lowered.numeric[g] and lowered.jump[g] > 0]
    extra = [float(point[g] != someone.factual[g]) for g in changed]
    if lowered.norm.value == "linf":
        extra.append(lowered.question.distance.between(SCHEMA, someone.factual, point))
    bounds, h, relu = intervals(lowered, someone), columns, []
    for i, (weight, bias) in enumerate(lowered.layers[:-1]):
        z = weight @ h + bias
        h = np.maximum(z, 0.0)
        relu += [h[bounds.unstable(i)], (z > 0.0)[bounds.unstable(i)].astype(float)]
    return np.concatenate([v, extra, *relu])


def test_the_box_of_a_known_row_keeps_every_nearer_row():
    lowered = lower(question())
    someone = person(lowered)
    known = known_row(lowered, someone, lowered.need)
    assert (conditions(lowered, known[None, :]) >= lowered.need).all()
    box = within(lowered, someone, known)
    between = lowered.question.distance.between
    for point in SCHEMA.sample(5000, np.random.default_rng(4)):
        if between(SCHEMA, someone.factual, point) <= between(SCHEMA, someone.factual, known):
            numbers = lowered.numeric
            assert (point >= box.lower - 1e-12)[numbers].all() and (point <= box.upper + 1e-12)[numbers].all()
            assert box.allowed[lowered.unrolled(point) == 1.0].all()


def test_features_that_cannot_change_are_no_columns():
    lowered = lower(question())
    fixed = person(lowered)
    still = Person(
        factual=fixed.factual,
        lower=fixed.factual,
        upper=fixed.factual,
        allowed=np.repeat(lowered.numeric, np.diff(lowered.start)) | (lowered.unrolled(fixed.factual) == 1.0),
        cost=fixed.cost,
    )
    assert len(make_inputs(lowered, still)) == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_time_limit_is_kept_and_its_bound_is_a_bound(backend):
    asked = question(hidden=(40, 40))
    rows = [SCHEMA.row(point) for point in SCHEMA.sample(1, np.random.default_rng(5))]
    ask = Explainer(asked.model).explain_many
    full = ask(rows, target=1, method=BigM(backend="highs" if "gurobi" not in BACKENDS else "gurobi"))
    cut = ask(rows, target=1, method=BigM(backend=backend), limits=Limits(seconds=0.02))
    assert cut.seconds < 2.0
    assert cut[0].lower <= full[0].upper + 1e-9
    assert not isinstance(cut[0], Within) or "limit" in cut[0].note
