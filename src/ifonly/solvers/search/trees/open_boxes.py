"""Boxes of cells that are still open, beside those on the stack of the kernels; what is known of them; their halves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.solvers.search.trees.kernels.layout import FREE, Forest, LeafTable, PricedPerson, Stack
from ifonly.solvers.search.trees.kernels.shares import Shares

Box = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint64], NDArray[np.uint8]]
"""Of each feature the least and the last cell; the cells left of a choice; whether it must change."""


@dataclass(frozen=True)
class OpenBox:
    """A box to be priced in so many rounds, from these shares on; or which has been, and where it is split then."""

    box: Box
    shares: Shares
    rounds: int
    split: tuple[int, int] | None = None
    """The feature, and the cell (see `where_to_split`)."""


@dataclass(frozen=True)
class OpenedBox:
    """A box as far as the cutoff goes, and what is known of it."""

    bound: float
    table: LeafTable
    stack: Stack
    shares: Shares
    split: tuple[int, int]


def everything(forest: Forest) -> Box:
    """The box of all cells."""
    count = np.diff(forest.start).astype(np.int32)
    bits = np.arange(64 * forest.sets.shape[1]) < np.where(forest.choice, count, 0)[:, None]
    left = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    return np.zeros_like(count), count - 1, left, np.zeros(len(count), dtype=np.uint8)


def cells_around(forest: Forest, person: PricedPerson, cells: NDArray[np.int32]) -> Box:
    """The box in which every feature that costs something in these cells is there; all others are free."""
    (least, most, left, must), cost = everything(forest), person.cost[FREE]
    dear = cost[forest.start[:-1] + cells] > np.minimum.reduceat(cost, forest.start[:-1])
    for g in np.flatnonzero(dear).tolist():
        if forest.choice[g]:
            left[g] = 0
            left[g, cells[g] >> 6] = np.uint64(1) << np.uint64(cells[g] & 63)
        else:
            least[g] = most[g] = cells[g]
    return least, most, left, must


def no_shares(forest: Forest) -> Shares:
    """To begin with."""
    near, worth = np.zeros(len(forest.choice), dtype=np.int32), np.zeros(len(forest.value))
    return Shares(near, np.zeros(0, dtype=np.int64), np.zeros(0), worth)


def halves(forest: Forest, box: Box, split: tuple[int, int]) -> tuple[Box, Box]:
    """Both sides of a split: a number below the cell and from it on, a choice without the cell and with it alone."""
    g, cell = split
    one, other = ((least.copy(), most.copy(), left.copy(), must.copy()) for least, most, left, must in (box, box))
    if not forest.choice[g]:
        one[1][g], other[0][g] = cell - 1, cell
        return one, other
    alone = np.zeros_like(box[2][g])
    alone[cell >> 6] = np.uint64(1) << np.uint64(cell & 63)
    one[2][g] &= ~alone
    other[2][g] &= alone
    return one, other
