"""Definitions of derived features: the value of a feature as a function of others.

    TotalOverdueCounts > 0                                      a condition, for a feature with two options
    Low + High, 2 * Rooms + 3, Weight / Height                  a number
    max(Bill, Payment), min(a, b, 10)                           the largest, the smallest
    if Age < 25 then young else if Age < 65 then middle else old

A definition is compiled to a formula over the row, `feature = definition`. A number is rounded to the grid of its
feature: integers, and real numbers with a step. Products and ratios of features are expanded over the values of a
factor that has few. Over real numbers, a threshold t and its opposite are x >= t and x <= t - a little: 2^-30 of the
range, or half a step; no row has a number in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, assert_never

from ifonly.errors import QuestionError
from ifonly.problem.rules import parser, syntax
from ifonly.problem.rules.formulas import Compare, Denial, Every, Formula, Member, Some
from ifonly.problem.rules.meaning import Amount, NonLinear, TreeReader
from ifonly.problem.words import show_name
from ifonly.schema import Choice, Integer, Numeric, Real, Schema
from ifonly.schema.decimals import written

MAX_VALUES = 200
"""Values of a factor over which a product or a ratio is expanded."""
MAX_ALTERNATIVES = 40
MAX_CASES = 1000
"""Of a definition: products and ratios by the values of their factors, and alternatives by if ... then ... else."""
CLOSED = Fraction(1, 2**30)
"""A share of the spread of a comparison of real numbers: how far its two sides are apart."""


@dataclass(frozen=True, slots=True)
class Extreme(syntax.Node):
    """max(...) or min(...)."""

    largest: bool
    items: tuple[syntax.Number, ...]


@dataclass(frozen=True, slots=True)
class Cases(syntax.Node):
    """The first case whose condition holds; None, the last, always does."""

    cases: tuple[tuple[syntax.Condition | None, Definition], ...]


Definition: TypeAlias = Cases | Extreme | syntax.Tree


class DefinitionParser(parser.Parser):
    """Parses the text of a definition."""

    def complete(self) -> Definition:
        found = self.definition()
        if self.here.kind != "end":
            raise self.unexpected("the definition is complete before this")
        return found

    def definition(self) -> Definition:
        with self.deeper():
            start, cases = self.here.start, list[tuple[syntax.Condition | None, Definition]]()
            while self.takes("if"):
                condition = self.condition(self.rule())
                self.needs("then", "after the condition of 'if' comes 'then'")
                cases.append((condition, self.definition()))
                if len(cases) > MAX_ALTERNATIVES:
                    raise self.unexpected(f"a definition has at most {MAX_ALTERNATIVES} alternatives in a row")
                self.needs("else", "a definition has a value for every row: after 'if ... then ...' comes 'else'")
            last = self.value()
            return Cases(start, last.end, (*cases, (None, last))) if cases else last

    def value(self) -> Definition:
        word = self.here
        if word.kind == "word" and word.value in ("min", "max") and self.next.value == "(":
            self.advance()
            self.advance()
            items = [self.number(self.sum())]
            while self.takes(","):
                items.append(self.number(self.sum()))
            self.needs(")", f"a list looks like {word.value}(a, b)")
            return Extreme(word.start, self.before.end, word.value == "max", tuple(items))
        return self.either()


def definition_formula(text: str, feature: str, schema: Schema) -> Formula:
    """`feature = definition` as a formula over rows of the schema: a conjunction."""
    return _DefinitionReader(text, schema, schema.index(feature)).follows(DefinitionParser(text).complete())


class _DefinitionReader(TreeReader):
    """Reads the definition of one feature."""

    def __init__(self, text: str, schema: Schema, defined: int) -> None:
        super().__init__(text, schema)
        self.g, self.defined, self.cases_so_far = defined, schema.features[defined], 1
        if isinstance(self.defined, Real) and self.defined.grid is None:
            raise QuestionError(
                f"{show_name(self.defined.name)} is a real number without a step, and a derived number is rounded to "
                f"one: give it a step in the schema, such as 0.01."
            )

    def feature(self, word: syntax.Word) -> Any:
        return self.other(word, super().feature(word))

    def choice(self, tree: syntax.Number) -> Choice | None:
        return self.other(tree, super().choice(tree))

    def other(self, node: syntax.Node, feature: Any) -> Any:
        if feature is self.defined:
            raise self.wrong(node, f"{show_name(self.defined.name)} cannot be defined by itself")
        return feature

    def follows(self, tree: Definition) -> Formula:
        if (table := self.table(tree)) is not None:
            return table
        match tree:
            case Cases():
                return self.cases(tree)
            case Extreme():
                return self.extreme(tree)
            case syntax.Constant() | syntax.Word() | syntax.Sum() | syntax.Product() | syntax.Indicator():
                return self.option_or_number(tree)
            case _:
                return self.condition_value(tree)

    def cases(self, tree: Cases) -> Formula:
        parts: list[Formula] = []
        earlier: list[Formula] = []
        for condition, value in tree.cases:
            if condition is None:
                parts.append(Some((*earlier, self.follows(value))))
            else:
                formula = self.condition(condition)
                parts.append(Some((*earlier, self.closed(formula, False), self.follows(value))))
                earlier.append(self.closed(formula, True))
        return Every(tuple(parts))

    # ------------------------------------------------------------------ features with options

    def condition_value(self, tree: syntax.Condition) -> Formula:
        """A condition: the second of two options where it holds, else the first."""
        if not isinstance(self.defined, Choice) or len(self.defined.options) != 2:
            raise self.wrong(
                tree, f"This is a condition, but {show_name(self.defined.name)} is {self.defined.describe()}"
            )
        formula = self.condition(tree)
        no, yes = (Member(self.g, frozenset((k,))) for k in no_and_yes(self.defined))
        return Every((Some((self.closed(formula, False), yes)), Some((self.closed(formula, True), no))))

    def option_or_number(self, tree: syntax.Number) -> Formula:
        if isinstance(self.defined, Numeric):
            return self.number(tree)
        known = self.known_option(self.defined, tree)
        if known is None and isinstance(tree, syntax.Word) and tree.name in self.schema.names:
            return self.condition_value(tree)
        return Member(self.g, frozenset((self.option(self.defined, tree) if known is None else known,)))

    def table(self, tree: Definition) -> Formula | None:
        """A number that depends on one feature with options, case by case: one equation. None if it is not so."""
        if not isinstance(tree, Cases) or not isinstance(self.defined, Integer):
            return None
        conditions = [self.condition(condition) for condition, _ in tree.cases if condition is not None]
        features = {one.feature for one in conditions if isinstance(one, Member)}
        values = [syntax.constant(value) if isinstance(value, syntax.Constant | syntax.Sum) else None
                  for _, value in tree.cases]  # fmt: skip
        if len(features) != 1 or not all(isinstance(one, Member) for one in conditions) or None in values:
            return None
        (g,) = features
        choice = self.schema.features[g]
        assert isinstance(choice, Choice)
        members = [one.options if isinstance(one, Member) else frozenset[int]() for one in conditions]
        chosen = [
            next((k for k, options in enumerate(members) if i in options), len(members))
            for i in range(len(choice.options))
        ]
        for k in sorted(set(chosen)):
            self.check_inside(tree.cases[k][1], values[k], values[k])
        return self.equal(Amount(options={g: [values[k] or Fraction(0) for k in chosen]}), tree)

    # ------------------------------------------------------------------ numbers

    def number(self, tree: syntax.Number) -> Formula:
        """The number equals an expression; where it multiplies features, for each value of one of them."""
        try:
            amount = self.amount(tree)
        except NonLinear as error:
            return self.for_each_value(tree, error)
        low, high = self.ends(amount)
        self.check_inside(tree, low, high)
        return self.equal(amount, tree)

    def for_each_value(self, tree: syntax.Number, error: NonLinear) -> Formula:
        finite = [(values, g) for g in error.features if (values := _values(self.schema.features[g])) is not None]
        if not finite:
            names = " and ".join(show_name(self.schema.names[g]) for g in sorted(error.features))
            raise self.wrong(
                error.node,
                f"A product or a ratio of features needs one with at most {MAX_VALUES} values (options, whole numbers, "
                f"or a step), and {names} have more",
            )
        values, g = min(finite, key=lambda one: len(one[0]))
        self.cases_so_far *= len(values)
        if self.cases_so_far > MAX_CASES:
            raise self.wrong(
                error.node, f"This product or ratio has more than {MAX_CASES} cases: say it with fewer values"
            )
        parts: list[Formula] = []
        for value in values:
            self.fixed[g] = value
            parts.append(Some((*self.differs(g, value), self.number(tree))))
        del self.fixed[g]
        self.cases_so_far //= len(values)
        return Every(tuple(parts))

    def differs(self, g: int, value: Fraction) -> Iterator[Formula]:
        """The feature has another value."""
        feature = self.schema.features[g]
        if isinstance(feature, Choice):
            yield Member(g, frozenset(range(len(feature.options))) - {int(value)})
            return
        near = _step(feature) / 2
        for sign in (1, -1):
            yield self.at_least(Amount(-sign * value - near, {g: Fraction(sign)}), "")

    def extreme(self, tree: Extreme) -> Formula:
        """The largest: not below any, and not above one of them."""
        if not isinstance(self.defined, Numeric):
            raise self.wrong(tree, f"This is a number, but {show_name(self.defined.name)} is {self.defined.describe()}")
        sign = Fraction(1 if tree.largest else -1)
        beyond: list[Formula] = []
        reached: list[Formula] = []
        for item in tree.items:
            amount = self.amount(item)
            slack = self.slack(amount)
            difference = self.difference(amount, sign)  # of max: defined - item
            difference.constant += slack
            beyond.append(self.at_least(difference, tree))
            opposite = self.difference(amount, -sign)
            opposite.constant += slack
            reached.append(self.at_least(opposite, tree))
        return Every((*beyond, Some(tuple(reached))))

    def equal(self, amount: Amount, node: syntax.Node) -> Formula:
        """feature = amount, to within half a step where it may be off the feature's grid."""
        slack = self.slack(amount)
        ends: list[Formula] = []
        for sign in (1, -1):
            difference = self.difference(amount, Fraction(sign))
            difference.constant += slack
            ends.append(self.at_least(difference, node))
        return Every(tuple(ends))

    def difference(self, amount: Amount, sign: Fraction) -> Amount:
        """sign * (feature - amount)."""
        result = Amount(numbers={self.g: sign})
        result.add(amount, -sign)
        return result

    def at_least(self, amount: Amount, node: Any) -> Compare:
        first = node if isinstance(node, syntax.Node) else syntax.Node(0, len(self.text))
        return Compare(self.linear(amount, first, first), ">=", self.words(first, first))

    def slack(self, amount: Amount) -> Fraction:
        """Half a step, unless every value of the amount is on the feature's grid of whole numbers."""
        step, lower = _step(self.defined), written(getattr(self.defined, "lower", 0))
        offset, on_grid = amount.constant - lower, isinstance(self.defined, Integer)
        for g, times in amount.numbers.items():
            feature = self.schema.features[g]
            on_grid &= isinstance(feature, Integer) and times * _step(feature) % step == 0
            offset += times * written(getattr(feature, "lower", 0))
        for values in amount.options.values():
            on_grid &= all((value - values[0]) % step == 0 for value in values)
            offset += values[0]
        return Fraction(0) if on_grid and offset % step == 0 else step / 2

    def ends(self, amount: Amount) -> tuple[Fraction, Fraction]:
        """The least and the largest value on rows of the schema."""
        low = high = amount.constant
        for g, times in amount.numbers.items():
            feature = self.schema.features[g]
            values = [times * written(end) for end in (getattr(feature, "lower", 0), getattr(feature, "upper", 0))]
            low, high = low + min(values), high + max(values)
        for options in amount.options.values():
            low, high = low + min(options), high + max(options)
        return low, high

    def check_inside(self, node: Any, low: Fraction | None, high: Fraction | None) -> None:
        """A value that the feature cannot have is refused; one that it cannot always have excludes those rows."""
        assert isinstance(self.defined, Numeric) and low is not None and high is not None
        near = _step(self.defined) / 2
        if high < written(self.defined.lower) - near or low > written(self.defined.upper) + near:
            said = f"{float(low):g}" if low == high else f"from {float(low):g} to {float(high):g}"
            raise self.wrong(
                node,
                f"This is {said}, outside the range of {show_name(self.defined.name)}, which is "
                f"{self.defined.describe()}",
            )

    # ------------------------------------------------------------------ thresholds of real numbers

    def closed(self, formula: Formula, positive: bool) -> Formula:
        """The formula, or its denial, in which comparisons of real numbers include their ends."""
        match formula:
            case Member(g, options):
                feature = self.schema.features[g]
                assert isinstance(feature, Choice)
                return formula if positive else Member(g, frozenset(range(len(feature.options))) - options)
            case Denial(part):
                return self.closed(part, not positive)
            case Every(parts) | Some(parts):
                inside = tuple(self.closed(part, positive) for part in parts)
                return Every(inside) if isinstance(formula, Every) == positive else Some(inside)
            case Compare(linear, sign, words):
                real = [g for g, _ in linear.numbers if isinstance(self.schema.features[g], Real)]
                sign = sign if positive else {">=": "<", ">": "<=", "=": "!=", "!=": "="}[sign]
                if sign in ("<", "<="):
                    linear, sign = linear.negative(), sign.replace("<", ">")
                if sign != ">" or not real:
                    return Compare(linear, sign, words)
                amount = Amount(
                    Fraction(linear.constant),
                    {g: Fraction(a) for g, a in linear.numbers},
                    {g: [Fraction(v) for v in values] for g, values in linear.options},
                )
                amount.constant -= self.apart(amount)
                return self.at_least(amount, "")
            case _:
                assert_never(formula)

    def apart(self, amount: Amount) -> Fraction:
        """How far the two sides of a comparison of real numbers are apart: half a step, or a little."""
        if len(amount.numbers) == 1 and not amount.options:
            ((g, times),) = amount.numbers.items()
            if (step := _step(self.schema.features[g])) > 0:
                return abs(times) * step / 2
        low, high = self.ends(amount)
        return CLOSED * (high - low)


def _step(feature: Any) -> Fraction:
    """The step of a number; 0 for a real number without one."""
    if isinstance(feature, Integer):
        return Fraction(feature.step)
    grid = getattr(feature, "grid", None)
    return Fraction(grid.step) if grid is not None else Fraction(0)


def _values(feature: Any) -> list[Fraction] | None:
    """The values of a feature (options by their number), if they are few."""
    if isinstance(feature, Choice):
        return [Fraction(k) for k in range(len(feature.options))] if len(feature.options) <= MAX_VALUES else None
    step, low, high = _step(feature), written(feature.lower), written(feature.upper)
    if step == 0 or (high - low) / step >= MAX_VALUES:
        return None
    return [low + k * step for k in range(int((high - low) / step) + 1)]


def no_and_yes(choice: Choice) -> tuple[int, int]:
    """The numbers of the options that stand for a condition that fails, and for one that holds."""
    for no, yes in ((False, True), ("no", "yes"), ("No", "Yes"), ("N", "Y"), ("false", "true")):
        if set(choice.options) == {no, yes}:
            return choice.options.index(no), choice.options.index(yes)
    return 0, 1


def refuse_cycles(definitions: dict[str, frozenset[str]]) -> None:
    """Raise the error of features that are defined by each other. `definitions`: of each feature, what it looks at."""
    done: set[str] = set()
    for name in definitions:
        path = [name]
        while path:
            ahead = next((f for f in sorted(definitions.get(path[-1], frozenset())) if f not in done), None)
            if ahead is None or ahead not in definitions:
                done.add(path.pop() if ahead is None else ahead)
            elif ahead in path:
                around = " from ".join(show_name(f) for f in (*path[path.index(ahead) :], ahead))
                raise QuestionError(f"Derived features go round in a circle: {around}; define one of them otherwise.")
            else:
                path.append(ahead)
