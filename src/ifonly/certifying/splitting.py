"""Where a region that could not be closed is split: at what the solution of its relaxation breaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.box import Extent
from ifonly.certificate.check.knapsack import Item
from ifonly.certificate.check.region import Region
from ifonly.certificate.check.rules import ACTIVE
from ifonly.certificate.check.schema import StatedChoice
from ifonly.certificate.check.statement import Statement
from ifonly.certifying.leaves import Leaves, Solution, on_grid, place

Floats = NDArray[np.float64]
MOVED = 1e-12
"""A solution moves a number by more than this."""
ERROR = 1e-12
"""A chord that is so far above its ReLU is worth a split."""


class Relaxed(Protocol):
    """A relaxation of a region: what its solution y says of the network."""

    def needed(self, y: Floats) -> float: ...

    def worst_relu(self, y: Floats) -> tuple[int, int] | None: ...

    def literals(self, y: Floats) -> Floats: ...

    def blame(self, y: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class FloatRelaxed:
    """The relaxation that the kernels solved of a box they could not close; it has one solution."""

    leaves: Leaves
    solution: Solution

    def in_columns(self, region: Region) -> Floats:
        """The solution by the columns of the region."""
        y, starts = np.zeros(len(region.columns)), self.leaves.starts
        for item in region.items:
            at = int(starts[item.feature])
            if item.options:
                y[item.first : item.first + len(item.options)] = self.solution.y[[at + o for o in item.options]]
            else:
                y[item.first] = self.solution.y[at]
        return y

    def needed(self, y: Floats) -> float:
        """Nothing is known of it."""
        return 1.0

    def worst_relu(self, y: Floats) -> tuple[int, int] | None:
        """The unstable ReLU whose chord is farthest above it, weighted by what it feeds."""
        z, (low, high) = self.solution.activations, self.solution.bounds
        if not len(z):
            return None
        is_open = (low < 0.0) & (high > 0.0)
        chord = high / np.where(is_open, high - low, 1.0) * (z - low)
        error = np.where(is_open, (chord - np.maximum(z, 0.0)) * self.leaves.network.feeds, 0.0)
        worst = int(error.argmax())
        return place(self.leaves.statement, worst) if error[worst] > ERROR else None

    def blame(self, y: Floats) -> Floats:
        """There are no smooth neurons."""
        return np.zeros_like(y)

    def literals(self, y: Floats) -> Floats:
        statement = self.leaves.statement
        return self.solution.activations[statement.first_literal : statement.sizes[0]]


class Splitting:
    """An open region and the solution of its relaxation: rows that may be favourable, and where to split."""

    def __init__(self, region: Region, relaxed: Relaxed, y: Floats) -> None:
        self.region, self.relaxed, self.y = region, relaxed, y

    def points(self) -> list[tuple[float, ...]]:
        """Rows of the region that may be favourable: its cheapest corner, and the present solution, rounded."""
        region, statement = self.region, self.region.statement
        corner = [
            float(c) if isinstance(f, StatedChoice) else float(Fraction(before) + Fraction(c, 2**statement.grid))
            for f, c, before in zip(statement.schema.features, region.corner, statement.factual, strict=True)
        ]
        found = [tuple(corner)]
        ways = [(share, up) for share in {1.0: 0, self.relaxed.needed(self.y): 0} for up in (False, True)]
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

    def at_solution(self) -> list[Any] | None:
        """A split at a rule that the solution breaks, or at a ReLU whose chord is above it there."""
        ruled = self._rule_split(self.y)
        if ruled is not None:
            return ruled
        worst = self.relaxed.worst_relu(self.y)
        return ["relu", *worst] if worst is not None else self._curve_split()

    def _curve_split(self) -> list[Any] | None:
        """Of the feature that most of the distance between lines and smooth neurons is due to; the factual, if it is
        inside, else the middle."""
        if not self.region.statement.curved:
            return None
        blame = self.relaxed.blame(self.y)
        shares = [float(blame[item.first : item.first + max(len(item.options), 1)].sum()) for item in self.region.items]
        if max(shares, default=0.0) <= ERROR:
            return None
        return self._halved(self.region.items[shares.index(max(shares))])

    def _halved(self, item: Item) -> list[Any]:
        g, statement = item.feature, self.region.statement
        if item.options:
            return ["option", g, self.region.corner[g]]
        low, high = self.region.corner[g] - item.down, self.region.corner[g] + item.up
        at = 0 if low < 0 < high else (low + high) // 2
        at = max(min(statement.domains[g].parted(at)[0], high - 1), low)
        if statement.domains[g].steps is not None:
            return ["number", g, _not_below(at, statement.grid).hex()]
        return ["number", g, on_grid(statement, at / (1 << statement.grid))]

    def anywhere(self) -> list[Any] | None:
        """The same, or between the values of a feature; where it breaks nothing, at whatever is not decided yet."""
        found = self.at_solution() or self._feature_split(exact=True) or self._feature_split(exact=False)
        return found or self._any_literal() or self._any_relu()

    def _feature_split(self, *, exact: bool) -> list[Any] | None:
        """Of a feature that is a fraction in the solution (`exact`), or of any; those with the fewest values first."""
        for item in sorted(self.region.items, key=lambda item: values_of(self.region.statement, item.feature)):
            cut = self._option_split if item.options else self._number_split
            found = cut(item, self.y, exact)
            if found is not None:
                return found
        return None

    def _option_split(self, item: Item, y: NDArray[np.float64], exact: bool) -> list[Any] | None:
        shares = y[item.first : item.first + len(item.options)]
        if exact and not bool(((shares > 1e-9) & (shares < 1.0 - 1e-9)).any()):
            return None
        return ["option", item.feature, self.region.corner[item.feature]]

    def _number_split(self, item: Item, y: NDArray[np.float64], exact: bool) -> list[Any] | None:
        statement, g, value = self.region.statement, item.feature, float(y[item.first])
        if item.jump and exact and abs(value) > MOVED:
            return ["change", g]
        if statement.domains[g].coarse:
            base = self.region.corner[g]
            return _step_split(statement, g, value, (base - item.down, base, base + item.up), exact=exact)
        if item.rate != item.rate_down and item.up and item.down and (not exact or abs(value) > MOVED):
            return ["number", g, (0.0).hex()]  # floating point takes the cheaper direction for both
        return None

    def _rule_split(self, y: NDArray[np.float64]) -> list[Any] | None:
        """A split on a rule that the solution breaks: on a literal of a clause, or on whether a feature changes."""
        region, statement = self.region, self.region.statement
        rules = statement.rules
        if not rules.any:
            return None
        broken = _broken_clause(statement, region.extent, self.relaxed.literals(y))
        if broken is not None:
            return broken
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

    def _any_relu(self) -> list[Any] | None:
        first = self.region.statement.first_literal
        for layer, bounds in enumerate(self.region.bounds):
            for i, (low, high) in enumerate(bounds):
                if low < 0 < high and (layer or i < first):
                    return ["relu", layer, i]
        return None


def split_of_solution(relaxed: FloatRelaxed, extent: Extent, radius: int | None) -> list[Any] | None:
    """A split at what the relaxation's solution breaks of the rules, or at a ReLU whose chord is above it there."""
    statement = relaxed.leaves.statement
    broken = _broken_clause(statement, extent, relaxed.literals(relaxed.solution.y))
    if broken is not None:
        return broken
    if statement.rules.limits or statement.rules.partners:
        region = Region(statement, extent, radius, hidden=False)
        return None if region.empty else Splitting(region, relaxed, relaxed.in_columns(region)).at_solution()
    y, starts = relaxed.solution.y, relaxed.leaves.network.starts
    moved = _moved_in_part(statement, extent, y, starts)
    if moved is not None:  # before anything else: it costs the same however far it goes
        return ["change", moved]
    worst = relaxed.worst_relu(y)
    if worst is not None:
        return ["relu", *worst]
    for g, (start, options) in enumerate(zip(starts, extent.options, strict=True)):
        shares = y[start : start + len(statement.option_costs[g])]
        if len(options) > 1 and bool(((shares > 1e-9) & (shares < 1.0 - 1e-9)).any()):
            return ["option", g, min(options, key=statement.option_costs[g].__getitem__)]
    numbers = [g for g, domain in enumerate(statement.domains) if domain.coarse and extent.low[g] < extent.high[g]]
    for g in sorted(numbers, key=lambda g: values_of(statement, g)):
        low, high = extent.low[g], extent.high[g]
        ends = low, max(low, min(high, 0)), high
        if (found := _step_split(statement, g, float(y[starts[g]]), ends, exact=True)) is not None:
            return found
    return None


def _moved_in_part(statement: Statement, extent: Extent, y: Floats, starts: Sequence[int]) -> int | None:
    """The number with a cost of any change, and a value that it may keep, that the solution moves by most of what it
    can: the relaxation counts as much of that cost."""
    most, one = MOVED, 2.0**statement.grid
    found = None
    for g, (low, high) in enumerate(zip(extent.low, extent.high, strict=True)):
        if statement.jumps[g] and g not in extent.changed and low <= 0 <= high and low < high:
            share = abs(float(y[starts[g]])) * one / max(-low, high)
            if share > most:
                found, most = g, share
    return found


def values_of(statement: Statement, g: int) -> float:
    """How many values a feature has: one with many makes up for what is missing of one with few, and is split last."""
    domain, one = statement.domains[g], 2.0**statement.grid
    if not domain.coarse:
        return math.inf if domain.low < domain.high else float(len(domain.options))
    step = domain.step if domain.steps is None else float(domain.steps.step) * one
    return (domain.high - domain.low) / step


def _step_split(
    statement: Statement, g: int, value: float, ends: tuple[int, int, int], *, exact: bool
) -> list[Any] | None:  # fmt: skip
    """Of a number with steps, below where it lies in the solution, `value` from the second of `ends`: the least
    change, the corner's and the largest. `exact`: only where it lies between two steps."""
    (low, base, high), one = ends, 2.0**statement.grid
    step, grid = statement.domains[g].step, statement.domains[g].steps
    if step:
        steps = value * one / step
        if not exact or abs(steps - round(steps)) > 1e-9:
            at = max(min(base + math.floor(steps) * step, high - step), low)
            return ["number", g, on_grid(statement, at / 2**statement.grid)]
    elif grid is not None:
        at = base + math.floor(value * one)
        down, up = grid.down(at), grid.up(at)
        near = min((abs(end - at) for end in (down, up) if end is not None), default=0)
        if not exact or near > 1e-9 * float(grid.step) * one:
            at = down if down is not None and low <= down < high else low
            return ["number", g, _not_below(at, statement.grid).hex()]
    return None


def _broken_clause(statement: Statement, extent: Extent, values: Floats) -> list[Any] | None:
    """A split on the literal that comes nearest to holding, of the first clause in which none does."""
    sides, first = extent.sides, statement.first_literal
    for clause in statement.rules.clauses:
        if not any(sides.get((0, first + i)) == ACTIVE or values[i] >= -1e-9 for i in clause):
            open_ones = [i for i in clause if (0, first + i) not in sides]
            if open_ones:
                return ["relu", 0, first + max(open_ones, key=lambda i: float(values[i]))]
    return None


def _not_below(change: int, grid: int) -> float:
    """The least float64 that is not below a change in units of 2^-P, which may have too many digits for one."""
    value = change / (1 << grid)
    return value if Fraction(value) * (1 << grid) >= change else math.nextafter(value, math.inf)
