"""The local search around a better point: what it keeps is favourable, allowed, on the grid and never dearer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness import DISTANCES, IDS, Node, compiled, random_node

from ifonly.solvers.search.kernels import candidates, first_points
from ifonly.solvers.search.kernels import tree as tree_kernels
from ifonly.solvers.search.kernels.layout import (
    AIM,
    BEST,
    CHOICE,
    GRID_OFFSET,
    HIGH,
    INTEGER,
    LEAST,
    MOST,
    RADIUS,
    RESIDUAL,
    SQUARED,
    START,
    Tree,
    X,
)
from ifonly.solvers.search.pack import new_tree


def demanding(seed: int, norm, outputs: int, hidden: tuple[int, ...], rules: int = 0) -> Node:
    """A whole space in which about one point in five is favourable."""
    box = random_node(seed, norm, whole=True, ball=False, hidden=hidden, outputs=outputs, rules=rules)
    _, out = box.pre_activations(box.sample(500, np.random.default_rng(seed), inside=False))
    need = box.person.need.copy()
    need[:, : out.shape[1]] = np.quantile(out, 0.8 if outputs == 1 else 0.6, axis=0)
    need[HIGH, : out.shape[1]] += 1e-9
    need[AIM, : out.shape[1]] += 1e-8
    box.person = box.person._replace(need=need)
    return box


def begun(box: Node, rng: np.random.Generator) -> Tree | None:
    """A tree whose best point is a random favourable one; None where there is none."""
    tree = new_tree(box.pack, 4)
    tree.number[BEST] = tree.number[RESIDUAL] = tree.number[RADIUS] = math.inf
    for x in box.sample(60, rng):
        if tree.number[BEST] == math.inf:
            box.F[X, : len(x)] = x
            compiled(candidates.try_point)(box.pack, box.person, tree, box.F)
    return tree if tree.number[BEST] < math.inf else None


def search_nearby(box: Node, tree: Tree) -> None:
    compiled(tree_kernels.set_root)(box.pack, box.person, tree, 1)
    node = tree_kernels.open_node.py_func(tree, 1)  # views, which no compiled function can return
    compiled(first_points.search_nearby)(box.pack, box.person, box.scratch, node, tree)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("outputs", [1, 3], ids=["one condition", "two conditions"])
@pytest.mark.parametrize("norm", DISTANCES, ids=IDS)
def test_what_is_found_is_favourable_and_nearer(norm, outputs: int) -> None:
    better = tried = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        box = demanding(seed, norm, outputs, (8, 8), rules=seed % 3)
        tree = begun(box, rng)
        if tree is None:
            continue
        before = float(tree.number[BEST])
        search_nearby(box, tree)
        best, x = float(tree.number[BEST]), tree.best[None, :]
        assert best <= before
        tried, better = tried + 1, better + (best < 0.999 * before)
        _, out = box.pre_activations(x)
        conditions = out.shape[1]
        assert (out[0] >= box.person.need[HIGH, :conditions] - 1e-9 * (1.0 + np.abs(out[0]))).all()
        assert box.cost(x)[0] == pytest.approx(best, rel=1e-9)
        for g, kind in enumerate(box.kinds()):
            if kind == INTEGER:
                away = box.person.box[GRID_OFFSET, g]
                steps = x[0, g] if x[0, g] == 0.0 else x[0, g] - away
                assert steps == pytest.approx(round(steps), abs=1e-9)
            if kind != CHOICE:
                assert box.person.box[LEAST, g] - 1e-9 <= x[0, g] <= box.person.box[MOST, g] + 1e-9
            else:
                assert box.person.mask[box.pack.index[START, g] + int(x[0, g])]
        assert box.lowered.question.schema.admits(box.point(x)).all()
    assert tried > 10 and better > tried // 3


@pytest.mark.parametrize("norm", ["l1", "linf", "l2"])
def test_one_linear_piece_is_solved(norm) -> None:
    """Without hidden layers, the nearest point of all is found from any one."""
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        box = random_node(seed, norm, whole=True, ball=False, hidden=(), outputs=1, numbers=True)
        _, out = box.pre_activations(box.sample(500, rng, inside=False))
        need = box.person.need.copy()
        need[:] = np.quantile(out, 0.7)
        box.person = box.person._replace(need=need)
        tree = begun(box, rng)
        if tree is None:
            continue
        search_nearby(box, tree)
        x = box.sample(4000, rng, inside=False)
        good = box.pre_activations(x)[1][:, 0] >= need[HIGH, 0]
        least, best = box.cost(x[good]).min(), float(tree.number[BEST])
        if box.norm == SQUARED:
            least, best = math.sqrt(least), math.sqrt(best)
        assert best <= least * (1.0 + 1e-6) + 1e-9
        found += 1
    assert found >= 15
