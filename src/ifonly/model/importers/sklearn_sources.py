"""Input tables of a scikit-learn object: the schema's encoded columns, or the user's own values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.importers.column_kinds import Absent, Column
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.tables import table
from ifonly.model.model import describe_columns
from ifonly.schema import Choice, Integer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EncodedSource:
    """The schema's encoded columns, some or all, in the order that the model was fitted on."""

    arithmetic: Columns
    order: tuple[int, ...]
    names: tuple[str, ...] | None

    @property
    def identity(self) -> bool:
        return self.order == tuple(range(len(self.arithmetic.schema.columns)))

    def columns(self) -> list[Column]:
        return [self.arithmetic.encoded(i) for i in self.order]

    def table(self, points: Floats) -> Any:
        schema = self.arithmetic.schema
        encoded = schema.encode(np.atleast_2d(points))
        for g in schema.unknown:
            encoded[:, schema.feature_columns[g]] = self.arithmetic.raw_values(g)[0]
        encoded = encoded[:, self.order]
        return encoded if self.names is None else table(list(encoded.T), self.names)


@dataclass(frozen=True)
class RawSource:
    """The user's own values, one column per feature; None for a column that the schema does not have."""

    arithmetic: Columns
    features: tuple[int | None, ...]
    names: tuple[str, ...] | None
    identity: bool = False

    def columns(self) -> list[Column]:
        names = self.names or ()
        return [Absent(names[i]) if g is None else self.arithmetic.raw(g) for i, g in enumerate(self.features)]

    def table(self, points: Floats) -> Any:
        used = [(i, g) for i, g in enumerate(self.features) if g is not None]
        columns = [self._values(g, points[:, g]) for _, g in used]
        return table(columns, None if self.names is None else [self.names[i] for i, _ in used])

    def _values(self, feature: int, numbers: Floats) -> NDArray[Any]:
        described = self.arithmetic.schema.features[feature]
        if isinstance(described, Choice):
            return self.arithmetic.raw_values(feature)[numbers.astype(np.intp)]
        whole = (
            isinstance(described, Integer) and not described.missing
        )  # pandas holds a column with missing values as floats
        return np.rint(numbers).astype(np.int64) if whole else numbers


Source: TypeAlias = EncodedSource | RawSource


def source_of(model: Any, front: list[tuple[str, Any]], arithmetic: Columns) -> Source:
    """What a scikit-learn object reads, by the names or the count of the columns that it was fitted with."""
    outermost, schema = front[0][1] if front else model, arithmetic.schema
    count = getattr(outermost, "n_features_in_", len(schema) if front else len(schema.columns))
    return source_by(getattr(outermost, "feature_names_in_", None), count, arithmetic, raw=bool(front))


def source_by(found: Any, count: int, arithmetic: Columns, *, raw: bool) -> Source:
    """What is read by these names, or, without names, so many columns. `raw`: the user's own values may be meant."""
    schema = arithmetic.schema
    if found is None:
        if raw and count == len(schema):
            return RawSource(arithmetic, tuple(range(len(schema))), None)
        if count != len(schema.columns):
            raise ModelError(f"The model takes {count} columns, but {describe_columns(schema)}.")
        return EncodedSource(arithmetic, tuple(range(count)), None)
    names = tuple(str(name) for name in found)
    encoded = {name: i for i, name in enumerate(schema.columns)}
    features = {name: i for i, name in enumerate(schema.names)}
    if not raw or (all(n in encoded for n in names) and not all(n in features for n in names)):
        for name in names:
            if name not in encoded:
                raise ModelError(
                    f"The model was fitted with a column '{name}', but {describe_columns(schema)}; "
                    f"name the columns so in training, or put the encoding into a Pipeline with the model."
                )
        return EncodedSource(arithmetic, tuple(encoded[name] for name in names), names)
    if not any(name in features for name in names):
        raise ModelError(
            f"The model was fitted with the columns {', '.join(map(repr, names[:6]))}, none of which is a feature of "
            f"the schema; its features are {', '.join(map(repr, schema.names[:6]))}."
        )
    return RawSource(arithmetic, tuple(features.get(name) for name in names), names)
