"""Structural equations: what a feature is, given the features that cause it, up to a person's own noise.

    LinearEquation    a weight per number, a value per option
    TableEquation     a number for each combination of values of features that have few
    ModelEquation     a fitted regression: linear, a ReLU network, or trees (`tree_equations`)

Compiled for a schema, each is a ReLU network over *unrolled* columns of the causes: a number is one column, a feature
with k options k columns of 0 and 1. Levels and the two values of a binary feature are numbered from 0. Trees are linear
functions of a column per region of their causes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.causes.tree_equations import TreeRegions, tree_regions
from ifonly.errors import IfonlyError, ModelError, UnsupportedModel
from ifonly.model import Model, Network
from ifonly.model.importers import import_model
from ifonly.model.layers import affine, interval, layers_of
from ifonly.model.smooth import RELU, SmoothNetwork
from ifonly.model.smooth.activations import STEEPEST
from ifonly.printing import shown
from ifonly.schema import Choice, Feature, Integer, Numeric, Schema
from ifonly.schema.arguments import items, real_number
from ifonly.schema.values import plain

Floats = NDArray[np.float64]
Layers: TypeAlias = list[tuple[Floats, Floats]]

KEPT_VALUES = 256
"""Of single points, of each equation."""
MOST_CASES = 4096
"""Combinations of values of a table."""


@dataclass(frozen=True, eq=False)
class CompiledEquation:
    """An equation over the features at `places` of a schema. `codes` maps their unrolled columns to the columns that
    the network reads; `original` is the user's own regression, of points of these features."""

    places: NDArray[np.intp]
    network: Network | SmoothNetwork
    codes: Floats
    options: tuple[int, ...]
    """Of each cause, how many options; 0 for a number."""
    original: Model | None = None
    trees: TreeRegions | None = None
    error: float = 0.0
    """How far the value that is computed may be from that of the network, on rows of the schema, where that is known
    better than as a matter of the size of numbers."""

    def values(self, points: Floats) -> Floats:
        """The value of the equation for each point of the whole schema."""
        own = points[:, self.places]
        if len(own) > 1:
            return self._values(own)
        known, key = self._known, own.tobytes()
        value = known.get(key)
        if value is None:  # of one person's causes, most sets of actions ask for the same
            value = self._values(own)
            if len(known) >= KEPT_VALUES:
                known.clear()
            known[key] = value
        return value.copy()

    def _values(self, own: Floats) -> Floats:
        if self.original is not None:
            return np.asarray(self.original.scores(own)[:, 0])
        return np.asarray(self.network.steady_scores(self.unrolled(own) @ self.codes.T)[:, 0])

    @cached_property
    def _known(self) -> dict[bytes, Floats]:
        """Values of single points."""
        return {}

    def unrolled(self, own: Floats) -> Floats:
        """Points of the causes as unrolled columns; of trees, as a column per region."""
        if self.trees is None:
            pairs = list(zip(self.options, own.T, strict=True))
        else:
            sizes = [len(one.values) for one in self.trees.partitions]
            pairs = list(zip(sizes, self.trees.regions(own).T, strict=True))
        columns = [one[:, None] if not count else one[:, None] == np.arange(count) for count, one in pairs]
        return np.concatenate(columns, axis=1).astype(np.float64)

    @cached_property
    def slopes(self) -> Floats | None:
        """Where the value is linear in the unrolled columns, what one of each adds."""
        layers, _ = layers_of(self.network)
        return None if self.trees is not None or len(layers) > 1 else np.asarray((layers[0][0] @ self.codes)[0])

    @cached_property
    def gains(self) -> Floats:
        """By how much a change of each unrolled column changes the value, at most."""
        size = np.abs(self.codes)
        layers, activations = layers_of(self.network)
        for (weight, _), activation in zip(layers, [*activations, RELU], strict=True):
            size = np.abs(weight) @ size
            size = size if activation == RELU else STEEPEST * size
        return np.asarray(size[0])

    def interval(self, lower: Floats, upper: Floats) -> tuple[float, float]:
        """Bounds of the value where the unrolled columns are between these."""
        if self.trees is not None:
            return self.trees.interval(self.options, lower, upper)
        box = affine(self.codes, np.zeros(len(self.codes)), lower, upper)
        low, high = interval(self.network, *box)
        return float(low[0]), float(high[0])


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
        return _compiled(schema, self.parents, network)

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
        return _compiled(schema, self.parents, network)

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

    Whatever `import_model` reads: linear, a ReLU network, or trees. A model in float32 is
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
            own = model.error_in("float64") + (0.0 if original is None else model.error)
            made = _compiled(schema, self.parents, network, _codes(features), original)
            return replace(made, error=float(own[0]))
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
        return replace(_compiled(schema, self.parents, network, codes, original), trees=regions)

    def to_dict(self) -> dict[str, Any]:
        raise ModelError("A fitted equation is written as plain data by its causal model, which knows its schema.")


Equation: TypeAlias = LinearEquation | TableEquation | ModelEquation


# ---------------------------------------------------------------------- networks


def cases_of(features: Sequence[Feature], follower: Feature) -> list[tuple[float, ...]]:
    """All combinations of values, as they are in points."""
    columns: list[list[float]] = []
    for feature in features:
        if isinstance(feature, Choice):
            columns.append([float(k) for k in range(len(feature.options))])
        elif isinstance(feature, Integer) and feature.count <= MOST_CASES:
            columns.append([feature.lower + k * feature.step for k in range(feature.count)])
        else:
            raise UnsupportedModel(
                f"The equation of '{follower.name}' is a table over '{feature.name}', where it jumps; "
                f"jumps are exact only over options and few whole numbers.",
                operation="table",
            )
    if math.prod(map(len, columns)) > MOST_CASES:
        raise UnsupportedModel(
            f"The equation of '{follower.name}' has more than {MOST_CASES} combinations of values of its causes.",
            operation="table",
        )
    return list(itertools.product(*columns))


def table_network(features: Sequence[Feature], values: Sequence[float]) -> Network:
    """The network of a table over unrolled columns, with values in the order of `cases_of`.

    Whole numbers x become indicators of their values t, hinge by hinge: [x = t] is relu(x - t + d) - 2 relu(x - t) +
    relu(x - t - d), over the step d. A combination of several is relu(sum of indicators - (how many - 1)).
    """
    first, bias, indicators = _indicators(features)
    rows = np.zeros((len(values), len(first)))
    for i, case in enumerate(itertools.product(*indicators)):
        for indicator in case:
            for unit, weight in indicator.items():
                rows[i, unit] += weight
    last = np.array([values], dtype=np.float64)
    if len(features) == 1:
        return Network.of([(first, bias), (last @ rows, np.zeros(1))])
    return Network.of([(first, bias), (rows, np.full(len(rows), 1.0 - len(features))), (last, np.zeros(1))])


def _indicators(features: Sequence[Feature]) -> tuple[Floats, Floats, list[list[dict[int, float]]]]:
    """A layer of units, and for each feature and each of its values how these add up to [it has the value]."""
    widths = [len(feature.options) if isinstance(feature, Choice) else 1 for feature in features]
    units: list[tuple[int, float]] = []
    """The column that each unit reads, and its bias."""
    indicators: list[list[dict[int, float]]] = []
    at = 0
    for feature, width in zip(features, widths, strict=True):
        start = len(units)
        if isinstance(feature, Choice):
            units += [(at + k, 0.0) for k in range(width)]
            indicators.append([{start + k: 1.0} for k in range(width)])
        else:
            assert isinstance(feature, Integer)
            units += [(at, -(feature.lower + k * feature.step)) for k in range(-1, feature.count + 1)]
            d = 1.0 / feature.step
            indicators.append([{start + k: d, start + k + 1: -2.0 * d, start + k + 2: d} for k in range(feature.count)])
        at += width
    first = np.zeros((len(units), at))
    first[np.arange(len(units)), [column for column, _ in units]] = 1.0
    return first, np.array([bias for _, bias in units]), indicators


def _compiled(
    schema: Schema,
    parents: Sequence[str],
    network: Network | SmoothNetwork,
    codes: Floats | None = None,
    original: Model | None = None,
) -> CompiledEquation:
    features = [schema[name] for name in parents]
    options = tuple(len(feature.options) if isinstance(feature, Choice) else 0 for feature in features)
    places = np.array([schema.index(name) for name in parents], dtype=np.intp)
    own = np.eye(sum(count or 1 for count in options)) if codes is None else codes
    return CompiledEquation(places, network, own, options, original)


def _codes(features: Sequence[Feature]) -> Floats:
    """From unrolled columns to the encoded ones, feature after feature."""
    blocks = [np.ones((1, 1)) if isinstance(f, Numeric) else np.asarray(f.codes).T for f in features]
    matrix = np.zeros((sum(len(block) for block in blocks), sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        matrix[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return matrix


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
