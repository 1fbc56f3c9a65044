"""What prices say of the cells of a box: in which no row below the cutoff lies, and the least that is left outward."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ifonly.solvers.search.trees.kernels.layout import INNER
from ifonly.solvers.search.trees.kernels.points import has

ONE = np.uint64(1)


@njit(**INNER)
def narrow(forest, ball, near, reduced, allowance):
    """Drop the cells of which the shares leave `allowance` or more, beyond the least that they leave of the feature."""
    least, most, left = ball
    for g in range(len(near)):
        first, lowest = forest.start[g], 0.0
        if forest.choice[g]:
            for k in range(forest.start[g + 1] - first):
                if has(left[g], k):
                    lowest = min(lowest, reduced[first + k])
            for k in range(forest.start[g + 1] - first):
                if k != near[g] and has(left[g], k) and reduced[first + k] - lowest >= allowance:
                    left[g, k >> 6] &= ~(ONE << np.uint64(k & 63))
            continue
        for k in range(least[g], most[g] + 1):
            lowest = min(lowest, reduced[first + k])
        while most[g] > near[g] and reduced[first + most[g]] - lowest >= allowance:
            most[g] -= 1
        while least[g] < near[g] and reduced[first + least[g]] - lowest >= allowance:
            least[g] += 1


@njit(**INNER)
def least_outward(forest, ball, near, reduced):
    """Row 1 of `reduced`: the least of row 0 in the cells from there on outward; of choices, row 0."""
    least, most = ball[0], ball[1]
    for g in range(len(near)):
        first = forest.start[g]
        if forest.choice[g]:
            for k in range(first, forest.start[g + 1]):
                reduced[1, k] = reduced[0, k]
            continue
        up = down = math.inf
        for k in range(most[g], near[g], -1):
            up = min(up, reduced[0, first + k])
            reduced[1, first + k] = up
        for k in range(least[g], near[g]):
            down = min(down, reduced[0, first + k])
            reduced[1, first + k] = down
        reduced[1, first + near[g]] = min(0.0, min(up, down))
