"""Does the program say what the network does?"""

import numpy as np
import pytest
from small import SCHEMA, person, question

from ifonly.problem import lower
from ifonly.solvers.common.bounds import BOUNDS, neuron_bounds
from ifonly.solvers.common.distance_box import known_row, within, within_distance
from ifonly.solvers.common.inputs import Person, make_inputs, read_point
from ifonly.solvers.common.repair import conditions
from ifonly.solvers.mip.program import formulate


@pytest.mark.parametrize("how", (*BOUNDS, "none"))
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf", "mixture"])
def test_a_row_and_its_activations_satisfy_the_program_at_the_cost_of_its_distance(norm, how):
    asked = question({"l0": 0.3, "l1": 0.7} if norm == "mixture" else norm)
    lowered = lower(asked)
    someone = person(lowered)
    bounds = neuron_bounds(lowered, someone, None, how)
    program = formulate(lowered, someone, np.array([-1e9]), bounds)
    form = program.form
    for point in SCHEMA.sample(200, np.random.default_rng(3)):
        values = solution(lowered, someone, program, bounds, point)
        assert (form.rows @ values <= form.limit + 1e-9).all()
        assert all(counts(when, values) for when in form.when)
        assert (values >= form.lower - 1e-9).all() and (values <= form.upper + 1e-9).all()
        cost = (form.cost @ values + form.square @ values**2) / program.scale + program.offset
        distance = asked.distance.between(SCHEMA, someone.factual, point)
        assert cost == pytest.approx(distance**2 if norm == "l2" else distance, abs=1e-12)
        assert read_point(lowered, someone, program.inputs, values[: len(program.inputs)]) == pytest.approx(point)


def counts(when, values):
    return values[when.binary] != when.value or when.row @ values[when.columns] <= when.limit + 1e-9


@pytest.mark.parametrize("how", (*BOUNDS, "none"))
def test_no_activation_but_the_networks_own_satisfies_the_program(how):
    lowered = lower(question())
    someone = person(lowered)
    bounds = neuron_bounds(lowered, someone, None, how)
    program = formulate(lowered, someone, np.array([-1e9]), bounds)
    form, rng = program.form, np.random.default_rng(5)
    points = SCHEMA.sample(20, rng)
    for point in points:
        values = solution(lowered, someone, program, bounds, point)
        neurons = np.arange(len(values) - 2 * program.unstable, len(values))
        for j in neurons:
            other = values.copy()
            other[j] = 1.0 - values[j] if form.integer[j] else values[j] + rng.choice([-1.0, 1.0]) * 1e-3
            possible = (form.rows @ other <= form.limit + 1e-6).all() and all(counts(when, other) for when in form.when)
            assert not (possible and other[j] >= form.lower[j]), (j, values[j], other[j])


def solution(lowered, someone, program, bounds, point):
    """The program's columns at a row, worked out by hand."""
    inputs, columns = program.inputs, lowered.unrolled(point)
    change = columns[inputs.plus] - inputs.base[inputs.plus]
    v = np.where(inputs.minus >= 0, columns[inputs.plus], change / inputs.unit)
    v = np.where(inputs.signed, v, np.maximum(v, 0.0))
    changed = [g for g in np.unique(inputs.feature) if lowered.numeric[g] and lowered.jump[g] > 0]
    extra = [float(point[g] != someone.factual[g]) for g in changed]
    if lowered.norm.value == "linf":
        extra.append(lowered.question.distance.between(SCHEMA, someone.factual, point) * program.scale)
    h, relu = columns, []
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


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("distance", [1e-7, 1e-3])
def test_the_box_of_a_distance_reaches_just_as_far(norm, distance):
    """Room for rounding must be relative: 1e-15 beside a squared distance of 1e-14 was a tenth of it."""
    lowered = lower(question(norm))
    someone = person(lowered)
    box = within_distance(lowered, someone, distance)
    for end in (box.lower, box.upper):
        moved = someone.factual.copy()
        moved[0] = end[0]
        assert lowered.question.distance.between(SCHEMA, someone.factual, moved) == pytest.approx(distance, rel=1e-8)
