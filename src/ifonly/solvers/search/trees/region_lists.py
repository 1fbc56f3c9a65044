"""Lists of regions of one person: the cells that rows can be in, and which lists are merged."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.solvers.search.trees.kernels.layout import Forest
from ifonly.solvers.search.trees.kernels.regions import CellDomain, Regions

PARTNERS = 5
"""Lists that a list is tried to be merged with."""
PAIRS = 64
"""Pairs of regions that are tried for each that a merged list may have."""


def domain_of(forest: Forest, cells: list[NDArray[np.int64]]) -> CellDomain:
    """The cells of each feature that rows can be in, as the kernels take them."""
    above, below = np.zeros(int(forest.start[-1]), dtype=np.int32), np.zeros(int(forest.start[-1]), dtype=np.int32)
    left = np.zeros(len(forest.choice), dtype=np.uint64)
    for g, some in enumerate(cells):
        first, end = int(forest.start[g]), int(forest.start[g + 1])
        if forest.choice[g]:
            left[g] = np.bitwise_or.reduce(np.uint64(1) << some.astype(np.uint64))
        above[first:end] = np.searchsorted(some, np.arange(end - first), side="left")
        below[first:end] = np.searchsorted(some, np.arange(end - first), side="right") - 1
    return CellDomain(forest.choice, np.array(list(map(len, cells)), dtype=np.int64), left, forest.start, above, below)


def merged_lists(kernel: Any, choice: NDArray[np.uint8], regions: Regions, most: int) -> tuple[Regions, float]:
    """Lists merged, short ones first, as long as none has more than `most` regions; and what is added everywhere,
    which is in no list any more.
    """
    parts = list(zip(regions.at[:-1].tolist(), regions.at[1:].tolist(), strict=True))
    everywhere = sum(float(regions.value[first]) for first, end in parts if end - first == 1)
    waiting = sorted((_part(regions, *part) for part in parts if part[1] - part[0] > 1), key=_size)
    done: list[Regions] = []
    while waiting:
        one = waiting.pop(0)
        for k, other in enumerate(waiting[:PARTNERS]):
            if _size(one) * _size(other) > PAIRS * most:
                continue
            made = kernel.merge_lists(choice, one, other, most)
            if _size(made):
                del waiting[k]
                order = np.argsort(-made.value, kind="stable")
                insort(waiting, _of_parts(made.at, [part[order] for part in made[1:]]), key=_size)
                break
        else:
            done.append(one)
    at = np.concatenate([[0], np.cumsum([_size(one) for one in done])]).astype(np.int64)
    whole = done or [_part(regions, 0, 0)]
    return _of_parts(at, [np.concatenate(some) for some in zip(*(one[1:] for one in whole), strict=True)]), everywhere


def _part(regions: Regions, first: int, end: int) -> Regions:
    return _of_parts(regions.at[:2].copy(), [part[first:end].copy() for part in regions[1:]])


def _of_parts(at: NDArray[np.int64], parts: Iterable[Any]) -> Regions:
    return Regions._make([at, *parts])


def _size(regions: Regions) -> int:
    return len(regions.value)
