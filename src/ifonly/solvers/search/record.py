"""Log of a branch-and-bound tree, node by node: enough to write its proof without searching again.

Every evaluated node leaves a record: its name and its parent's, how it was split (or that it was closed), its bound
and the cutoff at that moment, the lower slopes used for the bounds of its hidden neurons, and the rows that bound
it: which condition or split ReLU each row is about, the slopes it was made with, and its multiplier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.solvers.search.kernels.layout import LOGGED, PHASES, RADIUS, Pack, Tree

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """A whole search; the last phase holds the proof. `log` is what the kernels wrote; `nodes` reads it."""

    log: NDArray[np.float64]
    hidden: int
    phases: int
    radius: float

    @cached_property
    def nodes(self) -> tuple[NodeRecord, ...]:
        nodes, at = [], 0
        while at < len(self.log):
            nodes.append(self.at(at))
            at += HEAD + self.hidden + len(nodes[-1].rows) * (2 + self.hidden)
        return tuple(nodes)

    def at(self, place: int) -> NodeRecord:
        """The record that begins at a place in the log."""
        log, hidden = self.log, self.hidden
        name, parent, phase, split, value, bound, cutoff, rows = log[place : place + HEAD].tolist()
        at = place + HEAD + hidden
        listed = []
        for _ in range(int(rows)):
            about, multiplier = log[at : at + 2].tolist()
            own = log[at + 2 : at + 2 + hidden].astype(np.uint8)
            listed.append(Row(about=int(about), multiplier=multiplier, slopes=own))
            at += 2 + hidden
        return NodeRecord(
            name=int(name),
            parent=int(parent),
            phase=int(phase),
            split=int(split),
            value=value,
            bound=bound,
            cutoff=cutoff,
            slopes=log[place + HEAD : place + HEAD + hidden].astype(np.uint8),
            rows=tuple(listed),
        )


def read_log(tree: Tree, pack: Pack) -> Record:
    """What a tree's log holds."""
    return Record(
        log=tree.log[: int(tree.count[LOGGED])].copy(),
        hidden=tree.side.shape[1],
        phases=int(tree.count[PHASES]),
        radius=float(tree.number[RADIUS]),
    )
