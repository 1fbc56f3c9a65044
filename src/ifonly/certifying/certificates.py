"""Certificates of answers: who claims, who proves within which limits, and what a solver's bound is replaced by."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.checker import (
    LONGEST_SECONDS,
    CheckResult,
    check,
    witness_refusal,
)
from ifonly.certificate.format import Certificate, stamp
from ifonly.certifying.certifier import LEFT_OPEN, Certifier, Witness, exact_proof, too_large
from ifonly.certifying.effort import Effort, Verification, within_limits
from ifonly.certifying.exact_question import in_real_arithmetic, other_models
from ifonly.certifying.read_back import question_of
from ifonly.certifying.statement import (
    StatedExtras,
)
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.model import Model
from ifonly.problem import (
    Distance,
    Question,
)
from ifonly.problem.query import Query, query_of
from ifonly.problem.softmax import PlanesRecord
from ifonly.results.claim import Claim, Limits, Method
from ifonly.results.stop import StoppedBy
from ifonly.solvers.search.search import Search
from ifonly.tolerances import BOUND_RELATIVE, DEFAULT, Tolerances

if TYPE_CHECKING:
    from ifonly.results import Answer, DiverseAnswers


class ClaimingExplainer(Protocol):
    """What `certify` needs of an Explainer."""

    tolerances: Tolerances
    method: Method
    limits: Limits
    model: Model

    def questions(
        self, row: Any, query: Query | None = None, *, only: Collection[str] | None = None
    ) -> tuple[list[Question], NDArray[np.float64]]: ...

    def explain(self, row: Any, query: Query | None = None) -> Answer: ...

    def explain_diverse(self, row: Any, several: Any, query: Query | None = None) -> DiverseAnswers: ...

    def _claim(self, question: Question, point: NDArray[np.float64], method: Method) -> Claim: ...


def certify(
    explainer: ClaimingExplainer,
    row: Any,
    query: Query | None = None,
    *,
    target: Any = None,
    distance: str | Distance | None = None,
    constraints: Sequence[Any] = (),
) -> Certificate:
    """The answer to `explainer.explain(row, ...)` as a certificate that `ifonly.check` verifies in exact arithmetic.

    The proof is about the network in real arithmetic on its stored weights, and about a margin that is larger than the
    asked one by what the deployed model may lose of a score (the answer's `rounding_bound`): what reaches it, the
    model accepts.
    With another method than the search (`explainer.using(method)`), the certificate has no proof of the lower bound but
    the solver's bound, and says so; `prove` replaces it by a proof.
    """
    query = query_of(query, target, distance, constraints)
    if query.fewest_first:
        from ifonly.certifying.answers import certify_fewest

        return certify_fewest(explainer, row, query)
    return certificate_of_questions(explainer, *explainer.questions(row, query))


def certificate_of_questions(
    explainer: ClaimingExplainer, questions: Sequence[Question], point: NDArray[np.float64]
) -> Certificate:
    """The certificate of the nearest row of one of these questions, which are alternatives."""
    method, limits = explainer.method, explainer.limits
    with within_limits(limits):
        certifiers, claims = _certifiers(explainer, questions, point)
        if len(claims) > 1:
            if not isinstance(method, Search):
                raise UnsupportedQuestion("A solver's bound is about one decision; this target leaves several open.")
            return certificate_of_any(certifiers, point, claims, nodes=limits.nodes)
        if isinstance(method, Search):
            return certifiers[0].certificate(point, claims[0], shorten=False, nodes=limits.nodes)
        return certifiers[0].trusted(point, claims[0])


def _certifiers(
    explainer: ClaimingExplainer, questions: Sequence[Question], point: NDArray[np.float64]
) -> tuple[list[Certifier], list[Claim]]:
    """Of each alternative of the question, in real arithmetic; and what the explainer's method claims of it."""
    tolerances, others = explainer.tolerances, other_models(questions)
    deployed = [Certifier(question, tolerances, extras=StatedExtras(others)) for question in questions]
    claims = [_claimed(explainer, one, point) for one in deployed]
    rounding = [max(claim.rounding_bound for claim in claims)] * len(claims)
    found = next((claim.point for claim in claims if claim.point is not None), None)
    exact = in_real_arithmetic(questions, rounding, found)
    others = other_models(exact)
    triples = zip(exact, questions, claims, strict=True)
    certifiers = [
        Certifier(one, tolerances, deployed=asked, extras=StatedExtras(others, claim=claim))
        for one, asked, claim in triples
    ]
    kept = [replace(one, record=None) if isinstance(one.record, PlanesRecord) else one for one in claims]
    return certifiers, kept


def _claimed(explainer: ClaimingExplainer, deployed: Certifier, point: NDArray[np.float64]) -> Claim:
    """What the explainer's method claims of one alternative of the target."""
    method = explainer.method
    if deployed.decides_already(point):
        return Claim(point=point, lower=0.0, method=method.name)
    recording = replace(method, records=True) if isinstance(method, Search) and deployed.records else method
    claim = explainer._claim(deployed.question, point, recording)
    if claim.stop is not None and claim.stop.by is StoppedBy.REFUSED:
        raise UnsupportedQuestion(f"There is no row to certify: {claim.stop.words(row=False)}.")
    return claim


def certificate_of_any(
    certifiers: Sequence[Certifier],
    point: NDArray[np.float64],
    claims: Sequence[Claim],
    *,
    nodes: int | None = None,
    sets: int = 1,
) -> Certificate:
    """The certificate of a target with alternatives: the nearest of their rows, and a tree for each of them. `sets`: so
    many certifiers, one after the other, are of one alternative."""
    first, parts = certifiers[0], []
    best: tuple[Witness, float | None] = (None, None)
    for certifier, claim in zip(certifiers, claims, strict=True):
        if claim.stop is not None and claim.stop.by not in LEFT_OPEN:
            raise UnsupportedQuestion(f"There is no proof to write out: the search hit its {claim.stop.words()}.")
        data, statement, network = certifier._stated(point)
        found = certifier._witness(statement, point, claim, shorten=False)
        best = found if found[1] is not None and (best[1] is None or found[1] < best[1]) else best
        parts.append((data, statement, network, claim.record))
    nearest = min(claims, key=lambda claim: claim.lower)
    more = None if nodes is None else max(nodes - sum(claim.nodes for claim in claims), 0)
    trees = [part[1:] for part in parts]
    proof = exact_proof(trees, nearest, best, first.tolerances, Effort(Verification.DOUBTFUL, more))
    failure = "a box could not be closed" if proof is None else too_large(proof[0])
    if proof is None or failure:
        raise UnsupportedQuestion(f"The search's answer could not be proven in exact arithmetic: {failure}.")
    targets = [part[0]["target"] for part in parts[::sets]]
    data = {**parts[0][0], "target": {"any": targets} if len(targets) > 1 else targets[0]}
    _, witness, upper = proof[1:]
    writer = next((certifier for certifier, part in zip(certifiers, parts, strict=True)
                   if witness is not None and not witness_refusal(part[1], witness, upper or 0.0)), first)  # fmt: skip
    return writer._written(data, parts[0][1], nearest, proof[1:], {"tree": proof[0]})


def prove(certificate: Certificate | str | Path, *, limits: Limits | None = None) -> Certificate:
    """The certificate, or file, with its lower bound proven by the search, which answers the same question.

    What comes back is proven, whatever the solver said; `disagreement` compares the two.
    """
    if not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    limits, begun = limits or Limits(), time.perf_counter()
    before = check(certificate, seconds=limits.seconds or LONGEST_SECONDS)
    if before.valid:
        return certificate
    if not before.trusted:
        raise QuestionError(f"This certificate cannot be proven: {before.failure}.")
    with within_limits(limits, time.perf_counter() - begun):
        question, point = question_of(certificate.data["question"])
        certifier = Certifier(question, DEFAULT)
    after = certifier.proven(point, limits, spent=time.perf_counter() - begun)
    data = dict(after.data)
    data["made_by"] = f"{certificate.data['made_by']}, proven by {after.data['made_by']}"
    same = after.data["witness"] == certificate.data["witness"]
    data["deployed"] = certificate.data["deployed"] if same else None  # the deployed model is not available here
    return Certificate({**data, "sha256": stamp(data)})


def disagreement(word: CheckResult, proven: CheckResult) -> str:
    """How a solver's bound contradicts what is proven; empty when it does not."""
    least, most = (math.inf if one.upper is None else one.upper for one in (word, proven))
    if proven.lower <= least and word.lower <= most * (1.0 + BOUND_RELATIVE):
        return ""
    return (
        f"{word.trusted} says that the nearest row is between {word.lower!r} and {least!r} away; "
        f"proven is: between {proven.lower!r} and {most!r}."
    )
