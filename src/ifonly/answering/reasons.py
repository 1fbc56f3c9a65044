"""Irreducible infeasible subsets: why no allowed row meets the target, and the least relaxation that would help.

    blame         constraints that together rule it out, none of which can be left out (an irreducible infeasible
                  subset), by a deletion filter: a constraint without which the rest still rules it out is left out
    relaxations   constraints without which, all others kept, there is a row: single ones; where no single one helps,
                  pairs; where no pair does, one set that cannot be made smaller. The schema's rules between features
                  (facts about the world) are blamed where nothing else rules it out, and never dropped

Dropping a constraint that is not blamed leaves the blamed ones, which rule it out by themselves. So only blamed ones
can help alone, and a pair is a blamed one with one that is blamed after it is dropped: all single ones and all pairs
are found. Definitions of derived features always hold: without one, its feature would count as a change, so that fewer
constraints would allow less. Every step is a search of its own, with the same method and limits, and counts only with
its proof.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

from ifonly.answering.values import CheckedResult, Floats
from ifonly.problem import (
    Accepted,
    AcceptedBySome,
    Allowed,
    Fixed,
    MaxChanges,
    OnlyDown,
    OnlyUp,
    OnlyWith,
    Range,
    RobustToTrees,
    RobustToWeights,
)
from ifonly.problem.constraints import MaxDelta, Steps
from ifonly.problem.rules.derived import derived_features
from ifonly.results import Change, Reasons, Relaxation, Stop, StoppedBy, show
from ifonly.tolerances import Tolerances

SolveUnder: TypeAlias = Callable[[tuple[Any, ...]], CheckedResult]
"""The nearest row under other constraints."""
ChangesOf: TypeAlias = Callable[[Floats], tuple[Change, ...]]
"""A row's changes in the user's own values."""

MOST_SEARCHES = 200
"""To explain one answer."""


def find_reasons(
    constraints: Sequence[Any],
    solve: SolveUnder,
    changes: ChangesOf,
    *,
    seconds: float | None,
    tolerances: Tolerances,
    facts: Collection[Any] = (),
) -> Reasons:
    """The reasons of a person for whom these constraints leave no row. `seconds`: what all of it may take. `facts`: the
    constraints among them that nobody can drop."""
    known = [c for i, c in enumerate(constraints) if c not in constraints[:i]]
    definitions = tuple(c for c in known if derived_features([c]))
    distinct = [c for c in known if c not in definitions]
    ordered = [c for c in distinct if c not in facts] + [c for c in distinct if c in facts]

    def with_definitions(kept: tuple[Any, ...]) -> CheckedResult:
        return solve((*definitions, *kept))

    return _Subsets(
        ordered, with_definitions, changes, seconds, tolerances, sum(c in facts for c in distinct)
    ).reasons()


def relaxed(constraint: Any) -> str:
    """What holds when the constraint is dropped, in words."""
    match constraint:
        case Fixed():
            return f"{constraint.feature} may change"
        case OnlyUp():
            return f"{constraint.feature} may also go down"
        case OnlyDown():
            return f"{constraint.feature} may also go up"
        case Range():
            return f"{constraint.feature} may be {_outside(constraint)}"
        case Allowed():
            return f"{constraint.feature} may be other than {' or '.join(map(str, constraint.values))}"
        case MaxDelta():
            most = f"{100.0 * constraint.share:.10g} %" if constraint.share is not None else show(constraint.by)
            return f"{constraint.feature} may change by more than {most}"
        case Steps():
            return f"{constraint.feature} may change by any amount"
        case MaxChanges():
            return f"more than {constraint.most} may change"
        case Accepted():
            return f"{constraint.name} may refuse"
        case RobustToWeights():
            return f"a {constraint.around} may refuse"
        case RobustToTrees():
            return f"{constraint.of.name} may depend on {constraint.most} of its trees"
        case AcceptedBySome():
            return f"fewer than {constraint.least} of {', '.join(one.name for one in constraint.of)} may accept"
        case OnlyWith():
            return f"{constraint.feature} may change without {constraint.partner}"
        case _:
            return f"the rule '{constraint.describe()}' is dropped"


def _outside(allowed: Range) -> str:
    lower, upper = show(allowed.lower), show(allowed.upper)
    if math.isinf(allowed.lower):
        return f"above {upper}"
    return f"below {lower}" if math.isinf(allowed.upper) else f"outside [{lower}, {upper}]"


class _Subsets:
    """Searches under subsets of the constraints (by their numbers), none twice."""

    def __init__(
        self,
        constraints: Sequence[Any],
        solve: SolveUnder,
        changes: ChangesOf,
        seconds: float | None,
        tolerances: Tolerances,
        facts: int,
    ) -> None:
        self.constraints, self.solve, self.changes, self.tolerances = constraints, solve, changes, tolerances
        self.seconds = math.inf if seconds is None else seconds
        self.end = time.perf_counter() + self.seconds
        self.stop: Stop | None = None
        self.everything = frozenset(range(len(constraints)))
        self.facts = frozenset(range(len(constraints) - facts, len(constraints)))
        self.known: dict[frozenset[int], CheckedResult] = {}
        self.open: list[str] = []
        """What could not be decided."""

    def reasons(self) -> Reasons:
        if self.possible(frozenset()) is False:
            return Reasons(blame=(), minimal=True, relaxations=())
        blame = self.blame(self.everything)
        minimal = not self.open
        relaxations = self.single(blame) or self.pairs(blame) or self.some()
        return Reasons(
            blame=tuple(self.constraints[c].describe() for c in sorted(blame)),
            minimal=minimal,
            relaxations=tuple(sorted(relaxations, key=lambda r: (r.distance, r.dropped))),
            note="; ".join(dict.fromkeys(self.open)),
        )

    # ------------------------------------------------------------------ feasibility

    def under(self, kept: frozenset[int]) -> CheckedResult | None:
        """The nearest row when only these constraints hold; None when a limit is reached."""
        if kept not in self.known:
            if len(self.known) >= MOST_SEARCHES:
                self.stop = Stop(StoppedBy.QUESTIONS, MOST_SEARCHES)
            elif time.perf_counter() > self.end:
                self.stop = Stop(StoppedBy.SECONDS, self.seconds)
            if self.stop is not None:
                return None
            self.known[kept] = self.solve(tuple(self.constraints[c] for c in sorted(kept)))
        return self.known[kept]

    def possible(self, kept: frozenset[int]) -> bool | None:
        """Is there a row when only these constraints hold? None: not decided.

        A row that more constraints allow is allowed by fewer; fewer that rule it out rule it out with more.
        """
        if kept == self.everything:
            return False
        for other, known in self.known.items():
            if known.none_exists and other <= kept:
                return False
            if known.point is not None and kept <= other:
                return True
        found = self.under(kept)
        if found is None:
            return None
        return True if found.point is not None else False if found.none_exists else None

    # ------------------------------------------------------------------ blame

    def blame(self, kept: frozenset[int]) -> frozenset[int]:
        """An irreducible part of constraints that rule it out; those named last are tried to be left out first."""
        for c in sorted(kept, reverse=True):
            match self.possible(kept - {c}):
                case False:
                    kept = kept - {c}
                case None:
                    self.leave_open(f"that '{self.constraints[c].describe()}' is needed to rule it out", kept - {c})
                case True:
                    pass
        return kept

    # ------------------------------------------------------------------ what would help

    def single(self, blame: frozenset[int]) -> list[Relaxation]:
        return self.found({c} for c in sorted(blame - self.facts))

    def pairs(self, blame: frozenset[int]) -> list[Relaxation]:
        tried: list[set[int]] = []
        for c in sorted(blame - self.facts):
            if self.possible(self.everything - {c}) is False:
                others = self.blame(self.everything - {c}) - self.facts
                tried += [{c, d} for d in sorted(others) if {c, d} not in tried]
        return self.found(tried)

    def some(self) -> list[Relaxation]:
        """One set that cannot be made smaller: constraints are taken on as long as they leave a row."""
        kept = self.facts
        if self.possible(kept) is False:
            return []
        for c in sorted(self.everything - self.facts):
            match self.possible(kept | {c}):
                case True:
                    kept = kept | {c}
                case None:
                    self.leave_open(f"that '{self.constraints[c].describe()}' must be dropped", kept | {c})
                case False:
                    pass
        return self.found([set(self.everything - kept)])

    def found(self, drops: Iterable[set[int]]) -> list[Relaxation]:
        """Those of the sets without which there is a row, each with its nearest one."""
        result = []
        for dropped in drops:
            kept = self.everything - dropped
            found = None if self.possible(kept) is False else self.under(kept)
            words = " and ".join(relaxed(self.constraints[c]) for c in sorted(dropped))
            if found is None or found.point is None:
                if not (found is not None and found.none_exists) and self.possible(kept) is not False:
                    self.leave_open(f"whether it is possible if {words}", kept)
                continue
            result.append(
                Relaxation(
                    dropped=tuple(self.constraints[c].describe() for c in sorted(dropped)),
                    words=words,
                    distance=found.upper,
                    lower=min(found.lower, found.upper),
                    proven=found.is_nearest(self.tolerances),
                    changes=self.changes(found.point),
                )
            )
        return result

    def leave_open(self, what: str, kept: frozenset[int]) -> None:
        found = self.known.get(kept)
        stop = self.stop if found is None else found.stop
        self.open.append(f"{what} ({'undecided' if stop is None else stop.words(row=False)})")
