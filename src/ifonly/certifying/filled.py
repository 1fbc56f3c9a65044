"""Certificates of a row with missing numbers that may be filled in: one for each choice of those that are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from numpy import float64
from numpy.typing import NDArray

from ifonly.certifying.certificates import ClaimingExplainer, certificate_of_questions
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Distance, Query, Question
from ifonly.problem.missing import counted
from ifonly.problem.query import query_of
from ifonly.schema import Schema
from ifonly.solvers.search.search import Search

if TYPE_CHECKING:
    from ifonly.certificate.format import Certificate


class FillingExplainer(ClaimingExplainer, Protocol):
    """What `certify_filled` needs of an Explainer."""

    @property
    def schema(self) -> Schema: ...

    def filling(
        self, row: Any, query: Query | None = None
    ) -> list[tuple[dict[str, float], list[Question], NDArray[float64]]]: ...


def certify_filled(
    explainer: FillingExplainer,
    row: Any,
    query: Query | None = None,
    *,
    target: Any = None,
    distance: str | Distance | None = None,
) -> dict[tuple[str, ...], Certificate]:
    """The answer to `explainer.explain(row, query)`, where some missing numbers may be filled in (`Imputable`), as
    certificates: of each choice of those that are, the nearest row, in which a number that is filled in costs nothing.

    With what filling in counts as (`ifonly.problem.missing.counted`) the least of their distances is that of the
    answer. Choices that count as much without any other change have no certificate.
    """
    query = query_of(query, target, distance)
    if not isinstance(explainer.method, Search):
        raise UnsupportedQuestion("What is filled in is proven by the search; leave out the other method.")
    found: dict[tuple[str, ...], Certificate] = {}
    best = math.inf
    for changes, questions, point in explainer.filling(row, query):
        if counted(query.measure, len(explainer.schema), 0.0, changes) >= best:
            continue
        certificate = certificate_of_questions(explainer, questions, point)
        found[tuple(changes)] = certificate
        upper = certificate.data["claim"]["upper"]
        if upper is not None:
            best = min(best, counted(query.measure, len(explainer.schema), float.fromhex(upper), changes))
    return found
