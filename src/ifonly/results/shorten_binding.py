"""Rounding of counterfactuals where a constraint binds: a rule, a range, a share, several conditions at once.

There a value can often not be rounded away from the factual, and two values not one by one: on the edge of a + b <= 9
with a score on the margin, one has to go up and the other down. So the short numbers around the row are tried together,
a few on either side of each changed value, with more and more decimals, and the nearest row that is no worse is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question
from ifonly.problem.rules import Rule

DECIMALS = 15
"""Beyond this many, a number is not shorter."""
LEVELS = 5
"""How many more decimals are tried than the slack alone needs."""
MOST_TRIALS = 256
DIGITS = 8.0
"""Last digits of the largest number: by how much a rule between several numbers must hold."""
NEIGHBOURS, SIDES = (0, 1, -1, 2), (0, 1)
"""Of the short number below a value: which short numbers are tried; the second, where many values change."""

Floats = NDArray[np.float64]


def shorter(
    question: Question,
    before: Floats,
    row: Floats,
    cells: list[int],
    within: tuple[float, float],
    conditions: Callable[[Floats], Floats],
) -> Floats | None:
    """A row with shorter numbers in these cells, of a distance `within` these two, that is allowed and that the network
    scores no lower than this one, or high enough under any rounding; None if there is none among those that are tried.
    """
    least, most = within
    slack = most - question.measure.between(before, row)
    enough = np.minimum(conditions(row[None, :])[0], question.margins + question.computed_error)
    for rows in _trials(question, row, cells, slack):
        far = question.measure.between(before, rows)
        near = np.flatnonzero((far >= least) & (far <= most))
        good = near[(conditions(rows[near]) >= enough).all(axis=1)] if len(near) else near
        for k in good[np.argsort(far[good], kind="stable")].tolist():
            if question.allows(before, rows[k]) is None and _clear(question, before, rows[k], cells):
                return np.asarray(rows[k])
    return None


def _clear(question: Question, before: Floats, row: Floats, cells: list[int]) -> bool:
    """Do the rules between several numbers hold by more than the last digits, whoever adds them up?"""
    between = [rule for rule in question.rules if not isinstance(rule, Rule) or len(rule.features(question.schema)) > 1]
    for g in cells if between else ():
        for nudge in (-DIGITS, DIGITS):
            moved = row.copy()
            moved[g] += nudge * np.spacing(np.abs(row[cells]).max())
            if not all(rule.allows_row(question.schema, before, moved) for rule in between):
                return False
    return True


def _trials(question: Question, row: Floats, cells: list[int], slack: float) -> Iterator[Floats]:
    """Rows with short numbers around this one, first those with the fewest decimals."""
    lower, upper, _ = question.schema.grid
    offsets = NEIGHBOURS if len(NEIGHBOURS) ** len(cells) <= MOST_TRIALS else SIDES
    if len(offsets) ** len(cells) > MOST_TRIALS:
        return
    choices = list(itertools.product(offsets, repeat=len(cells)))
    for level in range(LEVELS):
        rows = np.repeat(row[None, :], len(choices), axis=0)
        for place, g in enumerate(cells):
            places = _decimals(float(question.measure.steepest[g]) * len(cells), slack) + level
            if places > DECIMALS:
                continue
            short = {offset: _short(float(row[g]), places, offset) for offset in offsets}
            rows[:, g] = np.clip([short[choice[place]] for choice in choices], lower[g], upper[g])
        yield rows


def _decimals(rate: float, slack: float) -> int:
    """The fewest decimals (tens, hundreds: below 0) of which one costs no more than the slack."""
    return math.ceil(math.log10(rate / slack)) if rate > 0.0 else 0


def _short(value: float, places: int, offset: int) -> float:
    """The short number at or below a value, or so many after it."""
    scale = 10.0 ** abs(places)
    whole = math.floor(value * scale if places >= 0 else value / scale) + offset
    return whole / scale if places >= 0 else whole * scale
