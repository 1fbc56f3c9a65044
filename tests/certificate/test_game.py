"""The linear program of the kernels that finds multipliers, beside one of HiGHS."""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np
import pytest
from numpy.typing import NDArray

from ifonly.certifying.float_check.game import add_answer, begin_game, mix_answers
from ifonly.certifying.float_check.layout import ANSWERS, MOST_ROWS, MULTIPLIER, MULTIPLIER_ROWS, SOURCES, TRIAL
from kernel_cache import cached


class Game(NamedTuple):
    """What of the kernels' work the game uses."""

    R: NDArray[np.float64]
    tableau: NDArray[np.float64]
    names: NDArray[np.int64]
    answers: NDArray[np.float64]


@cached(SOURCES)
def play(w, values):
    """The value of the game, and the answers mixed."""
    count, rows = values.shape
    mixed, level = np.zeros(w.answers.shape[1]), 0.0
    begin_game(w, rows)
    for k in range(count):
        for r in range(rows):
            w.R[TRIAL, r] = values[k, r]
        level = add_answer(w, k + 1, rows)
    mix_answers(w, rows, len(mixed), mixed)
    return level, mixed


def value_of(values: NDArray[np.float64]) -> float:
    """min t  subject to  t >= values m,  sum m = 1,  m >= 0."""
    count, rows = values.shape
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for j in range(rows + 1):
        low = -highspy.kHighsInf if j == rows else 0.0
        highs.addCol(float(j == rows), low, highspy.kHighsInf, 0, np.array([]), np.array([]))
    where = np.arange(rows + 1, dtype=np.int32)
    highs.addRow(1.0, 1.0, rows, where[:rows], np.ones(rows))
    for k in range(count):
        highs.addRow(0.0, highspy.kHighsInf, rows + 1, where, np.append(-values[k], 1.0))
    highs.run()
    return float(highs.getSolution().col_value[-1])


@pytest.mark.parametrize("seed", range(60))
def test_multipliers_and_mixed_answers_reach_the_value_of_the_game(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, count = int(rng.integers(1, MOST_ROWS + 1)), int(rng.integers(1, ANSWERS + 1))
    values = 2.0 + rng.uniform(-1.0, 1.0, (count, rows))
    if seed % 3 == 0:  # full of ties
        values = np.round(values * 2.0) / 2.0
    answers = np.zeros((ANSWERS, MOST_ROWS))
    answers[:count, :rows] = values  # an answer is what it makes of the rows
    game = Game(np.zeros((MULTIPLIER_ROWS, MOST_ROWS + 1)), np.zeros((ANSWERS + 1, MOST_ROWS + 1)),
                np.zeros((2, ANSWERS + MOST_ROWS + 1), dtype=np.int64), answers)  # fmt: skip
    level, mixed = play(game, values)
    m, expected = game.R[MULTIPLIER, :rows], value_of(values)
    assert level == pytest.approx(expected, abs=1e-7)
    assert m.min() >= 0.0
    assert m.sum() == pytest.approx(1.0, abs=1e-9)
    assert (values @ m).max() == pytest.approx(expected, abs=1e-7)
    assert mixed[:rows].min() == pytest.approx(expected, abs=1e-7)
