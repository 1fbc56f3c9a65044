"""Smaller cases that still fail: greedy, one change at a time, as long as the kind of fault stays the same."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.attack.space import width

Case = dict[str, Any]
LISTS = ("rules", "everybody", "mine", "people", "edits", "tail", "trees", "fills", "ranges", "train")

MANY = 8
"""Of a list with more, half of it is tried first."""


def fault_kind(told: dict[str, Any]) -> str:
    """What sort of fault it is: its first words, without numbers."""
    text = told["faults"][0] if told["faults"] else ""
    return told["status"] + ":" + re.sub(r"[\d(\[].*", "", text)[:60]


def shrunk(case: Case, told: dict[str, Any], run: Callable[[Case], dict[str, Any]], seconds: float) -> Case:
    """The smallest case that was found, within so many seconds."""
    end, kind = time.monotonic() + seconds, fault_kind(told)
    again = True
    while again and time.monotonic() < end:
        again = False
        for smaller in candidates(case):
            if time.monotonic() > end:
                break
            if fault_kind(run(smaller)) == kind:
                case, again = smaller, True
                break
    return case


def candidates(case: Case) -> Iterator[Case]:
    """Cases that are a little smaller, the boldest first."""
    for key in LISTS:
        if len(case.get(key) or ()) > MANY:
            yield {**case, key: case[key][::2]}
            yield {**case, key: case[key][1::2]}
        for i in range(len(case.get(key) or ())):
            yield {**case, key: [x for j, x in enumerate(case[key]) if j != i]}
    if "features" in case and "layers" in case:
        half = case
        for at in reversed(range(1, len(case["features"]), 2)):
            half = without(half, at) or half
        if half is not case:
            yield half
        for at in range(len(case["features"])):
            smaller = without(case, at)
            if smaller is not None:
                yield smaller
        yield from fewer_neurons(case)
        if len(case["distance"]) > 1:
            yield {**case, "distance": {"norm": case["distance"]["norm"]}}
        if case["distance"]["norm"] != "l1":
            yield {**case, "distance": {**case["distance"], "norm": "l1"}}
        yield from simpler_numbers(case)
    for key in ("fewest", "order", "precision", "limits"):
        if case.get(key):
            yield {k: v for k, v in case.items() if k != key}


def without(case: Case, at: int) -> Case | None:
    """The case without a feature: its columns are folded into the biases at the person's value."""
    from benchmarks.attack.constraints import about
    from benchmarks.attack.space import columns

    features = case["features"]
    if len(features) < 2 or "people" in case:
        return None
    name, first = features[at]["name"], sum(map(width, features[:at]))
    many, now = width(features[at]), columns(features[at], case["row"][at])
    smaller = copy.deepcopy(case)
    for key in LISTS[:3]:
        smaller[key] = [c for c in smaller.get(key, ()) if name not in about(c)]
    del smaller["features"][at], smaller["row"][at]
    layer = smaller["layers"][0]
    for k, row in enumerate(layer["w"]):
        layer["b"][k] += sum(w * x for w, x in zip(row[first : first + many], now, strict=True))
        del row[first : first + many]
    for key in ("weights", "scales", "up", "down"):
        smaller["distance"].get(key, {}).pop(name, None)
    if "transitions" in smaller["distance"]:
        smaller["distance"]["transitions"] = [t for t in smaller["distance"]["transitions"] if t[0] != name]
    return smaller


def fewer_neurons(case: Case) -> Iterator[Case]:
    for k, layer in enumerate(case["layers"][:-1]):
        for i in range(len(layer["b"]) if len(layer["b"]) > 1 else 0):
            smaller = copy.deepcopy(case)
            del smaller["layers"][k]["w"][i], smaller["layers"][k]["b"][i]
            for row in smaller["layers"][k + 1]["w"]:
                del row[i]
            yield smaller
    if len(case["layers"]) > 1:
        inputs = len(case["layers"][0]["w"][0])
        last = case["layers"][-1]
        w = [(row * inputs)[:inputs] for row in last["w"]]
        yield {**case, "layers": [{"w": w, "b": list(last["b"])}]}


def simpler_numbers(case: Case) -> Iterator[Case]:
    """Weights and biases that are zero, one, or have fewer digits."""
    for k, layer in enumerate(case["layers"]):
        places: list[tuple[str, int, int | None]] = [("b", i, None) for i in range(len(layer["b"]))]
        places += [("w", i, j) for i, row in enumerate(layer["w"]) for j in range(len(row))]
        for key, i, j in places:
            old = layer["b"][i] if j is None else layer["w"][i][j]
            for new in (0.0, 1.0, float(f"{old:.1g}"), float(f"{old:.3g}")):
                if new != old and len(repr(new)) < len(repr(old)):
                    smaller = copy.deepcopy(case)
                    if j is None:
                        smaller["layers"][k][key][i] = new
                    else:
                        smaller["layers"][k][key][i][j] = new
                    yield smaller
