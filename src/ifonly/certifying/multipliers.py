"""Lagrange multipliers for the rows of a region, in floating point: proposals, which exact arithmetic then checks.

Rows are planes  c_i + a_i.y >= 0  that every favourable point of a region satisfies. Multipliers m >= 0 are needed with
max over y of  sum m_i (c_i + a_i.y) < 0.  That is a game between m and y: each round adds the best y against the
present m as a cut, and a linear program over a handful of variables gives the next m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.layers import SLOPE_BITS
from ifonly.certificate.check.region import Region
from ifonly.certificate.check.statement import Statement
from ifonly.certifying.compiled import FLOAT_CHECK
from ifonly.certifying.float_check import layout
from ifonly.certifying.leaves import NORMS, activated

CUTS = 60
SMALL = 1e-9
"""Multipliers below this share of the largest are left out."""

Floats = NDArray[np.float64]


def slopes_of(statement: Statement) -> int:
    """Which bits of a row's slopes mean something: those of ReLUs."""
    found = (1 << statement.starts[-2]) - 1
    for layer, curved in enumerate(statement.curved):
        found &= ~sum(1 << statement.starts[layer] + i for i in curved)
    return found


class Planes:
    """A region and its rows in floats: natural units, rows scaled to a largest term of 1."""

    def __init__(self, region: Region) -> None:
        FLOAT_CHECK.prepare()
        self.region = region
        statement = region.statement
        grid, costs = 1 << statement.grid, 1 << statement.cost_unit
        self.norm = NORMS[statement.norm]
        self.budget = math.inf if region.budget is None else region.budget / costs
        self.floats, self.whole = layout.new_buffers(len(region.columns) + 1)
        self.reach = np.ones(len(region.columns))
        for k, item in enumerate(region.items):
            self.whole[[layout.FIRST, layout.IS_CHOICE], k] = item.first, bool(item.options)
            if item.options:
                self.floats[layout.COST, item.first : item.first + len(item.options)] = [c / costs for c in item.costs]
            else:
                up, down = item.up / grid, item.down / grid
                rate = (min(item.rate, item.rate_down) if up and down else item.rate if up else item.rate_down) / (
                    1 << statement.cost_grid
                )
                self.floats[layout.UP : layout.MOVED + 1, k] = up, down, rate, item.jump / costs, item.moved / grid
                self.reach[item.first] = max(up, down)
        self.whole[layout.FIRST, len(region.items)] = len(region.columns)
        unit = 1 << statement.exponents[0]
        columns = [[w / unit for w in column] for column in region.columns]
        self.weight = np.array(columns).T if columns else np.zeros((statement.sizes[0], 0))
        self.first = np.array([z / (unit << statement.grid) for z in region.first])
        self.slopes = slopes_of(statement)
        self.rows: list[Floats] = []
        self.scales: list[float] = []

    def add(self, a: list[int], constant: int, unit: int) -> None:
        one = 1 << unit
        row = np.array([constant / (one << self.region.statement.grid), *(v / one for v in a)])
        size = float(np.abs(row * np.concatenate(([1.0], self.reach))).max()) or 1.0
        self.rows.append(row / size)
        self.scales.append(size)

    def answer(self, a: Floats) -> Floats:
        """The y in box and ball that makes a.y largest."""
        found: Floats = FLOAT_CHECK.now.answer(
            self.norm, self.floats, self.whole, len(self.region.items), self.budget, a
        )
        return found

    def most(self, k: int) -> float:
        """The largest value of row k over box and ball, in units of its own."""
        row = self.rows[k]
        return float(row[0] + row[1:] @ self.answer(row[1:]))

    # ------------------------------------------------------------------ the network at a point of the region

    def _activations(self, y: Floats) -> list[Floats]:
        statement = self.region.statement
        z = [self.first + self.weight @ y]
        for k in range(1, statement.layers - 1):
            unit = 1 << statement.exponents[k]
            weight = np.array([[w / unit for w in row] for row in statement.weight_rows[k]])
            bias = np.array([b / (unit << statement.grid) for b in statement.biases[k]])
            z.append(weight @ activated(statement, k - 1, z[-1][: weight.shape[1]]) + bias)
        return z if statement.layers > 1 else []

    def pattern(self, y: Floats) -> int:
        """Slopes: which ReLUs are active at y."""
        active = [bool(v > 0.0) for z in self._activations(y) for v in z]
        return sum(1 << h for h, one in enumerate(active) if one) & self.slopes

    def needed(self, y: Floats) -> float:
        """The share of the way to y at which every row that holds at y begins to hold, or a little more; at most 1."""
        shares = [-row[0] / (row[1:] @ y) for row in self.rows if row[0] < 0.0 < row[0] + row[1:] @ y]
        return min(float(max(shares, default=1.0)) * (1.0 + 1e-9), 1.0)

    def worst_relu(self, y: Floats) -> tuple[int, int] | None:
        """The unstable ReLU whose chord is farthest above it at y, weighted by what it feeds."""
        statement, best, error = self.region.statement, None, 1e-12
        grid = 1 << statement.grid
        for layer, z in enumerate(self._activations(y)):
            unit = 1 << statement.exponents[layer + 1]
            for i, (low, high) in enumerate(self.region.bounds[layer]):
                if not low < 0 < high or self._is_literal(layer, i) or self._is_curve(layer, i):
                    continue
                above, shift = self.region.chords[layer][0][i] / 2**44, self.region.chords[layer][1][i] / (grid << 44)
                size = sum(abs(row[i]) for row in statement.weight_rows[layer + 1]) / unit
                this = (above * z[i] + shift - max(z[i], 0.0)) * size
                if this > error:
                    best, error = (layer, i), this
        return best

    def _is_literal(self, layer: int, i: int) -> bool:
        return layer == 0 and i >= self.region.statement.first_literal

    def _is_curve(self, layer: int, i: int) -> bool:
        curved = self.region.statement.curved
        return bool(curved) and i in curved[layer]

    def blame(self, y: Floats) -> Floats:
        """Of each column: its share of the distance between the lines around the smooth neurons at y.

        What a neuron adds to the conditions at most is shared by what leads to it: by |weight| times how far that can
        move, down to the columns.
        """
        statement, z = self.region.statement, self._activations(y)
        grid, slope = 1 << statement.grid, 1 << SLOPE_BITS
        feeds = np.ones(statement.sizes[-1])
        found: list[Floats] = []
        for layer in range(statement.layers - 2, -1, -1):
            rows = np.abs(_floats(statement.weight_rows[layer + 1], statement.exponents[layer + 1]))
            feeds = feeds @ rows
            above, shift, below, lift = (np.array([v / unit for v in part or [0] * len(z[layer])])[: len(feeds)]
                                         for part, unit in zip(self.region.chords[layer],
                                                               (slope, slope * grid) * 2, strict=True))  # fmt: skip
            gap = (above - below) * z[layer][: len(feeds)] + shift - lift
            curved = np.array([self._is_curve(layer, i) for i in range(len(feeds))])
            found.insert(0, np.where(curved, gap, 0.0) * feeds)
        shared = np.zeros_like(found[-1])
        for layer in range(statement.layers - 2, -1, -1):
            shared = shared + found[layer]
            if layer == 0:
                weight, wide = np.abs(self.weight[: len(shared)]), self.reach
            else:
                weight = np.abs(_floats(statement.weight_rows[layer], statement.exponents[layer]))
                wide = np.array([(high - low) / grid for low, high in self.region.values[layer - 1]])[: weight.shape[1]]
            parts = weight * wide
            sums = parts.sum(axis=1, keepdims=True)
            shared = shared @ (parts / np.where(sums > 0.0, sums, 1.0))
        return shared

    def literals(self, y: Floats) -> Floats:
        """The values of the literals at y."""
        return (self.first + self.weight @ y)[self.region.statement.first_literal :]


def _floats(rows: Sequence[Sequence[int]], bits: int) -> Floats:
    unit = 1 << bits
    return np.array([[w / unit for w in row] for row in rows])


def best_multipliers(planes: Planes) -> tuple[Floats | None, Floats]:
    """Multipliers that should close the region (None when there are none), and the y of the relaxation."""
    rows = np.array(planes.rows)
    if len(rows) == 1:
        y = planes.answer(rows[0, 1:])
        value = rows[0, 0] + rows[0, 1:] @ y
        return (np.ones(1) if value < 0.0 else None), y
    program = _Program(len(rows))
    m = np.full(len(rows), 1.0 / len(rows))
    best, lowest, answers = None, np.inf, list[Floats]()
    for _ in range(CUTS):
        combined = m @ rows
        y = planes.answer(combined[1:])
        value = float(combined[0] + combined[1:] @ y)
        if value < lowest:
            lowest, best = value, m
        answers.append(y)
        if lowest < -1e-7:
            break
        m, level = program.cut(rows[:, 0] + rows[:, 1:] @ y)
        if level >= -1e-13 or lowest - level <= 1e-10 * abs(level) + 1e-13:
            break
    solution = program.mixed(answers)
    if best is None or lowest >= 0.0:
        return None, solution
    best = np.where(best > SMALL * best.max(), best, 0.0) / np.array(planes.scales)
    return np.array([_short(v) for v in best.tolist()]), solution


def _short(value: float) -> float:
    """The number with a mantissa of 32 bits."""
    part, power = np.frexp(value)
    return float(np.ldexp(np.round(part * 2.0**32), int(power) - 32))


class _Program:
    """min t  subject to  t >= cut.m  for all cuts,  sum m = 1,  m >= 0."""

    def __init__(self, rows: int) -> None:
        import highspy

        self.rows, self.highs = rows, highspy.Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self.highs.setOptionValue(name, value)
        for j in range(rows + 1):
            free = -highspy.kHighsInf if j == rows else 0.0
            self.highs.addCol(float(j == rows), free, highspy.kHighsInf, 0, np.array([]), np.array([]))
        self.highs.addRow(1.0, 1.0, rows, np.arange(rows, dtype=np.int32), np.ones(rows))
        self.infinite = highspy.kHighsInf

    def cut(self, values: Floats) -> tuple[Floats, float]:
        where = np.arange(self.rows + 1, dtype=np.int32)
        self.highs.addRow(0.0, self.infinite, self.rows + 1, where, np.append(-values, 1.0))
        self.highs.run()
        solution = np.array(self.highs.getSolution().col_value)
        m = np.maximum(solution[:-1], 0.0)
        return m / (m.sum() or 1.0), float(solution[-1])

    def mixed(self, answers: Sequence[Floats]) -> Floats:
        """The answers, mixed so that no m is worse for y than the last: by the duals of their cuts. A point at which
        all rows hold, where there is one; any answer alone is a corner, which may break rows by much.
        """
        duals = np.abs(self.highs.getSolution().row_dual[1:]) if len(answers) > 1 else np.ones(1)
        shares = duals / (duals.sum() or 1.0)
        return np.asarray(shares @ np.array(answers[: len(shares)])) if duals.any() else answers[-1]
