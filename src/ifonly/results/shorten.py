"""Rounding of counterfactuals within the gap: 1071.0293 instead of 1071.029270808483.

The nearest row usually sits on the margin, so its real values have all their digits, and a value that is rounded
when it is printed may not flip the decision. Each changed real value is therefore rounded away from the factual, to
the fewest decimals that keep the row within the gap of the proven lower bound. A rounded row is kept only if the
network scores it no lower than the original on every condition; like any other row, it must then pass the witness
check. Where that fails, something else binds: see `corners`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question
from ifonly.results.claim import Claim
from ifonly.results.claims import Claims
from ifonly.results.shorten_binding import shorter
from ifonly.tolerances import Tolerances

ATTEMPTS = 2
DECIMALS = 15

Floats = NDArray[np.float64]


def shortened(question: Question, factuals: Floats, claims: Sequence[Claim], tolerances: Tolerances) -> Claims:
    """The claims, with shorter numbers in their rows where that is possible."""
    tidy, reals = Claims.of(claims, factuals), question.schema.reals
    points, cells = tidy.points, dict[int, list[int]]()
    if len(reals):  # where there is no row, nothing moved
        rows, places = (factuals.take(reals, axis=1) != points.take(reals, axis=1)).nonzero()
        for i, g in zip(rows.tolist(), reals.take(places).tolist(), strict=True):
            cells.setdefault(i, []).append(g)
    if not cells:
        return tidy
    upper = question.measure.between(factuals, points)
    most = tidy.lower + tolerances.allowed_each(upper)
    slack, result = (most - upper).tolist(), points.copy()
    waiting, short = [i for i in cells if slack[i] > 0.0], set[int]()
    for attempt in range(ATTEMPTS):
        if not waiting:
            break
        every = len(waiting) == len(points)
        old, now, far = (each if every else each[waiting] for each in (factuals, points, most))
        rounded = _rounded(question, old, now, [(cells[i], slack[i]) for i in waiting], attempt)
        good = _no_lower(question, now, rounded) & (question.measure.between(old, rounded) <= far)
        kept = (good & question.keeps_rules(old, rounded)).tolist()
        if question.by_feature:
            kept = [fine and question.allows(*pair) is None for fine, *pair in zip(kept, old, rounded, strict=True)]
        done = [i for i, fine in zip(waiting, kept, strict=True) if fine]
        result[done] = rounded if len(done) == len(waiting) else rounded[kept]
        short.update(done)
        waiting = [i for i, fine in zip(waiting, good.tolist(), strict=True) if not fine]
    for i in (i for i in cells if slack[i] > 0.0 and i not in short):
        within = float(tidy.lower[i]), float(most[i])
        row = shorter(question, factuals[i], points[i], cells[i], within, partial(_conditions, question))
        if row is not None:
            result[i] = row
    return replace(tidy, points=result)


def _rounded(
    question: Question,
    before: Floats,
    rows: Floats,
    cells: Sequence[tuple[list[int], float]],
    attempt: int,
) -> Floats:
    """The rows with changed values rounded away from the factual, each to the decimals that an equal share of the slack
    of its row leaves it, and inside the schema's bounds; those that need more than 15 decimals are left as they are.
    """
    lower, upper = (ends.tolist() for ends in question.schema.grid[:2])
    rates, result = question.measure.steepest.tolist(), rows.copy()
    at = [k for k, (some, _) in enumerate(cells) for _ in some], [g for some, _ in cells for g in some]
    of = [(len(some), slack) for some, slack in cells for _ in some]
    for k, g, old, value, (count, slack) in zip(*at, before[at].tolist(), rows[at].tolist(), of, strict=True):
        places = (math.ceil(math.log10(rates[g] * count / slack)) if rates[g] > 0.0 else 0) + attempt
        if abs(places) > DECIMALS:
            continue
        scale = 10.0 ** abs(places)
        shifted = value * scale if places >= 0 else value / scale
        whole = math.ceil(shifted) if value > old else math.floor(shifted)
        short = whole / scale if places >= 0 else whole * scale
        result[k, g] = min(max(short, lower[g]), upper[g])
    return result


def _no_lower(question: Question, rows: Floats, rounded: Floats) -> NDArray[np.bool_]:
    """Which rounded rows are scored no lower than their rows, on every condition?"""
    same = question.model.function.same_scores(rows, rounded)
    if same.all():
        return same
    scores = _conditions(question, np.concatenate([rows, rounded]))
    return np.asarray((scores[len(rows) :] >= scores[: len(rows)]).all(axis=1))


def _conditions(question: Question, points: Floats) -> Floats:
    """The conditions' values; each row has a product of its own, whose last bits do not depend on the other rows."""
    c, d = question.conditions
    scores = question.model.function.steady_scores(question.schema.encode(points))
    return np.asarray((scores[:, None, :] @ c.T)[:, 0, :] - d)
