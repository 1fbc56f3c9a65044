"""Where no allowed change does it: what would help, and the query in which that is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ifonly.explainer import Explainer
from ifonly.problem.query import Query, read_constraints
from ifonly.results import Answer, NoneExists
from ifonly.results.plain_language import possible


def ways_out(explainer: Explainer, query: Query, answer: Answer | None, language: str) -> list[dict[str, Any]]:
    """One entry per relaxation that is known, nearest first; none unless it is proven that there is no row."""
    if not isinstance(answer, NoneExists) or answer.reasons is None:
        return []
    own = [one.describe() for one in read_constraints(query.constraints, explainer.schema)]
    others = {one.describe() for one in explainer.constraints_for(())}
    return [
        {
            "words": one.words,
            "sentence": possible(answer, one, language),
            "query": _allowing(query, own, others, one.dropped),
        }
        for one in answer.reasons.relaxations
    ]


def _allowing(query: Query, own: list[str], others: set[str], dropped: tuple[str, ...]) -> dict[str, Any] | None:
    """The query without these constraints; None where one of them is the organisation's."""
    if any(words in others or words not in own for words in dropped):
        return None
    kept = [one for one, words in zip(query.constraints, own, strict=True) if words not in dropped]
    return replace(query, constraints=tuple(kept)).to_dict()
