"""Planes and bounds of the network inside a node: nothing that a sampled point does is ruled out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference_kernels
from harness import DISTANCES, IDS, Node, compiled, random_node

from ifonly.solvers.search.kernels import layout, network
from ifonly.solvers.search.kernels.layout import ACT, ALPHA, CHOICE, OUT, PLANE, SIZES, X, Y

SEEDS = range(12)
every_distance = pytest.mark.parametrize("norm", DISTANCES, ids=IDS)


def neuron_plane(node: Node, layer: int, i: int, sign: float, slopes: np.ndarray, *, exact: bool = False):
    """The kernel's plane: its constant, and its coefficients over the compact columns."""
    constant = compiled(network.neuron_plane)(
        node.pack, layer, i, sign, node.zl, node.zu, slopes, int(exact), node.width, node.F, node.scratch.Wc
    )
    return constant, node.F[PLANE, : node.width].copy()


def neurons(node: Node) -> list[tuple[int, int]]:
    """(layer, i) of every neuron, outputs included."""
    return [(layer, i) for layer in range(node.pack.layers) for i in range(node.pack.index[SIZES, layer + 1])]


def padded(node: Node, slopes: np.ndarray) -> np.ndarray:
    return np.concatenate([slopes, np.zeros(node.F.shape[1] - len(slopes))])


@pytest.mark.long(keep=1)
@every_distance
def test_forward_is_the_network(norm) -> None:
    for seed in SEEDS:
        node = random_node(seed, norm, outputs=1 + 2 * (seed % 2)).make_compact()
        x = node.sample(20, np.random.default_rng(seed), inside=False)
        question = node.lowered.question
        c, d = question.conditions
        wanted = question.model.network.scores(question.schema.encode(node.point(x))) @ c.T - d
        hidden, _ = node.pre_activations(x)
        for k in range(len(x)):
            node.F[X, : x.shape[1]] = x[k]
            node.F[Y, : node.width] = node.compact_columns(x)[k]
            for run in (
                lambda: compiled(network.forward)(node.pack, node.person, node.F),
                lambda: compiled(network.forward_compact)(node.pack, node.width, node.F, node.scratch.Wc),
            ):
                node.F[OUT], node.F[ACT] = math.nan, math.nan
                run()
                assert node.F[OUT, : wanted.shape[1]] == pytest.approx(wanted[k], rel=1e-10, abs=1e-10)
                assert node.F[ACT, : hidden.shape[1]] == pytest.approx(hidden[k], rel=1e-10, abs=1e-10)


def test_a_linear_model_has_no_hidden_neurons() -> None:
    node = random_node(5, "l1", hidden=(), outputs=3).make_compact()
    assert node.bound_hidden() == 0
    x = node.sample(1, np.random.default_rng(0))
    node.F[X, : x.shape[1]] = x[0]
    compiled(network.forward)(node.pack, node.person, node.F)
    assert node.F[OUT, :2] == pytest.approx(node.pre_activations(x)[1][0], rel=1e-10, abs=1e-10)


@pytest.mark.long
@every_distance
def test_bounds_hold_for_sampled_points(norm) -> None:
    """10,000 points of box and ball in all: no pre-activation outside its bounds."""
    points = 0
    for seed in range(30):
        node = random_node(seed, norm, ball=seed % 5 > 0).make_compact()
        node.bound_hidden()
        x = node.sample(500, np.random.default_rng(seed))
        hidden, _ = node.pre_activations(x)
        slack = 1e-12 * (1.0 + np.abs(hidden).max())
        assert (hidden >= node.zl - slack).all()
        assert (hidden <= node.zu + slack).all()
        points += len(x)
    assert points >= 10_000


@pytest.mark.long(keep=1)
@every_distance
def test_bounds_are_those_of_the_reference(norm) -> None:
    for seed in SEEDS:
        node = random_node(seed, norm).make_compact()
        unstable = node.bound_hidden()
        zl, zu = node.zl.copy(), node.zu.copy()
        reference = random_node(seed, norm).make_compact()
        reference_kernels.hidden_bounds(reference)
        not_robust = (reference.zl < 0.0) & (reference.zu > 0.0)
        assert unstable == np.sum((zl < 0.0) & (zu > 0.0))
        if node.norm == layout.SQUARED:  # the kernel's multiplier is sometimes not the best one: wider, never narrower
            assert (zl <= reference.zl + 1e-7).all()
            assert (zu >= reference.zu - 1e-7).all()
        else:
            # the kernel stops at the first side that makes a neuron stable
            assert zu[not_robust] == pytest.approx(reference.zu[not_robust], rel=1e-9, abs=1e-9)
            assert zl[not_robust] == pytest.approx(reference.zl[not_robust], rel=1e-9, abs=1e-9)
            assert (np.sign(zu[~not_robust]) == np.sign(reference.zu[~not_robust])).all()


@every_distance
def test_a_smaller_ball_never_widens_bounds_of_the_first_layer(norm) -> None:
    for seed in SEEDS:
        wide, narrow = (random_node(seed, norm, hidden=(8,)) for _ in range(2))
        narrow.budget = 0.5 * (wide.budget + wide.clip().base_cost)
        for node in (wide, narrow):
            node.make_compact()
            node.bound_hidden()
        live = (narrow.zl < 0.0) & (narrow.zu > 0.0)
        assert (narrow.zl[live] >= wide.zl[live] - 1e-9).all()
        assert (narrow.zu[live] <= wide.zu[live] + 1e-9).all()


@pytest.mark.long(keep=1)
@every_distance
def test_planes_are_those_of_the_reference_and_lie_above_the_network(norm) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        node = random_node(seed, norm, outputs=1 + 2 * (seed % 2)).make_compact()
        node.bound_hidden()
        x = node.sample(300, rng)
        hidden, out = node.pre_activations(x)
        values, y = np.concatenate([hidden, out], axis=1), node.compact_columns(x)
        for slopes in (
            node.F[ALPHA, : len(node.zl)].copy(),
            rng.integers(0, 2, len(node.zl)).astype(float),
            rng.random(len(node.zl)),
        ):
            for h, (layer, i) in enumerate(neurons(node)):
                for sign in (1.0, -1.0):
                    constant, a = neuron_plane(node, layer, i, sign, padded(node, slopes))
                    expected, b, coefficients = reference_kernels.upper_plane(node, layer, i, sign, slopes)
                    size = 1.0 + np.abs(constant) + np.abs(a).sum()
                    assert constant == pytest.approx(expected, abs=1e-11 * size)
                    assert a == pytest.approx(b, abs=1e-11 * size)
                    assert (constant + y @ a >= sign * values[:, h] - 1e-11 * size).all()
                    if layer == node.pack.layers - 1:
                        assert node.F[layout.NU, : len(node.zl)] == pytest.approx(
                            coefficients[: len(node.zl)], abs=1e-11 * size
                        )


@every_distance
def test_a_degenerate_box_gives_the_forward_pass(norm) -> None:
    for seed in SEEDS:
        node = random_node(seed, norm, ball=False)
        x = node.clip().sample(1, np.random.default_rng(seed))[0]
        node.lo[:], node.hi[:] = x, x
        for g in np.flatnonzero(node.kinds() == CHOICE):
            first, last = node.pack.index[layout.START, g : g + 2]
            node.mask[first:last] = np.arange(last - first) == x[g]
        node.make_compact()
        assert node.items == 0
        assert node.bound_hidden() == 0
        hidden, out = node.pre_activations(x[None, :])
        assert (node.zl[hidden[0] > 1e-9] >= 0.0).all()
        assert (node.zu[hidden[0] < -1e-9] <= 0.0).all()
        for i in range(out.shape[1]):
            constant, _ = neuron_plane(node, node.pack.layers - 1, i, 1.0, node.F[ALPHA])
            assert constant == pytest.approx(out[0, i], rel=1e-9, abs=1e-9)


@every_distance
def test_the_exact_pattern_gives_the_local_linear_piece(norm) -> None:
    """At a point, value and slope of the plane with that point's pattern are the network's own."""
    for seed in SEEDS:
        node = random_node(seed, norm).make_compact()
        node.bound_hidden()
        rng = np.random.default_rng(seed)
        x = node.sample(5, rng)
        hidden, out = node.pre_activations(x)
        y = node.compact_columns(x)
        for k in range(len(x)):
            pattern = padded(node, (hidden[k] > 0.0).astype(float))
            constant, a = neuron_plane(node, node.pack.layers - 1, 0, 1.0, pattern, exact=True)
            assert constant + a @ y[k] == pytest.approx(out[k, 0], rel=1e-9, abs=1e-9)
            direction = rng.normal(size=node.width)
            node.F[Y, : node.width] = y[k] + 1e-7 * direction
            compiled(network.forward_compact)(node.pack, node.width, node.F, node.scratch.Wc)
            if ((node.F[ACT, : len(node.zl)] > 0.0) == (hidden[k] > 0.0)).all():
                assert node.F[OUT, 0] - out[k, 0] == pytest.approx(1e-7 * a @ direction, rel=1e-4, abs=1e-11)
