"""Conjunctive normal form of rules: every clause must hold, and a clause holds when one of its inequalities does.

Denials are pushed inwards until they meet comparisons, which turn around (not x > 0 is x <= 0); what is left of `and`
and `or` is multiplied out, except about one number, of which intervals are left (see `intervals`). Over whole numbers
and options nothing is lost: x > 21 is x >= 22, x != 3 is two inequalities. Over real numbers x > 0 has no nearest row
and x = 3 no slack for rounding, so they are refused where the rule needs them, with what to write instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias, assert_never

import numpy as np

from ifonly.errors import QuestionError
from ifonly.problem.parts import END_ROOM, Literal, Part, UnrolledColumns, clause_part
from ifonly.problem.rules.formulas import Compare, Denial, Every, Formula, Linear, Member, Some, features_of
from ifonly.problem.rules.intervals import Intervals, intersection, union
from ifonly.problem.words import show_name
from ifonly.schema import Choice, Integer, Numeric, Real, Schema
from ifonly.schema.decimals import written
from ifonly.schema.number_text import clear_number

MAX_CLAUSES = 200
MAX_UNFOLDED = 500
"""Clauses on the way there, before those that say nothing are dropped."""
MAX_WHOLE = 2**45
"""How far a whole-numbered inequality may be from 0: every method adds up such numbers without rounding."""

Weights: TypeAlias = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, tuple[int, ...]], ...]]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """constant + numbers + options >= 0: coprime whole coefficients, the least option of each feature counting 0."""

    numbers: tuple[tuple[int, int], ...]
    options: tuple[tuple[int, tuple[int, ...]], ...]
    constant: Fraction
    whole: bool

    @property
    def weights(self) -> Weights:
        return self.numbers, self.options


Clause: TypeAlias = tuple[Member | AtLeast, ...]


def clauses(formula: Formula, schema: Schema) -> tuple[Clause, ...]:
    """The clauses of a rule. None at all: it always holds. An empty one: it never does."""
    return tuple(_Unfolding(schema).clauses(formula, True))


def parts(given: Iterable[Clause], columns: UnrolledColumns) -> tuple[Part, ...]:
    """Clauses as pieces of network."""
    return tuple(_part(columns, clause) for clause in given)


class _Unfolding:
    """Unfolds the rules of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def clauses(self, formula: Formula, positive: bool) -> list[Clause]:
        """The clauses of the formula, or of its denial."""
        match formula:
            case Member(g, options):
                return self.unit(Member(g, options if positive else self.options(g) - options))
            case Compare():
                return self.compare(formula, positive)
            case Denial(part):
                return self.clauses(part, not positive)
            case Every(members) | Some(members):
                number = self.only_number(formula)
                if number is not None:
                    return self.of_intervals(number, self.intervals(formula, positive, number))
                unfolded = (self.clauses(member, positive) for member in members)
                return self.all_of(unfolded) if isinstance(formula, Every) == positive else self.one_of(unfolded)
            case _:
                assert_never(formula)

    # ------------------------------------------------------------------ one number

    def only_number(self, formula: Formula) -> int | None:
        """The number that the formula is about, if it is about nothing else."""
        features = features_of(formula)
        if len(features) != 1:
            return None
        (g,) = features
        return g if isinstance(self.schema.features[g], Numeric) else None

    def intervals(self, formula: Formula, positive: bool, g: int) -> Intervals:
        """What the formula, or its denial, leaves of the number."""
        match formula:
            case Denial(part):
                return self.intervals(part, not positive, g)
            case Every(members) | Some(members):
                several = [self.intervals(member, positive, g) for member in members]
                if isinstance(formula, Every) == positive:
                    return intersection(several)
                feature = self.schema.features[g]
                return union(several, feature.step if isinstance(feature, Integer) else 0)
            case _:
                unfolded = self.clauses(formula, positive)
                return intersection([self.everything(g), *(self.of_clause(clause, g) for clause in unfolded)])

    def everything(self, g: int) -> Intervals:
        feature = self.schema.features[g]
        assert isinstance(feature, Numeric)
        return [(written(feature.lower), written(feature.upper))]

    def of_clause(self, clause: Clause, g: int) -> Intervals:
        """A clause about one number: its inequalities are x >= -constant and x <= constant."""
        ((low, high),) = self.everything(g)
        ends: list[Intervals] = []
        for one in clause:
            assert isinstance(one, AtLeast)
            ((_, slope),) = one.numbers
            ends.append([(-one.constant, high)] if slope > 0 else [(low, one.constant)])
        return union(ends, 0)

    def of_intervals(self, g: int, left: Intervals) -> list[Clause]:
        """A clause for each end, and one for each gap: below it, or above it."""
        if not left:
            return [()]
        ((low, high),) = self.everything(g)
        whole = not isinstance(self.schema.features[g], Real)

        def at_least(end: Fraction) -> AtLeast:
            return AtLeast(((g, 1),), (), -end, whole)

        def at_most(end: Fraction) -> AtLeast:
            return AtLeast(((g, -1),), (), end, whole)

        result: list[Clause] = []
        if left[0][0] > low:
            result.append((at_least(left[0][0]),))
        if left[-1][1] < high:
            result.append((at_most(left[-1][1]),))
        result += [(at_most(below[1]), at_least(above[0])) for below, above in pairwise(left)]
        if len(result) > MAX_CLAUSES:
            raise _too_many()
        return result

    # ------------------------------------------------------------------ several

    def all_of(self, unfolded: Iterable[list[Clause]]) -> list[Clause]:
        return self.needed([clause for several in unfolded for clause in several])

    def one_of(self, unfolded: Iterable[list[Clause]]) -> list[Clause]:
        result: list[Clause] = [()]
        for several in unfolded:
            if len(result) * len(several) > MAX_UNFOLDED:
                raise _too_many()
            joined = (self.union((*a, *b)) for a in result for b in several)
            result = self.needed([clause for clause in joined if clause is not None])
        return result

    def needed(self, given: list[Clause]) -> list[Clause]:
        """Without the clauses that others imply."""
        if len(given) > MAX_UNFOLDED:
            raise _too_many()
        kept: list[Clause] = []
        for clause in given:
            if not any(_implies(other, clause) for other in kept):
                kept = [*(other for other in kept if not _implies(clause, other)), clause]
        if len(kept) > MAX_CLAUSES:
            raise _too_many()
        return kept

    def union(self, given: Clause) -> Clause | None:
        """One of these, each feature and each combination of numbers named once; None if that always holds."""
        members: dict[int, frozenset[int]] = {}
        others: dict[Weights, AtLeast] = {}
        for one in given:
            if isinstance(one, Member):
                members[one.feature] = members.get(one.feature, frozenset()) | one.options
            elif one.weights not in others or others[one.weights].constant < one.constant:
                others[one.weights] = one
        if any(options == self.options(g) for g, options in members.items()):
            return None
        for one in others.values():
            opposite = others.get(_opposite(one))
            if opposite is not None and self.covers(one, opposite):
                return None
        return (*(Member(g, options) for g, options in members.items()), *others.values())

    def covers(self, one: AtLeast, opposite: AtLeast) -> bool:
        """Is one of  w + c >= 0  and  -w + d >= 0  true of every row? (The sum of both is a constant.)"""
        total = one.constant + opposite.constant + sum(max(values) for _, values in one.options)
        return total >= (-1 if one.whole else 0)

    # ------------------------------------------------------------------ comparisons

    def compare(self, formula: Compare, positive: bool) -> list[Clause]:
        linear, sign = formula.linear, formula.sign
        if not positive:
            sign = {">=": "<", ">": "<=", "=": "!=", "!=": "="}[sign]
        if sign in ("<", "<="):
            linear, sign = linear.negative(), sign.replace("<", ">")
        if sign == ">=":
            return self.at_least(linear)
        if any(isinstance(self.schema.features[g], Real) for g, _ in linear.numbers):
            return self.open(formula, linear, sign)
        above, below = linear.plus(-1), linear.negative().plus(-1)
        if sign == ">":
            return self.at_least(above)
        if sign == "=":
            return self.all_of([self.at_least(linear), self.at_least(linear.negative())])
        return self.one_of([self.at_least(above), self.at_least(below)])

    def open(self, formula: Compare, linear: Linear, sign: str) -> list[Clause]:
        """>, = and != with real numbers: fine where every row or no row does so, else refused."""
        least, largest = self.ends(linear.numbers, linear.options, Fraction(linear.constant))
        if least > 0 or largest < 0:
            true = {">": least > 0, "=": False, "!=": True}[sign]
            return [] if true else [()]
        raise _refused(self.schema, formula, linear, sign)

    def at_least(self, linear: Linear) -> list[Clause]:
        """linear >= 0 in its simplest form."""
        constant, options = Fraction(linear.constant), []
        for g, values in linear.options:
            constant += min(values)
            options.append((g, tuple(v - min(values) for v in values)))
        least, largest = self.ends(linear.numbers, tuple(options), constant)
        if least >= 0:
            return []
        if largest < 0:
            return [()]
        if not linear.numbers and len(options) == 1:
            g, values = options[0]
            return self.unit(Member(g, frozenset(i for i, v in enumerate(values) if v + constant >= 0)))
        common = math.gcd(*(a for _, a in linear.numbers), *(v for _, values in options for v in values))
        numbers = tuple((g, a // common) for g, a in linear.numbers)
        shared = tuple((g, tuple(v // common for v in values)) for g, values in options)
        whole = not any(isinstance(self.schema.features[g], Real) for g, _ in numbers)
        constant /= common
        if whole:
            constant = self.tight(numbers, shared, constant)
            if max(map(abs, self.ends(numbers, shared, constant))) > MAX_WHOLE:
                raise QuestionError("A rule adds up whole numbers beyond 2^45; round its numbers.")
        return [(AtLeast(numbers, shared, constant, whole),)]

    def tight(
        self, numbers: Sequence[tuple[int, int]], options: Sequence[tuple[int, tuple[int, ...]]], constant: Fraction
    ) -> Fraction:
        """The least constant that admits the same rows: the sum lies on a grid, and only its points above 0 count."""
        grid, offset = 0, constant
        for g, a in numbers:
            feature = self.schema.features[g]
            assert isinstance(feature, Integer)
            grid = math.gcd(grid, a * feature.step)
            offset += a * int(feature.lower)
        grid = math.gcd(grid, *(v for _, values in options for v in values))
        return constant - offset % grid

    def ends(
        self, numbers: Sequence[tuple[int, int]], options: Sequence[tuple[int, tuple[int, ...]]], constant: Fraction
    ) -> tuple[Fraction, Fraction]:
        """The least and the largest value on rows of the schema."""
        least = largest = constant
        for g, a in numbers:
            feature = self.schema.features[g]
            assert isinstance(feature, Numeric)
            values = (a * written(feature.lower), a * written(feature.upper))
            least, largest = least + min(values), largest + max(values)
        for _, of_options in options:
            least, largest = least + min(of_options), largest + max(of_options)
        return least, largest

    def unit(self, one: Member) -> list[Clause]:
        if not one.options:
            return [()]
        return [] if one.options == self.options(one.feature) else [(one,)]

    def options(self, g: int) -> frozenset[int]:
        feature = self.schema.features[g]
        assert isinstance(feature, Choice)
        return frozenset(range(len(feature.options)))


def _implies(one: Clause, other: Clause) -> bool:
    return all(any(_stronger(a, b) for b in other) for a in one)


def _stronger(a: Member | AtLeast, b: Member | AtLeast) -> bool:
    if isinstance(a, Member) or isinstance(b, Member):
        return isinstance(a, Member) and isinstance(b, Member) and a.feature == b.feature and a.options <= b.options
    return a.weights == b.weights and a.constant <= b.constant


def _opposite(one: AtLeast) -> Weights:
    """The weights of the same sum with the other sign, its least option again counting 0."""
    return (
        tuple((g, -a) for g, a in one.numbers),
        tuple((g, tuple(max(values) - v for v in values)) for g, values in one.options),
    )


def _too_many() -> QuestionError:
    return QuestionError(
        f"This rule unfolds into more than {MAX_CLAUSES} cases; split it into several rules, or say less in one 'or'."
    )


def _refused(schema: Schema, formula: Compare, linear: Linear, sign: str) -> QuestionError:
    """Why an open or a pointlike condition on real numbers cannot be honoured, and what to write instead."""
    (real, slope), *_ = ((f, a) for g, a in linear.numbers if isinstance(f := schema.features[g], Real))
    name = show_name(real.name)
    why, instead = {
        ">": ("has no nearest row", ">= or <= with the least difference that counts"),
        "=": ("is one value, which rounding may miss", ">= and <= with room between them"),
        "!=": ("has no nearest row", "by how much it must differ, with >= or <="),
    }[sign]
    if len(linear.numbers) == 1 and not linear.options:
        end, slack = (
            Fraction(-linear.constant, slope),
            Fraction(1, 100) if real.width >= 1 else Fraction(real.width) / 100,
        )
        low, high = (
            clear_number(float(v))
            for v in (max(end - slack, written(real.lower)), min(end + slack, written(real.upper)))
        )
        below, above = f"{name} <= {clear_number(float(end - slack))}", f"{name} >= {clear_number(float(end + slack))}"
        instead = {
            ">": above if slope > 0 else below,
            "=": f"a range such as {name} in [{low}, {high}]",
            "!=": f"{below} or {above}",
        }[sign]
    return QuestionError(f"'{formula.words}' {why} since {name} is a real number: write {instead}.")


# ---------------------------------------------------------------------- pieces of network


def _part(columns: UnrolledColumns, clause: Clause) -> Part:
    return clause_part(columns, literals(columns, clause))


def literals(columns: UnrolledColumns, clause: Clause) -> list[Literal]:
    """The inequalities of a clause, of which one must hold; of an empty one, an inequality that never does."""
    return [_literal(columns, one) for one in clause] or [Literal(np.zeros(columns.width), -1.0)]


def _literal(columns: UnrolledColumns, one: Member | AtLeast) -> Literal:
    """The inequality over unrolled columns; one of real numbers is scaled to the size of 1."""
    weight = np.zeros(columns.width)
    if isinstance(one, Member):
        weight[[int(columns.start[one.feature]) + i for i in one.options]] = 1.0
        return Literal(weight, -1.0)
    scale = Fraction(1) if one.whole else _scale(columns, one)
    for g, a in one.numbers:
        weight[columns.start[g]] = float(a * scale)
    for g, values in one.options:
        weight[columns.start[g] : columns.start[g + 1]] = [float(v * scale) for v in values]
    constant = float(one.constant * scale)
    gap = 0.0 if one.whole else float(scale * _gap(columns.schema, one))
    if not one.whole and columns.largest(weight) + constant == 0.0:
        constant, gap = constant + END_ROOM, max(0.0, gap - END_ROOM)
    return Literal(weight, constant, gap)


def _gap(schema: Schema, one: AtLeast) -> Fraction:
    """How far below 0 the sum is at least where it is below 0 and all of its numbers are on their grids; 0 where one of
    them has none, or one whose numbers are no decimals: of thirds, a rule judges the decimals that are written."""
    unit, offset = Fraction(0), one.constant
    for g, a in one.numbers:
        feature = schema.features[g]
        if isinstance(feature, Integer):
            step, origin = Fraction(feature.step), written(feature.lower)
        elif (grid := schema.grids.get(g)) is not None and grid.decimal:
            step, origin = grid.step, Fraction(grid.first, grid.parts)
        else:
            return Fraction(0)
        unit, offset = _common(unit, a * step), offset + a * origin
    for _, values in one.options:
        for value in values:
            unit = _common(unit, Fraction(value))
    return unit - offset % unit


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The greatest number of which both are multiples."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _scale(columns: UnrolledColumns, one: AtLeast) -> Fraction:
    """A power of 2 (nothing is rounded) that brings the spread of the sum near 1."""
    schema = columns.schema
    widths = [abs(a) * Fraction(getattr(schema.features[g], "width", 0)) for g, a in one.numbers]
    spread = sum(widths, Fraction(sum(max(values) for _, values in one.options)))
    exponent = spread.denominator.bit_length() - spread.numerator.bit_length() if spread else 0
    return Fraction(2) ** exponent
