"""Products of many rows with a small matrix, on the thread that asks for them.

Where a product is not quite small, a library for linear algebra spreads it over all cores, which takes no less time for
matrices such as ours; and then its threads spin for a tenth of a second in the hope of more, on cores that others want.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SMALL = 1 << 17
"""Multiplications of one product: half of what OpenBLAS keeps to one thread."""
LARGE = 1 << 13
"""Weights from which on the library is let to do as it likes."""


def rows_times(rows: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """rows @ weight.T, for a matrix of rows (or several)."""
    if rows.ndim != 2 or rows.shape[0] * weight.size <= SMALL or weight.size >= LARGE:
        return np.asarray(rows.dot(weight.T))
    result, step = np.empty((len(rows), len(weight))), SMALL // weight.size
    for first in range(0, len(rows), step):
        np.dot(rows[first : first + step], weight.T, out=result[first : first + step])
    return result
