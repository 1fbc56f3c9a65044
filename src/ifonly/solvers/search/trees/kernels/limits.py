"""What every leaf asks of the features on the way to it, merged: one limit per feature."""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.layout import (
    COLUMN,
    CUT,
    FEATURE,
    LEAF,
    LEAST,
    LEFT,
    MOST,
    OUTER,
    RIGHT,
    SOURCES,
)


@with_cache(SOURCES, **OUTER)
def parents_of(node):
    """The node above each node; -1 at roots."""
    parent = np.full(node.shape[1], -1, dtype=np.int32)
    for i in range(node.shape[1]):
        if node[COLUMN, i] >= 0:
            parent[node[LEFT, i]] = i
            parent[node[RIGHT, i]] = i
    return parent


@with_cache(SOURCES, **OUTER)
def leaf_limits(node, parent, sets, choice, count, at, limit, limit_set, dead):
    """Fill the limits of every leaf; with empty arrays, only count them: those of a leaf end at at[leaf + 1]."""
    features, width, used = len(choice), sets.shape[1], 0
    seen, write = np.full(features, -1, dtype=np.int64), limit.shape[1] > 0
    leaf_node = np.empty(len(at) - 1, dtype=np.int64)
    for i in range(node.shape[1]):
        if node[COLUMN, i] < 0:
            leaf_node[node[LEAF, i]] = i
    for leaf in range(len(leaf_node)):
        at[leaf] = used
        first, child = used, leaf_node[leaf]
        above = parent[child]
        while above >= 0:
            g, cut, left = node[COLUMN, above], node[CUT, above], node[LEFT, above] == child
            if seen[g] < first:
                seen[g] = used
                used += 1
                if write:
                    limit[FEATURE, seen[g]], limit[LEAST, seen[g]], limit[MOST, seen[g]] = g, 0, count[g] - 1
                    for w in range(width):
                        limit_set[seen[g], w] = ~np.uint64(0)
            if write and choice[g]:
                for w in range(width):
                    limit_set[seen[g], w] &= sets[cut, w] if left else ~sets[cut, w]
            elif write and left:
                limit[MOST, seen[g]] = min(limit[MOST, seen[g]], cut)
            elif write:
                limit[LEAST, seen[g]] = max(limit[LEAST, seen[g]], cut + 1)
            child, above = above, parent[above]
        if write:
            dead[leaf] = _empty(limit, limit_set, choice, count, first, used)
    at[len(leaf_node)] = used


@njit(nogil=True, error_model="numpy")
def _empty(limit, limit_set, choice, count, first, last):
    """Can no cell meet one of these limits?"""
    for i in range(first, last):
        g = limit[FEATURE, i]
        if not choice[g]:
            if limit[LEAST, i] > limit[MOST, i]:
                return True
            continue
        some = False
        for k in range(count[g]):
            some = some or (limit_set[i, k >> 6] >> np.uint64(k & 63)) & np.uint64(1) != np.uint64(0)
        if not some:
            return True
    return False
