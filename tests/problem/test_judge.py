"""A rule's quick judge says of every row what its formula says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ifonly import Categorical, Integer, Real, Schema
from ifonly.problem import Rule
from ifonly.problem.rules.formulas import COMPARES, Compare, Denial, Every, Formula, Member, Some, holds_each
from ifonly.problem.rules.judge import judge_of

SCHEMA = Schema(
    [
        Real("x", 0, 1),
        Real("y", 0, 1),
        Integer("n", 0, 9),
        Categorical("c", ["a", "b", "d"]),
        Real("far", -1e300, 1e300),
    ]
)
RULES = [
    "x + y <= 0.3",
    "x = y",
    "x != y and n >= 3",
    "if c = a then x >= 0.1 else n <= 4",
    "not (c = a or c = b) or 3 * x - 0.2 * n < y",
    "far >= 1e9 or far < 3 * x",
    "c = a or (n > 2 and (x > 0.5 or y > 0.5))",
    "1e90 * 1e90 * 1e90 * 1e90 * x >= 0.5 * y + n",  # a coefficient beyond float64
]


def rows() -> np.ndarray:
    """Random rows, and many on the edges of the rules."""
    rng = np.random.default_rng(0)
    points = SCHEMA.sample(300, rng)
    points[:150, 0] = rng.choice([0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.5], 150)
    points[:150, 1] = rng.choice([0.0, 0.1, 0.2, 0.3, 0.5], 150)
    points[::7, 4] = rng.choice([1e300, -1e300, 0.3, 0.0], len(points[::7]))
    return points


def holds(formula: Formula, point: np.ndarray) -> bool:
    """In rational arithmetic throughout."""
    match formula:
        case Compare(linear, sign):
            return bool(COMPARES[sign](linear.value(point), 0))
        case Member(g, options):
            return int(point[g]) in options
        case Every(parts):
            return all(holds(part, point) for part in parts)
        case Some(parts):
            return any(holds(part, point) for part in parts)
        case Denial(part):
            return not holds(part, point)


@pytest.mark.parametrize("text", RULES)
def test_it_says_what_the_formula_says(text: str) -> None:
    rule = Rule(text)
    formula = rule.formula(SCHEMA)
    points, judge = rows(), judge_of(formula)
    expected = [holds(formula, point) for point in points]
    assert [judge(point.tolist()) for point in points] == expected
    assert holds_each(formula, points).tolist() == expected
    assert [rule.allows_row(SCHEMA, point, point) for point in points] == expected
    assert len(set(expected)) == 2


def test_a_rule_that_has_judged_goes_to_another_process() -> None:
    rule = Rule(RULES[0])
    assert rule.allows_row(SCHEMA, rows()[0], np.zeros(5))
    again = pickle.loads(pickle.dumps(rule))
    assert again == rule
    assert again.allows_row(SCHEMA, rows()[0], np.zeros(5))
