"""The grammar of rules, by recursive descent. A rule is only ever read, never run.

    rule        if rule then rule [else rule]  |  either [only if rule]
    either      both or both ...
    both        denial and denial ...
    denial      not denial  |  comparison
    comparison  sum  |  sum >= sum <= sum ...  |  sum [not] in (value, ...)  |  sum [not] in [number, number]
                |  sum [not] between number and number
    sum         product + product - ...
    product     sign * sign / ...
    sign        - sign  |  number  |  name  |  (rule)  |  [rule]

The brackets [rule] make a number of a condition: 1 where it holds, else 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from ifonly.errors import QuestionError
from ifonly.problem.rules.syntax import (
    And,
    Between,
    Chain,
    Condition,
    Constant,
    Indicator,
    InList,
    Node,
    Not,
    Number,
    Or,
    Product,
    Sum,
    Tree,
    Word,
    constant,
    numbers_in,
)
from ifonly.problem.words import KEYWORDS, Token, tokens, wrong
from ifonly.schema.number_text import clear_number, other_reading, two_readings

MAX_DEPTH = 30
MAX_DIGITS = 150
"""A number is refused beyond this many digits or this exponent."""

STATING = ("at", "changes", "is", "only")
"""The words of sentences about change, which are no conditions on a row."""
COMPARATORS = (">=", "<=", ">", "<", "=", "!=")


def parse(text: str) -> Condition:
    """The tree of a rule."""
    return Parser(text).whole()


def number(text: str, token: Token) -> Constant:
    """A constant, exactly as written."""
    plain = token.value.replace(",", "")
    mantissa, _, exponent = plain.lower().partition("e")
    if len(mantissa) > MAX_DIGITS or abs(int((exponent or "0")[:9])) > MAX_DIGITS or len(exponent) > 9:
        raise wrong(text, token.start, token.end, "This number is too long or too large")
    if re.fullmatch("0[0-9][0-9]", mantissa) and text[token.start - 1 : token.start] == ",":
        raise wrong(text, token.start, token.end, "In a list a comma parts two values: write 1000 for 1,000")
    return Constant(token.start, token.end, plain, Fraction(plain), other_reading(token.value))


def two_ways(text: str, one: Node, why: str = "") -> QuestionError:
    """A number that may be meant by either decimal mark."""
    said = text[one.start : one.end]
    return wrong(text, one.start, one.end, f"'{said}' may be {two_readings(said)}{why}: write it as one of these")


def clearly(text: str) -> str:
    """The text of a rule, with its numbers as they were understood, in a form that every reader reads alike."""
    parts, place = [], 0
    for token in tokens(text):
        if token.kind == "number" and ("," in token.value or other_reading(token.value) is not None):
            plain = token.value.replace(",", "")
            short = clear_number(float(plain))
            exact = Fraction(short) == Fraction(plain)
            parts += [text[place : token.start], short if exact else plain]
            place = token.end
    return "".join([*parts, text[place:]])


def _backwards(between: Between) -> bool:
    assert between.lower is not None and between.upper is not None
    lower, upper = constant(between.lower), constant(between.upper)
    return lower is not None and upper is not None and lower > upper


class Parser:
    """Reads the words of one rule from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.place = 0
        self.depth = 0

    # ------------------------------------------------------------------ conditions

    def whole(self) -> Condition:
        rule = self.condition(self.rule())
        if self.here.kind != "end":
            words = f"{self.before.value} {self.here.value}"
            raise self.unexpected(
                f"a name of several words stands in quotes, such as '{words}'"
                if self.here.kind == self.before.kind == "word"
                else "the rule is complete before this; join two by and, or, or give two rules"
            )
        return rule

    def rule(self) -> Tree:
        with self.deeper():
            if self.takes("if"):
                return self.implication(self.before.start)
            first = self.either()
            if self.here.value == "only" and self.next.value == "if" and self.takes("only", "if"):
                needed = self.condition(self.rule())
                denied = Not(first.start, first.end, self.condition(first))
                return Or(first.start, needed.end, (denied, needed))
            return first

    def implication(self, start: int) -> Condition:
        if_ = self.condition(self.rule())
        self.needs("then", "after the condition of 'if' comes 'then'")
        then = self.condition(self.rule())
        denied = Not(if_.start, if_.end, if_)
        result: Condition = Or(start, then.end, (denied, then))
        if self.takes("else"):
            other = self.condition(self.rule())
            result = And(start, other.end, (result, Or(start, other.end, (if_, other))))
        return result

    def either(self) -> Tree:
        return self.joined("or", self.both, Or)

    def both(self) -> Tree:
        return self.joined("and", self.denial, And)

    def joined(self, word: str, read: Callable[[], Tree], kind: type[And] | type[Or]) -> Tree:
        first = read()
        if self.here.kind != "word" or self.here.value != word:
            return first
        parts = [self.condition(first)]
        while self.takes(word):
            parts.append(self.condition(read()))
        return kind(first.start, parts[-1].end, tuple(parts))

    def denial(self) -> Tree:
        if self.takes("not"):
            start = self.before.start
            with self.deeper():
                part = self.condition(self.denial())
            return Not(start, part.end, part)
        if self.here.kind == "word" and self.here.value == "if":
            return self.rule()
        return self.comparison()

    def comparison(self) -> Tree:
        first = self.sum()
        if self.here.kind == "sign" and self.here.value in COMPARATORS:
            items, signs = [self.number(first)], []
            while self.here.kind == "sign" and self.here.value in COMPARATORS:
                signs.append(self.advance().value)
                items.append(self.number(self.sum()))
            return Chain(first.start, items[-1].end, tuple(items), tuple(signs))
        denied = self.here.value == "not" and self.next.value in ("in", "between") and self.takes("not")
        if self.takes("in"):
            among = self.among(self.number(first))
        elif self.takes("between"):
            among = self.between(self.number(first))
        else:
            return first
        return Not(among.start, among.end, among) if denied else among

    def between(self, item: Number) -> Between:
        lower = self.number(self.sum())
        self.needs("and", "a range looks like: between 18 and 65")
        upper = self.number(self.sum())
        return self.forwards(Between(item.start, upper.end, item, lower, upper))

    def forwards(self, between: Between) -> Between:
        """A range has its lower end first."""
        if between.lower is None or between.upper is None:
            return between
        for one in (*numbers_in(between.lower), *numbers_in(between.upper)):
            if isinstance(one, Constant) and one.other is not None and _backwards(between):
                raise two_ways(self.text, one)
        if _backwards(between):
            low, high = (self.text[end.start : end.end] for end in (between.upper, between.lower))
            message = f"This range runs backwards; write [{low}, {high}]"
            raise wrong(self.text, between.lower.start, between.upper.end, message)
        return between

    def among(self, item: Number) -> InList | Between:
        if self.takes("["):
            lower = self.end_of_range("-")
            self.needs(",", "a range looks like [18, 65]")
            upper = self.end_of_range("")
            self.needs("]", "a range looks like [18, 65]")
            return self.forwards(Between(item.start, self.before.end, item, lower, upper))
        self.needs("(", "after 'in' comes a list such as (a, b) or a range such as [18, 65]")
        values = [self.number(self.sum())]
        while self.takes(","):
            values.append(self.number(self.sum()))
        self.needs(")", "a list looks like (a, b)")
        return InList(item.start, self.before.end, item, tuple(values))

    def end_of_range(self, sign: str) -> Number | None:
        place = self.place
        if (not sign or self.takes(sign)) and self.takes("inf"):
            return None
        self.place = place
        return self.number(self.sum())

    # ------------------------------------------------------------------ numbers

    def sum(self) -> Tree:
        first = self.product()
        if self.here.kind != "sign" or self.here.value not in "+-":
            return first
        terms = [(1, self.number(first))]
        while self.here.kind == "sign" and self.here.value in "+-":
            sign = 1 if self.advance().value == "+" else -1
            terms.append((sign, self.number(self.product())))
        return Sum(first.start, terms[-1][1].end, tuple(terms))

    def product(self) -> Tree:
        first = self.sign()
        if self.here.kind != "sign" or self.here.value not in "*/":
            return first
        factors = [("*", self.number(first))]
        while self.here.kind == "sign" and self.here.value in "*/":
            factors.append((self.advance().value, self.number(self.sign())))
        return Product(first.start, factors[-1][1].end, tuple(factors))

    def sign(self) -> Tree:
        if self.takes("-"):
            start = self.before.start
            with self.deeper():
                one = self.number(self.sign())
            return Sum(start, one.end, ((-1, one),))
        return self.primary()

    def primary(self) -> Tree:
        token = self.here
        if token.kind == "number":
            return number(self.text, self.advance())
        if token.kind == "text" or (token.kind == "word" and (token.value not in KEYWORDS or token.value == "missing")):
            self.advance()
            return Word(token.start, token.end, token.value, token.kind == "text")
        if self.takes("("):
            inside = self.rule()
            self.needs(")", "a bracket is opened and not closed")
            return inside
        if self.takes("["):
            condition = self.condition(self.rule())
            self.needs("]", "a number made of a condition looks like [Job = none]")
            return Indicator(token.start, self.before.end, condition)
        also = "; as the name of a feature it stands in quotes" if token.kind == "word" else ""
        raise self.unexpected(f"here a feature, a number or a bracket should stand{also}")

    # ------------------------------------------------------------------ kinds

    def condition(self, tree: Tree) -> Condition:
        if isinstance(tree, Constant | Sum | Product | Indicator):
            raise wrong(self.text, tree.start, tree.end, "This is a number, not a condition; compare it with >= or <=")
        return tree

    def number(self, tree: Tree) -> Number:
        if isinstance(tree, Constant | Word | Sum | Product | Indicator):
            return tree
        hint = "This is a condition, not a number; in [ ] it counts 1 where it holds and 0 elsewhere"
        raise wrong(self.text, tree.start, tree.end, hint)

    # ------------------------------------------------------------------ words

    @property
    def here(self) -> Token:
        return self.tokens[self.place]

    @property
    def next(self) -> Token:
        return self.tokens[min(self.place + 1, len(self.tokens) - 1)]

    @property
    def before(self) -> Token:
        return self.tokens[self.place - 1]

    def advance(self) -> Token:
        self.place += 1
        return self.before

    def takes(self, *words: str) -> bool:
        """Go past these words if they come next."""
        ahead = self.tokens[self.place : self.place + len(words)]
        if [t.value for t in ahead] != list(words) or any(t.kind not in ("word", "sign") for t in ahead):
            return False
        self.place += len(words)
        return True

    def needs(self, word: str, hint: str) -> None:
        if not self.takes(word):
            raise self.unexpected(hint)

    def unexpected(self, hint: str) -> QuestionError:
        token = self.here
        if token.kind == "end":
            return wrong(self.text, len(self.text), len(self.text) + 1, f"The rule ends too early: {hint}")
        if token.kind == "sign" and token.value == "," and self.before.kind == "number":
            hint = "numbers are written without commas in brackets, such as 3000"
        elif token.kind == "word" and token.value in STATING:
            hint = "a sentence such as 'Age is fixed' or 'at most 2 changes' stands alone, and is no Rule but a text"
        return wrong(self.text, token.start, token.end, f"Unexpected '{token.value}': {hint}")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise wrong(self.text, self.here.start, self.here.end, f"A rule is nested at most {MAX_DEPTH} deep")
        yield
        self.depth -= 1
