"""Alterations of a certificate's data: single values, and whole structures, as somebody who knows the format would."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]


def alter(chance: random.Random, data: Data) -> str:
    """One alteration, or two; its name."""
    names = []
    for _ in range(chance.choice([1, 1, 2])):
        edit = chance.choice(EDITS)
        edit(chance, data)
        names.append(edit.__name__.strip("_"))
    return " and ".join(names)


def _hexed(chance: random.Random, x: str) -> str:
    number = float.fromhex(x)
    by = chance.choice([0.0, 0.5, 0.999, 1.001, 1.5, 2.0, -1.0, 1e9])
    return float(number * by + chance.choice([0, 0, 1, 1e-6, -1])).hex()


def raise_lower(chance: random.Random, data: Data) -> None:
    """Claim more than was proven."""
    old = data["claim"]["lower"]
    if old is not None and chance.random() < 0.7:
        new = float.fromhex(old) * chance.choice([1.0000001, 1.001, 1.5, 10]) + chance.choice([0, 1e-9, 0.1])
        data["claim"]["lower"] = new.hex()
        if data["claim"]["upper"] is not None and float.fromhex(data["claim"]["upper"]) < new:
            data["claim"]["upper"] = new.hex()
    else:
        data["claim"] = {"lower": None, "upper": None}
        data["witness"] = None


def cut_tree(chance: random.Random, data: Data) -> None:
    """Leave nodes out, double them, or put one leaf for all."""
    tree = data["proof"].get("tree")
    if not tree:
        return
    how = chance.randrange(4)
    if how == 0:
        data["proof"]["tree"] = [{"rows": []}]
    elif how == 1:
        del tree[chance.randrange(len(tree))]
    elif how == 2:
        tree.insert(chance.randrange(len(tree)), chance.choice(tree))
    else:
        leaf: Any = next((node for node in tree if isinstance(node, dict)), {"rows": []})
        data["proof"]["tree"] = [leaf]


def other_leaf(chance: random.Random, data: Data) -> None:
    """Other rows, signs, slopes, multipliers in a leaf; another place of a split."""
    tree = data["proof"].get("tree") or []
    if not tree:
        return
    node = chance.choice(tree)
    if isinstance(node, list):
        at = chance.randrange(1, len(node))
        node[at] = chance.choice([0, 1, 2, -1]) if isinstance(node[at], int) else _hexed(chance, node[at])
    elif node.get("rows"):
        row = chance.choice(node["rows"])
        at = chance.randrange(len(row))
        old = row[at]
        if isinstance(old, int):
            row[at] = chance.choice([0, 1, -1, 2, old + 1])
        elif isinstance(old, str) and "p" in old:
            row[at] = _hexed(chance, old)
        else:
            row[at] = chance.choice(["0", "1", "3", "ff"])


def other_weight(chance: random.Random, data: Data) -> None:
    layer = chance.choice(data["question"]["model"]["layers"])
    line = chance.choice([layer["bias"], *layer["weight"]])
    at = chance.randrange(len(line))
    line[at] = _hexed(chance, line[at])


def scale_weights(chance: random.Random, data: Data) -> None:
    """A layer times a power of two, the next one divided by it: the same function; or not divided: another."""
    net = data["question"]["model"]["layers"]
    by = 2.0 ** chance.choice([-1000, -60, -1, 1, 60, 900])
    at = chance.randrange(len(net))
    net[at]["weight"] = [[_times(w, by) for w in line] for line in net[at]["weight"]]
    net[at]["bias"] = [_times(b, by) for b in net[at]["bias"]]
    if at + 1 < len(net) and chance.random() < 0.7:
        net[at + 1]["weight"] = [[_times(w, 1 / by) for w in line] for line in net[at + 1]["weight"]]


def _times(x: str, by: float) -> str:
    product = float.fromhex(x) * by
    return product.hex() if abs(product) < float("inf") else x


def add_layers(chance: random.Random, data: Data) -> None:
    """Identity layers before the last one, which change nothing; and beside them a chain of huge neurons."""
    net = data["question"]["model"]["layers"]
    one, zero = (1.0).hex(), (0.0).hex()
    size = len(net[-1]["weight"][0])
    if len(net) == 1:
        return
    huge = chance.random() < 0.7
    big = (2.0 ** chance.choice([100, 1000, 1023])).hex()
    count = chance.choice([1, 3, 21, 25])
    for k in range(count):
        wide = size + (1 if huge and k else 0)
        eye = [[one if i == j else zero for j in range(wide)] for i in range(size)]
        bias = [zero] * size
        if huge:
            eye.append([big if (j == wide - 1 if k else j == 0) else zero for j in range(wide)])
            bias.append(one)
        net.insert(len(net) - 1, {"weight": eye, "bias": bias})
    if huge:
        for line in net[-1]["weight"]:
            line.append(zero)
    raise_lower(chance, data)
    if chance.random() < 0.7:
        data["proof"]["tree"] = [{"rows": []}]


def reorder(chance: random.Random, data: Data) -> None:
    """Features in another order, with some of what belongs to them or without it."""
    asked = data["question"]
    features = asked["schema"]["features"]
    if len(features) < 2:
        return
    i, j = chance.sample(range(len(features)), 2)
    for listed in chance.choice(
        [[features], [features, asked["factual"]], [asked["factual"]], [asked["distance"]["weights"]]]
    ):
        listed[i], listed[j] = listed[j], listed[i]


def other_bounds(chance: random.Random, data: Data) -> None:
    """A feature that reaches farther, or less far; another constraint; another person."""
    asked = data["question"]
    feature = chance.choice(asked["schema"]["features"])
    how = chance.randrange(4)
    if how == 0 and "upper" in feature:
        feature[chance.choice(["lower", "upper"])] += chance.choice([-5, -1, 1, 5])
    elif how == 1 and asked["constraints"]:
        del asked["constraints"][chance.randrange(len(asked["constraints"]))]
    elif how == 2:
        at = chance.randrange(len(asked["factual"]))
        asked["factual"][at] = float(float.fromhex(asked["factual"][at]) + chance.choice([-1, 1, 2])).hex()
    else:
        line = asked["distance"][chance.choice(["weights", "scales"])]
        at = chance.randrange(len(line))
        line[at] = _hexed(chance, line[at])


def other_target(chance: random.Random, data: Data) -> None:
    target = data["question"]["target"]
    if "class" in target and chance.random() < 0.6:
        target["class"] = 1 - target["class"] if target["class"] in (0, 1) else 0
    else:
        target["margin"] = chance.choice([0.0, 1e-6, 0.1, 1.0, -1.0, 1e300]).hex()


def other_witness(chance: random.Random, data: Data) -> None:
    if data["witness"]:
        at = chance.randrange(len(data["witness"]))
        data["witness"][at] = float(float.fromhex(data["witness"][at]) + chance.choice([-1, 1, 0.5])).hex()
        if chance.random() < 0.5:
            data["claim"]["upper"] = _hexed(chance, data["claim"]["upper"])


def other_grid(chance: random.Random, data: Data) -> None:
    data["proof"][chance.choice(["grid", "cost_grid"])] = chance.choice([8, 9, 20, 80, 2400, 7, 0, -1])
    raise_lower(chance, data)


def other_norm(chance: random.Random, data: Data) -> None:
    spec = data["question"]["distance"]
    spec["norm"] = chance.choice(["l0", "l1", "l2", "linf", "l0+l1"])
    if chance.random() < 0.5:
        spec["jump"], spec["rate"] = spec["rate"], spec["jump"]


EDITS: tuple[Callable[[random.Random, Data], None], ...] = (
    raise_lower, cut_tree, other_leaf, other_weight, scale_weights, add_layers, reorder, other_bounds, other_target,
    other_witness, other_grid, other_norm,
)  # fmt: skip
