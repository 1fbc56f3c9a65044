"""The reference cases: every optimum that another solver found, reproduced and proven nearest, for all norms and rows."""

from __future__ import annotations

import numpy as np
import pytest

from cases import CASES, NORMS, load
from ifonly import ClassTarget, Explainer, Nearest
from ifonly.methods import Search

TOLERANCE = 1e-6


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("case", CASES, ids="_".join)
def test_reference_optima(case: tuple[str, str, str], norm: str) -> None:
    model, points, optima = load(*case)
    rows = [model.schema.row(point) for point in points]
    answers = (
        Explainer(model)
        .using(Search(table_rows=0))
        .explain_many(rows, target=ClassTarget(1, margin=0.0), distance=norm)
    )
    assert {type(answer) for answer in answers} == {Nearest}
    found = np.array([model.schema.read(answer.counterfactual) for answer in answers])
    assert (model.scores(found)[:, 0] > 0.0).all()
    known = optima.get(norm, np.zeros(0))
    upper = np.array([answer.upper for answer in answers])[: len(known)]
    lower = np.array([answer.lower for answer in answers])[: len(known)]
    there = ~np.isnan(known)
    assert there.any() or "2x50" in case
    assert np.abs(upper - known)[there].max(initial=0.0) <= TOLERANCE
    assert (np.abs(upper - known) <= TOLERANCE * np.maximum(known, 1e-4))[there].all()  # also relative to small ones
    assert (lower <= known + 1e-9)[there].all()


@pytest.mark.parametrize(
    "case", [("compas", "2x10", "norm"), ("credit", "2x10", "norm"), ("adult", "2x10", "norm")], ids="_".join
)
def test_reference_optima_with_a_margin(case: tuple[str, str, str]) -> None:
    model, points, optima = load(*case, margin=0.1)
    assert optima, "no optima at this margin"
    for norm, known in optima.items():
        rows = [model.schema.row(point) for point in points[: len(known)]]
        answers = Explainer(model).explain_many(rows, target=ClassTarget(1, margin=0.1), distance=norm)
        there = ~np.isnan(known)
        assert {type(answer) for answer in answers} == {Nearest}
        assert np.abs(np.array([answer.upper for answer in answers]) - known)[there].max() <= TOLERANCE
