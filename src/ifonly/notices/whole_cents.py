"""Amounts of money in whole cents, for the sentences of a notice: the changes of an answer, rounded and checked.

The nearest row may ask for $1,296.4309. On a notice stands $1,296.44: amounts are rounded to cents away from the
person's own, and the rounded row has to be an answer as well, by the constraints and by the user's own model.
Otherwise the exact amounts stay. What is proven is about the exact ones, from which each amount is less than a cent
away.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from ifonly.explainer import Explainer
from ifonly.problem.query import Query
from ifonly.results import Answer, Change
from ifonly.results.amounts import SIGNS
from ifonly.schema import Real

CENT = Decimal("0.01")
MOST = 1e9
"""Amounts from here on are not rounded: their floats are too far apart."""


def in_cents(explainer: Explainer, answer: Answer, query: Query) -> tuple[Change, ...] | None:
    """The changes with amounts in whole cents; None where they are so already, or where no such row is an answer."""
    if answer.counterfactual is None:
        return None
    rounded = tuple(_rounded(explainer, answer, change) for change in answer.changes)
    if rounded == answer.changes:
        return None
    schema = explainer.schema
    row = {**answer.counterfactual, **{change.feature: change.after for change in rounded}}
    if any(not _inside(schema.features[schema.index(one.feature)], one.after) for one in rounded):
        return None
    before, after = (schema.read(one)[None, :] for one in (answer.factual, row))
    accepted = explainer.judge(query, reasons=False).accepted(before, after)
    return rounded if bool(accepted[0]) else None


def _rounded(explainer: Explainer, answer: Answer, change: Change) -> Change:
    feature = explainer.schema.features[explainer.schema.index(change.feature)]
    before, after = change.before, change.after
    money = isinstance(feature, Real) and feature.step is None and answer.unit(change.feature) in SIGNS
    if not money or not isinstance(after, float) or not isinstance(before, int | float) or abs(after) >= MOST:
        return change
    away = ROUND_CEILING if after > before else ROUND_FLOOR
    return replace(change, after=float(Decimal(repr(after)).quantize(CENT, rounding=away)))


def _inside(feature: Any, value: Any) -> bool:
    return not isinstance(feature, Real) or value is None or feature.lower <= value <= feature.upper
