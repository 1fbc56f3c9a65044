"""Products by blocks of rows are the products."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly.model.products import LARGE, SMALL, rows_times


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("rows", "outputs", "inputs"),
    [
        (1, 10, 53),
        (SMALL // 530, 10, 53),
        (SMALL // 530 + 1, 10, 53),
        (1000, 50, 53),
        (3 * (SMALL // 2500), 50, 50),
        (40, LARGE // 8, 9),
        (0, 10, 53),
    ],
)
def test_blocks_are_the_whole(rows: int, outputs: int, inputs: int) -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=(rows, inputs)), rng.normal(size=(outputs, inputs))
    assert rows_times(values, weight) == pytest.approx(values @ weight.T, rel=1e-12, abs=1e-12)
    assert rows_times(values[::-1], weight) == pytest.approx(values[::-1] @ weight.T, rel=1e-12, abs=1e-12)


def test_each_row_may_have_a_product_of_its_own() -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=(2000, 1, 20)), rng.normal(size=(30, 20))
    assert rows_times(values, weight) == pytest.approx(values @ weight.T, rel=1e-12, abs=1e-12)
