"""Queries about rows as queries about actions: the cost of what is done, and rules on what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.problem.accepted import Accepted
from ifonly.problem.action_models import action_model
from ifonly.problem.actions import ActionSpace, FollowersInRange, OnRowThatFollows, TiedValue
from ifonly.problem.chains import AcceptedBySome
from ifonly.problem.constraints import Allowed, Fixed, Imputable, Range, Unconstrained
from ifonly.problem.disjunctions import is_condition
from ifonly.problem.distance import DERIVED, Distance, Norm
from ifonly.problem.parts import Literal, Part, UnrolledColumns, linear_part
from ifonly.problem.query import Query
from ifonly.problem.rule import is_row_rule
from ifonly.problem.rules.derived import derived_features
from ifonly.problem.support import MaxChanges, OnlyWith
from ifonly.schema import Choice, Schema

Floats = NDArray[np.float64]


def fixed_features(query: Query) -> frozenset[str]:
    """The features that nobody can act on, under the constraints of a query."""
    return frozenset(one.feature for one in query.constraints if isinstance(one, Fixed))


def action_query(query: Query, space: ActionSpace) -> Query:
    """The same query about actions."""
    if query.fewest_first:
        raise UnsupportedQuestion("The fewest actions first cannot be asked for; use the distance l0.")
    schema = space.rows_schema
    query.measure.check(schema)
    for name in sorted(derived_features(query.constraints) & set(space.causes.graph)):
        raise QuestionError(f"'{name}' has both a definition (it follows from others) and an equation; leave one out.")
    rows = [found for one in query.constraints for found in _constraint(one, space)]
    return replace(query, distance=_distance(query.measure, space), constraints=(*rows, *_own(space, rows)))


def _constraint(one: Any, space: ActionSpace) -> Iterator[Any]:
    """A constraint of the query, about actions or about what follows."""
    follows = space.causes.graph
    if isinstance(one, Imputable | Unconstrained):
        return
    if isinstance(one, Range | Allowed) and one.feature in follows:
        yield OnRowThatFollows(EndsIn(one), space)
    elif isinstance(one, MaxChanges):
        names = frozenset(space.rows_schema.names[g] for g in space.causes.order)
        yield replace(one, uncounted=one.uncounted | names)
    elif isinstance(one, Accepted):
        yield _accepted(one, space)
    elif isinstance(one, AcceptedBySome):
        yield AcceptedBySome(one.least, [_accepted(each, space) for each in one.of])
    elif is_condition(one):
        raise UnsupportedQuestion(
            f"'{one.describe()}' is met in one of several ways, which cannot be asked of the row that follows yet; ask "
            f"without it, or with a rule."
        )
    elif is_row_rule(one) and not isinstance(one, OnlyWith):
        yield OnRowThatFollows(one, space)
    else:
        yield one


def _accepted(one: Accepted, space: ActionSpace) -> Accepted:
    schema = space.rows_schema
    return Accepted(by=action_model(one.model(schema), space), target=one.target_of(schema), name=one.name)


def _own(space: ActionSpace, given: Sequence[Any]) -> Iterator[Any]:
    """What makes a row of the action schema an action."""
    names, rows = space.schema.names, space.rows_schema.names
    for g in space.causes.order:
        yield Fixed(names[space.noises[g]])
        if g in space.actable:
            yield OnlyWith(rows[g], names[space.switches[g]])
        elif Fixed(rows[g]) not in given:
            yield Fixed(rows[g])
        if g in space.tied:
            yield TiedValue(space, g)
    if any(g not in space.tied for g in space.causes.order):
        yield FollowersInRange(space)


def _distance(distance: Distance, space: ActionSpace) -> Distance:
    """The same distance between what people do: it is a mean over the features of a row. Acting on a feature with
    causes costs its fee."""
    old, new, causes = space.rows_schema, space.schema, space.causes
    share = len(new) / len(old)
    share = float(np.sqrt(share)) if distance.kind is Norm.L2 else share
    weights = {name: share * distance.weights.get(name, 1.0) for name in old.names}
    for g, at in space.switches.items():
        weights[new.names[at]] = max(causes.fee(old.names[g]), DERIVED) * weights[old.names[g]]
    return replace(distance, weights=weights)


@dataclass(frozen=True)
class EndsIn:
    """A range, or allowed values, as a rule about a row."""

    constraint: Range | Allowed

    def check(self, schema: Schema) -> None:
        self.constraint.check(schema)

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        g = schema.index(self.constraint.feature)
        return self.constraint.allows(schema.features[g], float(before[g]), float(after[g]))

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        one = self.constraint
        feature, here = columns.schema[one.feature], columns.of(one.feature)
        weight = np.zeros(columns.width)
        if isinstance(one, Allowed):
            assert isinstance(feature, Choice)
            weight[here] = [one.allows(feature, 0.0, float(k)) for k in range(len(feature.options))]
            return [linear_part(columns, Literal(weight, -1.0))]
        weight[here] = 1.0
        ends = ((1.0, one.lower), (-1.0, one.upper))
        return [linear_part(columns, Literal(sign * weight, -sign * end)) for sign, end in ends if np.isfinite(end)]

    def describe(self) -> str:
        return self.constraint.describe()
