"""Tangent planes of the softmax: the probability of one of three or more classes, which is convex in the scores.

    p_k >= t   <=>   s_k - log sum_{j != k} exp(s_j)  >=  log(t / (1 - t))
    log sum_j exp(s_j)  =  max over w >= 0, sum w = 1  of  sum_j w_j s_j + H(w),    H(w) = -sum_j w_j log w_j

So  s_k - sum_j w_j s_j >= log(t / (1 - t)) + H(w)  is necessary whatever the weights w of the other classes, and with
w_j in proportion to exp(s_j) it is the tangent at a row with these scores: no row that misses the probability meets its
own tangent. Several such planes are a conjunction of linear conditions, which is what methods search.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights: TypeAlias = tuple[float, ...]
"""One number per other class, in the order of the classes: multiples of 2^-40 whose sum is exactly 1."""

GRAIN = 2.0**-40
SLACK = 2.0**-33
"""Log-odds: how far a plane is moved outward, so that no rounding of it can exclude a row that has the probability."""
GUARD = 2.0**-48
"""Relative to the scores: what rounding can take from a log-odds that is computed from them."""


class PlanesRecord(NamedTuple):
    """What a search for a probability leaves: the weights of the planes that its lower bound follows from."""

    weights: tuple[Weights, ...]


def log_odds(scores: Floats, index: int) -> Floats:
    """s_k - log sum_{j != k} exp(s_j) of each row of scores, not above its exact value."""
    others = np.delete(scores, index, axis=1)
    largest = others.max(axis=1)
    total = largest + np.log(np.exp(others - largest[:, None]).sum(axis=1))
    return np.asarray(scores[:, index] - total - GUARD * (1.0 + np.abs(scores).max(axis=1)))


def first_weights(classes: int) -> tuple[Weights, ...]:
    """The planes to begin with: ahead of each other class, and of all of them alike."""
    others = classes - 1
    alone = tuple(tuple(float(i == j) for j in range(others)) for i in range(others))
    return (*alone, weights_at(np.zeros(classes), 0))


def weights_at(scores: Floats, index: int) -> Weights:
    """The weights of the tangent at a row with these scores."""
    others = np.delete(scores, index)
    share = np.exp(others - others.max())
    whole = np.floor(share / share.sum() / GRAIN)
    whole[int(share.argmax())] += 1.0 / GRAIN - whole.sum()
    return tuple((whole * GRAIN).tolist())


def planes(weights: tuple[Weights, ...], index: int, threshold: float) -> tuple[Floats, Floats]:
    """C and d of the planes with these weights: what every row that has the log-odds meets."""
    w = np.array(weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(w > 0.0, w * np.log(w), 0.0).sum(axis=1)
    return np.insert(-w, index, 1.0, axis=1), threshold + entropy - SLACK * (1.0 + abs(threshold))
