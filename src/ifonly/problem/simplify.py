"""Network simplification: proportional neurons are merged and dead ones removed, where that is exact to the last bit.

A relaxation bounds each neuron by itself, so it does not see that two of them always cancel: the score then seems to
depend on features that it does not depend on, and a search splits them without end.

    merged   z_j = 2^e z_i:  v_i relu(z_i) + v_j relu(z_j) = (v_i + 2^e v_j) relu(z_i),  if that sum is exact
    dead     neurons that nothing reads, and those that are never above 0 whatever they read
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.resources import check_limits

Floats = NDArray[np.float64]
Stack: TypeAlias = list[tuple[Floats, Floats]]

LARGEST = 2.0**900
SMALLEST = 2.0**-900
"""Numbers in between can be multiplied by the powers of two that occur here without rounding."""


def simplified(stack: Stack) -> Stack:
    """Layers in order, ReLU after every one but the last. Every hidden layer keeps a neuron at least."""
    stack = list(stack)
    for k in reversed(range(len(stack) - 1)):  # what nothing reads is found from the end
        check_limits()
        stack[k : k + 2] = _narrowed(*stack[k], *stack[k + 1])
    return stack


def _narrowed(weight: Floats, bias: Floats, after: Floats, last: Floats) -> Stack:
    """One hidden layer and what reads it."""
    after = after.copy()
    keep = np.ones(len(bias), dtype=bool)
    for i, j, factor in _proportional(weight, bias):
        if keep[i]:
            joined = _exact_sum(after[:, i], factor * after[:, j])
            if joined is not None:
                after[:, i], after[:, j] = joined, 0.0
    keep &= after.any(axis=0) & (weight.any(axis=1) | (bias > 0.0))
    if keep.all():
        return [(weight, bias), (after, last)]
    if not keep.any():
        keep[0] = True
        after[:, 0] = 0.0
    return [(weight[keep], bias[keep]), (np.ascontiguousarray(after[:, keep]), last)]


def _proportional(weight: Floats, bias: Floats) -> list[tuple[int, int, float]]:
    """(i, j, factor): neuron j is exactly factor times neuron i, a power of two."""
    rows = np.column_stack([weight, bias]) + 0.0  # -0.0 is 0.0
    size = np.abs(rows).max(axis=1)
    least = np.where(rows == 0.0, np.inf, np.abs(rows)).min(axis=1)
    power = np.frexp(size)[1]
    scaled = np.ldexp(rows, -power[:, None])
    first: dict[bytes, int] = {}
    found = []
    for j in np.flatnonzero((size < LARGEST) & (least > SMALLEST) & (size > 0.0)).tolist():
        i = first.setdefault(scaled[j].tobytes(), j)
        if i != j:
            found.append((i, j, float(np.ldexp(1.0, power[j] - power[i]))))
    return found


def _exact_sum(a: Floats, b: Floats) -> Floats | None:
    """a + b where no sum is rounded (Knuth's two-sum leaves no rest); else None."""
    total = a + b
    rest = total - a
    exact = (a - (total - rest)) + (b - rest) == 0.0
    sized = (np.abs(b) < LARGEST) & ((np.abs(b) > SMALLEST) | (b == 0.0))
    return total if bool((exact & sized & np.isfinite(total)).all()) else None
