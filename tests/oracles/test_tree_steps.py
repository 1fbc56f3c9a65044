"""Trees over numbers that move in steps: the search against the enumerator, for people on and off the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

from ifonly import Explainer, Integer, Ordinal, Real, Schema, import_model
from ifonly.methods import Enumerate

NORMS = ("l0", "l1", "l2", "linf")


def made(seed: int) -> tuple[Any, Schema, list[Any]]:
    rng = np.random.default_rng(seed)
    schema = Schema(
        [
            Real("price", 0.0, 0.5, step=0.01),
            Real("years", 0.0, 2.0, step="1/12"),
            Integer("n", 0, 3),
            Ordinal("grade", ["a", "b", "c"]),
        ]
    )
    points = np.column_stack([rng.uniform(0, 0.5, 200).round(3), rng.uniform(0, 2, 200), rng.integers(0, 4, 200),
                              rng.integers(0, 3, 200)])  # fmt: skip
    points[::2, 0] = points[::2, 0].round(2)
    encoded = schema.encode(points)
    weight = rng.normal(size=encoded.shape[1]) / encoded.std(axis=0).clip(1e-9)
    labels = (encoded @ weight + 0.3 * rng.normal(size=200) > np.median(encoded @ weight)).astype(int)
    model = (
        XGBClassifier(n_estimators=6, max_depth=3)
        if seed % 2
        else RandomForestClassifier(5, max_depth=3, random_state=seed)
    )
    fitted = model.fit(encoded, labels)
    return import_model(fitted, schema), schema, [schema.row(point) for point in points[:6]]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_what_the_enumerator_finds(seed: int) -> None:
    model, _, people = made(seed)
    explainer = Explainer(model)
    for k, row in enumerate(people):
        rules = [[], ["price only goes up"], ["at most 1 change"], ["years changes only with price"], ["n <= 2"],
                 ["price + n <= 2.5"]][k]  # fmt: skip
        asked: dict[str, Any] = {"distance": NORMS[(seed + k) % 4], "constraints": rules}
        ours, theirs = explainer.explain(row, **asked), explainer.using(Enumerate()).explain(row, **asked)
        assert ours.status == theirs.status, (seed, k, ours, theirs)
        assert ours.upper == pytest.approx(theirs.upper, rel=1e-9), (seed, k, ours, theirs)
