"""Relaxations and probing: the simplex against another solver, planes of any multipliers, when ReLUs are probed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness import DISTANCES, IDS, Node, compiled, random_node
from scipy.optimize import linprog

from ifonly import ClassTarget, Limits, Network, Real, Schema
from ifonly.model import network_model
from ifonly.problem import Distance, Question, lower
from ifonly.schema import Categorical, Integer
from ifonly.solvers.search import Search, worker
from ifonly.solvers.search.batch import PackedQuestion
from ifonly.solvers.search.kernels import layout, long_step, multipliers, network, relaxation, vertices
from ifonly.solvers.search.kernels.layout import (
    ACTIVE,
    AIM,
    ALWAYS,
    BREAK,
    BY_RULE,
    INACTIVE,
    LOSS,
    LOW,
    NEVER,
    PLANE,
    PRICE,
    SLOPE,
    UNIT_LOSS,
    Cut,
    OpenNode,
)
from ifonly.solvers.search.kernels.search import MORE_STARTS_AT
from ifonly.solvers.search.kernels.simplex import INFEASIBLE, OPTIMAL
from ifonly.solvers.search.pack import new_relaxation
from ifonly.tolerances import DEFAULT

FIRST = 0
"""The first of the programs that a relaxation holds."""

# ---------------------------------------------------------------------------------------------- the simplex


def pieces(rng: np.random.Generator) -> tuple[list[float], list[float]]:
    """Breakpoints, 0 among them, and the slopes of the cost between them, which rise and are least at 0."""
    below, above = int(rng.integers(0, 4)), int(rng.integers(0, 4))
    above += below + above == 0
    down, up = np.cumsum(rng.uniform(0.1, 1.0, below)), np.cumsum(rng.uniform(0.1, 1.0, above))
    steps = [np.cumsum(rng.random(count) * rng.choice([0.0, 1.0], count)) for count in (below, above)]
    return [*(-down[::-1]).tolist(), 0.0, *up.tolist()], [*(-steps[0][::-1]).tolist(), *steps[1].tolist()]


def by_linprog(costs: list[tuple[list[float], list[float]]], rows: np.ndarray, b: np.ndarray) -> float:
    """min of the costs subject to rows x >= b, with one column per piece."""
    c, ends, matrix, constant = [], [], [], np.zeros(len(b))
    for j, (breaks, slopes) in enumerate(costs):
        zero = breaks.index(0.0)
        for k, slope in enumerate(slopes):
            sign = 1.0 if k >= zero else -1.0
            c.append(sign * slope)
            ends.append((0.0, breaks[k + 1] - breaks[k]))
            matrix.append(sign * rows[:, j])
    found = linprog(c, A_ub=-np.array(matrix).T, b_ub=constant - b, bounds=ends, method="highs")
    return float(found.fun) if found.status == 0 else math.inf


@pytest.mark.parametrize("seed", range(100))
def test_the_simplex_against_another_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    costs = [pieces(rng) for _ in range(n)]
    rows = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.8)
    b = rows @ np.array([rng.uniform(breaks[0], breaks[-1]) for breaks, _ in costs]) + rng.choice([0.0, 0.0, 0.3], m)
    width = max(n + m, 3)  # there are as many sizes
    T, F = np.zeros((m, n)), np.zeros((layout.RELAXATION_FLOATS, width))
    G = np.zeros((layout.RELAXATION_INTS, width), dtype=np.int64)
    for j, (breaks, slopes) in enumerate(costs):
        F[BREAK : BREAK + len(breaks), j] = breaks
        F[SLOPE : SLOPE + len(slopes), j] = slopes
        G[layout.LAST, j], G[layout.NONBASIC, j], G[layout.WHERE, j] = len(slopes), j, -1 - j
        G[layout.POSITION, j] = breaks.index(0.0)
    for i in range(m):
        T[i], F[layout.BETA, i], F[BREAK + 1, n + i] = -rows[i], -b[i], math.inf
        G[layout.LAST, n + i], G[layout.BASIC, i], G[layout.WHERE, n + i] = 1, n + i, i
    G[layout.SIZE, layout.ROW_COUNT], G[layout.SIZE, layout.COLUMNS] = m, n
    most = 1e3
    status, value = compiled(long_step.solve_long_step)(T, F, G, most, 0.0, np.zeros(1, dtype=np.int64))
    expected = by_linprog(costs, rows, b)
    if math.isinf(expected):
        assert status == INFEASIBLE and value >= most
    else:
        assert status == OPTIMAL and value == pytest.approx(expected, abs=1e-7)


# ---------------------------------------------------------------------------------------------- planes


def bounded(seed: int, norm: object, outputs: int) -> tuple[Node, OpenNode, Cut]:
    """A random node with its bounds, two ReLUs split where two are unstable."""
    box = random_node(seed, norm, outputs=outputs).make_compact()
    compiled(network.begin_losses)(box.pack, box.person, box.F)
    box.bound_hidden()
    for layer in range(1, box.pack.layers - 1):
        compiled(network.layer_losses)(box.pack, layer, layout.ALL_GROUPS, box.zu, box.F)
    side = np.zeros(len(box.zl), dtype=np.uint8)
    for h, which in zip(np.flatnonzero((box.zl < 0) & (box.zu > 0))[:2], (ACTIVE, INACTIVE), strict=False):
        side[h] = which
        box.zl[h], box.zu[h] = (0.0, box.zu[h]) if which == ACTIVE else (box.zl[h], 0.0)
    counted = np.zeros(len(box.lo), dtype=np.uint8)
    node = OpenNode(box.lo, box.hi, box.mask, box.zl, box.zu, side, counted)
    return box, node, Cut(box.items, box.width, box.base_cost, box.budget)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("norm", DISTANCES, ids=IDS)
@pytest.mark.parametrize("outputs", [1, 3], ids=["one condition", "two conditions"])
def test_any_multipliers_give_a_plane_that_holds(norm: object, outputs: int) -> None:
    checked = 0
    for seed in range(12):
        box, node, cut = bounded(seed, norm, outputs)
        if not box.items or not math.isfinite(box.budget):
            continue
        rng = np.random.default_rng(seed)
        r = new_relaxation(box.pack, ALWAYS)
        spread = math.sqrt(max(box.budget - box.base_cost, 0.0))
        program = compiled(relaxation.begin_relaxation)(
            box.pack, box.person, box.scratch, r, node, cut, box.budget, spread, False
        )
        assert program.unit > 0.0 and box.F[LOSS, UNIT_LOSS] > 0.0
        x = box.sample(2000, rng)
        hidden, out = box.pre_activations(x)
        here = ((hidden >= node.zl) & (hidden <= node.zu)).all(axis=1)
        box.person.need[LOW] = box.person.need[AIM] = np.quantile(
            out, 0.3, axis=0
        )  # so that some points are favourable
        good = here & (out >= box.person.need[LOW]).all(axis=1)
        y = box.compact_columns(x[good])
        for _ in range(4):
            columns = r.G[FIRST, layout.SIZE, layout.COLUMNS]
            r.F[FIRST, PRICE, :columns] = rng.normal(size=columns)
            constant, _, _ = compiled(multipliers.multiplier_plane)(
                box.pack, box.person, box.scratch, r, 0, node, program, -1, False
            )
            plane = box.F[PLANE, : box.width]
            assert (constant + y @ plane >= -1e-9 * (1.0 + abs(constant))).all()
            checked += len(y)
    assert checked > 1000


def split_columns(box: Node, columns: np.ndarray, width: int, y: np.ndarray) -> np.ndarray:
    """Columns that go both ways as two: what goes up, and what goes down."""
    split = np.zeros((len(y), width))
    split[:, : box.width] = y
    for c in range(box.width, width):
        own = int(columns[c])
        split[:, own], split[:, c] = np.maximum(y[:, own], 0.0), np.minimum(y[:, own], 0.0)
    return split


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("norm", ["l1", {"l0": 0.3, "l1": 0.7}], ids=["l1", "mixture"])
@pytest.mark.parametrize("outputs", [1, 3], ids=["one condition", "two conditions"])
def test_what_vertices_say_holds(norm: object, outputs: int) -> None:
    """Of each ReLU in every point of the node inside the ball, and of any multiples of these rows in a plane."""
    checked = exact = 0
    for seed in range(12):
        box, node, cut = bounded(seed, norm, outputs)
        if not box.items or not math.isfinite(box.budget):
            continue
        rng = np.random.default_rng(seed)
        r = new_relaxation(box.pack, ALWAYS)
        w, one = compiled(vertices.one_way)(box.pack, box.scratch, r, cut, box.budget)
        arguments = box.pack, box.person, w, r, node, one, box.budget
        program = compiled(relaxation.begin_relaxation)(*arguments, 0.0, True)
        compiled(vertices.bound_by_vertices)(*arguments)
        x = box.sample(2000, rng)
        hidden, out = box.pre_activations(x)
        inside = box.cost(x) <= box.budget
        here = ((hidden >= node.zl) & (hidden <= node.zu)).all(axis=1) & inside
        y = split_columns(box, w.I[layout.COLUMN], one.width, box.compact_columns(x))
        above, below = (r.upper[way, :, : one.width] @ y.T + r.upper[way, :, one.width, None] for way in (0, 1))
        relus = np.maximum(hidden, 0.0).T
        scale = 1e-9 * (1.0 + np.abs(relus))
        assert (above >= relus - scale)[:, here].all() and (below <= relus + scale)[:, here].all()
        exact += int((above - relus < scale)[:, here].sum())
        box.person.need[LOW] = box.person.need[AIM] = np.quantile(out, 0.3, axis=0)
        good = here & (out >= box.person.need[LOW]).all(axis=1)
        G, first_slot = r.G[FIRST], program.width + 1 + 4 * program.neurons
        columns = G[layout.SIZE, layout.COLUMNS]
        for _ in range(4):
            r.F[FIRST, PRICE, :columns] = rng.normal(size=columns)
            for i in range(program.neurons):  # any column: only its multiplier counts
                G[layout.WHERE, first_slot + i] = -1 - rng.integers(columns)
            constant, _, _ = compiled(multipliers.multiplier_plane)(
                box.pack, box.person, w, r, 0, node, program, -1, False
            )
            plane = w.F[PLANE, : one.width]
            assert (constant + y[good] @ plane >= -1e-9 * (1.0 + abs(constant))).all()
            checked += int(good.sum())
    assert checked > 1000 and exact > 1000


# ---------------------------------------------------------------------------------------------- the rule


def question_over(features: list[object], seed: int = 0, norm: str = "l1") -> tuple[Question, np.ndarray]:
    rng = np.random.default_rng(seed)
    schema = Schema(features)
    width = len(schema.columns)
    layers = [
        (rng.normal(size=(8, width)), rng.normal(size=8)),
        (rng.normal(size=(8, 8)), rng.normal(size=8)),
        (rng.normal(size=(1, 8)), rng.normal(size=1) - 1.0),
    ]
    model = network_model(Network.of(layers), schema)
    question = Question(model=model, target=ClassTarget(1), distance=Distance(norm))
    points = schema.sample(200, rng)
    return question, points[model.decide(model.scores(points)) == 0][:4]


REALS = [Real(f"x{j}", -1.0, 1.0) for j in range(12)]
FEW = [*REALS[:6], Categorical("c", ["p", "q"])]


@pytest.mark.parametrize(
    ("features", "probing", "records", "when"),
    [(REALS, "by rule", False, BY_RULE), (FEW, "by rule", False, NEVER), (FEW, "always", False, ALWAYS),
     (REALS, "never", False, NEVER), (REALS, "always", True, ALWAYS)],
    ids=["many numbers", "few numbers", "always", "never", "records"],
)  # fmt: skip
def test_when_relus_are_probed(features, probing, records, when) -> None:
    question, _ = question_over(features)
    assert PackedQuestion.of(lower(question), DEFAULT, records=records, probing=probing).probing == when


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_probing_opens_fewer_nodes_and_finds_the_same(norm: str) -> None:
    nodes = np.zeros(2)
    for seed in range(6):
        question, points = question_over(REALS, seed, norm)
        claims = [Search(probing=how).prepare(question).solve(points, Limits()) for how in ("by rule", "never")]
        for ours, theirs in zip(*claims, strict=True):
            assert ours.lower == pytest.approx(theirs.lower, rel=1e-5)
            assert (ours.point is None) == (theirs.point is None)
            nodes += ours.nodes, theirs.nodes
    assert nodes[0] < 0.5 * nodes[1]


def test_a_row_is_known_once_all_walks_were_made() -> None:
    """Where many numbers are free, whatever the other features: walks need not find a row, but here they do."""
    mixed = [*REALS, Integer("i", 0, 30), Categorical("c", ["p", "q", "r"])]
    for features in (REALS, mixed):
        for seed in range(6):
            question, points = question_over(features, seed)
            rows = Search(probing="by rule").prepare(question).solve(points, Limits(nodes=MORE_STARTS_AT + 4))
            whole = Search().prepare(question).solve(points, Limits())
            assert [one.point is None for one in rows] == [one.point is None for one in whole]


def test_the_first_walk_gives_a_row_to_an_answer_that_is_stopped() -> None:
    """After one node, which a walk comes before."""
    found = stopped = 0
    for seed in range(20):
        question, points = question_over(REALS, seed)
        solver = Search().prepare(question)
        for one, whole in zip(solver.solve(points, Limits(nodes=1)), solver.solve(points, Limits()), strict=True):
            assert one.point is None or whole.point is not None
            if one.stop is not None and whole.point is not None:
                stopped, found = stopped + 1, found + (one.point is not None)
    assert stopped > 8 and found >= 0.8 * stopped


@pytest.mark.parametrize(("probing", "inside"), [("by rule", True), ("never", False)])
def test_the_clock_runs_inside_a_node_that_may_be_probed(probing, inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """One such node takes longer than all products of its layers say."""
    given, own = [], worker.Deadline
    monkeypatch.setattr(worker, "Deadline", lambda flag, seconds: given.append(seconds) or own(flag, seconds))
    question, points = question_over(REALS)
    Search(probing=probing).prepare(question).solve(points[:1], Limits(seconds=300.0))
    assert given and all((seconds is not None) == inside for seconds in given)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_bounds_hold_wherever_time_is_up_while_relus_are_probed(norm: str) -> None:
    question, points = question_over(REALS, 2, norm)
    solver, stopped = Search(probing="always").prepare(question), 0
    for point, whole in zip(points, solver.solve(points, Limits()), strict=True):
        upper = math.inf if whole.point is None else float(question.measure.between(point, whole.point))
        for seconds in np.geomspace(1e-6, 1e-2, 12).tolist():
            cut = solver.solve(point[None, :], Limits(seconds=seconds))[0]
            assert cut.lower <= upper * (1.0 + 1e-9)
            if cut.point is not None:
                assert question.measure.between(point, cut.point) >= whole.lower * (1.0 - 1e-9)
            stopped += cut.stop is not None
    assert stopped > 0
