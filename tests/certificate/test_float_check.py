"""The checker's arithmetic in floating point, step by step beside the checker's own, on random regions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certificate.far_problems import far_problem, tie_problem
from ifonly.certificate.check.box import Box
from ifonly.certificate.check.checker import radius_of
from ifonly.certificate.check.region import Region
from ifonly.certificate.check.schema import StatedChoice
from ifonly.certificate.check.statement import read_statement
from ifonly.certificate.check.tree_walk import TreeWalk
from ifonly.certifying.compiled import FLOAT_CHECK
from ifonly.certifying.float_check.bounds import bound_hidden
from ifonly.certifying.float_check.layout import CLOSED, EMPTY, FIRST, FORCED, ROW_SLACK, SOURCES
from ifonly.certifying.float_check.planes import most_of, plane
from ifonly.certifying.float_check.region import clip
from ifonly.certifying.float_check.tree import new_work
from ifonly.certifying.grids import grids
from ifonly.certifying.leaves import Leaves, NetworkFloats
from ifonly.certifying.multipliers import Planes
from ifonly.certifying.prover import sides
from ifonly.certifying.statement import hexes, question_data
from kernel_cache import cached
from oracles.random_problems import random_problem


@pytest.fixture(scope="module", autouse=True)
def ready() -> None:
    """As the writer of a proof has it, whichever test comes first."""
    FLOAT_CHECK.prepare()


@cached(SOURCES)
def look(q, low, high, mask, side, known, row, slope):
    """What becomes of a region; its bounds, the slacks, the slopes that were taken, and the most of a row."""
    w = new_work(q, len(mask), len(side), len(low), 1)
    w.low[0], w.high[0], w.mask[0], w.side[0] = low, high, mask, side
    became, value = EMPTY, 0.0
    items, budget = clip(q, w, 0)
    if items >= 0:
        became = bound_hidden(q, w, 0, items, budget, known)
    if became == CLOSED:
        for h in range(len(side)):
            if w.F[FORCED, h] >= 0.0:
                slope[h] = w.F[FORCED, h]
        constant = plane(q, w, row[0], row[1], row[2], slope, w.I[FIRST, items])
        value = most_of(q.norm, w.F, w.I, items, budget, constant, False)
    return became, w.bounds, w.F[ROW_SLACK].copy(), value


def problem(kind, seed):
    if kind == "random":
        question, points = random_problem(seed)
        return question, points[0]
    return (far_problem if kind == "far" else tie_problem)(seed)


def regions(kind, seed):
    """Statement, radius, bounds of the whole, floats, and random boxes."""
    rng = np.random.default_rng(seed)
    question, point = problem(kind, seed)
    asked = {**question_data(question), "factual": hexes(point)}
    statement = read_statement(asked, *grids(question, point))
    near = question.distance.between(question.schema, point, question.schema.sample(1, rng)[0])
    radius = radius_of(statement, None if rng.random() < 0.2 else float(near) * float(rng.uniform(0.2, 3.0)))
    known = TreeWalk(statement, radius).known
    if known is None:
        return
    leaves = Leaves(statement, NetworkFloats(statement), radius)
    leaves.learn(known)
    for _ in range(6):
        box = Box.whole(statement)
        for _ in range(int(rng.integers(0, 5))):
            box = sides(statement, box, random_split(rng, statement))[int(rng.integers(2))]
        yield rng, statement, Region(statement, box, radius, known), leaves, box


def random_split(rng, statement):
    if statement.layers > 1 and rng.random() < 0.6:
        layer = int(rng.integers(statement.layers - 1))
        return ["relu", layer, int(rng.integers(statement.sizes[layer]))]
    g = int(rng.integers(len(statement.schema)))
    if isinstance(feature := statement.schema.features[g], StatedChoice):
        return ["option", g, int(rng.integers(len(feature.options)))]
    domain = statement.domains[g]
    change = int(rng.uniform(domain.low, domain.high) / 2**statement.grid)
    return ["number", g, float(change).hex()]


KINDS = [(kind, first) for kind in ("random", "far", "tie") for first in range(0, 120, 40)]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "first"), KINDS)
def test_bounds_and_planes(kind, first):
    decided = near = 0
    for seed in range(first, first + 40):
        for rng, statement, region, leaves, box in regions(kind, seed):
            last, hidden = statement.layers - 1, statement.starts[-2]
            row = (last, int(rng.integers(statement.sizes[-1])), 1)
            slope = rng.integers(0, 2, hidden).astype(np.uint8)
            known = leaves.known.copy()
            became, bounds, room, value = look(
                leaves.proof_question, *leaves.floats_of(box.extent()), known, row, slope
            )
            if became == EMPTY:
                assert region.empty
            if became != CLOSED or region.empty:
                continue
            decided += 1
            exact = [(low / 2**statement.grid, high / 2**statement.grid) for b in region.bounds for low, high in b]
            for h, (low, high) in enumerate(exact):
                if low < 0.0 < high:  # of others the checker may not have looked for better ones
                    assert bounds[0, h] <= low and high <= bounds[1, h], (seed, h)
            a, constant, unit = region.plane(*row, sum(1 << h for h, bit in enumerate(slope) if bit))
            most = region.most(a, constant, unit) / 2 ** (unit + statement.grid)
            slack = room[hidden + row[1]]
            assert most <= value + slack, seed
            near += value <= most + slack  # else something is just within the ball for one of the two
    assert decided > 20 and near >= 0.9 * decided


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("kind", "first"), KINDS)
def test_the_best_answer(kind, first):
    """What y reaches is what the checker says can be reached at most; and y is in the box."""
    tried = 0
    for seed in range(first, first + 40):
        for rng, statement, region, _, _ in regions(kind, seed):
            if region.empty or not region.columns:
                continue
            planes = Planes(region)
            exact = [int(v) for v in rng.integers(-1000, 1001, len(region.columns))]
            a = np.array(exact, dtype=float)
            y = planes.answer(a)
            most = region.most(exact, 0, 0) / 2**statement.grid
            size = float(np.abs(a * planes.reach).sum())
            assert math.isclose(float(a @ y), most, rel_tol=1e-7, abs_tol=1e-9 * size), (seed, a @ y, most)
            for item in region.items:
                part = y[item.first : item.first + max(len(item.options), 1)]
                up, down = (1.0, 0.0) if item.options else (item.up / 2**statement.grid, item.down / 2**statement.grid)
                assert (part <= up * (1 + 1e-9)).all() and (part >= -down * (1 + 1e-9) - 1e-12).all()
            tried += 1
    assert tried > 20
