"""Distances between two rows, as the paper defines them (eqs. 8-11).

Per feature, the change is  delta = |after - before| / scale  for numbers (scale: the range, unless said otherwise),
levels moved / k  for ordinals with k levels, and 0 or 1 for binaries and categories; each is multiplied by the
feature's weight. Going up or down may count more or less (`up`, `down`), and so may a change from one option to another
(`transitions`: what such a change is, instead of 1 or of the levels moved). Over n features:

    l0 = share of features changed    l1 = mean of delta    l2 = root of the mean of delta^2    linf = max delta / n

(l0 counts the weight of each changed feature.) A mixture a*l0 + b*l1 is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached, cached_property
from ifonly.errors import QuestionError, RowError
from ifonly.printing import shown
from ifonly.schema import Choice, Numeric, Schema, read_points
from ifonly.schema.values import plain

LEAST, MOST = 1e-100, 1e100
"""Weights, scales and shares: beyond these, distances overflow or vanish."""


DISTANCE_BYTES = 2**22
"""Distances between rows of schemas, checked and as numbers."""
DERIVED = 1e-12
"""The weight of a derived feature: nothing in any digit that is shown, and no division by 0 in any search."""


class Norm(Enum):
    """How per-feature changes become one number."""

    L0 = "l0"
    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


class Rates(NamedTuple):
    """What changes cost, feature by feature."""

    jump: NDArray[np.float64]
    """Of any change."""
    up: NDArray[np.float64]
    """Of a unit upward."""
    down: NDArray[np.float64]
    tables: tuple[NDArray[np.float64], ...]
    """Of each transition between options, (before, after); (1, 1) zeros for numbers."""


@dataclass(frozen=True)
class Distance:
    """A norm (`"l1"`) or a mixture of l0 and l1 (`{"l0": 0.2, "l1": 0.8}`), with weights and scales by feature name."""

    norm: str | Mapping[str, float] = "l1"
    weights: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    up: Mapping[str, float] = field(default_factory=dict)
    """For ordered features: what going up is multiplied by."""
    down: Mapping[str, float] = field(default_factory=dict)
    transitions: Mapping[str, Mapping[tuple[Any, Any], float]] = field(default_factory=dict)
    """For features with options: {(before, after): change}; pairs that are not listed change as usual."""

    def __post_init__(self) -> None:
        known = [norm.value for norm in Norm]
        norm = self.norm.value if isinstance(self.norm, Norm) else self.norm
        if not isinstance(norm, str | Mapping):
            raise QuestionError(
                f"A distance is one of {', '.join(known)}, or a mixture of l0 and l1; got {shown(norm)}."
            )
        mixture = {norm: 1.0} if isinstance(norm, str) else dict(norm)
        for name in mixture:
            if name not in known:
                raise QuestionError(f"There is no distance '{name}'; choose one of {', '.join(known)}.")
        shares = _positives("share", mixture)
        if not shares or (len(shares) > 1 and set(shares) != {"l0", "l1"}):
            raise QuestionError(f"Only l0 and l1 can be mixed; got {', '.join(shares) or 'nothing'}.")
        if len(shares) == 1 and set(shares.values()) != {1.0}:
            raise QuestionError(f"A mixture needs both l0 and l1; for {next(iter(shares))} alone give its name.")
        object.__setattr__(self, "norm", shares if len(shares) > 1 else next(iter(shares)))
        object.__setattr__(self, "weights", _positives("weight", self.weights))
        object.__setattr__(self, "scales", _positives("scale", self.scales))
        object.__setattr__(self, "up", _positives("cost of going up", self.up))
        object.__setattr__(self, "down", _positives("cost of going down", self.down))
        object.__setattr__(self, "transitions", _transitions(self.transitions))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}  # texts hash anew per process

    @cached_property
    def _hash(self) -> int:
        shares = tuple(sorted(self.norm.items())) if isinstance(self.norm, Mapping) else self.norm
        tables = (tuple(sorted(table.items())) for table in (self.weights, self.scales, self.up, self.down))
        moves = tuple((name, tuple(table.items())) for name, table in sorted(self.transitions.items()))
        return hash((shares, *tables, moves))

    @cached_property
    def is_symmetric(self) -> bool:
        """Are there no costs by direction or by transition?"""
        return not (self.up or self.down or self.transitions)

    @cached_property
    def kind(self) -> Norm:
        """The norm; mixtures count as L1 (with a jump of `jump` at the factual)."""
        return Norm.L1 if isinstance(self.norm, Mapping) else Norm(self.norm)

    @cached_property
    def jump(self) -> float:
        """The share of l0."""
        return float(self.norm["l0"]) if isinstance(self.norm, Mapping) else float(self.norm == "l0")

    @cached_property
    def rate(self) -> float:
        """The share of what grows with the change (l1, l2 or linf)."""
        return float(self.norm["l1"]) if isinstance(self.norm, Mapping) else float(self.norm != "l0")

    @property
    def name(self) -> str:
        if isinstance(self.norm, Mapping):
            return " + ".join(f"{share:g}*{norm}" for norm, share in self.norm.items())
        return str(self.norm)

    def check(self, schema: Schema) -> None:
        """Every weight and scale must name a feature; scales only numbers."""
        _checked(self, schema)

    def _check(self, schema: Schema) -> None:
        for what, table in (("weight", self.weights), ("scale", self.scales)):
            for name in table:
                feature = schema[name]
                if what == "scale" and not isinstance(feature, Numeric):
                    raise QuestionError(f"Feature '{name}' has options, not numbers: give it a weight, not a scale.")
        for name in (*self.up, *self.down):
            feature = schema[name]
            if isinstance(feature, Choice) and not feature.ordered:
                raise QuestionError(f"Feature '{name}' has categories without an order: there is no up or down in it.")
        for name, moves in self.transitions.items():
            feature = schema[name]
            if not isinstance(feature, Choice):
                raise QuestionError(f"Feature '{name}' is a number: give costs up and down, not transitions.")
            for value in (value for pair in moves for value in pair):
                try:
                    feature.read(value)
                except RowError:
                    raise QuestionError(
                        f"The transitions of '{name}' are between {feature.describe()}; got {shown(value)}."
                    ) from None

    def weight_vector(self, schema: Schema) -> NDArray[np.float64]:
        return np.array([float(self.weights.get(name, 1.0)) for name in schema.names])

    def scale_vector(self, schema: Schema) -> NDArray[np.float64]:
        """What one unit of each coordinate of a point is divided by (options: the number of levels, or 1)."""
        scale = np.ones(len(schema))
        for i, feature in enumerate(schema.features):
            if isinstance(feature, Numeric):
                scale[i] = self.scales.get(feature.name, feature.width or 1.0)
                if self.rate and scale[i] < LEAST:
                    raise QuestionError(
                        f"The range of feature '{feature.name}' is narrower than {LEAST:g}, and a distance divides by "
                        f"it; give it another unit, or a scale with Distance(scales=...)."
                    )
            elif feature.kind == "ordinal":
                scale[i] = len(feature.options)
        return scale

    def direction_vectors(self, schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What going up and going down is multiplied by, feature by feature."""
        return (
            np.array([self.up.get(name, 1.0) for name in schema.names]),
            np.array([self.down.get(name, 1.0) for name in schema.names]),
        )

    def option_changes(self, feature: Choice) -> NDArray[np.float64]:
        """(before, after): delta between the options of a feature, unweighted."""
        k = len(feature.options)
        moved = np.subtract.outer(np.arange(k), np.arange(k)).astype(np.float64)
        moved = moved / k if feature.kind == "ordinal" else np.sign(moved)
        if self.is_symmetric:
            return np.abs(moved)
        table = np.where(moved < 0, -moved * self.up.get(feature.name, 1.0), moved * self.down.get(feature.name, 1.0))
        for (before, after), change in self.transitions.get(feature.name, {}).items():
            table[int(feature.read(before)), int(feature.read(after))] = change
        np.fill_diagonal(table, 0.0)
        return np.asarray(table)

    def without(self, names: Collection[str]) -> Distance:
        """The same distance, in which these features count almost nothing: derived features, which follow others."""
        return _without(self, frozenset(names))

    def on(self, schema: Schema) -> Measure:
        """The distance between rows of this schema."""
        return _on(self, schema)

    def changes(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """delta, feature by feature, unweighted; `after` may be one point or many."""
        return self.on(schema).changes(before, after)

    def between(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> Any:
        """The distance of one point (a float) or many (an array) from `before`."""
        return self.on(schema).between(before, after)

    def to_dict(self) -> dict[str, Any]:
        norm = dict(self.norm) if isinstance(self.norm, Mapping) else self.norm
        plain_tables = {"norm": norm, "weights": dict(self.weights), "scales": dict(self.scales)}
        if self.is_symmetric:
            return plain_tables
        moves = {
            name: [[before, after, change] for (before, after), change in table.items()]
            for name, table in self.transitions.items()
        }
        return {**plain_tables, "up": dict(self.up), "down": dict(self.down), "transitions": moves}


@cached(DISTANCE_BYTES)
def _checked(distance: Distance, schema: Schema) -> bool:
    distance._check(schema)
    return True


@cached(DISTANCE_BYTES)
def _without(distance: Distance, names: frozenset[str]) -> Distance:
    return replace(distance, weights={**distance.weights, **dict.fromkeys(sorted(names), DERIVED)})


@cached(DISTANCE_BYTES)
def _on(distance: Distance, schema: Schema) -> Measure:
    return Measure(distance, schema)


@dataclass(frozen=True)
class Measure:
    """A distance between the rows of a schema, with what does not change from row to row."""

    distance: Distance
    schema: Schema

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        return self.distance.weight_vector(self.schema)

    @cached_property
    def scale(self) -> NDArray[np.float64]:
        return self.distance.scale_vector(self.schema)

    @cached_property
    def steepest(self) -> NDArray[np.float64]:
        """What one unit of each coordinate costs at most (in l1)."""
        most = np.maximum(*self._directions)
        return self.distance.rate * self.weight * most / self.scale / len(self.schema)

    @cached_property
    def _most(self) -> NDArray[np.float64]:
        """The most that delta can be: binaries and categories change by 1, or not at all."""
        return np.array([1.0 if f.kind in ("binary", "categorical") else np.inf for f in self.schema.features])

    @cached_property
    def option_changes(self) -> dict[int, NDArray[np.float64]]:
        """Of each feature with options, by its place: delta between them, (before, after), unweighted."""
        features = enumerate(self.schema.features)
        return {g: self.distance.option_changes(one) for g, one in features if isinstance(one, Choice)}

    @cached_property
    def _directions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.distance.direction_vectors(self.schema)

    @cached_property
    def rates(self) -> Rates:
        """What changes cost."""
        distance, squared, n = self.distance, self.distance.kind is Norm.L2, len(self.schema)
        share = 1.0 / np.sqrt(n) if squared else 1.0 / n
        jump, slope = distance.jump * self.weight * share, distance.rate * self.weight * share / self.scale
        tables = [np.zeros((1, 1))] * n
        for g, moved in self.option_changes.items():
            cost = jump[g] * (1.0 - np.eye(len(moved))) + slope[g] * self.scale[g] * moved
            tables[g] = cost**2 if squared else cost
        up, down = self._directions
        return Rates(jump, slope * up, slope * down, tuple(tables))

    def changes(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """delta, feature by feature, unweighted; `after` may be one point or many."""
        gap = (after - before) / self.scale
        if not self.distance.is_symmetric:
            return self._costed(before, after, gap)
        return np.minimum(np.abs(gap), self._most)

    def _costed(
        self, before: NDArray[np.float64], after: NDArray[np.float64], gap: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """`changes`, with costs by direction and transition."""
        up, down = self._directions
        result = np.where(gap > 0, gap * up, -gap * down)
        for g, feature in enumerate(self.schema.features):
            if isinstance(feature, Choice):
                now, then = np.broadcast_arrays(np.asarray(before)[..., g], after[..., g])
                result[..., g] = self.option_changes[g][now.astype(np.intp), then.astype(np.intp)]
        return result

    def between(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> Any:
        """The distance of one point (a float) or many (an array) from `before`."""
        distance, n, after = self.distance, len(self.schema), np.asarray(after)
        weighted = self.changes(before, after) * self.weight
        match distance.kind:
            case Norm.L2:
                result = np.sqrt((weighted**2).sum(axis=-1) / n)
            case Norm.LINF:
                result = weighted.max(axis=-1) / n
            case Norm.L0 | Norm.L1:
                result = weighted.sum(axis=-1)
                if distance.jump:  # without one, the rate is 1
                    jumps = ((after != before) * self.weight).sum(axis=-1)
                    result = distance.jump * jumps + distance.rate * result
                result = result / n
        return result if after.ndim == 2 else float(result)


def scales_from_data(schema: Schema, table: Any, kind: str = "mad") -> dict[str, float]:
    """Scales for the numeric features from data: "mad" (median absolute deviation), "std" or "iqr".

    A feature whose MAD or IQR is 0 (more than half of its values are the same) falls back to its standard deviation,
    and one that is constant to its range; look at the result.
    """
    if not isinstance(kind, str) or kind not in ("mad", "iqr", "std"):
        raise QuestionError(f"There is no scale {_named(kind)}; choose mad, iqr or std, or give numbers.")
    if not isinstance(schema, Schema):
        raise QuestionError(f"Scales are taken for the features of a Schema; got {shown(schema)}.")
    points = read_points(schema, table)
    if not len(points):
        raise QuestionError("Scales cannot be taken from a table without rows.")
    scales: dict[str, float] = {}
    for i, feature in enumerate(schema.features):
        if not isinstance(feature, Numeric):
            continue
        column = points[:, i]
        column = column[~np.isnan(column)]
        if not len(column):
            column = np.zeros(1)
        match kind:
            case "mad":
                spread = float(np.median(np.abs(column - np.median(column))))
            case "iqr":
                spread = float(np.quantile(column, 0.75) - np.quantile(column, 0.25))
            case _:
                spread = float(column.std())
        scales[feature.name] = spread or float(column.std()) or feature.width or 1.0
    return scales


def _transitions(table: Any) -> dict[str, dict[tuple[Any, Any], float]]:
    if not isinstance(table, Mapping):
        raise QuestionError(f"Give transitions by feature, such as {{'Job': {{('a', 'b'): 2.0}}}}; got {shown(table)}.")
    result: dict[str, dict[tuple[Any, Any], float]] = {}
    for name, moves in table.items():
        if not isinstance(moves, Mapping) or not all(isinstance(p, tuple) and len(p) == 2 for p in moves):
            raise QuestionError(
                f"The transitions of '{name}' must be like {{(before, after): 2.0}}; got {shown(moves)}."
            )
        for (a, b), value in moves.items():
            if why := _not_positive(value):
                raise QuestionError(f"The transition of {shown(name)} of '{shown(a)} -> {shown(b)}' {why}.")
        key = name if isinstance(name, str) else shown(name)
        result[key] = {(plain(a), plain(b)): float(v) for (a, b), v in moves.items()}
    return result


def _positives(what: str, table: Any) -> dict[str, float]:
    """A mapping of names to positive numbers, or a sentence about the entry that is not one."""
    if not isinstance(table, Mapping):
        raise QuestionError(f"Give every {what} by name, such as {{'Age': 2.0}}; got {shown(table)}.")
    for name, value in table.items():
        if why := _not_positive(value):
            raise QuestionError(f"The {what} of {_named(name)} {why}.")
    return {name if isinstance(name, str) else shown(name): float(value) for name, value in table.items()}


def _not_positive(value: Any) -> str:
    """What is wrong with a value that must be a positive number; empty where nothing is."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not number > 0.0:
        return f"must be a positive number; it is {shown(value)}"
    if not LEAST <= number <= MOST:
        return f"must lie between {LEAST:g} and {MOST:g}; it is {shown(value)}"
    return ""


def _named(name: Any) -> str:
    return f"'{name}'" if isinstance(name, str) else shown(name)
