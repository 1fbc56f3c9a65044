"""Hostile questions: targets, distances, and constraints at their edges, in decimals as people write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from benchmarks.attack.constraints import Constraint, about
from benchmarks.attack.draw import positive, value
from benchmarks.attack.space import Feature, Row, is_number, options, ordered

MARGINS = (1e-6, 1e-6, 0.0, 0.0, 0.1, 1e-3)


def target(chance: random.Random, outputs: int, *, scores: bool = True) -> dict[str, Any] | None:
    """Any target that a model with so many outputs can be asked for; None: the other of two classes."""
    classes, margin = max(2, outputs), chance.choice(MARGINS)
    how = chance.choice(["class", "class", "score", "one_of", "other", "top", "probability", "none"])
    if how == "none" and classes == 2:
        return None
    if how == "score" and scores:
        low, high = sorted([round(chance.gauss(0, 1), 1), round(chance.gauss(0, 1), 1)])
        ends: list[Any] = chance.choice([[low, None], [None, high], [low, high], [low, low]])
        if None not in ends and ends[1] - ends[0] < 2 * margin:
            margin = 0.0
        return {"score": ends, "output": chance.randrange(outputs), "margin": margin}
    if how == "one_of" and classes > 2:
        return {"one_of": sorted(chance.sample(range(classes), chance.randint(1, classes - 1))), "margin": margin}
    if how == "other":
        return {"other": True, "margin": margin}
    if how == "top" and classes > 2:
        return {"top": chance.randrange(classes), "k": chance.randint(1, classes - 1), "margin": margin}
    if how == "probability" and outputs == 1:
        p = chance.choice([0.5, 0.7, 0.3, 0.9, 0.999999])
        return {"probability": chance.randrange(2), "at_least": p, "margin": margin}
    return {"class": chance.randrange(classes), "margin": margin}


def distance(chance: random.Random, features: Sequence[Feature], *, costs: bool = True) -> dict[str, Any]:
    """Any norm, with extreme weights, scales, and costs by direction and transition."""
    norm: Any = chance.choice(["l0", "l1", "l1", "l1", "l2", "linf", {"l0": 0.5, "l1": 0.5}, {"l0": 1e-3, "l1": 1.0}])
    spec: dict[str, Any] = {"norm": norm}

    def some(which: Sequence[Feature]) -> dict[str, float]:
        return {f["name"]: positive(chance) for f in which if chance.random() < 0.4}

    if chance.random() < 0.4:
        spec["weights"] = some(features)
    if chance.random() < 0.3:
        spec["scales"] = some([f for f in features if is_number(f)])
    if costs and chance.random() < 0.3:
        spec["up"], spec["down"] = some([f for f in features if ordered(f)]), some([f for f in features if ordered(f)])
    if costs and chance.random() < 0.3:
        moves = []
        for feature in features:
            named = options(feature)
            if named and len(named) > 1 and chance.random() < 0.5:
                a, b = chance.sample(named, 2)
                moves.append([feature["name"], a, b, positive(chance)])
        spec["transitions"] = moves
    return spec


def written(chance: random.Random, x: float) -> str:
    """A number near x as a person writes it: a few digits, no exponent."""
    places = chance.choice([0, 0, 1, 2])
    text = f"{x:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def constraint(chance: random.Random, features: Sequence[Feature], row: Row) -> Constraint | None:
    """One constraint on features of which none is a free real number, at an edge of what the rows can be."""
    at = chance.randrange(len(features))
    feature, now = features[at], row[at]
    name = feature["name"]
    marked = {"object": chance.random() < 0.4}
    kind = chance.choice(
        ["fixed", "up", "down", "range", "allowed", "by", "percent", "steps", "changes", "with", "rule"]
    )
    if kind == "fixed":
        return {"is": kind, "of": name, **marked}
    if kind in ("up", "down"):
        return {"is": kind, "of": name, **marked} if ordered(feature) else None
    if kind == "changes":
        return {"is": kind, "k": chance.randint(0, len(features)), **marked}
    if kind == "with":
        other = chance.choice(features)
        if other["name"] == name or other["kind"] == "real":
            return None
        return {"is": kind, "of": name, "partner": other["name"], **marked}
    if kind == "allowed":
        named = options(feature)
        if not named:
            return None
        return {"is": kind, "of": name, "values": chance.sample(named, chance.randint(1, len(named))), **marked}
    if kind == "rule":
        return {"is": "rule", "rule": rule(chance, features, row, 2)}
    if not is_number(feature):
        return (
            {"is": "by", "of": name, "most": str(chance.randint(0, 3)), **marked}
            if kind == "by" and ordered(feature)
            else None
        )
    return _number(chance, feature, now, kind, marked)


def _number(chance: random.Random, feature: Feature, now: Any, kind: str, marked: dict[str, bool]) -> Constraint | None:
    """Ranges, lengths, shares and steps of a number: the edge is another value of it, exactly."""
    name, there = feature["name"], value(chance, feature)
    away = abs(Decimal(repr(there)) - Decimal(repr(now)))
    if kind == "range":
        low, high = sorted([there, value(chance, feature)])
        ends = chance.choice([(low, high), (low, None), (None, high)])
        shown = [None if end is None else f"{Decimal(repr(end)):f}" for end in ends]
        return {"is": kind, "of": name, "low": shown[0], "high": shown[1], **marked}
    if kind == "by":
        most = away if chance.random() < 0.7 else Decimal(written(chance, abs(float(away)) * chance.random()))
        return {"is": kind, "of": name, "most": f"{most:f}", **marked}
    if kind == "percent":
        if now and chance.random() < 0.7:
            share = away / abs(Decimal(repr(now))) * 100
            if share == round(share, 2):
                return {"is": kind, "of": name, "most": f"{share.normalize():f}", **marked}
        return {"is": kind, "of": name, "most": str(chance.choice([1, 7, 10, 29, 33, 50, 57, 58, 100, 114])), **marked}
    if feature["kind"] == "integer":
        return {"is": "steps", "of": name, "step": str(feature["step"] * chance.randint(1, 4)), **marked}
    return None


def stepped(chance: random.Random, feature: Feature, row: Row, at: int) -> list[Constraint]:
    """Constraints that make a real number finite: fixed, or in decimal steps, often with a length of whole steps."""
    name, span = feature["name"], feature["upper"] - feature["lower"]
    if span == 0 or chance.random() < 0.2:
        return [{"is": "fixed", "of": name}]
    digits = max(0, -Decimal(repr(span)).adjusted() + 1)
    step = Decimal(chance.choice([1, 2, 3, 7, 25])).scaleb(-digits)
    while Decimal(repr(span)) / step > 60:
        step *= 2
    found: list[Constraint] = [{"is": "steps", "of": name, "step": f"{step:f}", "object": chance.random() < 0.3}]
    if chance.random() < 0.6:
        found.append(
            {"is": "by", "of": name, "most": f"{step * chance.randint(0, 5):f}", "object": chance.random() < 0.3}
        )
    return found


def rule(chance: random.Random, features: Sequence[Feature], row: Row, depth: int) -> list[Any]:
    """A tree of a rule; where it needs a real number exactly, ifonly refuses it, which is fine."""
    how = chance.random()
    if depth and how < 0.35:
        kind = chance.choice(["and", "or", "not", "if", "else"])
        parts = {"not": 1, "else": 3}.get(kind, 2)
        return [kind, *(rule(chance, features, row, depth - 1) for _ in range(parts))]
    feature = chance.choice(features)
    named = options(feature)
    if feature["kind"] == "integer" and how > 0.9:
        listed = sorted({value(chance, feature) for _ in range(chance.choice([2, 5, 30, 200]))})
        return ["in", feature["name"], listed]
    if named is None:
        numbers = [f for f in features if is_number(f)]
        chosen = chance.sample(numbers, min(len(numbers), chance.randint(1, 2)))
        terms = [[chance.choice(["1", "1", "-1", "2", "0.5"]), f["name"]] for f in chosen]
        at = sum(
            (Decimal(c) * Decimal(repr(value(chance, f))) for (c, _), f in zip(terms, chosen, strict=True)), Decimal(0)
        )
        constant = f"{at + chance.choice([0, 0, 1, -1]):f}"
        op = chance.choice(
            [">=", "<="] if any(f["kind"] == "real" for f in chosen) else [">=", "<=", ">", "<", "=", "!="]
        )
        return ["sum", terms, op, constant]
    if feature["kind"] == "ordinal" and chance.random() < 0.5:
        return ["level", feature["name"], chance.choice([">=", "<=", ">", "<", "=", "!="]), chance.choice(named)]
    if chance.random() < 0.3:
        counted = [["1", f["name"], chance.choice(options(f) or [None])] for f in features if options(f)]
        return ["count", counted, chance.choice(["<=", ">="]), str(chance.randint(0, 2))]
    return ["in", feature["name"], chance.sample(named, chance.randint(1, len(named)))]


def constraints(
    chance: random.Random, features: Sequence[Feature], row: Row, most: int = 3
) -> dict[str, list[Constraint]]:
    """Constraints of the schema, of everybody and of the person, with what is free for the person."""
    drawn = [constraint(chance, features, row) for _ in range(chance.randint(0, most))]
    held: dict[str, list[Constraint]] = {"rules": [], "everybody": [], "mine": []}
    for one in drawn:
        if one is not None:
            held[chance.choice(["rules", "everybody", "mine", "mine"])].append(one)
    everybody = [*held["rules"], *held["everybody"]]
    if everybody and chance.random() < 0.5:
        alone = about(chance.choice(everybody))
        reals = {f["name"] for f in features if f["kind"] == "real"}
        if alone and not alone & reals:
            held["mine"].append({"is": "free", "of": sorted(alone)[0]})
    return held
