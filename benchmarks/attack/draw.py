"""Hostile numbers, features, rows and networks, drawn from a source of chance."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.attack.network import exact
from benchmarks.attack.space import Feature, encode, options, width

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")


def magnitude(chance: random.Random) -> float:
    """A positive number between 1e-8 and 1e8, often a plain one."""
    how = chance.randrange(6)
    if how == 0:
        return 10.0 ** chance.randint(-8, 8)
    if how == 1:
        return 10.0 ** chance.uniform(-8, 8)
    if how == 2:
        return float(2 ** chance.randint(-10, 10))
    return chance.choice([0.1, 0.25, 0.3, 0.5, 1.0, 1.0, 2.0, 3.0, 7.0])


def positive(chance: random.Random) -> float:
    """A weight, scale or cost."""
    return magnitude(chance) if chance.random() < 0.5 else chance.choice([0.1, 0.5, 1.0, 2.0, 10.0])


def weight(chance: random.Random, tame: bool = False) -> float:
    how = chance.randrange(8)
    if how <= 2:
        return float(chance.randint(-4, 4))
    if how == 3:
        return chance.choice([0.0, 0.0, 0.5, -0.5, 0.1, -0.3, 1 / 3])
    if how == 4 and not tame:
        return magnitude(chance) * chance.choice([-1, 1])
    return round(chance.gauss(0, 1), chance.choice([1, 2, 16]))


def integer(chance: random.Random, name: str, most: int) -> Feature:
    """A whole number with at most so many values: at zero, far away, one value, in steps."""
    base = chance.choice([0, 0, 0, 1, -3, 17, 1000, -(10**6), 10**6, 10**9, 2**40])
    step = chance.choice([1, 1, 1, 2, 5, 100])
    many = chance.choice([1, 2, 3, 5, most]) if most > 1 else 1
    return {"kind": "integer", "name": name, "lower": base, "upper": base + step * (min(many, most) - 1), "step": step}


def choice(chance: random.Random, name: str, most: int) -> Feature:
    kind = chance.choice(["binary", "ordinal", "categorical"])
    if kind == "binary" or most < 3:
        return {"kind": "binary", "name": name, "values": chance.choice([[False, True], [0, 1], ["no", "yes"]])}
    many = chance.randint(1, min(most, len(WORDS)))
    named: list[Any] = list(WORDS[:many])
    if kind == "ordinal":
        how = chance.choice(["thermometer", "onehot", "code"])
        return {"kind": kind, "name": name, "levels": named, "encoding": how}
    if chance.random() < 0.2:
        named[-1] = None
    return {"kind": kind, "name": name, "categories": named, "encoding": chance.choice(["onehot", "code"])}


def real(chance: random.Random, name: str) -> Feature:
    """A real number: decimal bounds, far from zero, tiny, or one value only."""
    low, span = chance.choice(
        [(0, 1), (0, 10), (-1, 2), (0, 1), (5, 1), (1e6, 1), (0, 1e8), (0, 1e-6), (-0.3, 0.6), (7.25, 0), (1e9, 1e-3)]
    )
    return {"kind": "real", "name": name, "lower": float(low), "upper": float(low) + float(span)}


def space(chance: random.Random, *, rows: int, numbers: bool = False) -> list[Feature]:
    """Features whose rows are at most so many."""
    features: list[Feature] = []
    left = rows
    for i in range(chance.randint(1, 6)):
        name = f"x{i}"
        made = integer(chance, name, left) if numbers or chance.random() < 0.6 else choice(chance, name, left)
        named = options(made)
        many = len(named) if named else (made["upper"] - made["lower"]) // made["step"] + 1
        if many > left:
            break
        features.append(made)
        left //= many
    return features or [integer(chance, "x0", rows)]


def value(chance: random.Random, feature: Feature) -> Any:
    named = options(feature)
    if named is not None:
        return chance.choice(named)
    low, high = feature["lower"], feature["upper"]
    if feature["kind"] == "integer":
        return low + feature["step"] * chance.randint(0, (high - low) // feature["step"])
    drawn = chance.choice(
        [low, high, round(chance.uniform(low, high), chance.choice([1, 2, 3])), chance.uniform(low, high)]
    )
    return float(min(max(drawn, low), high))


def network(
    chance: random.Random, features: list[Feature], *, outputs: int = 1, tame: bool = False
) -> list[dict[str, Any]]:
    """A network with dead, doubled and cancelling neurons, whose boundary goes near or through rows."""
    inputs = sum(map(width, features))
    middle = encode(features, tuple(value(chance, f) for f in features))
    layers: list[dict[str, Any]] = []
    size, h = inputs, middle
    for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3])):
        neurons = chance.randint(1, 5)
        w = [[weight(chance, tame) if chance.random() < 0.7 else 0.0 for _ in range(size)] for _ in range(neurons)]
        b = [_through(chance, row, h) for row in w]
        _spoil(chance, w, b)
        layers.append({"w": w, "b": b})
        h = [max(0.0, sum(x * y for x, y in zip(row, h, strict=True)) + c) for row, c in zip(w, b, strict=True)]
        size = len(w)
    last = [[weight(chance, tame) for _ in range(size)] for _ in range(outputs)]
    layers.append({"w": last, "b": [_through(chance, row, h) for row in last]})
    if tame or chance.random() < 0.7:
        return layers
    return _scaled(chance, layers)


def _through(chance: random.Random, row: list[float], at: list[float]) -> float:
    """A bias that puts the neuron's edge exactly at a row, near it, or anywhere."""
    how = chance.random()
    edge = -sum(w * x for w, x in zip(row, at, strict=True))
    if how < 0.4:
        return edge
    if how < 0.7:
        return edge + chance.choice([1e-9, -1e-9, 1e-6, -1e-6, 0.01, -0.01, 0.5, -0.5, 1.0, -1.0])
    return weight(chance)


def _spoil(chance: random.Random, w: list[list[float]], b: list[float]) -> None:
    """Dead neurons, the same one twice, and pairs that cancel."""
    if chance.random() < 0.2:
        b[-1] = -1e9 * (1 + sum(map(abs, w[-1])))
    if chance.random() < 0.3:
        w.append(list(w[0]))
        b.append(b[0])
    if chance.random() < 0.3:
        w.append([-x for x in w[0]])
        b.append(-b[0])


def _scaled(chance: random.Random, layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Everything larger or smaller by a power of ten: the scores come out at any magnitude."""
    by = 10.0 ** chance.randint(-8, 8)
    last = layers[-1]
    return [*layers[:-1], {"w": [[x * by for x in row] for row in last["w"]], "b": [x * by for x in last["b"]]}]


def tie(layers: list[dict[str, Any]], features: list[Feature], row: Any) -> None:
    """Shift the last bias so that the score of the row is exactly 0, as far as a float can."""
    scores = exact(layers, encode(features, row))
    layers[-1]["b"] = [float(b - s) for b, s in zip(map(_exactly, layers[-1]["b"]), scores, strict=True)]


def _exactly(x: float) -> Any:
    from fractions import Fraction

    return Fraction(x)
