"""Elimination of derived features: a question about the free features only, with the same nearest rows.

A derived feature that depends on one feature with few values (its *host*) is a function of the host's value. In the
reduced question the host has one option per value, the derived feature is gone, and every row of the original is a
linear function of the options: model, rules and distances are those of the original, composed with it. Other derived
features stay, with their rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached, cached_property
from ifonly.errors import SchemaError
from ifonly.model import Model
from ifonly.model.folded import Folded
from ifonly.model.joint import joint_model
from ifonly.model.trees.fewer_features import FeatureSource, over_fewer
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.composed_rule import ComposedRule, last_of
from ifonly.problem.constraints import Domains
from ifonly.problem.distance import Distance, Norm
from ifonly.problem.holding import Held
from ifonly.problem.hosts import Host, alternatives, hosts_of
from ifonly.problem.joint_target import JointTarget
from ifonly.problem.lowered_network import unrolling
from ifonly.problem.parts import Literal, Part, UnrolledColumns, clause_part
from ifonly.problem.question import Question
from ifonly.problem.rule import RowRule, is_row_rule
from ifonly.problem.rules.derived import Derived
from ifonly.problem.rules.normal import literals
from ifonly.problem.rules.rule import Rule
from ifonly.problem.support import MaxChanges, OnlyWith
from ifonly.schema import Categorical, Choice, Feature, Numeric, Schema

Floats = NDArray[np.float64]
T = TypeVar("T")

ELIMINATION_BYTES = 2**22
"""Eliminations, by schema and rules: questions that differ in the rest share one."""
MODELS_KEPT = 4
"""Reduced ones of a model."""
KEPT = 256
"""Of an elimination: clauses and parts of rules, distances."""


@dataclass(frozen=True, eq=False)
class Elimination:
    """How rows of the original question and of the reduced one correspond."""

    rows_schema: Schema
    hosts: tuple[Host, ...]

    @cached_property
    def kept(self) -> list[int]:
        """The places of the features that the reduced question has."""
        gone = {g for host in self.hosts for g in host.derived}
        return [g for g in range(len(self.rows_schema)) if g not in gone]

    @cached_property
    def reduced_schema(self) -> Schema:
        hosts = {host.place: host for host in self.hosts}
        features: list[Feature] = []
        for g in self.kept:
            feature = self.rows_schema.features[g]
            options = [str(k) for k in range(len(hosts[g].values))] if g in hosts else []
            features.append(Categorical(feature.name, options) if options else feature)
        return Schema(features)

    def takes(self, points: Floats) -> bool:
        """Is every person's value of each host one of its values?"""
        return all(bool((points[:, host.place, None] == host.values).any(axis=1).all()) for host in self.hosts)

    def reduced(self, points: Floats) -> Floats:
        """The rows of the reduced question."""
        result = points[:, self.kept].copy()
        for host in self.hosts:
            own = points[:, host.place]
            result[:, self.kept.index(host.place)] = np.argmax(host.values == own[:, None], axis=1)
        return result

    def reduced_boxes(self, boxes: FeatureBoxes) -> FeatureBoxes:
        """The boxes of the reduced question: of a host, the values that the box holds with all that follows from it."""
        allowed, hosts = [boxes.allowed[g] for g in self.kept], {host.place: host for host in self.hosts}
        for k, g in enumerate(self.kept):
            if host := hosts.get(g):
                facts = [(g, host.values), *host.derived.items()]
                inside = [[boxes.holding(place, values[v]) for place, values in facts] for v in range(len(host.values))]
                allowed[k] = np.all(inside, axis=1).T
        return FeatureBoxes(self.reduced_schema, boxes.lower[:, self.kept], boxes.upper[:, self.kept], tuple(allowed))

    def rows(self, points: Floats) -> Floats:
        """The rows of the original question: hosts by their values, derived features as they follow."""
        result = np.zeros((len(points), len(self.rows_schema)))
        result[:, self.kept] = points
        for host in self.hosts:
            option = points[:, self.kept.index(host.place)].astype(np.intp)
            result[:, host.place] = host.values[option]
            for g, values in host.derived.items():
                result[:, g] = values[option]
        return result

    def row(self, point: Floats, role: str) -> Floats:
        """One of them."""
        return last_of(self, role, point, lambda: self.rows(point[None, :])[0])

    def parts_of(self, rule: RowRule, columns: UnrolledColumns) -> Sequence[Part]:
        if isinstance(rule, Rule):
            clauses = self.clauses_of(rule, columns)
            return self._once(("parts", rule), lambda: [clause_part(columns, clause) for clause in clauses])
        old = UnrolledColumns(self.rows_schema)
        return [Part(((self.times(part.layers[0][0]), part.layers[0][1]), *part.layers[1:]), part.whole, gap=part.gap)
                for part in rule.parts(old)]  # fmt: skip

    def clauses_of(self, rule: Rule, columns: UnrolledColumns) -> list[list[Literal]]:
        """Clause by clause: what a host decides alone becomes a matter of its options."""
        old = UnrolledColumns(self.rows_schema)
        return self._once(
            ("clauses", rule),
            lambda: [
                [_composed(columns, one, self.unrolled) for one in literals(old, clause)]
                for clause in rule.clauses(old.schema)
            ],
        )

    def distance(self, distance: Distance) -> Distance:
        """The same distance between rows of the reduced question."""
        return self._once(("distance", distance), lambda: _distance(distance, self))

    def composed(self, rule: RowRule) -> ComposedRule:
        """The rule about rows of the reduced question."""
        made = ComposedRule(rule, self)
        return self._once(("composed", rule), lambda: made) if isinstance(rule, Rule) else made

    def share(self) -> None:
        """Work out what copies have in common."""
        _ = self.reduced_schema, self.kept, self.unrolled, self._kept

    def _once(self, key: tuple[str, Any], make: Callable[[], T]) -> T:
        """What is made of a rule or a distance, made once."""
        kept = self._kept
        found: T | None = kept.get(key)
        if found is None:
            if len(kept) >= KEPT:
                kept.clear()
            found = kept[key] = make()
        return found

    @cached_property
    def _kept(self) -> dict[tuple[str, Any], Any]:
        return {}

    def literal_of(self, one: Literal) -> Literal:
        """An inequality about rows of the original, about those of the reduced schema."""
        return Literal(one.weight @ self.unrolled, one.constant, one.gap)

    @cached_property
    def unrolled(self) -> Floats:
        """The matrix from unrolled columns of the reduced schema to those of the original."""
        old, new = UnrolledColumns(self.rows_schema), UnrolledColumns(self.reduced_schema)
        matrix, hosts = np.zeros((old.width, new.width)), {host.place: host for host in self.hosts}
        for k, g in enumerate(self.kept):
            here = slice(int(new.start[k]), int(new.start[k + 1]))
            if g in hosts:
                for place, values in ((g, hosts[g].values), *hosts[g].derived.items()):
                    matrix[int(old.start[place]) : int(old.start[place + 1]), here] = self._columns(place, values)
            else:
                matrix[int(old.start[g]) : int(old.start[g + 1]), here] = np.eye(here.stop - here.start)
        return matrix

    def times(self, weight: Floats) -> Floats:
        """A layer over unrolled columns of the original, over those of the reduced schema. Parts that share one share
        the product."""
        made: dict[int, tuple[Floats, Floats]] = self.__dict__.setdefault("_products", {})
        if id(weight) not in made:
            made[id(weight)] = (weight, weight @ self.unrolled)
        return made[id(weight)][1]

    @cached_property
    def sources(self) -> tuple[FeatureSource, ...]:
        """Of each feature of the original question, where it is in the reduced one."""
        found = {g: FeatureSource(k) for k, g in enumerate(self.kept)}
        for host in self.hosts:
            place = self.kept.index(host.place)
            for g, values in ((host.place, host.values), *host.derived.items()):
                found[g] = FeatureSource(place, tuple(values.tolist()))
        return tuple(found[g] for g in range(len(self.rows_schema)))

    def _columns(self, g: int, values: Floats) -> Floats:
        """(unrolled column of the feature, value): what the columns are for each value."""
        feature = self.rows_schema.features[g]
        if isinstance(feature, Numeric):
            return values[None, :]
        return np.asarray(np.arange(len(feature.options))[:, None] == values[None, :], dtype=np.float64)

    @cached_property
    def encoded(self) -> Floats:
        """The matrix from encoded columns of the reduced schema to those of the original; every feature but a host has
        its own encoding in both."""
        matrix = np.zeros((len(self.rows_schema.columns), len(self.reduced_schema.columns)))
        from_unrolled = unrolling(self.rows_schema) @ self.unrolled
        new, hosts = UnrolledColumns(self.reduced_schema), {host.place for host in self.hosts}
        for k, g in enumerate(self.kept):
            columns = self.reduced_schema.feature_columns[k]
            if g in hosts:
                matrix[:, columns] = from_unrolled[:, int(new.start[k]) : int(new.start[k + 1])]
            else:
                matrix[self.rows_schema.feature_columns[g], columns] = 1.0
        return matrix


def eliminated(question: Question) -> tuple[Question, Elimination] | None:
    """The question without the derived features that can be eliminated; None where there are none."""
    target = question.target
    models = target.models if isinstance(target, JointTarget) else (question.model,)
    if not question.derived or question.schema.unknown or not all(_reducible(one) for one in models):
        return None
    rules = tuple(rule for rule in question.rules if isinstance(rule, Rule | OnlyWith))
    held = question.derived & {c.feature for c in question.by_feature}
    trees = any(one.function.as_trees() is not None for one in models)
    known = _elimination(question.schema, rules, held, trees)
    if known is None:
        return None
    elimination = copy(known)  # what is kept of the rows of a question stays with it
    if isinstance(target, JointTarget):
        target = target.of([_reduced(one, elimination) for one in target.models])
        model = joint_model(target.models)
    else:
        model = _reduced(question.model, elimination)
    reduced = Question(
        model=model,
        target=target,
        distance=elimination.distance(question.distance),
        constraints=tuple(_constraints(question, elimination, known)),
        caution=question.caution,
    )
    return reduced, elimination


@cached(ELIMINATION_BYTES)
def _elimination(
    schema: Schema, rules: tuple[Rule | OnlyWith, ...], held: frozenset[str], trees: bool
) -> Elimination | None:
    """What can be eliminated under these rules. `held`: derived features with constraints of their own; `trees`: trees
    decide, which take any other rule, in cells."""
    hosts = tuple(hosts_of(schema, rules, held))
    if not hosts:
        return None
    if not trees:
        hosts += tuple(alternatives(schema, rules, {host.place for host in hosts}))
    elimination = Elimination(schema, hosts)
    try:
        elimination.share()
    except SchemaError:  # two columns of one name
        return None
    return elimination


def _reducible(model: Model) -> bool:
    """Can the model be one of fewer features?"""
    function = model.function
    if function.as_trees() is not None:
        return function is function.as_trees()
    network = function.as_network() is not None or function.as_smooth_network() is not None
    return network and not function.exact_sums


def _reduced(model: Model, elimination: Elimination) -> Model:
    """The model of rows of the reduced question, made once for all questions that have this elimination."""
    kept: tuple[tuple[Any, Model], ...] = model.__dict__.get("_reduced_models", ())
    found = next((reduced for hosts, reduced in kept if hosts is elimination.hosts), None)
    if found is None:
        found = _made_reduced(model, elimination, elimination.reduced_schema)
        model.__dict__["_reduced_models"] = ((elimination.hosts, found), *kept[: MODELS_KEPT - 1])
    return found


def _made_reduced(model: Model, elimination: Elimination, schema: Schema) -> Model:
    trees, function = model.function.as_trees(), model.function
    return Model(
        function=(
            Folded(function, elimination.encoded, elimination.rows_schema)
            if trees is None
            else over_fewer(trees, elimination.sources, schema)
        ),
        schema=schema,
        original=Expanded(model.original, elimination),
        classes=model.classes,
        precision=model.precision,
        probabilities=Expanded(model.probabilities, elimination) if model.probabilities else None,
        scores_are=model.scores_are,
    )


@dataclass(frozen=True)
class Expanded:
    """The user's own model, asked about rows of the reduced question."""

    original: Any
    elimination: Elimination

    def __call__(self, points: Floats) -> Any:
        return self.original(self.elimination.rows(points))


# ---------------------------------------------------------------------- distance and constraints


def _distance(distance: Distance, elimination: Elimination) -> Distance:
    """The same distance: it is a mean over all features, of which some are gone."""
    old, new = elimination.rows_schema, elimination.reduced_schema
    share = len(new) / len(old)
    share = float(np.sqrt(share)) if distance.kind is Norm.L2 else share
    hosts = {old.names[host.place]: host for host in elimination.hosts}
    rest = [name for name in new.names if name not in hosts]

    def kept(table: Any) -> dict[str, Any]:
        return {name: table[name] for name in rest if name in table}

    weights = {name: share * distance.weights.get(name, 1.0) for name in new.names}
    moves = {name: _moves(distance, old, host) for name, host in hosts.items()}
    return replace(
        distance,
        weights=weights,
        scales=kept(distance.scales),
        up=kept(distance.up),
        down=kept(distance.down),
        transitions={**kept(distance.transitions), **moves},
    )


def _moves(distance: Distance, schema: Schema, host: Host) -> dict[tuple[Any, Any], float]:
    """What each change of a host is, unweighted."""
    points = np.zeros((len(host.values), len(schema)))
    points[:, host.place] = host.values
    measure = distance.on(schema)
    changes = [measure.changes(point, points)[:, host.place].tolist() for point in points]
    options = list(enumerate(map(str, range(len(host.values)))))
    return {(one, other): changes[i][j] for i, one in options for j, other in options if i != j}


def _constraints(question: Question, elimination: Elimination, known: Elimination) -> Iterator[Any]:
    schema = question.schema
    gone = {schema.names[g] for host in elimination.hosts for g in host.derived}
    hosts = {schema.names[host.place]: host for host in elimination.hosts}
    constraint: Any
    for constraint in question.constraints:
        if isinstance(constraint, Derived) and constraint.feature in gone:
            continue
        if isinstance(constraint, MaxChanges | OnlyWith):
            yield constraint
        elif is_row_rule(constraint):
            yield (known if isinstance(constraint, Rule) else elimination).composed(constraint)
        elif constraint.feature in hosts and not isinstance(constraint, Held):
            yield HostConstraint.of(constraint, schema, hosts[constraint.feature])
        else:
            yield constraint


def _composed(columns: UnrolledColumns, one: Literal, matrix: Floats) -> Literal:
    """A literal about rows of the reduced question; one that looks at the options of one feature only is 0 or -1."""
    weight = one.weight @ matrix
    touched = np.flatnonzero(np.logical_or.reduceat(weight != 0.0, columns.start[:-1])).tolist()
    if len(touched) == 1 and isinstance(columns.schema.features[touched[0]], Choice):
        here = slice(int(columns.start[touched[0]]), int(columns.start[touched[0] + 1]))
        holds = np.zeros(columns.width)
        holds[here] = weight[here] + one.constant >= 0.0
        return Literal(holds, -1.0)
    return Literal(weight, one.constant, one.gap)


@dataclass(frozen=True, eq=False)
class HostConstraint:
    """A constraint on a host, whose options are its values."""

    feature: str
    constraint: Any
    table: NDArray[np.bool_]
    """(before, after): is it allowed?"""

    @classmethod
    def of(cls, constraint: Any, schema: Schema, host: Host) -> HostConstraint:
        feature, values = schema.features[host.place], host.values.tolist()
        allowed = [[constraint.allows(feature, before, after) for after in values] for before in values]
        return cls(constraint.feature, constraint, np.array(allowed, dtype=np.bool_))

    def check(self, schema: Schema) -> None:
        """It was checked with the original question."""

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return bool(self.table[int(before), int(after)])

    def restrict(self, feature: Feature, before: Floats, domains: Domains) -> None:
        domains.allowed &= self.table[before.astype(np.intp)]

    def describe(self) -> str:
        return str(self.constraint.describe())
