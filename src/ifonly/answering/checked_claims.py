"""Checked claims: each row that a method claims, judged by the user's own model, and what arithmetic left unproven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ifonly.answering.checked_results import CheckedResults
from ifonly.answering.values import Floats
from ifonly.errors import Contradiction
from ifonly.problem import Question
from ifonly.results import Claim, Claims, Method, Stop, StoppedBy, Witnesses, check_witnesses, shortened
from ifonly.tolerances import Tolerances

EXACT = ("search", "enumerate")
"""Methods without numerical tolerances: what they leave open is due to rounding."""


def valid_claims(claimed: Sequence[Claim], points: Floats, method: Method) -> Claims:
    """What a method returns, if there is one claim per person, with a possible bound."""
    if len(claimed) != len(points):
        raise Contradiction(f"Method '{method.name}' gave {len(claimed)} claims for {len(points)} people.")
    claims = Claims.of(claimed, points)
    if not (claims.lower >= 0.0).all():
        raise Contradiction(f"Method '{method.name}' gave a lower bound of {claims.lower.min()}.")
    return claims


def checked_claims(
    question: Question, points: Floats, claims: Claims, tolerances: Tolerances
) -> tuple[CheckedResults, list[int]]:
    """The claims with shorter numbers where the model agrees, the check of each row, and what stopped the search;
    and the numbers of the rows that the model refuses."""
    tidy = shortened(question.joint, points, claims, tolerances)
    witnesses = _witnesses(question, points, tidy)
    if rejected := list(witnesses.rejected):  # perhaps the shorter row only, and not the one that was claimed
        rows = tidy.points.copy()
        rows[rejected] = claims.points[rejected]
        tidy = replace(tidy, points=rows)
        witnesses = _witnesses(question, points, tidy)
    for k, why in witnesses.invalid.items():
        raise Contradiction(f"Method '{tidy.methods[k]}' returned a wrong row: {why}.")
    unsettled = tolerances.unsettled(tidy.lower, witnesses.distances)
    stops = {k: _left_open(question, tidy, k) for k in unsettled if k not in tidy.stops}
    tidy = replace(tidy, stops={**tidy.stops, **stops}) if stops else tidy
    found = CheckedResults(claims=tidy, upper=witnesses.distances, scores=witnesses.scores)
    return found, sorted(witnesses.refused)


def _left_open(question: Question, claims: Claims, k: int) -> Stop:
    """What arithmetic left open of a claim that nothing stopped.

    Without a row: no row is accepted under any rounding, and some may be under one. With a row: a solver's
    tolerances, the edge of a rule about real numbers, or scores that float64 cannot tell from the margin.
    """
    if not claims.found[k]:
        return Stop(StoppedBy.ROUNDING, float(question.largest_error), question.model.precision)
    if claims.methods[k] not in EXACT:
        return Stop(StoppedBy.TOLERANCES)
    edges = question.rules and len(question.schema.reals)  # rules about other values have no edges
    return Stop(StoppedBy.EDGE if edges else StoppedBy.CLOSE)


def _witnesses(question: Question, points: Floats, claims: Claims) -> Witnesses:
    """The check of each claimed row; of claims without one, an infinite distance and no scores."""
    if claims.found.all():
        return check_witnesses(question, points, claims.points)
    distances = np.full(len(claims), math.inf)
    scores = np.full((len(claims), question.model.outputs), math.nan)
    found = np.flatnonzero(claims.found).tolist()
    if not found:
        return Witnesses(distances=distances, scores=scores)
    some = check_witnesses(question, points[found], claims.points[found])
    distances[found], scores[found] = some.distances, some.scores
    return Witnesses(
        distances=distances,
        scores=scores,
        invalid={found[k]: why for k, why in some.invalid.items()},
        refused={found[k]: why for k, why in some.refused.items()},
    )
