"""Packing of a question and its people into flat arrays, and the working memory of a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered, Norm
from ifonly.problem import People as Allowed
from ifonly.solvers.search.error_bounds import Errors
from ifonly.solvers.search.kernels import layout
from ifonly.solvers.search.kernels.layout import (
    ADDITIVE,
    CHOICE,
    INTEGER,
    MAXIMUM,
    REAL,
    SQUARED,
    Pack,
    PackedPeople,
    Scratch,
    Tree,
    TriangleBuffers,
)
from ifonly.solvers.search.kernels.splits import MANY_NUMBERS, WIDE_STEPS
from ifonly.tolerances import Tolerances

NORMS = {Norm.L0: ADDITIVE, Norm.L1: ADDITIVE, Norm.L2: SQUARED, Norm.LINF: MAXIMUM}
MOST_ROWS = 96
MOST_PROBED = 160
"""ReLUs of a node that are unstable or split, or neurons with smooth activations: with more, none is probed."""
CHORDS = 3
"""Of each ReLU of a relaxation: two, and one by vertices."""
STEPS_A_RELU = 8
"""Two rounds, two sides, two programs."""
FIRST_LOG = 1 << 16
GRID_CLEAR = 8.0
"""How many times what rounding can do to a rule's value there must be between two values of it on a grid."""

Floats = NDArray[np.float64]
Probing = Literal["by rule", "always", "never"]


def units(lowered: Lowered) -> Floats:
    """What one internal unit of each feature is: a step of an integer, 1 otherwise."""
    return np.where(lowered.in_steps, lowered.step, 1.0)


def pack_question(lowered: Lowered, tolerances: Tolerances) -> Pack:
    """The arrays of a question."""
    unit, network = units(lowered), lowered.network
    first = lowered.layers[0][0].copy()
    for g in np.flatnonzero(lowered.numeric):
        first[:, lowered.start[g]] *= unit[g]
    stack = [(first, lowered.layers[0][1]), *lowered.layers[1:]]
    sizes = [lowered.width, *(len(bias) for _, bias in stack)]
    rules, pairs = len(lowered.required), len(lowered.partners)
    longest = max(lowered.features, len(sizes), rules, pairs, sum(sizes[1:]))
    index = np.zeros((layout.TOUCHES + rules, longest + 1), dtype=np.int64)
    index[layout.RULE_LAYER : layout.RULE_PLACE + 1, :rules] = lowered.required.T
    index[layout.PARTNERED : layout.PARTNER + 1, :pairs] = lowered.partners.T
    index[layout.UNCOUNTED, : lowered.features] = ~lowered.counts
    index[layout.TOUCHES :, : lowered.features] = lowered.required_touches
    index[layout.KIND, : lowered.features] = np.where(
        lowered.numeric, np.where(lowered.step > 0, INTEGER, REAL), CHOICE
    )
    index[layout.START, : lowered.features + 1] = lowered.start
    index[layout.SIZES, : len(sizes)] = sizes
    index[layout.WEIGHT_AT, 1 : len(stack)] = np.cumsum([weight.size for weight, _ in stack])[:-1]
    index[layout.BIAS_AT, 1 : len(stack)] = np.cumsum(sizes[1:])[:-1]
    index[layout.READS_FROM : layout.READS_TO + 1, : sum(sizes[1:])] = network.once("reads", lambda: _parts_read(stack))
    group = network.once("groups", lambda: _groups([weight for weight, _ in stack]))
    index[layout.GROUP, : len(group)] = group
    return Pack(
        norm=NORMS[lowered.norm],
        layers=len(stack),
        gap=tolerances.gap,
        relative_gap=tolerances.relative_gap,
        index=index,
        price=np.array([lowered.rate * unit, lowered.jump, lowered.rate_down * unit]),
        weights=np.concatenate([weight.ravel() for weight, _ in stack]),
        biases=np.concatenate([bias for _, bias in stack]),
        first=np.ascontiguousarray(first),
        rules=rules,
        pairs=pairs,
        groups=int(group.max()) + 1,
    )


def _parts_read(stack: Sequence[tuple[Floats, Floats]]) -> NDArray[np.int64]:
    """The first and the last number but one of what each neuron reads of the layer below it."""
    parts = []
    for weight, _ in stack:
        some = weight != 0.0
        any_read = some.any(axis=1)
        last = weight.shape[1] - some[:, ::-1].argmax(axis=1)
        parts.append(np.where(any_read, [some.argmax(axis=1), last], 0))
    return np.concatenate(parts, axis=1)


def _groups(weights: Sequence[Floats]) -> NDArray[np.int64]:
    """Of each neuron, outputs last, which group of conditions depends on it, or RULE_GROUP: conditions are apart that
    no weight above the first layer connects."""
    if len(weights) == 1:
        return np.zeros(len(weights[0]), dtype=np.int64)
    above = np.eye(len(weights[-1]), dtype=bool)  # (neuron of a layer, condition)
    reached = [above]
    for weight in reversed(weights[1:]):
        above = ((weight != 0.0).T.astype(np.float32) @ above.astype(np.float32)) > 0.0
        reached.insert(0, above)
    marks = np.concatenate(reached)
    together = (marks.astype(np.float32).T @ marks.astype(np.float32)) > 0.0
    while not np.array_equal(wider := (together.astype(np.float32) @ together.astype(np.float32)) > 0.0, together):
        together = wider
    group = np.unique(together.argmax(axis=1), return_inverse=True)[1]  # of a condition
    return np.where(marks.any(axis=1), group[marks.argmax(axis=1)], layout.RULE_GROUP)


def on_grids(lowered: Lowered, people: Allowed, low: Floats) -> NDArray[np.bool_]:
    """(person, rule): can the rule be told from its edge, because all numbers that it looks at are on their grids, also
    those that a person has already, and because rounding (see `low`) is far below what is between two of its values?"""
    doubtful = (lowered.required_gap > -GRID_CLEAR * low) & ~lowered.required_whole
    if not doubtful.any():
        return doubtful
    off = people.off_grid.astype(np.int64) @ lowered.required_touches.T.astype(np.int64)
    return np.asarray(doubtful & (off == 0))


def pack_people(lowered: Lowered, people: Allowed, errors: Errors, box: Floats, z: Floats) -> PackedPeople:
    """The arrays of many people; `errors` are theirs, or the same for all of them; of `box` and `z` see `pack_rows`."""
    slack, need, start, lost = (_for_all(part, len(people)) for part in errors)
    if len(lowered.required):
        need = need.copy()
        floor = need[:, :, -len(lowered.required) :]
        floor[:, layout.HOLDS] = lowered.holding(people.factual)
        surely = on_grids(lowered, people, floor[:, layout.LOW])
        floor[:, layout.HIGH] = np.where(surely, -0.5 * lowered.required_gap, floor[:, layout.HIGH])
    return PackedPeople(
        z=z,
        box=box,
        mask=people.allowed.view(np.uint8),
        cost=people.cost,
        option=people.option,
        slack=slack,
        need=need,
        start=start,
        most=np.full(len(people), lowered.most_changes),
        lost=lost,
    )


def _for_all(part: Floats, count: int) -> Floats:
    """One row per person; nobody writes into it."""
    return part if len(part) == count else part.repeat(count, axis=0)


# ---------------------------------------------------------------------------------------------- working memory


def hidden_neurons(pack: Pack) -> int:
    return int(pack.index[layout.SIZES, 1 : pack.layers].sum())


def new_scratch(pack: Pack, *, records: bool = False, rows: int = layout.FLOAT_ROWS) -> Scratch:
    """Buffers of one thread. `rows`: those of F."""
    features, columns = pack.price.shape[1], int(pack.index[layout.SIZES, 0])
    hidden, widest = hidden_neurons(pack), int(pack.index[layout.SIZES, : pack.layers + 1].max())
    variables = 2 * features + columns + 1
    row = max(hidden + 3, widest, columns, features + 1)  # LOSS has three entries more
    return Scratch(
        F=np.zeros((rows, row)),
        I=np.zeros((layout.INT_ROWS, row), dtype=np.int64),
        Wc=np.zeros((int(pack.index[layout.SIZES, 1]), columns)),
        LF=np.zeros((layout.PROGRAM_FLOATS, variables + MOST_ROWS)),
        LI=np.zeros((layout.PROGRAM_INTS, variables + MOST_ROWS), dtype=np.int64),
        T=np.zeros((MOST_ROWS, max(variables, MOST_ROWS))),
        A=np.zeros((MOST_ROWS, columns)),
        B=np.zeros((MOST_ROWS if records else 0, hidden), dtype=np.uint8),
    )


def when_probing(lowered: Lowered, pack: Pack, probing: Probing, *, records: bool = False) -> int:
    """When ReLUs are probed. Never without any, and where the multipliers cannot be recorded. By the rule, it depends
    on the person where the schema leaves more numbers free than `MANY_NUMBERS`. Under l0 a number costs the same
    however far it moves, and programs, in which costs grow with changes, say little.
    """
    if records and (pack.rules > 0 or pack.index[layout.SIZES, pack.layers] > hidden_neurons(pack)):
        return layout.NEVER
    if pack.layers == 1 or probing == "never":
        return layout.NEVER
    if probing == "always":
        return layout.ALWAYS
    least, most, _ = lowered.question.schema.grid
    wide = (most - least) / units(lowered) > np.where(lowered.in_steps, WIDE_STEPS, 0.0)
    flat = lowered.norm is Norm.L0 and lowered.bends is None
    return layout.NEVER if flat or np.count_nonzero(wide & lowered.numeric) <= MANY_NUMBERS else layout.BY_RULE


def new_relaxation(pack: Pack, probing: int, lines: int = CHORDS) -> TriangleBuffers:
    """Buffers of one thread for the relaxations of nodes, with so many lines of each neuron; next to none where no
    neuron is ever probed.
    """
    hidden = hidden_neurons(pack) if probing != layout.NEVER else 0
    neurons = min(hidden, MOST_PROBED) if hidden else 0
    features, columns = (pack.price.shape[1], int(pack.index[layout.SIZES, 0])) if hidden else (0, 0)
    ways = 2 * columns  # numbers in one direction each
    distances = 2 * columns if pack.norm == MAXIMUM else 0
    extra = int(pack.index[layout.SIZES, pack.layers]) + pack.rules + features
    rows = max(lines, 2) * neurons + extra + distances
    width = ways + neurons + 2
    variables = max(ways + 1 + (2 + lines) * neurons + extra + distances, rows, width, hidden)
    widest = int(pack.index[layout.SIZES, 1 : pack.layers + 1].max()) if hidden else 0
    numbers = np.zeros((layout.LEVELS, layout.RELAXATION_INTS, max(variables, 4)), dtype=np.int64)
    numbers[0, layout.SIZE, layout.PROBING] = probing
    return TriangleBuffers(
        T=np.zeros((layout.LEVELS, rows, width)),
        F=np.zeros((layout.LEVELS, layout.RELAXATION_FLOATS, variables)),
        G=numbers,
        E=np.zeros((2 * widest, width)),
        items=np.zeros((layout.FLOAT_ROWS, max(hidden + 3, widest, ways, features + 1))),
        kinds=np.zeros((layout.INT_ROWS, max(ways, features) + 1), dtype=np.int64),
        columns=np.zeros((int(pack.index[layout.SIZES, 1]) if hidden else 0, ways)),
        upper=np.zeros((2, hidden, ways + 2)),
    )


def products_of(sizes: Sequence[int]) -> float:
    """About how many products bounding the neurons takes: a plane of each, down to the inputs, which come first."""
    wide = np.array(sizes, dtype=float)
    return float((np.cumsum(wide[:-1] * wide[1:]) * wide[1:]).sum())


def node_bytes(pack: Pack) -> int:
    """What one node of the pool takes."""
    return pack.price.shape[1] * 17 + int(pack.index[layout.SIZES, 0]) + hidden_neurons(pack) * 17 + 56


def most_steps(pack: Pack, probing: int) -> int:
    """How many multipliers of relaxations a node may record."""
    if probing == layout.NEVER:
        return 0
    rows = 1 if pack.index[layout.SIZES, pack.layers] == 1 else 2
    return rows * (STEPS_A_RELU * min(hidden_neurons(pack), MOST_PROBED) + 3)


def first_log(pack: Pack, probing: int) -> int:
    """Numbers of records that a tree has space for at first: at least those of three nodes."""
    row = 2 + hidden_neurons(pack)
    return max(FIRST_LOG, 3 * row * (most_steps(pack, probing) + MOST_ROWS + 2) if most_steps(pack, probing) else 0)


def new_tree(pack: Pack, capacity: int, *, log: int = 0, steps: int = 0) -> Tree:
    """An empty tree with space for `capacity` nodes and `log` numbers of records, with so many `steps` of each node."""
    count = np.zeros(layout.COUNTS, dtype=np.int64)
    count[layout.MOST_STEPS] = steps
    features, columns, hidden = pack.price.shape[1], int(pack.index[layout.SIZES, 0]), hidden_neurons(pack)
    return Tree(
        box=np.zeros((capacity, 2, features)),
        mask=np.zeros((capacity, columns), dtype=np.uint8),
        z=np.zeros((capacity, 2, hidden)),
        side=np.zeros((capacity, hidden), dtype=np.uint8),
        counted=np.zeros((capacity, features), dtype=np.uint8),
        num=np.zeros((2, capacity)),
        idx=np.zeros((5, capacity), dtype=np.int64),
        best=np.zeros(features),
        number=np.zeros(5),
        count=count,
        log=np.zeros(log),
    )


def enlarged(tree: Tree, pack: Pack, capacity: int, log: int) -> Tree:
    """The same tree with space for more nodes and records."""
    larger = new_tree(pack, capacity, log=log)
    old = tree.num.shape[1]
    for name in ("box", "mask", "z", "side", "counted"):
        getattr(larger, name)[:old] = getattr(tree, name)
    larger.num[:, :old] = tree.num
    larger.idx[:, :old] = tree.idx
    larger.idx[layout.FREE, old:] = np.arange(old, capacity)
    larger.log[: len(tree.log)] = tree.log
    return larger._replace(best=tree.best, number=tree.number, count=tree.count)
