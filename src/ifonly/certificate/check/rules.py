"""Rules of a certificate: clauses of linear inequalities, how many features may change, and which only together.

A *literal* is an inequality  constant + sum of coefficient * number + sum of values of options >= 0  on the decimals of
a row; a clause holds where one of its literals does. The value of a literal on decimals differs from that on float64 by
at most its `room`, which is added wherever a box is narrowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from ...printing import quoted
from .reading import CheckBudget, ticking
from .schema import StatedChoice, StatedInteger, StatedSchema, decimal

if TYPE_CHECKING:
    from .box import Extent
    from .statement import Statement

ROUNDS = 20
"""Of narrowing, at most: fewer narrow less, which is sound."""
ACTIVE, INACTIVE = 1, 2


@dataclass(frozen=True, slots=True)
class RuleLiteral:
    """constant + numbers + options >= 0, multiplied by the denominator of the constant: whole numbers."""

    numbers: tuple[tuple[int, int], ...]
    options: tuple[tuple[int, tuple[int, ...]], ...]
    constant: int
    whole: bool
    """It takes whole values only: where it does not hold, it is at most -1."""

    def holds(self, point: tuple[float, ...]) -> bool:
        """Is it true of a row, in decimals?"""
        total = Fraction(self.constant)
        for g, a in self.numbers:
            total += a * decimal(point[g])
        for g, values in self.options:
            total += values[int(point[g])]
        return total >= 0


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a question."""

    literals: tuple[RuleLiteral, ...] = ()
    clauses: tuple[tuple[int, ...], ...] = ()
    """The literals of each clause, by number: of each clause one holds."""
    limits: tuple[tuple[int, tuple[bool, ...]], ...] = ()
    """How many features may change, and of each feature whether it counts."""
    partners: tuple[tuple[int, int], ...] = ()
    """(feature, the one without which it does not change)."""
    fewest: int | None = None
    """Which of the limits is the fewest changes that there are, to be proven so."""
    features: tuple[frozenset[int], ...] = ()
    """Of each literal: the features in it."""
    clauses_of: dict[int, list[int]] = field(init=False)
    """Of each feature: the clauses that it is in, by number."""

    def __post_init__(self) -> None:
        found: dict[int, list[int]] = {}
        for k, clause in enumerate(self.clauses):
            for g in frozenset[int]().union(*(self.features[i] for i in clause)):
                found.setdefault(g, []).append(k)
        object.__setattr__(self, "clauses_of", found)

    @property
    def any(self) -> bool:
        return bool(self.clauses or self.limits or self.partners)

    def with_fewer(self) -> Rules:
        """The same with a change less than the fewest."""
        assert self.fewest is not None
        limits = list(self.limits)
        limits[self.fewest] = limits[self.fewest][0] - 1, limits[self.fewest][1]
        return replace(self, limits=tuple(limits), fewest=None)

    def broken(self, schema: StatedSchema, before: tuple[float, ...], point: tuple[float, ...]) -> str:
        """Which rule a row breaks, or nothing."""
        for k, clause in enumerate(self.clauses):
            if not any(self.literals[i].holds(point) for i in clause):
                return f"clause {k} does not hold"
        moved = [a != b for a, b in zip(before, point, strict=True)]
        for most, counted in self.limits:
            if sum(m and c for m, c in zip(moved, counted, strict=True)) > most:
                return f"more than {most} features change"
        for g, partner in self.partners:
            if moved[g] and not moved[partner]:
                return f"{quoted(schema.features[g].name)} changes without {quoted(schema.features[partner].name)}"
        return ""


def rooms(schema: StatedSchema, literals: tuple[RuleLiteral, ...], grid: int, meter: CheckBudget) -> tuple[int, ...]:
    """Of each literal: how far its value on decimals can be from that on float64, in units of 2^-P, rounded up."""
    own = []
    for feature in ticking(schema.features if literals else (), meter):
        if isinstance(feature, StatedChoice) or (
            isinstance(feature, StatedInteger) and float(feature.lower).is_integer()
        ):
            own.append(0)
            continue
        last_digit = Fraction(math.ulp(max(abs(feature.lower), abs(feature.upper))))
        own.append(max(math.ceil(last_digit * 2**grid / 2), 1))
    return tuple(sum(abs(a) * own[g] for g, a in one.numbers) for one in literals)


# ---------------------------------------------------------------------- narrowing a box


def narrow(statement: Statement, extent: Extent) -> bool:
    """Narrow a box, in place, to what the rules leave of it; False when that is nothing.

    Whatever is cut off breaks a rule, so no allowed row of the box is lost, however often this is done.
    """
    return not statement.rules.any or rounds_of_narrowing(statement, extent, None) > 0


def rounds_of_narrowing(statement: Statement, extent: Extent, moved: set[int] | None) -> int:
    """Narrow a box, in place, of which these features are others than in a box that was narrowed before (None: all);
    how many rounds that took, 0 when nothing is left.
    """
    for k in range(ROUNDS):
        statement.meter.tick()
        before, moved = moved, set()
        if not (_support(statement, extent, moved) and _clauses(statement, extent, before, moved)):
            return 0
        if not moved:
            return k + 1
    return ROUNDS


def _support(statement: Statement, extent: Extent, moved: set[int]) -> bool:
    """Which features must change, and which cannot."""
    rules, n = statement.rules, len(statement.schema)

    def must(g: int) -> bool:
        if g in extent.changed:
            return True
        own = int(statement.factual[g]) if statement.is_choice[g] else 0
        return own not in extent.options[g] if statement.is_choice[g] else extent.low[g] > 0 or extent.high[g] < 0

    def cannot(g: int) -> bool:
        if statement.is_choice[g]:
            return extent.options[g] == (int(statement.factual[g]),)
        return extent.low[g] == extent.high[g] == 0

    def keep(g: int) -> bool:
        if must(g):
            return False
        if not cannot(g):
            moved.add(g)
            extent.low[g], extent.high[g] = 0, 0
            extent.options[g] = (int(statement.factual[g]),) if statement.is_choice[g] else ()
        return True

    for g, partner in rules.partners:
        if cannot(partner) and not keep(g):
            return False
        if must(g) and partner not in extent.changed:
            extent.changed.add(partner)
            moved.add(partner)
    for most, counted in rules.limits:
        sure = [g for g in range(n) if counted[g] and must(g)]
        if len(sure) > most:
            return False
        if len(sure) == most and not all(keep(g) for g in range(n) if counted[g] and g not in set(sure)):
            return False
    return all(_leave(statement, extent, g, moved) for g in sorted(extent.changed))


def _leave(statement: Statement, extent: Extent, g: int, moved: set[int]) -> bool:
    """A feature that must change does not keep its value."""
    if statement.is_choice[g]:
        own = int(statement.factual[g])
        if own in extent.options[g]:
            extent.options[g] = tuple(o for o in extent.options[g] if o != own)
            moved.add(g)
        return bool(extent.options[g])
    low, high, domain = extent.low[g], extent.high[g], statement.domains[g]
    if low == high == 0:
        return False
    beyond = (1, -1) if domain.step or domain.steps is not None else (0, 0)
    if low == 0 and beyond[0]:
        low = domain.inward(1, max(high, 1))[0]
    if high == 0 and beyond[1]:
        high = domain.inward(min(low, -1), -1)[1]
    if (low, high) != (extent.low[g], extent.high[g]):
        moved.add(g)
    extent.low[g], extent.high[g] = low, high
    return low <= high


def _clauses(statement: Statement, extent: Extent, before: set[int] | None, moved: set[int]) -> bool:
    """Narrow by the clauses with features that moved in the round before (None: by all), or in this one."""
    sides, first, rules = extent.sides, statement.first_literal, statement.rules
    features, new, looked_at = rules.features, set[int](), None if before is None else before | moved
    due = (
        range(len(rules.clauses)) if looked_at is None
        else sorted({k for g in looked_at for k in rules.clauses_of.get(g, ())})
    )  # fmt: skip
    for clause in map(rules.clauses.__getitem__, due):
        statement.meter.tick()
        known = [sides.get((0, first + i)) for i in clause]
        if ACTIVE in known:  # whether that literal can hold is seen below
            continue
        free = (i for i, side in zip(clause, known, strict=True) if side is None)
        possible = [*islice((i for i in free if _largest(statement, extent, i) >= 0), 2)]  # a third says no more
        if not possible:
            return False
        if len(possible) == 1:
            sides[0, first + possible[0]] = ACTIVE
            new.add(possible[0])
    for (layer, place), side in list(sides.items()):
        i = place - first
        if layer or i < 0:
            continue
        if (
            looked_at is not None
            and i not in new
            and looked_at.isdisjoint(features[i])
            and moved.isdisjoint(features[i])
        ):
            continue
        if not _cut(statement, extent, i, side, moved):
            return False
    return True


def _largest(statement: Statement, extent: Extent, i: int) -> int:
    """The largest value of a literal over the box, with its room."""
    literal, low, high = statement.rules.literals[i], extent.low, extent.high
    total = statement.literal_starts[i] + statement.rooms[i]
    for g, a in literal.numbers:
        total += a * (high[g] if a > 0 else low[g])
    for g, values in literal.options:
        own = [values[o] for o in extent.options[g]]
        if not own:
            return -1
        total += max(own) << statement.grid
    return total


def _most(statement: Statement, extent: Extent, i: int, sign: int) -> tuple[int, list[int], list[list[int]]]:
    """The largest value over the box of a literal, or (sign -1) of its denial; and the parts of its features."""
    literal, grid = statement.rules.literals[i], statement.grid
    total = sign * statement.literal_starts[i] + statement.rooms[i]
    if sign < 0 and literal.whole:
        total -= 1 << grid
    of_numbers = [max(sign * a * extent.low[g], sign * a * extent.high[g]) for g, a in literal.numbers]
    of_options = [[sign * values[o] << grid for o in extent.options[g]] for g, values in literal.options]
    if not all(of_options):
        return -1, of_numbers, of_options
    return total + sum(of_numbers) + sum(map(max, of_options)), of_numbers, of_options


def literal_range(statement: Statement, extent: Extent, i: int) -> tuple[int, int]:
    """The least and the largest value of a literal over a box, in units of 2^-P, with its room."""
    literal, room = statement.rules.literals[i], statement.rooms[i]
    low, high = statement.literal_starts[i] - room, statement.literal_starts[i] + room
    for g, a in literal.numbers:
        ends = a * extent.low[g], a * extent.high[g]
        low, high = low + min(ends), high + max(ends)
    for g, values in literal.options:
        own = [values[o] << statement.grid for o in extent.options[g]] or [0]
        low, high = low + min(own), high + max(own)
    return low, high


def _cut(statement: Statement, extent: Extent, i: int, side: int, moved: set[int]) -> bool:
    """Narrow the features of a literal that holds, or does not."""
    literal, sign = statement.rules.literals[i], 1 if side == ACTIVE else -1
    most, of_numbers, of_options = _most(statement, extent, i, sign)
    if most < 0:
        return False
    for (g, a), own in zip(literal.numbers, of_numbers, strict=True):
        rest, slope = most - own, sign * a
        low, high = extent.low[g], extent.high[g]
        if slope > 0 and slope * low + rest < 0:
            low = -(rest // slope)
        elif slope < 0 and slope * high + rest < 0:
            high = rest // -slope
        else:
            continue
        low, high = statement.domains[g].inward(low, high)
        moved.add(g)
        extent.low[g], extent.high[g] = low, high
        if low > high:
            return False
    for (g, _), own_values in zip(literal.options, of_options, strict=True):
        rest = most - max(own_values)
        kept = tuple(o for o, v in zip(extent.options[g], own_values, strict=True) if v + rest >= 0)
        if len(kept) < len(extent.options[g]):
            extent.options[g] = kept
            moved.add(g)
    return True
