"""What one feature may become: the values that the schema and the constraints on single features leave.

A float64 stands for the shortest decimal that reads back as it. Limits and steps are worked out on decimals and rounded
once to the nearest float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ...printing import quoted
from .reading import CheckBudget, Refusal, entries, listed, number, scaled, whole
from .schema import StatedChoice, StatedInteger, StatedReal, StatedSchema, decimal

EXTRA = {"range": ("lower", "upper"), "allowed": ("options",), "max_delta": ("by", "share"), "steps": ("step",)}
"""What constraints on one feature have beside `kind` and `feature`."""
KINDS = ("fixed", "only_up", "only_down", *EXTRA)


def nearest(value: Fraction) -> float:
    """The nearest float64; infinite beyond the largest."""
    return nearest_of(*value.as_integer_ratio())


def nearest_of(top: int, bottom: int) -> float:
    """The float64 that is nearest to a quotient; infinite beyond the largest."""
    try:
        return top / bottom  # of whole numbers: rounded once
    except OverflowError:
        return math.inf if top > 0 else -math.inf


@dataclass(frozen=True, slots=True)
class StepValues:
    """The values of a real number that moves in steps: start + k * step for k from `first` to `last`, each rounded once
    to the nearest float64, and the person's own value `before`."""

    start: Fraction
    step: Fraction
    first: int
    last: int
    before: float
    grid: int
    whole: tuple[int, int, int] = field(init=False)
    """Start and step over their common denominator, which is the third."""

    def __post_init__(self) -> None:
        common = math.lcm(self.start.denominator, self.step.denominator)
        parts = [one.numerator * (common // one.denominator) for one in (self.start, self.step)]
        object.__setattr__(self, "whole", (*parts, common))

    def change(self, k: int) -> int:
        """The change after k steps, in units of 2^-P."""
        start, step, common = self.whole
        top, bottom = nearest_of(start + k * step, common).as_integer_ratio()
        own, under = self.before.as_integer_ratio()  # both bottoms are powers of two
        change, over = (top * under - own * bottom) << self.grid, bottom * under
        if change % over:
            raise Refusal(f"a value on the grid of a feature does not lie on the grid of 2^-{self.grid}")
        return change // over

    def up(self, change: int) -> int | None:
        """The least allowed change that is not below this one."""
        k = self._near(change)
        while k <= self.last and self.change(k) < change:
            k += 1
        found = [self.change(k)] if k <= self.last else []
        return min(found + ([0] if change <= 0 else []), default=None)

    def down(self, change: int) -> int | None:
        """The largest allowed change that is not above this one."""
        k = min(self._near(change) + 3, self.last)
        while k >= self.first and self.change(k) > change:
            k -= 1
        found = [self.change(k)] if k >= self.first else []
        return max(found + ([0] if change >= 0 else []), default=None)

    def _near(self, change: int) -> int:
        """A place at or a little below a change: roundings move a value by far less than a step."""
        start, step, common = self.whole
        top, bottom = self.before.as_integer_ratio()  # the bottom is a power of two
        value = (top << self.grid) + change * bottom
        bottom <<= self.grid
        return max((value * common - start * bottom) // (step * bottom) - 1, self.first)


@dataclass(frozen=True, slots=True)
class Domain:
    """What one feature may become. Numbers: an interval of changes, in units of 2^-P, on the grid of `step` (0: any) or
    on `steps`. Choices: `options`, the allowed ones.
    """

    low: int
    high: int
    step: int
    options: tuple[int, ...]
    steps: StepValues | None = None

    @property
    def coarse(self) -> bool:
        """Is it a number with steps?"""
        return bool(self.step) or self.steps is not None

    def inward(self, low: int, high: int) -> tuple[int, int]:
        """The interval with its ends moved inward to changes that are allowed (low > high: there is none)."""
        if self.step:
            return -(-low // self.step) * self.step, high // self.step * self.step
        if self.steps is None:
            return low, high
        up, down = self.steps.up(low), self.steps.down(high)
        return (1, 0) if up is None or down is None else (up, down)

    def parted(self, at: int) -> tuple[int, int]:
        """The largest change up to `at`, and the least one beyond it (of any number: the same)."""
        if self.step:
            below = at // self.step * self.step
            return below, below + self.step
        if self.steps is None:
            return at, at
        down, up = self.steps.down(at), self.steps.up(at + 1)
        return (self.low - 1 if down is None else down), (self.high + 1 if up is None else up)


def read_domains(
    schema: StatedSchema, factual: tuple[float, ...], constraints: tuple[Any, ...], grid: int, meter: CheckBudget
) -> tuple[Domain, ...]:
    """The values that schema and constraints leave to each feature."""
    where = schema.positions
    ends = [[0.0, len(f.options) - 1.0] if isinstance(f, StatedChoice) else [f.lower, f.upper] for f in schema.features]
    allowed = [set(range(len(f.options))) if isinstance(f, StatedChoice) else set() for f in schema.features]
    steps: dict[int, Fraction] = {}
    for constraint in constraints:
        meter.tick()
        kind = str(constraint["kind"])
        entries(constraint, "a constraint", "kind", "feature", *EXTRA.get(kind, ()))
        name = constraint["feature"]
        if not isinstance(name, str) or name not in where:
            raise Refusal(f"a constraint is about an unknown feature, {str(name)[:60]!r}")
        g = where[name]
        if kind == "steps":
            steps[g] = _step(schema.features[g], number(constraint["step"], "a step"), steps.get(g))
        else:
            _narrow(schema.features[g], factual[g], constraint, ends[g], allowed[g])
    domains = []
    for g, (feature, before, own, options) in enumerate(zip(schema.features, factual, ends, allowed, strict=True)):
        meter.tick()
        domains.append(_domain(feature, before, own, options, steps.get(g), grid))
    return tuple(domains)


def _step(feature: Any, step: float, before: Fraction | None) -> Fraction:
    """The step of a constraint, which must be a multiple of the feature's own and of those before it, or a part."""
    size, name = decimal(step), quoted(feature.name)
    if isinstance(feature, StatedChoice) or size <= 0:
        raise Refusal(f"{name} cannot move in steps of {step!r}")
    own = None if feature.step is None else Fraction(feature.step)
    if own is not None and size % own != 0:
        raise Refusal(f"the step {step!r} of {name} is no multiple of its own")
    if before is not None and size % before != 0 and before % size != 0:
        raise Refusal(f"{name} has two steps that have no common one")
    if isinstance(feature, StatedReal) and size < 4 * Fraction(math.ulp(max(abs(feature.lower), abs(feature.upper)))):
        raise Refusal(f"the step {step!r} of {name} is too fine for float64")
    return size if before is None else max(size, before)


def _narrow(feature: Any, before: float, constraint: dict[str, Any], ends: list[float], options: set[int]) -> None:
    """What one constraint leaves of the interval and the options of its feature."""
    kind, name = constraint["kind"], quoted(feature.name)
    if kind in ("only_up", "only_down", "max_delta") and isinstance(feature, StatedChoice) and not feature.ordered:
        raise Refusal(f"{name} has no order, so it cannot go only up or down, or by so many levels")
    if kind in ("fixed", "only_up", "only_down"):
        if kind != "only_down":
            ends[0] = max(ends[0], before)
        if kind != "only_up":
            ends[1] = min(ends[1], before)
    elif kind == "range" and not isinstance(feature, StatedChoice):
        if constraint["lower"] is not None:
            ends[0] = max(ends[0], number(constraint["lower"], "a range's lower end"))
        if constraint["upper"] is not None:
            ends[1] = min(ends[1], number(constraint["upper"], "a range's upper end"))
    elif kind == "allowed" and isinstance(feature, StatedChoice):
        most = len(feature.options) - 1
        options &= {whole(v, "an allowed option", 0, most) for v in listed(constraint["options"], "options")}
    elif kind == "max_delta":
        low, high = _within(feature, before, constraint)
        ends[:] = max(ends[0], low), min(ends[1], high)
    else:
        raise Refusal(f"there is no constraint {str(kind)[:60]!r} for {name}")


def _within(feature: Any, before: float, constraint: dict[str, Any]) -> tuple[float, float]:
    """The least and the largest value that `max_delta` allows."""
    given = [
        None if constraint[key] is None else number(constraint[key], f"a change's {key}") for key in ("by", "share")
    ]
    by, share = given
    if (by is None) == (share is None) or (isinstance(feature, StatedChoice) and by is None):
        raise Refusal(f"a change of {quoted(feature.name)} is limited by a number or by a share, not by both")
    start = decimal(before)
    most = decimal(share) * abs(start) if share is not None else decimal(by or 0.0)
    if most < 0:
        raise Refusal("a largest change is negative")
    low, high = start - most, start + most
    if not isinstance(feature, StatedReal):
        low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
    return nearest(low), nearest(high)


def _domain(
    feature: Any, before: float, interval: list[float], options: set[int], step: Fraction | None, grid: int
) -> Domain:
    low, high = interval
    if isinstance(feature, StatedChoice):
        return Domain(0, 0, 0, tuple(sorted(o for o in options if low <= o <= high)))
    if low > high:
        return Domain(1, 0, 0, ())
    what = f"an end of {quoted(feature.name)}"
    ends = [scaled(Fraction(end) - Fraction(before), grid, what) for end in (low, high)]
    if isinstance(feature, StatedInteger):
        coarse = Domain(0, 0, int(step or feature.step) << grid, ())
    else:
        coarse = Domain(0, 0, 0, (), _real_steps(feature, before, step, grid))
    inside = coarse.inward(*ends)
    return Domain(*inside, coarse.step, (), coarse.steps)


def _real_steps(feature: Any, before: float, step: Fraction | None, grid: int) -> StepValues | None:
    """The steps of a real number: of the schema, or of a constraint, which counts from the person's own value."""
    if step is not None:
        if feature.step is not None:
            k = round((decimal(before) - feature.start) / feature.step)
            if nearest(feature.start + k * feature.step) != before:  # off the grid: nothing else is on both
                return StepValues(decimal(before), step, 0, 0, before, grid)
        most = math.floor((decimal(feature.upper) - decimal(before)) / step) + 2
        least = math.ceil((decimal(feature.lower) - decimal(before)) / step) - 2
        return StepValues(decimal(before), step, least, most, before, grid)
    if feature.step is None:
        return None
    return StepValues(feature.start, feature.step, 0, feature.steps, before, grid)
