"""Rules between features as trees: their text, and what they mean, in rational arithmetic.

["sum", [[coefficient, name], ...], op, constant]     2 * a - b <= 3.5
["in", name, [option, ...]]                           job in (clerk, nurse)
["level", name, op, option]                           rating >= mid
["and", a, b], ["or", a, b], ["not", a], ["if", a, b], ["else", a, b, c]
["count", [[coefficient, name, option], ...], op, k]  [job = none] + 2 * [owner = True] <= 1
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from benchmarks.attack.space import Feature, Row, decimal, index

Tree = list[Any]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
    "!=": operator.ne,
}


def holds(tree: Tree, features: Sequence[Feature], row: Row) -> bool:
    named = {feature["name"]: (feature, value) for feature, value in zip(features, row, strict=True)}

    def true(t: Tree) -> bool:
        match t[0]:
            case "sum":
                total = sum((Fraction(c) * decimal(named[name][1]) for c, name in t[1]), Fraction(0))
                return COMPARE[t[2]](total, Fraction(t[3]))
            case "count":
                total = sum((Fraction(c) for c, name, o in t[1] if named[name][1] == o), Fraction(0))
                return COMPARE[t[2]](total, Fraction(t[3]))
            case "in":
                return named[t[1]][1] in t[2]
            case "level":
                feature, value = named[t[1]]
                return COMPARE[t[2]](index(feature, value), index(feature, t[3]))
            case "and":
                return true(t[1]) and true(t[2])
            case "or":
                return true(t[1]) or true(t[2])
            case "not":
                return not true(t[1])
            case "if":
                return not true(t[1]) or true(t[2])
            case "else":
                return true(t[2]) if true(t[1]) else true(t[3])
        raise ValueError(t)

    return true(tree)


def about(tree: Tree) -> set[str]:
    match tree[0]:
        case "sum":
            return {name for _, name in tree[1]}
        case "count":
            return {name for _, name, _ in tree[1]}
        case "in" | "level":
            return {tree[1]}
        case _:
            return set().union(*(about(part) for part in tree[1:]))


def text(tree: Tree) -> str:
    match tree[0]:
        case "sum":
            return f"{_terms([(c, word(name)) for c, name in tree[1]])} {tree[2]} {tree[3]}"
        case "count":
            return f"{_terms([(c, f'[{word(name)} = {option(o)}]') for c, name, o in tree[1]])} {tree[2]} {tree[3]}"
        case "in":
            return f"{word(tree[1])} in ({', '.join(map(option, tree[2]))})"
        case "level":
            return f"{word(tree[1])} {tree[2]} {option(tree[3])}"
        case "and" | "or":
            return f"({text(tree[1])}) {tree[0]} ({text(tree[2])})"
        case "not":
            return f"not ({text(tree[1])})"
        case "if":
            return f"if ({text(tree[1])}) then ({text(tree[2])})"
        case "else":
            return f"if ({text(tree[1])}) then ({text(tree[2])}) else ({text(tree[3])})"
    raise ValueError(tree)


def _terms(terms: Sequence[tuple[str, str]]) -> str:
    """2 * a - b: coefficients are text, with a minus or without."""
    out = ""
    for i, (c, what) in enumerate(terms):
        size = c.lstrip("-")
        sign = "-" if c.startswith("-") else "+"
        part = what if size == "1" else f"{size} * {what}"
        out += f"{sign} {part}" if i == 0 and sign == "-" else part if i == 0 else f" {sign} {part}"
    return out


def word(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) and name not in RESERVED else "'" + name + "'"


def option(value: Any) -> str:
    """An option as the language spells it."""
    if value is None:
        return "missing"
    return word(value) if isinstance(value, str) else str(value)


RESERVED = {"and", "at", "changes", "else", "if", "in", "inf", "is", "missing", "not", "only", "or", "then"}
