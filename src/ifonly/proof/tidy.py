"""Shorter numbers for people: 1071.0293 instead of 1071.029270808483, where the gap has room for it.

The nearest row usually sits on the margin, so its real values have all their digits, and a value that is rounded
when it is printed may not flip the decision. Each changed real value is therefore rounded away from the factual, to
the fewest decimals that keep the row within the gap of the proven lower bound. A rounded row is kept only if the
network scores it no lower than the original on every condition; like any other row, it must then pass the witness
check. Where that fails, something else binds: see `corners`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question
from ifonly.proof.claim import Claim
from ifonly.proof.corners import shorter
from ifonly.tolerances import Tolerances

ATTEMPTS = 2
DECIMALS = 15


def tidied(
    question: Question, factuals: NDArray[np.float64], claims: Sequence[Claim], tolerances: Tolerances
) -> list[Claim]:
    """The claims, with shorter numbers in their rows where that is possible."""
    result, reals = list(claims), question.schema.reals
    found = [i for i, claim in enumerate(claims) if claim.point is not None] if len(reals) else []
    if not found:
        return result
    points = np.array([claims[i].point for i in found])
    before = factuals if len(found) == len(factuals) else factuals[found]
    cells: dict[int, list[int]] = {}
    rows, places = (before.take(reals, axis=1) != points.take(reals, axis=1)).nonzero()
    for k, g in zip(rows.tolist(), reals.take(places).tolist(), strict=True):
        cells.setdefault(k, []).append(g)
    if not cells:
        return result
    upper = question.measure.between(before, points).tolist()
    allowed = tolerances.allowed
    most = [claims[i].lower + allowed(far) for i, far in zip(found, upper, strict=True)]
    waiting = [k for k in cells if most[k] > upper[k]]
    for attempt in range(ATTEMPTS):
        if not waiting:
            break
        old, now = (before, points) if len(waiting) == len(points) else (before[waiting], points[waiting])
        rounded = _rounded(question, old, now, [(cells[k], most[k] - upper[k]) for k in waiting], attempt)
        scores = _conditions(question, np.concatenate([now, rounded]))
        good = [all(kept) for kept in (scores[len(now) :] >= scores[: len(now)]).tolist()]
        far = question.measure.between(old, rounded).tolist()
        left, bound = [], bool(question.by_feature or question.rules)
        for row, k in enumerate(waiting):
            if not good[row] or far[row] > most[k]:
                left.append(k)
            elif not bound or question.allows(factuals[found[k]], rounded[row]) is None:
                result[found[k]] = _with_point(claims[found[k]], rounded[row])
        waiting = left
    for k in (k for k in cells if most[k] > upper[k] and result[found[k]] is claims[found[k]]):
        result[found[k]] = _around(question, before[k], claims[found[k]], cells[k], most[k])
    return result


def _around(question: Question, before: NDArray[np.float64], claim: Claim, cells: list[int], most: float) -> Claim:
    """The claim, with the short numbers around its row if there are any."""
    assert claim.point is not None
    short = shorter(question, before, claim.point, cells, (claim.lower, most), partial(_conditions, question))
    return claim if short is None else _with_point(claim, short)


def _rounded(
    question: Question,
    before: NDArray[np.float64],
    rows: NDArray[np.float64],
    cells: Sequence[tuple[list[int], float]],
    attempt: int,
) -> NDArray[np.float64]:
    """The rows with changed values rounded away from the factual, each to the decimals that an equal share of the room
    of its row leaves it, and inside the schema's bounds; those that need more than 15 decimals are left as they are.
    """
    lower, upper = (ends.tolist() for ends in question.schema.grid[:2])
    rates, result = question.measure.steepest.tolist(), rows.copy()
    at = [k for k, (some, _) in enumerate(cells) for _ in some], [g for some, _ in cells for g in some]
    of = [(len(some), room) for some, room in cells for _ in some]
    for k, g, old, value, (count, room) in zip(*at, before[at].tolist(), rows[at].tolist(), of, strict=True):
        places = (math.ceil(math.log10(rates[g] * count / room)) if rates[g] > 0.0 else 0) + attempt
        if abs(places) > DECIMALS:
            continue
        scale = 10.0 ** abs(places)
        shifted = value * scale if places >= 0 else value / scale
        whole = math.ceil(shifted) if value > old else math.floor(shifted)
        short = whole / scale if places >= 0 else whole * scale
        result[k, g] = min(max(short, lower[g]), upper[g])
    return result


def _with_point(claim: Claim, point: NDArray[np.float64]) -> Claim:
    """`dataclasses.replace`, ten times faster: this runs once per person."""
    return Claim(
        point=point,
        lower=claim.lower,
        method=claim.method,
        stop=claim.stop,
        nodes=claim.nodes,
        seconds=claim.seconds,
        record=claim.record,
        blur=claim.blur,
        lucky=claim.lucky,
    )


def _conditions(question: Question, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The conditions' values; each row has a product of its own, whose last bits do not depend on the other rows."""
    c, d = question.conditions
    scores = question.model.function.steady_scores(question.schema.encode(points))
    return np.asarray((scores[:, None, :] @ c.T)[:, 0, :] - d)
