"""The forward pass of a network: the same scores for a row alone and among others."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import Network


def random_network(seed: int, sizes: tuple[int, ...]) -> Network:
    rng = np.random.default_rng(seed)
    return Network.of([(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in zip(sizes, sizes[1:], strict=False)])


@pytest.mark.parametrize("sizes", [(3, 1), (53, 10, 10, 1), (21, 50, 50, 3), (300, 40, 1)], ids=str)
def test_steady_scores_of_a_row_do_not_depend_on_its_company(sizes: tuple[int, ...]) -> None:
    network = random_network(1, sizes)
    x = np.random.default_rng(2).normal(size=(100, sizes[0]))
    together = network.steady_scores(x)
    assert together.shape == (100, sizes[-1])
    assert together == pytest.approx(network.scores(x), rel=1e-9, abs=1e-9)
    for first in range(100):
        for count in (1, 2, 7, 33):
            assert (network.steady_scores(x[first : first + count]) == together[first : first + count]).all()
