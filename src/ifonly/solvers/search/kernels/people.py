"""Conversion of people into the kernels' units, and of the rows found back into the question's.

One call for all of them: what numpy takes for a dozen small arrays is more than a person's search.
"""

from __future__ import annotations

import math

import numpy as np

from ifonly.compiling import with_cache
from ifonly.solvers.search.kernels.layout import CHOICE, GRID_OFFSET, KIND, LEAST, MOST, OUTER, REAL, SOURCES, START

END = 1e-15
"""Relative to the size of a domain: what a change may miss its end by."""


def _build_pack_rows(sources):
    @with_cache(**OUTER)
    # size: called from Python with arrays only, so that the cache holds one signature
    def pack_rows(index, unit, columns, biases, factual, option, lower, upper, grid_offset, box, z):
        """The changes that people may make, in the kernels' units, into box; the first layer at each factual, into z.

        `columns` is what one of each unrolled column adds to the first layer. Steps are counted from the factual, or,
        where that is off its grid, from the next value above it.
        """
        if sources == 0:
            return
        n, hidden = factual.shape[1], z.shape[1]
        for i in range(len(factual)):
            for k in range(hidden):
                z[i, k] = biases[k]
            for f in range(n):
                size, at = factual[i, f], index[START, f]
                if index[KIND, f] == CHOICE:
                    size, at = 1.0, at + option[i, f]
                for k in range(hidden):
                    z[i, k] += columns[at, k] * size
                box[i, GRID_OFFSET, f] = grid_offset[i, f]
                for end in range(2):
                    change = ((lower[i, f] if end == LEAST else upper[i, f]) - factual[i, f]) / unit[f]
                    if index[KIND, f] != REAL and change != 0.0:
                        change = np.rint(change - grid_offset[i, f]) + grid_offset[i, f]
                    box[i, end, f] = change

    return pack_rows


def _build_rows_found(sources):
    @with_cache(**OUTER)
    def rows_found(index, unit, factual, lower, upper, box, best, points, found):
        """The rows found, in the question's own units, into points, and whether there is one into found.

        An end of a number's domain is that end, to the last bit. Where there is no row: the factual.
        """
        if sources == 0:
            return
        n = factual.shape[1]
        for i in range(len(factual)):
            found[i] = math.isfinite(best[i, n])
            for f in range(n):
                change, value = best[i, f], factual[i, f]
                if found[i] and index[KIND, f] == CHOICE:
                    value = change
                elif found[i] and change != 0.0:
                    least, most = box[i, LEAST, f], box[i, MOST, f]
                    near = END * max(abs(least), abs(most))
                    if change <= least + near:
                        value = lower[i, f]
                    elif change >= most - near:
                        value = upper[i, f]
                    else:
                        value = min(max(value + change * unit[f], lower[i, f]), upper[i, f])
                points[i, f] = value

    return rows_found


pack_rows = _build_pack_rows(SOURCES)
rows_found = _build_rows_found(SOURCES)
