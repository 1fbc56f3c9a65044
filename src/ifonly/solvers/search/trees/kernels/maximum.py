"""Depth-first search for a box of cells in which regions add up to what is needed, or the proof that there is none.

No distance is looked at: any row will do. Of every list of regions the best one that meets a box bounds what the list
adds there. A box is closed where the sum of these is too low, or where some clause of the rules cannot hold; where the
best regions have a part in common, the sum is reached there. Otherwise it is split so that the sums of both halves are
lower: some splits are tried out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.trees.kernels.layout import (
    DONE,
    HEIGHT,
    INNER,
    LOOK,
    MEMORY,
    NODES,
    ONCE,
    OUTER,
    SLICE,
    SOURCES,
    Floats,
    Ints,
    Places,
    Words,
    lowest_bit,
)

ONE = np.uint64(1)
NOTHING = np.uint64(0)
TRIED = 6
"""Splits whose halves are bounded before one is chosen."""
ALLOWED = 1e-9
"""Clauses are about whole numbers or scaled to the size of 1: what lacks less than this may be rounding."""


class Clauses(NamedTuple):
    """Rules as clauses: in every row, one inequality of each clause holds (constant + sum of terms >= 0)."""

    clause_at: Ints
    """(clause): where its inequalities begin."""
    term_at: Ints
    """(inequality): where its terms begin, one per feature."""
    feature: Ints
    largest: Floats
    """(term, cell): the largest that the term is there. Of numbers, the largest in a box is at one of its ends."""
    constant: Floats


class RegionBoxes(NamedTuple):
    """Open boxes, the last one on top."""

    least: Places
    most: Places
    left: Words
    best: Places
    """(box, list): its best region that meets the box."""
    bound: Floats


class SplitBuffers(NamedTuple):
    """Buffers: how much each half of a split loses, by cell; and the region that must be looked at."""

    lost: Floats
    """(2, feature, cell)."""
    sets: Words
    """(feature, place): sets of options that are left of best regions."""
    worth: Floats
    """(feature, place): how much is lost with these."""
    least: Places
    """(feature): of the region that must be looked at, as of boxes."""
    most: Places
    left: Words
    count: Ints
    """HEIGHT, NODES."""


@njit(**INNER)
def _meets(choice, regions, r, boxes, s):
    for g in range(len(choice)):
        if choice[g]:
            if regions.left[r, g] & boxes.left[s, g] == NOTHING:
                return False
        elif regions.least[r, g] > boxes.most[s, g] or regions.most[r, g] < boxes.least[s, g]:
            return False
    return True


@njit(**INNER)
def _bounded(choice, regions, boxes, s, g, need):
    """The best regions that meet box s, of which feature g was narrowed (-1: any); False if their sum is below `need`,
    which may be known before all are.
    """
    total = 0.0
    for k in range(len(regions.at) - 1):
        total += regions.value[boxes.best[s, k]]
    for k in range(len(regions.at) - 1):
        r, end = boxes.best[s, k], regions.at[k + 1]
        if g >= 0:
            if choice[g]:
                if regions.left[r, g] & boxes.left[s, g] != NOTHING:
                    continue
            elif regions.least[r, g] <= boxes.most[s, g] and regions.most[r, g] >= boxes.least[s, g]:
                continue
        before = regions.value[r]
        while r < end and not _meets(choice, regions, r, boxes, s):
            r += 1
        if r == end:
            return False
        boxes.best[s, k] = r
        total += regions.value[r] - before
        if total < need:
            return False
    boxes.bound[s] = total
    return True


@njit(**INNER)
def _possible(choice, clauses, least, most, left):
    """Can every clause hold in some row of the box, as far as each one tells by itself?"""
    for c in range(len(clauses.clause_at) - 1):
        some = False
        for i in range(clauses.clause_at[c], clauses.clause_at[c + 1]):
            total = clauses.constant[i]
            for t in range(clauses.term_at[i], clauses.term_at[i + 1]):
                g = clauses.feature[t]
                if choice[g]:
                    bits, largest = left[g], -np.inf
                    while bits != NOTHING:
                        largest = max(largest, clauses.largest[t, lowest_bit(bits)])
                        bits &= bits - ONE
                    total += largest
                else:
                    total += max(clauses.largest[t, least[g]], clauses.largest[t, most[g]])
            if total >= -ALLOWED:
                some = True
                break
        if not some:
            return False
    return True


@njit(**INNER)
def _common(choice, regions, boxes, s, work):
    """The part of box s that all its best regions share, as the region of `work`; False if there is none."""
    for g in range(len(choice)):
        least, most, left = boxes.least[s, g], boxes.most[s, g], boxes.left[s, g]
        for k in range(len(regions.at) - 1):
            r = boxes.best[s, k]
            if choice[g]:
                left &= regions.left[r, g]
            else:
                least, most = max(least, regions.least[r, g]), min(most, regions.most[r, g])
        if (left == NOTHING) if choice[g] else least > most:
            return False
        work.least[g], work.most[g], work.left[g] = least, most, left
    return True


@njit(**INNER)
def _copy(boxes, s, to):
    for g in range(boxes.least.shape[1]):
        boxes.least[to, g], boxes.most[to, g] = boxes.least[s, g], boxes.most[s, g]
        boxes.left[to, g] = boxes.left[s, g]
    for k in range(boxes.best.shape[1]):
        boxes.best[to, k] = boxes.best[s, k]
    boxes.bound[to] = boxes.bound[s]


@njit(**INNER)
def _narrow(choice, boxes, s, g, place, words, upper):
    """One half of a split: of a number the cells below `place`, or from it on; of a choice those of a set, or the
    others.
    """
    if choice[g]:
        boxes.left[s, g] &= words if upper else ~words
    elif upper:
        boxes.least[s, g] = place
    else:
        boxes.most[s, g] = place - 1


@njit(**ONCE)
def _losses(choice, regions, boxes, s, work):
    """How much the best regions lose by splits at their ends; of choices, by sets of options."""
    for g in range(len(choice)):
        if choice[g]:
            for i in range(work.sets.shape[1]):
                work.worth[g, i] = 0.0
                work.sets[g, i] = NOTHING
        else:
            for k in range(boxes.least[s, g], boxes.most[s, g] + 2):
                work.lost[0, g, k] = work.lost[1, g, k] = 0.0
    for k in range(len(regions.at) - 1):
        r = boxes.best[s, k]
        after = min(r + 1, regions.at[k + 1] - 1)
        last = regions.at[k + 1] - 1
        worth = regions.value[r] - regions.value[after] + 1e-3 * (regions.value[r] - regions.value[last]) + 1e-300
        for g in range(len(choice)):
            if choice[g]:
                inside = regions.left[r, g] & boxes.left[s, g]
                if inside == boxes.left[s, g]:
                    continue
                i = 0
                while i + 1 < work.sets.shape[1] and work.sets[g, i] != inside and work.sets[g, i] != NOTHING:
                    i += 1
                work.sets[g, i] = inside
                work.worth[g, i] += worth
            else:
                if regions.least[r, g] > boxes.least[s, g]:  # lost where all cells are below its first
                    work.lost[0, g, regions.least[r, g]] += worth
                if regions.most[r, g] < boxes.most[s, g]:  # lost where all cells are above its last
                    work.lost[1, g, regions.most[r, g] + 1] += worth


@njit(**INNER)
def _insert(scores, feature, place, words, score, g, at, word):
    """One more candidate, if it is among the best."""
    i = len(scores) - 1
    if score <= scores[i]:
        return
    while i > 0 and scores[i - 1] < score:
        scores[i], feature[i], place[i], words[i] = scores[i - 1], feature[i - 1], place[i - 1], words[i - 1]
        i -= 1
    scores[i], feature[i], place[i], words[i] = score, g, at, word


@njit(**ONCE)
def _candidates(choice, boxes, s, work, scores, feature, place, words):
    """The splits by which the best regions lose most on the side that loses less."""
    for i in range(len(scores)):
        scores[i], feature[i] = 0.0, -1
    for g in range(len(choice)):
        if choice[g]:
            for i in range(work.sets.shape[1]):
                if work.sets[g, i] == NOTHING:
                    break
                other = 0.0
                for j in range(work.sets.shape[1]):
                    if work.sets[g, j] & work.sets[g, i] == NOTHING:
                        other += work.worth[g, j]
                _insert(scores, feature, place, words, other + 0.1 * work.worth[g, i] + 1e-12, g, 0, work.sets[g, i])
            continue
        # the half below `cut` loses regions that begin at `cut` or above; the other one those that end below it
        below, above = 0.0, 0.0
        for k in range(boxes.least[s, g] + 1, boxes.most[s, g] + 1):
            below += work.lost[0, g, k]
        for cut in range(boxes.least[s, g] + 1, boxes.most[s, g] + 1):
            above += work.lost[1, g, cut]
            if work.lost[0, g, cut] > 0.0 or work.lost[1, g, cut] > 0.0:
                score = min(below, above) + 0.1 * max(below, above) + 1e-12
                _insert(scores, feature, place, words, score, g, cut, NOTHING)
            below -= work.lost[0, g, cut]


@njit(**ONCE)
def _split(choice, regions, clauses, boxes, s, work, need, candidates):
    """The box on top becomes two, the one with the higher sum above; those that cannot reach `need` are left out."""
    scores, feature, place, words = candidates
    _losses(choice, regions, boxes, s, work)
    _candidates(choice, boxes, s, work, scores, feature, place, words)
    best, chosen = np.inf, -1
    for i in range(len(scores)):
        if feature[i] < 0:
            break
        score = worst = 0.0
        for upper in range(2):
            _copy(boxes, s, s + 1)
            _narrow(choice, boxes, s + 1, feature[i], place[i], words[i], upper)
            if _bounded(choice, regions, boxes, s + 1, feature[i], need):
                score += 0.5 * (boxes.bound[s + 1] - need)
                worst = max(worst, boxes.bound[s + 1] - need)
        score += 0.5 * worst
        if score < best:
            best, chosen = score, i
    if chosen < 0:
        return False
    g, cut, word = feature[chosen], place[chosen], words[chosen]
    height = s
    for upper in range(2):
        _copy(boxes, s, s + 1 + upper)
    for upper in range(2):
        _copy(boxes, s + 2, s + 1)
        at = s + 1
        _narrow(choice, boxes, at, g, cut, word, upper)
        if not _bounded(choice, regions, boxes, at, g, need):
            continue
        if not _possible(choice, clauses, boxes.least[at], boxes.most[at], boxes.left[at]):
            continue
        if height == s + 1 and boxes.bound[s] > boxes.bound[at]:  # the better one on top
            _copy(boxes, s, s + 3)
            _copy(boxes, at, s)
            _copy(boxes, s + 3, at)
        elif height == s:
            _copy(boxes, at, s)
        height += 1
    work.count[HEIGHT] = height
    return True


@njit(**INNER)
def _push(choice, regions, clauses, boxes, work, s, to, g, need):
    """Box s, narrowed in feature g, as box `to`; returns the height of the stack."""
    if not _bounded(choice, regions, boxes, s, g, need):
        return to
    if not _possible(choice, clauses, boxes.least[s], boxes.most[s], boxes.left[s]):
        return to
    if s != to:
        _copy(boxes, s, to)
    return to + 1


@njit(**ONCE)
def _carve(choice, regions, clauses, boxes, s, work, need):
    """The box on top without the region of `work`: what is left of it on either side, feature by feature."""
    space, height = len(boxes.bound) - 1, s
    core = space - 1
    _copy(boxes, s, core)
    for g in range(len(choice)):
        for side in range(1 if choice[g] else 2):
            _copy(boxes, core, space)
            if choice[g]:
                boxes.left[space, g] &= ~work.left[g]
                boxes.left[core, g] &= work.left[g]
                empty = boxes.left[space, g] == NOTHING
            elif side == 0:
                boxes.most[space, g] = work.least[g] - 1
                boxes.least[core, g] = work.least[g]
                empty = boxes.least[space, g] > boxes.most[space, g]
            else:
                boxes.least[space, g] = work.most[g] + 1
                boxes.most[core, g] = work.most[g]
                empty = boxes.least[space, g] > boxes.most[space, g]
            if not empty:
                height = _push(choice, regions, clauses, boxes, work, space, height, g, need)
    work.count[HEIGHT] = height


@with_cache(SOURCES, **OUTER)
def begin_boxes(choice, regions, clauses, boxes, work, need):
    """The box of everything, which is in the first place, as the only one."""
    work.count[HEIGHT] = 0
    for k in range(len(regions.at) - 1):
        boxes.best[0, k] = regions.at[k]
    work.count[HEIGHT] = _push(choice, regions, clauses, boxes, work, 0, 0, -1, need)


@with_cache(SOURCES, **OUTER)
def look_for_row(choice, regions, clauses, boxes, work, need, nodes, carve):
    """Go on for so many nodes. `carve`: first leave out the region that was looked at. LOOK: a region must be."""
    end = work.count[NODES] + nodes
    candidates = (
        np.empty(TRIED), np.empty(TRIED, dtype=np.int64), np.empty(TRIED, dtype=np.int64),
        np.empty(TRIED, dtype=np.uint64),
    )  # fmt: skip
    while work.count[HEIGHT] > 0:
        if work.count[NODES] >= end:
            return SLICE
        if work.count[HEIGHT] + 2 * len(choice) + 6 >= len(boxes.bound):
            return MEMORY
        s = work.count[HEIGHT] - 1
        if carve:
            carve = False
            _carve(choice, regions, clauses, boxes, s, work, need)
            continue
        work.count[NODES] += 1
        if _common(choice, regions, boxes, s, work):
            if _possible(choice, clauses, work.least, work.most, work.left):
                return LOOK
            carve = True
            continue
        if not _split(choice, regions, clauses, boxes, s, work, need, candidates):
            return LOOK
    return DONE
