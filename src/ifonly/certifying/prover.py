"""Proof tree from the records of the search: every leaf is closed with the checker's own arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.certificate.check.box import Box, Extent
from ifonly.certificate.check.reading import Refusal, scaled
from ifonly.certificate.check.region import Bounds, Region
from ifonly.certificate.check.rules import ACTIVE, literal_range, narrow, rounds_of_narrowing
from ifonly.certificate.check.rules import ROUNDS as ROUNDS_OF_NARROWING
from ifonly.certificate.check.statement import Statement
from ifonly.certificate.check.tree_walk import MAX_NODES, TreeWalk, most_of_planes
from ifonly.certificate.check.trees import Reach, closes
from ifonly.certifying.effort import USUAL, Effort, Verification
from ifonly.certifying.leaves import Closed, Leaves, NetworkFloats, Open, Solution, place
from ifonly.certifying.multipliers import Planes, best_multipliers, slopes_of
from ifonly.certifying.probes import ProbedTree
from ifonly.certifying.splitting import FloatRelaxed, Splitting
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

SPARE_BITS = 36
"""Of the constant of a plane through a smooth network: what it should have to spare."""
MOVING = ("high", "low", "alone", "others", "kept", "changed", "active", "inactive")
"""Cuts of a box that are about one feature, or one neuron."""

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
    above: Extent | None = None
    """Of the box that it is a side of: what the rules leave of it."""
    rounds: int = 0
    """Of narrowing, from the whole to there."""


def prove(
    statement: Statement, network: NetworkFloats, radius: int | None, record: Record | None,
    effort: Effort = USUAL,
) -> list[Any]:  # fmt: skip
    """The tree in preorder: what floating point closes with certainty, and the rest in exact arithmetic.

    Where a leaf that the checker looks at does not hold, the box is closed anew in exact arithmetic.
    """
    leaves = Leaves(statement, network, radius)
    if record is None or not is_plain(statement):
        return _by_splitting(statement, leaves, radius, effort)
    if record.probed:
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
            hints = () if not len(record.log) else _hints(statement, record.at(node.record))
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
    ruled = statement.rules.any or bool(statement.curved)
    return not ruled and not stepped and statement.rates == statement.rates_down


def _by_splitting(statement: Statement, leaves: Leaves, radius: int | None, effort: Effort) -> list[Any]:
    """The tree, from the whole space down: without records, guided by the solutions of the boxes' relaxations."""
    prover = Prover(statement, leaves, radius, MOST_SPLITS, effort)
    whole = Box.whole(statement)
    extent = whole.extent()
    if not narrow(statement, extent):
        return [{"rows": []}]
    closed = leaves.of_box(extent, whole=True)
    leaf = closed.leaf if isinstance(closed, Closed) and prover.believes(whole, closed) else None
    literals = leaf is None or any(row[0] == 0 and row[1] >= statement.first_literal for row in leaf["rows"])
    # where nothing is left in the ball, the checker narrows no box: no literal holds that is not split
    if literals and statement.rules.clauses and prover.known is None:
        return [{"rows": []}]
    if leaf is not None:
        return [leaf]
    if np.isinf(leaves.known).any():
        if prover.known is None:
            return [{"rows": []}]
        leaves.learn(prover.known)
    return prover.by_hand(whole, (), fresh=True)


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
        self.splits, self.most, self.tested = 0, most, 0

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
        # floating point may find nothing left on a side of a rule where decimals leave its room
        doubtful = closed.doubtful or (not closed.leaf["rows"] and self.statement.rules.any)
        if self.verify is Verification.NONE or not (doubtful or self.verify is Verification.ALL):
            return True
        try:
            self._walk.check_leaf(box, closed.leaf)
        except Refusal:
            return False
        return True

    def by_hand(self, box: Box, hints: tuple[Row, ...], *, fresh: bool = False) -> list[Any]:
        """The tree below one open box, in preorder."""
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
        extent, rounds = self._narrowed(work)
        if not rounds:
            return {"rows": []}, []
        closed = self.leaves.of_box(extent) if work.fresh else None
        if isinstance(closed, Closed) and self.believes(work.box, closed):
            return closed.leaf, []
        found = self._split_in_floats(extent, closed) if isinstance(closed, Solution) else None
        if found is not None:
            pair = sides(self.statement, work.box, found)
            return found, [_Work(side, (), True, extent, rounds) for side in pair]
        return self._settle_exactly(work, extent)

    def _narrowed(self, work: _Work) -> tuple[Extent, int]:
        """What the rules leave of a box, and after how many rounds, 0 when that is nothing.

        From what they leave of the box above, only what its last cut is about has to be looked at. The checker begins
        with the whole: it ends at the same, if it has as many rounds as were needed on the way.
        """
        if work.above is not None and work.box.cut[0] in MOVING:
            kind, place, value = work.box.cut
            extent = work.above.copy()
            extent.add(kind, place, value)
            moved: set[int] | frozenset[int] = {place}
            if kind in ("active", "inactive"):
                literal = value - self.statement.first_literal
                if place or literal < 0:
                    return extent, work.rounds
                moved = self.statement.rules.features[literal]
            rounds = rounds_of_narrowing(self.statement, extent, set(moved)) if moved else ROUNDS_OF_NARROWING
            if not rounds or work.rounds + rounds < ROUNDS_OF_NARROWING:
                return extent, rounds and work.rounds + rounds
        extent = work.box.extent()
        return extent, rounds_of_narrowing(self.statement, extent, None)

    def _split_in_floats(self, extent: Extent, solution: Solution) -> list[Any] | None:
        """Where the relaxation of floating point says that an open box is to be split; None: exact arithmetic looks."""
        if self.statement.forest is not None:
            return None
        region = Region(self.statement, extent, self.radius, hidden=False)
        if region.empty:
            return None
        relaxed = FloatRelaxed(self.leaves, solution)
        found = Splitting(region, relaxed, relaxed.in_columns(region)).at_solution()
        if found is not None:
            self._count_split()
        return found

    def _raise_if_nearer(self, splitting: Splitting) -> None:
        self.tested += 1
        for point in splitting.points() if self.tested <= MOST_TESTED else ():
            if self.leaves.may_be_favourable(point) and nearer(self.statement, point, self.radius):
                raise Nearer(point)

    def _count_split(self) -> None:
        self.splits += 1
        self.effort.check_splits(self.splits)
        if self.splits > self.most:
            raise Unclosed

    def _settle_exactly(self, work: _Work, extent: Extent) -> tuple[Any, list[_Work]]:
        if self.known is None:  # nothing is left in the ball
            return {"rows": []}, []
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
        splitting = closing.splitting()
        self._raise_if_nearer(splitting)
        found = splitting.anywhere()
        self._count_split()
        if found is None:
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
    if radius is not None and statement.cost_of_changes(point) * 2**statement.cost_unit >= radius:
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
        return sum(1 << h for h, bit in enumerate(bits) if bit) & slopes_of(self.region.statement)

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
        planes = [(self.exact[row], Fraction(m)) for row, m in used]
        if self.region.statement.curved:  # another checker may round a slope in another way
            planes = [((a, c + (abs(c) >> SPARE_BITS), unit), m) for (a, c, unit), m in planes]
        return bool(used) and most_of_planes(self.region, planes) < 0

    def splitting(self) -> Splitting:
        """Where to split what could not be closed."""
        assert self.planes is not None
        y = self.y if self.y is not None else np.zeros(len(self.region.columns))
        return Splitting(self.region, self.planes, y)


def _written(row: Row, multiplier: float) -> list[Any]:
    layer, neuron, sign, slopes = row
    return [layer, neuron, sign, f"{slopes:x}", multiplier.hex()]
