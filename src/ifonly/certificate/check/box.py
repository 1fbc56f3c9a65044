"""Boxes of the input space: what the splits of a tree leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ifonly.certificate.check.reading import CheckBudget
from ifonly.certificate.check.statement import Domain, Statement

ACTIVE, INACTIVE = 1, 2


@dataclass(frozen=True, slots=True)
class Extent:
    """What a box leaves: an interval of changes or a list of options per feature, and sides of split ReLUs."""

    low: list[int]
    high: list[int]
    options: list[tuple[int, ...]]
    sides: dict[tuple[int, int], int]
    """(layer, neuron): ACTIVE (pre-activation >= 0) or INACTIVE (<= 0)."""


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """What the splits on the way leave: the last of them, and the box that was split. Boxes share their ancestors, so
    that a tree takes memory in proportion to its nodes.
    """

    domains: tuple[Domain, ...]
    before: Box | None = None
    cut: tuple[str, int, int] = ("", 0, 0)
    """("high" or "low", feature, change), ("alone" or "others", feature, option), ("active" or "inactive", layer,
    neuron)."""

    @classmethod
    def whole(cls, statement: Statement) -> Box:
        return cls(statement.domains)

    def _cut(self, kind: str, place: int, value: int) -> Box:
        return Box(self.domains, self, (kind, place, value))

    def split_number(self, statement: Statement, g: int, at: int) -> tuple[Box, Box]:
        """Changes up to `at`, and from `at` on (integers: from the next step on)."""
        step = statement.domains[g].step
        below = at // step * step if step else at
        return self._cut("high", g, below), self._cut("low", g, below + step)

    def split_option(self, g: int, option: int) -> tuple[Box, Box]:
        """The option alone, and the others."""
        return self._cut("alone", g, option), self._cut("others", g, option)

    def split_relu(self, layer: int, neuron: int) -> tuple[Box, Box]:
        """Active, and inactive."""
        return self._cut("active", layer, neuron), self._cut("inactive", layer, neuron)

    def extent(self, meter: CheckBudget | None = None) -> Extent:
        """What all the cuts leave; of two sides of one ReLU, the last one."""
        low, high = [d.low for d in self.domains], [d.high for d in self.domains]
        options, sides = [d.options for d in self.domains], {}
        for kind, place, value in self._cuts(meter or CheckBudget()):
            if kind == "high":
                high[place] = min(high[place], value)
            elif kind == "low":
                low[place] = max(low[place], value)
            elif kind == "alone":
                options[place] = (value,) if value in options[place] else ()
            elif kind == "others":
                options[place] = tuple(o for o in options[place] if o != value)
            else:
                sides[place, value] = ACTIVE if kind == "active" else INACTIVE
        return Extent(low, high, options, sides)

    def _cuts(self, meter: CheckBudget) -> Iterator[tuple[str, int, int]]:
        """From the whole down to this box."""
        cuts, box = [], self
        while box.before is not None:
            cuts.append(box.cut)
            box = box.before
        for cut in reversed(cuts):
            meter.tick()
            yield cut
