"""Semantics of rules: names become features, words become options, comparisons become formulas (`formulas`).

A bound on one real number is the float64 nearest to what was written, as it is everywhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from ifonly.errors import QuestionError, RowError, RuleError
from ifonly.problem.rules import parser, syntax
from ifonly.problem.rules.formulas import (
    COMPARES,
    Compare,
    Denial,
    Every,
    Formula,
    Linear,
    Member,
    Some,
    features_of,
    holds_each,
    without_missing,
)
from ifonly.problem.rules.unclear import unclear
from ifonly.problem.words import show_name, show_option, suggestion, wrong
from ifonly.schema import Choice, Numeric, Real, Schema
from ifonly.schema.decimals import written

MAX_BITS = 4096
"""Numbers that arise on the way are refused beyond this size."""
_DIVIDES = "A rule divides only by numbers other than 0"
_TOO_LARGE = "The numbers here are too large, or have too many digits"

_BARE: dict[str, tuple[Any, ...]] = {"missing": (None,), "true": (True,), "false": (False,)}
_OPPOSITE = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "=": "=", "!=": "!="}


def understand(text: str, tree: syntax.Condition, schema: Schema) -> Formula:
    """The tree of a rule, read for a schema. Where numbers are missing, the part that does not need them."""
    formula = TreeReader(text, schema.whole if schema.unknown else schema).condition(tree)
    return without_missing(formula, schema) if schema.unknown else formula


@dataclass
class Amount:
    """A linear expression in the making."""

    constant: Fraction = Fraction(0)
    numbers: dict[int, Fraction] = field(default_factory=dict)
    options: dict[int, list[Fraction]] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        return not self.numbers and not self.options

    def add(self, other: Amount, times: Fraction) -> None:
        self.constant += times * other.constant
        for g, a in other.numbers.items():
            self.numbers[g] = self.numbers.get(g, Fraction(0)) + times * a
        for g, values in other.options.items():
            mine = self.options.get(g) or [Fraction(0)] * len(values)
            self.options[g] = [m + times * v for m, v in zip(mine, values, strict=True)]

    @property
    def bits(self) -> int:
        every = [self.constant, *self.numbers.values(), *(v for values in self.options.values() for v in values)]
        return max(max(abs(v.numerator), v.denominator).bit_length() for v in every)


class NonLinear(RuleError):
    """Features are multiplied, or something is divided by them: these, one of which would have to be a number."""

    node: syntax.Node
    features: frozenset[int]


class TreeReader:
    """Reads one tree."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema = text, schema
        self.fixed: dict[int, Fraction] = {}
        """Features that stand for one value each (options: for their number)."""

    def wrong(self, node: syntax.Node, message: str) -> QuestionError:
        return wrong(self.text, node.start, node.end, message)

    def words(self, first: syntax.Node, last: syntax.Node) -> str:
        return " ".join(self.text[first.start : last.end].split())

    # ------------------------------------------------------------------ conditions

    def condition(self, tree: syntax.Condition) -> Formula:
        match tree:
            case syntax.Chain():
                pairs = zip(tree.items, tree.comparators, tree.items[1:], strict=False)
                parts = tuple(self.compare(left, sign, right) for left, sign, right in pairs)
                return parts[0] if len(parts) == 1 else Every(parts)
            case syntax.InList():
                return self.among(tree)
            case syntax.Between():
                if (choice := self.choice(tree.item)) is not None:
                    raise self.wrong(tree.item, f"{show_name(choice.name)} has options, not numbers: use in (a, b)")
                ends = ((tree.lower, ">="), (tree.upper, "<="))
                return Every(tuple(self.compare(tree.item, sign, end) for end, sign in ends if end is not None))
            case syntax.And():
                return Every(tuple(self.condition(part) for part in tree.parts))
            case syntax.Or():
                return Some(tuple(self.condition(part) for part in tree.parts))
            case syntax.Not():
                return Denial(self.condition(tree.part))
            case syntax.Word():
                return self.flag(tree)
            case _:
                assert_never(tree)

    def flag(self, word: syntax.Word) -> Formula:
        """A feature alone, where True is one of its options."""
        feature = self.feature(word)
        if isinstance(feature, Choice) and any(option is True for option in feature.options):
            return Member(self.schema.index(word.name), frozenset((feature.options.index(True),)))
        example = ">= 1" if isinstance(feature, Numeric) else f"= {show_option(feature.options[0])}"
        raise self.wrong(word, f"This alone is no condition; compare it, such as {show_name(word.name)} {example}")

    def among(self, tree: syntax.InList) -> Formula:
        choice = self.choice(tree.item)
        if choice is None:
            return Some(tuple(self.compare(tree.item, "=", value) for value in tree.values))
        options = frozenset(self.option(choice, value) for value in tree.values)
        return Member(self.schema.index(choice.name), options)

    def compare(self, left: syntax.Number, sign: str, right: syntax.Number) -> Formula:
        mine, other = self.choice(left), self.choice(right)
        if mine is not None and other is not None and self.known_option(mine, right) is None:
            if self.known_option(other, left) is not None:  # the option on the left is also the name of a feature
                mine = None
            else:
                raise self.wrong(right, f"Two features with options cannot be compared; name {_some_option(mine)}")
        if mine is not None:
            return self.compare_option(mine, left, sign, right)
        if other is not None:
            return self.compare_option(other, right, _OPPOSITE[sign], left)
        return self.compare_numbers(left, sign, right)

    def compare_option(self, choice: Choice, item: syntax.Node, sign: str, value: syntax.Number) -> Formula:
        index = self.option(choice, value)
        if sign not in ("=", "!=") and not choice.ordered:
            raise self.wrong(item, f"The categories of {show_name(choice.name)} have no order; use =, != or in")
        options = frozenset(i for i in range(len(choice.options)) if COMPARES[sign](i, index))
        return Member(self.schema.index(choice.name), options)

    def check_clear(self, amount: Amount, *sides: syntax.Number) -> None:
        """Refuse a number that may be meant by either decimal mark, by the features that it is compared with."""
        beside = {self.schema.features[g]: times for g, times in amount.numbers.items() if times}
        for one in (one for side in sides for one in syntax.numbers_in(side)):
            if isinstance(one, syntax.Constant) and unclear(beside, one):
                named = ", ".join(f"{show_name(feature.name)} is {feature.describe()}" for feature in beside)
                raise parser.two_ways(self.text, one, f", where {named}")

    def compare_numbers(self, left: syntax.Number, sign: str, right: syntax.Number) -> Formula:
        difference = self.amount(left)
        difference.add(self.amount(right), Fraction(-1))
        self.check_clear(difference, left, right)
        linear = self.linear(difference, left, right)
        if sign in ("<", "<="):
            linear, sign = linear.negative(), _OPPOSITE[sign]
        return Compare(linear, sign, self.words(left, right))

    def linear(self, amount: Amount, first: syntax.Node, last: syntax.Node) -> Linear:
        """In whole coefficients."""
        if amount.bits > MAX_BITS:
            raise wrong(self.text, first.start, last.end, _TOO_LARGE)
        numbers = {g: a for g, a in amount.numbers.items() if a}
        options = {g: values for g, values in amount.options.items() if len(set(values)) > 1}
        constant = amount.constant + sum(v[0] for g, v in amount.options.items() if g not in options)
        if len(numbers) == 1 and not options:
            (g, a), *_ = numbers.items()
            if isinstance(self.schema.features[g], Real):
                try:
                    constant = -a * written(float(-constant / a))
                except OverflowError:
                    raise wrong(self.text, first.start, last.end, _TOO_LARGE) from None
        every = [constant, *numbers.values(), *(v for values in options.values() for v in values)]
        scale = math.lcm(*(v.denominator for v in every))
        return Linear(
            tuple((g, int(a * scale)) for g, a in sorted(numbers.items())),
            tuple((g, tuple(int(v * scale) for v in values)) for g, values in sorted(options.items())),
            int(constant * scale),
        )

    # ------------------------------------------------------------------ numbers

    def amount(self, tree: syntax.Number) -> Amount:
        match tree:
            case syntax.Constant():
                return Amount(tree.value)
            case syntax.Word():
                feature = self.feature(tree)
                if isinstance(feature, Choice):
                    example = f"[{show_name(feature.name)} = {show_option(feature.options[0])}]"
                    hint = f"{example} is a number: 1 where it holds, else 0"
                    raise self.wrong(tree, f"{show_name(feature.name)} has options, not numbers; {hint}")
                g = self.schema.index(tree.name)
                return Amount(self.fixed[g]) if g in self.fixed else Amount(numbers={g: Fraction(1)})
            case syntax.Sum():
                total = Amount()
                for sign, term in tree.terms:
                    total.add(self.amount(term), Fraction(sign))
                return total
            case syntax.Product():
                return self.product(tree)
            case syntax.Indicator():
                return self.indicator(tree)
            case _:
                assert_never(tree)

    def product(self, tree: syntax.Product) -> Amount:
        result = Amount(Fraction(1))
        for sign, factor in tree.factors:
            amount = self.amount(factor)
            if sign == "/" and amount.plain and not amount.constant:
                where = " and ".join(
                    f"{show_name(self.schema.names[g])} is {float(v):g}" for g, v in self.fixed.items()
                )
                raise self.wrong(factor, f"This is 0 where {where}" if where else _DIVIDES)
            if sign == "/" and not amount.plain:
                raise self.nonlinear(factor, _DIVIDES, amount)
            if not amount.plain and not result.plain:
                raise self.nonlinear(factor, "A rule multiplies features only by numbers", amount, result)
            if amount.plain:
                times, base = (1 / amount.constant if sign == "/" else amount.constant), result
            else:
                times, base = result.constant, amount
            result = Amount()
            result.add(base, times)
            if result.bits > MAX_BITS:
                raise self.wrong(tree, _TOO_LARGE)
        return result

    def nonlinear(self, node: syntax.Node, message: str, *amounts: Amount) -> NonLinear:
        error = NonLinear(str(self.wrong(node, message)))
        error.node = node
        error.features = frozenset(g for one in amounts for g in (*one.numbers, *one.options))
        return error

    def indicator(self, tree: syntax.Indicator) -> Amount:
        formula = self.condition(tree.condition)
        features = sorted(features_of(formula))
        if not features:
            return Amount(Fraction(int(holds_each(formula, np.zeros((1, 0)))[0])))
        choice = self.schema.features[features[0]]
        if len(features) > 1 or not isinstance(choice, Choice):
            hint = "a condition on one feature with options can be a number, such as [Job = none]"
            raise self.wrong(tree, f"Only {hint}")
        points = np.zeros((len(choice.options), len(self.schema)))
        points[:, features[0]] = np.arange(len(points))
        values = [Fraction(int(held)) for held in holds_each(formula, points)]
        if features[0] in self.fixed:
            return Amount(values[int(self.fixed[features[0]])])
        return Amount(options={features[0]: values})

    # ------------------------------------------------------------------ names

    def feature(self, word: syntax.Word) -> Any:
        if word.name in self.schema.names:
            return self.schema[word.name]
        labels = [feature.label or feature.name for feature in self.schema.features]
        hint = suggestion(word.name, labels, self.schema.names)
        start = word.name.split("-")[0]
        if not word.quoted and start != word.name and start in self.schema.names:
            hint = f"for a minus, put spaces around it: {' - '.join(word.name.split('-'))}"
        raise self.wrong(word, f"There is no feature '{word.name}'; {hint}")

    def choice(self, tree: syntax.Number) -> Choice | None:
        """The feature with options that this names, or None."""
        if not isinstance(tree, syntax.Word) or tree.name not in self.schema.names:
            return None
        feature = self.schema[tree.name]
        return feature if isinstance(feature, Choice) else None

    def option(self, choice: Choice, tree: syntax.Number) -> int:
        index = self.known_option(choice, tree)
        if isinstance(tree, syntax.Constant) and tree.other is not None and index is not None:
            other = self.known_option(choice, syntax.Constant(tree.start, tree.end, "", tree.other))
            if other is not None and choice.options[index] != self.text[tree.start : tree.end]:
                raise parser.two_ways(self.text, tree)
        if index is None:
            said = self.text[tree.start : tree.end]
            hint = suggestion(tree.name if isinstance(tree, syntax.Word) else said, choice.options)
            if not isinstance(tree, syntax.Word | syntax.Constant):
                hint += " Options with spaces or signs stand in quotes."
            raise self.wrong(tree, f"{show_name(choice.name)} has no option {said}; {hint}")
        return index

    @staticmethod
    def known_option(choice: Choice, tree: syntax.Number) -> int | None:
        """The option that a word or a number means.

        In quotes, text comes first and what it means second ('1' is "1", then 1); bare, the other way round.
        """
        meant: list[Any]
        match tree:
            case syntax.Word(name=name, quoted=True):
                meant = [name]
            case syntax.Word(name=name):
                meant = [*_BARE.get(name.lower(), ()), name]
            case syntax.Constant(text=text, value=value):
                meant = [float(value), text]
            case syntax.Sum(terms=((-1, syntax.Constant(text=text, value=value)),)):
                meant = [-float(value), f"-{text}"]
            case _:
                return None
        for value in meant:
            try:
                return int(choice.read(value))
            except RowError:
                pass
        return None


def _some_option(choice: Choice) -> str:
    return f"an option of {show_name(choice.name)}, such as {show_option(choice.options[0])}"
