"""Mining of functional dependencies: features that one other feature decides, as derived features.

A feature follows from a base where rows with the same value of the base have the same value of the feature, in every
row, for every value that the base can have, and where chance does not explain it: of n rows with k values of the base,
n - k agree with an earlier row, each by chance with the probability of the most frequent value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError, RowError
from ifonly.problem.hosts import few_values
from ifonly.problem.rules import Derived, Rule
from ifonly.problem.rules.definitions import no_and_yes
from ifonly.problem.words import show_name, show_option
from ifonly.schema import Choice, Feature, Schema, read_points
from ifonly.schema.number_text import clear_number

LEAST_ROWS = 10
"""With each value of the base, or (where it has an order) each run of values with one result: fewer say too little."""
ALPHA = 0.01

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """A feature that another one decides in every row of a table."""

    feature: str
    base: str
    definition: str
    rows: int

    @property
    def rule(self) -> str:
        """The sentence, for `schema.with_rules`."""
        return Derived(self.feature, self.definition).describe()

    def __str__(self) -> str:
        return f"{self.rule}: in all {self.rows:,} rows"


def derivations(table: Any, schema: Schema | None = None, *, alpha: float = ALPHA) -> tuple[Derivation, ...]:
    """Features that follow from one other feature, each from the base with the fewest values.

    Of two features that decide each other, the one that comes later in the schema follows.
    """
    if schema is None:
        schema = Schema.infer(table)
    errors: list[RowError | None] = []
    points = read_points(schema, table, errors=errors)
    points = points[[error is None for error in errors]]
    if not len(points):
        raise QuestionError("The table has no row that fits the schema, so nothing can be learned from it.")
    finite = {
        g: values
        for g, feature in enumerate(schema.features)
        if (values := few_values(feature)) is not None and not getattr(feature, "missing", False)
    }
    level = math.log(alpha / max(1, len(finite) ** 2))
    decided: dict[tuple[int, int], Points] = {}
    for base, values in finite.items():
        ordered = _is_ordered(schema.features[base])
        for g in finite:
            found = None if g == base else _function(points, base, values, ordered, g, level)
            if found is not None:
                decided[g, base] = found
    return tuple(_chosen(schema, finite, decided, len(points)))


def follows_from(rules: Iterable[str], derived: Iterable[Derivation], schema: Schema) -> bool:
    """Are rules about two features of which one is derived from the other, so that the definition implies them?"""
    about = frozenset[str]().union(*(Rule(rule).features(schema) for rule in rules))
    return any(about <= {one.feature, one.base} for one in derived)


def _chosen(
    schema: Schema, finite: dict[int, Points], decided: dict[tuple[int, int], Points], rows: int
) -> list[Derivation]:
    """For each feature the base with the fewest values, which follows from nothing itself."""
    found: dict[int, Derivation] = {}
    for g in finite:
        bases = [base for one, base in decided if one == g and ((base, g) not in decided or base < g)]
        free = [base for base in bases if base not in found]
        if free:
            base = min(free, key=lambda b: (len(finite[b]), b))
            found[g] = Derivation(
                feature=schema.names[g],
                base=schema.names[base],
                definition=_words(schema.features[base], finite[base], schema.features[g], decided[g, base]),
                rows=rows,
            )
    return [found[g] for g in sorted(found)]


def _is_ordered(feature: Feature) -> bool:
    return not isinstance(feature, Choice) or feature.ordered


def _function(points: Points, base: int, values: Points, ordered: bool, g: int, level: float) -> Points | None:
    """The value of feature g for each value of the base; None where it is no function, or chance explains it."""
    result, rows = np.zeros(len(values)), np.zeros(len(values))
    for k, value in enumerate(values.tolist()):
        own = points[points[:, base] == value, g]
        if not len(own) or own.min() != own.max():
            return None
        result[k], rows[k] = own[0], len(own)
    runs = np.concatenate(([0], np.cumsum(result[1:] != result[:-1]))) if ordered else np.arange(len(values))
    if np.bincount(runs, weights=rows).min() < LEAST_ROWS:
        return None
    counts = np.unique(points[:, g], return_counts=True)[1]
    if len(counts) < 2:
        return None
    by_chance = (len(points) - len(values)) * math.log(float(counts.max()) / len(points))
    return result if by_chance <= level else None


# ---------------------------------------------------------------------- definitions


def _words(base: Feature, values: Points, feature: Feature, followed: Points) -> str:
    """The definition in words: the values of the base, in runs or in lists, that give each value."""
    cases = list(_cases(base, values, followed))
    if isinstance(feature, Choice) and len(feature.options) == 2 and len(cases) == 2:
        (holds, fails, value), _ = cases
        return holds if value == no_and_yes(feature)[1] else fails
    *earlier, (_, _, last) = cases
    chain = "".join(f"if {words} then {_shown(feature, value)} else " for words, _, value in earlier)
    return chain + _shown(feature, last)


def _cases(base: Feature, values: Points, followed: Points) -> Iterator[tuple[str, str, float]]:
    """For each value that follows: when it does, the opposite of that, and the value. Those of ordered bases in runs,
    each of which begins where the one before it ends."""
    name = show_name(base.name)
    if isinstance(base, Choice) and not _is_ordered(base):
        for value in dict.fromkeys(followed.tolist()):
            options = [_shown(base, v) for v in values[followed == value].tolist()]
            if len(options) == 1:
                yield f"{name} = {options[0]}", f"{name} != {options[0]}", value
            else:
                listed = f"({', '.join(options)})"
                yield f"{name} in {listed}", f"{name} not in {listed}", value
        return
    for value, run in groupby(zip(followed.tolist(), values.tolist(), strict=True), key=lambda pair: pair[0]):
        end = _shown(base, [v for _, v in run][-1])
        yield f"{name} <= {end}", f"{name} > {end}", value


def _shown(feature: Feature, value: float) -> str:
    return show_option(feature.options[int(value)]) if isinstance(feature, Choice) else clear_number(value)
