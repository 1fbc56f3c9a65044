"""One region of the input space, bounded exactly: a box of changes, the ball of the claimed radius, split ReLUs.

Every bound here is an upper bound of  constant + sum of coefficient * change  over box and ball, computed in integers;
where a division is needed it is rounded outward. Units: changes 2^-P, coefficients 2^-E, constants and gains 2^-(E+P),
costs 2^-K, bounds of neurons 2^-P, slopes of chords 2^-S.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter, mul

from ifonly.proof.check.statement import ADDITIVE, MAXIMUM, SQUARED, Statement, to_step
from ifonly.schema import Numeric

SLOPE_BITS = 44
ONE = 1 << SLOPE_BITS
HUGE = 1 << 20_000
ACTIVE, INACTIVE = 1, 2

Bounds = list[list[tuple[int, int]]]
"""Layer, neuron: lower and upper bound of the pre-activation, in units of 2^-P."""


@dataclass(frozen=True, slots=True)
class Box:
    """What the splits leave: an interval of changes or a list of options a feature, and sides of split ReLUs."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]
    sides: dict[tuple[int, int], int] = field(default_factory=dict)
    """(layer, neuron): ACTIVE (pre-activation >= 0) or INACTIVE (<= 0)."""

    @classmethod
    def whole(cls, statement: Statement) -> Box:
        domains = statement.domains
        return cls(tuple(d.low for d in domains), tuple(d.high for d in domains), tuple(d.options for d in domains))

    def split_number(self, statement: Statement, g: int, at: int) -> tuple[Box, Box]:
        """Changes up to `at`, and from `at` on (integers: from the next step on)."""
        step = statement.domains[g].step
        below = at // step * step if step else at
        return (
            replace(self, high=_set(self.high, g, min(self.high[g], below))),
            replace(self, low=_set(self.low, g, max(self.low[g], below + step))),
        )

    def split_option(self, g: int, option: int) -> tuple[Box, Box]:
        """The option alone, and the others."""
        alone = tuple(o for o in self.options[g] if o == option)
        others = tuple(o for o in self.options[g] if o != option)
        return replace(self, options=_set(self.options, g, alone)), replace(self, options=_set(self.options, g, others))

    def split_relu(self, layer: int, neuron: int) -> tuple[Box, Box]:
        """Active, and inactive."""
        return (
            replace(self, sides={**self.sides, (layer, neuron): ACTIVE}),
            replace(self, sides={**self.sides, (layer, neuron): INACTIVE}),
        )


def _set(values: tuple[object, ...], g: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:g], value, *values[g + 1 :])


@dataclass(frozen=True, slots=True)
class Item:
    """One feature that can still move, from the box's cheapest corner. `costs` (choices): beyond the corner's."""

    feature: int
    first: int
    up: int
    down: int
    rate: int
    jump: int
    moved: int
    """How far the corner is from the factual."""
    costs: tuple[int, ...]
    options: tuple[int, ...]


class Region:
    """A box cut with the ball of cost `radius` (None: no ball), ready for bounds. `empty` says that nothing is left."""

    def __init__(self, statement: Statement, box: Box, radius: int | None, known: Bounds | None = None) -> None:
        self.statement, self.box, self.radius = statement, box, radius
        self.items: list[Item] = []
        self.columns: list[tuple[int, ...]] = []
        self.corner: list[int] = []
        self.budget: int | None = None
        self.bounds: Bounds = []
        self.chords: list[tuple[list[int], list[int], list[int]]] = []
        """Layer: upper slope and intercept, and slope below, of each ReLU."""
        self.empty = not self._clip() or not self._bound_hidden(known)

    # ------------------------------------------------------------------ box and ball

    def _clip(self) -> bool:
        """Find the cheapest corner and what the ball leaves around it; False when that is nothing."""
        statement, box = self.statement, self.box
        costs = []
        for g, feature in enumerate(statement.schema.features):
            if isinstance(feature, Numeric):
                if box.low[g] > box.high[g]:
                    return False
                self.corner.append(max(box.low[g], min(box.high[g], 0)))
                costs.append(self._number_cost(g, abs(self.corner[g])))
            else:
                if not box.options[g]:
                    return False
                price = statement.option_costs[g]
                self.corner.append(min(box.options[g], key=price.__getitem__))
                costs.append(price[self.corner[g]])
        spent = max(costs) if statement.norm == MAXIMUM else sum(costs)
        if self.radius is not None:
            if spent >= self.radius:
                return False
            self.budget = self.radius - spent
        z = list(statement.at_factual)
        for g, feature in enumerate(statement.schema.features):
            columns = statement.columns[g]
            if isinstance(feature, Numeric):
                z = [a + self.corner[g] * w for a, w in zip(z, columns[0], strict=True)] if self.corner[g] else z
                self._add_number(g)
            else:
                new, old = columns[self.corner[g]], columns[int(statement.factual[g])]
                if new is not old:
                    z = [a + ((n - o) << statement.grid) for a, n, o in zip(z, new, old, strict=True)]
                self._add_choice(g)
        self.first = z
        return True

    def _number_cost(self, g: int, change: int) -> int:
        rate = self.statement.rates[g]
        if self.statement.norm == SQUARED:
            return rate * change * change
        return rate * change + (self.statement.jumps[g] if change else 0)

    def _add_number(self, g: int) -> None:
        statement, corner = self.statement, self.corner[g]
        low, high = self.box.low[g], self.box.high[g]
        reach = self._reach(g, abs(corner))
        if reach is not None:
            low, high = max(low, corner - reach), min(high, corner + reach)
            low, high = to_step(low, high, statement.domains[g].step)
        if low < high:
            jump = 0 if corner else statement.jumps[g]
            item = Item(
                g, len(self.columns), high - corner, corner - low, statement.rates[g], jump, abs(corner), (), ()
            )
            self.items.append(item)
            self.columns.append(statement.columns[g][0])

    def _reach(self, g: int, moved: int) -> int | None:
        """How far from the corner a number can go within the ball, rounded up; None for any distance."""
        statement = self.statement
        rate = statement.rates[g]
        if self.budget is None or self.radius is None:
            return None
        if statement.norm == SQUARED:
            return math.isqrt(self.budget // rate + moved * moved) + 1 - moved if rate else None
        if statement.norm == MAXIMUM:
            return max(self.radius // rate + 1 - moved, 0) if rate else None
        left = self.budget - (0 if moved else statement.jumps[g])
        if left < 0:
            return 0
        return left // rate + 1 if rate else None

    def _add_choice(self, g: int) -> None:
        statement, corner = self.statement, self.corner[g]
        price, columns = statement.option_costs[g], statement.columns[g]
        kept = []
        for option in self.box.options[g]:
            beyond = price[option] - (0 if statement.norm == MAXIMUM else price[corner])
            most = self.radius if statement.norm == MAXIMUM else self.budget
            if option != corner and (most is None or beyond <= most):
                kept.append((option, beyond))
        if kept:
            costs, options = tuple(c for _, c in kept), tuple(o for o, _ in kept)
            self.items.append(Item(g, len(self.columns), 0, 0, 0, 0, 0, costs, options))
            for option in options:
                self.columns.append(tuple(a - b for a, b in zip(columns[option], columns[corner], strict=True)))

    # ------------------------------------------------------------------ the network over the region

    def _bound_hidden(self, known: Bounds | None) -> bool:
        """Bounds of every ReLU's pre-activation, layer by layer; False when a split ReLU cannot be on its side."""
        statement = self.statement
        for layer in range(statement.layers - 1):
            bounds = []
            for i in range(statement.sizes[layer]):
                low, high = known[layer][i] if known is not None else (-HUGE, HUGE)
                side = self.box.sides.get((layer, i), 0)
                low, high = max(low, 0) if side == ACTIVE else low, min(high, 0) if side == INACTIVE else high
                if layer and low < 0 < high:
                    least, most = self._interval(layer, i)
                    low, high = max(low, least), min(high, most)
                unstable = low < 0 < high
                if side == ACTIVE or unstable:
                    high = min(high, self.highest(layer, i, 1))
                if side == INACTIVE or unstable:
                    low = max(low, -self.highest(layer, i, -1))
                if low > high:
                    return False
                bounds.append((low, high))
            self.bounds.append(bounds)
            self.chords.append(_chords(bounds))
        return True

    def _interval(self, layer: int, i: int) -> tuple[int, int]:
        """Bounds of a pre-activation from those of the layer below, each at its worst."""
        bits, low, high = self.statement.exponents[layer], 0, 0
        for w, (least, most) in zip(self.statement.weight_rows[layer][i], self.bounds[layer - 1], strict=True):
            if most > 0:
                least = max(least, 0)
                low += w * (least if w > 0 else most)
                high += w * (most if w > 0 else least)
        bias = self.statement.biases[layer][i]
        return low + bias >> bits, -(-high - bias >> bits)

    def highest(self, layer: int, i: int, sign: int) -> int:
        """An upper bound of sign * pre-activation over the region, in units of 2^-P, rounded up."""
        self.statement.clock.tick()
        a, constant, unit = self.plane(layer, i, sign, None)
        return -(-self.most(a, constant, unit) >> unit)

    def plane(self, layer: int, i: int, sign: int, slopes: int | None) -> tuple[list[int], int, int]:
        """An upper plane of sign * (pre-activation i of the layer) by backward substitution.

        An unstable ReLU with a positive coefficient becomes its chord, one with a negative coefficient slope * z with
        a slope of 0 or 1: bit number h of `slopes` (h counts all hidden neurons), or, without `slopes`, 1 where the
        upper bound is farther from 0 than the lower one. Returns coefficients, constant, and E.
        """
        statement = self.statement
        unit = statement.exponents[layer]
        if layer == 0:
            return [sign * column[i] for column in self.columns], sign * self.first[i], unit
        v = [sign * w for w in statement.weight_rows[layer][i]]
        constant = sign * statement.biases[layer][i]
        while layer > 0:
            layer -= 1
            statement.clock.tick()
            above, shift, below = self.chords[layer]
            if slopes is not None:
                below = self._below(layer, slopes)
            constant <<= SLOPE_BITS
            for j, c in enumerate(v):
                if c > 0:
                    v[j] = c * above[j]
                    constant += c * shift[j]
                elif c < 0:
                    v[j] = c * below[j]
            bits = statement.exponents[layer]
            constant = (constant << bits) + sum(map(mul, v, self.first if layer == 0 else statement.biases[layer]))
            unit += SLOPE_BITS + bits
            if layer == 0:
                v = [sum(map(mul, v, column)) for column in self.columns]
            else:
                v = [sum(map(mul, v, column)) for column in statement.weight_columns[layer]]
        return v, constant, unit

    def _below(self, layer: int, slopes: int) -> list[int]:
        start = sum(self.statement.sizes[:layer])
        return [
            below if low >= 0 or high <= 0 else (slopes >> (start + i) & 1) * ONE
            for i, ((low, high), below) in enumerate(zip(self.bounds[layer], self.chords[layer][2], strict=True))
        ]

    # ------------------------------------------------------------------ the most that a plane can reach

    def most(self, a: list[int], constant: int, unit: int) -> int:
        """The largest value of  constant + a.y  over box and ball, or a little more."""
        grid = self.statement.grid
        gains: list[tuple[int, int]] = []
        for item in self.items:
            if item.options:
                gains += _hull([(c, v << grid) for c, v in zip(item.costs, a[item.first :], strict=False) if v > 0])
            else:
                v = a[item.first]
                reach = item.up if v > 0 else item.down
                if v and reach:
                    gains.append((item.jump + item.rate * reach, abs(v) * reach))
        total = constant + sum(gain for _, gain in gains)
        if self.budget is None or self.statement.norm == MAXIMUM or total < 0:
            return total
        if self.statement.norm == ADDITIVE:
            return _greedy(constant, gains, self.budget)
        return min(total, self._most_squared(a, constant, unit))

    def _most_squared(self, a: list[int], constant: int, unit: int) -> int:
        """l2: for any price m of a unit of cost,  constant + m * budget + sum of max (gain - m * cost)."""
        assert self.budget is not None
        grid = self.statement.grid
        price = self._price(a, unit)
        if not price > 0.0 or math.isinf(price):
            return constant + sum(self._item_most(item, a, 0, 0) for item in self.items)
        part, power = math.frexp(price)
        m, shift = int(part * 2.0**53), 53 - power - (unit + grid - self.statement.cost_unit)
        if shift < 0:
            m, shift = m << -shift, 0
        total = (constant << shift) + m * self.budget
        total += sum(self._item_most(item, a, m, shift) for item in self.items)
        return -(-total >> shift)

    def _item_most(self, item: Item, a: list[int], m: int, shift: int) -> int:
        """The largest  gain * 2^shift - m * cost  of one feature, rounded up."""
        if item.options:
            values = zip(item.costs, a[item.first :], strict=False)
            return max(0, *((v << self.statement.grid + shift) - m * c for c, v in values))
        v = a[item.first]
        reach, v = (item.up if v > 0 else item.down), abs(v) << shift
        cost = m * item.rate
        rise = v - 2 * cost * item.moved  # the slope at the corner
        if rise <= 0:
            return 0
        if rise >= 2 * cost * reach:
            return rise * reach - cost * reach * reach
        return -(-rise * rise // (4 * cost))

    def _price(self, a: list[int], unit: int) -> float:
        """A good price, in floating point: any is sound."""
        statement = self.statement
        one, grid = 1 << unit, 1 << statement.grid
        costs = 1 << statement.cost_unit - 2 * statement.grid
        numbers, choices = [], []
        try:
            for item in self.items:
                if item.options:
                    choices.append([(c / (1 << statement.cost_unit), v / one)
                                    for c, v in zip(item.costs, a[item.first :], strict=False) if v > 0])  # fmt: skip
                elif a[item.first] and item.rate:
                    reach = item.up if a[item.first] > 0 else item.down
                    numbers.append((abs(a[item.first]) / one, item.rate / costs, item.moved / grid, reach / grid))
            return best_price(numbers, choices, (self.budget or 0) / (1 << statement.cost_unit))
        except (OverflowError, ZeroDivisionError):
            return 0.0


Numbers = list[tuple[float, float, float, float]]
Choices = list[list[tuple[float, float]]]


def spent_at(price: float, numbers: Numbers, choices: Choices) -> float:
    """What everybody spends who buys where the gain is worth the price."""
    spent = 0.0
    for v, r, b, reach in numbers:
        y = min(v / (2.0 * price * r) - b, reach)
        spent += r * y * (y + 2.0 * b) if y > 0.0 else 0.0
    for options in choices:
        cost, gain = max(options, key=lambda o: o[1] - price * o[0], default=(0.0, 0.0))
        spent += cost if gain > price * cost else 0.0
    return spent


def best_price(numbers: Numbers, choices: Choices, budget: float) -> float:
    """The price of a unit of cost (in gains) at which the budget is just spent; 0 when all can be had.

    A fixed-point iteration for the numbers; options are bought whole, so then the prices at which a choice changes its
    mind; and bisection. Item: (coefficient, squared rate, how far moved already, reach) for numbers, (cost, gain) of
    each option for choices.
    """
    square = sum(v * v / r for v, r, _, _ in numbers)
    dear = [gain / cost for options in choices for cost, gain in options if cost > 0.0]
    price = max([0.5 * math.sqrt(square / budget), *dear]) * 2.0 if budget > 0.0 else 0.0
    everything = sum(r * reach * (reach + 2.0 * b) for _, r, b, reach in numbers)
    everything += sum(max(options, key=itemgetter(1), default=(0.0, 0.0))[0] for options in choices)
    if not 0.0 < price < math.inf or everything <= budget:
        return 0.0
    low, high = 0.0, price  # at `high`, less than the budget is spent
    for step in range(80):
        spent = spent_at(price, numbers, choices)
        low, high = (price, high) if spent > budget else (low, price)
        if abs(spent - budget) <= 1e-12 * budget:  # near enough: the bound is flat there
            return price
        if high - low <= 1e-14 * high:
            break
        guess = _free_price(price, numbers, choices, budget) if step < 8 else 0.0
        if step > 2 and low > 0.0:
            for jump in _jumps(low, high, choices):
                if spent_at(jump * (1.0 + 1e-15), numbers, choices) > budget:
                    low = max(low, jump)
                elif spent_at(jump * (1.0 - 1e-15), numbers, choices) > budget:
                    return jump
                else:
                    high = min(high, jump)
        price = (
            guess
            if low < guess < high
            else math.sqrt(low * high)
            if low > 0.0 and high > 4.0 * low
            else 0.5 * (low + high)
        )
    return high


def _jumps(low: float, high: float, choices: Choices) -> Iterator[float]:
    """Prices in between at which a choice changes from what it takes at `low` to what it takes at `high`."""
    for options in choices:
        (cost, gain), (less, left) = (
            max([(0.0, 0.0), *options], key=lambda o, price=price: o[1] - price * o[0])  # type: ignore[misc]
            for price in (low, high)
        )
        if cost > less and low < (jump := (gain - left) / (cost - less)) < high:
            yield jump


def _free_price(price: float, numbers: Numbers, choices: Choices, budget: float) -> float:
    """The price at which the numbers that are neither unmoved nor at their end spend what the others leave."""
    square, left = 0.0, budget - spent_at(price, [], choices)
    for v, r, b, reach in numbers:
        y = v / (2.0 * price * r) - b
        if y >= reach:
            left -= r * reach * (reach + 2.0 * b)
        elif y > 0.0:
            square, left = square + v * v / r, left + r * b * b
    return 0.5 * math.sqrt(square / left) if square > 0.0 and left > 0.0 else 0.0


def _chords(bounds: list[tuple[int, int]]) -> tuple[list[int], list[int], list[int]]:
    """For each ReLU: relu(z) <= above * z + shift, and >= below * z, on its interval."""
    above, shift, below = [], [], []
    for low, high in bounds:
        if low >= 0 or high <= 0:
            slope = ONE if low >= 0 else 0
            above.append(slope)
            shift.append(0)
            below.append(slope)
        else:
            slope = (high << SLOPE_BITS) // (high - low)
            above.append(slope)
            shift.append(max(-slope * low, high * (ONE - slope)))
            below.append(ONE if high > -low else 0)
    return above, shift, below


def _hull(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The steps (cost, gain) of the least concave function from (0, 0) above all points, steepest first."""
    chain = [(0, 0)]
    for cost, gain in sorted(points, key=lambda p: (p[0], -p[1])):
        if gain <= chain[-1][1]:
            continue
        while len(chain) > 1 and (chain[-1][1] - chain[-2][1]) * (cost - chain[-2][0]) <= (gain - chain[-2][1]) * (
            chain[-1][0] - chain[-2][0]
        ):
            chain.pop()
        chain.append((cost, gain))
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(chain)]


def _greedy(constant: int, gains: list[tuple[int, int]], budget: int) -> int:
    """Buy gains, best ratio first, until the budget is spent; the last one in part, rounded up."""
    ordered = sorted(gains, key=_Ratio)
    for cost, gain in ordered:
        if cost > budget:
            return constant - (-gain * budget // cost)
        constant += gain
        budget -= cost
    return constant


class _Ratio:
    """Sorts (cost, gain) by gain / cost, largest first, exactly."""

    __slots__ = ("cost", "gain")

    def __init__(self, pair: tuple[int, int]) -> None:
        self.cost, self.gain = pair

    def __lt__(self, other: _Ratio) -> bool:
        return self.gain * other.cost > other.gain * self.cost
