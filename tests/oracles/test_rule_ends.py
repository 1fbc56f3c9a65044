"""Rules that hold only on the end of a range (`if Loss > 0 then Gain <= 0`), against one question per case."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from ifonly import Binary, Explainer, Integer, Network, Range, Real, Rule, Schema
from ifonly.model import network_model

QUESTIONS = 40


def drawn(seed: int) -> tuple[Explainer, dict[str, object]]:
    chance = np.random.default_rng(seed)
    schema = Schema([Real("gain", 0, 1000), Real("loss", 0, 50), Integer("age", 18, 90), Binary("owner")])
    scale = np.array([1e-3, 2e-2, 1e-2, 1.0])
    layers = [
        (chance.normal(size=(6, 4)) * scale, chance.normal(size=6)),
        (chance.normal(size=(1, 6)), chance.normal(size=1) - 0.5),
    ]
    explainer = Explainer(
        network_model(Network.of([(w.tolist(), b.tolist()) for w, b in layers]), schema, classes=("no", "yes"))
    )
    zero = chance.random(2) < 0.5
    row = {
        "gain": 0.0 if zero[0] else round(float(chance.uniform(0, 1000)), 2),
        "loss": 0.0 if zero[1] else round(float(chance.uniform(0, 50)), 2),
        "age": int(chance.integers(18, 91)),
        "owner": bool(chance.integers(2)),
    }
    return explainer, row


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("distance", ["l1", "l2", "linf", "l0"])
def test_an_end_of_a_range_is_reached_and_proven(distance: str) -> None:
    proven = 0
    for seed in range(QUESTIONS):
        explainer, row = drawn(seed)
        answer = explainer.explain(row, distance=distance, constraints=["if loss > 0 then gain <= 0"])
        cases = [
            explainer.explain(row, distance=distance, constraints=[Range(name, 0, 0)]) for name in ("gain", "loss")
        ]
        if not answer.changes and answer.upper == 0.0:
            continue  # decided as asked already
        best = min((case.upper for case in cases), default=np.inf)
        assert answer.lower <= best + 1e-9
        assert answer.upper == pytest.approx(best, rel=1e-4, abs=1e-9)
        if answer.counterfactual is not None:
            assert answer.counterfactual["loss"] == 0.0 or answer.counterfactual["gain"] == 0.0
        proven += answer.status in ("nearest", "none exists")
    assert proven > QUESTIONS // 3


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_a_row_on_an_equation_is_returned_to_the_last_digit(distance: str) -> None:
    """Of people with many digits: what a value changes by does not say it to the last digit, and the rule needs it."""
    schema, found = Schema([Real(name, -2, 3) for name in "xyz"]), 0
    for seed in range(QUESTIONS):
        chance = np.random.default_rng(seed)
        layers = [(chance.normal(size=(1, 3)), chance.normal(size=1))]
        explainer = Explainer(network_model(Network.of(layers), schema, classes=("no", "yes"))).using(reasons=False)
        row = dict(zip("xyz", chance.uniform(-1.9, 2.9, size=3).tolist(), strict=True))
        total = round(float(chance.uniform(-1, 3)), 2)
        answer = explainer.explain(row, distance=distance, constraints=[Rule(f"x + y <= {total} and x + y >= {total}")])
        after = answer.counterfactual
        if after is not None and answer.changes:
            assert Decimal(repr(after["x"])) + Decimal(repr(after["y"])) == Decimal(repr(total))
            found += 1
    assert found > QUESTIONS // 4
