"""Boxes cut with balls, and their compact form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference_kernels
from harness import DISTANCES, IDS, compiled, random_node

from ifonly.solvers.search.kernels import layout, node
from ifonly.solvers.search.kernels.layout import CHOICE, INTEGER, MAXIMUM, SQUARED, START, X

SEEDS = range(25)
every_distance = pytest.mark.parametrize("norm", DISTANCES, ids=IDS)


@pytest.mark.long(keep=1)
@every_distance
def test_costs_are_the_distance(norm) -> None:
    """`cost_of`, the reference in the harness and the definition of the distance agree."""
    for seed in SEEDS:
        box = random_node(seed, norm, ball=False).clip()
        question = box.lowered.question
        for x in box.sample(20, np.random.default_rng(seed), inside=False):
            box.F[X, : len(x)] = x
            cost = compiled(node.cost_of)(box.pack, box.person.cost, box.F[X])
            distance = math.sqrt(cost) if box.norm == SQUARED else cost
            assert cost == pytest.approx(box.cost(x[None, :])[0], rel=1e-12)
            between = question.distance.between(question.schema, box.allowed.factual[0], box.point(x))
            assert distance == pytest.approx(between, rel=1e-9, abs=1e-12)


@every_distance
def test_the_base_is_the_cheapest_point(norm) -> None:
    for seed in SEEDS:
        box = random_node(seed, norm, ball=False).clip()
        x = box.sample(300, np.random.default_rng(seed), inside=False)
        assert box.base_cost == pytest.approx(box.cost(box.base[None, :])[0], rel=1e-14)
        assert (box.cost(x) >= box.base_cost * (1.0 - 1e-14)).all()


@every_distance
def test_clipping_loses_no_point_of_the_ball(norm) -> None:
    for seed in SEEDS:
        box = random_node(seed, norm)
        x = box.sample(500, np.random.default_rng(seed), inside=False)
        x = x[box.cost(x) <= box.budget]
        box.clip()
        numbers = box.kinds() != CHOICE
        assert (x >= box.lo)[:, numbers].all()
        assert (x <= box.hi)[:, numbers].all()
        for g in np.flatnonzero(~numbers):
            assert box.mask[box.pack.index[START, g] + x[:, g].astype(int)].all()


@every_distance
def test_clipping_leaves_nothing_outside_in_any_coordinate(norm) -> None:
    """Every end that is left, with all other features at the base, is a point of the ball (up to the outward grain)."""
    for seed in SEEDS:
        box = random_node(seed, norm).clip()
        for g, kind in enumerate(box.kinds()):
            first = box.pack.index[START, g]
            values = (
                np.flatnonzero(box.mask[first : box.pack.index[START, g + 1]])
                if kind == CHOICE
                else [box.lo[g], box.hi[g]]
            )
            for value in values:
                x = box.base.copy()
                x[g] = value
                assert box.cost(x[None, :])[0] <= box.budget * (1.0 + 1e-9)
                assert kind != INTEGER or value == round(value)


@every_distance
def test_an_empty_box_or_ball_is_seen(norm) -> None:
    for seed in SEEDS:
        box = random_node(seed, norm, ball=False).clip()
        if box.base_cost > 0.0:
            box.budget = 0.999 * box.base_cost
            assert box.clip().base_cost == math.inf
        box = random_node(seed, norm, ball=False)
        if (box.kinds() != CHOICE).any():
            g = int(np.argmax(box.kinds() != CHOICE))
            box.lo[g], box.hi[g] = 1.0, 0.0
        else:
            box.mask[: box.pack.index[START, 1]] = 0
        assert box.clip().base_cost == math.inf


def test_an_integer_may_have_no_limit_under_l0() -> None:
    """Under l0 a number that may move at all may move to any end: its reach is infinite, also rounded to whole steps."""
    seen = 0
    for seed in range(200):
        box = random_node(seed, "l0", whole=True)
        integers = np.flatnonzero(box.kinds() == INTEGER)
        box.budget = 1e3
        low, high = box.lo.copy(), box.hi.copy()
        box.clip()
        assert (box.lo == low).all()
        assert (box.hi == high).all()
        seen += len(integers)
    assert seen > 50


@every_distance
def test_compact_columns_are_the_first_layer(norm) -> None:
    for seed in SEEDS:
        box = random_node(seed, norm).make_compact()
        x = box.sample(100, np.random.default_rng(seed))
        constant, weight = reference_kernels.compact_first_layer(box)
        full, bias = box.lowered.layers[0]
        expected = box.lowered.unrolled(box.point(x)) @ full.T + bias
        size = np.abs(box.lowered.unrolled(box.point(x))) @ np.abs(full).T + np.abs(bias)
        assert (np.abs(constant + box.compact_columns(x) @ weight.T - expected) <= 1e-13 * size.max()).all()


@pytest.mark.long(keep=1)
@every_distance
def test_items_say_what_moving_costs(norm) -> None:
    """From the base, each feature alone: rate, jump and offset (or an option's price) give the cost of every value."""
    for seed in SEEDS:
        box = random_node(seed, norm).make_compact()
        live = set()
        for item, g in zip(reference_kernels.items_of(box), box.I[layout.FEATURE, : box.items], strict=True):
            live.add(int(g))
            for x in box.sample(20, np.random.default_rng(seed), inside=False):
                alone = box.base.copy()
                alone[g] = x[g]
                y = box.compact_columns(alone[None, :])[0, item.columns]
                own, before = box.costs(alone[None, :])[0, g], box.costs(box.base[None, :])[0, g]
                if item.kind == CHOICE:
                    extra = float(item.prices @ y)
                    said = extra if box.norm != MAXIMUM or not y.any() else extra - before
                elif box.norm == SQUARED:
                    said = (item.rate * abs(y[0]) + item.offset) ** 2 - item.offset**2
                else:
                    said = (item.jump if y[0] else 0.0) + item.rate * abs(y[0])
                assert said == pytest.approx(own - before, rel=1e-9, abs=1e-12)
                if item.kind != CHOICE:
                    assert -item.down * (1.0 + 1e-12) <= y[0] <= item.up * (1.0 + 1e-12)
        for g, kind in enumerate(box.kinds()):  # what is not an item cannot move
            if g not in live:
                first, last = box.pack.index[START, g : g + 2]
                assert box.mask[first:last].sum() == 1 if kind == CHOICE else box.lo[g] == box.hi[g]


def test_farthest_cost() -> None:
    for seed in SEEDS:
        box = random_node(seed, "linf").make_compact()
        far = compiled(node.farthest_cost)(box.items, box.F, box.I)
        assert (
            box.cost(box.sample(300, np.random.default_rng(seed), inside=False))
            <= max(far, box.base_cost) * (1.0 + 1e-12)
        ).all()
