"""Bounds on what actions can do, for many sets at once: against random actions, and answers with and without them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from random_causes import CausalCase, causal_case, real_case

from ifonly import (
    Binary,
    CausalModel,
    ClassTarget,
    Distance,
    Explainer,
    Integer,
    Limits,
    Ordinal,
    Query,
    Real,
    datasets,
)
from ifonly.answering import action_bounds, recourse
from ifonly.answering.action_bounds import ActionBounds
from ifonly.answering.leaf_bounds import TreeLeaves
from ifonly.answering.reachable_rows import ReachableRows
from ifonly.causes import LinearEquation
from ifonly.causes.causal_model import value_ends
from ifonly.problem import Question
from ifonly.problem.parts import UnrolledColumns
from ifonly.resources import LimitReached, check_limits, limited
from ifonly.schema import Choice, Feature

TRIED = 400


class Tried(NamedTuple):
    """Sets of features that are acted on, and amounts, of which rows that can be reached are compared with bounds."""

    case: CausalCase
    bounds: ActionBounds
    sets: list[tuple[int, ...]]
    acted: NDArray[np.bool_]
    amount: NDArray[np.float64]

    @property
    def point(self) -> NDArray[np.float64]:
        return self.case.schema.read(self.case.person)

    @property
    def rows(self) -> ReachableRows:
        people = self.bounds.lowered.domains(self.point[None, :])
        return ReachableRows(self.bounds, self.point, people, self.acted, self.amount)

    def reached(self, k: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Random rows that follow from actions on set k within its amount."""
        case, lowered, point, schema = self.case, self.bounds.lowered, self.point, self.case.schema
        able = self.acted[k] | ~np.isin(np.arange(len(schema)), case.causes.order)
        drawn = np.column_stack([_drawn(f, rng) for f in schema.features])
        share = rng.random((TRIED, 1)) ** 4 * lowered.numeric + (~lowered.numeric)
        real = lowered.numeric & (lowered.step == 0.0)
        drawn = np.where(real, point + share * (drawn - point), drawn)
        drawn = np.where(able & (rng.random((TRIED, len(schema))) < rng.random((TRIED, 1))), drawn, point)
        cheap = np.array([case.distance.between(schema, point, one) <= self.amount[k] for one in drawn])
        noise = np.tile(case.causes.noise(point[None, :]), (cheap.sum(), 1))
        rows, inside = case.causes.followed(drawn[cheap], np.tile(self.acted[k], (cheap.sum(), 1)), noise)
        return np.asarray(rows[inside.all(axis=1)])


def tried(case: CausalCase, rng: np.random.Generator) -> Tried:
    order, target = case.causes.order, ClassTarget("yes")
    trees = case.model.function.as_trees()
    leaves = None if trees is None else TreeLeaves.of(trees, UnrolledColumns(case.schema).start)
    query = Query(target=target, distance=case.distance)
    bounds = ActionBounds.of(case.model, target, case.causes, query, leaves)
    assert bounds is not None
    sets = [some for k in range(len(order) + 1) for some in combinations(order, k)][:32]
    acted = np.array([[g in some for g in range(len(case.schema))] for some in sets])
    return Tried(case, bounds, sets, acted, rng.choice([0.01, 0.05, 0.3, 2.0], size=len(sets)))


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(150))
def test_no_action_within_the_amount_exceeds_the_bound(seed: int) -> None:
    case = real_case(seed, numbers=True) if seed % 3 == 2 else causal_case(seed + 4000, 6, kinds=4)
    check_scores(case, np.random.default_rng(seed))


def check_scores(case: CausalCase, rng: np.random.Generator) -> None:
    some = tried(case, rng)
    most, _ = some.rows.conditions()
    c, d = some.bounds.lowered.question.conditions
    for k in range(len(some.sets)):
        reached = case.model.scores(some.reached(k, rng)) @ c.T - d
        assert (reached <= most[k] + 1e-9).all()


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(150))
def test_no_action_within_the_amount_leaves_the_box_or_its_leaves(seed: int) -> None:
    case = real_case(seed, trees=True, numbers=True) if seed % 3 == 2 else causal_case(seed + 4000, 6, True, kinds=4)
    check_leaves(case, np.random.default_rng(seed))


def check_leaves(case: CausalCase, rng: np.random.Generator) -> None:
    some = tried(case, rng)
    rows, trees = some.rows, some.bounds.trees
    assert trees is not None
    boxes = rows.boxes()
    options = np.concatenate(boxes.allowed, axis=1)
    people = some.bounds.lowered.domains(some.point[None, :])
    most, now = trees.most(some.point, people, rows.able, (boxes.lower, boxes.upper, options), some.amount)
    question = Question(model=case.model, target=ClassTarget("yes"))
    c, d = question.conditions
    assert (case.model.scores(some.point[None, :]) @ c.T - d - question.margins <= now - trees.need + 1e-9).all()
    for k in range(len(some.sets)):
        reached = some.reached(k, rng)
        for g in range(len(case.schema)):
            assert all(boxes.holding(g, value)[k] for value in reached[:, g].tolist())
        conditions = case.model.scores(reached) @ c.T - d - question.margins
        assert (conditions <= most[k] - trees.need + 1e-12).all()


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("seed", range(80))
def test_bounds_hold_for_costs_of_all_kinds(seed: int, trees: bool) -> None:
    """Mixtures of norms; costs by direction and by transition; scales."""
    rng = np.random.default_rng([seed, 19])
    case = real_case(seed, trees, numbers=True, mixed=True) if seed % 3 == 2 else causal_case(seed + 9000, 6, trees)
    case = replace(case, distance=any_distance(case, rng))
    if case.causes.order:
        (check_leaves if trees else check_scores)(case, rng)


def any_distance(case: CausalCase, rng: np.random.Generator) -> Distance:
    norms = ("l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7})

    def drawn(kind: Any, values: list[float]) -> dict[str, float]:
        return {f.name: float(rng.choice(values)) for f in case.schema.features
                if isinstance(f, kind) and rng.random() < 0.5}  # fmt: skip

    pairs = {
        f.name: {
            (a, b): float(rng.choice([0.1, 0.5, 2.0])) for a, b in permutations(f.options, 2) if rng.random() < 0.6
        }
        for f in case.schema.features
        if isinstance(f, Choice) and rng.random() < 0.5
    }
    return Distance(
        norms[int(rng.integers(len(norms)))],
        weights=drawn(Feature, [0.1, 1.0, 5.0]),
        up=drawn(Real | Integer | Ordinal | Binary, [0.3, 3.0]),
        down=drawn(Real | Integer | Ordinal | Binary, [0.3, 3.0]),
        scales=drawn(Real | Integer, [0.5, 2.0, 10.0]),
        transitions=pairs,
    )


@pytest.mark.parametrize("trees", [False, True])
def test_many_sets_are_bounded_some_at_a_time(trees: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    some = tried(real_case(4, trees=trees, numbers=True), np.random.default_rng(4))
    sets, fees = [frozenset(one) for one in some.sets], [[0.1] * len(one) for one in some.sets]
    assert len(sets) > 4
    alone = [some.bounds.of_sets(some.point, [one], [fee], 0.4) for one, fee in zip(sets, fees, strict=True)]
    monkeypatch.setattr(action_bounds, "AT_ONCE", 1)
    found = some.bounds.of_sets(some.point, sets, fees, 0.4)
    assert found.out.tolist() == [one.out[0] for one in alone]
    assert found.guess.tolist() == [one.guess[0] for one in alone]
    assert (found.boxes is not None) is trees
    for k, one in enumerate(alone if trees else []):
        assert found.boxes is not None and one.boxes is not None and len(found.boxes) == len(sets)
        assert (found.boxes.lower[k] == one.boxes.lower[0]).all() and (found.boxes.upper[k] == one.boxes.upper[0]).all()
        pairs = zip(found.boxes.allowed, one.boxes.allowed, strict=True)
        assert all((many[k] == own[0]).all() for many, own in pairs)


@pytest.mark.parametrize("limits", [(1e-9, None), (None, 1000)])
def test_bounds_keep_to_limits(limits: tuple[float | None, int | None]) -> None:
    some = tried(real_case(4, numbers=True), np.random.default_rng(4))
    with limited(*limits), pytest.raises(LimitReached):
        some.bounds.of_sets(some.point, [frozenset(one) for one in some.sets], [[] for _ in some.sets], 0.4)


def test_answers_are_the_same_where_bounds_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sets are searched then, as without bounds."""
    case = real_case(1, numbers=True)
    explainer, asked, costs = Explainer(case.model).using(reasons=False), list[object](), []
    of_sets = ActionBounds.of_sets

    def stopped(*known: object) -> object:
        asked.append(known)
        check_limits(1 << 62)
        return of_sets(*known)  # type: ignore[arg-type]

    for limits in (Limits(), Limits(memory_bytes=1 << 40)):
        costs.append(explainer.using(limits=limits).recourse(case.person, case.causes, distance=case.distance).cost)
        monkeypatch.setattr(ActionBounds, "of_sets", stopped)
    assert asked and costs[0] == pytest.approx(costs[1], rel=1e-6)


def _drawn(feature: Feature, rng: np.random.Generator) -> NDArray[np.float64]:
    low, high = value_ends(feature)
    return rng.uniform(low, high, TRIED) if isinstance(feature, Real) else rng.integers(low, high + 1, TRIED)


def test_answers_are_the_same_without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of people whose rows have a feature that follows from a definition, too."""
    data, model = datasets.load("credit"), datasets.network("credit")
    causes = CausalModel(model.schema, {
        "MaxBillAmountOverLast6Months": LinearEquation({"EducationLevel": 300.0, "TotalOverdueCounts": 900.0}),
        "MostRecentBillAmount": LinearEquation({"MaxBillAmountOverLast6Months": 0.8}),
        "MaxPaymentAmountOverLast6Months": LinearEquation({"MaxBillAmountOverLast6Months": 0.2}),
    })  # fmt: skip
    explainer, points = Explainer(model).using(reasons=False), data.points()[:60]
    people = [model.schema.row(one) for one in points[model.decide(model.scores(points)) == 0][:6]]
    searched: list[object] = []
    on_set = recourse.RecourseAnswerer._on_set
    monkeypatch.setattr(recourse.RecourseAnswerer, "_on_set", lambda *a: searched.append(a) or on_set(*a))
    costs, searches = [], []
    for few in (recourse.FEW, 1000):
        monkeypatch.setattr(recourse, "FEW", few)
        searched.clear()
        told = [explainer.recourse(row, causes) for row in people]
        assert all(one.status == "nearest" for one in told)
        costs.append([one.cost for one in told])
        searches.append(len(searched))
    assert costs[0] == pytest.approx(costs[1], rel=1e-6) and searches[0] < searches[1]
