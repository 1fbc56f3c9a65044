"""Numbers that no solver holds as they are: wide integers, tiny and huge weights. No method may prove what is false."""

import math

import numpy as np
import pytest

from ifonly import ClassTarget, Explainer, Integer, Network, Real, Schema
from ifonly.errors import UnsupportedQuestion
from ifonly.model import network_model
from ifonly.solvers.common import backends
from ifonly.solvers.common.backends.fitting import fits, fitted
from ifonly.solvers.common.backends.protocol import Form, NumberRange, Outcome, Settings, SolveStatus, When
from ifonly.solvers.mip import MipExp, MipObj

INSTALLED = [name for name in backends.BACKENDS if backends.available(name)]
METHODS = [kind(backend=name) for name in INSTALLED for kind in (MipObj, MipExp)]


def _name(method):
    return method.name


@pytest.mark.parametrize("method", METHODS, ids=_name)
@pytest.mark.parametrize("most", [10**6, 10**9, 10**12, 10**15])
def test_a_wide_integer_is_found(method, most):
    network = Network.of([([[1.0 / most]], [-0.5])])
    explainer = Explainer(network_model(network, Schema([Integer("income", 0, most)])))
    target = ClassTarget(1, margin=0.001)
    found = explainer.using(method).explain({"income": 3}, target=target)
    searched = explainer.explain({"income": 3}, target=target)
    assert found.counterfactual is not None
    assert found.lower <= searched.upper
    assert found.upper == pytest.approx(searched.upper, rel=1e-5)
    assert found.lower == pytest.approx(searched.upper, rel=1e-5)


@pytest.mark.parametrize("method", METHODS, ids=_name)
def test_a_huge_weight_before_a_tiny_one(method):
    network = Network.of([([[1e8], [1.0]], [0.0, 0.0]), ([[1e-11, 0.0]], [-5e-4])])
    explainer = Explainer(network_model(network, Schema([Real("x", 0, 1)])))
    target = ClassTarget(1, margin=0.0)
    found = explainer.using(method).explain({"x": 0.1}, target=target)
    assert found.lower <= 0.4 + 1e-9
    assert found.counterfactual is None or found.counterfactual["x"] == pytest.approx(0.5, rel=1e-4)


def _random_question(seed):
    rng = np.random.default_rng(seed)
    widths = 10.0 ** rng.integers(3, 16, 2)
    schema = Schema([Integer("a", 0, int(widths[0])), Integer("b", -int(widths[1]), int(widths[1])), Real("c", 0, 1)])
    size = np.array([1 / widths[0], 1 / widths[1], 1.0])
    middle = 10.0 ** rng.uniform(-9, 9)
    layers = [
        (middle * rng.normal(size=(4, 3)) * size, middle * 0.5 * rng.normal(size=4)),
        (rng.normal(size=(1, 4)) / middle, rng.normal(size=1) - 0.5),
    ]
    person = {"a": int(rng.integers(0, int(widths[0]))), "b": int(rng.integers(0, int(widths[1]))), "c": 0.5}
    return Explainer(network_model(Network.of(layers), schema)), person


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(6))
def test_random_wide_questions_contradict_no_one(seed, norm):
    explainer, person = _random_question(seed)
    model = explainer.model
    decision = int(model.decide(model.scores(np.array([list(person.values())], dtype=float)))[0])
    target = ClassTarget(1 - decision, margin=1e-3)
    searched = explainer.explain(person, target=target, distance=norm)
    for name in INSTALLED:
        found = explainer.using(MipObj(backend=name, bounds="backward")).explain(person, target=target, distance=norm)
        assert found.lower <= searched.upper, name
        assert searched.lower <= found.upper, name
        if math.isfinite(searched.upper) and searched.upper - searched.lower < 1e-5:
            assert found.upper <= searched.upper * (1 + 1e-4) + 1e-5, name


@pytest.mark.parametrize("seed", range(40))
def test_what_is_fitted_says_the_same(seed):
    """Every row of the old form is one of the new, at the same cost; read back, it is itself."""
    rng = np.random.default_rng(seed)
    lower = np.array([-(10.0 ** rng.integers(0, 11)), 0.0, -3.0, 0.0])
    upper = np.array([10.0 ** rng.integers(0, 11), 1.0, 10.0 ** rng.integers(0, 12), 1.0])
    integer = np.array([True, True, False, True])
    rows = rng.normal(size=(5, 4)) * 10.0 ** rng.integers(-14, 14, (5, 4))
    squared = np.array([rng.random() < 0.5, 0.0, rng.random() < 0.5, 0.0])
    when = When(binary=1, value=True, columns=np.array([0, 2]), row=rows[0, [0, 2]], limit=1.0)
    form = Form(
        cost=rng.random(4),
        square=squared,
        rows=rows,
        limit=rng.normal(size=5),
        lower=lower,
        upper=upper,
        integer=integer,
        when=(when,),
    )
    made = fitted(form, NumberRange(smallest=1e-9), "highs")
    new = made.form
    assert np.abs(new.rows).max() <= 1.0
    assert (np.abs(new.rows)[new.rows != 0.0] > 1e-9).all()
    assert fits(new, NumberRange(smallest=1e-9))
    for _ in range(50):
        v = rng.uniform(lower, upper)
        v = np.where(integer, np.round(v), v)
        again = _as_fitted(v, made, max(-lower[0], upper[0]))
        assert (again >= new.lower - 1e-12).all() and (again <= new.upper + 1e-12).all()
        assert _read(made, again).tolist() == v.tolist()
        objective = float(new.cost @ again + new.square @ again**2)
        assert objective == pytest.approx(made.factor * float(form.cost @ v + form.square @ v**2), rel=1e-12)
        for r in np.flatnonzero(form.rows @ v <= form.limit):
            assert new.rows[r] @ again <= new.limit[r] + 1e-9
        assert (new.rows[5:] @ again <= new.limit[5:] + 1e-9).all()
        if when.row @ v[when.columns] <= when.limit:
            assert new.when[0].row @ again[new.when[0].columns] <= new.when[0].limit + 1e-9


def _as_fitted(v, made, far):
    result = np.zeros(len(made.of))
    for j, value in enumerate(v):
        mine = np.flatnonzero(made.of == j)
        if len(mine) == 1:
            result[mine] = value / made.times[mine]
        left = int(value)
        for k in mine[::-1] if len(mine) > 1 else ():
            result[k], left = divmod(left, int(made.times[k]))
    for k in np.flatnonzero(made.of < 0):  # the value of the first column, in its unit
        result[k] = v[0] / 2.0 ** math.ceil(math.log2(far))
    return result


def _read(made, values):
    return made.outcome(Outcome(ending=SolveStatus.SOLVED, values=values)).values


@pytest.mark.parametrize("name", INSTALLED)
def test_what_cannot_be_held_is_refused(name):
    form = Form(
        cost=np.ones(2),
        square=np.zeros(2),
        rows=np.array([[1e300, -1.0]]),
        limit=np.zeros(1),
        lower=np.zeros(2),
        upper=np.array([1.0, np.inf]),
        integer=np.array([True, False]),
    )
    with pytest.raises(UnsupportedQuestion, match="Search"):
        backends.run(form, name, Settings())


@pytest.mark.parametrize("name", INSTALLED)
def test_small_entries_on_wide_columns_are_not_dropped(name):
    """1e-10 v >= 0.5, v whole up to 10^10: the least v is 5e9."""
    form = Form(
        cost=np.ones(1),
        square=np.zeros(1),
        rows=np.array([[-1e-10]]),
        limit=np.array([-0.5]),
        lower=np.zeros(1),
        upper=np.array([1e10]),
        integer=np.ones(1, dtype=bool),
    )
    outcome = backends.run(form, name, Settings())
    assert outcome.ending is SolveStatus.SOLVED
    assert outcome.values[0] == pytest.approx(5e9, rel=1e-7)
    assert outcome.bound <= 5e9
    assert outcome.bound == pytest.approx(5e9, rel=1e-6)
