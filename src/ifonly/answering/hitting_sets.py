"""Minimum hitting sets: a least set that meets each of several sets, and contains none of certain others.

Sets are the bits of whole numbers. Branch and bound: of the sets that are not hit yet, one with the fewest elements is
branched on (the first of them is taken; or it is not, and the second is; ...). Disjoint sets that are not hit each need
an element of their own, which bounds what is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


def bits(mask: int) -> Iterator[int]:
    """The elements of a set, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def weight_of(mask: int, weights: Sequence[int]) -> int:
    return sum(weights[i] for i in bits(mask))


class _Branching:
    """One minimisation. `check` is called at every node, and may raise."""

    def __init__(self, weights: Sequence[int], excluded: Sequence[int], check: Callable[[], None]) -> None:
        self.weights, self.excluded, self.check = weights, excluded, check
        self.best: int | None = None
        self.least = sum(weights) + 1

    def branch(self, taken: int, left_out: int, spent: int, sets: Sequence[int]) -> None:
        """The least set with the taken elements and without those left out; `sets` are not hit yet."""
        self.check()
        if any(taken & whole == whole for whole in self.excluded):
            return
        if not sets:
            if spent < self.least:
                self.best, self.least = taken, spent
            return
        open_sets = sorted({one & ~left_out for one in sets}, key=lambda one: (one.bit_count(), one))
        if not open_sets[0] or spent + self.bound(open_sets) >= self.least:
            return
        for element in sorted(bits(open_sets[0]), key=lambda i: (self.weights[i], i)):
            bit = 1 << element
            rest = [one for one in open_sets if not one & bit]
            self.branch(taken | bit, left_out, spent + self.weights[element], rest)
            left_out |= bit

    def bound(self, sets: Sequence[int]) -> int:
        """What disjoint sets among these cost at least."""
        seen, total = 0, 0
        for one in sets:
            if not one & seen:
                seen |= one
                total += min(self.weights[i] for i in bits(one))
        return total


def least_hitting_set(
    sets: Sequence[int], weights: Sequence[int], excluded: Sequence[int] = (), check: Callable[[], None] = lambda: None
) -> int | None:
    """A set of least weight that meets each of `sets` and contains none of `excluded`; None where there is none.

    Weights are whole numbers > 0. Of several, always the same one is returned.
    """
    search = _Branching(weights, excluded, check)
    search.branch(0, 0, 0, minimal_sets(sets))
    return search.best


def minimal_sets(sets: Sequence[int]) -> list[int]:
    """The sets that contain no other of them, each once."""
    kept: list[int] = []
    for one in sorted(set(sets), key=lambda s: (s.bit_count(), s)):
        if not any(one & other == other for other in kept):
            kept.append(one)
    return kept
