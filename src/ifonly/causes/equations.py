"""Structural equations: what a feature is, given the features that cause it, up to a person's own noise.

    LinearEquation    a weight per number, a value per option
    TableEquation     a number for each combination of values of features that have few
    ModelEquation     a fitted regression: linear, a network, or trees

Compiled for a schema, each is a network (`compiled_equations`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ifonly.causes.compiled_equations import CompiledEquation, codes_of, compiled
from ifonly.causes.table_networks import cases_of, table_network
from ifonly.causes.tree_equations import tree_regions
from ifonly.errors import IfonlyError, ModelError, UnsupportedModel
from ifonly.model import Model, Network
from ifonly.model.importers import import_model
from ifonly.model.smooth import SmoothNetwork
from ifonly.printing import shown
from ifonly.schema import Choice, Feature, Numeric, Schema
from ifonly.schema.arguments import items, real_number
from ifonly.schema.values import plain


@dataclass(frozen=True)
class LinearEquation:
    """intercept + the sum of weight times value: LinearEquation({"Salary": 0.3}, 2500).

    For a feature with options, a number counts per level, and a mapping gives the value of each option.
    """

    weights: Mapping[str, Any]
    intercept: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise ModelError(
                f"A linear equation has a weight for each cause, such as {{'Age': 2.0}}; got {shown(self.weights)}."
            )
        words = "The intercept of an equation must be a finite number; it is"
        object.__setattr__(self, "intercept", _number(self.intercept, words))
        read: dict[str, Any] = {}
        for name, weight in self.weights.items():
            words = f"The weight of {shown(name)} in an equation must be a finite number, or a number per option; it is"
            if isinstance(weight, Mapping):
                read[_name(name)] = {plain(option): _number(one, words) for option, one in weight.items()}
            else:
                read[_name(name)] = _number(weight, words)
        object.__setattr__(self, "weights", read)

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(self.weights)

    def compiled(self, schema: Schema, follower: Feature) -> CompiledEquation:
        row: list[float] = []
        for name, weight in self.weights.items():
            feature = schema[name]
            if isinstance(feature, Numeric):
                if isinstance(weight, Mapping):
                    raise ModelError(f"'{name}' is a number: its weight in the equation of '{follower.name}' is one.")
                row.append(weight)
            else:
                row += _per_option(feature, weight, follower)
        network = Network.of([([row], [self.intercept])])
        return compiled(schema, self.parents, network)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the values of options are pairs, since an option may be a number or a boolean."""
        weights = {
            n: [list(pair) for pair in w.items()] if isinstance(w, Mapping) else w for n, w in self.weights.items()
        }
        return {"kind": "linear", "weights": weights, "intercept": self.intercept}


def _per_option(feature: Choice, weight: Any, follower: Feature) -> list[float]:
    """What each option adds."""
    if not isinstance(weight, Mapping):
        if not feature.ordered:
            raise ModelError(
                f"'{feature.name}' has categories without order: in the equation of '{follower.name}', give each of "
                f"them a value, as {{'{feature.name}': {{{shown(feature.options[0])}: 1.5, ...}}}}."
            )
        return [weight * k for k in range(len(feature.options))]
    found = {int(feature.read(option)): value for option, value in weight.items()}
    if len(found) < len(feature.options):
        left = next(option for k, option in enumerate(feature.options) if k not in found)
        raise ModelError(f"The equation of '{follower.name}' gives no value to {shown(left)} of '{feature.name}'.")
    return [found[k] for k in range(len(feature.options))]


@dataclass(frozen=True)
class TableEquation:
    """A value for each combination of values of its causes: TableEquation(["Job"], {"clerk": 20, "nurse": 24}).

    With several causes the keys are tuples. Causes are features with options, or whole numbers with few values. The
    value of a feature with levels is a level, or its number.
    """

    parents: Sequence[str]
    values: Mapping[Any, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", _names(self.parents, "A table"))
        if not isinstance(self.values, Mapping) or not self.values:
            raise ModelError(f"A table has a value for each combination of its causes; got {shown(self.values)}.")
        one = len(self.parents) == 1
        read = {}
        for key, value in self.values.items():
            found = items(key) if not one or isinstance(key, tuple) else (key,)
            if found is None or len(found) != len(self.parents):
                raise ModelError(f"A table of {len(self.parents)} causes has keys of so many values; got {shown(key)}.")
            read[tuple(plain(part) for part in found)] = plain(value)
        object.__setattr__(self, "values", read)

    def compiled(self, schema: Schema, follower: Feature) -> CompiledEquation:
        features = [schema[name] for name in self.parents]
        network = table_network(features, list(self.cases(schema, follower).values()))
        return compiled(schema, self.parents, network)

    def cases(self, schema: Schema, follower: Feature) -> dict[tuple[float, ...], float]:
        """The value for each combination of values of the causes, as they are in points."""
        features = [schema[name] for name in self.parents]
        found = {}
        for key, value in self.values.items():
            place = tuple(feature.read(part) for feature, part in zip(features, key, strict=True))
            found[place] = _read_value(value, follower)
        cases = cases_of(features, follower)
        for case in cases:
            if case not in found:
                values = ", ".join(shown(feature.value(one)) for feature, one in zip(features, case, strict=True))
                raise ModelError(f"The table of '{follower.name}' has no value for {values}.")
        return {case: found[case] for case in cases}

    def to_dict(self) -> dict[str, Any]:
        values = [[list(key), value] for key, value in self.values.items()]
        return {"kind": "table", "parents": list(self.parents), "values": values}


def _read_value(value: Any, follower: Feature) -> float:
    named = isinstance(value, str | bool) or (
        isinstance(value, int | float) and value in getattr(follower, "options", ())
    )
    if isinstance(follower, Choice) and named:
        return follower.read(value)
    return _number(value, f"A value in the table of '{follower.name}' must be a finite number; it is")


@dataclass(frozen=True, eq=False)
class ModelEquation:
    """A fitted regression of a feature on its causes, which it takes in this order: ModelEquation(["Age"], regressor).

    Whatever `import_model` reads: linear, a network with ReLUs or smooth activations, or trees. A model in float32 is
    evaluated as the same function in float64.
    """

    parents: Sequence[str]
    model: Any
    _made: dict[Any, Model] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", _names(self.parents, "A fitted equation"))
        if self.model is None or isinstance(self.model, bool | int | float | type):
            raise ModelError(f"A fitted equation has a regression model; got {shown(self.model)}.")

    def own_schema(self, schema: Schema) -> Schema:
        """The causes, as the regression takes them."""
        return Schema([schema[name] for name in self.parents])

    def imported(self, schema: Schema, follower: Feature) -> Model:
        """The regression as a model of the causes, imported once."""
        own = self.own_schema(schema)
        if own not in self._made:
            given = Path(self.model) if isinstance(self.model, str) else self.model
            try:
                made = given if isinstance(given, Model) else import_model(given, own, regression=True)
            except UnsupportedModel as error:
                raise UnsupportedModel(
                    f"The equation of '{follower.name}': {error}", operation=error.operation
                ) from None
            except IfonlyError as error:
                raise ModelError(f"The equation of '{follower.name}': {error}") from None
            if made.outputs != 1 or made.classes or made.function.inputs != len(own.columns):
                raise ModelError(
                    f"The equation of '{follower.name}' must be a regression with one output of its causes."
                )
            self._made[own] = made
        return self._made[own]

    def compiled(self, schema: Schema, follower: Feature) -> CompiledEquation:
        model, features = self.imported(schema, follower), [schema[name] for name in self.parents]
        original = model if model.precision == "float64" else None
        network = model.function.as_network() or model.function.as_smooth_network()
        if network is not None:
            made = compiled(schema, self.parents, network, codes_of(features), original)
            smooth = isinstance(network, SmoothNetwork)
            return replace(made, error=float((model.error + model.error_in("float64"))[0])) if smooth else made
        trees = model.function.as_trees()
        if trees is None:
            raise UnsupportedModel(
                f"The equation of '{follower.name}' is {model.function.name}, which cannot be searched exactly behind "
                f'others: fit it as "linear", as a "network", a "smooth" network or "boosted" trees instead, as '
                f"CausalModel.fit does.",
                operation=model.function.name,
            )
        regions = tree_regions(trees, follower)
        network = regions.network
        codes = np.eye(network.layers[0].weight.shape[1])
        return replace(compiled(schema, self.parents, network, codes, original), trees=regions)

    def to_dict(self) -> dict[str, Any]:
        raise ModelError("A fitted equation is written as plain data by its causal model, which knows its schema.")


Equation: TypeAlias = LinearEquation | TableEquation | ModelEquation


# ---------------------------------------------------------------------- arguments


def _number(value: Any, words: str) -> float:
    try:
        return real_number(value, words)
    except IfonlyError as error:
        raise ModelError(str(error)) from None


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise ModelError(f"A feature is named by a text; {shown(name)} names none.")
    return name


def _names(names: Any, what: str) -> tuple[str, ...]:
    found = items(names)
    if not found or not all(isinstance(name, str) for name in found) or len(set(found)) < len(found):
        raise ModelError(f"{what} has a list of the names of its causes, each once; got {shown(names)}.")
    return found
