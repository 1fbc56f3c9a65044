"""People in and out of the kernels' arrays, compiled and in plain Python: what numpy says of it, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import random_distance, random_network, random_schema

from ifonly.compiling import plain
from ifonly.model import network_model
from ifonly.problem import ClassTarget, Question, lower
from ifonly.schema import Integer
from ifonly.solvers.search.batch import PackedQuestion
from ifonly.solvers.search.compiled import KERNELS, in_and_out, load_kernels
from ifonly.solvers.search.error_bounds import errors_everywhere
from ifonly.solvers.search.kernels.layout import LEAST, MOST
from ifonly.tolerances import DEFAULT


@pytest.fixture(params=["compiled", "plain"])
def kernels(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    load_kernels()
    if request.param == "plain":
        for name, function in plain(in_and_out()).items():
            monkeypatch.setattr(KERNELS.now, name, function)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("kernels")
def test_people_go_in_and_rows_come_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema = random_schema(rng)
    model = network_model(random_network(rng, schema, (4,)), schema)
    question = Question(model=model, target=ClassTarget(1), distance=random_distance(rng, schema, "l1"))
    lowered, points = lower(question), schema.sample(7, rng)
    packed, allowed = PackedQuestion.of(lowered, DEFAULT, records=False), lowered.domains(points)
    batch = packed.batch(allowed, errors_everywhere(lowered))

    weight, bias = lowered.layers[0]
    assert batch.people.z == pytest.approx(lowered.unrolled(points) @ weight.T + bias, rel=1e-12, abs=1e-12)
    steps = np.array([isinstance(feature, Integer) for feature in schema.features])
    for end, ends in ((LEAST, allowed.lower), (MOST, allowed.upper)):
        change = (ends - points) / packed.unit
        assert batch.people.box[:, end] == pytest.approx(np.where(steps, np.rint(change), change), rel=1e-12)

    others = schema.sample(7, rng)
    others[0], others[1] = np.where(lowered.numeric, allowed.lower[0], points[0]), points[1]
    others[2] = np.where(lowered.numeric, allowed.upper[2], points[2])
    for i in range(6):
        packed.put(batch, i, points[i], others[i])
    rows, found = packed.points(batch)
    assert found.tolist() == [True] * 6 + [False]
    assert (rows[[0, 1, 2]] == others[[0, 1, 2]]).all()  # ends are ends, and what stays is what it was, to the last bit
    assert rows[:6] == pytest.approx(others[:6], rel=1e-12)
    assert (rows[:, ~lowered.numeric | steps][:6] == others[:, ~lowered.numeric | steps][:6]).all()
    assert (rows[6] == points[6]).all()
