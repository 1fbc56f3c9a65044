"""Principal reasons: which groups of features stood in the way most, by a rule that anyone can repeat.

The rule. For each group: the least change of this group alone, all other features kept, that would have been enough
(`alone`), or the proof that no change of it alone is (`never`). First come the groups that alone are enough, the least
change first; then, where these are fewer than asked for, the groups that a smallest sufficient reason contains, in the
order of the list. Rows are those of the schema that obey its rules between features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ifonly.errors import QuestionError
from ifonly.explainer import Explainer
from ifonly.notices.reason_codes import ReasonCodes, ReasonGroup
from ifonly.printing import json_value, shown
from ifonly.problem import Fixed, Query
from ifonly.problem.rules import facts_of
from ifonly.problem.sufficiency import Sufficiency
from ifonly.results import Answer, Change, Limits, NoneExists
from ifonly.results.sufficient import SufficientReasons
from ifonly.schema.values import plain
from ifonly.tolerances import DEFAULT

MOST = 4
"""Reasons of a notice, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalReason:
    """One group and what is proven of it: `answer` is that to "which least change of this group alone is enough?".

    `verdict`: "alone" (the changes of this group alone are enough; nothing less than `lower` is), "never" (proven: no
    change of it alone is enough) or "open". `part`: it is part of a smallest sufficient reason.
    """

    group: ReasonGroup
    answer: Answer
    part: bool

    @property
    def verdict(self) -> str:
        if isinstance(self.answer, NoneExists):
            return "never"
        return "alone" if self.answer.counterfactual is not None else "open"

    @property
    def lower(self) -> float:
        return self.answer.lower

    @property
    def distance(self) -> float:
        return self.answer.upper

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.answer.changes

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.group.to_dict(),
            "verdict": self.verdict,
            "status": self.answer.status,
            "lower_bound": json_value(self.lower),
            "distance": json_value(self.distance),
            "changes": json_value(self.changes),
            "in_sufficient_reason": self.part,
            "note": self.answer.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalReasons:
    """The reasons of one row, first to last; `others` are the groups that are not among them. `ranked`: proven that
    none of the others is enough alone with less change than one of the reasons."""

    reasons: tuple[PrincipalReason, ...]
    others: tuple[PrincipalReason, ...]
    ranked: bool
    why: SufficientReasons
    distance_name: str
    model: str
    """The fingerprint of the model."""

    def to_dict(self) -> dict[str, Any]:
        """The annex: every statement with the figures that it rests on."""
        return {
            "rule": "least change of the group alone that is enough; then groups of a smallest sufficient reason",
            "distance": self.distance_name,
            "ranked": self.ranked,
            "reasons": [one.to_dict() for one in self.reasons],
            "others": [one.to_dict() for one in self.others],
            "sufficient": self.why.to_dict(),
            "model": self.model,
        }


def principal_reasons(
    explainer: Explainer,
    row: Any,
    codes: ReasonCodes | None = None,
    *,
    target: Any = None,
    most: int = MOST,
    limits: Limits | None = None,
) -> PrincipalReasons:
    """The principal reasons why the row is not decided as the target (by default: otherwise). Limits are per search."""
    number = plain(most)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise QuestionError(f"The number of principal reasons must be a whole number >= 1; it is {shown(most)}.")
    return reasons_by(facts_only(explainer, limits), row, checked_codes(codes), target, number)


def checked_codes(codes: Any) -> ReasonCodes | None:
    """Reason codes, or none."""
    if codes is not None and not isinstance(codes, ReasonCodes):
        raise QuestionError(f"Give reason codes as ReasonCodes.load('codes.json'); got {shown(codes)}.")
    return codes


def reasons_by(
    alone: Explainer, row: Any, codes: ReasonCodes | None = None, target: Any = None, most: int = MOST
) -> PrincipalReasons:
    """The principal reasons, by an explainer that knows facts only (`facts_only`), which many rows can share."""
    why = alone.why(row, target=target)
    groups = (codes or ReasonCodes()).complete(alone.schema, why.follows)
    held = set(why.features)
    asked = [
        PrincipalReason(
            group=group, answer=_alone(alone, row, group, why, target), part=bool(held & set(group.features))
        )
        for group in groups
    ]
    order = sorted(range(len(asked)), key=lambda k: _rank(asked[k], k))
    first = [asked[k] for k in order if asked[k].verdict == "alone" or asked[k].part][:most]
    others = [asked[k] for k in order if not any(asked[k] is one for one in first)]
    return PrincipalReasons(
        reasons=tuple(first),
        others=tuple(others),
        ranked=_proven(first, others),
        why=why,
        distance_name="l1",
        model=alone.model.function.fingerprint,
    )


def facts_only(explainer: Explainer, limits: Limits | None = None) -> Explainer:
    """The explainer without what holds for changes of people: a reason is about the decision."""
    schema = explainer.schema
    facts = replace(schema, rules=tuple(rule.text for rule in facts_of(schema)))
    other = Explainer(replace(explainer.model, schema=facts), tolerances=explainer.tolerances)
    limits = explainer.limits if limits is None else limits
    return other.using(explainer.method, limits=limits, listen=explainer.listen, reasons=False)


def _alone(explainer: Explainer, row: Any, group: ReasonGroup, why: SufficientReasons, target: Any) -> Answer:
    """The least change of one group that is enough."""
    return explainer.explain(row, group_query(explainer, group, why, target))


def group_query(explainer: Explainer, group: ReasonGroup, why: SufficientReasons, target: Any) -> Query:
    """The query about one group alone: all other features keep their values."""
    kept = [name for name in explainer.schema.names if name not in group.features and name not in why.follows]
    return Query(target=Sufficiency(target=target).target, constraints=tuple(map(Fixed, kept)))


def _rank(reason: PrincipalReason, place: int) -> tuple[Any, ...]:
    if reason.verdict == "alone":
        return (0, reason.distance, place)
    return (1 if reason.part else 2, 0.0, place)


def _proven(reasons: Sequence[PrincipalReason], others: Sequence[PrincipalReason]) -> bool:
    """Does no other group need less than one that is listed, and are those listed in order?"""
    in_order = [one for one in reasons if one.verdict == "alone"]
    if any(one.verdict == "open" for one in (*reasons, *others)):
        return False
    listed = [*in_order, *(one for one in others if one.verdict == "alone")]
    slack = 1.0 + DEFAULT.relative_gap
    return all(a.distance <= b.lower * slack + DEFAULT.gap for a, b in pairwise(listed))
