"""The search for networks with smooth activations: against every row of finite spaces, and against sampled rows.

`IFONLY_SMOOTH_SEEDS` asks more questions than the suite does.
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from comparison import answers, disagreements
from random_smooth import ACTIVATIONS, random_smooth_problem

from ifonly.problem import Question
from ifonly.results import Claim, Limits
from ifonly.schema import Real
from ifonly.solvers.search import Enumerate, Search

SEEDS = int(os.environ.get("IFONLY_SMOOTH_SEEDS", "12"))
SEARCH = Search(table_rows=0)
PROBING = Search(table_rows=0, probing="always")
SAMPLES = 2_000
every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)
either_way = pytest.mark.parametrize("search", [SEARCH, PROBING], ids=["by rule", "probing"])


@pytest.mark.long(keep=3)
@every_activation
@either_way
@pytest.mark.parametrize("ruled", [False, True], ids=["plain", "ruled"])
def test_agrees_with_the_enumerator(activation: str, ruled: bool, search: Search) -> None:
    wrong = []
    for seed in range(3000, 3000 + SEEDS):
        made = random_smooth_problem(seed, activation, finite=True, ruled=ruled)
        if made is not None:
            found = disagreements(answers(*made, search), answers(*made, Enumerate()))
            wrong += [f"random_smooth_problem({seed}, {activation!r}, ruled={ruled}): {said}" for said in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long(keep=1)
@every_activation
@either_way
@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_no_sampled_row_is_nearer(activation: str, single: bool, search: Search) -> None:
    """Rows that the original accepts are not nearer than `lower_any_rounding`; those whose exact score is as sure as the answer's are
    not nearer than `lower`."""
    kinds = set()
    for seed in range(4000, 4000 + SEEDS):
        made = random_smooth_problem(seed, activation, ruled=seed % 3 == 0, single=single)
        if made is None:
            continue
        question, people = made
        for factual, claim in zip(people, search.prepare(question).solve(people, Limits(nodes=3_000)), strict=True):
            kinds.add((claim.point is None, claim.stop is None))
            assert not nearer(question, factual, claim, np.random.default_rng(seed)), f"seed {seed}"
    assert (False, True) in kinds


def nearer(question: Question, factual: np.ndarray, claim: Claim, rng: np.random.Generator) -> str:
    """What contradicts a claim: a sampled row, or its own."""
    if claim.point is not None and claim.lower > question.measure.between(factual, claim.point) * (1.0 + 1e-9):
        return "the bound is above the row"
    rows = sampled(question, factual, claim.point, rng)
    distance = question.measure.between(factual, rows)
    c, d = question.conditions
    score_margin = (question.model.scores(rows) @ c.T - d - question.target.margin).min(axis=1)
    lower_any_rounding = -math.inf if claim.lower_any_rounding is None else claim.lower_any_rounding
    broken = (question.score_margin(rows)[0] >= claim.rounding_bound) & (distance < claim.lower * (1.0 - 1e-9) - 1e-12)
    broken |= (score_margin >= 0.0) & (distance < lower_any_rounding * (1.0 - 1e-9) - 1e-12)
    for row in rows[broken]:
        if question.allows(factual, row) is None:
            return f"{row.tolist()} is nearer than {claim.lower} or {claim.lower_any_rounding}"
    return ""


def sampled(question: Question, factual: np.ndarray, point: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Rows of the schema, most of them near the factual or near the answer."""
    features = question.schema.features
    real = np.array([isinstance(f, Real) and f.grid is None for f in features])
    rows = question.schema.sample(SAMPLES, rng)
    rows = np.where(rng.random(rows.shape) < rng.choice([0.2, 0.5, 0.8], (SAMPLES, 1)), factual, rows)
    rows = np.where(
        real & (rng.random((SAMPLES, 1)) < 0.7), factual + rng.random((SAMPLES, 1)) * (rows - factual), rows
    )
    if point is not None:
        half = SAMPLES // 2
        widths = np.array([getattr(f, "width", 1.0) for f in features])
        moved = rng.choice([1e-5, 1e-3, 0.03], (half, 1)) * rng.normal(size=(half, len(features))) * widths
        near = np.where(real, point + moved, point)
        rows[:half] = np.where(rng.random(near.shape) < 0.15, factual, near)
    low, high = ([getattr(f, end, fill) for f in features] for end, fill in (("lower", -np.inf), ("upper", np.inf)))
    return np.clip(rows, low, high)


def test_a_row_that_is_sure_by_next_to_nothing_is_found() -> None:
    """A saturated network: the only sure row is above the margin by 3e-9 of a score that goes up to 4."""
    made = random_smooth_problem(3067, "tanh", finite=True)
    assert made is not None
    ours = answers(*made, SEARCH)
    assert ours[1].status == "nearest" and not list(disagreements(ours, answers(*made, Enumerate())))
