"""Claims and checked results by columns are those of the people, one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ifonly.answering.checked_results import CheckedResults
from ifonly.answering.values import CheckedResult
from ifonly.results import Claim, Claims, Limits, Stop, StoppedBy
from ifonly.tolerances import FEW, Tolerances

OWN = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
LATE, MANY = Stop(StoppedBy.SECONDS, 0.1), Stop(StoppedBy.NODES, 5)
LISTED = [
    Claim(
        point=np.array([9.0, 1.0]),
        lower=0.5,
        method="search",
        nodes=3,
        seconds=0.25,
        rounding_bound=1e-9,
        lower_any_rounding=0.4,
    ),
    Claim(point=None, lower=math.inf, method="search", nodes=1),
    Claim(point=np.array([4.0, 8.0]), lower=0.0, method="enumerate", stop=LATE, seconds=1.0, record="kept"),
    Claim(point=None, lower=0.2, method="search", stop=MANY),
]


def plainly(claim: Claim) -> dict[str, object]:
    fields = {name: getattr(claim, name) for name in Claim.__dataclass_fields__}
    return {**fields, "point": None if claim.point is None else claim.point.tolist()}


def same(ours: object, theirs: object) -> bool:
    return list(map(plainly, ours)) == list(map(plainly, theirs))  # type: ignore[call-overload]


def test_columns_are_the_claims() -> None:
    claims = Claims.of(LISTED, OWN)
    assert same(claims, LISTED)
    assert Claims.of(claims, OWN) is claims
    assert claims.points[~claims.found].tolist() == OWN[[1, 3]].tolist()
    assert same([claims[-1]], [LISTED[3]])
    assert same(claims[1:3], LISTED[1:3])
    with pytest.raises(IndexError):
        claims[4]


def test_people_are_taken_and_joined_in_any_order() -> None:
    claims = Claims.of(LISTED, OWN)
    assert same(claims.take([2, 0, 2]), [LISTED[2], LISTED[0], LISTED[2]])
    assert same(Claims.joined([claims.take([3, 2]), claims]), [LISTED[3], LISTED[2], *LISTED])


def test_only_who_ran_out_of_time_is_told_of_the_whole_limit() -> None:
    told = [*LISTED[:2], replace(LISTED[2], stop=Stop(StoppedBy.SECONDS, 2.0), seconds=1.5), LISTED[3]]
    assert same(Claims.of(LISTED, OWN).counting(0.5, Limits(seconds=2.0)), told)


def test_findings_are_what_was_found() -> None:
    accepted = 0.7, np.array([1.5])
    found = [
        CheckedResult(LISTED[0], *accepted, left=MANY),
        CheckedResult(LISTED[1]),
        CheckedResult(LISTED[2], *accepted, breaks=("Age is fixed",)),
        CheckedResult(LISTED[3]),
    ]
    findings = CheckedResults.of(found, OWN, outputs=1)
    assert [one.breaks for one in (findings[-2], findings[2:][0])] == [("Age is fixed",)] * 2
    order = [2, 3, 0, 1]
    backwards = CheckedResults.merged([(order[:2], findings.take(order[:2])), (order[2:], findings.take(order[2:]))])
    for told in (findings, backwards):
        assert same([one.claim for one in told], LISTED)
        assert [(one.upper, one.left, one.breaks, one.none_exists) for one in told] == [
            (one.upper, one.left, one.breaks, one.none_exists) for one in found
        ]
        assert [None if one.scores is None else one.scores.tolist() for one in told] == [[1.5], None] * 2


def test_bounds_that_do_not_meet_are_the_same_alone_and_among_many() -> None:
    rng = np.random.default_rng(0)
    tolerances = Tolerances()
    upper = rng.choice([0.0, 1e-9, 0.3, 1.0, 7.0, 1e9, math.inf], 400)
    lower = np.where(
        rng.random(400) < 0.1, math.inf, np.minimum(upper, 1e12) * (1.0 - rng.choice([0.0, 9e-7, 2e-6], 400))
    )
    alone = [i for i in range(400) if tolerances.unsettled(lower[i : i + 1], upper[i : i + 1])]
    assert FEW > 1
    assert alone == tolerances.unsettled(lower, upper)
    for i, (low, far) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
        settled = low == math.inf or (far < math.inf and tolerances.close(low, far))
        assert settled == (i not in alone)
    assert 20 < len(alone) < 380
