"""Constraints as docs/rules.md says, judged in rational arithmetic on the decimals that people write.

A constraint is plain data, such as {"is": "steps", "of": "x", "step": "0.1"}; numbers of a constraint are text, as
they are written. `words` is its sentence, `allows` the judgement of a row, `about` the features that it speaks of.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from benchmarks.attack import rules
from benchmarks.attack.space import Feature, Row, decimal, index, is_number

Constraint = dict[str, Any]


def allows(constraint: Constraint, features: Sequence[Feature], before: Row, after: Row) -> bool:
    """Does the row `after` keep to it, coming from `before`?"""
    names = [feature["name"] for feature in features]
    kind = constraint["is"]
    if kind == "changes":
        return sum(a != b for a, b in zip(before, after, strict=True)) <= constraint["k"]
    if kind == "rule":
        return rules.holds(constraint["rule"], features, after)
    at = names.index(constraint["of"])
    feature, a, b = features[at], before[at], after[at]
    if kind == "with":
        partner = names.index(constraint["partner"])
        return a == b or before[partner] != after[partner]
    return _alone(constraint, feature, a, b)


def _alone(constraint: Constraint, feature: Feature, a: Any, b: Any) -> bool:
    """The constraints on one feature."""
    x, y = place(feature, a), place(feature, b)
    match constraint["is"]:
        case "fixed":
            return bool(a == b)
        case "up":
            return y >= x
        case "down":
            return y <= x
        case "range":
            low, high = constraint["low"], constraint["high"]
            return (low is None or y >= Fraction(low)) and (high is None or y <= Fraction(high))
        case "allowed":
            return b in constraint["values"]
        case "by":
            return abs(y - x) <= Fraction(constraint["most"])
        case "percent":
            return abs(y - x) <= Fraction(constraint["most"]) / 100 * abs(x)
        case "steps":
            return ((y - x) / Fraction(constraint["step"])).denominator == 1
        case "free":
            return True
    raise ValueError(constraint)


def place(feature: Feature, value: Any) -> Fraction:
    """A number as its decimal, an option as its index."""
    return decimal(value) if is_number(feature) else Fraction(index(feature, value))


def nearly(constraint: Constraint, feature: Feature, a: Any, b: Any) -> bool:
    """`allows` for a real number's steps and lengths, with room for a rounding of the float that carries it."""
    x, y = place(feature, a), place(feature, b)
    room = (abs(x) + abs(y)) * Fraction(1, 2**50)
    match constraint["is"]:
        case "steps":
            step = Fraction(constraint["step"])
            return abs((y - x) - round((y - x) / step) * step) <= room
        case "by":
            return abs(y - x) <= Fraction(constraint["most"]) + room
        case "percent":
            return abs(y - x) <= Fraction(constraint["most"]) / 100 * abs(x) + room
    return _alone(constraint, feature, a, b)


def about(constraint: Constraint) -> set[str]:
    if constraint["is"] == "rule":
        return rules.about(constraint["rule"])
    if constraint["is"] == "changes":
        return set()
    return {constraint["of"], constraint["partner"]} if constraint["is"] == "with" else {constraint["of"]}


def merged(
    rules_: Sequence[Constraint], everybody: Sequence[Constraint], mine: Sequence[Constraint]
) -> list[Constraint]:
    """What holds for a person: "x is free" lifts what holds for everybody about x alone."""
    freed = {c["of"] for c in mine if c["is"] == "free"}
    lifted = [c for c in (*rules_, *everybody) if not (len(about(c)) == 1 and about(c) <= freed)]
    return [c for c in (*lifted, *mine) if c["is"] != "free"]


def lattice(feature: Feature, before: float, constraints: Sequence[Constraint]) -> list[float] | None:
    """What a real number may become, where it is fixed or moves in steps; None where it has room."""
    mine = [c for c in constraints if c.get("of") == feature["name"]]
    if feature["lower"] == feature["upper"] or any(c["is"] == "fixed" for c in mine):
        return [before]
    steps = [Fraction(c["step"]) for c in mine if c["is"] == "steps"]
    if not steps:
        return None
    x, step = decimal(before), max(steps)
    low, high = decimal(float(feature["lower"])), decimal(float(feature["upper"]))
    first, last = -int((x - low) / step), int((high - x) / step)
    found = (float(x + k * step) for k in range(first, last + 1))
    return [y for y in found if feature["lower"] <= y <= feature["upper"]]


def words(constraint: Constraint, features: Sequence[Feature]) -> str:
    """The sentence."""
    name = rules.word(constraint.get("of", ""))
    match constraint["is"]:
        case "fixed":
            return f"{name} is fixed"
        case "free":
            return f"{name} is free"
        case "up" | "down":
            return f"{name} only goes {constraint['is']}"
        case "range":
            low, high = constraint["low"], constraint["high"]
            if low is None or high is None:
                return f"{name} <= {high}" if low is None else f"{name} >= {low}"
            return f"{name} in [{low}, {high}]"
        case "allowed":
            return f"{name} in ({', '.join(map(rules.option, constraint['values']))})"
        case "by":
            return f"{name} changes by at most {constraint['most']}"
        case "percent":
            return f"{name} changes by at most {constraint['most']} %"
        case "steps":
            return f"{name} changes in steps of {constraint['step']}"
        case "changes":
            return f"at most {constraint['k']} change{'' if constraint['k'] == 1 else 's'}"
        case "with":
            return f"{name} changes only with {rules.word(constraint['partner'])}"
        case "rule":
            return rules.text(constraint["rule"])
    raise ValueError(constraint)


def built(constraint: Constraint, features: Sequence[Feature]) -> Any:
    """The constraint as ifonly takes it: an object where it is marked so, else its sentence."""
    import ifonly

    if not constraint.get("object"):
        return words(constraint, features)
    name: str = constraint.get("of", "")
    match constraint["is"]:
        case "fixed":
            return ifonly.Fixed(name)
        case "free":
            return ifonly.Unconstrained(name)
        case "up":
            return ifonly.OnlyUp(name)
        case "down":
            return ifonly.OnlyDown(name)
        case "range":
            ends = {
                key: float(end) for key, end in (("lower", constraint["low"]), ("upper", constraint["high"])) if end
            }
            return ifonly.Range(name, **ends)
        case "allowed":
            return ifonly.Allowed(name, constraint["values"])
        case "by":
            return ifonly.MaxDelta(name, by=float(constraint["most"]))
        case "percent":
            return ifonly.MaxDelta(name, share=float(Decimal(constraint["most"]) / 100))
        case "steps":
            return ifonly.Steps(name, float(constraint["step"]))
        case "changes":
            return ifonly.MaxChanges(constraint["k"])
        case "with":
            return ifonly.OnlyWith(name, constraint["partner"])
    return words(constraint, features)
