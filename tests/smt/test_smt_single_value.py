"""A number that a constraint leaves one value, other than the person's own, is read back as that value."""

from __future__ import annotations

import pytest

from ifonly import Explainer, Integer, Network, Range, Real, Schema
from ifonly.methods import Mace, MipSat
from ifonly.model import network_model

pytest.importorskip("z3")


@pytest.mark.parametrize("method", [MipSat(), Mace()], ids=["reduced", "plain"])
def test_a_number_with_one_value_left(method) -> None:
    schema = Schema([Real("age", 17, 18), Integer("years", 0, 5)])
    network = Network.of([([[1.0, 1.0], [0.0, 1.0]], [-18.0, 0.0]), ([[1.0, 1.0]], [-3.0])])
    explainer = Explainer(network_model(network, schema, classes=("no", "yes")))
    for person in ({"age": 17.0, "years": 0}, {"age": 17.4, "years": 1}):
        found, expected = (
            explainer.using(m).explain(person, target="yes", constraints=[Range("age", 18, 18)]) for m in (method, None)
        )
        assert found.counterfactual == expected.counterfactual == {"age": 18.0, "years": 2}
        assert found.status == expected.status == "nearest"
