"""Forests under causes where derived features are eliminated: what is asked with them is asked without, and the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from ifonly import CausalModel, ClassTarget, Distance, Explainer, Integer, Real, Schema, import_model
from ifonly.answering import prepared_methods
from ifonly.causes import LinearEquation
from ifonly.problem.rules.derived import Derived
from ifonly.solvers.search.trees import person_search

COUNT = Derived("twice", "2 * count + 1")


def asked(seed: int) -> Any:
    """A forest of five trees, what follows is real or whole, and of two more features one follows by definition: the
    cheapest action."""
    rng = np.random.default_rng([seed, 19])
    whole = rng.random(3) < 0.3
    first = [Integer(f"x{g}", -2, 3) if whole[g] else Real(f"x{g}", -2.0, 3.0) for g in range(3)]
    schema = Schema([*first, Integer("count", 0, 4), Integer("twice", 0, 9)])
    equations = {
        "x1": LinearEquation({"x0": float(rng.normal())}),
        "x2": LinearEquation({"x1": float(rng.normal()), "count": 0.5 * float(rng.normal())}),
    }
    causes = CausalModel(schema, equations, holding=float(rng.choice([0.0, 0.01, 0.3])))
    points = rng.uniform(-2.0, 3.0, (150, 5))
    points[:, :3] = np.where(whole, np.round(points[:, :3]), points[:, :3])
    points[:, 3] = rng.integers(0, 5, 150)
    points[:, 4] = 2.0 * points[:, 3] + 1.0
    score = points @ rng.normal(size=5)
    labels = np.where(score > np.median(score), "yes", "no")
    fitted = RandomForestClassifier(5, max_depth=3, random_state=seed).fit(schema.encode(points), labels)
    model, point = import_model(fitted, schema), points[int(rng.integers(150))]
    other = model.classes[1 - int(model.decide(model.scores(point[None, :]))[0])]
    return (
        Explainer(model)
        .using(reasons=False)
        .recourse(
            schema.row(point),
            causes,
            target=ClassTarget(other),
            distance=Distance(str(rng.choice(["l1", "l2", "linf"]))),
            constraints=[COUNT],
        )
    )


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("block", range(4))
def test_the_cheapest_action_does_not_depend_on_elimination(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 9 once had an answer that was no nearest one: a real number that follows kept its value."""
    told, nearest = [], person_search.Narrowing.nearest

    def counted(self: Any, *of: Any) -> Any:
        known = nearest(self, *of)
        told.append(known is not None)
        return known

    monkeypatch.setattr(person_search.Narrowing, "nearest", counted)
    for seed in range(12 * block, 12 * (block + 1)):
        ours = asked(seed)
        with monkeypatch.context() as without:
            without.setattr(prepared_methods, "eliminated", lambda _: None)
            theirs = asked(seed)
        assert ours.status == theirs.status == "nearest", seed
        assert abs(ours.cost - theirs.cost) <= 1e-6 * (1.0 + theirs.cost), seed
    assert any(told)
