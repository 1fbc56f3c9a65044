"""Certificates of why there is no row: the blamed constraints rule it out, each of them is needed, what would help.

Each is a certificate like any other, about some of the constraints: the blamed ones alone leave no row; without one of
them, the others leave one; without those that a relaxation drops, all others leave one, the nearest of which is named.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ifonly.certificate.format import Certificate
from ifonly.certifying.certificates import ClaimingExplainer, certificate_of_questions
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Distance, Query
from ifonly.problem.query import query_of
from ifonly.results import NoneExists
from ifonly.solvers.search.search import Search


def certify_none(
    explainer: ClaimingExplainer,
    row: Any,
    query: Query | None = None,
    *,
    target: Any = None,
    distance: str | Distance | None = None,
) -> tuple[Certificate, ...]:
    """That no row exists (`explain` says so, with reasons), as certificates: first that the blamed constraints alone
    leave none; then, for each relaxation, nearest first, the nearest row that it leaves; last, for each blamed
    constraint that no relaxation drops alone, the nearest row that the other blamed ones leave."""
    query = query_of(query, target, distance)
    if not isinstance(explainer.method, Search):
        raise UnsupportedQuestion("That no row exists is proven by the search; leave out the other method.")
    answer = explainer.explain(row, query)
    reasons = answer.reasons if isinstance(answer, NoneExists) else None
    if reasons is None:
        raise UnsupportedQuestion(
            "Reasons are certified where no row exists and it is known why; here the answer is "
            f"'{answer.status}': certify it without reasons."
        )
    if reasons.note:
        raise UnsupportedQuestion(f"There is no proof to write out: {reasons.note}.")

    def under(kept: Collection[str]) -> Certificate:
        return certificate_of_questions(explainer, *explainer.questions(row, query, only=kept))

    names = set(answer.constraints)
    alone = {one.dropped[0] for one in reasons.relaxations if len(one.dropped) == 1}
    relaxed = [under(names - set(one.dropped)) for one in reasons.relaxations]
    needed = [under(set(reasons.blame) - {name}) for name in reasons.blame if name not in alone]
    return under(reasons.blame), *relaxed, *needed
