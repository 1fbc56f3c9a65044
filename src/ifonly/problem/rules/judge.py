"""Formulas as functions of one row: what `formulas.holds_each` says, without walking the formula for every row.

A row is judged several times for one answer, by every rule. Coefficients are made floats once, and a row is a list of
Python floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

from ifonly.problem.rules.formulas import COMPARES, ROUNDING, Compare, Denial, Every, Formula, Member, Some

Judge: TypeAlias = Callable[[Sequence[float]], bool]


def judge_of(formula: Formula) -> Judge:
    """The function that says whether the formula is true of a row."""
    match formula:
        case Compare():
            return _compared(formula)
        case Member(g, options):
            return lambda row: int(row[g]) in options
        case Every(parts):
            each = [judge_of(part) for part in parts]
            return lambda row: _every(each, row)
        case Some(parts):
            some = [judge_of(part) for part in parts]
            return lambda row: _some(some, row)
        case Denial(part):
            denied = judge_of(part)
            return lambda row: not denied(row)
        case _:
            assert_never(formula)


def _every(each: list[Judge], row: Sequence[float]) -> bool:
    for one in each:  # noqa: SIM110  a generator takes twice as long
        if not one(row):
            return False
    return True


def _some(some: list[Judge], row: Sequence[float]) -> bool:
    for one in some:  # noqa: SIM110
        if one(row):
            return True
    return False


def _compared(formula: Compare) -> Judge:
    """In float64 where rounding leaves no doubt of the sign, else by the value itself (as `Linear.signs`)."""
    linear, compares = formula.linear, COMPARES[formula.sign]
    try:
        numbers = [(g, float(coefficient)) for g, coefficient in linear.numbers]
        options = [(g, [float(value) for value in values]) for g, values in linear.options]
        constant = float(linear.constant)
    except OverflowError:
        return lambda row: bool(compares(linear.value(row), 0))

    def judge(row: Sequence[float]) -> bool:
        total, size = constant, abs(constant)
        for g, coefficient in numbers:
            term = coefficient * row[g]
            total += term
            size += abs(term)
        for g, values in options:
            term = values[int(row[g])]
            total += term
            size += abs(term)
        certain = abs(total) > ROUNDING * size and size < math.inf
        return bool(compares(total if certain else linear.value(row), 0))

    return judge
