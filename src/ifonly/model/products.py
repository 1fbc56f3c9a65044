"""Matrix products of many rows with a small matrix, on the calling thread.

A BLAS library spreads a product that is not quite small over all cores. For matrices of this size that saves no time,
and its threads then spin for a tenth of a second on cores that other work needs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 17
"""Multiplications of one product: half of what OpenBLAS keeps to one thread."""
LARGE = 1 << 13
"""Weights from which on the BLAS library may use its own threads."""


def rows_times(rows: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """rows @ weight.T, for a matrix of rows (or several)."""
    if rows.ndim != 2 or rows.shape[0] * weight.size <= SMALL or weight.size >= LARGE:
        return np.asarray(rows.dot(weight.T))
    result, step = np.empty((len(rows), len(weight))), SMALL // weight.size
    for first in range(0, len(rows), step):
        np.dot(rows[first : first + step], weight.T, out=result[first : first + step])
    return result
