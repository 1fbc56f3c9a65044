"""Causes in a certificate: equations of the features that follow from others, and the sets of them that are acted on.

A person's noise is what their row differs from an equation by. Where a feature with causes is not acted on, the row
that follows has  f(causes) + noise  there, which clauses say, in decimals:

    for each case of f:  a condition of the case does not hold, or  value - f - noise  is within `below` and `above`

or, where f is a network, two more conditions beside those of the model (`equation_networks`).

Each set of features that are acted on is a question of its own, about the row that follows: what follows costs nothing,
and whoever acts against causes pays a fee.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...printing import quoted
from .equation_networks import Stack, causes_of, condition_network, read_layers, value_at
from .layers import Integers
from .reading import CheckBudget, Refusal, entries, listed, number, ticking, whole
from .rules import RuleLiteral
from .schema import StatedChoice, StatedInteger, StatedSchema, decimal

MAX_SETS = 64
"""Of features with causes that are acted on: each is proven by a tree of its own."""
ABOUT_ACTIONS = ("fixed", "only_up", "only_down", "max_delta", "steps")
"""Constraints on what is done; the others are about the row that follows."""
REFUSED = ("only_with", "fewest_changes", "apart")
HALF, LESS, MORE = Fraction(1, 2), Fraction(1, 2**31), Fraction(1, 2**29)
"""A feature in steps follows to the nearest one, a tie goes up: between half a step, less this, below and half a step,
and this, above what follows."""


CLEAR = Fraction(1, 10**18)
"""A real number is beyond an end of a condition from the next float64 on; where that is nearer than this, from the next
multiple of this on: rows in between there are none."""


@dataclass(frozen=True, slots=True)
class CaseCondition:
    """That a number is between two ends (None: any), or that a choice has one of these options."""

    feature: int
    low: float | None = None
    high: float | None = None
    options: frozenset[int] = frozenset()

    def holds(self, value: float) -> bool:
        """Is it true of a value of the feature?"""
        if self.options:
            return int(value) in self.options
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Case:
    """Where all conditions hold, the equation is constant + the sum of factor * number + values of options."""

    when: tuple[CaseCondition, ...]
    numbers: tuple[tuple[int, Fraction], ...]
    options: tuple[tuple[int, tuple[Fraction, ...]], ...]
    constant: Fraction

    def holds(self, point: tuple[float, ...]) -> bool:
        """Does the row meet its conditions?"""
        return all(one.holds(point[one.feature]) for one in self.when)

    def value(self, point: tuple[float, ...]) -> Fraction:
        """Of the equation, in decimals."""
        total = self.constant + sum(a * decimal(point[g]) for g, a in self.numbers)
        return total + sum(values[int(point[g])] for g, values in self.options)


@dataclass(frozen=True, slots=True)
class StatedEquation:
    """What a feature follows from. `holding`: what acting on it counts as, beside its change."""

    feature: int
    below: Fraction
    above: Fraction
    holding: Fraction
    cases: tuple[Case, ...]
    layers: Stack | None = None
    """Of a network in the place of cases."""

    def noise(self, before: tuple[float, ...]) -> Fraction:
        """What a row differs from the equation by."""
        own = [case for case in self.cases if case.holds(before)]
        if len(own) != 1:
            raise Refusal(f"the row is in {len(own)} cases of the equation of feature {self.feature}, not in one")
        return decimal(before[self.feature]) - own[0].value(before)


@dataclass(frozen=True, slots=True)
class ActionSet:
    """The features with causes that are acted on, and those that follow."""

    equations: tuple[StatedEquation, ...]
    acted: frozenset[int]

    @property
    def follows(self) -> frozenset[int]:
        """The features with causes that are not acted on: their changes cost nothing."""
        return frozenset(one.feature for one in self.equations) - self.acted

    def clauses(self, schema: StatedSchema, before: tuple[float, ...], meter: CheckBudget) -> list[list[RuleLiteral]]:
        """What the row that follows has to meet."""
        found = []
        for equation in self.equations:
            if equation.feature in self.acted or equation.layers is not None:
                continue
            noise = equation.noise(before)
            for case in ticking(equation.cases, meter):
                ways = [literal for one in case.when for literal in _denied(schema, one)]
                for sign, room in ((1, equation.below), (-1, equation.above)):
                    side = _side(schema, equation.feature, case, noise, (sign, room))
                    meter.keep(sum(a.bit_length() for _, a in side.numbers) + side.constant.bit_length())
                    meter.keep(sum(v.bit_length() for _, values in side.options for v in values))
                    found.append([*ways, side])
        return found

    def networks(
        self, schema: StatedSchema, before: tuple[float, ...], grid: int, meter: CheckBudget
    ) -> list[Integers]:
        """The conditions of what follows by networks."""
        found = []
        for one in self.equations:
            if one.layers is not None and one.feature not in self.acted:
                g = one.feature
                noise = Fraction(before[g]) - value_at(one.layers, schema, before, meter)
                ends = noise - Fraction(float(one.below)), -noise - Fraction(float(one.above))
                found.append(condition_network(one.layers, schema, g, ends, grid, meter))
        return found


# ---------------------------------------------------------------------- reading


def read_causes(value: Any, schema: StatedSchema, meter: CheckBudget) -> tuple[StatedEquation, ...]:
    """{"feature", "within", "holding", "cases"} of each feature with causes, causes first."""
    found: list[StatedEquation] = []
    given = listed(value, "the causes")
    names = [one.get("feature") if isinstance(one, dict) else None for one in given]
    later = {schema.positions[name] for name in names if isinstance(name, str) and name in schema.positions}
    if not names or len(later) < len(names):
        raise Refusal("the causes are equations of features of the schema, each once")
    for one in ticking(given, meter):
        found.append(_read_equation(one, schema, later, meter))
        later.discard(found[-1].feature)
    return tuple(found)


def _read_equation(value: Any, schema: StatedSchema, later: set[int], meter: CheckBudget) -> StatedEquation:
    """Its causes do not follow later, nor from it."""
    kind = "layers" if isinstance(value, dict) and "layers" in value else "cases"
    own = entries(value, "an equation", "feature", "within", "holding", kind)
    g = schema.positions[own["feature"]]
    feature, name = schema.features[g], quoted(own["feature"])
    if isinstance(feature, StatedChoice) and not feature.ordered:
        raise Refusal(f"{name} has no order, so nothing can be added to it")
    step = Fraction(1) if isinstance(feature, StatedChoice) else feature.step
    if (own["within"] is None) is (step is None):
        raise Refusal(f"what follows is within a number for a real number without steps alone; that of {name} is not")
    if step is None:
        below = above = decimal(number(own["within"], "how exactly something follows"))
    else:
        below, above = (HALF - LESS) * step, (HALF + MORE) * step
    holding = number(own["holding"], "the cost of holding a feature")
    if below < 0 or holding < 0.0:
        raise Refusal(f"{name} follows within less than nothing, or is held for less than nothing")
    if kind == "layers":
        layers = read_layers(own["layers"], schema, meter)
        if later & causes_of(layers, schema):
            raise Refusal(f"{name} follows from itself, or from what comes after it")
        return StatedEquation(g, below, above, Fraction(holding), (), layers)
    cases = []
    for one in ticking(listed(own["cases"], "the cases of an equation"), meter):
        cases.append(_read_case(one, schema, meter))
        if later & {h for h, _ in (*cases[-1].numbers, *cases[-1].options)} | later & {
            c.feature for c in cases[-1].when
        }:
            raise Refusal(f"{name} follows from itself, or from what comes after it")
    return StatedEquation(g, below, above, Fraction(holding), tuple(cases))


def _read_case(value: Any, schema: StatedSchema, meter: CheckBudget) -> Case:
    own = entries(value, "a case of an equation", "when", "numbers", "options", "constant")
    when = tuple(
        _read_condition(one, schema) for one in ticking(listed(own["when"], "the conditions of a case"), meter)
    )
    numbers, options = [], []
    for pair in ticking(listed(own["numbers"], "the numbers of a case"), meter):
        name, a = listed(pair, "a number of a case", 2)
        numbers.append((_place(schema, name, choice=False), decimal(number(a, "a factor"))))
    for pair in ticking(listed(own["options"], "the options of a case"), meter):
        name, values = listed(pair, "an option of a case", 2)
        g = _place(schema, name, choice=True)
        given = listed(values, "the values of options", _options(schema, g))
        options.append((g, tuple(decimal(number(v, "the value of an option")) for v in ticking(given, meter))))
    named = [g for g, _ in (*numbers, *options)]
    if len(set(named)) < len(named) or len({one.feature for one in when}) < len(when):
        raise Refusal("a case names a feature twice")
    meter.keep(256 * (1 + len(when) + len(numbers) + sum(len(values) for _, values in options)))
    return Case(when, tuple(numbers), tuple(options), decimal(number(own["constant"], "the constant of a case")))


def _place(schema: StatedSchema, name: Any, *, choice: bool) -> int:
    if not isinstance(name, str) or name not in schema.positions:
        raise Refusal(f"an equation is about an unknown feature, {str(name)[:60]!r}")
    if isinstance(schema[name], StatedChoice) is not choice:
        raise Refusal(f"an equation takes {quoted(name)} for a {'choice' if choice else 'number'}")
    return schema.positions[name]


def _options(schema: StatedSchema, g: int) -> int:
    """How many options a feature has; 0 for a number."""
    feature = schema.features[g]
    return len(feature.options) if isinstance(feature, StatedChoice) else 0


def _read_condition(value: Any, schema: StatedSchema) -> CaseCondition:
    if isinstance(value, dict) and "options" in value:
        own = entries(value, "a condition", "feature", "options")
        g = _place(schema, own["feature"], choice=True)
        most = _options(schema, g) - 1
        options = frozenset(
            whole(o, "an option", 0, most) for o in listed(own["options"], "the options of a condition")
        )
        if not options:
            raise Refusal("a condition that no option meets")
        return CaseCondition(g, options=options)
    own = entries(value, "a condition", "feature", "low", "high")
    ends = [None if own[key] is None else number(own[key], "an end of a condition") for key in ("low", "high")]
    return CaseCondition(_place(schema, own["feature"], choice=False), ends[0], ends[1])


# ---------------------------------------------------------------------- literals


def _denied(schema: StatedSchema, one: CaseCondition) -> list[RuleLiteral]:
    """The ways in which a condition does not hold: another option, or a number that is clearly beyond an end."""
    if one.options:
        count = _options(schema, one.feature)
        return [RuleLiteral((), ((one.feature, tuple(int(o not in one.options) for o in range(count))),), -1, True)]
    feature, found = schema.features[one.feature], []
    exact = isinstance(feature, StatedInteger) and float(feature.lower).is_integer()
    for sign, end in ((-1, one.low), (1, one.high)):
        if end is None or not math.isfinite(past := math.nextafter(end, sign * math.inf)):
            continue
        if exact:
            at = Fraction(math.floor(end) + 1 if sign > 0 else math.ceil(end) - 1)
        else:
            at = decimal(past)
            if abs(at - decimal(end)) < CLEAR:  # near 0, where float64 is finer
                at = sign * (math.floor(sign * decimal(end) / CLEAR) + 1) * CLEAR
        found.append(RuleLiteral(((one.feature, sign * at.denominator),), (), -sign * at.numerator, exact))
    return found


def _side(schema: StatedSchema, g: int, case: Case, noise: Fraction, side: tuple[int, Fraction]) -> RuleLiteral:
    """sign * (value - f - noise) + room >= 0, by a common denominator."""
    sign, room = side
    constant = room - sign * (case.constant + noise)
    numbers, options = ([(h, -sign * a) for h, a in case.numbers],
                        [(h, tuple(-sign * v for v in values)) for h, values in case.options])  # fmt: skip
    feature = schema.features[g]
    if isinstance(feature, StatedChoice):
        options.append((g, tuple(Fraction(sign * o) for o in range(len(feature.options)))))
    else:
        numbers.append((g, Fraction(sign)))
    parts = [constant, *(a for _, a in numbers), *(v for _, values in options for v in values)]
    over = math.lcm(*(part.denominator for part in parts))
    exact = all(isinstance(f := schema.features[h], StatedInteger) and float(f.lower).is_integer() for h, _ in numbers)
    return RuleLiteral(
        tuple((h, int(a * over)) for h, a in numbers),
        tuple((h, tuple(int(v * over) for v in values)) for h, values in options), int(constant * over), exact,
    )  # fmt: skip


# ---------------------------------------------------------------------- sets


def action_sets(
    equations: tuple[StatedEquation, ...], constraints: tuple[dict[str, Any], ...], place: Callable[[Any], int]
) -> list[ActionSet]:
    """The sets of features with causes to act on: binary numbers, whose lowest digit is the first that may be."""
    if refused := next((one["kind"] for one in constraints if one["kind"] in REFUSED), ""):
        raise Refusal(f"'{refused}' cannot be asked of what follows from actions")
    fixed = {place(one.get("feature")) for one in constraints if one["kind"] == "fixed"}
    most = min((one["most"] for one in constraints if one["kind"] == "max_changes"), default=len(equations))
    free = [one.feature for one in equations if one.feature not in fixed]
    if 2 ** len(free) > MAX_SETS:
        raise Refusal(f"{len(free)} features with causes may be acted on, in more than {MAX_SETS} ways")
    sets = [frozenset(g for k, g in enumerate(free) if which >> k & 1) for which in range(2 ** len(free))]
    return [ActionSet(equations, some) for some in sets if len(some) <= most]
