"""What makes a row different from an earlier answer, as a certificate states it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ifonly.certificate.check.apart import MAX_SIDES
from ifonly.certifying.learned_rules import at_least
from ifonly.certifying.statement import hexes
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Allowed, Constraint, Fixed, Range
from ifonly.problem.disjunctions import Condition, Either
from ifonly.problem.distance_rules import AtLeastFar
from ifonly.schema import Numeric, Schema


def different_data(schema: Schema, condition: Condition) -> dict[str, Any]:
    """What makes a row different from an earlier answer, as a certificate states it."""
    if not isinstance(condition, Either):
        return _apart(schema, condition.rule)  # type: ignore[attr-defined]
    kept = {one.feature for one in condition.options if isinstance(one, Fixed)}
    if kept or not condition.options:  # one of these keeps its value: all but one may change
        others = [name for name in schema.names if name not in kept]
        return {"kind": "max_changes", "most": max(len(kept) - 1, 0), "uncounted": others} if kept else _NEVER
    return {"kind": "clause", "any": [_one_feature(schema, option) for option in condition.options]}


_NEVER: dict[str, Any] = {"kind": "clause", "any": []}


def _one_feature(schema: Schema, option: Constraint) -> dict[str, Any]:
    """A range or options of one feature, as a literal."""
    if isinstance(option, Allowed):
        return {
            "feature": option.feature,
            "options": sorted({int(schema[option.feature].read(value)) for value in option.values}),
        }
    assert isinstance(option, Range)
    return at_least(option.feature, *((1, option.lower) if math.isfinite(option.lower) else (-1, option.upper)))


def _apart(schema: Schema, rule: AtLeastFar) -> dict[str, Any]:
    distance = rule.distance
    if distance.jump and any(isinstance(f, Numeric) and f.lower < f.upper for f in schema.features):
        raise UnsupportedQuestion(
            "A certificate cannot state how far answers are apart where it counts how many numbers differ; measure it "
            "in l1: apart_distance='l1'."
        )
    sides = sum(
        isinstance(f, Numeric) and f.lower < p < f.upper for f, p in zip(schema.features, rule.point, strict=True)
    )
    if sides > MAX_SIDES:
        raise UnsupportedQuestion(
            f"A certificate cannot state how far answers are apart in {sides} numbers, at most in {MAX_SIDES}; let "
            "them differ in features or in values."
        )
    scales = [distance.scales.get(f.name) if isinstance(f, Numeric) else None for f in schema.features]
    return {
        "kind": "apart",
        "point": hexes(np.array(rule.point)),
        "at_least": float(rule.at_least).hex(),
        "jump": float(distance.jump).hex(),
        "rate": float(distance.rate).hex(),
        "weights": hexes(distance.weight_vector(schema)),
        "scales": [None if scale is None else float(scale).hex() for scale in scales],
    }
