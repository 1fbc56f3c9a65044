"""The way through the tree of a proof: each split has two sides that together are the whole, each leaf is closed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .box import Box, Extent
from .multipliers import ShownBounds, check_steps, read_multipliers
from .reading import Refusal, entries, listed, number, scaled, whole
from .region import Bounds, Region
from .rules import ACTIVE, INACTIVE
from .schema import StatedChoice
from .statement import Statement
from .trees import Reach, closes, within_reach

MAX_NODES = 500_000
MAX_DEPTH = 20_000
MAX_ROWS = 1_000


class TreeWalk:
    """The way through a tree, given in preorder."""

    def __init__(self, statement: Statement, radius: int | None, narrowed: Extent | None = None) -> None:
        """`narrowed`: what the rules leave of the whole space, where that is known."""
        self.statement, self.radius = statement, radius
        self.nodes = self.leaves = 0
        whole_region = Region(statement, narrowed or Box.whole(statement), radius)
        self.known: Bounds | None = None if whole_region.empty else whole_region.bounds
        """Bounds over the whole ball: they hold in every leaf. None: nothing is left in the ball."""
        self.in_reach: list[list[Reach]] = [] if statement.forest is None else within_reach(statement, radius)

    def check_tree(self, tree: list[Any], first: int = 0, *, last: bool = True) -> None:
        """Check the tree that begins at a place of the list, and ends there if it is the `last` one."""
        if len(tree) > MAX_NODES:
            raise Refusal(f"the tree has more than {MAX_NODES} nodes")
        waiting, self.nodes = [(Box.whole(self.statement), 0)], first
        while waiting and self.nodes < len(tree):
            node = tree[self.nodes]
            self.nodes += 1
            self.statement.meter.tick()
            box, depth = waiting.pop()
            if isinstance(node, dict) and "bounds" not in node:
                self.check_leaf(box, node)
                self.leaves += 1
                continue
            if depth >= MAX_DEPTH:
                raise Refusal(f"the tree is deeper than {MAX_DEPTH}")
            if isinstance(node, dict):
                waiting.append((self._bounded(box, node), depth + 1))
                continue
            one, other = self._split(box, listed(node, f"node {self.nodes} of the tree"))
            waiting += [(other, depth + 1), (one, depth + 1)]
        if waiting:
            raise Refusal(f"the tree is cut off: {len(waiting)} regions are not closed")
        if last and self.nodes < len(tree):
            raise Refusal(f"node {self.nodes + 1} of the tree is one too many")

    def _split(self, box: Box, node: list[Any]) -> tuple[Box, Box]:
        """["number", feature, change], ["option", feature, option], ["relu", layer, neuron], ["change", feature], or
        ["cut", feature, threshold]."""
        where = f"node {self.nodes} of the tree"
        if not node or {"number": 3, "option": 3, "relu": 3, "change": 2, "cut": 3}.get(str(node[0])) != len(node):
            raise Refusal(f"{where} is no split")
        statement = self.statement
        if node[0] == "relu":
            layer = whole(node[1], f"{where}: the layer", 0, statement.layers - 2)
            return box.split_relu(layer, whole(node[2], f"{where}: the neuron", 0, statement.sizes[layer] - 1))
        g = whole(node[1], f"{where}: the feature", 0, len(statement.schema) - 1)
        feature = statement.schema.features[g]
        if node[0] == "change":
            return box.split_change(statement, g)
        if node[0] == "cut" and not isinstance(feature, StatedChoice):
            return box.split_cut(statement, g, number(node[2], f"{where}: the threshold"))
        if isinstance(feature, StatedChoice) != (node[0] == "option"):
            raise Refusal(f"{where} does not fit the kind of feature {g}")
        if isinstance(feature, StatedChoice):
            return box.split_option(g, whole(node[2], f"{where}: the option", 0, len(feature.options) - 1))
        change = scaled(number(node[2], f"{where}: the change"), statement.grid, f"{where}: the change")
        return box.split_number(statement, g, change)

    def _bounded(self, box: Box, node: dict[str, Any]) -> Box:
        """{"bounds": [[layer, neuron, sign, bound, multipliers], ...]}: what is shown of the box."""
        where = f"node {self.nodes} of the tree"
        return check_steps(
            self._steps(box, where), self.statement, box, entries(node, where, "bounds")["bounds"], where
        )

    def _steps(self, box: Box, where: str) -> ShownBounds | None:
        if self.statement.forest is not None:
            raise Refusal(f"{where}: multipliers are of networks, and this model has trees")
        if self.known is None:
            return None
        return ShownBounds(self.statement, Region(self.statement, box, self.radius, hidden=False), self.known)

    def _check_multipliers(self, box: Box, leaf: dict[str, Any], where: str) -> None:
        """{"multipliers": [conditions, hidden neurons]}: what they combine to must be negative everywhere."""
        read = read_multipliers(self.statement, entries(leaf, where, "multipliers")["multipliers"], where)
        steps = self._steps(box, where)
        if steps is not None and not steps.closes(read):
            raise Refusal(f"{where} is not closed: a favourable row nearer than claimed may be in it")

    def check_leaf(self, box: Box, leaf: dict[str, Any]) -> None:
        """{"rows": [[layer, neuron, sign, slopes, multiplier], ...]}: their combination must be negative everywhere.
        Or multipliers.
        """
        where = f"node {self.nodes} of the tree"
        if "multipliers" in leaf:
            self._check_multipliers(box, leaf, where)
            return
        rows = listed(entries(leaf, where, "rows")["rows"], f"{where}: the rows")
        if len(rows) > MAX_ROWS:
            raise Refusal(f"{where} has more than {MAX_ROWS} rows")
        region = None if self.known is None else Region(self.statement, box, self.radius, hidden=False)
        sides = (box.extent(self.statement.meter) if region is None else region.extent).sides
        read = [self._row(sides, listed(row, f"{where}: a row", 5), where) for row in rows]
        if self.known is None or region is None or region.empty:
            return
        if self.statement.forest is not None and not read and closes(region, self.in_reach):
            return
        if not self._is_closed(region, self.known, read):
            raise Refusal(f"{where} is not closed: a favourable row nearer than claimed may be in it")

    def _is_closed(self, region: Region, known: Bounds, rows: list[tuple[int, int, int, int, Fraction]]) -> bool:
        """Is the combination of the rows negative everywhere? With the bounds of the whole ball first: often they do,
        and those of the region take most of the time."""
        if not region.take(known) or (rows and most_of_rows(region, rows) < 0):
            return True
        return not region.bound(known) or bool(rows and most_of_rows(region, rows) < 0)

    def _row(
        self, sides: dict[tuple[int, int], int], row: list[Any], where: str
    ) -> tuple[int, int, int, int, Fraction]:
        """(layer, neuron, sign, slopes, multiplier): sign * pre-activation >= 0 holds for favourable rows here."""
        statement = self.statement
        statement.meter.tick()
        layer = whole(row[0], f"{where}: a row's layer", 0, statement.layers - 1)
        neuron = whole(row[1], f"{where}: a row's neuron", 0, statement.sizes[layer] - 1)
        sign = whole(row[2], f"{where}: a row's sign", -1, 1)
        if layer == statement.layers - 1:
            known = sign == 1
        else:
            known = (layer, neuron) in sides and sides[layer, neuron] == {1: ACTIVE, -1: INACTIVE}.get(sign)
        if not known or sign == 0:
            raise Refusal(f"{where}: nothing says that row ({layer}, {neuron}, {sign}) holds there")
        bits = row[3]
        hidden = statement.starts[-2]
        if not isinstance(bits, str) or len(bits) > hidden // 4 + 1 or set(bits) - set("0123456789abcdef"):
            raise Refusal(f"{where}: a row's slopes must be hexadecimal digits")
        multiplier = Fraction(number(row[4], f"{where}: a row's multiplier"))
        if multiplier <= 0:
            raise Refusal(f"{where}: a row's multiplier must be positive")
        return layer, neuron, sign, int(bits or "0", 16), multiplier


def most_of_rows(region: Region, rows: list[tuple[int, int, int, int, Fraction]]) -> int:
    """An upper bound, over the region, of the combination of rows; its sign is what counts."""
    return most_of_planes(region, [(region.plane(*row), multiplier) for *row, multiplier in rows])


def most_of_planes(region: Region, planes: list[tuple[tuple[list[int], int, int], Fraction]]) -> int:
    """The same of planes and their multipliers."""
    units = [unit + multiplier.denominator.bit_length() - 1 for (_, _, unit), multiplier in planes]
    common = max(units)
    total, constant = [0] * len(region.columns), 0
    for ((a, c, _), multiplier), unit in zip(planes, units, strict=True):
        region.statement.meter.tick()
        times = multiplier.numerator << (common - unit)
        total = [t + times * v for t, v in zip(total, a, strict=True)]
        constant += times * c
    return region.most(total, constant, common)
