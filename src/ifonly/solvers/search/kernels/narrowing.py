"""Constraint propagation of linear rules over a box: values with which a rule cannot hold are left out."""

from __future__ import annotations

from numba import njit

from ifonly.solvers.search.kernels.layout import (
    CHOICE,
    GRID_OFFSET,
    INNER,
    INTEGER,
    KIND,
    LOW,
    ONCE,
    RULE_LAYER,
    RULE_PLACE,
    SIZES,
    START,
    TOUCHES,
)
from ifonly.solvers.search.kernels.node import next_value, value_below

PASSES = 8
"""How often all rules are propagated at most, while options drop out."""
UNITS = 1e-12
"""Relative: what rounding may do to the sums here, and more."""


@njit(**ONCE)
def narrow_by_rules(pack, person, lo, hi, mask):
    """Shrink a box (in place) to what its linear rules leave of it. False where one cannot hold."""
    for _ in range(PASSES):
        dropped = 0
        for j in range(pack.rules):
            if pack.index[RULE_LAYER, j] == 0:
                found = _narrow(pack, person, j, lo, hi, mask)
                if found < 0:
                    return False
                dropped += found
        if dropped == 0:
            break
    return True


@njit(**INNER)
def _most(pack, person, i, g, lo, hi, mask):
    """The most that feature g can add to neuron i of the first layer in the box."""
    first = pack.index[START, g]
    if pack.index[KIND, g] != CHOICE:
        weight = pack.first[i, first]
        return weight * (hi[g] if weight > 0.0 else lo[g])
    own, most = pack.first[i, first + person.option[g]], -1e300
    for c in range(first, pack.index[START, g + 1]):
        if mask[c]:
            most = max(most, pack.first[i, c] - own)
    return most


@njit(**INNER)
def _narrow(pack, person, j, lo, hi, mask):
    """Leave out values with which rule j cannot hold, whatever the others are. Returns how many options drop out, or
    -1 where it cannot hold at all.
    """
    i, touches = pack.index[RULE_PLACE, j], pack.index[TOUCHES + j]
    total, size = person.z[i], abs(person.z[i])
    for g in range(pack.price.shape[1]):
        if touches[g] != 0:
            most = _most(pack, person, i, g, lo, hi, mask)
            total += most
            size += abs(most)
    spare = total - person.need[LOW, pack.index[SIZES, pack.layers] + j] + person.slack[i] + UNITS * size
    if spare < 0.0:
        return -1
    dropped = 0
    for g in range(pack.price.shape[1]):
        if touches[g] == 0:
            continue
        if pack.index[KIND, g] == CHOICE:
            first = pack.index[START, g]
            own, least = pack.first[i, first + person.option[g]], _most(pack, person, i, g, lo, hi, mask) - spare
            for c in range(first, pack.index[START, g + 1]):
                if mask[c] and pack.first[i, c] - own < least:
                    mask[c] = 0
                    dropped += 1
        elif lo[g] < hi[g]:
            _narrow_number(pack, person, i, g, spare, lo, hi)
    return dropped


@njit(**INNER)
def _narrow_number(pack, person, i, g, spare, lo, hi):
    """Shrink the interval of a number to what adds at most `spare` less to neuron i than its best end."""
    weight, whole, offset = (
        pack.first[i, pack.index[START, g]],
        pack.index[KIND, g] == INTEGER,
        person.box[GRID_OFFSET, g],
    )
    if weight == 0.0:
        return
    end = (hi[g] if weight > 0.0 else lo[g]) - spare / weight
    room = UNITS * (abs(end) + abs(lo[g]) + abs(hi[g]))
    if weight > 0.0:
        end -= room
        end = value_below(end, offset) if whole else end
        lo[g] = max(lo[g], min(end, hi[g]))
    else:
        end += room
        end = next_value(value_below(end, offset), offset, 1.0) if whole else end
        hi[g] = min(hi[g], max(end, lo[g]))
