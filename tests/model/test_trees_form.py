"""The flat form of tree ensembles: splits by hand, cuts at the floats, sums and their bounds, damaged nodes."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ifonly import Categorical, Integer, Real, Schema
from ifonly.errors import ModelError
from ifonly.model import Kind
from ifonly.model.trees import EVERY, Ensemble, FeatureColumns, LibraryTree, Summation, Trees, bound
from ifonly.model.trees.edges import _boxes, edge_points

SCHEMA = Schema([Real("a", -2.0, 2.0), Integer("n", -9, 9, 3), Categorical("c", ["x", "y", "z"]), Real("b", 0.1, 1e9)])


def stump(at: float, **more: Any) -> LibraryTree:
    given = {"column": [0, -1, -1], "threshold": [at, 0, 0], "left": [1, 1, 2], "right": [2, 1, 2]}
    return LibraryTree(**{**given, "value": [[0.0], [1.0], [2.0]], **more})


def one(tree: LibraryTree, **how: Any) -> Ensemble:
    return Ensemble.of([tree], columns=1, summation=Summation.plain(1), **how)


def sides(ensemble: Ensemble, values: list[float]) -> list[float]:
    return ensemble.scores(np.array(values)[:, None])[:, 0].tolist()


def test_comparisons_and_precisions_by_hand() -> None:
    t = float(np.float32(0.1))
    just_above = math.nextafter(t, 1.0)
    assert sides(one(stump(t)), [t, just_above]) == [1.0, 2.0]
    assert sides(one(stump(t), comparison="<"), [math.nextafter(t, 0.0), t]) == [1.0, 2.0]
    assert sides(one(stump(t), compared_in="float32"), [t, just_above, float(np.nextafter(np.float32(t), 1))]) == [
        1.0,
        1.0,
        2.0,
    ]
    assert sides(one(stump(t), comparison="<", compared_in="float32"), [math.nextafter(t, 0.0), t - 1e-7]) == [2.0, 1.0]


def test_categories_and_missing_values_by_hand() -> None:
    chosen = stump(0.0, sets={0: [0, 2]}, missing_left=[True, False, False])
    assert sides(one(chosen), [0.0, 1.0, 2.0, 3.0, -1.0, math.nan]) == [1.0, 2.0, 1.0, 2.0, 2.0, 1.0]
    assert sides(one(stump(0.0)), [math.nan]) == [2.0]
    assert sides(one(stump(0.0, missing_left=[True, False, False])), [math.nan]) == [1.0]


def imported_trees(rng: np.random.Generator, columns: int, depth: int, width: int, adds_to: int) -> LibraryTree:
    """A random tree: a heap of nodes, some of which are leaves early; thresholds are short numbers, often equal."""
    count = 2 ** (depth + 1) - 1
    column = np.where(
        (np.arange(count) >= 2**depth - 1) | (rng.random(count) < 0.2), -1, rng.integers(0, columns, count)
    )
    kept = [0]
    for node in kept:
        if column[node] >= 0:
            kept += [2 * node + 1, 2 * node + 2]
    place = {node: i for i, node in enumerate(kept)}
    inner = column[kept] >= 0
    left = [place[2 * n + 1] if column[n] >= 0 else i for i, n in enumerate(kept)]
    right = [place[2 * n + 2] if column[n] >= 0 else i for i, n in enumerate(kept)]
    return LibraryTree(
        column=np.where(inner, column[kept], -1),
        threshold=np.float32(np.round(rng.normal(0.0, 1.0, len(kept)), 1)).astype(np.float64),
        left=left,
        right=right,
        value=rng.normal(size=(len(kept), width)),
        missing_left=rng.random(len(kept)) < 0.5,
        adds_to=adds_to,
    )


def columns_of(points: Any) -> Any:
    """What a pipeline might make of the features: scaled, turned around, one-hot, a code, and the same feature twice."""
    a, n, c, b = points.T
    return np.column_stack(
        [
            a,
            (a - 0.1) / 0.3,
            -1.7 * a,
            (n - 1.3) / 4.1,
            c == 1,
            np.array([0.5, np.nan, -1.0])[c.astype(int)],
            b / 3e8 - 0.2,
        ]
    ).astype(np.float64)


OWNERS = [0, 0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize(("comparison", "compared_in"), list(itertools.product(["<=", "<"], ["float32", "float64"])))
def test_over_features_it_is_the_same_function_at_every_cut(comparison: Any, compared_in: Any) -> None:
    rng = np.random.default_rng(0)
    for vector, precision in itertools.product([True, False], ["float32", "float64"]):
        trees = [imported_trees(rng, len(OWNERS), 4, 2 if vector else 1, EVERY if vector else t % 2) for t in range(30)]
        how = Summation(start=[0.25, -1.0], shift=[0.5, 0.0], divisor=12.0, scale=0.7, precision=precision)
        library = Ensemble.of(trees, columns=len(OWNERS), summation=how, comparison=comparison, compared_in=compared_in)
        kind = Trees(bound(library, FeatureColumns(OWNERS, columns_of), SCHEMA), SCHEMA)
        rows = np.concatenate([SCHEMA.sample(300, rng), edge_points(kind.ensemble, SCHEMA, seed=1)])
        assert SCHEMA.admits(rows).all() and len(rows) > 400
        assert np.array_equal(kind.scores(SCHEMA.encode(rows)), library.scores(columns_of(rows)))
        assert np.isfinite(kind.ensemble.nodes.threshold).all() and isinstance(kind, Kind)
        for feature, cuts in enumerate(kind.cuts):  # every cut parts two neighbours, and no other number is nearer
            above = np.nextafter(cuts, np.inf) if feature != 1 else cuts + 3.0
            assert SCHEMA.features[feature].name == "c" or np.all(above > cuts)


def test_edges_show_every_wrong_cut() -> None:
    """Each cut can be reached, and, moved down by one step, sends some edge point to another leaf."""
    rng = np.random.default_rng(4)
    library = Ensemble.of(
        [imported_trees(rng, len(OWNERS), 4, 1, 0) for _ in range(12)],
        columns=len(OWNERS),
        summation=Summation.plain(1),
    )
    kind = Trees(bound(library, FeatureColumns(OWNERS, columns_of), SCHEMA), SCHEMA)
    points, form, nodes = edge_points(kind.ensemble, SCHEMA, seed=0), kind.ensemble, kind.ensemble.nodes
    inner = np.flatnonzero((nodes.column >= 0) & (nodes.chosen < 0))
    boxes = _boxes(form, SCHEMA, inner)
    leaves = form.leaves(points)
    assert len(inner) > 20
    for i, node in enumerate(inner.tolist()):
        cut, column = nodes.threshold[node], nodes.column[node]
        assert boxes.reached[i] and boxes.allowed[i, 2].any() and boxes.least[i, column] <= cut < boxes.most[i, column]
        threshold = nodes.threshold.copy()
        threshold[node] = np.nextafter(cut, -np.inf)
        changed = replace(form, nodes=replace(nodes, threshold=threshold))
        assert (changed.leaves(points) != leaves).any()


def test_sums_are_within_their_bound_in_any_order() -> None:
    rng = np.random.default_rng(2)
    trees = [imported_trees(rng, 1, 2, 1, 0) for _ in range(200)]
    for precision in ("float32", "float64"):
        how = Summation(start=[3.0], shift=[0.1], divisor=7.0, scale=1.3, precision=precision)
        ensemble = Ensemble.of(trees, columns=1, summation=how)
        x = rng.normal(size=(20, 1))
        leaves = ensemble.leaves(x)
        for row in range(20):
            exact = sum((Fraction(float(v)) for v in ensemble.values[leaves[row], 0]), Fraction(3))
            real = float(exact / 7 * Fraction(1.3) + Fraction(0.1))
            assert abs(ensemble.scores(x[row : row + 1])[0, 0] - real) <= ensemble.rounding()[0]
            kind = np.dtype(precision).type
            total = kind(0.0)
            for value in rng.permutation(np.append(ensemble.values[leaves[row], 0], 3.0)):
                total = kind(total + kind(value))
            assert abs(float(total / kind(7) * kind(1.3) + kind(0.1)) - real) <= ensemble.rounding()[0]
        unit = 2.0**-24 if precision == "float32" else 2.0**-53
        assert ensemble.rounding()[0] < 300 * unit * 1000


def test_equal_rows_have_equal_scores_wherever_they_stand() -> None:
    rng = np.random.default_rng(3)
    ensemble = Ensemble.of(
        [imported_trees(rng, 3, 4, 2, EVERY) for _ in range(50)], columns=3, summation=Summation.plain(2)
    )
    rows = rng.normal(size=(40, 3))
    alone = np.concatenate([ensemble.scores(row[None, :]) for row in rows])
    assert np.array_equal(alone, ensemble.scores(rows))
    assert np.array_equal(ensemble.scores(np.repeat(rows, 3, axis=0)), np.repeat(alone, 3, axis=0))


def test_the_fingerprint_is_that_of_the_function() -> None:
    base = one(stump(0.5))
    assert base == one(stump(0.5)) and hash(base) == hash(one(stump(0.5)))
    others = [
        one(stump(0.25)),
        one(stump(0.5), comparison="<"),
        one(stump(0.5), compared_in="float32"),
        one(stump(0.5, value=[[0.0], [1.0], [2.5]])),
        one(stump(0.5, missing_left=[True, False, False])),
        one(stump(0.5, sets={0: [1]})),
        Ensemble.of([stump(0.5)], columns=1, summation=Summation(start=[1.0], shift=[0.0])),
        Ensemble.of([stump(0.5)], columns=2, summation=Summation.plain(1)),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == len(others) + 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"left": [0, 1, 2]},
        {"left": [2, 1, 2]},
        {"right": [9, 1, 2]},
        {"left": [-1, 1, 2]},
        {"column": [7, -1, -1]},
        {"column": [0, 0, 0]},
        {"threshold": [math.nan, 0, 0]},
        {"value": [[0.0], [math.inf], [1.0]]},
        {"value": [[0.0, 1.0]] * 3},
        {"adds_to": 4},
    ],
)
def test_nodes_that_form_no_tree_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        one(stump(0.5, **wrong))


def test_columns_and_features_must_fit() -> None:
    with pytest.raises(ModelError, match="read 1 columns, but there are 2"):
        bound(one(stump(0.5)), FeatureColumns([0, 1], columns_of), SCHEMA)
    with pytest.raises(ModelError, match="split feature 'a' by categories, but the schema calls it a number"):
        bound(one(stump(0.5, sets={0: [1]})), FeatureColumns([0], lambda points: points[:, :1]), SCHEMA)
    with pytest.raises(ModelError, match="read 1 features, but the schema has 4"):
        Trees(one(stump(0.5)), SCHEMA)
    with pytest.raises(ModelError, match="compare by <= in float64"):
        Trees(one(stump(0.5), comparison="<"), Schema([Real("a", 0, 1)]))


def test_numbers_between_the_same_cuts_have_the_same_scores() -> None:
    """At the cuts, beside them and elsewhere; and where they are not the same, it is not said that they are."""
    rng = np.random.default_rng(0)
    schema = Schema([Real("a", -2.0, 2.0), Real("b", -2.0, 2.0), Categorical("c", ["x", "y", "z"])])
    cuts = rng.uniform(-2.0, 2.0, 12)
    trees = [
        LibraryTree(column=[int(k % 2), -1, -1], threshold=[cut, 0, 0], left=[1, 1, 2], right=[2, 1, 2],
                    value=[[0.0], [rng.normal()], [rng.normal()]])
        for k, cut in enumerate(cuts.tolist())
    ]  # fmt: skip
    flat = Ensemble.of(trees, columns=3, summation=Summation.plain(1))
    model = Trees(bound(flat, FeatureColumns(range(3), np.asarray), schema), schema)
    values = np.concatenate([cuts, np.nextafter(cuts, 3.0), rng.uniform(-2.0, 2.0, 40)])
    before, after = (
        np.column_stack([rng.choice(values, 2000), rng.choice(values, 2000), rng.integers(0, 2, 2000)]) for _ in "ab"
    )
    after[:1000, 0], after[::2, 2] = before[:1000, 0], before[::2, 2]
    same = model.same_scores(before, after)
    equal = (model.scores(schema.encode(before)) == model.scores(schema.encode(after)))[:, 0]
    assert equal[same].all()
    assert not same[before[:, 2] != after[:, 2]].any()
    alike = before[:, 2] == after[:, 2]
    assert (same[alike] == equal[alike]).all()  # no two of the cells have the same score here
    assert {True, False} == set(same.tolist())
