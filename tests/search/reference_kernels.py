"""Reference kernels: the same formulas in plain numpy, written for reading, with nothing shared but the layout.

A node's *items* (see `kernels/closed_forms.py`) are read back into `Item`s; everything else is sums, sorts, bisections and,
where the kernel solves a program, another solver or an enumeration.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Node
from numpy.typing import NDArray
from scipy.optimize import linprog

from ifonly.solvers.search.kernels import layout
from ifonly.solvers.search.kernels.layout import ADDITIVE, CHOICE, FIRST, INTEGER, SQUARED

Floats = NDArray[np.float64]


def solve_lp(*arguments: Any, **named: Any) -> Any:
    """scipy's linprog (HiGHS), with tolerances as tight as it takes."""
    return linprog(
        *arguments, **named, options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    )


# ---------------------------------------------------------------------------------------------- items


@dataclass(frozen=True)
class Item:
    """A live feature of a node: a number that can go up and down, or options (columns) with their extra costs."""

    kind: int
    columns: slice
    up: float
    down: float
    rate: float
    jump: float
    offset: float
    prices: Floats


def items_of(node: Node) -> list[Item]:
    F, I = node.F, node.I
    return [
        Item(
            kind=int(I[layout.ITEM_KIND, k]),
            columns=slice(int(I[FIRST, k]), int(I[FIRST, k + 1])),
            up=float(F[layout.UP, k]),
            down=float(F[layout.DOWN, k]),
            rate=float(F[layout.ITEM_RATE, k]),
            jump=float(F[layout.ITEM_JUMP, k]),
            offset=float(F[layout.OFFSET, k]),
            prices=F[layout.COLUMN_COST, I[FIRST, k] : I[FIRST, k + 1]].copy(),
        )
        for k in range(node.items)
    ]


def divided(a: float, b: float) -> float:
    return a / b if b > 0.0 else math.inf


def item_gains(items: list[Item], a: Floats, norm: int) -> tuple[Floats, Floats]:
    """The largest gain of a.y that each item can make, and its best ratio of gain to cost (l2: to the root of cost)."""
    gains, ratios = [], []
    for item in items:
        v = a[item.columns]
        if item.kind == CHOICE:
            prices = np.sqrt(item.prices) if norm == SQUARED else item.prices
            better = [(x, divided(x, p)) for x, p in zip(v.tolist(), prices.tolist(), strict=True) if x > 0.0]
        else:
            reach = item.up if v[0] > 0.0 else item.down
            gain = abs(v[0]) * reach
            full = divided(gain, item.jump + item.rate * reach)
            better = [(gain, full if norm == ADDITIVE else abs(v[0]) / item.rate)] if gain > 0.0 else []
        gains.append(max((gain for gain, _ in better), default=0.0))
        ratios.append(max((ratio for _, ratio in better), default=0.0))
    return np.array(gains), np.array(ratios)


def spent(gain: Floats, ratios: Floats, offsets: Floats, norm: int) -> Floats:
    """What gains cost at least, item by item."""
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.where(gain > 0.0, gain / ratios, 0.0)
    return (plain + offsets) ** 2 - offsets**2 if norm == SQUARED else plain


def best_gains(gains: Floats, ratios: Floats, offsets: Floats, norm: int, budget: float) -> Floats:
    """argmax sum g  subject to  sum cost(g) <= budget, 0 <= g <= gains: the best ratio first (additive), or one multiplier (l2)."""
    if norm == SQUARED:
        return along(gains, ratios, offsets, lambda g: spent(g, ratios, offsets, norm).sum() <= budget)
    g = np.zeros(len(gains))
    for k in np.argsort(-ratios):
        if gains[k] > 0.0:
            g[k] = gains[k] if math.isinf(ratios[k]) else min(gains[k], ratios[k] * budget)
            budget -= g[k] / ratios[k]
    return g


def most_gain(gains: Floats, ratios: Floats, offsets: Floats, norm: int, budget: float) -> float:
    """max sum g  subject to  sum cost(g) <= budget, 0 <= g <= gains."""
    return float(best_gains(gains, ratios, offsets, norm, budget).sum())


def least_cost(gains: Floats, ratios: Floats, offsets: Floats, norm: int, need: float) -> float:
    """min sum cost(g)  subject to  sum g >= need, 0 <= g <= gains."""
    if need <= 0.0:
        return 0.0
    if gains.sum() < need:
        return math.inf
    if norm == ADDITIVE:
        price = np.where(ratios > 0, 1.0 / np.where(ratios > 0, ratios, 1.0), 0.0)
        program = solve_lp(price, A_ub=-np.ones((1, len(price))), b_ub=[-need],
                          bounds=list(zip(np.zeros(len(price)), gains, strict=True)))  # fmt: skip
        return float(program.fun)
    if gains[np.isinf(ratios)].sum() >= need:
        return 0.0
    g = along(gains, ratios, offsets, lambda g: g.sum() <= need)
    return float(spent(g, ratios, offsets, norm).sum())


def along(gains: Floats, ratios: Floats, offsets: Floats, allowed) -> Floats:
    """l2: the last point of the path  g(x) = argmax sum [x g - cost(g)]  that is allowed; x by bisection."""

    def path(x: float) -> Floats:
        e = np.where(np.isinf(ratios), 0.0, ratios)
        g = np.clip(e * (0.5 * x * e - offsets), 0.0, gains)
        return np.where(np.isinf(ratios), gains, g)

    low, high = 0.0, 1e30
    for _ in range(400):
        middle = math.sqrt(max(low, 1e-30) * high)
        if allowed(path(middle)):
            low = middle
        else:
            high = middle
    return path(low)


def gain_linf(items: list[Item], a: Floats, t: float) -> float:
    """linf: the most that a.y gains while every feature costs at most t."""
    total = 0.0
    for item in items:
        v = a[item.columns]
        if item.kind == CHOICE:
            total += max([0.0, *v[item.prices <= t * (1.0 + 1e-12)]])
        else:
            room = (t - item.offset) / item.rate
            room = math.floor(room + 1e-9) if item.kind == INTEGER else room
            total += abs(v[0]) * max(min(room, item.up if v[0] > 0.0 else item.down), 0.0)
    return total


# ---------------------------------------------------------------------------------------------- the network in a node


def compact_first_layer(node: Node) -> tuple[Floats, Floats]:
    """z_1 = constant + weight @ y over the compact columns."""
    return node.F[layout.ZC, : len(node.person.z)].copy(), node.scratch.Wc[:, : node.width].copy()


def upper_plane(node: Node, layer: int, i: int, sign: float, slopes: Floats, *, exact: bool = False):
    """Backward substitution: the upper plane (constant, a) of sign * pre-activation i of a layer, and the ReLUs' coefficients."""
    zc, wc = compact_first_layer(node)
    layers = node.lowered.layers
    starts = np.cumsum([0, *(len(bias) for _, bias in layers)])
    coefficients = np.zeros(starts[-1])
    if layer == 0:
        return sign * zc[i], sign * wc[i], coefficients
    v, constant = sign * layers[layer][0][i], sign * layers[layer][1][i]
    for below in range(layer - 1, -1, -1):
        here = slice(starts[below], starts[below + 1])
        coefficients[here] = v
        low, high, s = node.zl[here], node.zu[here], slopes[here]
        with np.errstate(invalid="ignore", divide="ignore"):
            chord = high / (high - low)
        unstable = (low < 0.0) & (high > 0.0)
        steep = np.where(unstable, np.where(v > 0.0, chord, s), low >= 0.0)
        if exact:
            steep, unstable = s, np.zeros(len(v), dtype=bool)
        constant -= np.where(unstable & (v > 0.0), v * steep * np.where(unstable, low, 0.0), 0.0).sum()
        v = v * steep
        if below > 0:
            constant += v @ layers[below][1]
            v = v @ layers[below][0]
    return constant + v @ zc, v @ wc, coefficients


def hidden_bounds(node: Node) -> tuple[Floats, Floats]:
    """Bounds of all hidden pre-activations over box and ball; needs the node's zl and zu as they were before."""
    items = items_of(node)
    zl, zu = node.zl, node.zu
    slopes = np.zeros(len(zl))
    h = 0
    for layer, (_, bias) in enumerate(node.lowered.layers[:-1]):
        for i in range(len(bias)):
            if zl[h] < 0.0 < zu[h]:
                for sign in (1.0, -1.0):
                    constant, a, _ = upper_plane(node, layer, i, sign, slopes)
                    gains, ratios = item_gains(items, a, node.norm)
                    offsets = np.array([item.offset for item in items])
                    gain = float(gains.sum())
                    if node.norm != layout.MAXIMUM and math.isfinite(node.budget):
                        gain = min(gain, most_gain(gains, ratios, offsets, node.norm, node.budget - node.base_cost))
                    high = constant + gain + node.person.slack[h]
                    if sign > 0:
                        zu[h] = min(zu[h], high)
                    else:
                        zl[h] = max(zl[h], -high)
                slopes[h] = 1.0 if zu[h] > -zl[h] else 0.0
            h += 1
    return zl, zu


# ---------------------------------------------------------------------------------------------- programs


def program_l1_linf(node: Node, rows: Floats, needs: Floats) -> float:
    """min cost  subject to  rows @ y >= needs, over the node's box with options relaxed to shares; infinity when empty."""
    items, norm = items_of(node), node.norm
    costs, matrix, groups = [], [], []
    for k, item in enumerate(items):
        for c in range(item.columns.start, item.columns.stop):
            for reach in [item.up, -item.down] if item.kind != CHOICE else [1.0]:
                price = (
                    item.jump + item.rate * abs(reach) if item.kind != CHOICE else item.prices[c - item.columns.start]
                )
                costs.append(price)
                matrix.append(rows[:, c] * reach)
                groups.append(k)
    columns, count = np.array(matrix).T.reshape(len(rows), -1), len(costs)
    owner, price = np.array(groups), np.array(costs)
    a_ub, b_ub = [-columns], [-needs]
    for k, item in enumerate(items):
        if item.kind == CHOICE:
            a_ub.append((owner == k)[None, :].astype(float))
            b_ub.append(np.ones(1))
    if norm != layout.MAXIMUM:
        program = solve_lp(price, np.vstack(a_ub), np.concatenate(b_ub), bounds=[(0.0, 1.0)] * count)
        return node.base_cost + program.fun if program.status == 0 else math.inf
    a_ub = [np.hstack([part, np.zeros((len(part), 1))]) for part in a_ub]
    for k, item in enumerate(items):  # cost of item k <= distance, the last variable
        a_ub.append(np.hstack([np.where(owner == k, price, 0.0), -1.0])[None, :])
        b_ub.append(np.array([-item.offset]))
    objective = np.zeros(count + 1)
    objective[-1] = 1.0
    program = solve_lp(objective, np.vstack(a_ub), np.concatenate(b_ub),
                      bounds=[(0.0, 1.0)] * count + [(node.base_cost, None)])  # fmt: skip
    return float(program.fun) if program.status == 0 else math.inf


def program_l2(items: list[Item], rows: Floats, needs: Floats) -> float:
    """min sum (rate |y| + offset)^2 - offset^2  subject to  rows @ y >= needs,  -down <= y <= up:  numbers only.

    Every optimum has each number at an end, at its kink (0), or free on one side of it, and some rows met with equality: all
    these systems are solved, and the cheapest point that satisfies everything is it.
    """
    best = math.inf
    count = len(items)
    rate, offset = np.array([item.rate for item in items]), np.array([item.offset for item in items])
    low, high = np.array([-item.down for item in items]), np.array([item.up for item in items])
    for state in itertools.product(("low", "zero", "high", "plus", "minus"), repeat=count):
        fixed = np.array([{"low": low[k], "high": high[k]}.get(s, 0.0) for k, s in enumerate(state)])
        free = np.array([s in ("plus", "minus") for s in state])
        side = np.array([1.0 if s == "plus" else -1.0 for s in state])
        for size in range(min(int(free.sum()), len(rows)) + 1):
            for active in itertools.combinations(range(len(rows)), size):
                y = fixed.copy()
                if free.any():
                    # stationarity: 2 rate^2 y + 2 rate offset side = rows[active].T @ m; rows[active] @ y = needs[active]
                    a = rows[np.ix_(active, free)]
                    kkt = np.block([[np.diag(2.0 * rate[free] ** 2), -a.T], [a, np.zeros((size, size))]])
                    rhs = np.concatenate(
                        [
                            -2.0 * rate[free] * offset[free] * side[free],
                            needs[list(active)] - rows[list(active)] @ fixed,
                        ]
                    )
                    y[free] = np.linalg.lstsq(kkt, rhs, rcond=None)[0][: int(free.sum())]
                inside = (y >= low - 1e-9).all() and (y <= high + 1e-9).all()
                if inside and (rows @ y >= needs - 1e-9 * (1.0 + np.abs(needs))).all():
                    best = min(best, float(((rate * np.abs(y) + offset) ** 2 - offset**2).sum()))
    return best
