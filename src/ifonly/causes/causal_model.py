"""Causal models: x_i = f_i(causes of x_i) + u_i for each feature with causes, and what follows from an action.

A person's noise u is what their row differs from the equations by (*abduction*). An action puts some features to other
values; all others follow, each after its causes (*prediction*):

    acted on         x_i = a_i
    has causes       x_i = f_i(x) + u_i;   with steps, options or levels, the nearest of them (a tie goes up)
    no causes        x_i as it was

A real number that follows is settled at the person's own value, or at an end of its range, where it is nearer to that
than rounding can tell (`snap`). A row in which a follower leaves its range does not exist.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.causes.compiled_equations import CompiledEquation
from ifonly.causes.equations import Equation, LinearEquation, ModelEquation, TableEquation
from ifonly.causes.graphs import Graph, graph_of, in_order
from ifonly.causes.tree_equations import step_of
from ifonly.errors import ModelError, QuestionError, RowError
from ifonly.printing import shown
from ifonly.schema import Choice, Feature, Numeric, Real, Schema
from ifonly.schema.editing import unlabelled
from ifonly.schema.values import Value, plain

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

HOLDING = 0.01
"""What acting against its causes counts as, by default: a hundredth of a change through the whole range."""
SNAP = 2.0**-40
"""Of the size of the numbers that add up to a follower."""
INEXACT = 8.0
"""Of the error of an equation, which takes part in noise and in prediction, and by so much in the search's own."""
LARGEST = 1e50
"""Of the values of an equation."""
TIE = 2.0**-30
"""Of a step: by so much less than half a step already goes up, so that ties do not depend on rounding."""


@dataclass(frozen=True)
class EquationFit:
    """How an equation fits the rows that were held out: the share of the variance that it explains, and the noise."""

    feature: str
    causes: tuple[str, ...]
    kind: str
    r2: float
    noise: float
    """Standard deviation of what the equation leaves open."""
    rows: int

    def __str__(self) -> str:
        return f"{self.feature} from {', '.join(self.causes)}: {self.kind}, R2 {self.r2:.3f}, noise {self.noise:.4g}"


@dataclass(frozen=True, eq=False)
class CausalModel:
    """Equations by feature: CausalModel(schema, {"Balance": LinearEquation({"Salary": 0.3})}).

    Features without an equation have no causes. `holding` is the cost of acting on a feature that has causes, which
    cuts it from them: it counts like a change of this size, beside the change itself; a number, or one by feature.
    """

    schema: Schema
    equations: Mapping[str, Equation]
    holding: Any = HOLDING
    fits: tuple[EquationFit, ...] = field(default=(), repr=False)
    """Of equations that were fitted, how well they fit."""

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema):
            raise ModelError(f"A causal model is about the features of a Schema; got {shown(self.schema)}.")
        if not isinstance(self.equations, Mapping):
            raise ModelError(f"Give equations by feature, such as {{'Balance': ...}}; got {shown(self.equations)}.")
        for name, equation in self.equations.items():
            feature = self.schema[name]
            if not isinstance(equation, LinearEquation | TableEquation | ModelEquation):
                raise ModelError(
                    f"The equation of '{name}' is a LinearEquation, a TableEquation or a ModelEquation; got "
                    f"{shown(equation)}."
                )
            for cause in equation.parents:
                _check_complete(self.schema[cause])
            _check_follower(feature)
        object.__setattr__(self, "equations", dict(self.equations))
        in_order(self.graph)
        object.__setattr__(self, "holding", self._read_holding())
        self._check_sizes()

    def _check_sizes(self) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            spans = self.spans
        for g, (low, high) in spans.items():
            if not max(abs(low), abs(high)) <= LARGEST:
                raise ModelError(
                    f"The equation of '{self.schema.names[g]}' goes beyond {LARGEST:g} on rows of the schema; check "
                    f"its weights, or narrow the ranges of its causes."
                )
            step, error = step_of(self.schema.features[g]), self.compiled[g].error
            if step is not None and INEXACT * error > TIE * step:
                raise ModelError(
                    f"The equation of '{self.schema.names[g]}' is computed to within {error:.2g} only, too inexactly "
                    f"to say to which of its steps it follows; make it a number without steps, or scale its causes."
                )

    def _read_holding(self) -> Any:
        given = self.holding if isinstance(self.holding, Mapping) else {"": self.holding}
        for name, cost in given.items():
            number = plain(cost)
            good = isinstance(number, int | float) and not isinstance(number, bool) and 0.0 <= number <= 1e6
            if not good or not math.isfinite(number):
                raise QuestionError(f"The cost of holding a feature is a number from 0 to 1e6; it is {shown(cost)}.")
            if name and name not in self.equations:
                self.schema.index(name)
                raise QuestionError(f"'{name}' has no causes to hold it against; give it no cost of holding.")
        return (
            {n: float(f) for n, f in given.items()} if isinstance(self.holding, Mapping) else float(plain(self.holding))
        )

    def holding_cost(self, name: str) -> float:
        """What acting on a feature with causes counts as, beside its change."""
        return float(self.holding.get(name, HOLDING) if isinstance(self.holding, Mapping) else self.holding)

    def __repr__(self) -> str:
        return f"<CausalModel: {len(self.schema)} features, {len(self.equations)} with causes>"

    # ------------------------------------------------------------------ the graph

    @cached_property
    def graph(self) -> Graph:
        """The causes of each feature that has some."""
        return {name: tuple(equation.parents) for name, equation in self.equations.items()}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The places of the features with causes, each after its causes."""
        return tuple(self.schema.index(name) for name in in_order(self.graph))

    @cached_property
    def compiled(self) -> dict[int, CompiledEquation]:
        """The equations by the place of their feature."""
        return {self.schema.index(n): e.compiled(self.schema, self.schema[n]) for n, e in self.equations.items()}

    def to_svg(self, path: str | Path | None = None) -> str:
        """A picture of the graph, causes above what follows; written to `path` if one is given."""
        from ifonly.causes.picture import graph_svg
        from ifonly.schema.io import write_whole

        text = graph_svg(self.schema, self.graph)
        if path is not None:
            write_whole(path, text.encode("utf-8"))
        return text

    # ------------------------------------------------------------------ making, files

    @classmethod
    def of(cls, graph: Any, regressors: Mapping[str, Any], schema: Schema) -> CausalModel:
        """From a graph (a networkx DiGraph, or {feature: causes}) and for each feature with causes its equation, or a
        fitted regressor that takes the causes in the graph's order."""
        if not isinstance(schema, Schema) or not isinstance(regressors, Mapping):
            raise ModelError("A causal model is made of a graph, an equation or a regressor by feature, and a Schema.")
        causes = graph_of(graph, schema)
        for name in regressors:
            if name not in causes:
                schema.index(name)
                raise ModelError(f"'{name}' has an equation, but no causes in the graph.")
        equations: dict[str, Any] = {}
        for name, parents in causes.items():
            if name not in regressors:
                raise ModelError(f"'{name}' has causes ({', '.join(parents)}), but no equation; give it one.")
            given = regressors[name]
            own = isinstance(given, LinearEquation | TableEquation | ModelEquation)
            if own and set(given.parents) != set(parents):
                raise ModelError(
                    f"The equation of '{name}' has other causes than the graph: {', '.join(given.parents)}."
                )
            equations[name] = given if own else ModelEquation(parents, given)
        return cls(schema, equations)

    @classmethod
    def from_dowhy(cls, model: Any, schema: Schema) -> CausalModel:
        """From a fitted `gcm.InvertibleStructuralCausalModel` of DoWhy whose nodes are features of the schema."""
        from ifonly.causes.dowhy import equations_of_dowhy

        return cls(schema, equations_of_dowhy(model, schema))

    @classmethod
    def fit(cls, graph: Any, table: Any, schema: Schema, equations: str = "linear") -> CausalModel:
        """Equations learned from a table: "linear", "network" (8 ReLU neurons) or "boosted" (20 small trees); `fits`
        says how well they fit."""
        from ifonly.causes.fitting import fitted

        return fitted(cls, graph, table, schema, equations)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        from ifonly.causes.files import causes_to_dict

        return causes_to_dict(self)

    @classmethod
    def from_dict(cls, data: Any, schema: Schema) -> CausalModel:
        """The inverse of `to_dict`, for rows of this schema."""
        from ifonly.causes.files import causes_from_dict

        return causes_from_dict(cls, data, schema)

    def save(self, path: str | Path) -> None:
        """Write a file of the equations, as JSON."""
        from ifonly.causes.files import save_causes

        save_causes(self, path)

    @classmethod
    def load(cls, path: str | Path, schema: Schema) -> CausalModel:
        """Read a file that `save` wrote."""
        from ifonly.causes.files import load_causes

        return load_causes(cls, path, schema)

    def with_holding(self, holding: Any) -> CausalModel:
        """The same equations with another cost of holding."""
        return replace(self, holding=holding)

    # ------------------------------------------------------------------ sizes

    @cached_property
    def spans(self) -> dict[int, tuple[float, float]]:
        """Of each feature with causes: bounds of its equation, for rows of the schema."""
        ends = unrolled_ends(self.schema)
        return {
            g: one.interval(*(np.concatenate([ends[p][side] for p in one.places.tolist()]) for side in (0, 1)))
            for g, one in self.compiled.items()
        }

    @cached_property
    def snaps(self) -> dict[int, float]:
        """Of each real number with causes: how near to a value it is settled there."""
        found = {}
        for g, (low, high) in self.spans.items():
            least, most = value_ends(self.schema.features[g])
            size = max(abs(low), abs(high))
            found[g] = max(
                SNAP * (2.0 * size + max(abs(least), abs(most), most - least)), INEXACT * self.compiled[g].error
            )
        return found

    # ------------------------------------------------------------------ abduction, action, prediction

    def noise(self, points: Floats) -> Floats:
        """(row, feature): what each row differs from the equations by; 0 for features without causes."""
        result = np.zeros_like(points)
        for g, equation in self.compiled.items():
            result[:, g] = points[:, g] - equation.values(points)
        return result

    def followed(self, values: Floats, acted: Mask, noise: Floats) -> tuple[Floats, Mask]:
        """The rows that follow from actions: `values` where acted on, the person's own elsewhere. And (row, feature):
        is it within the range of the feature? Where it is not, it stands at the end."""
        rows, inside = values.copy(), np.ones(values.shape, dtype=np.bool_)
        for g in self.order:
            own = self.compiled[g].values(rows) + noise[:, g]
            settled, good = self._settled(g, own, values[:, g])
            rows[:, g] = np.where(acted[:, g], values[:, g], settled)
            inside[:, g] = acted[:, g] | good
        return rows, inside

    def _settled(self, g: int, numbers: Floats, before: Floats) -> tuple[Floats, Mask]:
        """Values of a feature that follows, and which of them are in its range."""
        feature, snap = self.schema.features[g], self.snaps[g]
        low, high = value_ends(feature)
        step = step_of(feature)
        if step is None:
            near = np.abs(numbers - before) <= snap
            good = (numbers >= low - snap) & (numbers <= high + snap)
            ends = np.where(numbers <= low + snap, low, np.where(numbers >= high - snap, high, numbers))
            return np.where(near, before, ends), good | near
        steps = np.floor((numbers - low) / step + 0.5 + TIE)
        most = round((high - low) / step)
        good, steps = (steps >= 0) & (steps <= most), np.clip(steps, 0, most)
        grid = feature.grid if isinstance(feature, Real) else None
        return (low + steps * step if grid is None else grid.values(steps)), good

    def after(self, row: Any, actions: Mapping[str, Any]) -> dict[str, Value]:
        """The row that follows from putting these features to these values."""
        point = self.read(row)
        if not isinstance(actions, Mapping):
            raise QuestionError(
                f"Give actions as values by feature, such as {{'Salary': 85000}}; got {shown(actions)}."
            )
        values, acted = point[None, :].copy(), np.zeros((1, len(point)), dtype=np.bool_)
        for name, value in actions.items():
            g = self.schema.index(name)
            values[0, g], acted[0, g] = self.schema.features[g].read(value), True
        rows, inside = self.followed(values, acted, self.noise(point[None, :]))
        if not inside.all():
            name = self.schema.names[int(np.flatnonzero(~inside[0])[0])]
            raise RowError(f"Then '{name}' would leave its range: {self.schema[name].describe()}.", feature=name)
        return self.schema.row(rows[0])

    def read(self, row: Any) -> Floats:
        """The point of a complete row, of which the equations can be asked."""
        point = self.schema.read(row)
        missing = self.schema.missing_names(point)
        if missing:
            raise RowError(
                f"Feature '{missing[0]}' has no value; what follows from what can be said of complete rows only.",
                feature=missing[0],
            )
        self.check_point(point)
        return point

    def check_point(self, point: Floats) -> None:
        """Raise where a feature with causes has a value from which noise cannot be told: off its steps."""
        for g in self.order:
            feature = self.schema.features[g]
            grid = feature.grid if isinstance(feature, Real) else None
            if grid is not None and grid.nearest_to(point[g : g + 1])[0] != point[g]:
                raise RowError(
                    f"Feature '{feature.name}' follows in steps, and {feature.value(point[g])} is between two of them.",
                    feature=feature.name,
                )


def check_causes(causes: Any, schema: Schema) -> None:
    """Raise where these are no causes of the features of a schema."""
    if not isinstance(causes, CausalModel):
        raise QuestionError(f"Say what follows from what with a CausalModel; got {shown(causes)}.")
    same = causes.schema is schema or causes.schema.features == schema.features
    if not same and unlabelled(causes.schema).features != unlabelled(schema).features:
        raise QuestionError("These causes are about rows of another schema; make them with that of the explainer.")


def unrolled_ends(schema: Schema) -> list[tuple[Floats, Floats]]:
    """The least and the largest value of each unrolled column, by feature."""
    return [
        (np.array([f.lower]), np.array([f.upper])) if isinstance(f, Numeric)
        else (np.zeros(len(f.options)), np.ones(len(f.options)))
        for f in schema.features
    ]  # fmt: skip


def value_ends(feature: Feature) -> tuple[float, float]:
    """The least and the largest value of a feature in a point."""
    return (feature.lower, feature.upper) if isinstance(feature, Numeric) else (0.0, len(feature.options) - 1.0)


def _check_complete(feature: Feature) -> None:
    if isinstance(feature, Numeric) and feature.missing:
        raise ModelError(f"'{feature.name}' may be missing; a causal model is about numbers that are not.")


def _check_follower(feature: Feature) -> None:
    _check_complete(feature)
    if isinstance(feature, Choice) and not feature.ordered:
        raise ModelError(
            f"'{feature.name}' has categories without order, to which no noise can be added: it can be a cause, but "
            f"have none. Make it ordinal or binary, or leave its equation out."
        )
