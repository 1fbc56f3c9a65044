"""The tree: the heap of open nodes, splits that cover their box, and what holds between any two slices of a search."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from harness import DISTANCES, IDS, Node, compiled, random_node

from ifonly.solvers.search.kernels import candidates, evaluate, layout, search, splits
from ifonly.solvers.search.kernels import tree as tree_kernels
from ifonly.solvers.search.kernels.layout import (
    ACT,
    ACTIVE,
    ALWAYS,
    BEST,
    BOUND,
    CHOICE,
    DONE,
    FREE,
    HEAP,
    HEAP_SIZE,
    HIGH,
    INACTIVE,
    INTEGER,
    LEAST,
    LOW,
    LOWER,
    MOST,
    NEVER,
    NODES,
    RADIUS,
    RESIDUAL,
    SLICE,
    SPLIT,
    SPLIT_VALUE,
    SQUARED,
    START,
    USED,
    PackedPeople,
    Tree,
    X,
    Y,
)
from ifonly.solvers.search.kernels.splits import UNSPLIT
from ifonly.solvers.search.pack import hidden_neurons, new_relaxation, new_tree

every_distance = pytest.mark.parametrize("norm", DISTANCES, ids=IDS)


# ---------------------------------------------------------------------------------------------- heap


def test_the_heap_gives_the_least_bound_first() -> None:
    pack = random_node(0, "l1").pack
    rng = np.random.default_rng(0)
    for _ in range(30):
        tree, reference = new_tree(pack, 64), []
        tree.num[BOUND] = rng.choice([rng.random(64), rng.integers(0, 4, 64).astype(float)])
        waiting = rng.permutation(64).tolist()
        while waiting or reference:
            if waiting and (not reference or rng.random() < 0.6):
                node = waiting.pop()
                compiled(tree_kernels.push)(tree, node)
                heapq.heappush(reference, float(tree.num[BOUND, node]))
            else:
                node = compiled(tree_kernels.pop)(tree)
                assert tree.num[BOUND, node] == heapq.heappop(reference)
            assert tree.count[HEAP_SIZE] == len(reference)
            if reference:
                assert tree.num[BOUND, tree.idx[HEAP, 0]] == reference[0]


# ---------------------------------------------------------------------------------------------- splits


def as_tree(box: Node) -> Tree:
    """A tree whose node 0 is the box."""
    tree = new_tree(box.pack, 4)
    tree.box[0] = box.lo, box.hi
    tree.mask[0] = box.mask
    tree.z[0] = box.zl, box.zu
    return tree


def holds(box: Node, tree: Tree, node: int, x: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Which of many points lie in a node: in its box, among its options, on its side of every split ReLU."""
    inside = np.ones(len(x), dtype=bool)
    for g, kind in enumerate(box.kinds()):
        if kind == CHOICE:
            inside &= tree.mask[node, box.pack.index[START, g] + x[:, g].astype(int)] == 1
        else:
            inside &= (x[:, g] >= tree.box[node, LEAST, g]) & (x[:, g] <= tree.box[node, MOST, g])
    side = tree.side[node]
    inside &= (hidden[:, side == ACTIVE] >= -1e-9).all(axis=1)
    return inside & (hidden[:, side == INACTIVE] <= 1e-9).all(axis=1)


@pytest.mark.long(keep=1)
@every_distance
def test_the_halves_of_a_split_cover_it(norm) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        box = random_node(seed, norm, ball=False).make_compact()
        box.bound_hidden()
        x = box.sample(200, rng, inside=False)
        hidden, _ = box.pre_activations(x)
        features = [int(g) for g in box.I[layout.FEATURE, : box.items]]
        unstable = np.flatnonzero((box.zl < 0.0) & (box.zu > 0.0))
        for split in [*features, *(-2 - unstable).tolist()]:
            tree = as_tree(box)
            kind = box.kinds()[split] if split >= 0 else None
            value = 0.0
            if kind == CHOICE:
                value = box.base[split]
            elif kind is not None:
                value, where = 0.5 * (box.lo[split] + box.hi[split]), int(split)
                where, value = compiled(splits.number_split)(box.pack, box.person.box, split, value, box.lo, box.hi)
                assert where == split
                assert box.lo[split] <= value <= box.hi[split]
            tree.idx[SPLIT, 0], tree.num[SPLIT_VALUE, 0] = split, value
            tree.num[BOUND, 0] = 0.125
            compiled(search.split_node)(box.pack, box.person, tree, 0, 1)
            one, other = (holds(box, tree, node, x, hidden) for node in (0, 1))
            assert (one | other).all()
            if kind in (CHOICE, INTEGER):
                assert not (one & other).any()
            assert tree.num[BOUND, 1] == 0.125
            if split < 0:
                assert (tree.z[0, 0, -2 - split], tree.z[1, 1, -2 - split]) == (0.0, 0.0)
                assert (tree.side[0, -2 - split], tree.side[1, -2 - split]) == (1, 2)
            else:
                assert not (tree.box[0] == tree.box[1]).all() or not (tree.mask[0] == tree.mask[1]).all()


def test_integers_are_split_between_steps_and_reals_not_for_ever() -> None:
    box = next(
        node for node in (random_node(seed, "l1", whole=True) for seed in range(100))
        if {layout.REAL, INTEGER} <= set(node.kinds().tolist())
    )  # fmt: skip
    number_split = compiled(splits.number_split)
    whole = np.tile([[-5.0], [5.0]], (1, len(box.lo)))
    integer, real = (int(np.argmax(box.kinds() == kind)) for kind in (INTEGER, layout.REAL))
    box.lo[:], box.hi[:] = -3.0, 4.0
    assert number_split(box.pack, whole, integer, 1.5, box.lo, box.hi) == (integer, 1.0)
    assert number_split(box.pack, whole, integer, -1.5, box.lo, box.hi) == (integer, -2.0)
    assert number_split(box.pack, whole, integer, 4.0, box.lo, box.hi) == (integer, 3.0)  # the last step comes apart
    assert number_split(box.pack, whole, real, 1.5, box.lo, box.hi) == (real, 1.5)
    assert number_split(box.pack, whole, real, 4.0, box.lo, box.hi)[0] == UNSPLIT
    box.lo[real], box.hi[real] = 1.0, 1.0 + 1e-11
    assert number_split(box.pack, whole, real, 1.0 + 5e-12, box.lo, box.hi)[0] == UNSPLIT


# ---------------------------------------------------------------------------------------------- points


def test_the_cutoff_leaves_room_for_the_gap() -> None:
    """Below the best by a part of the gap (the rest is for rounding), and never beyond the radius."""
    for norm in ("l1", "l2"):
        pack = random_node(0, norm).pack
        for best in (math.inf, 2.0, 0.3, 1e-5, 0.0):
            cost, radius = (best**2, 0.25) if pack.norm == SQUARED else (best, 0.5)
            cut = compiled(evaluate.cutoff)(pack, np.array([0.0, radius, cost, math.inf]))
            distance = math.sqrt(cut) if pack.norm == SQUARED else cut
            if best > 0.5:
                assert cut == radius
            else:
                assert best - min(1e-6, 1e-6 * best) <= distance <= best
                assert distance < best or best == 0.0


@every_distance
def test_a_realised_point_gains_what_was_taken(norm) -> None:
    """Fractions are rounded up: the point is in the box and gains at least what the closed form took of every item."""
    from ifonly.solvers.search.kernels import closed_forms

    for seed in range(20):
        box = random_node(seed, norm).make_compact()
        a = np.zeros(box.F.shape[1])
        a[: box.width] = np.random.default_rng(seed).normal(size=box.width)
        for share in (0.1, 0.5, 1.0):
            if box.norm == layout.MAXIMUM:
                compiled(closed_forms.gain_linf)(
                    a, box.base_cost + share * (box.budget - box.base_cost), box.items, box.F, box.I
                )
            else:
                total = compiled(closed_forms.item_gains)(a, 1.0, box.items, box.F, box.I)
                compiled(closed_forms.least_cost)(box.norm, box.items, share * total, box.F)
            take = box.F[layout.TAKE, : box.items].copy()
            compiled(candidates.realise)(box.pack, box.items, a, box.F[layout.TAKE], box.F, box.I)
            x = box.F[X, : len(box.lo)].copy()
            numbers = box.kinds() != CHOICE
            assert (x >= box.lo - 1e-12 * np.abs(box.lo))[numbers].all()
            assert (x <= box.hi + 1e-12 * np.abs(box.hi))[numbers].all()
            gained = box.compact_columns(x[None, :])[0] * a[: box.width]
            each = np.add.reduceat(gained, box.I[layout.FIRST, : box.items]) if box.items else np.zeros(0)
            assert (each >= take * (1.0 - 1e-9) - 1e-12).all()


@pytest.mark.long(keep=1)
@every_distance
def test_the_best_point_is_kept_only_if_surely_favourable(norm) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        box = random_node(seed, norm, outputs=3, ball=False).make_compact()
        tree = new_tree(box.pack, 4)
        tree.number[BEST] = tree.number[RESIDUAL] = math.inf
        x = box.sample(30, rng)
        _, out = box.pre_activations(x)
        cost = box.cost(x)
        need = np.stack([np.quantile(out, q, axis=0) + 1e-6 for q in (0.3, 0.5, 0.6)])
        person = box.person._replace(need=np.ascontiguousarray(need))
        best, residual = math.inf, math.inf
        for k in range(len(x)):
            box.F[X, : x.shape[1]] = x[k]
            worst, short = compiled(candidates.try_point)(box.pack, person, tree, box.F)
            room = out[k] - need[HIGH]
            assert short == pytest.approx(room.min(), rel=1e-9, abs=1e-9)
            assert room[worst] == pytest.approx(room.min(), rel=1e-9, abs=1e-9)
            if (room >= 0.0).all():
                best = min(best, cost[k])
            elif (out[k] >= need[LOW]).all():
                residual = min(residual, cost[k])
            assert tree.number[BEST] == pytest.approx(best, rel=1e-12)
            assert tree.number[RESIDUAL] == pytest.approx(residual, rel=1e-12)
        if math.isfinite(best):
            assert box.cost(tree.best[None, :])[0] == pytest.approx(best, rel=1e-12)


def test_a_rounded_solution_is_a_point_of_the_box() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        box = random_node(seed, "l1").make_compact()
        y = box.compact_columns(box.sample(1, rng))[0]
        for k in range(box.items):
            columns = slice(box.I[layout.FIRST, k], box.I[layout.FIRST, k + 1])
            if box.I[layout.ITEM_KIND, k] == INTEGER:
                y[columns] *= rng.random()
            elif box.I[layout.ITEM_KIND, k] == CHOICE:
                y[columns] = rng.dirichlet(np.ones(len(y[columns]) + 1))[1:]
        box.F[Y, : box.width] = y
        compiled(candidates.round_solution)(box.pack, box.items, box.F, box.I)
        x = box.F[X, : len(box.lo)].copy()
        for k in range(box.items):
            g, c = int(box.I[layout.FEATURE, k]), int(box.I[layout.FIRST, k])
            if box.I[layout.ITEM_KIND, k] == CHOICE:
                shares = y[c : box.I[layout.FIRST, k + 1]]
                expected = box.base[g]
                if shares.max() > 0.5:
                    expected = box.I[layout.COLUMN, c + int(shares.argmax())] - box.pack.index[START, g]
                assert x[g] == expected
                assert box.mask[box.pack.index[START, g] + int(x[g])]
            else:
                away = np.sign(y[c]) * math.ceil(abs(y[c]) - 1e-7) if box.I[layout.ITEM_KIND, k] == INTEGER else y[c]
                assert x[g] == pytest.approx(box.base[g] + away, rel=1e-12)
                assert box.lo[g] <= x[g] <= box.hi[g]


def test_blame_goes_to_what_moves_unstable_neurons() -> None:
    """One hidden layer: the error of the chord at the point, shared by |weight| times width over the neuron's range."""
    for seed in range(20):
        box = random_node(seed, "l1", hidden=(6,)).make_compact()
        box.bound_hidden()
        x = box.sample(1, np.random.default_rng(seed))
        hidden, _ = box.pre_activations(x)
        weight = box.lowered.layers[1][0][0]
        box.F[ACT, :6], box.F[layout.NU_BEST, :6] = hidden[0], weight
        compiled(splits.blame)(box.pack, box.zl, box.zu, box.items, box.F, box.I, box.scratch.Wc)
        share = np.zeros(6)
        for h in np.flatnonzero((box.zl < 0.0) & (box.zu > 0.0)):
            low, up, z, c = box.zl[h], box.zu[h], hidden[0, h], weight[h]
            error = c * (up * (z - low) / (up - low) - max(z, 0.0)) if c > 0.0 else -0.1 * c * min(up, -low)
            share[h] = max(error, 0.0) / (up - low)
        columns = share @ np.abs(box.scratch.Wc[:, : box.width])
        for k in range(box.items):
            widest = columns[box.I[layout.FIRST, k] : box.I[layout.FIRST, k + 1]].max()
            expected = widest * (box.F[layout.UP, k] + box.F[layout.DOWN, k])
            assert box.F[layout.SCORE, k] == pytest.approx(expected, rel=1e-9, abs=1e-15)


# ---------------------------------------------------------------------------------------------- between two slices


def demanding(seed: int, norm, outputs: int = 1) -> Node:
    """A whole space in which about one point in fifty is favourable, to a network with many unstable neurons."""
    box = random_node(seed, norm, whole=True, ball=False, hidden=(12, 12), outputs=outputs).clip()
    _, out = box.pre_activations(box.sample(500, np.random.default_rng(seed), inside=False))
    room = out.min(axis=1) if outputs == 1 else (out - out.mean(axis=0)).min(axis=1)
    level = np.quantile(room, 0.98) + (0.0 if outputs == 1 else out.mean(axis=0))
    need = np.stack(
        [
            np.full(out.shape[1], level - 1e-12),
            np.full(out.shape[1], level + 1e-12),
            np.full(out.shape[1], level + 1e-11),
        ]
    )
    box.person = box.person._replace(need=need)
    return box


def people_of(box: Node) -> PackedPeople:
    return PackedPeople(*(np.ascontiguousarray(many[None]) for many in box.person))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("outputs", [1, 3], ids=["one condition", "two conditions"])
@pytest.mark.parametrize("probing", [NEVER, ALWAYS], ids=["", "probing"])
@every_distance
def test_a_search_can_be_looked_at_between_any_two_nodes(norm, outputs: int, probing: int) -> None:
    """Two nodes at a time. At every moment, for every sampled favourable point nearer than the best: an open node holds it.

    That node's bound is at most the point's cost, and its bounds of the hidden neurons hold at the point.
    """
    split = 0
    for seed in range(12):
        box = demanding(seed, norm, outputs)
        x = box.sample(3000, np.random.default_rng(seed))
        hidden, out = box.pre_activations(x)
        cost = box.cost(x)
        good = (out >= box.person.need[HIGH]).all(axis=1)
        x, hidden, cost = x[good], hidden[good], cost[good]
        people, tree, relaxation = people_of(box), new_tree(box.pack, 4096), new_relaxation(box.pack, probing)
        lower, best, nodes = np.zeros(1), np.full((1, len(box.lo) + 1), math.inf), np.zeros(1, dtype=np.int64)
        code, steps, proven = SLICE, 0, 0.0
        while code != DONE and steps < 60:
            _, code = search.search_people(
                box.pack, people, np.array([math.inf]), 0, 1, 1, steps > 0, box.scratch, relaxation, tree, lower, best,
                nodes,
            )  # fmt: skip
            steps += 1
            heap = tree.idx[HEAP, : tree.count[HEAP_SIZE]]
            assert len(set(heap.tolist())) == len(heap)
            assert tree.count[USED] == len(heap)
            assert not set(heap.tolist()) & set(tree.idx[FREE, tree.count[USED] :].tolist())
            nearer = cost < compiled(evaluate.cutoff)(box.pack, tree.number) * (1.0 - 1e-9)
            covered = np.zeros(len(x), dtype=bool)
            for node in heap:
                here = holds(box, tree, node, x, hidden) & nearer & (cost >= tree.num[BOUND, node] * (1.0 - 1e-9))
                covered |= here
                slack = 1e-9 * (1.0 + np.abs(hidden[here]))
                assert (hidden[here] >= tree.z[node, 0] - slack).all()
                assert (hidden[here] <= tree.z[node, 1] + slack).all()
            assert covered[nearer].all() or tree.number[RESIDUAL] < math.inf
            if len(heap):
                least = tree.num[BOUND, tree.idx[HEAP, 0]]
                assert least >= proven
                proven = least
            split += len(heap) > 1
        if code == DONE:
            assert tree.number[LOWER] <= cost.min(initial=math.inf) * (1.0 + 1e-9)
            assert best[0, -1] <= cost.min(initial=math.inf) * (1.0 + 1e-5)
            assert nodes[0] == tree.count[NODES]
        if math.isfinite(tree.number[BEST]):
            assert (box.pre_activations(tree.best[None, :])[1] >= box.person.need[HIGH] - 1e-9).all()
            assert box.cost(tree.best[None, :])[0] == pytest.approx(tree.number[BEST], rel=1e-12)
    assert split > (20 if probing == NEVER else 0)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("probing", [NEVER, ALWAYS], ids=["", "probing"])
@every_distance
def test_slices_do_not_change_the_search(norm, probing: int) -> None:
    for seed in range(8):
        results = []
        for step in (1, 7, 10**6):
            box = demanding(seed, norm)
            people, tree, relaxation = people_of(box), new_tree(box.pack, 4096), new_relaxation(box.pack, probing)
            lower, best, nodes = np.zeros(1), np.full((1, len(box.lo) + 1), math.inf), np.zeros(1, dtype=np.int64)
            code, resume = SLICE, False
            while code == SLICE:
                _, code = search.search_people(
                    box.pack, people, np.array([math.inf]), 0, 1, step, resume, box.scratch, relaxation, tree, lower, best,
                    nodes,
                )  # fmt: skip
                resume = True
            assert code == DONE
            results.append((lower.tolist(), best.tolist(), nodes.tolist()))
        assert results[0] == results[1] == results[2]


def test_a_growing_radius_finds_the_same_answer() -> None:
    """A first radius that is too small is refuted (or its points found) phase by phase, until the answer is in the ball."""
    phases = set()
    for seed in range(20):
        box = demanding(seed, "l1")
        results = []
        for radius in (math.inf, 0.3, 1e-3):
            people, tree, relaxation = people_of(box), new_tree(box.pack, 8192), new_relaxation(box.pack, NEVER)
            lower, best, nodes = np.zeros(1), np.full((1, len(box.lo) + 1), math.inf), np.zeros(1, dtype=np.int64)
            _, code = search.search_people(
                box.pack, people, np.array([radius]), 0, 1, 10**6, False, box.scratch, relaxation, tree, lower, best,
                nodes,
            )  # fmt: skip
            assert code == DONE
            results.append((lower[0], best[0, -1]))
            phases.add(int(tree.count[layout.PHASES]))
            assert tree.number[RADIUS] >= radius
        for low, up in results:
            assert low <= results[0][1] or math.isinf(low)
            assert up == pytest.approx(results[0][1], rel=1e-5, abs=1e-9)
    assert {1, 2} <= phases


def test_hidden_neurons_are_counted() -> None:
    box = random_node(0, "l1", hidden=(3, 4))
    assert hidden_neurons(box.pack) == 7


@pytest.mark.long(keep=1)
@every_distance
def test_influence(norm) -> None:
    """Which items count, against reachability in plain numpy; and what does not count changes no score."""
    without = 0
    for seed in range(30):
        box = random_node(seed, norm, hidden=(4, 3), whole=True)
        rng = np.random.default_rng(seed)
        box.pack.weights[rng.random(len(box.pack.weights)) < 0.7] = 0.0
        box.make_compact()
        box.scratch.Wc[rng.random(box.scratch.Wc.shape) < 0.7] = 0.0
        box.zu[:] = np.where(rng.random(len(box.zu)) < 0.4, 0.0, 1.0)
        index = box.pack.index
        compiled(splits.influence)(box.pack, box.zu, box.items, box.F, box.I, box.scratch.Wc)
        counts = np.ones(index[layout.SIZES, box.pack.layers], dtype=bool)
        for layer in range(box.pack.layers - 1, 0, -1):
            size = index[layout.SIZES, layer + 1], index[layout.SIZES, layer]
            at = index[layout.WEIGHT_AT, layer]
            weight = box.pack.weights[at : at + size[0] * size[1]].reshape(size)
            below = index[layout.BIAS_AT, layer - 1]
            counts = (weight[counts] != 0.0).any(axis=0) & (box.zu[below : below + size[1]] > 0.0)
        for k in range(box.items):
            mine = box.scratch.Wc[: len(counts), box.I[layout.FIRST, k] : box.I[layout.FIRST, k + 1]]
            assert box.F[layout.SCORE, k] == float((mine[counts] != 0.0).any())
            without += box.F[layout.SCORE, k] == 0.0
    assert without > 10


@pytest.mark.long
def test_a_box_of_few_rows_and_many_split_relus_is_split_by_its_rows() -> None:
    kinds = set()
    for seed in range(200):
        box = random_node(seed, "l1", hidden=(8,), whole=True)
        box.make_compact()
        side = np.zeros(8, dtype=np.uint8)
        side[: 5 + seed % 2] = 1 + seed % 2
        found, where = compiled(splits.split_rows)(
            box.pack, box.person.box, side, box.items, box.lo, box.hi, box.F, box.I
        )
        values, rows = {}, 1.0
        for k in range(box.items):
            g, kind = box.I[layout.FEATURE, k], box.I[layout.ITEM_KIND, k]
            first, last = box.I[layout.FIRST, k], box.I[layout.FIRST, k + 1]
            span = math.inf if kind == layout.REAL else last - first if kind == CHOICE else box.hi[g] - box.lo[g]
            values[g] = 1.0 + span
            rows *= values[g]
        if seed % 2 == 0 or rows > splits.FEW_ROWS or not values:
            assert found == UNSPLIT
            continue
        kinds.add(int(box.pack.index[layout.KIND, found]))
        assert values[found] == max(values.values())
        if box.pack.index[layout.KIND, found] == layout.INTEGER:
            assert box.lo[found] <= where < box.hi[found]
    assert kinds
