"""Proof tree from the records of the search: every leaf is closed with the checker's own arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.certificate.check.box import ACTIVE, Box
from ifonly.certificate.check.checker import MAX_NODES, TreeWalk, most_of_rows
from ifonly.certificate.check.reading import Refusal, scaled
from ifonly.certificate.check.region import Bounds, Region
from ifonly.certificate.check.statement import Statement
from ifonly.certifying.effort import USUAL, Effort, Verification
from ifonly.certifying.leaves import Closed, Leaves, NetworkFloats, Open, on_grid, place
from ifonly.certifying.multipliers import Planes, best_multipliers
from ifonly.errors import UnsupportedQuestion
from ifonly.resources import check_limits
from ifonly.schema import Choice
from ifonly.solvers.search.record import NodeRecord, Record

ROUNDS = 6
MORE_SPLITS, TIMES = 500, 4
"""How many splits there may be beyond the search's own: so many, and so many times its nodes."""
SMALL_TREE = 3
"""Trees of so many nodes are verified whole."""
NODE_BYTES, ROW_BYTES = 200, 400
"""Of a tree in memory, but for the slopes of a row."""
MOST_TESTED = 50
"""Open regions that are searched for a nearer row."""

Row = tuple[int, int, int, int]
"""Layer, neuron, sign, slopes: what the checker calls a row, without its multiplier."""


class Unclosed(Exception):
    """A box that could not be closed at the claimed lower bound."""


class Nearer(Exception):
    """A favourable row nearer than the claimed lower bound, in exact arithmetic. Carries the row."""

    def __init__(self, point: tuple[float, ...]) -> None:
        super().__init__(point)
        self.point = point


@dataclass(frozen=True, slots=True)
class _Work:
    box: Box
    hints: tuple[Row, ...]
    fresh: bool
    """Floating point has not looked at it."""


def prove(
    statement: Statement, network: NetworkFloats, radius: int | None, record: Record | None,
    effort: Effort = USUAL,
) -> list[Any]:  # fmt: skip
    """The tree in preorder: what floating point closes with certainty, and the rest in exact arithmetic.

    Where a leaf that the checker looks at does not hold, the box is closed anew in exact arithmetic.
    """
    leaves = Leaves(statement, network, radius)
    found = leaves.of_record(record)
    prover = _Prover(statement, leaves, radius, MORE_SPLITS + TIMES * len(found), effort)
    # the checker's slopes follow from its bounds of the whole: where floating point has none, it begins from those
    if np.isinf(leaves.known).any() and prover.known is not None:
        leaves.learn(prover.known)
        found = leaves.of_record(record)
    verify = effort.verify
    if verify is not Verification.NONE and not _is_whole(found):
        found = [Open(0)]
    if verify is Verification.DOUBTFUL and len(found) <= SMALL_TREE:
        prover.verify = Verification.ALL
    if len(found) > MAX_NODES:
        raise UnsupportedQuestion(f"The proof has {len(found):,} nodes; a certificate has at most {MAX_NODES:,}.")
    tree: list[Any] = []
    boxes = [Box.whole(statement)]
    for node in found:
        statement.meter.keep(8 * _bytes_of(node, sum(statement.sizes)))
        box = boxes.pop() if boxes else Box.whole(statement)
        if isinstance(node, Open):
            hints = () if record is None or not len(record.log) else _hints(statement, record.at(node.record))
            tree += prover.by_hand(box, hints)
        elif isinstance(node, Closed):
            tree += [node.leaf] if prover.believes(box, node) else prover.by_hand(box, ())
        else:
            tree.append(node)
            boxes += reversed(sides(statement, box, node))
    return tree


def _bytes_of(node: Any, neurons: int) -> int:
    """About what a node of the tree takes: a split, or the rows of a leaf."""
    leaf = node.leaf if isinstance(node, Closed) else node
    return NODE_BYTES + (len(leaf["rows"]) * (ROW_BYTES + neurons // 4) if isinstance(leaf, dict) else 0)


def _is_whole(nodes: Sequence[Any]) -> bool:
    """Does the list end exactly when every region has been said something about?"""
    waiting = 1
    for node in nodes:
        if waiting == 0:
            return False
        waiting += 1 if isinstance(node, list) else -1
    return waiting == 0


def sides(statement: Statement, box: Box, split: list[Any]) -> tuple[Box, Box]:
    kind, a, b = split
    if kind == "relu":
        return box.split_relu(a, b)
    if kind == "option":
        return box.split_option(a, b)
    return box.split_number(statement, a, scaled(float.fromhex(b), statement.grid, "a split"))


class _Prover:
    """Closes in exact arithmetic what floating point leaves open, splitting further where that is needed."""

    def __init__(self, statement: Statement, leaves: Leaves, radius: int | None, most: int, effort: Effort) -> None:
        self.statement, self.leaves, self.radius, self.verify = statement, leaves, radius, effort.verify
        self.effort = effort
        self.splits, self.most = 0, most

    @cached_property
    def _walk(self) -> TreeWalk:
        return TreeWalk(self.statement, self.radius)

    @property
    def known(self) -> Bounds | None:
        return self._walk.known

    def believes(self, box: Box, closed: Closed) -> bool:
        """Is this leaf of floating point written as it is? If it is to be verified: does the checker close the box?"""
        check_limits()
        if self.verify is Verification.NONE or not (closed.doubtful or self.verify is Verification.ALL):
            return True
        try:
            self._walk.check_leaf(box, closed.leaf)
        except Refusal:
            return False
        return True

    def by_hand(self, box: Box, hints: tuple[Row, ...]) -> list[Any]:
        """The tree below one open box, in preorder."""
        if self.known is None:  # nothing is left in the ball
            return [{"rows": []}]
        waiting = [_Work(box, hints, False)]
        tree: list[Any] = []
        while waiting:
            one, children = self.settle(waiting.pop())
            self.statement.meter.keep(8 * _bytes_of(one, sum(self.statement.sizes)))
            tree.append(one)
            waiting += reversed(children)
        return tree

    def settle(self, work: _Work) -> tuple[Any, list[_Work]]:
        """A leaf, or a split and its two sides."""
        check_limits()
        closed = self.leaves.of_box(work.box) if work.fresh else None
        if closed is not None and self.believes(work.box, closed):
            return closed.leaf, []
        region = Region(self.statement, work.box, self.radius, self.known)
        if region.empty:
            return {"rows": []}, []
        closing = _Closing(region, work.hints)
        rows = closing.close()
        if rows is not None:
            return {"rows": rows}, []
        for point in closing.points() if self.splits < MOST_TESTED else ():
            if nearer(self.statement, point, self.radius):
                raise Nearer(point)
        found = closing.split()
        self.splits += 1
        self.effort.check_splits(self.splits)
        if found is None or self.splits > self.most:
            raise Unclosed
        return found, [_Work(side, closing.hints(), True) for side in sides(self.statement, work.box, found)]


def _hints(statement: Statement, record: NodeRecord) -> tuple[Row, ...]:
    """The rows of a record. Some are remnants of other nodes: rows that do not hold are sorted out later."""
    result: dict[Row, None] = {}
    for row in record.rows:
        bits = int("".join(map(str, row.slopes[::-1].tolist())) or "0", 2)
        if row.about >= 0:
            result[statement.layers - 1, min(row.about, statement.sizes[-1] - 1), 1, bits] = None
        else:
            layer, neuron = place(statement, -1 - row.about)
            result.update({(layer, neuron, sign, bits): None for sign in (1, -1)})
    return tuple(result)


def nearer(statement: Statement, point: tuple[float, ...], radius: int | None) -> bool:
    """Is this an allowed favourable row below the radius?"""
    if statement.allows(point):
        return False
    if radius is not None and statement.cost(point) * 2**statement.cost_unit >= radius:
        return False
    return all(value >= 0 for value in statement.conditions(point))


class _Closing:
    """Attempts to close one region."""

    def __init__(self, region: Region, hints: tuple[Row, ...]) -> None:
        self.region = region
        statement = region.statement
        self.last = statement.layers - 1
        sides = region.extent.sides
        self.rows: list[Row] = []
        for row in hints:
            holds = row[0] == self.last or sides.get(row[:2]) == (1 if row[2] == 1 else 2)
            if holds and row not in self.rows:
                self.rows.append(row)
        rule = self._rule()
        for r in range(statement.sizes[-1]):
            self._add((self.last, r, 1, rule))
        for (layer, neuron), side in sides.items():
            self._add((layer, neuron, 1 if side == ACTIVE else -1, rule))
        self.y: NDArray[np.float64] | None = None
        self.planes: Planes | None = None

    def hints(self) -> tuple[Row, ...]:
        return tuple(self.rows[-24:])

    def _add(self, row: Row) -> bool:
        if row in self.rows:
            return False
        self.rows.append(row)
        return True

    def _rule(self) -> int:
        bits = [high > -low for bounds in self.region.bounds for low, high in bounds]
        return sum(1 << h for h, bit in enumerate(bits) if bit)

    def close(self) -> list[Any] | None:
        """Rows and multipliers that close the region, or None."""
        for row in self.rows:
            if row[0] == self.last and self._holds([(row, 1.0)]):
                return [_written(row, 1.0)]
        self.planes = Planes(self.region)
        for row in self.rows:
            self.planes.add(*self.region.plane(*row))
        for _ in range(ROUNDS):
            multipliers, self.y = best_multipliers(self.planes)
            if multipliers is not None:
                used = [(row, m) for row, m in zip(self.rows, multipliers.tolist(), strict=True) if m > 0.0]
                if self._holds(used):
                    return [_written(row, m) for row, m in used]
            if not self._refine():
                return None
        return None

    def _refine(self) -> bool:
        """Add rows whose slopes are right at the present solution; False when there are none."""
        assert self.planes is not None and self.y is not None
        pattern = self.planes.pattern(self.y)
        new = False
        rows = [(self.last, r, 1) for r in range(self.region.statement.sizes[-1])]
        rows += [(*key, 1 if side == ACTIVE else -1) for key, side in self.region.extent.sides.items() if key[0] > 0]
        for row in rows:
            if self._add((*row, pattern)):
                self.planes.add(*self.region.plane(*row, pattern))
                new = True
        return new

    def _holds(self, used: list[tuple[Row, float]]) -> bool:
        return bool(used) and most_of_rows(self.region, [(*row, Fraction(m)) for row, m in used]) < 0

    # ------------------------------------------------------------------ splitting further

    def points(self) -> list[tuple[float, ...]]:
        """Rows of the region that may be favourable: its cheapest corner, and the present solution, rounded."""
        region, statement = self.region, self.region.statement
        corner = [
            float(c) if isinstance(f, Choice) else float(Fraction(before) + Fraction(c, 2**statement.grid))
            for f, c, before in zip(statement.schema.features, region.corner, statement.factual, strict=True)
        ]
        found = [tuple(corner)]
        if self.y is None or self.planes is None:
            return found
        ways = [(share, up) for share in (1.0, self.planes.needed(self.y)) for up in (False, True)]
        found += [tuple(self._rounded(corner, share * self.y, up)) for share, up in ways]
        return [*dict.fromkeys(found)]

    def _rounded(self, corner: list[float], y: NDArray[np.float64], up: bool) -> list[float]:
        """The row at y from the corner; integers to the nearest value, or to the next one away from the corner."""
        point, domains = list(corner), self.region.statement.domains
        for item in self.region.items:
            g, value = item.feature, float(y[item.first])
            if item.options:
                shares = y[item.first : item.first + len(item.options)]
                if shares.max() >= 0.5:
                    point[g] = float(item.options[int(shares.argmax())])
            elif step := domains[g].step >> self.region.statement.grid:
                steps = math.ceil(abs(value) / step - 1e-9) if up else round(abs(value) / step)
                point[g] += math.copysign(steps * step, value)
            else:
                point[g] += value
        return point

    def split(self) -> list[Any] | None:
        """How to split a region that could not be closed: at what keeps its bound from being exact."""
        assert self.planes is not None
        region, statement = self.region, self.region.statement
        y = self.y if self.y is not None else np.zeros(len(region.columns))
        worst = self.planes.worst_relu(y)
        if worst is not None:
            return ["relu", *worst]
        one = 2.0**statement.grid
        for exact in (True, False):  # what is a fraction in the solution first, then anything
            for item in region.items:
                value = float(y[item.first])
                if item.options:
                    shares = y[item.first : item.first + len(item.options)]
                    if not exact or bool(((shares > 1e-9) & (shares < 1.0 - 1e-9)).any()):
                        return ["option", item.feature, region.corner[item.feature]]
                    continue
                step = statement.domains[item.feature].step
                base = region.corner[item.feature]
                if step:
                    steps = value * one / step
                    if not exact or abs(steps - round(steps)) > 1e-9:
                        at = base + math.floor(steps) * step
                        at = max(min(at, base + item.up - step), base - item.down)
                        return ["number", item.feature, on_grid(statement, at / 2**statement.grid)]
                elif item.jump and exact and base == 0 and abs(value) > 1e-12:
                    return ["number", item.feature, (0.0).hex()] if item.up and item.down else None
        loose = self.planes.any_relu()
        if loose is not None:
            return ["relu", *loose]
        return None


def _written(row: Row, multiplier: float) -> list[Any]:
    layer, neuron, sign, slopes = row
    return [layer, neuron, sign, f"{slopes:x}", multiplier.hex()]
