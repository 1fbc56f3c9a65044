"""Trees as lists of regions: the boxes of cells in which a tree, or several trees together, add the same amount.

Merged, two lists become one: of every region of the one and every region of the other the part that they share, which
adds what both add. The best region of a merged list is at most as good as the best ones of its parts together, so sums
of best regions bound a forest the better, the more of its trees are merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.layout import (
    FEATURE,
    INNER,
    LEAST,
    MOST,
    OUTER,
    SOURCES,
    Bytes,
    Floats,
    Ints,
    Places,
    Words,
)

NOTHING = np.uint64(0)


class CellDomain(NamedTuple):
    """The cells that rows of one person can be in, numbered through in each feature."""

    choice: Bytes
    count: Ints
    """(feature): how many cells there are; of choices the bits are those of the forest."""
    left: Words
    """(feature): of choices, the cells."""
    start: Ints
    """(feature): as in the forest."""
    above: Places
    """(cell of the forest): the first of these cells that is not below it."""
    below: Places
    """(cell of the forest): the last of these cells that is not above it."""


class Regions(NamedTuple):
    """Lists of regions, one after the other, each from the best region on."""

    at: Ints
    """(list): where it begins."""
    value: Floats
    least: Places
    """(region, feature): of numbers, the first cell."""
    most: Places
    left: Words
    """(region, feature): of choices, the cells."""


@njit(**INNER)
def _region(forest, domain, leaf, least, most, left):
    """The region of a leaf; False if no row falls into it."""
    for g in range(len(domain.choice)):
        least[g], most[g], left[g] = 0, domain.count[g] - 1, domain.left[g]
    for i in range(forest.limit_at[leaf], forest.limit_at[leaf + 1]):
        g = forest.limit[FEATURE, i]
        if domain.choice[g]:
            left[g] &= forest.limit_set[i, 0]
            if left[g] == NOTHING:
                return False
        else:
            least[g] = max(least[g], domain.above[domain.start[g] + forest.limit[LEAST, i]])
            most[g] = min(most[g], domain.below[domain.start[g] + forest.limit[MOST, i]])
            if least[g] > most[g]:
                return False
    return not forest.dead[leaf]


@njit(**INNER)
def _list(forest, domain, order, regions):
    """Fill the regions of every tree; returns how many there are."""
    used = 0
    for t in range(len(forest.roots)):
        regions.at[t] = used
        for i in range(forest.first_leaf[t], forest.first_leaf[t + 1]):
            leaf = order[i]
            if _region(forest, domain, leaf, regions.least[used], regions.most[used], regions.left[used]):
                regions.value[used] = forest.value[0, leaf]
                used += 1
    regions.at[len(forest.roots)] = used
    return used


@with_cache(SOURCES, **OUTER)
def list_regions(forest, domain, order):
    """One list per tree; `order`: the leaves tree by tree, from the best on."""
    leaves, features = len(forest.dead), len(domain.choice)
    regions = Regions(
        np.zeros(len(forest.roots) + 1, dtype=np.int64), np.empty(leaves + 1),
        np.empty((leaves + 1, features), dtype=np.int32), np.empty((leaves + 1, features), dtype=np.int32),
        np.empty((leaves + 1, features), dtype=np.uint64),
    )  # fmt: skip
    used = _list(forest, domain, order, regions)
    return Regions(regions.at, regions.value[:used], regions.least[:used], regions.most[:used], regions.left[:used])


@njit(**INNER)
def _shared(choice, one, i, other, k, made, used):
    """The part that region i of one list and region k of another share, as region `used`; False if there is none."""
    for g in range(len(choice)):
        if choice[g]:
            left = one.left[i, g] & other.left[k, g]
            if left == NOTHING:
                return False
            made.left[used, g] = left
        else:
            least, most = max(one.least[i, g], other.least[k, g]), min(one.most[i, g], other.most[k, g])
            if least > most:
                return False
            made.least[used, g], made.most[used, g] = least, most
    made.value[used] = one.value[i] + other.value[k]
    return True


@njit(**INNER)
def _merge(choice, one, other, most, made):
    """Fill the shared parts of two lists; returns how many there are, at most one more than `most`."""
    used = 0
    for i in range(len(one.value)):
        for k in range(len(other.value)):
            if _shared(choice, one, i, other, k, made, used):
                used += 1
                if used > most:
                    return used
    return used


@with_cache(SOURCES, **OUTER)
def merge_lists(choice, one, other, most):
    """Two lists as one, in any order; with no region where there would be more than `most`."""
    features = len(choice)
    size = min(most, len(one.value) * len(other.value)) + 1
    made = Regions(
        np.zeros(2, dtype=np.int64), np.empty(size), np.zeros((size, features), dtype=np.int32),
        np.zeros((size, features), dtype=np.int32), np.zeros((size, features), dtype=np.uint64),
    )  # fmt: skip
    used = _merge(choice, one, other, most, made)
    if used > most:
        used = 0
    return Regions(made.at, made.value[:used], made.least[:used], made.most[:used], made.left[:used])
