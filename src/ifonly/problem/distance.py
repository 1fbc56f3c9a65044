"""Distances between two rows, as the paper defines them (eqs. 8-11).

Per feature, the change is  delta = |after - before| / scale  for numbers (scale: the range, unless said otherwise),
levels moved / k  for ordinals with k levels, and 0 or 1 for binaries and categories; each is multiplied by the
feature's weight. Over n features:

    l0 = share of features changed    l1 = mean of delta    l2 = root of the mean of delta^2    linf = max delta / n

(l0 counts the weight of each changed feature.) A mixture a*l0 + b*l1 is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.schema import Numeric, Schema, read_points
from ifonly.schema.features import plain


class Norm(Enum):
    """How per-feature changes become one number."""

    L0 = "l0"
    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@dataclass(frozen=True)
class Distance:
    """A norm (`"l1"`) or a mixture of l0 and l1 (`{"l0": 0.2, "l1": 0.8}`), with weights and scales by feature name."""

    norm: str | Mapping[str, float] = "l1"
    weights: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [norm.value for norm in Norm]
        norm = self.norm.value if isinstance(self.norm, Norm) else self.norm
        if not isinstance(norm, str | Mapping):
            raise QuestionError(f"A distance is one of {', '.join(known)}, or a mixture of l0 and l1; got {norm!r}.")
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

    def __hash__(self) -> int:
        shares = tuple(sorted(self.norm.items())) if isinstance(self.norm, Mapping) else self.norm
        return hash((shares, tuple(sorted(self.weights.items())), tuple(sorted(self.scales.items()))))

    @property
    def kind(self) -> Norm:
        """The norm; mixtures count as L1 (with a jump of `jump` at the factual)."""
        return Norm.L1 if isinstance(self.norm, Mapping) else Norm(self.norm)

    @property
    def jump(self) -> float:
        """The share of l0."""
        return float(self.norm["l0"]) if isinstance(self.norm, Mapping) else float(self.norm == "l0")

    @property
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
        for what, table in (("weight", self.weights), ("scale", self.scales)):
            for name in table:
                feature = schema[name]
                if what == "scale" and not isinstance(feature, Numeric):
                    raise QuestionError(f"Feature '{name}' has options, not numbers: give it a weight, not a scale.")

    def weight_vector(self, schema: Schema) -> NDArray[np.float64]:
        return np.array([float(self.weights.get(name, 1.0)) for name in schema.names])

    def scale_vector(self, schema: Schema) -> NDArray[np.float64]:
        """What one unit of each coordinate of a point is divided by (options: the number of levels, or 1)."""
        scale = np.ones(len(schema))
        for i, feature in enumerate(schema.features):
            if isinstance(feature, Numeric):
                scale[i] = self.scales.get(feature.name, feature.width or 1.0)
            elif feature.kind == "ordinal":
                scale[i] = len(feature.options)
        return scale

    def changes(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """delta, feature by feature, unweighted; `after` may be one point or many."""
        gap = np.abs(np.asarray(after) - before) / self.scale_vector(schema)
        moved = np.array([f.kind in ("binary", "categorical") for f in schema.features])
        return np.where(moved, (gap > 0).astype(np.float64), gap)

    def between(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> Any:
        """The distance of one point (a float) or many (an array) from `before`."""
        delta, weight, n = self.changes(schema, before, after), self.weight_vector(schema), len(schema)
        weighted = delta * weight
        changed = (np.asarray(after) != before) * weight
        match self.kind:
            case Norm.L2:
                result = np.sqrt((weighted**2).sum(axis=-1) / n)
            case Norm.LINF:
                result = weighted.max(axis=-1) / n
            case Norm.L0 | Norm.L1:
                result = (self.jump * changed.sum(axis=-1) + self.rate * weighted.sum(axis=-1)) / n
        return result if np.ndim(after) == 2 else float(result)

    def to_dict(self) -> dict[str, Any]:
        norm = dict(self.norm) if isinstance(self.norm, Mapping) else self.norm
        return {"norm": norm, "weights": dict(self.weights), "scales": dict(self.scales)}


def scales_from_data(schema: Schema, table: Any, kind: str = "mad") -> dict[str, float]:
    """Scales for the numeric features from data: "mad" (median absolute deviation), "std" or "iqr".

    A feature whose MAD or IQR is 0 (more than half of its values are the same) falls back to its standard deviation,
    and one that is constant to its range; look at the result.
    """
    points = read_points(schema, table)
    if not len(points):
        raise QuestionError("Scales cannot be taken from a table without rows.")
    scales: dict[str, float] = {}
    for i, feature in enumerate(schema.features):
        if not isinstance(feature, Numeric):
            continue
        column = points[:, i]
        match kind:
            case "mad":
                spread = float(np.median(np.abs(column - np.median(column))))
            case "iqr":
                spread = float(np.quantile(column, 0.75) - np.quantile(column, 0.25))
            case "std":
                spread = float(column.std())
            case _:
                raise QuestionError(f"There is no scale '{kind}'; choose mad, iqr or std, or give numbers.")
        scales[feature.name] = spread or float(column.std()) or feature.width or 1.0
    return scales


def _positives(what: str, table: Any) -> dict[str, float]:
    """A mapping of names to positive numbers, or a sentence about the entry that is not one."""
    if not isinstance(table, Mapping):
        raise QuestionError(f"Give every {what} by name, such as {{'Age': 2.0}}; got {table!r}.")
    for name, value in table.items():
        number = plain(value)
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 < number < float("inf"):
            raise QuestionError(f"The {what} of '{name}' must be a positive number; it is {value!r}.")
    return {str(name): float(value) for name, value in table.items()}
