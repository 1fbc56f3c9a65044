"""Actions as the unknowns of a question: the row that follows from them is a ReLU network before the model.

For a causal model, a row of the *action schema* says for each feature its own value or the one it is put to (a), for
each feature with causes whether it is acted on (z), the person's noise (u), and, where that has steps or levels, its
value in the row that follows (v). With w = a - f(x) - u between l and h on every row of the schema,

    x = f(x) + u + z w = f(x) + u + relu(w + (h - l) z - h) + l z     (z = 0: relu(w - h) = 0;  z = 1: relu(w - l) + l)

is one ReLU, and stable as soon as z is fixed. So the row that follows is a ReLU network of a, z and u, and the model
behind it one of the same kind. Values in steps are unknowns of their own, tied to f(x) + u by rules:

    v - step/2 <= f(x) + u < v + step/2   where z = 0,      v = a   where z = 1

A real number with causes stays within its range by a rule, too. All else is what it was: constraints on single features
are about actions, costs are those of a, and a change of z costs the fee of holding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.causes.causal_model import TIE, CausalModel, step_of, value_ends
from ifonly.model import Network
from ifonly.model.flow import Flow
from ifonly.model.rounding import column_box
from ifonly.problem.lowering import unrolling
from ifonly.problem.parts import Literal, Part, UnrolledColumns, linear_part
from ifonly.problem.rule import RowRule, rows_allowed
from ifonly.schema import Binary, Categorical, Feature, Numeric, Ordinal, Real, Schema

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WITHIN = 0.5
"""Of the distance from an end at which a follower is settled there: so far beyond it is searched."""
NOISE_ROOM = 2.0**-20
"""Of the size of noise, beyond what rows of the schema have: the bounds of noise are no matter of rounding."""


@dataclass(frozen=True, eq=False)
class ActionSpace:
    """The action schema of a causal model, and the rows that follow. `actable`: the features with causes that can be
    acted on. `tied`: those that are unknowns of their own."""

    causes: CausalModel
    actable: frozenset[int]
    tied: frozenset[int]

    @classmethod
    def of(cls, causes: CausalModel, fixed: Iterable[str]) -> ActionSpace:
        """In which the features of these names cannot be acted on."""
        schema, names = causes.schema, set(fixed)
        stepped = frozenset(g for g in causes.order if step_of(schema.features[g]) is not None)
        return cls(causes, frozenset(g for g in causes.order if schema.names[g] not in names), stepped)

    @property
    def rows_schema(self) -> Schema:
        return self.causes.schema

    # ------------------------------------------------------------------ the schema

    @cached_property
    def schema(self) -> Schema:
        """The features of an action, by the places that `switches`, `noises` and `values` have."""
        own = self.rows_schema
        features = [_one_hot(feature) for feature in own.features]
        names = set(own.names) | {column for feature in features for column in feature.column_names}
        for g in self.causes.order:
            name = own.names[g]
            if g in self.actable:
                features.append(Binary(_unused(f"{name} (act)", names), (False, True)))
            features.append(Real(_unused(f"{name} (noise)", names), *self._noise_ends(g)))
            if g in self.tied:
                features.append(replace(_one_hot(own.features[g]), name=_unused(f"{name} (follows)", names)))
        return Schema(features)

    def _noise_ends(self, g: int) -> tuple[float, float]:
        (low, high), (least, most) = self.causes.spans[g], value_ends(self.rows_schema.features[g])
        extra = NOISE_ROOM * (1.0 + abs(low) + abs(high) + abs(least) + abs(most))
        return least - high - extra, most - low + extra

    @cached_property
    def _places(self) -> dict[str, dict[int, int]]:
        places: dict[str, dict[int, int]] = {"switch": {}, "noise": {}, "value": {}}
        at = len(self.rows_schema)
        for g in self.causes.order:
            for kind in (*(("switch",) if g in self.actable else ()), "noise", *(("value",) if g in self.tied else ())):
                places[kind][g] = at
                at += 1
        return places

    @property
    def switches(self) -> dict[int, int]:
        """Where it says whether a feature is acted on."""
        return self._places["switch"]

    @property
    def noises(self) -> dict[int, int]:
        return self._places["noise"]

    @property
    def values(self) -> dict[int, int]:
        """Where the value of a feature in steps is, in the row that follows."""
        return self._places["value"]

    # ------------------------------------------------------------------ points

    def actions(self, points: Floats) -> Floats:
        """People who do nothing, as points of the action schema."""
        result = np.zeros((len(points), len(self.schema)))
        result[:, : points.shape[1]] = points
        noise = self.causes.noise(points)
        for g, at in self.noises.items():
            result[:, at] = noise[:, g]
        for g, at in self.values.items():
            result[:, at] = points[:, g]
        return result

    def acted(self, actions: Floats) -> Mask:
        """(row, feature): is it a feature with causes that is acted on?"""
        result = np.zeros((len(actions), len(self.rows_schema)), dtype=np.bool_)
        for g, at in self.switches.items():
            result[:, g] = actions[:, at] == 1.0
        return result

    def followed(self, actions: Floats) -> tuple[Floats, Mask]:
        """The rows that follow, and (row, feature) which of their values are in range."""
        noise = np.zeros((len(actions), len(self.rows_schema)))
        for g, at in self.noises.items():
            noise[:, g] = actions[:, at]
        return self.causes.followed(actions[:, : len(self.rows_schema)], self.acted(actions), noise)

    def rows(self, actions: Floats) -> Floats:
        """The rows that follow."""
        return self.followed(actions)[0]

    def row(self, action: Floats, role: str) -> tuple[Floats, Mask]:
        """Of one action; the last of a role (before, after) is kept, since each of several rules judges it."""
        kept: tuple[bytes, tuple[Floats, Mask]] | None = self.__dict__.get(f"_last_{role}")
        own = action.tobytes()
        if kept is None or kept[0] != own:
            rows, inside = self.followed(action[None, :])
            kept = (own, (rows[0], inside[0]))
            self.__dict__[f"_last_{role}"] = kept
        return kept[1]

    # ------------------------------------------------------------------ the network of the row

    def row_flow(self, columns: Flow) -> tuple[Flow, list[Flow]]:
        """The unrolled columns of the row that follows, from those of the action; and of each tied feature, by how
        much f + u is above the lower and below the upper end of what its value stands for."""
        mine, start = self.rows_schema, UnrolledColumns(self.schema).start

        def of(place: int) -> Flow:
            return columns.select(list(range(int(start[place]), int(start[place + 1]))), name="columns")

        found = {
            g: of(self.values.get(g, g)) for g in range(len(mine)) if g not in self.causes.compiled or g in self.tied
        }
        ties: list[Flow] = []
        for g in self.causes.order:
            equation, name = self.causes.compiled[g], mine.names[g]
            first, *rest = (found[p] for p in equation.places.tolist())
            flow = (first.joined(rest, name=name) if rest else first).linear(equation.codes, name=name)
            for k, layer in enumerate(equation.network.layers):
                flow = (flow.relu() if k else flow).linear(layer.weight, layer.bias, name=name)
            follows = flow.plus(of(self.noises[g]), name=name)
            switch = of(self.switches[g]).select([1], name=name) if g in self.actable else None
            if g in self.tied:
                ties += self._tie(g, follows, of(self.values[g]), switch)
            else:
                found[g] = follows if switch is None else self._switched(g, follows, of(g), switch)
        every = [found[g] for g in range(len(mine))]
        return every[0].joined(every[1:], name="row"), ties

    def _follows_ends(self, g: int) -> tuple[float, float]:
        """Bounds of f + u, wherever the causes are in their ranges."""
        (low, high), (least, most) = self.causes.spans[g], self._noise_ends(g)
        return low + least, high + most

    def _switched(self, g: int, follows: Flow, own: Flow, switch: Flow) -> Flow:
        """f + u where the switch is off, the own value where it is on."""
        (low, high), (least, most) = self._follows_ends(g), value_ends(self.rows_schema.features[g])
        lower, upper, name = least - high, most - low, self.rows_schema.names[g]
        moved = own.plus(follows, name=name, sign=-1.0).plus(switch.scale(upper - lower, name=name), name=name)
        bent = moved.scale(1.0, -upper, name=name).relu()
        return follows.plus(bent, name=name).plus(switch.scale(lower, name=name), name=name)

    def _tie(self, g: int, follows: Flow, value: Flow, switch: Flow | None) -> list[Flow]:
        feature, name = self.rows_schema.features[g], self.rows_schema.names[g]
        step, (low, high), (least, most) = step_of(feature), self._follows_ends(g), value_ends(feature)
        assert step is not None
        number = (
            value if isinstance(feature, Numeric) else value.linear(np.arange(len(feature.options))[None, :], name=name)
        )
        above = follows.plus(number, name=name, sign=-1.0)
        size = max(most - low, high - least) + step
        result = []
        for sign, tie in ((1.0, TIE), (-1.0, -TIE)):
            one = above.scale(sign, (0.5 + tie) * step, name=name)
            result.append(one if switch is None else one.plus(switch.scale(size, name=name), name=name))
        return result

    @cached_property
    def network(self) -> Network:
        """From unrolled columns of the action to those of the row, and the ties behind them."""
        low, high = UnrolledColumns(self.schema).ends
        row, ties = self.row_flow(Flow.of(len(low), low, high))
        made = (row.joined(ties, name="ties") if ties else row).to_network()
        assert isinstance(made, Network)
        return made

    @cached_property
    def hidden(self) -> tuple[tuple[Floats, Floats], ...]:
        """All but the last layer of the network: the same objects in every part that is made of them."""
        return tuple((layer.weight, layer.bias) for layer in self.network.layers[:-1])

    def behind(
        self, weight: Floats, bias: Floats, rest: Sequence[tuple[Floats, Floats]] = (), *, whole: bool = False
    ) -> Part:
        """A part over the network's outputs, as one over the unrolled columns of an action."""
        last = self.network.layers[-1]
        width = weight.shape[1]
        first = (weight @ last.weight[:width], weight @ last.bias[:width] + bias)
        return Part((*self.hidden, first, *rest), whole)

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
        return unrolling(self.rows_schema, UnrolledColumns(self.rows_schema).start)

    @cached_property
    def deviation(self) -> Floats:
        """How far each unrolled column of a row can be from the network's, where values are settled."""
        start = UnrolledColumns(self.rows_schema).start
        result = np.zeros(int(start[-1]))
        for g in self.causes.order:
            if g in self.tied:
                continue
            equation = self.causes.compiled[g]
            own = [result[int(start[p]) : int(start[p + 1])] for p in equation.places.tolist()]
            result[start[g]] = 2.0 * self.causes.snaps[g] + float(equation.gains @ np.concatenate(own))
        return result


# ---------------------------------------------------------------------- rules


@dataclass(frozen=True, eq=False)
class FollowersInRange:
    """Real numbers that follow stay within their ranges."""

    space: ActionSpace

    def check(self, schema: Schema) -> None:
        """It fits the schema that it was made with."""

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        return bool(self.space.row(after, "after")[1].all())

    def allows_rows(self, schema: Schema, before: Floats, after: Floats) -> Mask:
        return np.asarray(self.space.followed(after)[1].all(axis=1))

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        space = self.space
        own = UnrolledColumns(space.rows_schema)
        parts = []
        for g in space.causes.order:
            if g in space.tied:
                continue
            (low, high), slack = value_ends(space.rows_schema.features[g]), WITHIN * space.causes.snaps[g]
            for sign, end in ((1.0, low), (-1.0, high)):
                weight = np.zeros((1, own.width))
                weight[0, own.start[g]] = sign
                parts.append(space.behind(weight, np.array([slack - sign * end])))
        return parts

    def describe(self) -> str:
        return "what follows stays within its range"


@dataclass(frozen=True, eq=False)
class TiedValue:
    """The value of a feature in steps is the one that follows from its causes, or the one it is put to."""

    space: ActionSpace
    place: int

    @property
    def derives(self) -> str:
        return self.space.schema.names[self.space.values[self.place]]

    def check(self, schema: Schema) -> None:
        """It fits the schema that it was made with."""

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        row, inside = self.space.row(after, "after")
        return bool(inside[self.place] and row[self.place] == after[self.space.values[self.place]])

    def allows_rows(self, schema: Schema, before: Floats, after: Floats) -> Mask:
        rows, inside = self.space.followed(after)
        return inside[:, self.place] & (rows[:, self.place] == after[:, self.space.values[self.place]])

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        space, g = self.space, self.place
        first = UnrolledColumns(space.rows_schema).width + 2 * [h for h in space.causes.order if h in space.tied].index(
            g
        )
        parts = []
        for k in (first, first + 1):
            weight = np.zeros((1, len(space.network.layers[-1].bias)))
            weight[0, k] = 1.0
            parts.append(space.behind(weight, np.zeros(1)))
        if g in space.actable:
            parts += self._equal_where_acted(columns)
        return parts

    def _equal_where_acted(self, columns: UnrolledColumns) -> list[Part]:
        space, g = self.space, self.place
        feature = space.rows_schema.features[g]
        low, high = value_ends(feature)
        numbers = np.ones(1) if isinstance(feature, Numeric) else np.arange(len(feature.options), dtype=np.float64)
        parts = []
        for sign in (1.0, -1.0):
            weight = np.zeros(columns.width)
            weight[columns.of(space.schema.names[space.values[g]])] = sign * numbers
            weight[columns.of(space.schema.names[g])] = -sign * numbers
            weight[columns.of(space.schema.names[space.switches[g]])] = (high - low, 0.0)
            parts.append(linear_part(columns, Literal(weight, 0.0)))
        return parts

    def describe(self) -> str:
        return f"{self.space.rows_schema.names[self.place]} follows from its causes"


@dataclass(frozen=True, eq=False)
class OnRowThatFollows:
    """A rule about rows, of the row that follows from an action."""

    rule: RowRule
    space: ActionSpace

    @property
    def derives(self) -> str:
        return getattr(self.rule, "derives", "")

    def check(self, schema: Schema) -> None:
        self.rule.check(self.space.rows_schema)

    def allows_row(self, schema: Schema, before: Floats, after: Floats) -> bool:
        old, new = self.space.row(before, "before")[0], self.space.row(after, "after")[0]
        return self.rule.allows_row(self.space.rows_schema, old, new)

    def allows_rows(self, schema: Schema, before: Floats, after: Floats) -> Mask:
        return rows_allowed(self.rule, self.space.rows_schema, self.space.rows(before), self.space.rows(after))

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]:
        own = self.rule.parts(UnrolledColumns(self.space.rows_schema))
        return [self.space.behind(*part.layers[0], part.layers[1:], whole=part.whole) for part in own]

    def describe(self) -> str:
        return self.rule.describe()


def _one_hot(feature: Feature) -> Any:
    """The feature with a column per option; a binary one has one column for both."""
    if isinstance(feature, Ordinal | Categorical):
        return replace(feature, encoding="onehot", columns=())
    return feature


def _unused(name: str, names: set[str]) -> str:
    while name in names or any(one.startswith(f"{name}=") for one in names):
        name += "'"
    names.add(name)
    return name
