"""Start heuristic: gradient ascent of the score from the person and from random rows, for some favourable row.

It proves nothing and need not find anything: the search is exact without it. For networks so large that one node takes
a good part of a second, it gives the search a ball to begin with, and a first answer.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered
from ifonly.problem import People as Allowed

STARTS = 24
STEPS = 40
HALVINGS = 12
SEED = 0

Floats = NDArray[np.float64]


def some_row(lowered: Lowered, person: Allowed, aim: Floats, until: float) -> Floats | None:
    """A row of the person's domains whose conditions reach `aim`, drawn near to the person; None when none is found."""
    found = _climb(_Space(lowered, person), aim, until)
    return None if found is None else _drawn_near(_Space(lowered, person), found, aim, until)


class _Space:
    """One person's rows as unrolled columns, and what the conditions are there."""

    def __init__(self, lowered: Lowered, person: Allowed) -> None:
        self.lowered, self.factual = lowered, person.factual[0]
        self.low, self.high, self.allowed = person.lower[0], person.upper[0], person.allowed[0]
        self.numbers = np.flatnonzero(lowered.numeric)
        self.choices = np.flatnonzero(~lowered.numeric).tolist()
        numeric = lowered.numeric
        own = [self.allowed[lowered.start[g] + int(self.factual[g])] for g in self.choices]
        self.empty = bool((self.low > self.high)[numeric].any()) or not all(
            self.allowed[lowered.start[g] : lowered.start[g + 1]].any() for g in self.choices
        )
        self.begin = np.where(numeric, np.clip(self.factual, self.low, self.high), self.factual)
        for g, mine in zip(self.choices, own, strict=True):
            if not mine and not self.empty:
                self.begin[g] = float(self.allowed[lowered.start[g] : lowered.start[g + 1]].argmax())
        self.grid_offset = person.grid_offset[0]
        self.step = np.where(lowered.step > 0.0, lowered.step, 0.0)

    def snapped(self, rows: Floats) -> Floats:
        """Integers to their grid, counted from the factual; everything inside the domains."""
        change, grid_offset = rows - self.factual, self.grid_offset
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = change / self.step
            steps = np.where(
                (grid_offset > 0.0) & (steps > grid_offset - 1.0) & (steps < grid_offset),
                0.0,
                np.round(steps - grid_offset) + grid_offset,
            )
            whole = np.where(self.step > 0.0, steps * self.step, change)
        moved = np.where(whole == 0.0, self.factual, self.factual + whole)
        return np.where(self.lowered.numeric, np.clip(moved, self.low, self.high), rows)

    def conditions(self, rows: Floats) -> tuple[Floats, list[Floats]]:
        """The conditions' values, and the pre-activations of the hidden layers."""
        hidden, value = [], self.lowered.unrolled(rows)
        for weight, bias in self.lowered.layers[:-1]:
            hidden.append(value @ weight.T + bias)
            value = np.maximum(hidden[-1], 0.0)
        weight, bias = self.lowered.layers[-1]
        return value @ weight.T + bias, hidden

    def gradient(self, hidden: list[Floats], worst: NDArray[np.intp]) -> Floats:
        """Of the condition that each row meets worst, over unrolled columns."""
        back = self.lowered.layers[-1][0][worst]
        for (weight, _), z in zip(self.lowered.layers[-2::-1], reversed(hidden), strict=True):
            back = (back * (z > 0.0)) @ weight
        return back

    def random(self, count: int) -> Floats:
        rng = np.random.default_rng(SEED)
        rows = np.repeat(self.begin[None, :], count, axis=0)
        span = (self.high - self.low)[self.numbers]
        rows[:, self.numbers] = self.low[self.numbers] + rng.random((count, len(self.numbers))) * span
        for g in self.choices:
            options = np.flatnonzero(self.allowed[self.lowered.start[g] : self.lowered.start[g + 1]])
            rows[:, g] = rng.choice(options, count)
        rows[0] = self.begin
        return self.snapped(rows)


def _climb(space: _Space, aim: Floats, until: float) -> Floats | None:
    """Step up the gradient from several rows at once, by ever smaller shares of the domains, until one is there."""
    if space.empty:
        return None
    lowered, rows = space.lowered, space.random(STARTS)
    span = space.high - space.low
    for k in range(STEPS):
        values, hidden = space.conditions(rows)
        short = (values - aim).min(axis=1)
        if (short >= 0.0).any():
            return np.asarray(rows[int(short.argmax())])
        if time.perf_counter() > until:
            return None
        slope = space.gradient(hidden, (values - aim).argmin(axis=1))
        share = (0.3, 0.1, 0.03, 1.0)[k % 4]
        numbers, columns = space.numbers, lowered.start[space.numbers]
        gain = slope[:, columns] * span[numbers]
        most = np.abs(gain).max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(most > 0.0, np.clip(4.0 * gain / most, -1.0, 1.0), 0.0)
        rows[:, numbers] += share * part * span[numbers]
        for g in space.choices:
            here = slice(int(lowered.start[g]), int(lowered.start[g + 1]))
            best = np.where(space.allowed[here], slope[:, here], -np.inf).argmax(axis=1)
            rows[:, g] = np.where(np.arange(len(rows)) % 2 == k % 2, best, rows[:, g])
        rows = space.snapped(rows)
    return None


def _drawn_near(space: _Space, row: Floats, aim: Floats, until: float) -> Floats:
    """The row with features taken back one by one where that is allowed, and the numbers' changes halved together."""

    def good(rows: Floats) -> NDArray[np.bool_]:
        return np.asarray((space.conditions(rows)[0] >= aim).all(axis=1))

    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        if time.perf_counter() > until:
            break
        middle = 0.5 * (low + high)
        trial = np.where(space.lowered.numeric, space.begin + middle * (row - space.begin), row)
        low, high = (low, middle) if good(space.snapped(trial[None, :]))[0] else (middle, high)
    near = space.snapped(np.where(space.lowered.numeric, space.begin + high * (row - space.begin), row)[None, :])[0]
    row = near if good(near[None, :])[0] else row
    for _ in range(2):
        changed = np.flatnonzero(row != space.begin)
        if not len(changed) or time.perf_counter() > until:
            break
        for few in np.split(changed, range(STARTS, len(changed), STARTS)):
            if time.perf_counter() > until:
                return row
            trials = np.repeat(row[None, :], len(few), axis=0)
            trials[np.arange(len(few)), few] = space.begin[few]
            for g in few[good(trials)].tolist():
                trial = row.copy()
                trial[g] = space.begin[g]
                if good(trial[None, :])[0]:
                    row = trial
    return row
