"""What every backend must do. A backend that is not installed is left out, and says so."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from ifonly.errors import MissingExtra, QuestionError
from ifonly.methods import MipObj
from ifonly.solvers.common import backends
from ifonly.solvers.common.backends import scip
from ifonly.solvers.common.backends.protocol import Capability, Form, Settings, SolveStatus, When

INSTALLED = [name for name in backends.BACKENDS if backends.available(name)]
EACH = pytest.mark.parametrize("name", INSTALLED)


def knapsack(square=0.0):
    """min -3a - 4b (+ square c^2 - c) with a, b binary, a + b <= 1.5, c in [0, 2]."""
    return Form(
        cost=np.array([-3.0, -4.0, -1.0 if square else 0.0]),
        square=np.array([0.0, 0.0, square]),
        rows=np.array([[1.0, 1.0, 0.0]]),
        limit=np.array([1.5]),
        lower=np.zeros(3),
        upper=np.array([1.0, 1.0, 2.0]),
        integer=np.array([True, True, False]),
    )


@EACH
def test_optimum_and_bound(name):
    outcome = backends.get(name).solve(knapsack(), Settings())
    assert outcome.ending is SolveStatus.SOLVED
    assert outcome.values[:2] == pytest.approx([0.0, 1.0], abs=1e-8)
    assert outcome.bound == pytest.approx(-4.0, abs=1e-8)


@EACH
def test_squares(name):
    outcome = backends.get(name).solve(knapsack(square=1.0), Settings())  # c^2 - c is least at 1/2
    assert outcome.ending is SolveStatus.SOLVED
    assert outcome.values[2] == pytest.approx(0.5, abs=1e-3)
    assert outcome.bound == pytest.approx(-4.25, abs=1e-7)
    assert outcome.bound <= -4.25 + 1e-8


@EACH
def test_infeasible(name):
    form = knapsack()
    form.rows[:] = [[-1.0, -1.0, 0.0]]
    form.limit[:] = -2.5
    outcome = backends.get(name).solve(form, Settings())
    assert outcome.ending is SolveStatus.INFEASIBLE and outcome.bound == math.inf and outcome.values is None


@pytest.mark.parametrize("name", [n for n in INSTALLED if Capability.INDICATORS in backends.BACKENDS[n].capabilities])
@pytest.mark.parametrize("state", [False, True])
def test_rows_that_count_only_in_one_state(name, state):
    """a is dear when it is not in the state; in the state, c <= 0.5; c wants to be large."""
    when = When(binary=0, value=state, columns=np.array([2]), row=np.ones(1), limit=0.5)
    form = replace(knapsack(), cost=np.array([-9.0 if state else 9.0, 0.0, -1.0]), when=(when,))
    outcome = backends.get(name).solve(form, Settings())
    assert outcome.values[[0, 2]] == pytest.approx([float(state), 0.5], abs=1e-8)
    freed = backends.get(name).solve(replace(form, cost=np.array([0.0, 0.0, -1.0])), Settings())
    assert freed.values[2] == pytest.approx(2.0, abs=1e-8) and freed.values[0] == pytest.approx(
        float(not state), abs=1e-8
    )


@EACH
def test_a_linear_program(name):
    form = Form(
        cost=np.array([-1.0, -1.0]),
        square=np.zeros(2),
        rows=np.array([[1.0, 2.0], [2.0, 1.0]]),
        limit=np.array([2.0, 2.0]),
        lower=np.zeros(2),
        upper=np.ones(2),
        integer=np.zeros(2, dtype=bool),
    )
    outcome = backends.get(name).solve(form, Settings())
    assert outcome.bound == pytest.approx(-4.0 / 3.0, abs=1e-8)


def hard(seed=0, columns=250):
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 60, (12, columns)).astype(float)
    return Form(
        cost=-rng.integers(1, 60, columns).astype(float),
        square=np.zeros(columns),
        rows=rows,
        limit=np.floor(rows.sum(axis=1) / 3.0),
        lower=np.zeros(columns),
        upper=np.ones(columns),
        integer=np.ones(columns, dtype=bool),
    )


@EACH
def test_limits_are_kept_and_their_bound_is_a_bound(name):
    outcome = backends.get(name).solve(hard(), Settings(seconds=0.1))
    assert outcome.ending is SolveStatus.TIME
    if outcome.values is not None:
        assert outcome.bound <= hard().cost @ np.round(outcome.values) + 1e-6


@EACH
def test_enough_is_enough(name):
    backend = backends.get(name)
    assert Capability.ENOUGH in backend.capabilities
    outcome = backend.solve(hard(), Settings(seconds=600.0, enough=-100.0))
    assert outcome.ending is SolveStatus.ENOUGH
    assert hard().cost @ outcome.values <= -100.0 + 1e-6


def test_what_is_declared():
    for name, backend in backends.BACKENDS.items():
        assert backend.name == name
        assert isinstance(backend.capabilities, frozenset)
        assert backend.tolerances and all(0.0 < value <= 1e-8 for value in backend.tolerances.values())


def test_availability_never_raises_and_a_missing_backend_is_named(monkeypatch):
    assert not backends.available("cplex")
    with pytest.raises(QuestionError, match="There is no backend 'cplex'; choose one of highs, gurobi, scip"):
        backends.get("cplex")
    monkeypatch.setattr(backends, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install 'ifonly\[scip\]'"):
        backends.get("scip")


def test_a_package_that_does_not_load_is_named(monkeypatch):
    def broken(module):
        raise ImportError("libhighs.so.1: undefined symbol")

    monkeypatch.setattr(backends, "import_module", broken)
    with pytest.raises(
        QuestionError, match=r"'highspy' is installed and does not load \(libhighs.*use the method 'search'"
    ):
        backends.run(knapsack(), "highs", Settings())


def test_the_methods_import_no_solver():
    code = "import sys, ifonly.solvers.mip, ifonly.solvers.smt; print([m for m in ('highspy', 'gurobipy', 'pyscipopt', 'z3', 'scipy') "
    code += "if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert MipObj().name == "mip-obj" and MipObj(backend="scip").name == "mip-obj-scip"


@EACH
def test_squares_of_many_columns_need_few_rounds(name):
    """The nearest point of a plane, a binary in the way: by tangents at solutions alone 60 rounds did not end it."""
    rng = np.random.default_rng(3)
    normal = rng.uniform(0.5, 1.0, 6)
    form = Form(
        cost=np.append(np.zeros(6), 0.01),
        square=np.append(np.full(6, 0.5), 0.0),
        rows=-np.append(normal, 0.3)[None, :],
        limit=np.array([-1.0]),
        lower=np.append(-np.ones(6), 0.0),
        upper=np.ones(7),
        integer=np.arange(7) == 6,
    )
    outcome = backends.get(name).solve(form, Settings())
    values = [0.5 * (1.0 - 0.3 * on) ** 2 / (normal @ normal) + 0.01 * on for on in (0.0, 1.0)]
    assert outcome.ending is SolveStatus.SOLVED
    assert outcome.bound == pytest.approx(min(values), abs=1e-8) and outcome.bound <= min(values) + 1e-10
    assert form.square @ outcome.values**2 + form.cost @ outcome.values == pytest.approx(min(values), abs=1e-7)


@pytest.mark.skipif("scip" not in INSTALLED, reason="pyscipopt is not installed")
def test_scips_complaints_about_tolerances_are_not_shown_and_nothing_else_is_lost(capfd):
    with scip._without_tolerance_messages():
        os.write(
            2, b"Cannot set optimality tolerance to small value 1e-12 without GMP - using 1e-10.\nsomething else\n"
        )
    assert capfd.readouterr().err == "something else\n"
