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
from ifonly.certificate.check.box import Box, Extent
from ifonly.certificate.check.checker import MAX_NODES, TreeWalk, most_of_planes
from ifonly.certificate.check.reading import Refusal, scaled
from ifonly.certificate.check.region import Bounds, Item, Region
from ifonly.certificate.check.rules import ACTIVE, literal_range, narrow
from ifonly.certificate.check.schema import StatedChoice
from ifonly.certificate.check.statement import Statement
from ifonly.certificate.check.trees import Reach, closes
from ifonly.certifying.effort import USUAL, Effort, Verification
from ifonly.certifying.leaves import Closed, Leaves, NetworkFloats, Open, on_grid, place
from ifonly.certifying.multipliers import Planes, best_multipliers
from ifonly.certifying.probes import ProbedTree
from ifonly.errors import UnsupportedQuestion
from ifonly.resources import check_limits
from ifonly.solvers.search.record import NodeRecord, Record

ROUNDS = 6
MORE_SPLITS, TIMES = 500, 4
"""How many splits there may be beyond the search's own: so many, and so many times its nodes."""
MOST_SPLITS = 50_000
"""Without records."""
SMALL_TREE = 3
"""Trees of so many nodes are verified whole."""
NODE_BYTES, ROW_BYTES = 200, 400
"""Of a tree in memory, but for the slopes of a row."""
MOST_HINTS = 6
"""Rows that a box hands down to its sides."""
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
    if not is_plain(statement):
        return _by_splitting(statement, leaves, radius, effort)
    if record is not None and record.probed:
        return _of_probes(statement, network, leaves, record, effort)
    found = leaves.of_record(record)
    prover = Prover(statement, leaves, radius, MORE_SPLITS + TIMES * len(found), effort)
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


def _of_probes(
    statement: Statement, network: NetworkFloats, leaves: Leaves, record: Record, effort: Effort
) -> list[Any]:  # fmt: skip
    """The tree of a search that probed ReLUs. What is written was shown in exact arithmetic."""
    prover = Prover(statement, leaves, leaves.radius, MORE_SPLITS + TIMES * len(record.nodes), effort)
    if prover.known is None:  # nothing is left in the ball
        return [{"rows": []}]
    leaves.learn(prover.known)
    leaves.make_ready(len(record.log))
    prover.verify = Verification.ALL  # floating point does not know the bounds that are shown on the way
    probed = ProbedTree(statement, network, leaves.radius, prover.known, prover.by_hand, sides)
    tree: list[Any] = []
    for node in probed.written(record):
        check_limits()
        statement.meter.keep(8 * _bytes_of(node, sum(statement.sizes)))
        tree.append(node)
    return tree


def is_plain(statement: Statement) -> bool:
    """Do the records of the search speak of this question as it is stated? They know other splits for rules."""
    stepped = any(domain.steps is not None for domain in statement.domains)
    return not statement.rules.any and not stepped and statement.rates == statement.rates_down


def _by_splitting(statement: Statement, leaves: Leaves, radius: int | None, effort: Effort) -> list[Any]:
    """The tree, from the whole space down: without records, guided by the solutions of the boxes' relaxations."""
    prover = Prover(statement, leaves, radius, MOST_SPLITS, effort)
    if prover.known is not None:
        leaves.learn(prover.known)
    return prover.by_hand(Box.whole(statement), (), fresh=True)


def _bytes_of(node: Any, neurons: int) -> int:
    """About what a node of the tree takes: a split, or the rows of a leaf."""
    leaf = node.leaf if isinstance(node, Closed) else node
    if not isinstance(leaf, dict):
        return NODE_BYTES
    steps = len(leaf.get("bounds", ())) + ("multipliers" in leaf)
    return NODE_BYTES + len(leaf.get("rows", ())) * (ROW_BYTES + neurons // 4) + steps * (ROW_BYTES + 40 * neurons)


def _is_whole(nodes: Sequence[Any]) -> bool:
    """Does the list end exactly when every region has been said something about?"""
    waiting = 1
    for node in nodes:
        if waiting == 0:
            return False
        waiting += 1 if isinstance(node, list) else -1
    return waiting == 0


def sides(statement: Statement, box: Box, split: list[Any]) -> tuple[Box, Box]:
    kind, a = split[:2]
    if kind == "change":
        return box.split_change(statement, a)
    b = split[2]
    if kind == "relu":
        return box.split_relu(a, b)
    if kind == "option":
        return box.split_option(a, b)
    return box.split_number(statement, a, scaled(float.fromhex(b), statement.grid, "a split"))


class Prover:
    """Closes in exact arithmetic what floating point leaves open, splitting further where that is needed."""

    def __init__(self, statement: Statement, leaves: Leaves, radius: int | None, most: int, effort: Effort) -> None:
        self.statement, self.leaves, self.radius, self.verify = statement, leaves, radius, effort.verify
        self.effort = effort
        self.splits, self.most = 0, most

    @cached_property
    def _walk(self) -> TreeWalk:
        return TreeWalk(self.statement, self.radius)

    @property
    def in_reach(self) -> list[list[Reach]]:
        return self._walk.in_reach

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

    def by_hand(self, box: Box, hints: tuple[Row, ...], *, fresh: bool = False) -> list[Any]:
        """The tree below one open box, in preorder."""
        if self.known is None:  # nothing is left in the ball
            return [{"rows": []}]
        waiting = [_Work(box, hints, fresh)]
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
        extent = work.box.extent()
        if not narrow(self.statement, extent):
            return {"rows": []}, []
        closed = self.leaves.of_box(extent) if work.fresh else None
        if closed is not None and self.believes(work.box, closed):
            return closed.leaf, []
        region = Region(self.statement, extent, self.radius, self.known)
        if region.empty:
            return {"rows": []}, []
        if self.statement.forest is not None:
            if closes(region, self._walk.in_reach):
                return {"rows": []}, []
            raise_if_nearer(self.statement, region.extent, self.radius)
        closing = _Closing(region, work.hints)
        rows = closing.close()
        if rows is not None:
            return {"rows": rows}, []
        for point in closing.points() if self.splits < MOST_TESTED else ():
            if self.leaves.may_be_favourable(point) and nearer(self.statement, point, self.radius):
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
    if any(value < 0 for value in statement.conditions(point)):  # the quickest of the three
        return False
    if radius is not None and statement.cost(point) * 2**statement.cost_unit >= radius:
        return False
    return not statement.allows(point)


def corner_row(statement: Statement, extent: Extent) -> tuple[float, ...]:
    """The cheapest row of a box: of a number above a threshold, the next float64."""
    row = []
    for g, before in enumerate(statement.factual):
        if statement.is_choice[g]:
            price = statement.option_costs[g]
            row.append(float(min(extent.options[g], key=price.__getitem__)))
            continue
        change = max(extent.low[g], min(extent.high[g], 0))
        value = float(Fraction(before) + Fraction(change, 1 << statement.grid))
        if g in extent.above and value <= extent.above[g]:
            value = float(np.nextafter(extent.above[g], np.inf))
        row.append(value)
    return tuple(row)


def raise_if_nearer(statement: Statement, extent: Extent, radius: int | None) -> None:
    """A favourable row of the box that is nearer than claimed, if its corner is one."""
    row = corner_row(statement, extent)
    if nearer(statement, row, radius):
        raise Nearer(row)


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
            if not self._holds_everywhere(layer, neuron, side):
                self._add((layer, neuron, 1 if side == ACTIVE else -1, rule))
        self.y: NDArray[np.float64] | None = None
        self.planes: Planes | None = None
        self.exact: dict[Row, tuple[list[int], int, int]] = {}
        """Of each row: its plane."""

    def _holds_everywhere(self, layer: int, neuron: int, side: int) -> bool:
        """Is it a literal that all of the box puts on its side? Then its row says nothing."""
        statement = self.region.statement
        if layer or neuron < statement.first_literal:
            return False
        low, high = literal_range(statement, self.region.extent, neuron - statement.first_literal)
        return low >= 0 if side == ACTIVE else high <= 0

    def hints(self) -> tuple[Row, ...]:
        return tuple(self.rows[-MOST_HINTS:])

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
        self.planes = Planes(self.region)
        if not self.rows:
            self.y = np.zeros(len(self.region.columns))
            return None
        for row in self.rows:
            self._measure(row)
        for k, row in enumerate(self.rows):
            if row[0] == self.last and self.planes.most(k) < 0.0 and self._holds([(row, 1.0)]):
                return [_written(row, 1.0)]
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
                self._measure((*row, pattern))
                new = True
        return new

    def _measure(self, row: Row) -> None:
        """Compute the plane of a row, once."""
        assert self.planes is not None
        self.exact[row] = self.region.plane(*row)
        self.planes.add(*self.exact[row])

    def _holds(self, used: list[tuple[Row, float]]) -> bool:
        return bool(used) and most_of_planes(self.region, [(self.exact[row], Fraction(m)) for row, m in used]) < 0

    # ------------------------------------------------------------------ splitting further

    def points(self) -> list[tuple[float, ...]]:
        """Rows of the region that may be favourable: its cheapest corner, and the present solution, rounded."""
        region, statement = self.region, self.region.statement
        corner = [
            float(c) if isinstance(f, StatedChoice) else float(Fraction(before) + Fraction(c, 2**statement.grid))
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
            elif (grid := domains[g].steps) is not None:
                at = self.region.corner[g] + math.floor(value * 2.0**self.region.statement.grid)
                ends = [end for end in (grid.down(at), grid.up(at)) if end is not None]
                away = max(ends, key=abs) if up else min(ends, key=lambda end: abs(end - at))
                point[g] = float(Fraction(grid.before) + Fraction(away, 1 << self.region.statement.grid))
            else:
                point[g] += value
        return point

    def split(self) -> list[Any] | None:
        """How to split a region that could not be closed: at what keeps its bound from being exact."""
        assert self.planes is not None
        region = self.region
        y = self.y if self.y is not None else np.zeros(len(region.columns))
        ruled = self._rule_split(y)
        if ruled is not None:
            return ruled
        worst = self.planes.worst_relu(y)
        if worst is not None:
            return ["relu", *worst]
        for exact in (True, False):  # what is a fraction in the solution first, then anything
            for item in region.items:
                found = self._option_split(item, y, exact) if item.options else self._number_split(item, y, exact)
                if found is not None:
                    return found
        undecided = self._any_literal()
        if undecided is not None:
            return undecided
        loose = self.planes.any_relu()
        if loose is not None:
            return ["relu", *loose]
        return None

    def _option_split(self, item: Item, y: NDArray[np.float64], exact: bool) -> list[Any] | None:
        shares = y[item.first : item.first + len(item.options)]
        if exact and not bool(((shares > 1e-9) & (shares < 1.0 - 1e-9)).any()):
            return None
        return ["option", item.feature, self.region.corner[item.feature]]

    def _number_split(self, item: Item, y: NDArray[np.float64], exact: bool) -> list[Any] | None:
        region, statement, g = self.region, self.region.statement, item.feature
        value, base, one = float(y[item.first]), region.corner[g], 2.0**statement.grid
        step, grid = statement.domains[g].step, statement.domains[g].steps
        if step:
            steps = value * one / step
            if not exact or abs(steps - round(steps)) > 1e-9:
                at = base + math.floor(steps) * step
                at = max(min(at, base + item.up - step), base - item.down)
                return ["number", g, on_grid(statement, at / 2**statement.grid)]
        elif grid is not None:
            at = base + math.floor(value * one)
            down, up = grid.down(at), grid.up(at)
            near = min((abs(end - at) for end in (down, up) if end is not None), default=0)
            if not exact or near > 1e-9 * float(grid.step) * one:
                low, high = base - item.down, base + item.up
                at = down if down is not None and low <= down < high else low
                return ["number", g, (at / 2**statement.grid).hex()]
        elif item.jump and exact and abs(value) > 1e-12:
            return ["change", g]
        elif item.rate != item.rate_down and item.up and item.down and (not exact or abs(value) > 1e-12):
            return ["number", g, (0.0).hex()]  # floating point takes the cheaper direction for both
        return None

    def _rule_split(self, y: NDArray[np.float64]) -> list[Any] | None:
        """A split on a rule that the solution breaks: on a literal of a clause, or on whether a feature changes."""
        region, statement = self.region, self.region.statement
        rules, first = statement.rules, statement.first_literal
        if not rules.any or self.planes is None:
            return None
        values, sides = self.planes.literals(y), region.extent.sides
        for clause in rules.clauses:
            if not any(sides.get((0, first + i)) == ACTIVE or values[i] >= -1e-9 for i in clause):
                open_ones = [i for i in clause if (0, first + i) not in sides]
                if open_ones:
                    return ["relu", 0, first + max(open_ones, key=lambda i: float(values[i]))]
        moving = self._moving(y)
        for g, partner in rules.partners:
            if g in moving and partner not in moving:
                return ["change", g]
        for most, counted in rules.limits:
            free = [g for g in moving if counted[g] and not self._must(g)]
            if free and sum(counted[g] for g in moving) > most:
                return ["change", max(free, key=lambda g: moving[g])]
        return None

    def _must(self, g: int) -> bool:
        """Must the feature change in this region?"""
        return g in self.region.extent.changed or self._away(g)

    def _away(self, g: int) -> bool:
        """Is the cheapest corner a change of the feature?"""
        statement = self.region.statement
        return self.region.corner[g] != (int(statement.factual[g]) if statement.is_choice[g] else 0)

    def _moving(self, y: NDArray[np.float64]) -> dict[int, float]:
        """The features that the solution changes, and by how much of what they can."""
        region = self.region
        found = {g: 1.0 for g in range(len(region.corner)) if self._must(g)}
        for item in region.items:
            share = y[item.first : item.first + max(len(item.options), 1)]
            reach = 1.0 if item.options else max(item.up, item.down) / 2.0**region.statement.grid
            moved = float(np.abs(share).sum()) / reach
            if moved > 1e-9:
                found[item.feature] = max(found.get(item.feature, 0.0), moved)
        return found

    def _any_literal(self) -> list[Any] | None:
        """A literal that nothing decides, of a clause that is not known to hold."""
        region, first = self.region, self.region.statement.first_literal
        for clause in region.statement.rules.clauses:
            known = [region.extent.sides.get((0, first + i)) for i in clause]
            if ACTIVE not in known and not any(region.bounds[0][first + i][0] >= 0 for i in clause):
                for i, side in zip(clause, known, strict=True):
                    if side is None and region.bounds[0][first + i][1] >= 0:
                        return ["relu", 0, first + i]
        return None


def _written(row: Row, multiplier: float) -> list[Any]:
    layer, neuron, sign, slopes = row
    return [layer, neuron, sign, f"{slopes:x}", multiplier.hex()]
