"""Several smooth models as one network: activations side by side, powers among them, of any depth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ifonly import Network, Real, Schema
from ifonly.model import network_model
from ifonly.model.joint import joint_model
from ifonly.model.smooth import SmoothNetwork
from ifonly.model.smooth.activations import RELU, Activation, SideBySide

ACTIVATIONS = [RELU, *(Activation(name) for name in ("tanh", "softplus", "gelu", "silu", "elu")),
               *(Activation("power", p) for p in (-1.0, 0.0, 0.5, 2.0))]  # fmt: skip
SCHEMA = Schema([Real(name, -5, 20) for name in "abc"])


def drawn(rng: np.random.Generator) -> SmoothNetwork:
    sizes = [3, *rng.integers(2, 5, size=int(rng.integers(1, 4))).tolist(), 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in itertools.pairwise(sizes)]
    activations: list[Activation | SideBySide] = []
    for width in sizes[1:-1]:
        first, second = (ACTIVATIONS[k] for k in rng.integers(0, len(ACTIVATIONS), size=2))
        activations.append(first if rng.random() < 0.3 else SideBySide(((first, 1), (second, width - 1))))
    return SmoothNetwork(Network.of(layers), activations)


@pytest.mark.parametrize("seed", range(30))
def test_the_scores_are_those_of_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    models = [network_model(drawn(rng), SCHEMA, classes=("no", "yes")) for _ in range(2)]  # type: ignore[arg-type]
    joint = joint_model(models).function
    x = rng.uniform(-5, 20, size=(50, 3))
    network = joint.as_smooth_network()
    assert network is not None
    np.testing.assert_allclose(network.scores(x), joint.scores(x), rtol=1e-9, atol=1e-9)
