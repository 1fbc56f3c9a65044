"""The kinds of attack, by name."""

from __future__ import annotations

import random
from typing import Any, Protocol

from benchmarks.attack.asking import Outcome
from benchmarks.attack.kinds import (
    arguments,
    bombs,
    edges,
    encoders,
    files,
    fills,
    finite,
    forged,
    graphs,
    leaves,
    mixed,
    numbers,
    several,
    splits,
)

Case = dict[str, Any]


class Kind(Protocol):
    """`make` draws a case, `run` runs one; a case is plain JSON."""

    def make(self, chance: random.Random) -> Case: ...

    def run(self, case: Case) -> Outcome: ...


KINDS: dict[str, Kind] = {
    "nearest": finite.Nearest(),
    "edges": edges.Edges(),
    "limits": finite.Limited(),
    "float32": finite.Float32(),
    "flat": finite.Flat(),
    "diverse": several.Diverse(),
    "diverse-reals": several.DiverseReals(),
    "reasons": several.Reasons(),
    "audit": several.Audit(),
    "mixed": mixed.Mixed(),
    "wide": mixed.Wide(),
    "certified": forged.Certified(),
    "forged": forged.Forged(),
    "bombs": bombs.Bombs(),
    "files": files.Files(),
    "arguments": arguments.Arguments(),
    "encoders": encoders.Encoders(),
    "fills": fills.Fills(),
    "graphs": graphs.Graphs(),
    "leaves": leaves.Leaves(),
    "numbers": numbers.Numbers(),
    "splits": splits.Splits(),
}

NEEDS: dict[str, tuple[str, ...]] = {
    "encoders": ("sklearn", "pandas"),
    "graphs": ("onnx", "onnxruntime"),
    "leaves": ("onnx", "onnxruntime"),
    "splits": ("sklearn", "pandas"),
}
"""Modules without which a kind is skipped."""
