"""Proof tree from the records of the search: every leaf is closed with the checker's own arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ifonly.caching import cached_property
from ifonly.certificate.check.box import Box, Extent
from ifonly.certificate.check.reading import Refusal, scaled
from ifonly.certificate.check.region import Bounds, Region
from ifonly.certificate.check.rules import ACTIVE, literal_range, rounds_of_narrowing
from ifonly.certificate.check.rules import ROUNDS as ROUNDS_OF_NARROWING
from ifonly.certificate.check.statement import Statement
from ifonly.certificate.check.tree_walk import MAX_NODES, TreeWalk
from ifonly.certificate.check.trees import Reach, closes
from ifonly.certifying.closing import Closing, Row
from ifonly.certifying.effort import USUAL, Effort, Verification
from ifonly.certifying.leaves import Closed, Leaves, NetworkFloats, Open, Solution, place
from ifonly.certifying.nearer import Nearer, nearer, raise_if_nearer
from ifonly.certifying.probes import ProbedTree
from ifonly.certifying.splitting import FloatRelaxed, Splitting, split_of_solution
from ifonly.errors import UnsupportedQuestion
from ifonly.resources import check_limits
from ifonly.solvers.search.record import NodeRecord, Record

MORE_SPLITS, TIMES = 500, 4
"""How many splits there may be beyond the search's own: so many, and so many times its nodes."""
MOST_SPLITS = 50_000
"""Without records."""
SMALL_TREE = 3
"""Trees of so many nodes are verified whole."""
NODE_BYTES, ROW_BYTES = 200, 400
"""Of a tree in memory, but for the slopes of a row."""
MOST_TESTED = 50
"""Open regions that are searched for a nearer row."""

MOVING = ("high", "low", "alone", "others", "kept", "changed", "active", "inactive")
"""Cuts of a box that are about one feature, or one neuron."""


class Unclosed(Exception):
    """A box that could not be closed at the claimed lower bound."""


@dataclass(frozen=True, slots=True)
class _Work:
    box: Box
    hints: tuple[Row, ...] = ()
    fresh: bool = False
    """Floating point has not looked at it."""
    above: Extent | None = None
    """What the rules leave of the box that it is a side of; of the whole, what they leave of it."""
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
            tree += [node.leaf] if prover.believes(box, node) else prover.by_hand(box)
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
    rounds = rounds_of_narrowing(statement, extent, None)
    if not rounds:
        return [{"rows": []}]
    prover.narrowed = extent
    closed = leaves.of_box(extent, whole=True)
    leaf = closed.leaf if isinstance(closed, Closed) and prover.believes(whole, closed) else None
    literals = leaf is None or any(row[0] == 0 and row[1] >= statement.first_literal for row in leaf["rows"])
    # where nothing is left in the ball, the checker narrows no box: no literal holds that is not split
    if literals and statement.rules.clauses and prover.finds_nothing:
        return [{"rows": []}]
    if leaf is not None:
        return [leaf]
    if np.isinf(leaves.known).any():
        if prover.known is None:
            return [{"rows": []}]
        leaves.learn(prover.known)
    return prover.tree_of(_Work(whole, (), True, extent, rounds))


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
        self.narrowed: Extent | None = None
        """What the rules leave of the whole, where it is known."""

    @cached_property
    def _walk(self) -> TreeWalk:
        return TreeWalk(self.statement, self.radius, self.narrowed)

    @property
    def in_reach(self) -> list[list[Reach]]:
        return self._walk.in_reach

    @property
    def known(self) -> Bounds | None:
        return self._walk.known

    @cached_property
    def finds_nothing(self) -> bool:
        """Does the checker find nothing in the ball? Then `known` is None; this takes less, since only literals that
        the rules decide can contradict each other in a box whose corner is in the ball."""
        whole = self.narrowed or Box.whole(self.statement)
        region = Region(self.statement, whole, self.radius, hidden=False)
        return region.empty or any(self._contradicts(region, i, side) for (_, i), side in region.extent.sides.items())

    def _contradicts(self, region: Region, i: int, side: int) -> bool:
        """Is a literal that is decided never on that side in the ball?"""
        extent = region.extent
        low, high = literal_range(self.statement, extent, i - self.statement.first_literal)
        low, high = extent.bounds(0, i, low, high)
        return region.highest(0, i, 1) < low if side == ACTIVE else -region.highest(0, i, -1) > high

    def believes(self, box: Box, closed: Closed) -> bool:
        """Is this leaf of floating point written as it is? If it is to be verified: does the checker close the box?"""
        check_limits()
        # floating point may find nothing left on a side of a rule where decimals leave its room
        doubtful = closed.doubtful or (not closed.leaf["rows"] and self.statement.rules.any)
        if self.verify is Verification.NONE or not (doubtful or self.verify is Verification.ALL):
            return True
        if not closed.leaf["rows"] and Region(self.statement, box, self.radius, hidden=False).empty:
            return True
        try:
            self._walk.check_leaf(box, closed.leaf)
        except Refusal:
            return False
        return True

    def by_hand(self, box: Box, hints: tuple[Row, ...] = ()) -> list[Any]:
        """The tree below one open box, in preorder."""
        return self.tree_of(_Work(box, hints))

    def tree_of(self, work: _Work) -> list[Any]:
        """The same, with what is known of the box."""
        waiting = [work]
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
        if work.above is not None and work.box.before is None:
            return work.above, work.rounds
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
        found = split_of_solution(FloatRelaxed(self.leaves, solution), extent, self.radius)
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
        closing = Closing(region, work.hints)
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
