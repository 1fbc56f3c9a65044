"""Packing: what the kernels read is the question, and rounding never exceeds what is allowed for it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from harness import DISTANCES, IDS, Node, compiled, random_node
from questions import beside_the_boundary

from cases import load
from ifonly.model import Network, network_model
from ifonly.problem import ClassTarget, Distance, Question, lower
from ifonly.schema import Binary, Integer, Real, Schema
from ifonly.solvers.search.batch import PackedQuestion
from ifonly.solvers.search.error_bounds import balls, errors_everywhere, errors_within
from ifonly.solvers.search.kernels import layout, network
from ifonly.solvers.search.kernels.layout import ACT, AIM, CHOICE, HIGH, LOW, OUT, SIZES, X
from ifonly.solvers.search.pack import enlarged, new_tree, node_bytes, pack_question
from ifonly.solvers.search.table import favourable_rows
from ifonly.tolerances import DEFAULT

every_distance = pytest.mark.parametrize("norm", DISTANCES, ids=IDS)


def exactly(node: Node, x: np.ndarray) -> list[Fraction]:
    """Every pre-activation, outputs last, in exact arithmetic on the lowered weights."""
    h = [Fraction(v) for v in node.lowered.unrolled(node.point(x)).tolist()]
    found: list[Fraction] = []
    for layer, (weight, bias) in enumerate(node.lowered.layers):
        z = [
            sum((Fraction(w) * v for w, v in zip(row, h, strict=True) if v), Fraction(b))
            for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
        ]
        found += z
        h = [max(v, Fraction(0)) for v in z] if layer < len(node.lowered.layers) - 1 else z
    return found


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_forward_pass_is_within_its_slack(norm: str) -> None:
    worst = 0.0
    for seed in range(8):
        node = random_node(seed, norm, whole=True, ball=False).clip()
        for x in node.sample(8, np.random.default_rng(seed)):
            node.F[X, : len(x)] = x
            compiled(network.forward)(node.pack, node.person, node.F)
            conditions = int(node.pack.index[SIZES, node.pack.layers])
            ours = [*node.F[ACT, : len(node.zl)].tolist(), *node.F[OUT, :conditions].tolist()]
            off = [abs(float(Fraction(a) - b)) for a, b in zip(ours, exactly(node, x), strict=True)]
            assert (np.array(off) <= node.person.slack).all()
            worst = max(worst, float((np.array(off) / node.person.slack).max()))
    assert worst > 0.0


def test_planes_of_a_degenerate_box_are_within_their_slack() -> None:
    """One point, so that a plane's constant is the pre-activation itself: off by no more than the slack."""
    for seed in range(8):
        node = random_node(seed, "l1", whole=True, ball=False).clip()
        x = node.sample(1, np.random.default_rng(seed))[0]
        node.lo[:], node.hi[:] = x, x
        for g in np.flatnonzero(node.kinds() == CHOICE):
            first, last = node.pack.index[layout.START, g : g + 2]
            node.mask[first:last] = np.arange(last - first) == x[g]
        node.make_compact()
        node.bound_hidden()
        h = 0
        exact = exactly(node, x)
        for layer in range(node.pack.layers):
            for i in range(node.pack.index[SIZES, layer + 1]):
                for sign in (1.0, -1.0):
                    constant = compiled(network.neuron_plane)(
                        node.pack, layer, i, sign, node.zl, node.zu, node.F[layout.ALPHA], 0, 0, node.F, node.scratch.Wc
                    )
                    assert abs(float(Fraction(constant) - int(sign) * exact[h])) <= 2.0 * node.person.slack[h]
                h += 1


@every_distance
def test_needs_are_in_order(norm) -> None:
    for seed in range(10):
        node = random_node(seed, norm, outputs=3)
        need = node.person.need
        margin = node.lowered.question.target.margin
        assert (need[LOW] < margin).all()
        assert (need[HIGH] > margin).all()
        assert (need[AIM] > need[HIGH]).all()
        own = node.person.slack[-len(margin - need[LOW]) :]
        assert margin - need[LOW] == pytest.approx(node.lowered.question.error, rel=1e-3)
        assert need[HIGH] - own - margin == pytest.approx(node.lowered.question.rounding_bound, rel=1e-3)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", {"l0": 0.3, "l1": 0.7}], ids=["l1", "l2", "linf", "mixture"])
def test_errors_are_smaller_inside_a_ball(norm) -> None:
    model, point = beside_the_boundary(0, 1e-6)
    lowered = lower(Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm)))
    people = lowered.domains(point[None, :])
    everywhere = errors_everywhere(lowered)
    last = everywhere
    for reach in (10.0, 1e-2, 1e-6):
        within = errors_within(lowered, balls(lowered, people, np.array([reach])))
        for ours, before in zip(within, last, strict=True):
            assert ours.shape == before.shape
        assert (within[0] <= last[0] * (1.0 + 1e-12)).all()
        assert (within[1][:, HIGH] <= last[1][:, HIGH] * (1.0 + 1e-12)).all()
        assert (within[0] > 0.0).all()
        last = within
    assert (last[0] < everywhere[0]).any()


def test_everyone_is_packed_alike_alone_and_in_company() -> None:
    model, points, _ = load("credit")
    lowered = lower(Question(model=model, target=ClassTarget(1), distance=Distance("l2")))
    errors = errors_everywhere(lowered)
    packed = PackedQuestion.of(lowered, DEFAULT, records=False)
    together = packed.batch(lowered.domains(points), errors).people
    for i in range(len(points)):
        alone = packed.batch(lowered.domains(points[i : i + 1]), errors).people
        for many, one in zip(together, alone, strict=True):
            assert (many[i] == one[0]).all()
            assert one.flags.c_contiguous
            assert one.flags.writeable


def test_integers_are_packed_in_steps() -> None:
    schema = Schema([Integer("n", 1, 21, 5), Real("x", -2.0, 2.0), Binary("b")])
    model = network_model(Network.of([([[2.0, 3.0, 7.0]], [0.5])]), schema)
    lowered = lower(Question(model=model, target=ClassTarget(1, margin=0.0)))
    pack = pack_question(lowered, DEFAULT)
    assert pack.index[layout.KIND, :3].tolist() == [layout.INTEGER, layout.REAL, CHOICE]
    assert pack.first.tolist() == [[10.0, 3.0, 0.0, 7.0]]
    point = schema.read({"n": 11, "x": 0.5, "b": False})
    packed = PackedQuestion.of(lowered, DEFAULT, records=False)
    people = packed.batch(lowered.domains(point[None, :]), errors_everywhere(lowered)).people
    assert people.box[0].tolist() == [[-2.0, -2.5, 0.0], [2.0, 1.5, 0.0], [0.0, 0.0, 0.0]]
    assert people.z[0] == pytest.approx([2.0 * 11 + 1.5 + 0.5])
    assert people.cost[0].tolist() == [0.0, 0.0, 0.0, pytest.approx(1 / 3)]
    assert pack.price[layout.RATE, 0] == pytest.approx(5.0 / 20.0 / 3.0)  # one step of five, range 20, three features


def test_a_grown_tree_is_the_same_tree() -> None:
    pack = random_node(0, "l1").pack
    tree = new_tree(pack, 8, log=10)
    rng = np.random.default_rng(0)
    for name in ("box", "z", "num", "log"):
        getattr(tree, name)[...] = rng.random(getattr(tree, name).shape)
    tree.idx[layout.FREE] = rng.permutation(8)
    larger = enlarged(tree, pack, 20, 30)
    assert (larger.box[:8] == tree.box).all()
    assert (larger.z[:8] == tree.z).all()
    assert (larger.num[:, :8] == tree.num).all()
    assert sorted(larger.idx[layout.FREE].tolist()) == list(range(20))
    assert (larger.log[:10] == tree.log).all()
    assert len(larger.log) == 30
    assert larger.count is tree.count
    arrays = [larger.box, larger.mask, larger.z, larger.side, larger.num, larger.idx]
    assert sum(array.nbytes for array in arrays) <= 20 * node_bytes(pack)


def test_tables() -> None:
    """All favourable rows of a finite space, and no table for a space that is infinite or too large."""
    model, points, _ = load("compas")
    question = Question(model=model, target=ClassTarget(1, margin=0.0))
    table = favourable_rows(question, most=1000)
    assert table is not None
    assert favourable_rows(question, most=935) is None
    assert len({tuple(point) for point in table.points.tolist()}) == len(table.points)
    assert table.robust.all()
    assert (model.scores(table.points)[:, 0] > 0.0).all()
    lower_bound = sum(model.scores(model.schema.sample(1000, np.random.default_rng(0)))[:, 0] > 0.0) / 1000
    assert len(table.points) / 936 == pytest.approx(lower_bound, abs=0.1)
    real = network_model(Network.of([([[1.0]], [0.0])]), Schema([Real("x", 0, 1)]))
    assert favourable_rows(Question(model=real, target=ClassTarget(1)), most=10**6) is None
    assert len(points)
