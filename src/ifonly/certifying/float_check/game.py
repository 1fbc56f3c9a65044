"""Multipliers against answers: the game whose value says whether rows close a region, as a small linear program.

Of the rows' values v_k at answers y_k it finds the multipliers m, sum m = 1, whose largest  m.v_k  is least: with every
v_k moved above zero,  maximize sum x  subject to  v_k.x <= 1,  x >= 0,  and m is x over its sum. The tableau is kept
from one answer to the next: each adds a line, and dual simplex steps follow.
"""

from __future__ import annotations

from numba import njit

from ifonly.certifying.float_check.layout import INNER, MULTIPLIER, TRIAL

STEPS = 60
"""Simplex steps after each answer, at most. Whatever multipliers come of it, they are measured."""
ZERO = 1e-12
"""Of the tableau: what is nearer to zero is not divided by."""


@njit(**INNER)
def begin_game(w, rows):
    """No answer yet. Line 0 of the tableau is the objective; its last column holds the values."""
    for j in range(rows):
        w.tableau[0, j], w.names[1, j] = -1.0, j
    w.tableau[0, rows] = 0.0


@njit(**INNER)
def _exchange(w, lines, rows, p, s):
    """The variable of line p goes out, that of column s comes in."""
    T = w.tableau
    inverse = 1.0 / T[p, s]
    T[p, s] = 1.0
    for j in range(rows + 1):
        T[p, j] *= inverse
    for i in range(lines + 1):
        times = T[i, s]
        if i != p and times != 0.0:
            T[i, s] = 0.0
            for j in range(rows + 1):
                T[i, j] -= times * T[p, j]
    w.names[0, p], w.names[1, s] = w.names[1, s], w.names[0, p]


@njit(**INNER)
def _column(w, rows, p):
    """Which column comes in for line p, -1: none. The first answer's is where it is least."""
    T, best, least = w.tableau, -1, 0.0
    for j in range(rows):
        if p == 1 and T[0, rows] == 0.0:
            ratio = T[p, j]
        elif T[p, j] < -ZERO:
            ratio = max(T[0, j], 0.0) / -T[p, j]
        else:
            continue
        if best < 0 or ratio < least:
            best, least = j, ratio
    return best


@njit(**INNER)
def add_answer(w, lines, rows):
    """Answer number `lines`, from 1, at which the rows have the values in TRIAL, all of them positive: the multipliers
    that follow go into R. Returns the value of the game."""
    T, v = w.tableau, w.R[TRIAL]
    for j in range(rows):
        T[lines, j] = v[w.names[1, j]] if w.names[1, j] < rows else 0.0
    T[lines, rows], w.names[0, lines] = 1.0, rows + lines - 1
    for i in range(1, lines):
        if w.names[0, i] < rows:
            times = v[w.names[0, i]]
            for j in range(rows + 1):
                T[lines, j] -= times * T[i, j]
    for step in range(STEPS):
        p, least = -1, -ZERO
        for i in range(1, lines + 1):
            if T[i, rows] < least:
                p, least = i, T[i, rows]
        if lines == 1 and step == 0:
            p = 1
        s = _column(w, rows, p) if p > 0 else -1
        if s < 0:
            break
        _exchange(w, lines, rows, p, s)
    total, m = 0.0, w.R[MULTIPLIER]
    for r in range(rows):
        m[r] = 0.0
    for i in range(1, lines + 1):
        if w.names[0, i] < rows:
            m[w.names[0, i]] = max(T[i, rows], 0.0)
            total += m[w.names[0, i]]
    for r in range(rows):
        m[r] /= total
    return 1.0 / total


@njit(**INNER)
def mix_answers(w, rows, width, y):
    """The answers, mixed so that no multipliers are worse for the mixture, into y."""
    total = 0.0
    for j in range(rows):
        if w.names[1, j] >= rows:
            total += max(w.tableau[0, j], 0.0)
    if not total > 0.0:
        return
    for t in range(width):
        y[t] = 0.0
    for j in range(rows):
        share = max(w.tableau[0, j], 0.0) / total
        if w.names[1, j] >= rows and share > 0.0:
            for t in range(width):
                y[t] += share * w.answers[w.names[1, j] - rows, t]
