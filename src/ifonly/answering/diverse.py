"""Diverse counterfactuals: each the nearest row that differs enough from all earlier ones (MIP-DIVERSE).

    x_1 = the nearest,    x_i = the nearest with  differs(x_i, x_j) for all j < i        (paper, section on diversity)

What counts as different is the person's choice:

    distance   dist(x_i, x_j) >= apart                                  (the paper's delta)
    features   x_i leaves unchanged something that x_j changes          (another way out, not a detour on the same one)
    values     some feature of x_i differs from x_j: an option, an integer, or a real number by at least
               apart times its scale                                    (Russell's condition, made sound for reals)

Every answer carries its own proof, given the earlier ones. A set of fewer than k ends with the proof that no further
row exists, or with the limit that was hit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ifonly.answering.answerer import Answerer
from ifonly.answering.branching import Branching
from ifonly.answering.values import CheckedResult, Floats, SearchSettings
from ifonly.errors import Contradiction
from ifonly.problem import Distance, Query
from ifonly.problem.disjunctions import Condition, PersonContext
from ifonly.problem.diversity import Diversity, different, distances_between, settled_reals
from ifonly.problem.missing import distance_restricted_to
from ifonly.results import DiverseAnswers, Limits, NoneExists


class DiverseSearch(NamedTuple):
    """One person's search for several rows: its nodes, the person, and the conditions of the query itself."""

    branching: Branching
    context: PersonContext
    conditions: Sequence[Condition]
    settled: tuple[str, ...]
    """The real numbers that the constraints leave one value."""


def diverse_answers(
    answerer: Answerer, point: Floats, diversity: Diversity, query: Query, settings: SearchSettings
) -> DiverseAnswers:
    """Several answers of one person, nearest first. The limits are for each answer."""
    begun = time.perf_counter()
    if (missing := answerer.schema.missing_names(point)) and isinstance(diversity.apart_distance, Distance):
        diversity = replace(diversity, apart_distance=distance_restricted_to(diversity.apart_distance, missing))
    answerer, point, query = answerer.kept_missing(point, query)
    query, breaks = answerer.without_broken(point, query)
    runner, schema, builder = answerer.runner, answerer.schema, answerer.builder
    diversity.check(schema, query.measure)
    batch, resolved, already = answerer.one(point, query)
    conditions, plain = runner.split(query)
    search = DiverseSearch(
        runner.branching(resolved, point, query, settings),
        PersonContext(schema, point, query.measure),
        conditions,
        settled_reals(schema, point, plain.constraints),
    )
    found, last = find_diverse(search, diversity, already, settings.limits)
    ended = None if last is None else builder.answer(batch, resolved, last, query)
    if isinstance(ended, NoneExists) and not found:  # the query itself has no answer: say why
        ended = replace(ended, reasons=answerer.reasons(ended, point, resolved, query, settings))
    answers = [builder.answer(batch, resolved, one, query) for one in found]
    return DiverseAnswers(
        [replace(answer, breaks=(*breaks, *answer.breaks)) for answer in answers] if breaks else answers,
        ended=ended,
        apart=distances_between(schema, query.measure, [one.point for one in found if one.point is not None]),
        condition=diversity.describe(query.measure),
        seconds=time.perf_counter() - begun,
    )


def find_diverse(
    search: DiverseSearch, diversity: Diversity, first: CheckedResult | None, limits: Limits
) -> tuple[list[CheckedResult], CheckedResult | None]:
    """Up to k rows, nearest first, and the result that ended the set before it was full. `first` is the unchanged row
    of somebody who meets the target already.
    """
    branching, context, conditions, settled = search
    found: list[CheckedResult] = [] if first is None else [first]
    points = [one.point for one in found]
    conditions = [*conditions, *(different(context, p, diversity, settled) for p in points if p is not None)]
    while len(found) < diversity.k:
        one = branching.nearest(conditions, limits)
        point = one.point
        if point is None:
            return found, one
        if any(np.array_equal(point, other) for other in points if other is not None):
            raise Contradiction(f"Answer {len(found) + 1} is a copy of an earlier one: {point.tolist()}.")
        found.append(one)
        points.append(point)
        conditions.append(different(context, point, diversity, settled))
    return found, None
