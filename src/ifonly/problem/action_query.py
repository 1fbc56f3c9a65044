"""Queries about rows as queries about actions: the cost of what is done, and rules on what follows."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.causes.causal_model import value_ends
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.model import Model
from ifonly.problem.accepted import Accepted
from ifonly.problem.action_models import action_model
from ifonly.problem.action_rules import FollowersInRange, TiedRegion, TiedValue
from ifonly.problem.actions import ActionSpace
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.chains import AcceptedBySome
from ifonly.problem.composed_rule import ComposedRule
from ifonly.problem.constraints import Allowed, Domains, Fixed, Imputable, Range, Unconstrained
from ifonly.problem.disjunctions import is_condition
from ifonly.problem.distance import Distance, Norm
from ifonly.problem.parts import Literal, Part, UnrolledColumns, linear_part
from ifonly.problem.query import Query
from ifonly.problem.rules.derived import derived_features
from ifonly.problem.rules.rule import Rule
from ifonly.problem.support import MaxChanges, OnlyWith
from ifonly.problem.words import show_name
from ifonly.schema import Choice, Feature, Schema

Floats = NDArray[np.float64]

ROOM = 1e-9
"""Relative: what rounding may do to a cost."""


def action_query(query: Query, space: ActionSpace, *, cut: bool) -> Query:
    """The same query about actions on a set of features, without its fees. `cut`: no feature changes by more than may
    be spent, which a search that begins with a cutoff needs not be told."""
    schema = space.rows_schema
    query.measure.check(schema)
    for name in sorted(derived_features(query.constraints) & set(space.causes.graph)):
        raise QuestionError(f"'{name}' has both a definition (it follows from others) and an equation; leave one out.")
    distance = _distance(query.measure, space)
    rows = [found for one in query.constraints for found in _constraint(one, space)]
    free = {*space.causes.graph, *derived_features(query.constraints)} - {schema.names[g] for g in space.acted}
    near = [
        CostsAtMost(name, distance, space.schema) for name in schema.names if name not in free
    ]  # what follows is free
    return replace(query, distance=distance, constraints=(*rows, *_own(space), *(near if cut else ())))


def any_trees(model: Model, query: Query) -> bool:
    """Do trees decide, by themselves or beside others?"""
    some = [each for one in query.constraints if isinstance(one, AcceptedBySome) for each in one.of]
    accepted = [one for one in (*query.constraints, *some) if isinstance(one, Accepted)]
    models = [model, *(one.model(model.schema) for one in accepted)]
    return any(one.function.as_trees() is not None for one in models)


def _constraint(one: Any, space: ActionSpace) -> Iterator[Any]:
    """A constraint of the query, about actions or about what follows."""
    if isinstance(one, Imputable | Unconstrained):
        return
    if hasattr(one, "restrict"):
        yield from _on_one(one, space)
    elif isinstance(one, MaxChanges):
        with_causes = frozenset(space.rows_schema.names[g] for g in space.causes.order)
        yield MaxChanges(max(one.most - len(space.acted), 0), one.uncounted | with_causes | space.end_names)
    elif isinstance(one, OnlyWith):
        names = space.put_names
        yield OnlyWith(names.get(one.feature, one.feature), names.get(one.partner, one.partner))
    elif isinstance(one, Accepted):
        yield _accepted(one, space)
    elif isinstance(one, AcceptedBySome):
        yield AcceptedBySome(one.least, [_accepted(each, space) for each in one.of])
    elif is_condition(one):
        raise UnsupportedQuestion(
            f"'{one.describe()}' is met in one of several ways, which cannot be asked of the row that follows yet; ask "
            f"without it, or with a rule."
        )
    elif isinstance(one, Rule) and not one.features(space.rows_schema) & space.composed:
        yield copy.copy(one)  # which keeps what it means for one schema
    else:
        yield ComposedRule(one, space)


def _on_one(one: Any, space: ActionSpace) -> Iterator[Any]:
    """A constraint on one feature: where it ends is about the row that follows, all else about what is done."""
    if isinstance(one, Range | Allowed):
        yield ComposedRule(EndsIn(one), space) if one.feature in space.composed else one
    elif one.feature not in space.put_names:
        yield one


def _accepted(one: Accepted, space: ActionSpace) -> Accepted:
    schema = space.rows_schema
    return Accepted(by=action_model(one.model(schema), space), target=one.target_of(schema), name=one.name)


def _own(space: ActionSpace) -> Iterator[Any]:
    """What makes a row of the action schema an action."""
    names = space.schema.names
    for g in space.following:
        yield Fixed(names[space.expected[g]])
        yield Fixed(names[space.puts[g]])
    yield from (Fixed(name) for name in sorted(space.end_names))
    if space.for_trees:
        yield from (FollowsInBox(names[g], g) for g in space.unknown)
    yield from (TiedValue(space, g) for g in space.unknown)
    yield from (TiedRegion(space, k) for k in range(len(space.ties)))
    if len(space.unknown) < len(space.following):
        yield FollowersInRange(space)


def _distance(distance: Distance, space: ActionSpace) -> Distance:
    """The same distance between what people do: it is a mean over the features of a row."""
    old, new, names = space.rows_schema, space.schema, space.put_names
    share = len(new) / len(old)
    share = float(np.sqrt(share)) if distance.kind is Norm.L2 else share

    def renamed(table: Mapping[str, Any]) -> dict[str, Any]:
        return {names.get(name, name): value for name, value in table.items()}

    weights = {name: share * distance.weights.get(name, 1.0) for name in old.names}
    tables = {name: renamed(getattr(distance, name)) for name in ("scales", "up", "down", "transitions")}
    return replace(distance, weights=renamed(weights), **tables).without(space.end_names)


def with_fees(distance: Distance, size: int, cost: float, fees: Sequence[float]) -> float:
    """The cost of an action on features against their causes, of a row of so many features: `cost` is that of what is
    done, and each fee, weighted, counts like a change of this size."""
    match distance.kind:
        case Norm.L2:
            return math.sqrt(cost**2 + sum(fee**2 for fee in fees) / size)
        case Norm.LINF:
            return max([cost, *(fee / size for fee in fees)])
        case Norm.L0 | Norm.L1:
            return cost + (distance.jump + distance.rate) * sum(fees) / size


def without_fees(distance: Distance, size: int, cost: float, fees: Sequence[float]) -> float:
    """What may be spent beside the fees."""
    match distance.kind:
        case Norm.L2:
            return math.sqrt(max(cost**2 - sum(fee**2 for fee in fees) / size, 0.0))
        case Norm.LINF:
            return cost
        case Norm.L0 | Norm.L1:
            return max(cost - (distance.jump + distance.rate) * sum(fees) / size, 0.0)


_MOST: ContextVar[float] = ContextVar("ifonly_most", default=math.inf)
_BOX: ContextVar[tuple[FeatureBoxes, int] | None] = ContextVar("ifonly_box", default=None)


@contextmanager
def spending(most: float) -> Iterator[None]:
    """Inside, in the same thread: nothing that costs more needs to be found."""
    token = _MOST.set(most * (1.0 + ROOM))
    try:
        yield
    finally:
        _MOST.reset(token)


@contextmanager
def staying_in(box: tuple[FeatureBoxes, int] | None) -> Iterator[None]:
    """Inside, in the same thread: where trees decide, what follows needs to be found in one of these boxes only."""
    token = _BOX.set(box)
    try:
        yield
    finally:
        _BOX.reset(token)


@dataclass(frozen=True, eq=False)
class FollowsInBox:
    """What follows is in the box that bounds what an action can do (`staying_in`): a cut-off."""

    feature: str
    place: int

    def check(self, schema: Schema) -> None:
        """It fits the schema that it was made with."""

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        """What `restrict` leaves."""
        known = _BOX.get()
        return known is None or bool(known[0].holding(self.place, after)[known[1]])

    def restrict(self, feature: Feature, before: Floats, domains: Domains) -> None:
        known = _BOX.get()
        if known is None:
            return
        boxes, k = known
        if isinstance(feature, Choice):
            domains.allowed &= boxes.allowed[self.place][k]
            return
        domains.lower = np.maximum(domains.lower, boxes.lower[k, self.place])
        domains.upper = np.minimum(domains.upper, boxes.upper[k, self.place])

    def describe(self) -> str:
        return f"{show_name(self.feature)} follows from what may be spent"


@dataclass(frozen=True, eq=False)
class CostsAtMost:
    """The change of a feature alone costs no more than may be spent (`spending`): a cut-off."""

    feature: str
    distance: Distance
    schema: Schema

    def check(self, schema: Schema) -> None:
        """It fits the schema that it was made with."""

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        """What `restrict` leaves: whoever goes through rows instead of domains cuts off the same."""
        size = len(feature.options) if isinstance(feature, Choice) else 0
        low, high = value_ends(feature)
        domains = Domains(np.array([low]), np.array([high]), np.ones((1, size), dtype=np.bool_))
        self.restrict(feature, np.array([before]), domains)
        if isinstance(feature, Choice):
            return bool(domains.allowed[0, int(after)])
        return bool(domains.lower[0] <= after <= domains.upper[0])

    def restrict(self, feature: Feature, before: Floats, domains: Domains) -> None:
        if math.isinf(_MOST.get()):
            return
        distance, size = self.distance, len(self.schema)
        weight = distance.weights.get(self.feature, 1.0)
        delta = _MOST.get() * (math.sqrt(size) if distance.kind is Norm.L2 else size) / weight - distance.jump
        if isinstance(feature, Choice):
            costs = distance.rate * distance.option_changes(feature)[before.astype(np.intp)]
            domains.allowed &= (costs <= delta) | (np.arange(len(feature.options)) == before[:, None])
            return
        scale = distance.scales.get(self.feature, feature.width or 1.0)
        most = 0.0 if delta < 0.0 else delta / distance.rate if distance.rate else math.inf
        reach = most * scale
        domains.lower = np.maximum(domains.lower, before - reach / distance.down.get(self.feature, 1.0))
        domains.upper = np.minimum(domains.upper, before + reach / distance.up.get(self.feature, 1.0))

    def describe(self) -> str:
        return f"{show_name(self.feature)} costs no more than may be spent"


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
