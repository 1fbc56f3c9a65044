"""The first points: a walk up the gradient and back towards the person, then along tangent planes. As
`search.kernels.walk`, with the activations' tangents."""

from __future__ import annotations

import numpy as np
from numba import njit

from ifonly.solvers.search.kernels.candidates import ROBUSTLY_HOLDS, round_solution, rules_hold
from ifonly.solvers.search.kernels.layout import (
    BASE,
    BEST,
    CHOICE,
    COLUMN,
    FEATURE,
    FIRST,
    HALT,
    ITEM_KIND,
    ONCE,
    PLANE_BEST,
    START,
    Y,
)
from ifonly.solvers.search.kernels.walk import (
    HALVINGS,
    STEP_SIZES,
    WALK_STEPS,
    WALK_TRIES,
    average_price,
    start_walk,
    step_up,
    switch_choices,
)
from ifonly.solvers.search.smooth.kernels.planes import neuron_plane, set_tangents
from ifonly.solvers.search.smooth.kernels.points import newton, newton_together, try_point

IMPROVE_TRIES = 12


@njit(**ONCE)
def find_point(pack, person, s, cut, tree, first, last):
    """Walk from starts `first` to `last`."""
    for k in range(first, last):
        if s.I[HALT, 0] != 0 or (first == 0 and k > 0 and tree.number[BEST] < np.inf):
            return
        before = tree.number[BEST]
        if _climb(pack, person, s, cut, tree, k):
            _pull_back(pack, person, s, cut, tree)
            newton(pack, person, tree, cut, np.int64(WALK_TRIES), s)
            if tree.number[BEST] < before:
                _improve(pack, person, s, cut, tree)


@njit(**ONCE)
def _climb(pack, person, s, cut, tree, k):
    """Step up the gradient of the condition that is met worst, until all are met. The point is in X and Y."""
    F, one, budget = s.F, np.int64(1), STEP_SIZES[k % 4] * average_price(s, cut)
    start_walk(s, cut, k)
    for step in range(WALK_STEPS):
        round_solution(pack, cut.items, F, s.I)
        worst, short = try_point(pack, person, tree, F)
        if short >= 0.0:
            return True
        if s.I[HALT, 0] != 0:
            return False
        set_tangents(pack, F)
        neuron_plane(pack, pack.layers - 1, worst, 1.0, one, cut.width, F, s.Wc)
        if step % 2 == 0:
            switch_choices(s, cut)
        step_up(s, cut, budget, -1.001 * short)
    return False


@njit(**ONCE)
def _pull_back(pack, person, s, cut, tree):
    """Halve the changes of numbers together while the conditions hold."""
    F, low, high = s.F, 0.0, 1.0
    for c in range(cut.width):
        F[PLANE_BEST, c] = F[Y, c]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        for j in range(cut.items):
            if s.I[ITEM_KIND, j] != CHOICE:
                c = s.I[FIRST, j]
                F[Y, c] = middle * F[PLANE_BEST, c]
        round_solution(pack, cut.items, F, s.I)
        _, short = try_point(pack, person, tree, F)
        if short >= 0.0 and rules_hold(pack, person, F) == ROBUSTLY_HOLDS:
            high = middle
        else:
            low = middle


@njit(**ONCE)
def _improve(pack, person, s, cut, tree):
    """Go on from the best point along tangent planes."""
    for j in range(cut.items):
        g, c = s.I[FEATURE, j], s.I[FIRST, j]
        if s.I[ITEM_KIND, j] != CHOICE:
            s.F[Y, c] = tree.best[g] - s.F[BASE, g]
            continue
        for k in range(c, s.I[FIRST, j + 1]):
            s.F[Y, k] = 1.0 if s.I[COLUMN, k] - pack.index[START, g] == tree.best[g] else 0.0
    newton_together(pack, person, s, tree, cut, np.int64(IMPROVE_TRIES))
