"""Log of a branch-and-bound tree, node by node: enough to write its proof without searching again.

Every evaluated node leaves a record: its name and its parent's, how it was split (or that it was closed), its bound
and the cutoff at that moment, the lower slopes used for the bounds of its hidden neurons, and the rows that bound
it: which condition or split ReLU each row is about, the slopes it was made with, and its multiplier. Where ReLUs were
probed, it also has the multipliers of each relaxation that tightened a bound, and of those that bound the node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.solvers.search.kernels.layout import (
    BOUNDED,
    CONDITIONS,
    HEAD,
    LOGGED,
    MOST_STEPS,
    PHASES,
    PROBED,
    RADIUS,
    SIZES,
    Pack,
    Tree,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a bound: a condition (>= 0) or -1 - h for the split ReLU of neuron h; its slopes, its multiplier."""

    about: int
    multiplier: float
    slopes: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers:
    """Those of a relaxation: of the conditions, and of the equation of each hidden neuron. `neuron` is the one that was
    probed, on its active side or the other; -1: they bound the whole node."""

    neuron: int
    active: bool
    conditions: NDArray[np.float64]
    neurons: NDArray[np.float64]


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
    probes: tuple[Multipliers, ...] = ()

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
    outputs: int = 1
    probing: bool = False
    """Can there be probes?"""

    @cached_property
    def nodes(self) -> tuple[NodeRecord, ...]:
        nodes, at = [], 0
        while at < len(self.log):
            nodes.append(self.at(at))
            at += HEAD + self.hidden + int(self.log[at + HEAD - 1]) * (2 + self.hidden)
        return tuple(nodes)

    @cached_property
    def probed(self) -> bool:
        """Were ReLUs probed?"""
        return self.probing and any(node.probes for node in self.nodes)

    def at(self, place: int) -> NodeRecord:
        """The record that begins at a place in the log."""
        log, hidden = self.log, self.hidden
        name, parent, phase, split, value, bound, cutoff, rows = log[place : place + HEAD].tolist()
        at = place + HEAD + hidden
        listed, probes = [], []
        conditions = None
        for _ in range(int(rows)):
            about, multiplier = log[at : at + 2].tolist()
            own = log[at + 2 : at + 2 + hidden]
            if about == CONDITIONS:
                conditions = own[: self.outputs]
            elif about <= BOUNDED:
                probes.append(_multipliers(int(about), log[at + 1 : at + 2] if conditions is None else conditions, own))
                conditions = None
            else:
                listed.append(Row(about=int(about), multiplier=multiplier, slopes=own.astype(np.uint8)))
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
            probes=tuple(probes),
        )


def _multipliers(about: int, conditions: NDArray[np.float64], neurons: NDArray[np.float64]) -> Multipliers:
    neuron, other = divmod(PROBED - about, 2) if about != BOUNDED else (-1, 0)
    return Multipliers(neuron=neuron, active=other == 0, conditions=conditions, neurons=neurons)


def read_log(tree: Tree, pack: Pack) -> Record:
    """What a tree's log holds."""
    return Record(
        log=tree.log[: int(tree.count[LOGGED])].copy(),
        hidden=tree.side.shape[1],
        phases=int(tree.count[PHASES]),
        radius=float(tree.number[RADIUS]),
        outputs=int(pack.index[SIZES, pack.layers]),
        probing=bool(tree.count[MOST_STEPS]),
    )
