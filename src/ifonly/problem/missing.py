"""Missing values: constraints and distances for people with missing numbers.

A missing number is neither large nor small, so a constraint on it does not apply while it stays missing, and a rule is
broken only where it is false whatever is missing (`rules.formulas`). Where it may be filled in (`Imputable`), the value
must meet the constraints on values (ranges and rules); those that compare it with the number before do not apply.

Filled in, a number counts as a change of the stated size, whatever its value. The nearest row that fills in these
numbers and no others is therefore found without their cost (`free`), and its distance `counted` afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ifonly.errors import QuestionError, RowError
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.chains import AcceptedBySome
from ifonly.problem.constraints import Fixed, Imputable, Range
from ifonly.problem.disjunctions import Either, is_condition
from ifonly.problem.distance import Distance, Norm
from ifonly.problem.learned.support import NumberGivenOption, OptionsTogether
from ifonly.problem.robust import RobustToWeights
from ifonly.problem.robust_trees import RobustToTrees
from ifonly.problem.rule import is_row_rule
from ifonly.problem.rules.rule import Rule
from ifonly.problem.support import MaxChanges, OnlyWith
from ifonly.schema import Schema

NEXT_TO_NOTHING = 1e-30
"""The weight of a number that is filled in, whose value makes no difference to the distance: it settles ties."""


def fillable(constraints: Iterable[Any], missing_names: Collection[str]) -> dict[str, float]:
    """Which missing numbers may be filled in, and what that counts as: the least that is stated, and none if fixed."""
    kept = list(constraints)
    fixed = {one.feature for one in kept if isinstance(one, Fixed)}
    found: dict[str, float] = {}
    for one in kept:
        if isinstance(one, Imputable) and one.feature in missing_names and one.feature not in fixed:
            found[one.feature] = min(one.change, found.get(one.feature, math.inf))
    return found


def without_imputable(constraints: Iterable[Any], schema: Schema) -> tuple[Any, ...]:
    """The constraints without the permission to fill in missing numbers, which is checked."""
    kept = []
    for one in constraints:
        if isinstance(one, Imputable):
            one.check(schema)
        else:
            kept.append(one)
    return tuple(kept)


def constraints_restricted_to(
    schema: Schema, constraints: Iterable[Any], missing_names: Collection[str], filled: Collection[str] = ()
) -> tuple[Any, ...]:
    """The constraints that apply to people with some numbers missing, in whose answer others are filled in."""
    kept: list[Any] = []
    for one in constraints:
        if isinstance(one, Accepted | RobustToWeights | RobustToTrees):
            kept.append(one.without(missing_names))
            continue
        if isinstance(one, AcceptedBySome):
            kept.append(AcceptedBySome(one.least, [each.without(missing_names) for each in one.of]))
            continue
        if not (hasattr(one, "restrict") or is_row_rule(one) or is_condition(one)):
            raise QuestionError(f"{shown(one)} is not a constraint; use Fixed, OnlyUp, OnlyDown, Range or a rule.")
        one.check(schema)
        if _applies(one, missing_names, filled):
            kept.append(one)
    return tuple(kept)


def _applies(one: Any, missing_names: Collection[str], filled: Collection[str]) -> bool:
    """Does a constraint apply to these people? A RowError where it has no meaning for them."""
    if isinstance(one, Imputable):
        return False
    if hasattr(one, "restrict"):  # on one feature
        return one.feature not in missing_names and (one.feature not in filled or isinstance(one, Range))
    if isinstance(one, NumberGivenOption):
        return one.number not in missing_names
    if isinstance(one, Either):
        return all(_applies(option, missing_names, filled) for option in one.options)
    if filled and isinstance(one, MaxChanges | OnlyWith):
        raise RowError(f"'{one.describe()}' counts changes, which cannot be asked together with filling in yet.")
    if isinstance(one, OptionsTogether | Rule | MaxChanges | OnlyWith):
        return True
    name = next(iter((*missing_names, *filled)))
    raise RowError(
        f"'{one.describe()}' compares whole rows, which has no meaning where '{name}' is missing; fill it in before "
        f"asking, or ask without that.",
        feature=name,
    )


def distance_restricted_to(
    distance: Distance, missing_names: Collection[str], filled: Collection[str] = ()
) -> Distance:
    """The distance between rows with some numbers missing; others, which are filled in, cost almost nothing."""
    gone = {*missing_names, *filled}
    tables = {
        name: {feature: number for feature, number in getattr(distance, name).items() if feature not in gone}
        for name in ("scales", "up", "down")
    }
    free = dict.fromkeys(filled, NEXT_TO_NOTHING)
    return replace(distance, weights={**distance.weights, **free}, **tables)


def counted(distance: Distance, features: int, rest: float, filled: Mapping[str, float]) -> float:
    """The distance of a row in which numbers are filled in: `rest` is that of what else changes."""
    costs = [(distance.weights.get(name, 1.0), change) for name, change in filled.items()]
    match distance.kind:
        case Norm.L2:
            return math.sqrt(rest**2 + sum((weight * change) ** 2 for weight, change in costs) / features)
        case Norm.LINF:
            return max([rest, *(weight * change / features for weight, change in costs)])
        case Norm.L0 | Norm.L1:
            return rest + sum(w * (distance.jump + distance.rate * change) for w, change in costs) / features
