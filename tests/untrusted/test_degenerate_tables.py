"""A correlated cost from tables that say little: a cost that is finite and right, or a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ifonly import Categorical, Real, Schema
from ifonly.errors import QuestionError, RowError
from ifonly.plausibility import Mahalanobis

WIDE = Schema([Real("a", -0.5e308, 0.5e308), Real("b", -1e9, 1e9)])
TABLES: dict[str, Any] = {
    "one row": [[1, 2]],
    "one row twice": [[1, 2], [1, 2]],
    "a constant column": [[1, 2], [1, 3], [1, 5]],
    "collinear": [[i, 2 * i] for i in range(9)],
    "huge": [[4e307, 1], [-4e307, 1], [0, 2]],
    "large": [[1e200, 1], [-1e200, 1], [0, 2]],
    "tiny": [[1e-200, 1], [0, 2]],
    "the least numbers": [[5e-324, 1], [0, 2]],
    "far from zero": [[1e16, 1], [1e16 + 2, 1]],
}


@pytest.mark.parametrize("ridge", [1e-3, 1e-17, 1e-320, 1e300])
@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str, ridge: float) -> None:
    try:
        cost = Mahalanobis.of(WIDE, TABLES[name], ridge=ridge)
    except QuestionError as error:
        assert "ridge" in str(error) or "numbers" in str(error)
        assert ridge != 1e-3 or name == "the least numbers"
        return
    assert np.isfinite(cost.factor).all() and np.isfinite(cost.reach).all()
    rows = np.array(TABLES[name], dtype=np.float64)
    moved = rows[0] + np.array([0.0, 1.0])
    price = cost.between(rows[0], moved)
    assert price > 0.0
    for constraint in cost.box(rows[0], price):  # a change that costs this much is inside the box of this cost
        number = moved[WIDE.index(constraint.feature)]
        assert constraint.lower <= number <= constraint.upper  # type: ignore[union-attr]


def test_nothing_to_learn_from() -> None:
    with pytest.raises(QuestionError, match="without rows"):
        Mahalanobis.of(WIDE, [])
    with pytest.raises(RowError, match="'a' has no value in row 0"):
        Mahalanobis.of(WIDE, [[np.nan, 1.0]])
    with pytest.raises(QuestionError, match="Nothing can change"):
        Mahalanobis.of(Schema([Categorical("c", ["x"])]), [["x"]])
