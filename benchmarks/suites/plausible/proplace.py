"""PROPLACE, written again from its description: robust optimisation in a region that the data span.

The region: all mixtures of the person's row and of the nearest rows of the data that every network within delta
accepts, with whole numbers and one option per choice. The program finds the nearest row of it that all networks found
so far accept with a margin; an adversary looks for a network within delta that refuses it, which is added; and so on,
until there is none.

The published code solves the adversary's bilinear program with Gurobi, too large for its free licence, and knows only
choices of one column. Here the adversary is the attack on the weights, and an exact check (two hidden layers at most).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.handover import columns_of_options
from benchmarks.suites.robust.mce_r import accepted_by_all
from ifonly.model.own_layers import OwnLayers, own_layers
from ifonly.model.weight_attack import lowest_network
from ifonly.model.weight_box import WeightBox
from ifonly.schema import Numeric

NEIGHBOURS = 20
MARGIN = 0.01
"""Of the score, as published."""
ROUNDS = 60


@dataclass(frozen=True)
class Options:
    """Points as numbers and one column per option, in which the region is spanned."""

    schema: Any

    def columns(self, points: Any) -> Any:
        parts = [
            points[:, [g]] if isinstance(f, Numeric) else (points[:, [g]] == np.arange(len(f.options))).astype(float)
            for g, f in enumerate(self.schema.features)
        ]
        return np.hstack(parts)

    def point(self, columns: Any) -> Any:
        point, at = np.zeros(len(self.schema)), 0
        for g, f in enumerate(self.schema.features):
            width = 1 if isinstance(f, Numeric) else len(f.options)
            own = columns[at : at + width]
            number = round(float(own[0])) if f.kind == "integer" else float(own[0])
            point[g] = number if width == 1 else int(own.argmax())
            at += width
        return point

    def whole(self) -> Any:
        """Which columns are whole numbers."""
        parts = [
            [f.kind == "integer"] if isinstance(f, Numeric) else [True] * len(f.options) for f in self.schema.features
        ]
        return np.array([flag for part in parts for flag in part])

    def costs(self, point: Any) -> tuple[Any, Any]:
        """What a unit of |change| of a number costs, and what each option does: the default distance."""
        numbers, options = [], []
        for g, f in enumerate(self.schema.features):
            if isinstance(f, Numeric):
                numbers.append(1.0 / (f.upper - f.lower))
                options.append(0.0)
                continue
            steps = np.abs(np.arange(len(f.options)) - point[g])
            numbers += [0.0] * len(f.options)
            options += list(steps / len(f.options) if f.kind == "ordinal" else (steps > 0).astype(float))
        return np.array(numbers) / len(self.schema), np.array(options) / len(self.schema)


class Proplace:
    """Prepared for one network and one table of rows."""

    def __init__(self, model: Any, rows: Any, delta: float) -> None:
        self.model, self.delta, self.options = model, delta, Options(model.schema)
        self.box = WeightBox(own_layers(model), delta)
        sure = self.box.lowest(model.schema.encode(rows), np.ones((1, 1)))[:, 0] > 0.0
        self.columns = self.options.columns(rows[sure])
        self.width = np.maximum(np.ptp(self.options.columns(rows), axis=0), 1e-12)
        self.table = columns_of_options(model.schema)

    def answer(self, point: Any) -> Any:
        """The row that no network within delta refuses; None where the rounds end without one."""
        if not len(self.columns):
            return None
        own = self.options.columns(point[None, :])
        away = np.linalg.norm((self.columns - own) / self.width, axis=1)
        vertices = np.vstack([own, self.columns[np.argsort(away, kind="stable")[:NEIGHBOURS]]])
        networks = [self.box.centre]
        for _ in range(ROUNDS):
            columns = nearest_mixture(vertices, networks, self.table, self.options, point)
            if columns is None:
                return None
            found = self.options.point(columns)
            encoded = self.model.schema.encode(found[None, :])[0]
            least, network = lowest_network(self.box, encoded, np.ones(1))
            if least > 0.0:
                return found if accepted_by_all(self.model, found[None, :], self.delta) else None
            networks.append(network)
        return None


def nearest_mixture(vertices: Any, networks: list[OwnLayers], table: Any, options: Options, point: Any) -> Any:
    """The nearest mixture of the vertices, in columns, whose score is at least the margin in all networks."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    program = _Program(vertices, options.whole())
    for network in networks:
        program.add(network, table)
    number, option = options.costs(point)
    cost = program.cost(number, option, vertices[0])
    rows, low, high = program.constraints()
    found = milp(
        cost, constraints=LinearConstraint(rows, low, high), bounds=Bounds(program.lower, program.upper),
        integrality=program.integral, options={"mip_rel_gap": 1e-6},
    )  # fmt: skip
    return found.x[program.own] if found.success else None


class _Program:
    """Variables: shares of the vertices, columns, |change| of columns; of each network values and switches."""

    def __init__(self, vertices: Any, whole: Any) -> None:
        count, width = vertices.shape
        self.own, self.changes = slice(count, count + width), slice(count + width, count + 2 * width)
        self.low, self.high = vertices.min(axis=0), vertices.max(axis=0)
        none, wide = np.zeros(count), np.maximum(self.high - self.low, 0.0)
        self.lower = np.concatenate([none, self.low, np.zeros(width)])
        self.upper = np.concatenate([none + 1.0, self.high, wide])
        self.integral = np.concatenate([none, whole.astype(float), np.zeros(width)])
        eye, zero = np.eye(width), np.zeros((width, width))
        start = vertices[0]
        self._rows = [
            (np.hstack([vertices.T, -eye, zero]), np.zeros(width), np.zeros(width)),
            (np.concatenate([none + 1.0, np.zeros(2 * width)])[None, :], np.ones(1), np.ones(1)),
            (np.hstack([np.zeros((width, count)), -eye, eye]), -start, np.full(width, np.inf)),
            (np.hstack([np.zeros((width, count)), eye, eye]), start, np.full(width, np.inf)),
        ]

    def cost(self, number: Any, option: Any, start: Any) -> Any:
        cost = np.zeros(len(self.lower))
        cost[self.own], cost[self.changes] = option, number
        return cost

    def add(self, network: OwnLayers, table: Any) -> None:
        """The network's score is at least the margin: big-M, by interval bounds."""
        (first, bias), *others = network.layers
        inside = first @ network.scale @ table.T, first @ network.shift + bias
        at, low, high = self.own, self.low, self.high
        for weight, offset in [inside, *others[:-1]]:
            up, down = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
            most, least = up @ high + down @ low + offset, up @ low + down @ high + offset
            at = self._relu(weight, offset, at, np.minimum(least, 0.0) - 1e-7, np.maximum(most, 0.0) + 1e-7)
            low, high = np.maximum(least, 0.0), np.maximum(most, 0.0)
        weight, offset = others[-1]
        row = np.zeros((1, len(self.lower)))
        row[:, at] = weight
        self._rows.append((row, np.array([MARGIN - offset[0]]), np.array([np.inf])))

    def _relu(self, weight: Any, offset: Any, at: slice, least: Any, most: Any) -> slice:
        n, m = len(self.lower), len(offset)
        values, on = slice(n, n + m), slice(n + m, n + 2 * m)
        self.lower, self.upper = np.append(self.lower, np.zeros(2 * m)), np.concatenate([self.upper, most, np.ones(m)])
        self.integral = np.concatenate([self.integral, np.zeros(m), np.ones(m)])
        eye, free = np.eye(m), np.full(m, np.inf)
        above, below, off = (np.zeros((m, n + 2 * m)) for _ in range(3))
        above[:, at], above[:, values] = -weight, eye  # v >= w h + b
        below[:, at], below[:, values], below[:, on] = -weight, eye, -np.diag(least)  # v <= w h + b - least (1 - on)
        off[:, values], off[:, on] = eye, -np.diag(most)  # v <= most on
        self._rows += [(above, offset, free), (below, -free, offset - least), (off, -free, np.zeros(m))]
        return values

    def constraints(self) -> tuple[Any, Any, Any]:
        width = len(self.lower)
        wide = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows, _, _ in self._rows]
        return np.vstack(wide), *(np.concatenate([part[k] for part in self._rows]) for k in (1, 2))
