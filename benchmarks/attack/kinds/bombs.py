"""Certificate bombs: small files that ask the checker for much time or memory. Each must end within its limits."""

from __future__ import annotations

import copy
import json
import random
import re
import resource
import time
import zlib
from collections.abc import Callable
from typing import Any

from benchmarks.attack.asking import Outcome, Refused, ask

SECONDS = 2.0
"""What the checker is given; it may overrun by as much again, and a second for a busy machine."""
DEEP = "deep:{}:deep"
"""Stands in the data for JSON that is nested too deeply to be written by a library."""
MEMORY_BYTES = 1.5 * 2**30
"""What a check of a small file may add."""


class Bombs:
    def make(self, chance: random.Random) -> dict[str, Any]:
        return {
            "bomb": chance.choice(sorted(BOMBS)),
            "size": chance.choice([30, 300, 3000]),
            "chance": chance.randrange(2**30),
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly
        from ifonly.certificate.format import stamp

        data = copy.deepcopy(base())
        BOMBS[case["bomb"]](random.Random(case["chance"]), data, case["size"])
        data["sha256"] = stamp(data)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        text = re.sub(f'"{DEEP.format("(.*?)")}"', r"\1", text)
        content = zlib.compress(text.encode())
        before, begun = _peak(), time.perf_counter()
        try:
            told = ask(lambda: ifonly.check(ifonly.Certificate.from_bytes(content), seconds=SECONDS)).verdict
        except Refused:
            told = "refused"
        spent, imported_trees = time.perf_counter() - begun, _peak() - before
        faults = []
        if spent > 2 * SECONDS + 1:
            faults.append(f"{len(content)} bytes took {spent:.1f} s where {SECONDS:g} s were given")
        if imported_trees > MEMORY_BYTES:
            faults.append(f"{len(content)} bytes took {imported_trees / 2**30:.1f} GiB")
        return Outcome(f"{case['bomb']} {told}", faults)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def base() -> dict[str, Any]:
    """A certificate that is right: two numbers, two neurons."""
    import ifonly

    schema = ifonly.Schema([ifonly.Real("a", 0, 1), ifonly.Integer("b", 0, 9)])
    net = ifonly.Network.of([([[1.0, 0.1], [-1.0, 0.3]], [-0.2, 0.1]), ([[1.0, -0.5]], [-0.9])])
    data: dict[str, Any] = ifonly.certify(ifonly.Explainer(net, schema=schema), [0.2, 1]).data
    return data


def _nested(chance: random.Random, data: dict[str, Any], size: int) -> None:
    data["proof"]["tree"] = DEEP.format("[" * size * 10 + "]" * size * 10)


def _splits(kind: str) -> Callable[[random.Random, dict[str, Any], int], None]:
    def bomb(chance: random.Random, data: dict[str, Any], size: int) -> None:
        leaf = next(node for node in data["proof"]["tree"] if isinstance(node, dict))
        nodes: list[Any] = []
        for k in range(size):
            nodes += [
                ["number", 0, ((k + 1) / (size + 1) * 0.7).hex()] if kind == "number" else ["relu", 0, k % 2],
                leaf,
            ]
        data["proof"]["tree"] = [*nodes, leaf]

    return bomb


def _wide_layer(chance: random.Random, data: dict[str, Any], size: int) -> None:
    """Many neurons, and numbers whose exponents are far apart, so that exact ones have many bits."""
    net, many = data["question"]["model"]["layers"], min(size, 1000)
    far = [(2.0 ** chance.randint(-1000, 1000)).hex() for _ in range(2 * many)]
    net[0] = {"weight": [[far[2 * i], far[2 * i + 1]] for i in range(many)], "bias": [(0.5).hex()] * many}
    net[-1] = {"weight": [[(1.0).hex()] * many], "bias": [(-0.9).hex()]}


def _deep(chance: random.Random, data: dict[str, Any], size: int) -> None:
    """Many layers of huge and tiny weights: bits add up from layer to layer."""
    net = data["question"]["model"]["layers"]
    for _ in range(min(size, 300)):
        big, small = (2.0 ** chance.randint(0, 1000)).hex(), (2.0 ** -chance.randint(0, 1000)).hex()
        net.insert(1, {"weight": [[big, small], [small, big]], "bias": [(1.0).hex(), small]})


def _rows(chance: random.Random, data: dict[str, Any], size: int) -> None:
    leaf = next(node for node in data["proof"]["tree"] if isinstance(node, dict))
    row = leaf["rows"][0] if leaf["rows"] else [1, 0, 1, "0", (1.0).hex()]
    data["proof"]["tree"] = [{"rows": [row] * size}]


def _grids(chance: random.Random, data: dict[str, Any], size: int) -> None:
    data["proof"]["grid"], data["proof"]["cost_grid"] = chance.choice([2400, 10**6, 10**9, 2**31]), 2400


def _options(chance: random.Random, data: dict[str, Any], size: int) -> None:
    """A feature with very many options, all of them columns of the network."""
    asked = data["question"]
    asked["schema"]["features"].append(
        {"kind": "categorical", "name": "c", "categories": [str(i) for i in range(size)]}
    )
    asked["factual"].append((0.0).hex())
    asked["distance"]["weights"].append((1.0).hex())
    asked["distance"]["scales"].append((1.0).hex())
    for line in asked["model"]["layers"][0]["weight"]:
        line += [(0.1 * chance.random()).hex() for _ in range(size)]
    if data["witness"]:
        data["witness"].append((0.0).hex())


def _bounds(chance: random.Random, data: dict[str, Any], size: int) -> None:
    data["question"]["schema"]["features"][1].update(lower=-(2**52), upper=2**52)
    data["question"]["schema"]["features"][0].update(lower=-1e308, upper=1e308)
    _splits("number")(chance, data, size)


BOMBS: dict[str, Callable[[random.Random, dict[str, Any], int], None]] = {
    "nested": _nested,
    "number splits": _splits("number"),
    "relu splits": _splits("relu"),
    "wide layer": _wide_layer,
    "deep": _deep,
    "rows": _rows,
    "grids": _grids,
    "options": _options,
    "bounds": _bounds,
}
