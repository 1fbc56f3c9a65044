"""Syntax trees of rules, which know no schema yet. Nodes say where in the text they stand, for error messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Node:
    """Where it stands in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Constant(Node):
    text: str
    value: Fraction
    other: Fraction | None = None
    """What it would be by the other decimal mark (10.000 is 10, or 10000); None where that is not possible."""


@dataclass(frozen=True, slots=True)
class Word(Node):
    """The name of a feature or of an option."""

    name: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Sum(Node):
    terms: tuple[tuple[int, Number], ...]
    """Each with its sign, 1 or -1."""


@dataclass(frozen=True, slots=True)
class Product(Node):
    factors: tuple[tuple[str, Number], ...]
    """Each with * or / before it; the first with *."""


@dataclass(frozen=True, slots=True)
class Indicator(Node):
    condition: Condition


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """first >= second <= third ...: every neighbouring pair compares so."""

    items: tuple[Number, ...]
    comparators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InList(Node):
    item: Number
    values: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Between(Node):
    """Ends that are None are open: -inf and inf."""

    item: Number
    lower: Number | None
    upper: Number | None


@dataclass(frozen=True, slots=True)
class And(Node):
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    part: Condition


Number: TypeAlias = Constant | Word | Sum | Product | Indicator
Condition: TypeAlias = Chain | InList | Between | And | Or | Not | Word
Tree: TypeAlias = Number | Condition


def numbers_in(tree: Number) -> Iterator[Constant | Word]:
    """The constants and the names of an expression; those of a condition that counts as a number are not its own."""
    match tree:
        case Constant() | Word():
            yield tree
        case Sum():
            yield from (one for _, term in tree.terms for one in numbers_in(term))
        case Product():
            yield from (one for _, factor in tree.factors for one in numbers_in(factor))


def constant(tree: Number) -> Fraction | None:
    """The value of a number that is written out, such as 18 or -5; None where features have a part in it."""
    if isinstance(tree, Constant):
        return tree.value
    if not isinstance(tree, Sum):
        return None
    values = [constant(one) for _, one in tree.terms]
    signs = [sign for sign, _ in tree.terms]
    return None if None in values else sum((s * v for s, v in zip(signs, values, strict=True) if v), Fraction(0))
