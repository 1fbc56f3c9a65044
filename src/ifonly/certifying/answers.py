"""Certificates of answers that take several searches: the fewest changes first, and sets of different answers.

`explain` finds the answer. It is then a claim about one question, under further constraints: at most k changes, where k
is shown to be the fewest; or different from each earlier answer of the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.format import Certificate
from ifonly.certifying.certificates import ClaimingExplainer, certificate_of_any, certify
from ifonly.certifying.certifier import Certifier
from ifonly.certifying.different import different_data
from ifonly.certifying.exact_question import in_real_arithmetic, other_models
from ifonly.certifying.statement import StatedExtras
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Query, Question
from ifonly.problem.disjunctions import PersonContext
from ifonly.problem.diversity import Diversity, different, settled_reals
from ifonly.problem.query import query_of
from ifonly.results import Answer, NoneExists
from ifonly.results.claim import Claim
from ifonly.results.diverse_answers import DiverseAnswers

Floats = NDArray[np.float64]


def certify_fewest(explainer: ClaimingExplainer, row: Any, query: Query) -> Certificate:
    """The answer with the fewest changes, and the nearest of those: that none has fewer is part of the proof."""
    plain = replace(query, fewest_first=False)
    answer = explainer.explain(row, query)
    if isinstance(answer, NoneExists) or answer.already:
        return certify(explainer, row, plain)
    if answer.counterfactual is None:
        raise UnsupportedQuestion(f"There is no proof to write out, since no row was found: {answer.note}.")
    questions, point = explainer.questions(row, plain)
    after, first = _row_of(answer, questions[0]), questions[0]
    counted = [name not in first.derived for name in first.schema.names]
    names = [name for name, counts in zip(first.schema.names, counted, strict=True) if not counts]
    most = int((after != point)[counted].sum())
    fewest = {"kind": "fewest_changes", "most": most, "uncounted": names}
    return _of_answer(explainer, questions, point, answer, [fewest])


def certify_diverse(
    explainer: ClaimingExplainer, row: Any, several: int | Diversity, query: Query | None = None
) -> tuple[Certificate, ...]:
    """The answers of `explainer.explain_diverse(row, several, ...)`, a certificate each: the nearest row that differs
    from all earlier ones. A set that ends before it is full ends with the certificate that there is no further row.
    """
    query = query_of(query)
    diversity = several if isinstance(several, Diversity) else Diversity(several)
    return certificates_of_set(explainer, row, diversity, query, explainer.explain_diverse(row, diversity, query))


def certificates_of_set(
    explainer: ClaimingExplainer, row: Any, diversity: Diversity, query: Query, answers: DiverseAnswers
) -> tuple[Certificate, ...]:
    """The same, of a set that was found before."""
    questions, point = explainer.questions(row, query)
    first = questions[0]
    context = PersonContext(first.schema, point, query.measure)
    settled = settled_reals(first.schema, point, first.constraints)
    made: list[Certificate] = []
    conditions: list[dict[str, Any]] = []
    for answer in [*answers, *([answers.ended] if isinstance(answers.ended, NoneExists) else [])]:
        if not conditions:
            made.append(certify(explainer, row, query))
        else:
            made.append(_of_answer(explainer, questions, point, answer, conditions))
        if not isinstance(answer, NoneExists):
            condition = different(context, _row_of(answer, first), diversity, settled)
            conditions.append(different_data(first.schema, condition))
    if answers.ended is not None and not isinstance(answers.ended, NoneExists):
        raise UnsupportedQuestion(
            f"There is no proof to write out for answer {len(answers) + 1}: {answers.ended.note}."
        )
    return tuple(made)


def _of_answer(
    explainer: ClaimingExplainer,
    questions: Sequence[Question],
    point: Floats,
    answer: Answer,
    more: list[dict[str, Any]],
) -> Certificate:
    """The certificate of an answer under further constraints, as a certificate states them."""
    if answer.stop is not None and answer.stop.is_limit:
        raise UnsupportedQuestion(f"There is no proof to write out: the search hit its {answer.stop.words()}.")
    after = None if answer.counterfactual is None else _row_of(answer, questions[0])
    claim = Claim(point=after, lower=answer.lower, method=answer.method, rounding_bound=answer.rounding_bound)
    exact = in_real_arithmetic(questions, [answer.rounding_bound] * len(questions), after)
    others, tolerances = other_models(exact), explainer.tolerances
    certifiers = [
        Certifier(one, tolerances, deployed=asked, extras=StatedExtras(others, more))
        for one, asked in zip(exact, questions, strict=True)
    ]
    if len(certifiers) > 1:
        return certificate_of_any(certifiers, point, [claim] * len(certifiers), nodes=explainer.limits.nodes)
    return certifiers[0].certificate(point, claim, shorten=False, nodes=explainer.limits.nodes)


def _row_of(answer: Answer, question: Question) -> Floats:
    return question.schema.read(answer.counterfactual)
