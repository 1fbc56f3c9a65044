"""Mining of invariants: rules that hold in every row of a table, generated, tested for significance, and selected.

candidates    orders and differences of numbers, equations, options and bounds given a condition   (a sample)
verified      counted in all rows: where it could have failed, where it did
significant   with columns paired at random so few exceptions have probability alpha / candidates tried
selected      those that would have prevented most of the altered rows (a row with one or two values of other rows);
              a rule that prevents no row that the ones before it allow is redundant, and is dropped
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ifonly.errors import QuestionError, RowError
from ifonly.mining.candidates import Candidate, TableSample, conditions, differences, equations, implications
from ifonly.mining.clauses import Implication, Points
from ifonly.population.intervals import share_interval
from ifonly.printing import json_object, shown
from ifonly.schema import Schema, read_points

Listener: TypeAlias = Callable[[float], None]
"""Callback for the part of the work that is done, from 0 to 1."""

ALPHA = 0.01
"""The probability that any invariant of a table whose columns are independent is a chance finding."""
SAMPLE_ROWS = 50_000
ALTERED_ROWS = 40_000
LEAST_PREVENTED = 1e-3
"""A rule must prevent this share of the altered rows of its own features that nothing before it prevents."""
EXAMPLES = 3
SEED = 20260


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """Rules that hold together in the rows of a table, and how well the table supports them."""

    kind: str
    rules: tuple[str, ...]
    rows: int
    """In how many rows it could have failed."""
    exceptions: int
    examples: tuple[int, ...]
    """The first rows that break it, by number."""
    upper: float
    """The share of such rows that break it is at most this, with 97.5 % confidence."""
    expected: float
    """How many rows would break it by chance, if the columns were paired at random."""
    p_value: float
    """The probability of so few exceptions by chance."""
    prevented: float
    """Share of the altered rows that it rules out: rows in which one or two values are those of other rows."""

    def __str__(self) -> str:
        broken = "no exception" if not self.exceptions else f"{self.exceptions:,} exceptions"
        rules = self.rules[0] if len(self.rules) == 1 else " and ".join(f"({rule})" for rule in self.rules)
        support = f"at most {self.upper:.2g} of all; by chance {self.expected:,.0f} rows"
        return f"{rules}: {broken} in {self.rows:,} rows ({support})"

    def to_dict(self) -> dict[str, Any]:
        return json_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariants(Sequence[Invariant]):
    """The invariants of a table, the most useful first."""

    found: tuple[Invariant, ...]
    rows: int
    unread: int
    """Rows that do not fit the schema, and were left out."""
    tried: int
    """Candidates that were tested; the significance level is divided by it."""

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, index: Any) -> Any:
        return self.found[index]

    def __iter__(self) -> Iterator[Invariant]:
        return iter(self.found)

    @property
    def rules(self) -> tuple[str, ...]:
        """All rules, for `schema.with_rules(*invariants.rules)`."""
        return tuple(rule for invariant in self.found for rule in invariant.rules)

    def __str__(self) -> str:
        return "\n".join(map(str, self.found)) or f"No invariant was found in {self.rows:,} rows."


def invariants(
    table: Any,
    schema: Schema | None = None,
    *,
    share: float = 0.0,
    alpha: float = ALPHA,
    listen: Listener | None = None,
) -> Invariants:
    """Rules that hold in every row of the table, or in all but a `share` of those in which they could fail.

    `listen` is called with the part that is done, from 0 to 1.
    """
    if not 0.0 <= share < 0.5:
        raise QuestionError(f"The share of exceptions must be at least 0 and below 0.5; it is {shown(share)}.")
    if not 0.0 < alpha < 1.0:
        raise QuestionError(f"The significance level 'alpha' must be between 0 and 1; it is {shown(alpha)}.")
    if schema is None:
        schema = Schema.infer(table)
    points, rows = _read(schema, table)
    chance = np.random.default_rng(SEED)
    some = np.sort(chance.choice(len(points), min(len(points), SAMPLE_ROWS), replace=False))
    candidates, tried = _candidates(
        TableSample(schema=schema, points=points[some], share=share, needed=0.0), alpha, listen
    )
    needed_p = alpha / tried
    found = []
    altered = _altered(points[some], chance)
    for place, candidate in enumerate(candidates):
        measured = _measured(schema, points, candidate, share, chance)
        if measured is not None and measured.p_value <= needed_p:
            found.append((candidate, measured))
        if listen is not None:
            listen(0.8 + 0.2 * (place + 1) / len(candidates))
    chosen = _selected(found, altered)
    return Invariants(found=tuple(chosen), rows=len(points), unread=rows - len(points), tried=tried)


def _read(schema: Schema, table: Any) -> tuple[Points, int]:
    errors: list[RowError | None] = []
    points = read_points(schema, table, errors=errors)
    if any(error is not None for error in errors):
        points = points[[error is None for error in errors]]
    if not len(points):
        raise QuestionError("The table has no row that fits the schema, so nothing can be learned from it.")
    return points, len(errors)


def _candidates(
    sample: TableSample, alpha: float, listen: Callable[[float], None] | None
) -> tuple[list[Candidate], int]:
    """What the sample suggests, and how many candidates were tried on the way."""
    known, numbers = conditions(sample), len(sample.numbers)
    tried = max(1, numbers * (numbers - 1) + numbers + sum(_tests(sample, c.feature) for c in known))
    sample = TableSample(schema=sample.schema, points=sample.points, share=sample.share, needed=math.log(tried / alpha))
    steps, done = max(1, numbers + len(known)), 0

    def tick() -> None:
        nonlocal done
        done += 1
        if listen is not None:
            listen(0.8 * done / steps)

    found = [*equations(sample), *differences(sample, tick)]
    return found + _merged(sample.schema, implications(sample, known, tick)), tried


def _tests(sample: TableSample, condition_feature: int) -> int:
    """How many consequences are tried of one condition: options that might never occur, and two bounds of numbers."""
    return sum(
        len(feature.options) if hasattr(feature, "options") else 2
        for g, feature in enumerate(sample.schema.features)
        if g != condition_feature
    )


# ---------------------------------------------------------------------- implications that belong together


def _merged(schema: Schema, found: list[Implication]) -> list[Candidate]:
    """Equivalences, functional dependencies, and each implication alone."""
    pairs = {(one.condition, one.consequence) for one in found}
    candidates = [
        Candidate("equivalence", (one, Implication(one.consequence, one.condition)))
        for one in found
        if (one.consequence, one.condition) in pairs and one.condition.feature < one.consequence.feature
    ]
    tables: dict[tuple[int, ...], list[Implication]] = {}
    for one in found:
        single = one.condition.options is not None and len(one.condition.options) == 1
        if single and _determines(one):
            tables.setdefault(one.features, []).append(one)
    candidates += [Candidate("dependency", tuple(several)) for several in tables.values() if len(several) > 2]
    return candidates + [Candidate("implication", (one,)) for one in found]


def _determines(one: Implication) -> bool:
    consequence = one.consequence
    return consequence.lower == consequence.upper or (consequence.options is not None and len(consequence.options) == 1)


# ---------------------------------------------------------------------- support and significance


def _measured(
    schema: Schema, points: Points, candidate: Candidate, share: float, chance: np.random.Generator
) -> Invariant | None:
    """How the whole table supports a candidate; None where it breaks it more often than is tolerated."""
    broken = np.flatnonzero(candidate.broken(points))
    rows = int(candidate.relevant(points).sum())
    if len(broken) > share * rows or rows == 0:
        return None
    expected = min(_expected(points, clause, chance) for clause in candidate.clauses)
    interval = share_interval(len(broken), rows)
    return Invariant(
        kind=candidate.kind,
        rules=tuple(clause.words(schema) for clause in candidate.clauses),
        rows=rows,
        exceptions=len(broken),
        examples=tuple(broken[:EXAMPLES].tolist()),
        upper=1.0 if interval is None else interval[1],
        expected=expected,
        p_value=poisson_at_most(len(broken), expected),
        prevented=0.0,
    )


def _expected(points: Points, clause: Any, chance: np.random.Generator) -> float:
    """How many rows break the clause when its first feature has the values of random other rows."""
    some = points if len(points) <= 4 * SAMPLE_ROWS else points[chance.choice(len(points), 4 * SAMPLE_ROWS)]
    mixed = some.copy()
    first = clause.features[0]
    mixed[:, first] = some[chance.permutation(len(some)), first]
    return float(clause.broken(mixed).sum()) * len(points) / len(some)


def poisson_at_most(count: int, mean: float) -> float:
    """The probability of `count` or fewer events where `mean` are expected."""
    if mean <= 0.0:
        return 1.0
    logs = [k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(count + 1)]
    return min(1.0, math.fsum(map(math.exp, logs)))


# ---------------------------------------------------------------------- selection of few rules


def _altered(points: Points, chance: np.random.Generator) -> list[tuple[int, Points]]:
    """For each feature: rows with its value, and in every second row that of one more feature, of other rows."""
    count, width = points.shape
    each = max(200, ALTERED_ROWS // width)
    altered = []
    for g in range(width):
        rows = points[chance.integers(count, size=each)]
        rows[:, g] = points[chance.integers(count, size=each), g]
        for r in range(0, each, 2):
            other = int(chance.integers(width))
            rows[r, other] = points[int(chance.integers(count)), other]
        altered.append((g, rows))
    return altered


def _selected(found: list[tuple[Candidate, Invariant]], altered: list[tuple[int, Points]]) -> list[Invariant]:
    """By how much each prevents that those before it do not; what prevents nothing more is dropped."""
    rows = np.concatenate([rows for _, rows in altered])
    broken = [candidate.broken(rows) for candidate, _ in found]
    least = LEAST_PREVENTED * len(altered[0][1])
    open_rows, chosen = np.ones(len(rows), dtype=bool), []
    left = list(range(len(found)))
    while left:
        gains = [int((broken[k] & open_rows).sum()) for k in left]
        best = max(range(len(left)), key=lambda k: (gains[k], -len(left) + k))
        if gains[best] < max(2.0, least * len(found[left[best]][0].features)):
            break
        k = left.pop(best)
        open_rows &= ~broken[k]
        chosen.append(_with_prevented(found[k][1], float(broken[k].mean())))
    return chosen


def _with_prevented(invariant: Invariant, prevented: float) -> Invariant:
    from dataclasses import replace

    return replace(invariant, prevented=prevented)
