"""What a search did, node by node: enough to write its proof out without searching again.

Every evaluated node leaves a record: its name and its parent's, how it was split (or that it was closed), its bound
and the cutoff at that moment, the lower slopes used for the bounds of its hidden neurons, and the rows that bound
it: which condition or split ReLU each row is about, the slopes it was made with, and its multiplier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.search.kernels.layout import LOGGED, PHASES, RADIUS, Pack, Tree

HEAD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a bound: a condition (>= 0) or -1 - h for the split ReLU of neuron h; its slopes, its multiplier."""

    about: int
    multiplier: float
    slopes: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """One evaluated node. `split` is a feature, -2 - h for a ReLU, -1 for a node that was not split."""

    name: int
    parent: int
    phase: int
    split: int
    value: float
    bound: float
    cutoff: float
    slopes: NDArray[np.uint8]
    rows: tuple[Row, ...]

    @property
    def closed(self) -> bool:
        """Closed by its bound, as opposed to split (or left unresolved)."""
        return self.bound >= self.cutoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A whole search; the last phase holds the proof."""

    nodes: tuple[NodeRecord, ...]
    phases: int
    radius: float


def read_log(tree: Tree, pack: Pack) -> Record:
    """The records in a tree's log."""
    log, end, hidden = tree.log, int(tree.count[LOGGED]), tree.side.shape[1]
    nodes: list[NodeRecord] = []
    at = 0
    while at < end:
        name, parent, phase, split, value, bound, cutoff, rows = log[at : at + HEAD].tolist()
        at += HEAD
        slopes = log[at : at + hidden].astype(np.uint8)
        at += hidden
        listed = []
        for _ in range(int(rows)):
            listed.append(
                Row(
                    about=int(log[at]),
                    multiplier=float(log[at + 1]),
                    slopes=log[at + 2 : at + 2 + hidden].astype(np.uint8),
                )
            )
            at += 2 + hidden
        nodes.append(
            NodeRecord(
                name=int(name),
                parent=int(parent),
                phase=int(phase),
                split=int(split),
                value=value,
                bound=bound,
                cutoff=cutoff,
                slopes=slopes,
                rows=tuple(listed),
            )
        )
    return Record(nodes=tuple(nodes), phases=int(tree.count[PHASES]), radius=float(tree.number[RADIUS]))
