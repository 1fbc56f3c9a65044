"""Ways to alter a certificate: each takes its data, a source of randomness and another certificate's data."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
Alternative = Callable[[Data, random.Random, Data], None]
ZERO, ONE = (0.0).hex(), (1.0).hex()


def _number(text: str) -> float:
    return float.fromhex(text)


def _moved(text: str, rng: random.Random) -> str:
    v = _number(text)
    choices = [v * (1 + 2.0**-40), v * 1.001, v * 0.999, v + 1.0, v - 1.0, -v, 0.0, v * 2.0, v * 2.0**40, v * 2.0**-40]
    return (rng.choice(choices) + 0.0).hex()


def _widen(network: list[Data], at: int, incoming: list[str], bias: str) -> None:
    """One neuron more in a hidden layer, which nobody hears."""
    network[at]["weight"].append(incoming)
    network[at]["bias"].append(bias)
    for row in network[at + 1]["weight"]:
        row.append(ZERO)


# ---------------------------------------------------------------------- the question


def identity_layers(data: Data, rng: random.Random, _: Data) -> None:
    network = data["question"]["model"]["layers"]
    at = rng.randrange(1, len(network))
    size = len(network[at - 1]["bias"])
    one = {"weight": [[ONE if i == j else ZERO for j in range(size)] for i in range(size)], "bias": [ZERO] * size}
    count = rng.choice([1, 2, 5, 22, 22])
    network[at:at] = [copy.deepcopy(one) for _ in range(count)]
    if rng.random() < 0.8:
        _renumber(data["proof"].get("tree", []), at, count)


def _renumber(tree: list[Any], at: int, count: int) -> None:
    """So many layers were put before a layer: splits and rows of it and of those after it."""
    for node in tree:
        for place, key in [(row, 0) for row in node["rows"]] if isinstance(node, dict) else [(node, 1)]:
            if (isinstance(node, dict) or node[0] == "relu") and place[key] >= at:
                place[key] += count


def huge_chain(data: Data, rng: random.Random, other: Data) -> None:
    """Neurons that grow without bound from layer to layer, and whose outgoing weight is 0 in the end."""
    identity_layers(data, rng, other)
    network = data["question"]["model"]["layers"]
    weight, start = (rng.choice([1.0, 1.0, -1.0]) * 2.0 ** rng.choice([30, 500, 1000, 1023]) for _ in range(2))
    for at in range(len(network) - 1):
        inputs = len(network[at]["weight"][0])
        incoming = [ZERO] * inputs
        if at:
            incoming[-1] = weight.hex()
        _widen(network, at, incoming, abs(start).hex() if at == 0 or rng.random() < 0.1 else ZERO)


def dead_neuron(data: Data, rng: random.Random, _: Data) -> None:
    network = data["question"]["model"]["layers"]
    at = rng.randrange(len(network) - 1)
    size = 2.0 ** rng.choice([-1074, -500, 0, 500, 1000])
    incoming = [(rng.choice([-1, 0, 1]) * size).hex() for _ in network[at]["weight"][0]]
    _widen(network, at, incoming, (rng.choice([-1, 1]) * size).hex())


def reorder_features(data: Data, rng: random.Random, _: Data) -> None:
    """The schema's features in another order; sometimes the row and the weights too."""
    asked = data["question"]
    order = list(range(len(asked["schema"]["features"])))
    rng.shuffle(order)
    lists = [(asked["schema"], "features")]
    if rng.random() < 0.5:
        lists += [(asked, "factual"), (asked["distance"], "weights"), (asked["distance"], "scales")]
        if data["witness"] is not None and rng.random() < 0.7:
            lists.append((data, "witness"))
    for place, key in lists:
        place[key] = [place[key][g] for g in order]


def scale_weights(data: Data, rng: random.Random, _: Data) -> None:
    """A layer times a power of two; sometimes the next one divided by it."""
    network = data["question"]["model"]["layers"]
    at, by = rng.randrange(len(network)), 2.0 ** rng.choice([-300, -10, 1, 10, 300])
    layer = network[at]
    layer["weight"] = [[(_number(v) * by).hex() for v in row] for row in layer["weight"]]
    layer["bias"] = [(_number(v) * by).hex() for v in layer["bias"]]
    if at + 1 < len(network) and rng.random() < 0.7:
        network[at + 1]["weight"] = [[(_number(v) / by).hex() for v in row] for row in network[at + 1]["weight"]]


def one_weight(data: Data, rng: random.Random, _: Data) -> None:
    layer = rng.choice(data["question"]["model"]["layers"])
    row = rng.choice([*layer["weight"], layer["bias"]])
    at = rng.randrange(len(row))
    row[at] = _moved(row[at], rng)


def network_of_another(data: Data, rng: random.Random, other: Data) -> None:
    data["question"]["model"]["layers"] = other["question"]["model"]["layers"]


def constraints_changed(data: Data, rng: random.Random, other: Data) -> None:
    asked = data["question"]
    names = [feature["name"] for feature in asked["schema"]["features"]]
    if asked["constraints"] and rng.random() < 0.5:
        del asked["constraints"][rng.randrange(len(asked["constraints"]))]
    else:
        kind = rng.choice(["fixed", "only_up", "only_down", "range", "allowed"])
        extra: Data = {}
        if kind == "range":
            ends = sorted(rng.choice([-1e300, 0.0, 0.5, 1.0, 2.0, 1e300]) for _ in range(2))
            extra = {"lower": ends[0].hex(), "upper": rng.choice([None, ends[1].hex()])}
        elif kind == "allowed":
            extra = {"options": rng.choice([[], [0], [1], [0, 1]])}
        asked["constraints"].append({"kind": kind, "feature": rng.choice(names), **extra})


def distance_changed(data: Data, rng: random.Random, other: Data) -> None:
    distance = data["question"]["distance"]
    which = rng.choice(["weights", "scales", "norm", "all"])
    if which == "norm":
        for key in ("norm", "jump", "rate"):
            distance[key] = other["question"]["distance"][key]
    elif which == "all":
        by = 2.0 ** rng.choice([-1000, -60, 60, 900])
        key = rng.choice(["weights", "scales"])
        distance[key] = [(_number(v) * by).hex() for v in distance[key]]
    else:
        at = rng.randrange(len(distance[which]))
        distance[which][at] = _moved(distance[which][at], rng)


def target_changed(data: Data, rng: random.Random, other: Data) -> None:
    target = data["question"]["target"]
    how = rng.random()
    if how < 0.4 and "class" in target:
        target["class"] = 1 - target["class"]
    elif how < 0.7:
        target["margin"] = rng.choice([ZERO, (1e-9).hex(), (0.5).hex(), (1e300).hex(), _moved(target["margin"], rng)])
    else:
        data["question"]["target"] = other["question"]["target"]


def schema_changed(data: Data, rng: random.Random, _: Data) -> None:
    feature = rng.choice(data["question"]["schema"]["features"])
    if feature["kind"] == "integer":
        key = rng.choice(["lower", "upper", "step"])
        feature[key] += rng.choice([-3, -1, 1, 2])
    elif "encoding" in feature:
        feature["kind"] = rng.choice(["ordinal", "categorical"])
        for old, new in (("levels", "categories"), ("categories", "levels")):
            if feature["kind"] == {"categories": "categorical", "levels": "ordinal"}[new] and old in feature:
                feature[new] = feature.pop(old)
    for key in ("values", "levels", "categories"):
        if key in feature:
            rng.shuffle(feature[key])


def another_row(data: Data, rng: random.Random, other: Data) -> None:
    at = rng.randrange(len(data["question"]["factual"]))
    data["question"]["factual"][at] = rng.choice([ZERO, ONE, (2.0).hex(), _moved(data["question"]["factual"][at], rng)])


QUESTION: dict[str, Alternative] = {
    "identity layers": identity_layers, "huge chain": huge_chain, "dead neuron": dead_neuron,
    "features reordered": reorder_features, "weights scaled": scale_weights, "one weight": one_weight,
    "another's network": network_of_another, "constraints": constraints_changed, "distance": distance_changed,
    "target": target_changed, "schema": schema_changed, "another row": another_row,
}  # fmt: skip


# ---------------------------------------------------------------------- the answer


def _end(tree: list[Any], at: int) -> int:
    """Where the part of a preorder that begins at a node ends."""
    open_regions = 1
    while open_regions:
        open_regions += 1 if isinstance(tree[at], list) else -1
        at += 1
    return at


def tree_cut(data: Data, rng: random.Random, _: Data) -> None:
    """A part of the tree replaced by a leaf, by one of its sides, or by nothing."""
    tree = data["proof"]["tree"]
    at = rng.randrange(len(tree))
    end = _end(tree, at)
    leaves = [node for node in tree if isinstance(node, dict)]
    instead = [[], [{"rows": []}], [copy.deepcopy(rng.choice(leaves))]]
    if isinstance(tree[at], list):
        middle = _end(tree, at + 1)
        instead += [tree[at + 1 : middle], tree[middle:end]]
    tree[at:end] = rng.choice(instead)


def tree_spliced(data: Data, rng: random.Random, other: Data) -> None:
    """A part of another's tree, or all of it."""
    tree, theirs = data["proof"]["tree"], other["proof"]["tree"]
    if rng.random() < 0.4:
        data["proof"] = other["proof"]
        return
    at, there = rng.randrange(len(tree)), rng.randrange(len(theirs))
    tree[at : _end(tree, at)] = theirs[there : _end(theirs, there)]


def tree_split(data: Data, rng: random.Random, _: Data) -> None:
    """One more split somewhere, with the old part below both of its sides, or below one."""
    tree, asked = data["proof"]["tree"], data["question"]
    at = rng.randrange(len(tree))
    end = _end(tree, at)
    part = tree[at:end]
    g, layer = rng.randrange(len(asked["factual"])), rng.randrange(max(len(asked["model"]["layers"]) - 1, 1))
    split = rng.choice([
        ["number", g, (rng.randrange(-3, 4) / 2).hex()], ["option", g, rng.randrange(3)],
        ["relu", layer, rng.randrange(len(asked["model"]["layers"][layer]["bias"]))],
    ])  # fmt: skip
    tree[at:end] = [split, *copy.deepcopy(part), *rng.choice([part, [{"rows": []}]])]


def leaf_changed(data: Data, rng: random.Random, _: Data) -> None:
    rows = [row for node in data["proof"]["tree"] if isinstance(node, dict) for row in node["rows"]]
    row = rng.choice(rows)
    at = rng.randrange(5)
    if at < 3:
        row[at] += rng.choice([-2, -1, 1])
    else:
        row[at] = rng.choice(["", "0", "f" * len(row[3]), "5"]) if at == 3 else _moved(row[4], rng)


def split_changed(data: Data, rng: random.Random, _: Data) -> None:
    node = rng.choice([node for node in data["proof"]["tree"] if isinstance(node, list)])
    if rng.random() < 0.5 or node[0] != "number":
        node[rng.randrange(1, 3 if node[0] != "number" else 2)] += rng.choice([-1, 1])
    else:
        node[2] = _moved(node[2], rng)


def claim_moved(data: Data, rng: random.Random, other: Data) -> None:
    claim, how = data["claim"], rng.random()
    if how < 0.3:
        data["claim"], data["witness"], data["deployed"] = {"lower": None, "upper": None}, None, None
    elif how < 0.5 and claim["upper"] is not None:
        claim["lower"] = rng.choice([claim["upper"], (_number(claim["upper"]) * (1 + 2.0**-45)).hex()])
    elif how < 0.8:
        key = rng.choice(["lower", "upper"])
        claim[key] = ONE if claim[key] is None else _moved(claim[key], rng)
    else:
        data["claim"] = other["claim"]


def no_row_at_all(data: Data, rng: random.Random, _: Data) -> None:
    """The boldest claim, with next to no proof."""
    data["claim"], data["witness"], data["deployed"] = {"lower": None, "upper": None}, None, None
    last = len(data["question"]["model"]["layers"]) - 1
    data["proof"]["tree"] = [{"rows": rng.choice([[], [[last, 0, 1, "", ONE]]])}]


def witness_swapped(data: Data, rng: random.Random, other: Data) -> None:
    how = rng.random()
    if how < 0.3:
        data["witness"], data["claim"]["upper"], data["deployed"] = None, None, None
    elif how < 0.5:
        data["witness"] = other["witness"]
    elif how < 0.7:
        data["witness"] = list(data["question"]["factual"])
    else:
        at = rng.randrange(len(data["witness"]))
        data["witness"][at] = rng.choice([ZERO, ONE, (2.0).hex(), _moved(data["witness"][at], rng)])


def grid_changed(data: Data, rng: random.Random, _: Data) -> None:
    data["proof"][rng.choice(["grid", "cost_grid"])] = rng.choice([8, 9, 20, 53, 64, 80, 96, 300, 2400])


ANSWER: dict[str, Alternative] = {
    "tree cut": tree_cut, "tree spliced": tree_spliced, "split added": tree_split, "leaf": leaf_changed,
    "split": split_changed, "claim": claim_moved, "witness": witness_swapped, "grid": grid_changed,
    "no row at all": no_row_at_all,
}  # fmt: skip
