"""Boxes of the input space: what the splits of a tree leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .domains import Domain
from .reading import CheckBudget
from .rules import ACTIVE, INACTIVE
from .statement import Statement
from .trees import beyond, floor_change


@dataclass(frozen=True, slots=True)
class Extent:
    """What a box leaves: an interval of changes or a list of options per feature, and sides of split ReLUs."""

    low: list[int]
    high: list[int]
    options: list[tuple[int, ...]]
    sides: dict[tuple[int, int], int]
    """(layer, neuron): ACTIVE (pre-activation >= 0) or INACTIVE (<= 0; of a literal: it does not hold)."""
    above: dict[int, float]
    below: dict[int, float]
    """Thresholds that a number is above, and that it is not above."""
    changed: set[int]
    """Features that do not keep their values."""
    least: dict[tuple[int, int], int]
    most: dict[tuple[int, int], int]
    """(layer, neuron): bounds of the pre-activation that were shown on the way, in units of 2^-P."""

    def bounds(self, layer: int, neuron: int, low: int, high: int) -> tuple[int, int]:
        """Bounds of a pre-activation, given some: with what was shown, and on its side."""
        key = layer, neuron
        side = self.sides.get(key, 0)
        low, high = max(low, self.least.get(key, low)), min(high, self.most.get(key, high))
        return max(low, 0) if side == ACTIVE else low, min(high, 0) if side == INACTIVE else high

    def add(self, kind: str, place: int, value: Any) -> None:
        """Narrow it by the cut of a box."""
        low, high, options = self.low, self.high, self.options
        if kind == "high":
            high[place] = min(high[place], value)
        elif kind == "low":
            low[place] = max(low[place], value)
        elif kind == "alone":
            options[place] = (value,) if value in options[place] else ()
        elif kind == "others":
            options[place] = tuple(o for o in options[place] if o != value)
        elif kind == "kept":
            low[place], high[place] = max(low[place], 0), min(high[place], 0)
            options[place] = tuple(o for o in options[place] if o == value)
        elif kind == "below":
            high[place], self.below[place] = min(high[place], value[1]), min(value[0], self.below.get(place, value[0]))
        elif kind == "above":
            low[place], self.above[place] = max(low[place], value[1]), max(value[0], self.above.get(place, value[0]))
            self.changed.update({place} if value[2] else ())
        elif kind in ("most", "least"):
            key, tighter, found = (place, value[0]), *((min, self.most) if kind == "most" else (max, self.least))
            found[key] = tighter(value[1], found.get(key, value[1]))
        elif kind == "changed":
            self.changed.add(place)
        else:
            self.sides[place, value] = ACTIVE if kind == "active" else INACTIVE

    def copy(self) -> Extent:
        """One that can be narrowed without this one."""
        return Extent(
            [*self.low], [*self.high], [*self.options], {**self.sides}, {**self.above}, {**self.below},
            {*self.changed}, {**self.least}, {**self.most},
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """What the splits on the way leave: the last of them, and the box that was split. Boxes share their ancestors, so
    that a tree takes memory in proportion to its nodes.
    """

    domains: tuple[Domain, ...]
    before: Box | None = None
    cut: tuple[str, int, Any] = ("", 0, 0)
    """("high" or "low", feature, change), ("alone" or "others", feature, option), ("active" or "inactive", layer,
    neuron), ("kept" or "changed", feature, its option), ("above" or "below", feature,
    (threshold, its change, and, above it, whether that is a change of the feature)), ("most" or "least", layer,
    (neuron, bound))."""

    @classmethod
    def whole(cls, statement: Statement) -> Box:
        return cls(statement.domains)

    def _cut(self, kind: str, place: int, value: Any) -> Box:
        return Box(self.domains, self, (kind, place, value))

    def split_number(self, statement: Statement, g: int, at: int) -> tuple[Box, Box]:
        """Changes up to `at`, and from `at` on (integers: from the next step on)."""
        below, beyond = statement.domains[g].parted(at)
        return self._cut("high", g, below), self._cut("low", g, beyond)

    def split_option(self, g: int, option: int) -> tuple[Box, Box]:
        """The option alone, and the others."""
        return self._cut("alone", g, option), self._cut("others", g, option)

    def split_relu(self, layer: int, neuron: int) -> tuple[Box, Box]:
        """Active, and inactive."""
        return self._cut("active", layer, neuron), self._cut("inactive", layer, neuron)

    def bounded(self, layer: int, neuron: int, sign: int, bound: int) -> Box:
        """The same box, in which a pre-activation was shown to be at most (sign 1) or at least (sign -1) a bound."""
        return self._cut("most" if sign == 1 else "least", layer, (neuron, bound))

    def split_change(self, statement: Statement, g: int) -> tuple[Box, Box]:
        """The feature keeps its value, and it does not."""
        own = int(statement.factual[g]) if statement.is_choice[g] else 0
        return self._cut("kept", g, own), self._cut("changed", g, own)

    def split_cut(self, statement: Statement, g: int, t: float) -> tuple[Box, Box]:
        """Values up to a threshold, and those above it."""
        at, domain = floor_change(statement, g, t), statement.domains[g]
        below = domain.parted(at)[0] if domain.coarse else at + 1
        above = (t, beyond(statement, g, t), t >= statement.factual[g])
        return self._cut("below", g, (t, below)), self._cut("above", g, above)

    def extent(self, meter: CheckBudget | None = None) -> Extent:
        """What all the cuts leave; of two sides of one ReLU, the last one."""
        low, high = [d.low for d in self.domains], [d.high for d in self.domains]
        found = Extent(low, high, [d.options for d in self.domains], {}, {}, {}, set(), {}, {})
        for cut in self._cuts(meter or CheckBudget()):
            found.add(*cut)
        return found

    def _cuts(self, meter: CheckBudget) -> Iterator[tuple[str, int, Any]]:
        """From the whole down to this box."""
        cuts, box = [], self
        while box.before is not None:
            cuts.append(box.cut)
            box = box.before
        for cut in reversed(cuts):
            meter.tick()
            yield cut
