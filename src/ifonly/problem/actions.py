"""Actions as the unknowns of a question: the row that follows from them is a network before the model.

For a causal model and a set of features with causes that are acted on, all others follow. A row of the *action schema*
says for each feature its own value or the one it is put to (a), and for each that follows what its equation gave before
(c). Since a feature that follows keeps a = f(before) + u, its value in the row that follows is

    x = a + f(x) - c = f(x) + u

so that row is a network of a and c, affine where the equations are, smooth where one of them is, and so is the model
behind it. A value in steps is an unknown of its own (v), which has the name of the feature, tied by rules:

    v - step/2 <= a + f(x) - c < v + step/2

A real number that follows stays within its range by a rule, too. Where trees decide, which read values, it is an
unknown as well (*boxed*): in a box of cells it is between two ends, which are features that only this tells apart,

    end below <= a + f(x) - c <= end above

and a row that is found there gets the values that follow (`completed`). Where equations are trees, which region their
causes are in is an unknown, too, with a column per region (`action_regions`): of the lowest and the highest number of
each, and of its options, for each cause x of the trees

    lowest . region <= x <= highest . region        column of option o of x <= the sum of the regions that allow o

All else is what it was: constraints on single features are about actions, and costs are those of a.
(`answering.recourse` goes through the sets.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.causes.causal_model import TIE, CausalModel, value_ends
from ifonly.causes.tree_equations import step_of
from ifonly.model import Network
from ifonly.model.flow import Flow
from ifonly.model.layers import layers_of
from ifonly.model.rounding import column_box
from ifonly.model.smooth import SmoothNetwork
from ifonly.problem.action_regions import EXTRA, RegionTie, region_ties
from ifonly.problem.composed_rule import last_of
from ifonly.problem.lowered_network import unrolling
from ifonly.problem.parts import Literal, Part, UnrolledColumns
from ifonly.problem.rule import RowRule
from ifonly.schema import Binary, Categorical, Feature, Numeric, Ordinal, Real, Schema

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WITHIN = 0.5
"""Of the distance from an end at which a follower is settled there: so far beyond it is searched."""


@dataclass(frozen=True, eq=False)
class ActionSpace:
    """The action schema of a causal model where these features with causes are acted on, and the rows that follow."""

    causes: CausalModel
    acted: frozenset[int]
    for_trees: bool = False
    """Are real numbers that follow unknowns, too?"""

    @cached_property
    def following(self) -> tuple[int, ...]:
        """The places of the features that follow, each after its causes."""
        return tuple(g for g in self.causes.order if g not in self.acted)

    @cached_property
    def tied(self) -> tuple[int, ...]:
        """Those of them that are unknowns of their own: they have steps or levels."""
        return tuple(g for g in self.following if step_of(self.rows_schema.features[g]) is not None)

    @cached_property
    def boxed(self) -> tuple[int, ...]:
        """Those of them that are unknowns between two ends."""
        return tuple(g for g in self.following if self.for_trees and g not in self.tied)

    @cached_property
    def smooth(self) -> bool:
        """Is an equation by which something follows smooth?"""
        return any(isinstance(self.causes.compiled[g].network, SmoothNetwork) for g in self.following)

    @property
    def rows_schema(self) -> Schema:
        return self.causes.schema

    # ------------------------------------------------------------------ the schema

    @cached_property
    def schema(self) -> Schema:
        """The features of an action, by the places that `puts` and `expected` have."""
        own = self.rows_schema
        features = [_one_hot(feature) for feature in own.features]
        names = set(own.names) | {column for feature in features for column in feature.column_names}
        for g in self.following:
            name = own.names[g]
            features.append(Real(_unused(f"{name} (expected)", names), *self._ends(g)))
            if g in self.tied or g in self.boxed:
                features.append(replace(features[g], name=_unused(f"{name} (put)", names)))
            if g in self.boxed:
                (low, high), snap = value_ends(own.features[g]), self.causes.snaps[g]
                sides = [_unused(f"{name} (end {side})", names) for side in ("below", "above")]
                features += [Real(side, low - snap, high + snap) for side in sides]
        for one in self.ties:
            options = [str(k) for k in range(one.count)]
            features.append(Categorical(_unused(f"{own.names[one.place]} (region {one.partition})", names), options))
        return Schema(features)

    def _ends(self, g: int) -> tuple[float, float]:
        """Of the equation of a feature, for rows of the schema."""
        low, high = self.causes.spans[g]
        extra = EXTRA * (1.0 + abs(low) + abs(high))
        return low - extra, high + extra

    @cached_property
    def ties(self) -> tuple[RegionTie, ...]:
        """The partitions of the equations that are trees, tied to their causes."""
        start = UnrolledColumns(self.rows_schema).start
        return region_ties(self.causes, self.following, self.deviation[start[:-1]])

    @cached_property
    def regions(self) -> tuple[int, ...]:
        """Where it says which region of each partition the causes are in."""
        return tuple(range(len(self.schema) - len(self.ties), len(self.schema)))

    @cached_property
    def _places(self) -> tuple[dict[int, int], dict[int, int], dict[int, tuple[int, int]]]:
        puts, expected, ends = {g: g for g in self.following}, {}, {}
        at = len(self.rows_schema)
        for g in self.following:
            expected[g] = at
            at += 1
            if g in self.tied or g in self.boxed:
                puts[g] = at
                at += 1
            if g in self.boxed:
                ends[g] = (at, at + 1)
                at += 2
        return puts, expected, ends

    @property
    def puts(self) -> dict[int, int]:
        """Where the own value of a feature that follows is."""
        return self._places[0]

    @property
    def expected(self) -> dict[int, int]:
        """Where it says what the equation of a feature that follows gave before."""
        return self._places[1]

    @property
    def ends(self) -> dict[int, tuple[int, int]]:
        """Where the ends are between which a real number that follows is."""
        return self._places[2]

    @cached_property
    def end_names(self) -> frozenset[str]:
        return frozenset(self.schema.names[at] for both in self.ends.values() for at in both)

    @cached_property
    def put_names(self) -> dict[str, str]:
        """The names of those, by the names of the features."""
        return {self.rows_schema.names[g]: self.schema.names[at] for g, at in self.puts.items()}

    @cached_property
    def composed(self) -> frozenset[str]:
        """The names of the features whose values in the row that follows are outputs of the network."""
        return frozenset(self.rows_schema.names[g] for g in self.following if g not in self.tied)

    # ------------------------------------------------------------------ points

    def actions(self, points: Floats) -> Floats:
        """People who do nothing, as points of the action schema."""
        result = np.zeros((len(points), len(self.schema)))
        result[:, : points.shape[1]] = points
        for g in self.following:
            result[:, self.expected[g]] = self.causes.compiled[g].values(points)
            result[:, self.puts[g]] = points[:, g]
        for g, both in self.ends.items():
            result[:, both] = points[:, [g]]
        for tie, at in zip(self.ties, self.regions, strict=True):
            result[:, at] = tie.of(points)
            tie.check_clear(points)
        if len(points) == 1:
            self.__dict__["_own"] = result.tobytes(), (points[0].copy(), np.ones(points.shape[1], dtype=np.bool_))
        return result

    def followed(self, actions: Floats) -> tuple[Floats, Mask]:
        """The rows that follow, and (row, feature) which of their values are in range."""
        noise = np.zeros((len(actions), len(self.rows_schema)))
        values = actions[:, : len(self.rows_schema)].copy()
        for g, at in self.expected.items():
            values[:, g] = actions[:, self.puts[g]]
            noise[:, g] = values[:, g] - actions[:, at]
        acted = np.zeros(values.shape, dtype=np.bool_)
        acted[:, list(self.acted)] = True
        return self.causes.followed(values, acted, noise)

    def rows(self, actions: Floats) -> Floats:
        """The rows that follow."""
        return self.followed(actions)[0]

    def completed(self, action: Floats) -> Floats:
        """The action whose unknowns are the values that follow, and whose ends are as they were."""
        result, unknown = action.copy(), list(self.unknown)
        row = self.rows(action[None, :])[0]
        result[unknown] = row[unknown]
        for tie, at in zip(self.ties, self.regions, strict=True):
            result[at] = tie.of(row[None, :])[0]
        for g, both in self.ends.items():
            result[list(both)] = action[self.puts[g]]
        return result

    def ends_of(self, g: int, own: float, lower: float, upper: float) -> tuple[float, float]:
        """Ends between which a real number follows to a value from lower to upper, clear of rounding: it may be
        settled at an end of its range and at the person's own value, not beside others."""
        snap, (least, most) = self.causes.snaps[g], value_ends(self.rows_schema.features[g])
        low = least - WITHIN * snap if lower == least else lower + snap
        high = most + WITHIN * snap if upper == most else upper - snap
        if lower <= own <= upper:
            return min(low, own - WITHIN * snap), max(high, own + WITHIN * snap)
        return low, high

    def row(self, action: Floats, role: str) -> Floats:
        """Of one action."""
        return self.followed_row(action, role)[0]

    def followed_row(self, action: Floats, role: str) -> tuple[Floats, Mask]:
        """`followed` of one action; that of a person who does nothing is their own."""
        kept: tuple[bytes, tuple[Floats, Mask]] | None = self.__dict__.get("_own")
        if kept is not None and kept[0] == action.tobytes():
            return kept[1]

        def make() -> tuple[Floats, Mask]:
            rows, inside = self.followed(action[None, :])
            return rows[0], inside[0]

        return last_of(self, role, action, make)

    # ------------------------------------------------------------------ the network of the row

    def row_flow(self, columns: Flow) -> tuple[Flow, list[list[Flow]]]:
        """The unrolled columns of the row that follows, from those of the action; of each unknown that follows, by how
        much f + u is above the lower and below the upper end of what its value stands for; and the ties of regions."""
        mine, start = self.rows_schema, UnrolledColumns(self.schema).start

        def of(place: int) -> Flow:
            return columns.select(list(range(int(start[place]), int(start[place + 1]))), name="columns")

        found = {g: of(g) for g in range(len(mine)) if g not in self.following or g in self.tied}
        ties: list[list[Flow]] = []
        for g in self.following:
            equation, name = self.causes.compiled[g], mine.names[g]
            own = [of(at) for tie, at in zip(self.ties, self.regions, strict=True) if tie.place == g]
            first, *rest = own or [found[p] for p in equation.places.tolist()]
            flow = (first.joined(rest, name=name) if rest else first).linear(equation.codes, name=name)
            layers, activations = layers_of(equation.network)
            for k, (weight, bias) in enumerate(layers):
                flow = (flow.activated(activations[k - 1], name=name) if k else flow).linear(weight, bias, name=name)
            moved = flow.plus(of(self.expected[g]), name=name, sign=-1.0)
            number = _as_number(mine.features[g], of(self.puts[g])).plus(moved, name=name)
            if g in self.tied:
                ties.append(self._tie(g, number, of(g)))
            else:
                found[g] = number
            if g in self.boxed:
                below, above = (of(at) for at in self.ends[g])
                ties.append([number.plus(below, name=name, sign=-1.0), above.plus(number, name=name, sign=-1.0)])
        ties += [tie.flows(found, of(at)) for tie, at in zip(self.ties, self.regions, strict=True)]
        every = [found[g] for g in range(len(mine))]
        return every[0].joined(every[1:], name="row"), ties

    def _tie(self, g: int, number: Flow, value: Flow) -> list[Flow]:
        """By how much a number is within half a step of a value, below and above."""
        feature, name = self.rows_schema.features[g], self.rows_schema.names[g]
        step = step_of(feature)
        assert step is not None
        above = number.plus(_as_number(feature, value), name=name, sign=-1.0)
        return [above.scale(sign, (0.5 + tie) * step, name=name) for sign, tie in ((1.0, TIE), (-1.0, -TIE))]

    @cached_property
    def unknown(self) -> tuple[int, ...]:
        """The features that follow and are unknowns, in the order of the network's ties."""
        return tuple(g for g in self.following if g in self.tied or g in self.boxed)

    @cached_property
    def network(self) -> Network | SmoothNetwork:
        """From unrolled columns of the action to those of the row, and the ties behind them."""
        return self._network_and_ties[0]

    @cached_property
    def _network_and_ties(self) -> tuple[Network | SmoothNetwork, list[int]]:
        """The network, and the output at which the ties of each unknown and each partition begin."""
        low, high = UnrolledColumns(self.schema).ends
        row, ties = self.row_flow(Flow.of(len(low), low, high))
        every = [one for some in ties for one in some]
        made = (row.joined(every, name="ties") if every else row).to_network()
        return made, list(accumulate(map(len, ties), initial=UnrolledColumns(self.rows_schema).width))

    @cached_property
    def _layers(self) -> Part:
        """The network's layers: the same objects in every part that is made of them."""
        layers, activations = layers_of(self.network)
        return Part(tuple(layers), activations=tuple(activations))

    def behind(
        self, weight: Floats, bias: Floats, rest: Sequence[tuple[Floats, Floats]] = (), *, whole: bool = False
    ) -> Part:
        """A part over the network's outputs, as one over the unrolled columns of an action."""
        *hidden, (last, shift) = self._layers.layers
        width = weight.shape[1]
        first = (weight @ last[:width], weight @ shift[:width] + bias)
        return Part((*hidden, first, *rest), whole, self._layers.activations)

    def tie_parts(self, g: int) -> Sequence[Part]:
        """That the number of a feature that follows is within half a step of its unknown, or between its ends."""
        return self._tied(self.unknown.index(g))

    def tie_bounds(self, g: int) -> list[tuple[Literal, float]]:
        """Linear inequalities between the unknown of a feature that follows and the action, each with what rounding and
        settling can add to it; none where it does not follow linearly."""
        parts, start = self.tie_parts(g), UnrolledColumns(self.schema).start
        if any(len(part.layers) > 1 for part in parts):
            return []
        found = []
        for part in parts:
            weight, bias = part.layers[0]
            own = weight[0].copy()
            for end in self.ends.get(g, ()):  # in its place, the unknown itself
                own[start[g]] += own[start[end]]
                own[start[end]] = 0.0
            found.append((Literal(own, float(bias[0])), self._drift(g)))
        return found

    def region_parts(self, k: int) -> Sequence[Part]:
        """That the causes are in their region of partition k."""
        return self._tied(len(self.unknown) + k)

    def _tied(self, k: int) -> Sequence[Part]:
        network, begins = self._network_and_ties
        weights = np.eye(network.outputs)[begins[k] : begins[k + 1]]
        return [self.behind(weight[None, :], np.zeros(1)) for weight in weights]

    def parts_of(self, rule: RowRule, columns: UnrolledColumns) -> Sequence[Part]:
        own = rule.parts(UnrolledColumns(self.rows_schema))
        return [self.behind(*part.layers[0], part.layers[1:], whole=part.whole) for part in own]

    @cached_property
    def encoded_flow(self) -> Flow:
        """The unrolled columns of the row that follows, from encoded columns of the action."""
        low, high = column_box(self.schema)
        start = UnrolledColumns(self.schema).start
        matrix, bias = np.zeros((int(start[-1]), len(low))), np.zeros(int(start[-1]))
        for g, (feature, columns) in enumerate(zip(self.schema.features, self.schema.feature_columns, strict=True)):
            here = slice(int(start[g]), int(start[g + 1]))
            if isinstance(feature, Binary):
                matrix[here, columns[0]], bias[here] = (-1.0, 1.0), (1.0, 0.0)
            else:
                matrix[here, columns] = np.eye(len(columns))
        return self.row_flow(Flow.of(len(low), low, high).linear(matrix, bias, name="columns"))[0]

    @cached_property
    def encoding(self) -> Floats:
        """From unrolled columns of a row to the columns that the model reads."""
        return unrolling(self.rows_schema)

    @cached_property
    def deviation(self) -> Floats:
        """How far each unrolled column of a row can be from the network's, where values are settled."""
        start = UnrolledColumns(self.rows_schema).start
        result = np.zeros(int(start[-1]))
        for g in self.following:
            if g not in self.tied:
                result[start[g]] = 2.0 * self.causes.snaps[g] + self._passed_on(g, result)
        return result

    def _passed_on(self, g: int, deviation: Floats) -> float:
        """How far those of its causes move a feature that follows."""
        equation, start = self.causes.compiled[g], UnrolledColumns(self.rows_schema).start
        if equation.trees is not None:  # in a region, trees are constant
            return 0.0
        own = [deviation[int(start[p]) : int(start[p + 1])] for p in equation.places.tolist()]
        return float(equation.gains @ np.concatenate(own))

    def _drift(self, g: int) -> float:
        """How far the number that a feature follows by can be from the network's."""
        settled = 0.0 if g in self.tied else 2.0 * self.causes.snaps[g]
        return settled + self._passed_on(g, self.deviation)


def _one_hot(feature: Feature) -> Any:
    """The feature with a column per option; a binary one has one column for both."""
    if isinstance(feature, Ordinal | Categorical):
        return replace(feature, encoding="onehot", columns=())
    return feature


def _as_number(feature: Feature, columns: Flow) -> Flow:
    """The value of a feature in a point, from its unrolled columns."""
    if isinstance(feature, Numeric):
        return columns
    return columns.linear(np.arange(len(feature.options), dtype=np.float64)[None, :], name=feature.name)


def _unused(name: str, names: set[str]) -> str:
    while name in names or any(one.startswith(f"{name}=") for one in names):
        name += "'"
    names.add(name)
    return name
