"""Exact bounds over a region of the input space: a box of changes, the ball of the claimed radius, split ReLUs.

Every bound here is an upper bound of  constant + sum of coefficient * change  over box and ball, computed in integers;
where a division is needed it is rounded outward. Units: changes 2^-P, coefficients 2^-E, constants and gains 2^-(E+P),
costs 2^-K, bounds of neurons 2^-P, slopes of chords 2^-S.
"""

from __future__ import annotations

import math

from .activations import Curve
from .box import Box, Extent
from .distance import ADDITIVE, MAXIMUM, SQUARED
from .knapsack import Item, best_price, greedy, hull
from .layers import SLOPE_BITS
from .lines import ONE, chords_of, lines, values_on
from .reading import AT_ONCE
from .rules import ACTIVE, INACTIVE, literal_range, narrow
from .schema import StatedNumeric
from .statement import Statement

Lines = tuple[list[int], list[int], list[int], list[int] | None]
"""Of each neuron: slope and shift of the line above, slope below, and its shift (None: of ReLUs, 0)."""
Bounds = list[list[tuple[int, int]]]
"""Layer, neuron: lower and upper bound of the pre-activation, in units of 2^-P."""


class Region:
    """A box cut with the ball of cost `radius` (None: no ball), ready for bounds. `empty` says that nothing is left.

    An extent is a box that the rules have narrowed already.
    `hidden=False`: the hidden neurons are not bounded anew; only `most` can be asked, or `take` and `bound` called.
    """

    def __init__(
        self, statement: Statement, box: Box | Extent, radius: int | None, known: Bounds | None = None,
        *, hidden: bool = True,
    ) -> None:  # fmt: skip
        self.statement, self.radius = statement, radius
        self.extent = box.extent(statement.meter) if isinstance(box, Box) else box
        self.items: list[Item] = []
        self.moves: list[tuple[int, int, int, int, int]] = []
        """Of each number among them: its column, how far it goes up, what that costs, and the same down."""
        self.choices: list[Item] = []
        self.columns: list[tuple[int, ...]] = []
        self.corner: list[int] = []
        self.corner_costs: list[int] = []
        self.budget: int | None = None
        self.bounds: Bounds = []
        self.chords: list[Lines] = []
        """Layer: the lines above and below of each neuron."""
        self.values: Bounds = []
        """Layer, neuron: the least and the largest value of the activation, in units of 2^-P."""
        self._tick = statement.meter.tick if statement.slow else None
        fits = (not isinstance(box, Box) or narrow(statement, self.extent)) and self._clip()
        self.empty = not fits or (hidden and not self.bound(known))

    # ------------------------------------------------------------------ box and ball

    def _clip(self) -> bool:
        """Find the cheapest corner and what the ball leaves around it; False when that is nothing."""
        statement, box = self.statement, self.extent
        costs = []
        for g, feature in enumerate(statement.schema.features):
            if self._tick is not None:
                self._tick()
            if isinstance(feature, StatedNumeric):
                if box.low[g] > box.high[g]:
                    return False
                self.corner.append(max(box.low[g], min(box.high[g], 0)))
                costs.append(self.number_cost(g, self.corner[g]))
            else:
                if not box.options[g]:
                    return False
                price = statement.option_costs[g]
                self.corner.append(min(box.options[g], key=price.__getitem__))
                costs.append(price[self.corner[g]])
        self.corner_costs = costs
        spent = max(costs) if statement.norm == MAXIMUM else sum(costs)
        if self.radius is not None:
            if spent >= self.radius:
                return False
            self.budget = self.radius - spent
        z = list(statement.at_factual)
        for g, feature in enumerate(statement.schema.features):
            statement.meter.tick()
            columns = statement.columns[g]
            if isinstance(feature, StatedNumeric):
                z = [a + self.corner[g] * w for a, w in zip(z, columns[0], strict=True)] if self.corner[g] else z
                self._add_number(g)
            else:
                new, old = columns[self.corner[g]], columns[int(statement.factual[g])]
                if new is not old:
                    z = [a + ((n - o) << statement.grid) for a, n, o in zip(z, new, old, strict=True)]
                self._add_choice(g)
        self.first = z
        return True

    def dearer(self, extra: int, g: int, cost: int) -> int:
        """What the region's cheapest row costs more, if a feature costs so much: beyond the corner (linf: in all)."""
        return max(extra, cost) if self.statement.norm == MAXIMUM else extra + cost - self.corner_costs[g]

    def affords(self, extra: int) -> bool:
        """Is that below the radius?"""
        most = self.radius if self.statement.norm == MAXIMUM else self.budget
        return most is None or extra < most

    def number_cost(self, g: int, change: int) -> int:
        cost = self.statement.number_cost(g, change)
        return cost if change or g not in self.extent.changed else cost + self.statement.jumps[g]

    def _add_number(self, g: int) -> None:
        statement, corner = self.statement, self.corner[g]
        low, high = self.extent.low[g], self.extent.high[g]
        if low == high:
            return
        rate, rate_down = statement.rates[g], statement.rates_down[g]
        if corner:  # only away from the factual
            rate = rate_down = rate if corner > 0 else rate_down
        up = self._reach(g, abs(corner), rate)
        down = up if rate == rate_down else self._reach(g, abs(corner), rate_down)
        high = high if up is None else min(high, corner + up)
        low = low if down is None else max(low, corner - down)
        low, high = statement.domains[g].inward(low, high)
        if low < high:
            jump = 0 if corner or g in self.extent.changed else statement.jumps[g]
            place, up, down = len(self.columns), high - corner, corner - low
            self.items.append(Item(g, place, up, down, rate, rate_down, jump, abs(corner), (), ()))
            self.moves.append((place, up, jump + rate * up, down, jump + rate_down * down))
            self.columns.append(statement.columns[g][0])

    def _reach(self, g: int, moved: int, rate: int) -> int | None:
        """How far from the corner a number can go within the ball, rounded up; None for any distance."""
        statement = self.statement
        if self.budget is None or self.radius is None:
            return None
        if statement.norm == SQUARED:
            return math.isqrt(self.budget // rate + moved * moved) + 1 - moved if rate else None
        if statement.norm == MAXIMUM:
            return max(self.radius // rate + 1 - moved, 0) if rate else None
        left = self.budget - (0 if moved or g in self.extent.changed else statement.jumps[g])
        if left < 0:
            return 0
        return left // rate + 1 if rate else None

    def _add_choice(self, g: int) -> None:
        statement, corner = self.statement, self.corner[g]
        price, columns = statement.option_costs[g], statement.columns[g]
        kept = []
        for option in self.extent.options[g]:
            beyond = price[option] - (0 if statement.norm == MAXIMUM else price[corner])
            most = self.radius if statement.norm == MAXIMUM else self.budget
            if option != corner and (most is None or beyond <= most):
                kept.append((option, beyond))
        if kept:
            costs, options = tuple(c for _, c in kept), tuple(o for o, _ in kept)
            self.choices.append(Item(g, len(self.columns), 0, 0, 0, 0, 0, 0, costs, options))
            self.items.append(self.choices[-1])
            for option in options:
                statement.meter.tick()
                self.columns.append(tuple(a - b for a, b in zip(columns[option], columns[corner], strict=True)))

    # ------------------------------------------------------------------ the network over the region

    def take(self, known: Bounds) -> bool:
        """Take bounds that hold in a larger region, with the sides of split ReLUs; False when these contradict them."""
        self.bounds = [[self.extent.bounds(layer, i, *ends) for i, ends in enumerate(row)]
                       for layer, row in enumerate(known)]  # fmt: skip
        self.chords, self.values = [], []
        if not all(low <= high for row in self.bounds for low, high in row):
            return False
        for layer in range(len(self.bounds)):
            self._draw(layer)
        return True

    def bound(self, known: Bounds | None) -> bool:
        """Bounds of every ReLU's pre-activation, layer by layer; False when a split ReLU cannot be on its side.

        Each bound is one that arithmetic gave: `known` (which holds in a larger region), or one of this region.
        A literal leads nowhere, so it is bounded only where it is on a side.
        """
        statement = self.statement
        self.bounds, self.chords, self.values = [], [], []
        for layer in range(statement.layers - 1):
            bounds = []
            curved = self._curved(layer)
            for i in range(statement.sizes[layer]):
                low, high = known[layer][i] if known is not None else self._first_bounds(layer, i)
                if layer == 0 and i >= statement.first_literal and (0, i) not in self.extent.sides:
                    bounds.append((low, high))
                    continue
                side = self.extent.sides.get((layer, i), 0)
                low, high = self.extent.bounds(layer, i, low, high)
                if known is not None and layer and (low < 0 < high or i in curved):
                    least, most = self._interval(layer, i)
                    low, high = max(low, least), min(high, most)
                unstable = (known is not None or layer > 0) and (low < 0 < high or i in curved)
                if side == ACTIVE or unstable:
                    high = min(high, self.highest(layer, i, 1))
                if side == INACTIVE or unstable:
                    low = max(low, -self.highest(layer, i, -1))
                if low > high:
                    return False
                bounds.append((low, high))
            if known is None:  # what is kept, and what each leaf adds to it
                statement.meter.keep(4 * sum(low.bit_length() + high.bit_length() for low, high in bounds))
            self.bounds.append(bounds)
            self._draw(layer)
        return True

    def _curved(self, layer: int) -> dict[int, Curve]:
        """The neurons of a layer that are no ReLUs."""
        return self.statement.curved[layer] if self.statement.curved else {}

    def _draw(self, layer: int) -> None:
        """Lines and values of a layer whose bounds are known."""
        bounds, grid, curved = self.bounds[layer], self.statement.grid, self._curved(layer)
        above, shift, below = chords_of(bounds)
        lift = [0] * len(bounds) if curved else None
        values = [(max(low, 0), max(high, 0)) for low, high in bounds]
        for i in sorted(curved):
            self.statement.meter.tick()
            (above[i], shift[i]), (below[i], own) = lines(curved[i], *bounds[i], grid)
            values[i] = values_on(curved[i], *bounds[i], grid)
            assert lift is not None
            lift[i] = own
        self.chords.append((above, shift, below, lift))
        self.values.append(values)

    def _first_bounds(self, layer: int, i: int) -> tuple[int, int]:
        """Bounds of a pre-activation of which nothing is known."""
        if layer:
            return self._interval(layer, i)
        if i >= self.statement.first_literal:
            return literal_range(self.statement, self.extent, i - self.statement.first_literal)
        return -self.highest(0, i, -1), self.highest(0, i, 1)

    def _interval(self, layer: int, i: int) -> tuple[int, int]:
        """Bounds of a pre-activation from those of the layer below, each at its worst."""
        statement, below = self.statement, self.values[layer - 1]
        row, low, high = statement.weight_rows[layer][i], 0, 0
        at_once = AT_ONCE if statement.slow else len(row)
        for start in range(0, len(row), at_once):
            statement.meter.tick()
            for w, (least, most) in zip(row[start : start + at_once], below[start : start + at_once], strict=False):
                if least or most:
                    low += w * (least if w > 0 else most)
                    high += w * (most if w > 0 else least)
        bits, bias = statement.exponents[layer], statement.biases[layer][i]
        return low + bias >> bits, -(-high - bias >> bits)

    def highest(self, layer: int, i: int, sign: int) -> int:
        """An upper bound of sign * pre-activation over the region, in units of 2^-P, rounded up."""
        self.statement.meter.tick()
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
            return [sign * column[i] for column in self.columns], sign * self.first[i] + self._decimal_slack(i), unit
        v = [sign * w for w in statement.weight_rows[layer][i]]
        constant = sign * statement.biases[layer][i]
        while layer > 0:
            layer -= 1
            below = self.chords[layer][2] if slopes is None else self._below(layer, slopes)
            constant = self._replace(v, constant << SLOPE_BITS, layer, below)
            bits = statement.exponents[layer]
            (fixed,) = statement.products(v, [self.first if layer == 0 else statement.biases[layer]])
            constant = (constant << bits) + fixed
            unit += SLOPE_BITS + bits
            v = statement.products(v, self.columns if layer == 0 else statement.weight_columns[layer])
        return v, constant, unit

    def _decimal_slack(self, i: int) -> int:
        """What decimals may add to neuron i of layer 0, if it is a literal."""
        literal = i - self.statement.first_literal
        return self.statement.rooms[literal] << self.statement.exponents[0] if literal >= 0 else 0

    def _replace(self, v: list[int], constant: int, layer: int, below: list[int]) -> int:
        """Coefficients of ReLUs become those of the pre-activations, in place; returns the constant."""
        above, shift, _, lift = self.chords[layer]
        slow, tick = self.statement.slow, self.statement.meter.tick
        for j, c in enumerate(v):
            if slow:
                tick()
            if c > 0:
                v[j] = c * above[j]
                constant += c * shift[j]
            elif c < 0:
                v[j] = c * below[j]
                if lift is not None:
                    constant += c * lift[j]
        return constant

    def _below(self, layer: int, slopes: int) -> list[int]:
        start, size = self.statement.starts[layer], self.statement.sizes[layer]
        bits = f"{slopes >> start & (1 << size) - 1:0{size}b}"[::-1]
        curved = self._curved(layer)
        return [
            below if low >= 0 or high <= 0 or j in curved else ONE if bit == "1" else 0
            for j, (bit, (low, high), below) in enumerate(
                zip(bits, self.bounds[layer], self.chords[layer][2], strict=True)
            )
        ]

    # ------------------------------------------------------------------ the most that a plane can reach

    def most(self, a: list[int], constant: int, unit: int) -> int:
        """The largest value of  constant + a.y  over box and ball, or a little more."""
        grid, tick = self.statement.grid, self._tick
        gains: list[tuple[int, int]] = []
        for place, up, cost_up, down, cost_down in self.moves:
            if tick is not None:
                tick()
            v = a[place]
            if v > 0 and up:
                gains.append((cost_up, v * up))
            elif v < 0 and down:
                gains.append((cost_down, -v * down))
        for item in self.choices:
            gains += hull([(c, v << grid) for c, v in zip(item.costs, item.of(a), strict=True) if v > 0], tick)
        total = constant + sum(gain for _, gain in gains)
        if self.budget is None or self.statement.norm == MAXIMUM or total < 0:
            return total
        if self.statement.norm == ADDITIVE:
            return greedy(constant, gains, self.budget, tick)
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
        if self._tick is not None:
            self._tick()
        if item.options:
            most = 0
            for c, v in zip(item.costs, item.of(a), strict=True):
                if self._tick is not None:
                    self._tick()
                most = max(most, (v << self.statement.grid + shift) - m * c)
            return most
        v = a[item.first]
        reach, rate, v = *((item.up, item.rate) if v > 0 else (item.down, item.rate_down)), abs(v) << shift
        cost = m * rate
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
                if self._tick is not None:
                    self._tick()
                if item.options:
                    choices.append([(c / (1 << statement.cost_unit), v / one)
                                    for c, v in zip(item.costs, item.of(a), strict=True) if v > 0])  # fmt: skip
                elif a[item.first]:
                    up = a[item.first] > 0
                    reach, rate = (item.up, item.rate) if up else (item.down, item.rate_down)
                    if rate:
                        numbers.append((abs(a[item.first]) / one, rate / costs, item.moved / grid, reach / grid))
            budget = (self.budget or 0) / (1 << statement.cost_unit)
            return best_price(numbers, choices, budget, statement.meter.tick)
        except (ArithmeticError, ValueError):  # too large or too small for floating point: do without a price
            return 0.0
