"""Both sides of every constraint mean the same at its edges, in decimal numbers as people write them.

`restrict` is never narrower than `allows` (a row that the constraint's own judgement allows is searched), and its ends
are themselves allowed (a method may return them). What is meant is written again here with Decimals.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ifonly import Distance, Explainer, Integer, Nearest, Network, NoneExists, Ordinal, Real, Schema
from ifonly.errors import QuestionError
from ifonly.plausibility import NumberGivenOption
from ifonly.problem import ClassTarget, MaxChanges, OnlyWith, Question, Rule, lower
from ifonly.problem.constraints import (
    Allowed,
    Constraint,
    Domains,
    Fixed,
    MaxDelta,
    OnlyDown,
    OnlyUp,
    Range,
    Steps,
    Unconstrained,
    narrowed,
)
from ifonly.problem.distance_rules import AtLeastFar, AtMostFar
from ifonly.problem.learned.correlated import SignedSum
from ifonly.schema import Categorical, Feature
from ifonly.solvers.search.error_bounds import errors_everywhere
from ifonly.solvers.search.kernels.layout import HIGH, LOW

WRITTEN = st.one_of(
    st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.57, 5.27, 57.0, 100.0, 1e9, 1e9 + 0.1, 1e-7, 1 / 3, 2 / 3]),
    st.decimals(min_value=0, max_value=2000, places=2).map(float),
    st.decimals(min_value=0, max_value=2, places=7).map(float),
    st.integers(0, 10**9).map(float),
)
POSITIVE = WRITTEN.filter(lambda number: number >= 1e-7)
REAL, WHOLE = Real("x", -1e10, 1e10), Integer("x", -(10**10), 10**10)


def kinds(numbers: Any) -> Any:
    """Every constraint on one number."""
    ends = st.tuples(numbers, numbers).map(sorted)
    return st.one_of(
        st.sampled_from([Fixed("x"), OnlyUp("x"), OnlyDown("x"), Unconstrained("x")]),
        ends.map(lambda pair: Range("x", *pair)),
        numbers.map(lambda by: MaxDelta("x", by=by)),
        st.integers(0, 300).map(lambda percent: MaxDelta("x", share=percent / 100)),
        st.decimals(min_value=0, max_value=3, places=3).map(lambda share: MaxDelta("x", share=float(share))),
        POSITIVE.map(lambda step: Steps("x", step)),
    )


def decimal(number: float) -> Decimal:
    return Decimal(repr(number))


def edges(constraint: Constraint, before: float) -> list[float]:
    """Where the constraint's rows end, in decimals, and the float64s next to those."""
    start, found = decimal(before), [decimal(before)]
    match constraint:
        case Range():
            found += [decimal(constraint.lower), decimal(constraint.upper)]
        case MaxDelta():
            most = decimal(constraint.by) if constraint.by is not None else decimal(constraint.share) * abs(start)
            found += [start - most, start + most]
        case Steps():
            found += [start + k * decimal(constraint.step) for k in (-3, -2, -1, 1, 2, 3, 7, 100)]
    near = [float(value) for value in found]
    return [beside for v in near for beside in (math.nextafter(v, -math.inf), v, math.nextafter(v, math.inf))]


def domain_of(feature: Feature, before: float, constraints: list[Constraint]) -> Domains:
    domains = Domains(np.array([feature.lower]), np.array([feature.upper]), np.ones((1, 1), dtype=bool))
    return narrowed(feature, np.array([before]), constraints, domains)


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(before=WRITTEN, some=st.lists(kinds(WRITTEN), min_size=1, max_size=3))
@example(before=5.27, some=[Steps("x", 0.1), MaxDelta("x", by=0.3)])
@example(before=100.0, some=[MaxDelta("x", share=0.57)])
@example(before=0.1, some=[MaxDelta("x", by=0.2)])
@example(before=2 / 3, some=[MaxDelta("x", by=100.0), Steps("x", 100.0)])
def test_what_is_allowed_is_searched_and_the_ends_are_allowed(before: float, some: list[Constraint]) -> None:
    try:
        for constraint in some:
            constraint.check(Schema([REAL]))
    except QuestionError:
        return
    domain = domain_of(REAL, before, some)
    lower, upper = float(domain.lower[0]), float(domain.upper[0])

    def allowed(value: float) -> bool:
        return REAL.lower <= value <= REAL.upper and all(c.allows(REAL, before, value) for c in some)

    for value in (value for constraint in some for value in edges(constraint, before)):
        if allowed(value):
            assert lower <= value <= upper, (before, some, value)
    if len({c.step for c in some if isinstance(c, Steps)}) <= 1 and lower <= upper:
        assert allowed(lower), (before, some, lower)
        assert allowed(upper), (before, some, upper)


@settings(max_examples=300, deadline=None)
@given(before=st.integers(-1000, 10**9), constraint=kinds(WRITTEN))
def test_the_same_for_whole_numbers(before: int, constraint: Constraint) -> None:
    try:
        constraint.check(Schema([WHOLE]))
    except QuestionError:
        return
    domain = domain_of(WHOLE, float(before), [constraint])
    for edge in edges(constraint, float(before)):
        for value in {float(math.floor(edge)), float(math.ceil(edge))}:
            inside = bool(domain.lower[0] <= value <= domain.upper[0])
            if not WHOLE.lower <= value <= WHOLE.upper:
                continue
            if constraint.allows(WHOLE, float(before), value):
                assert inside, (before, constraint, value)
            elif not isinstance(constraint, Steps):
                assert not inside, (before, constraint, value)


@pytest.mark.parametrize("percent", range(101))
def test_whole_percents_are_exact(percent: int) -> None:
    rule = MaxDelta("x", share=float(Decimal(percent) / 100))
    for before in (100.0, 1000.0, 50.0, 200.0, 300.0):
        moved = Decimal(before) * percent / 100
        for after in (Decimal(before) - moved, Decimal(before) + moved):
            assert rule.allows(REAL, before, float(after))
            if after == int(after):
                assert rule.allows(WHOLE, before, float(after))


@settings(max_examples=200, deadline=None)
@given(before=WRITTEN, step=POSITIVE, count=st.integers(-50, 50))
def test_a_step_is_a_decimal_step(before: float, step: float, count: int) -> None:
    rule = Steps("x", step)
    try:
        rule.check(Schema([REAL]))
    except QuestionError:
        return
    with localcontext() as context:
        context.prec = 60
        after = float(decimal(before) + count * decimal(step))
    assert rule.allows(REAL, before, after)
    assert rule.allows(REAL, before, math.nextafter(after, math.inf)) is False


@pytest.mark.parametrize(
    "feature", [Ordinal("x", list("abcde")), Categorical("x", list("abcde"))], ids=lambda f: f.kind
)
def test_the_same_for_options(feature: Feature) -> None:
    schema = Schema([feature])
    rules = [Fixed("x"), OnlyUp("x"), OnlyDown("x"), Allowed("x", ["b", "d"]), Unconstrained("x"),
             *(MaxDelta("x", by=by) for by in (0, 0.99, 1, 1.5, 2, 10))]  # fmt: skip
    for rule in rules:
        try:
            rule.check(schema)
        except QuestionError:
            continue
        for before in range(5):
            domains = Domains(np.zeros(1), np.zeros(1), np.ones((1, 5), dtype=bool))
            mask = narrowed(feature, np.array([float(before)]), [rule], domains).allowed[0]
            assert mask.tolist() == [rule.allows(feature, float(before), float(v)) for v in range(5)]


def linear(weights: list[float], bias: float, features: list[Feature]) -> Explainer:
    return Explainer(
        Network.of([(np.array([weights]), np.array([bias]))]), schema=Schema(features), classes=["no", "yes"]
    )


def test_the_last_step_is_not_lost() -> None:
    explainer = linear([1.0], -5.565, [Real("rate", 0, 10)])
    for rules in (
        ["rate changes in steps of 0.1", "rate changes by at most 0.3"],
        ["rate changes by at most 0.3", "rate changes in steps of 0.1"],
        ["rate changes in steps of 0.1", "rate <= 5.57"],
    ):
        answer = explainer.explain({"rate": 5.27}, constraints=rules)
        assert isinstance(answer, Nearest), answer
        assert answer.counterfactual == {"rate": 5.57}


@pytest.mark.long
def test_every_persons_last_step() -> None:
    """Of 150 people, whose third step is all that is allowed and all that helps, each finds it."""
    rng = np.random.default_rng(3)
    rules = ["rate changes in steps of 0.1", "rate changes by at most 0.3"]
    for before in rng.integers(100, 900, 150) / 100:
        last = float(Decimal(repr(float(before))) + Decimal("0.3"))
        explainer = linear([1.0], -(last - 0.005), [Real("rate", 0, 10)])
        answer = explainer.using(reasons=False).explain({"rate": float(before)}, constraints=rules)
        assert answer.counterfactual == {"rate": last}, (before, answer)
        beyond = linear([1.0], -(last + 0.005), [Real("rate", 0, 10)])
        assert isinstance(beyond.using(reasons=False).explain({"rate": float(before)}, constraints=rules), NoneExists)


def test_fifty_seven_percent_of_a_hundred() -> None:
    for feature in (Real("x", 0, 200), Integer("x", 0, 200)):
        explainer = linear([-1.0], 43.4, [feature])
        answer = explainer.explain({"x": 100}, constraints=["x changes by at most 57 %", "x in [0, 43]"])
        assert isinstance(answer, Nearest)
        assert answer.counterfactual == {"x": 43}


def test_steps_within_steps_are_decimal_too() -> None:
    explainer = linear([1.0], -5.6, [Real("rate", 0, 10)])
    answer = explainer.explain(
        {"rate": 5.27}, constraints=["rate changes in steps of 0.1", "rate changes in steps of 0.3"]
    )
    assert answer.counterfactual == {"rate": 5.87}


# ---------------------------------------------------------------------- rules on the row as a whole

MIXED = Schema([Real("x", 0, 10), Real("y", -1, 1000), Integer("n", 0, 60), Categorical("c", ["p", "q", "r"])])
POINT = (0.3, 5.27, 57.0, 1.0)
RULES: list[Any] = [
    Rule("x + y <= 0.3"),
    Rule("x + y >= 0.3"),
    Rule("0.1 * x - 0.3 * y >= 0"),
    Rule("x >= 0.1 or y <= 0.2"),
    Rule("if x < 5.27 then y >= 0.57"),
    Rule("x + 0.1 * [c = p] <= 0.3 + 0.2 * [c = q]"),
    Rule("if c = p then x + y <= 0.3"),
    Rule("x + n <= 57.1"),
    Rule("3 * x - n >= 0.3 or c = r"),
    Rule("x in [0.1, 0.2] or x in [0.3, 5.27]"),
    Rule("n in (1, 3, 57) or x >= 0.3"),
    AtLeastFar(point=POINT, at_least=0.1, distance=Distance("l1")),
    AtLeastFar(point=POINT, at_least=0.25, distance=Distance("l1", weights={"n": 0.7}, scales={"x": 0.3})),
    AtLeastFar(point=POINT, at_least=0.05, distance=Distance("l1"), sides=(("x", 1), ("n", -1))),
    AtMostFar(point=POINT, at_most=0.25, distance=Distance("l1")),
    AtMostFar(point=POINT, at_most=0.1 + 0.2, distance=Distance("l1", weights={"c": 0.1})),
    NumberGivenOption("x", "c", ((0.1, 0.3), (0.1 + 0.2, 5.27), (0.57, 10.0))),
    NumberGivenOption("n", "c", ((0.0, 3.0), (3.0, 57.0), (57.0, 60.0))),
    SignedSum((0.1, -0.3, 0.2, 1.0, 0.5, 0.0), 0.57),
    MaxChanges(2),
    OnlyWith("x", "n"),
]
NUMBERS = [0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.57, 0.9, 1 / 3, 5.27, 5.57, 9.999999, 10.0]


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
def test_a_row_that_a_rule_allows_is_never_surely_broken(rule: Any) -> None:
    """The search drops a row only where the rule's neurons are below what rounding can do, and returns one only where
    they are above it; both agree with the rule's own judgement of the row, at its edges too."""
    network = Network.of([(np.ones((1, 6)), np.zeros(1))])
    model = Explainer(network, schema=MIXED, classes=["no", "yes"]).model
    lowered = lower(Question(model=model, target=ClassTarget("yes"), constraints=[rule]))
    count = len(lowered.required)
    if not count:  # about changes, not about values: the methods count them
        assert isinstance(rule, MaxChanges | OnlyWith)
        return
    floors = errors_everywhere(lowered).need[0, :, -count:]
    rng = np.random.default_rng(5)
    points = np.array([[*rng.choice(NUMBERS, 2), rng.choice([0, 1, 3, 4, 56, 57, 58]), rng.integers(3)]
                       for _ in range(3000)])  # fmt: skip
    points[::3, 0] = [rng.choice([0.3, 0.1, 0.2]) for _ in points[::3]]
    h, values = lowered.unrolled(points), np.zeros((len(points), count))
    for k, (weight, bias) in enumerate(lowered.layers):
        z = h @ weight.T + bias
        for j in np.flatnonzero(lowered.required[:, 0] == k).tolist():
            values[:, j] = z[:, lowered.required[j, 1]]
        h = np.maximum(z, 0.0)
    allowed = np.array([rule.allows_row(MIXED, point, point) for point in points])
    assert allowed.any() and not allowed.all()
    broken, robustly = (values < floors[LOW]).any(axis=1), (values >= floors[HIGH]).all(axis=1)
    assert not (allowed & broken).any(), points[allowed & broken][:3]
    if not getattr(rule, "sides", ()):  # those are kept by ranges besides
        assert not (~allowed & robustly).any(), points[~allowed & robustly][:3]
