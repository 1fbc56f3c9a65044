"""The closed forms against their reference kernels, against sampled points, and against points that attain them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference_kernels
from harness import DISTANCES, IDS, Node, compiled, random_node

from ifonly.solvers.search.kernels import closed_forms, layout
from ifonly.solvers.search.kernels.layout import ADDITIVE, CHOICE, MAXIMUM, REAL

SEEDS = range(25)


def node_and_plane(seed: int, norm, **options) -> tuple[Node, np.ndarray, np.random.Generator]:
    """A compact node and a linear function of its columns, some coefficients zero."""
    node = random_node(seed, norm, hidden=(3,), **options).make_compact()
    rng = np.random.default_rng([seed, 1])
    a = np.zeros(node.F.shape[1])
    a[: node.width] = rng.normal(size=node.width) * (rng.random(node.width) < 0.85)
    for item in reference_kernels.items_of(node):  # a number's coefficient is in its own unit
        if item.kind != CHOICE:
            a[item.columns] /= max(item.up + item.down, 1e-9)
    return node, a, rng


def offsets(node: Node) -> np.ndarray:
    return node.F[layout.OFFSET, : node.items].copy()


def kernel_gains(node: Node, a: np.ndarray, sign: float = 1.0) -> float:
    return compiled(closed_forms.item_gains)(a, sign, node.items, node.F, node.I)


def kernel_most(node: Node, budget: float, total: float) -> float:
    return compiled(closed_forms.most_gain)(node.norm, node.items, budget, total, node.F, node.I)


@pytest.mark.long
@pytest.mark.parametrize("norm", DISTANCES, ids=IDS)
def test_item_gains(norm) -> None:
    for seed in SEEDS:
        node, a, _ = node_and_plane(seed, norm)
        for sign in (1.0, -1.0):
            total = kernel_gains(node, a, sign)
            gains, ratios = reference_kernels.item_gains(reference_kernels.items_of(node), sign * a, node.norm)
            assert node.F[layout.GAIN, : node.items] == pytest.approx(gains, rel=1e-14)
            assert node.F[layout.RATIO, : node.items] == pytest.approx(ratios, rel=1e-14)
            assert total == pytest.approx(gains.sum(), rel=1e-14)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", DISTANCES, ids=IDS)
def test_most_gain_is_never_beaten(norm) -> None:
    for seed in SEEDS:
        node, a, rng = node_and_plane(seed, norm)
        total = kernel_gains(node, a)
        most = kernel_most(node, node.budget - node.base_cost, total)
        gained = node.compact_columns(node.sample(400, rng)) @ a[: node.width]
        assert gained.max(initial=0.0) <= most + 1e-12 * (1.0 + total)
        assert most <= total * (1.0 + 1e-15)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", DISTANCES, ids=IDS)
def test_most_gain_is_the_optimum_of_its_program(norm) -> None:
    loose = []
    for seed in range(2 * len(SEEDS)):
        node, a, _ = node_and_plane(seed, norm)
        total = kernel_gains(node, a)
        gains, ratios = reference_kernels.item_gains(reference_kernels.items_of(node), a, node.norm)
        for budget in (math.inf, node.budget - node.base_cost, 0.1 * (node.budget - node.base_cost), 1e-9):
            most = kernel_most(node, budget, total)
            if node.norm == MAXIMUM or math.isinf(budget):
                assert most == total
                continue
            best = reference_kernels.most_gain(gains, ratios, offsets(node), node.norm, budget)
            assert most >= best - 1e-9 * (1.0 + total)
            loose.append(most > best * (1.0 + 1e-6) + 1e-9)
    # l2: any multiplier is valid, and a few steps nearly always find the best
    assert not any(loose) if node.norm == ADDITIVE else np.mean([*loose, False]) <= 0.1


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_most_gain_of_numbers_is_attained(norm) -> None:
    """Spend the budget on numbers as the reference says: a real point of box and ball gains what the kernel says is the most."""
    loose = []
    for seed in range(2 * len(SEEDS)):
        node, a, _ = node_and_plane(seed, norm, numbers=True)
        items, budget = reference_kernels.items_of(node), node.budget - node.base_cost
        gains, ratios = reference_kernels.item_gains(items, a, node.norm)
        most = kernel_most(node, budget, kernel_gains(node, a))
        g = reference_kernels.best_gains(gains, ratios, offsets(node), node.norm, budget)
        x = node.base.copy()
        for k, item in enumerate(items):
            if g[k] > 0.0:
                x[node.I[layout.FEATURE, k]] += g[k] / a[item.columns][0]
        assert node.cost(x[None, :])[0] <= node.budget * (1.0 + 1e-9)
        gained = float((node.compact_columns(x[None, :]) @ a[: node.width])[0])
        assert gained <= most * (1.0 + 1e-9)
        loose.append(most > gained * (1.0 + 1e-6) + 1e-12)
    assert not any(loose) if norm == "l1" else np.mean(loose) <= 0.1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", [d for d in DISTANCES if d != "linf"], ids=[i for i in IDS if i != "linf"])
def test_least_cost(norm) -> None:
    for seed in SEEDS:
        node, a, rng = node_and_plane(seed, norm)
        total = kernel_gains(node, a)
        gains, ratios = reference_kernels.item_gains(reference_kernels.items_of(node), a, node.norm)
        x = node.sample(400, rng, inside=False)
        gained, cost = node.compact_columns(x) @ a[: node.width], node.cost(x) - node.base_cost
        for need in (-1.0, 0.0, 1e-9 * total, 0.3 * total, 0.9 * total, total * (1.0 - 1e-9), 1.1 * total + 1e-9):
            kernel_gains(node, a)
            least = compiled(closed_forms.least_cost)(node.norm, node.items, need, node.F)
            best = reference_kernels.least_cost(gains, ratios, offsets(node), node.norm, need)
            assert least == pytest.approx(best, rel=1e-7, abs=1e-9)
            assert least <= cost[gained >= need].min(initial=math.inf) + 1e-12
            if 0.0 < need <= total:  # what each item takes is within its reach, and adds up
                take = node.F[layout.TAKE, : node.items]
                assert (take <= gains * (1.0 + 1e-12)).all()
                assert take.sum() >= need * (1.0 - 1e-9) - 1e-13 * (1.0 + total)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_least_cost_of_numbers_is_attained(norm) -> None:
    for seed in SEEDS:
        node, a, rng = node_and_plane(seed, norm, numbers=True)
        total = kernel_gains(node, a)
        if total == 0.0:
            continue
        need = float(rng.uniform(0.05, 0.95)) * total
        least = compiled(closed_forms.least_cost)(node.norm, node.items, need, node.F)
        x = node.base.copy()
        for k, item in enumerate(reference_kernels.items_of(node)):
            if node.F[layout.TAKE, k] > 0.0:
                x[node.I[layout.FEATURE, k]] += node.F[layout.TAKE, k] / a[item.columns][0]
        assert (node.compact_columns(x[None, :]) @ a[: node.width])[0] == pytest.approx(need, rel=1e-9)
        assert node.cost(x[None, :])[0] == pytest.approx(node.base_cost + least, rel=1e-9)


def test_linf() -> None:
    for seed in SEEDS:
        node, a, rng = node_and_plane(seed, "linf")
        items = reference_kernels.items_of(node)
        x = node.sample(400, rng, inside=False)
        gained, cost = node.compact_columns(x) @ a[: node.width], node.cost(x)
        far = compiled(layout_farthest())(node.items, node.F, node.I)
        for share in (0.0, 0.2, 0.7, 1.0):
            t = node.base_cost + share * max(far - node.base_cost, 0.0)
            gain = compiled(closed_forms.gain_linf)(a, t, node.items, node.F, node.I)
            assert gain == pytest.approx(reference_kernels.gain_linf(items, a, t), rel=1e-12, abs=1e-12)
            assert gain >= gained[cost <= t].max(initial=0.0) - 1e-12
            need = gain * (1.0 - 1e-9)
            if need > 0.0:
                least = compiled(closed_forms.least_cost_linf)(a, need, node.base_cost, far, node.items, node.F, node.I)
                assert least <= t * (1.0 + 1e-9)
                assert least <= cost[gained >= need].min(initial=math.inf) * (1.0 + 1e-12)
                assert reference_kernels.gain_linf(items, a, least * (1.0 + 1e-8) + 1e-15) >= need * (1.0 - 1e-9)
        out_of_reach = reference_kernels.gain_linf(items, a, 1.1 * far) * 1.1 + 1.0
        assert compiled(closed_forms.least_cost_linf)(
            a, out_of_reach, node.base_cost, far, node.items, node.F, node.I
        ) == math.inf  # fmt: skip


def layout_farthest():
    from ifonly.solvers.search.kernels.node import farthest_cost

    return farthest_cost


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", DISTANCES, ids=IDS)
def test_solve_plane_is_below_every_point_that_reaches_it(norm) -> None:
    for seed in SEEDS:
        node, a, rng = node_and_plane(seed, norm)
        x = node.sample(400, rng)
        y, cost = node.compact_columns(x) @ a[: node.width], node.cost(x)
        ceiling = compiled(layout_farthest())(node.items, node.F, node.I) if node.norm == MAXIMUM else node.budget
        for constant in (0.3, -1e-6, -0.2, -1.0):
            bound = compiled(closed_forms.solve_plane)(
                node.norm, a, constant, node.base_cost, max(ceiling, node.base_cost), node.items, node.F, node.I
            )
            assert bound >= node.base_cost
            assert bound <= cost[constant + y >= 0.0].min(initial=math.inf) * (1.0 + 1e-12) + 1e-15


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_nothing_to_spend(norm) -> None:
    """A budget of exactly zero is a budget."""
    for seed in SEEDS:
        node, a, _ = node_and_plane(seed, norm, numbers=True)
        total = kernel_gains(node, a)
        most = kernel_most(node, 0.0, total)
        assert -1e-15 * total <= most <= total * (1.0 + 1e-15)


def test_the_formula_itself_runs_without_numba() -> None:
    """The kernels are plain Python too: compiled and interpreted agree to the last bits."""
    node, a, _ = node_and_plane(3, "l1")
    total = kernel_gains(node, a)
    assert closed_forms.item_gains.py_func(a, 1.0, node.items, node.F, node.I) == pytest.approx(total, rel=1e-15)
    interpreted = closed_forms.most_gain.py_func(ADDITIVE, node.items, 0.05, total, node.F, node.I)
    assert kernel_most(node, 0.05, total) == pytest.approx(interpreted, rel=1e-15)
    assert REAL == 0
