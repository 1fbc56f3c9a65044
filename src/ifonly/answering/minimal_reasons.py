"""Smallest sufficient sets by implicit hitting sets, from an oracle that decides whether a set of features suffices.

    sufficient     no row with these features held is decided otherwise; so are all its supersets
    contrast       features by whose change alone some row is decided otherwise; so are all its supersets

A set suffices exactly if it meets every contrast. So a least set that meets the contrasts known so far is a lower bound
on every sufficient set: where the oracle says that it suffices, it is a smallest one; where not, the row that the
oracle shows gives another contrast, which is made minimal and kept. Single features that are contrasts are in every
sufficient set (necessary). A deletion filter gives a subset-minimal set early, for the case that a limit is reached.

With the sets found excluded, the same loop gives the next one, in order of weight; where none is left, all
subset-minimal sufficient sets are known, and a feature in none of them is irrelevant. Sets are the bits of whole
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ifonly.answering.hitting_sets import bits, least_hitting_set, minimal_sets, weight_of


class SufficiencyVerdict(NamedTuple):
    """What is known of a set of held features. `suffices`: None where it is not decided; where it is False, `changed`
    are the features that differ in a row that is decided otherwise."""

    suffices: bool | None
    changed: int = 0


Oracle: TypeAlias = Callable[[int], SufficiencyVerdict]
"""The verdict on a set of held features."""


class OutOfTime(Exception):
    """A limit is reached."""


class FoundSet(NamedTuple):
    """A sufficient set; `least`: proven that no unlisted one weighs less; `minimal`: no proper subset suffices."""

    members: int
    least: bool
    minimal: bool


class ReasonSearch:
    """The search of one person. `weights` are whole numbers > 0; `check` raises OutOfTime when time is up; `closure`
    adds to held features those that keep their values with them in every row that counts."""

    def __init__(
        self,
        oracle: Oracle,
        weights: Sequence[int],
        check: Callable[[], None],
        closure: Callable[[int], int] = lambda held: held,
    ) -> None:
        self.oracle, self.weights, self.check, self.closure = oracle, list(weights), check, closure
        self.everything = (1 << len(weights)) - 1
        self.sufficient: list[int] = []
        self.contrasts: list[int] = []
        self.undecided: list[int] = []
        """Held sets of which neither is known."""
        self.necessary = 0
        self.found: list[FoundSet] = []
        self.at_least = 0
        """No sufficient set that is not among those found weighs less."""
        self.complete = False
        self.best: FoundSet | None = None
        """The set of the deletion filter."""

    def run(self, several: int | None) -> None:
        """Find so many subset-minimal sets (None: all), least first; what is known when time is up is kept."""
        try:
            if self.suffices(self.everything) is not True:
                return
            for i in range(len(self.weights)):
                if self.suffices(self.everything ^ (1 << i)) is False:
                    self.necessary |= 1 << i
            if self.suffices(self._least() or 0) is not True:
                self._delete()
            self._enumerate(several)
        except OutOfTime:
            pass
        if not self.found and self.best is not None:
            self.found.append(self.best)

    def suffices(self, held: int) -> bool | None:
        """Do these features suffice? None: not decided."""
        closed = self.closure(held)
        if any(closed & known == known for known in self.sufficient):
            return True
        if any(not held & known for known in self.contrasts):
            return False
        if closed in self.undecided:
            return None
        self.check()
        suffices, changed = self.oracle(closed)
        if suffices is None:
            self.undecided.append(closed)
        elif suffices:
            self.sufficient.append(held)
        else:
            self.contrasts.append(changed)
            self._shrink(changed)
        return suffices

    def _shrink(self, contrast: int) -> None:
        """Look for a minimal contrast inside one."""
        kept = 0
        while left := contrast & ~kept:
            bit = left & -left
            smaller = contrast ^ bit
            if smaller and self.suffices(self.everything ^ smaller) is False:
                contrast = min((c for c in self.contrasts if c & ~smaller == 0), key=lambda c: (c.bit_count(), c))
                kept &= contrast
            else:
                kept |= bit

    def _least(self, excluded: Sequence[int] = ()) -> int | None:
        self.contrasts = minimal_sets(self.contrasts)
        return least_hitting_set(self.contrasts, self.weights, excluded, self.check)

    def _delete(self) -> None:
        """The deletion filter: heavy features are left out first. An undecided one is kept."""
        held, minimal = self.everything, True
        self.best = None
        for i in sorted(range(len(self.weights)), key=lambda i: (-self.weights[i], -i)):
            verdict = self.suffices(held ^ (1 << i))
            if verdict is True:
                held ^= 1 << i
                self.best = FoundSet(held, least=False, minimal=False)
            minimal &= verdict is not None
        self.best = FoundSet(held, least=False, minimal=minimal) if minimal or held != self.everything else None

    def _enumerate(self, several: int | None) -> None:
        while several is None or len(self.found) < several:
            least = self._next()
            if least is None:
                return
            self.found.append(FoundSet(least, least=True, minimal=True))
        if self._least([one.members for one in self.found]) is None:
            self.complete = True

    def _next(self) -> int | None:
        """The least sufficient set that contains none of those found; None where there is none, or it is open."""
        known = [one.members for one in self.found]
        while True:
            bound = self._least(known)
            if bound is None:
                self.complete = True
                return None
            self.at_least = weight_of(bound, self.weights)
            rivals = [s for s in self.sufficient if not any(s & one == one for one in known)]
            best = min(rivals, key=lambda s: (weight_of(s, self.weights), s), default=None)
            if best is not None and weight_of(best, self.weights) <= self.at_least:
                return best
            verdict = self.suffices(bound)
            if verdict is True:
                return bound
            if verdict is None:
                return None

    def irrelevant(self) -> int:
        """The features that no subset-minimal sufficient set has, where all of these are known."""
        if not self.complete:
            return 0
        used = 0
        for one in self.found:
            used |= one.members
        return self.everything & ~used

    def needed(self, members: int) -> dict[int, int]:
        """For features of a set found: a contrast that only this one of them meets. Without it, the set does not
        suffice."""
        result = {}
        for i in bits(members):
            alone = (c for c in self.contrasts if c & members == 1 << i)
            found = min(alone, key=lambda c: (c.bit_count(), c), default=None)
            if found is not None:
                result[i] = found
        return result
