"""Continuous knapsack in exact arithmetic: by gain / cost for sums, by a price of the budget for l2.

`greedy` is exact, `hull` too. A price is only a good guess, in floating point: any price gives a bound that holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

RATIO_BITS = 1_000
"""A cost over a gain of so many bits is no number that floating point takes for 0."""
Tick = Callable[[], None] | None


@dataclass(frozen=True, slots=True)
class Item:
    """One feature that can still move, from the box's cheapest corner. `costs` (choices): beyond the corner's."""

    feature: int
    first: int
    up: int
    down: int
    rate: int
    rate_down: int
    jump: int
    moved: int
    """How far the corner is from the factual."""
    costs: tuple[int, ...]
    options: tuple[int, ...]

    def of(self, a: list[int]) -> list[int]:
        """The coefficients of a choice's options."""
        return a[self.first : self.first + len(self.options)]


def hull(points: list[tuple[int, int]], tick: Tick = None) -> list[tuple[int, int]]:
    """The steps (cost, gain) of the least concave function from (0, 0) above all points, steepest first."""
    chain = [(0, 0)]
    for cost, gain in sorted(points, key=lambda p: (p[0], -p[1])):
        if tick is not None:
            tick()
        if gain <= chain[-1][1]:
            continue
        while len(chain) > 1 and _is_above(chain[-2], chain[-1], (cost, gain)):
            chain.pop()
        chain.append((cost, gain))
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(chain)]


def _is_above(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    """The line from a to c passes above b, or through it."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def greedy(constant: int, gains: list[tuple[int, int]], budget: int, tick: Tick = None) -> int:
    """Buy gains, best ratio first, until the budget is spent; the last one in part, rounded up.

    Floating point orders them and finds the last one. With its exact ratio as the price of a unit of cost, the bound is
    budget * price + sum of max(gain - price * cost, 0). That holds for any price; for the right one it is what is
    bought.
    """
    if tick is None:
        try:
            return _at_price(constant, gains, budget)
        except OverflowError:  # too far apart for floating point
            pass
    ordered = sorted(gains, key=_Ratio if tick is None else lambda pair: _SlowRatio(pair, tick))
    for cost, gain in ordered:
        if cost > budget:
            return constant - (-gain * budget // cost)
        constant += gain
        budget -= cost
    return constant


def _at_price(constant: int, gains: list[tuple[int, int]], budget: int) -> int:
    left, total = budget, constant
    shift = max(max([gain for _, gain in gains], default=1).bit_length() - RATIO_BITS, 0)
    ratios = [((cost << shift) / gain, cost, gain) for cost, gain in gains]
    for _, cost, gain in sorted(ratios):
        if cost > left:
            more = sum([mine for c, g in gains if (mine := cost * g - gain * c) > 0])
            return constant - (-(more + gain * budget) // cost)
        total += gain
        left -= cost
    return total


class _Ratio:
    """Sorts (cost, gain) by gain / cost, largest first, exactly."""

    __slots__ = ("cost", "gain")

    def __init__(self, pair: tuple[int, int]) -> None:
        self.cost, self.gain = pair

    def __lt__(self, other: _Ratio) -> bool:
        return self.gain * other.cost > other.gain * self.cost


class _SlowRatio(_Ratio):
    """The same, and checks the time at each comparison."""

    __slots__ = ("tick",)

    def __init__(self, pair: tuple[int, int], tick: Callable[[], None]) -> None:
        super().__init__(pair)
        self.tick = tick

    def __lt__(self, other: _Ratio) -> bool:
        self.tick()
        return super().__lt__(other)


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


def best_price(numbers: Numbers, choices: Choices, budget: float, tick: Callable[[], None] = lambda: None) -> float:
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
        tick()
        spent = spent_at(price, numbers, choices)
        low, high = (price, high) if spent > budget else (low, price)
        if abs(spent - budget) <= 1e-12 * budget:  # near enough: the bound is flat there
            return price
        if high - low <= 1e-14 * high:
            break
        guess = _free_price(price, numbers, choices, budget) if step < 8 else 0.0
        if step > 2 and low > 0.0:
            for jump in _jumps(low, high, choices):
                tick()
                if spent_at(jump * (1.0 + 1e-15), numbers, choices) > budget:
                    low = max(low, jump)
                elif spent_at(jump * (1.0 - 1e-15), numbers, choices) > budget:
                    return jump
                else:
                    high = min(high, jump)
        price = guess if low < guess < high else _between(low, high)
    return high


def _between(low: float, high: float) -> float:
    return math.sqrt(low * high) if low > 0.0 and high > 4.0 * low else 0.5 * (low + high)


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
