"""Integers whose coefficients are multiples of one number: their sum moves in whole steps, and the bound knows it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ifonly import ClassTarget, Distance, Explainer, Integer, Limits, Network, Schema
from ifonly.methods import Enumerate, Search


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("relu", [False, True])
def test_half_a_step_is_not_left_open(norm: str, relu: bool) -> None:
    schema = Schema([Integer(f"x{i}", 0, 10_000) for i in range(3)])
    layers = [([[2.0, 2.0, 2.0]], [-2687.0]), ([[1.0]], [-0.5])] if relu else [([[2.0, 2.0, 2.0]], [-2687.5])]
    answer = Explainer(Network.of(layers), schema=schema).explain(
        [7015, 977, 9946], target=ClassTarget(0), distance=norm, limits=Limits(nodes=2000)
    )
    assert answer.stop is None
    assert answer.status == "nearest"


@pytest.mark.long
def test_against_every_row() -> None:
    """Coefficients that are multiples, and some that only look like it, with margins at and between the steps."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        schema = Schema([Integer(f"x{i}", 0, int(rng.integers(2, 9))) for i in range(3)])
        unit = float(rng.choice([1.0, 0.1, 3.0, 1e-3]))
        weight = unit * rng.choice([1.0, -1.0, 2.0, 3.0, 2.5, 1.0 + 1e-9], 3)
        every = np.array(list(itertools.product(*(range(int(f.upper) + 1) for f in schema.features))), dtype=float)
        value = float(rng.choice(every @ weight)) + float(rng.choice([0.0, 0.5, 1e-7, -1e-7])) * unit
        network = Network.of([([weight.tolist()], [-value])])
        if rng.random() < 0.5:
            network = Network.of([([weight.tolist()], [-value + 50.0]), ([[1.0]], [-50.0])])
        norm = str(rng.choice(["l0", "l1", "l2", "linf"]))
        distance = Distance(norm, weights={"x0": float(rng.choice([1.0, 2.0]))})
        explainer = Explainer(network, schema=schema)
        row = schema.row(every[rng.integers(len(every))])
        for target in (0, 1):
            looked, found = (
                explainer.using(how).explain(row, target=ClassTarget(target, 1e-9), distance=distance)
                for how in (Enumerate(), Search(table_rows=0))
            )
            assert found.lower <= looked.upper * (1.0 + 1e-9), (seed, target)
            if looked.status in ("nearest", "none exists"):
                assert found.status == looked.status, (seed, target)
                assert found.upper == pytest.approx(looked.upper, rel=1e-6), (seed, target)
