"""Suggestions where no counterfactual exists: the relaxations of constraints that would help, each as a new query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ifonly.explainer import Explainer
from ifonly.problem.query import Query, read_constraints
from ifonly.results import Answer, NoneExists
from ifonly.results.localised import naming
from ifonly.results.plain_language import possible
from ifonly.results.rule_language import rule_in, rules_in


def suggestions(explainer: Explainer, query: Query, answer: Answer | None, language: str) -> list[dict[str, Any]]:
    """One entry per known relaxation, nearest first; none unless it is proven that no row exists."""
    if not isinstance(answer, NoneExists) or answer.reasons is None:
        return []
    own = [one.describe() for one in read_constraints(query.constraints, explainer.schema)]
    everybody = {one.describe() for one in explainer.constraints_for(())}
    return [
        {
            "words": one.words,
            "said": rule_in(one.words, naming(answer, language)),
            "sentence": possible(answer, one, language),
            "query": _relaxed(query, own, everybody, one.dropped),
        }
        for one in answer.reasons.relaxations
    ]


def blamed(answer: Answer | None, language: str) -> list[str]:
    """The constraints that conflict, in the words of the language."""
    if not isinstance(answer, NoneExists) or answer.reasons is None:
        return []
    return rules_in(answer.reasons.blame, naming(answer, language))


def _relaxed(query: Query, own: list[str], everybody: set[str], dropped: tuple[str, ...]) -> dict[str, Any] | None:
    """The query without these constraints; None where one of them is the organisation's."""
    if any(words in everybody or words not in own for words in dropped):
        return None
    kept = [one for one, words in zip(query.constraints, own, strict=True) if words not in dropped]
    return replace(query, constraints=tuple(kept)).to_dict()
