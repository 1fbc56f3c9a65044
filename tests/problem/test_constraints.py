"""Constraints on one feature: what each allows, and that what the methods search is the same."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ifonly import Binary, Categorical, Integer, Ordinal, Real, Schema
from ifonly.errors import QuestionError
from ifonly.problem.constraints import (
    Constraint,
    Domains,
    Fixed,
    MaxDelta,
    OnlyDown,
    OnlyUp,
    Range,
    Steps,
    Unconstrained,
)
from ifonly.schema import Choice, Feature

AGE, INCOME = Integer("age", 20, 70, 5), Real("income", -3, 10)
LEVEL, JOB, OWNER = Ordinal("level", list("abcde")), Categorical("job", ["a", "b"]), Binary("owner")
SCHEMA = Schema([AGE, INCOME, LEVEL, JOB, OWNER])


def values_of(feature: Feature, rng: np.random.Generator) -> NDArray[np.float64]:
    column: NDArray[np.float64] = Schema([feature]).sample(300, rng)[:, 0]
    return column if not isinstance(feature, Real) else np.where(rng.random(300) < 0.5, np.round(column, 1), column)


def everything(feature: Feature, count: int) -> Domains:
    options = len(feature.options) if isinstance(feature, Choice) else 1
    lower, upper = (0.0, options - 1.0) if isinstance(feature, Choice) else (feature.lower, feature.upper)
    return Domains(np.full(count, lower), np.full(count, upper), np.ones((count, options), dtype=bool))


@pytest.mark.parametrize(
    ("feature", "constraint"),
    [
        (AGE, MaxDelta("age", by=10)),
        (AGE, MaxDelta("age", by=7.5)),
        (AGE, MaxDelta("age", share=0.3)),
        (INCOME, MaxDelta("income", by=0.7)),
        (INCOME, MaxDelta("income", share=0.1)),
        (LEVEL, MaxDelta("level", by=2)),
        (OWNER, MaxDelta("owner", by=0)),
        (INCOME, Range("income", -0.1, 0.3)),
        (LEVEL, OnlyUp("level")),
        (OWNER, OnlyDown("owner")),
        (AGE, Fixed("age")),
        (INCOME, Unconstrained("income")),
        (JOB, Unconstrained("job")),
    ],
)
def test_what_is_allowed_is_what_is_searched(feature: Feature, constraint: Constraint) -> None:
    rng = np.random.default_rng(0)
    before, after = values_of(feature, rng), values_of(feature, rng)
    constraint.check(SCHEMA)
    domains = everything(feature, len(before))
    constraint.restrict(feature, before, domains)
    if isinstance(feature, Choice):
        searched = domains.allowed[np.arange(len(after)), after.astype(int)]
    else:
        searched = (domains.lower <= after) & (after <= domains.upper)
    allowed = [constraint.allows(feature, b, a) for b, a in zip(before.tolist(), after.tolist(), strict=True)]
    assert searched.tolist() == allowed
    assert any(allowed)
    assert isinstance(constraint, Unconstrained) or not all(allowed)


@pytest.mark.parametrize(
    ("constraint", "before", "after"),
    [
        (MaxDelta("income", by=0.1), 0.2, 0.3),
        (MaxDelta("income", by=0.3), 5.27, 5.57),
        (MaxDelta("income", share=0.1), -2.0, -2.2),
        (MaxDelta("income", share=0.0), 1.0, 1.0),
        (MaxDelta("income", share=2), 1.0, -1.0),
        (Steps("income", 0.1), 0.7, 1.0),
        (Steps("income", 0.1), 5.27, 5.57),
        (Steps("income", 0.1), 0.7, 0.7),
    ],
)
def test_the_edge_belongs_to_it(constraint: Any, before: float, after: float) -> None:
    assert constraint.allows(INCOME, before, after)
    if after != before:
        assert not constraint.allows(INCOME, before, float(np.nextafter(after, math.inf * (after - before))))


@pytest.mark.parametrize(
    ("feature", "step"), [(INCOME, 0.1), (INCOME, 0.25), (INCOME, 3.7), (INCOME, 20.0), (AGE, 5), (AGE, 15), (AGE, 100)]
)
def test_steps(feature: Any, step: float) -> None:
    """The ends of the domain are steps within what was left, nothing further out is, and what lies between is found."""
    constraint = Steps(feature.name, step)
    constraint.check(SCHEMA)
    rng = np.random.default_rng(1)
    before = values_of(feature, rng)
    ends = np.sort(rng.uniform(feature.lower, feature.upper, (2, len(before))), axis=0)
    domains = Domains(ends[0].copy(), ends[1].copy(), np.ones((len(before), 1), dtype=bool))
    constraint.restrict(feature, before, domains)
    for b, low, high, first, last in zip(before, domains.lower, domains.upper, *ends, strict=True):
        written = Decimal(repr(float(b))), Decimal(repr(float(step)))
        reachable = [x for k in range(-200, 201) if first <= (x := float(written[0] + k * written[1])) <= last]
        if not reachable:
            assert low > high
            continue
        assert (low, high) == (reachable[0], reachable[-1])
        assert all(constraint.allows(feature, b, x) for x in reachable)
        assert not constraint.allows(feature, b, reachable[0] + 0.3 * step)
    assert constraint.allows(feature, before[0], before[0])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MaxDelta("age"), "how much may 'age' change\\? Give either 'by' or 'share'"),
        (lambda: MaxDelta("age", by=1, share=1), "either 'by' or 'share'"),
        (lambda: MaxDelta("age", by=-1), "'by' of the change of 'age' must be a number >= 0; it is -1"),
        (lambda: MaxDelta("age", share="1"), "'share' of the change of 'age'.*'1'"),
        (lambda: MaxDelta("age", by=math.inf), "it is inf"),
        (lambda: MaxDelta("job", by=1).check(SCHEMA), "'job' has categories without an order"),
        (lambda: MaxDelta("level", share=0.5).check(SCHEMA), "'level' has levels"),
        (lambda: Steps("age", 0), "step of 'age' must be a number > 0; it is 0"),
        (lambda: Steps("age", math.nan), "it is nan"),
        (lambda: Steps("age", 7).check(SCHEMA), "a multiple of 5; it is 7"),
        (lambda: Steps("job", 1).check(SCHEMA), "'job' has options"),
        (lambda: Steps("income", 1e-20).check(SCHEMA), "too fine for float64"),
        (lambda: Unconstrained("jub").check(SCHEMA), "'jub'; did you mean 'job'"),
    ],
)
def test_what_is_no_constraint(make: Any, words: str) -> None:
    with pytest.raises((QuestionError, ValueError), match=words):
        make()
