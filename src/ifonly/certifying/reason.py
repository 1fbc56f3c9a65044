"""Certificates of sufficient reasons: that no row with these features held is decided otherwise, and that each of them
is needed, or that no smaller set will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ifonly.certificate.check.reading import Refusal
from ifonly.certificate.check.reasons import CLAIMS, StatedReason, check_contrasts
from ifonly.certificate.check.statement import Statement
from ifonly.certificate.format import Certificate, stamp
from ifonly.certifying.certificates import ClaimingExplainer
from ifonly.certifying.certifier import Certifier, Parts, proof_trees
from ifonly.certifying.effort import Effort, Verification, within_limits
from ifonly.certifying.exact_question import in_real_arithmetic, other_models
from ifonly.certifying.nearer import Nearer
from ifonly.certifying.prover import Unclosed
from ifonly.certifying.statement import StatedExtras, hexes
from ifonly.errors import UnsupportedQuestion
from ifonly.problem.sufficiency import Sufficiency, sufficiency_of
from ifonly.results.claim import Claim
from ifonly.results.sufficient import SufficientReasons
from ifonly.solvers.search.search import Search


class ReasonExplainer(ClaimingExplainer, Protocol):
    """What `certify_reason` needs of an Explainer."""

    def why(self, row: Any, sufficiency: Sufficiency) -> SufficientReasons: ...

    def reason_questions(self, row: Any, sufficiency: Sufficiency) -> tuple[Any, Any]: ...


def certify_reason(
    explainer: ReasonExplainer,
    row: Any,
    sufficiency: Sufficiency | None = None,
    *,
    target: Any = None,
    within: Any = None,
) -> Certificate:
    """The first reason of `explainer.why(row, ...)` as a certificate: its features decide alone, in real arithmetic on
    the stored weights; and, as far as rows show it exactly, each of them is needed, or no smaller set decides alone.
    """
    sufficiency = sufficiency_of(sufficiency, target, within)
    check_method(explainer)
    return certificate_of_reason(explainer, row, sufficiency, explainer.why(row, sufficiency))


def check_method(explainer: ReasonExplainer) -> None:
    """Refuse methods that prove nothing that could be written out."""
    if not isinstance(explainer.method, Search):
        raise UnsupportedQuestion("Reasons are proven by the search; leave out the other method.")


def certificate_of_reason(
    explainer: ReasonExplainer, row: Any, sufficiency: Sufficiency, reasons: SufficientReasons
) -> Certificate:
    """The same, of reasons that were found before."""
    if not reasons.reasons:
        raise UnsupportedQuestion(f"There is no reason to write out. {reasons.note}")
    names = reasons.reasons[0].features
    questions, point = explainer.reason_questions(row, sufficiency)
    with within_limits(explainer.limits):
        exact = in_real_arithmetic(questions, [None] * len(questions))
        others, tolerances = other_models(exact), explainer.tolerances
        free, held = (
            [Certifier(one, tolerances, extras=StatedExtras(others, fixed)) for one in exact]
            for fixed in ((), [{"kind": "fixed", "feature": name} for name in names])
        )
        radius = sufficiency.within.radius
        lower = None if radius is None else math.nextafter(radius, math.inf)
        parts = [(*one._stated(point)[1:], None) for one in held]
        tree = _tree(parts, lower, explainer.limits.nodes)
        stated = [one._stated(point) for one in free]
        claim, rows = _shown([part[1] for part in stated], names, reasons, lower)
        data = {**stated[0][0], "reason": {"held": list(names), "claim": claim}}
        if len(stated) > 1:
            data["target"] = {"any": [part[0]["target"] for part in stated]}
        made = Claim(point=None, lower=math.inf, method=reasons.method)
        certificate = held[0]._written(data, parts[0][0], made, (lower, None, None), {"tree": tree})
    whole = {**certificate.data, "contrasts": [hexes(one) for one in rows]}
    return Certificate({**whole, "sha256": stamp(whole)})


def _tree(parts: Parts, lower: float | None, nodes: int | None) -> list[Any]:
    try:
        return proof_trees(parts, lower, Effort(Verification.DOUBTFUL, nodes))
    except Nearer:
        words = (
            "A row that keeps these features is on the threshold in real arithmetic, which counts as decided otherwise."
        )
        raise UnsupportedQuestion(words) from None
    except Unclosed:
        words = "That these features decide alone could not be proven in exact arithmetic."
        raise UnsupportedQuestion(words) from None


def _shown(
    free: Sequence[Statement], names: Sequence[str], reasons: SufficientReasons, lower: float | None
) -> tuple[str, list[Any]]:
    """The most that rows which are decided otherwise show of a reason, and these rows."""
    schema = free[0].schema
    rows = [np.array(one) for one in reasons.contrasts if _is_contrast(free, one, lower)]
    for claim in CLAIMS[CLAIMS.index(reasons.status) : 0 : -1] if reasons.status in CLAIMS else ():
        reason = StatedReason(tuple(schema.positions[name] for name in names), tuple(names), claim, "")
        try:
            check_contrasts(reason, free, [hexes(row) for row in rows], (lower, None))
        except Refusal:
            continue
        return claim, rows
    return CLAIMS[0], []


def _is_contrast(free: Sequence[Statement], row: tuple[float, ...], lower: float | None) -> bool:
    nothing = StatedReason((), (), CLAIMS[1], "")
    try:
        check_contrasts(nothing, free, [hexes(np.array(row))], (lower, None))
    except Refusal:
        return False
    return True
