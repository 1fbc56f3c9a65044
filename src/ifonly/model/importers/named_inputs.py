"""Inputs of a model by name: which features of the schema each of several inputs holds.

Options that are whole numbers (or true and false) are given as they are, any others by their position in the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError
from ifonly.model.importers.column_kinds import Column, Options
from ifonly.model.importers.columns import Columns
from ifonly.printing import shown, some_of
from ifonly.schema import Choice, Integer, Schema

InputNames: TypeAlias = Mapping[str, str | Sequence[str]]
"""Of each input: a feature (its column has shape (rows,)), or a list of them (shape (rows, features))."""


def checked_inputs(inputs: Any) -> dict[str, str | tuple[str, ...]]:
    """The names as they were given, checked."""
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        raise ModelError(
            f"'inputs' says which features each input of the model holds, such as {{'num': ['Age', 'Income'], 'cat': "
            f"['Job']}}; got {shown(inputs)}."
        )
    result: dict[str, str | tuple[str, ...]] = {}
    for name, features in inputs.items():
        listed = (features,) if isinstance(features, str) else tuple(features) if _is_list(features) else ()
        if not isinstance(name, str) or not listed or not all(isinstance(feature, str) for feature in listed):
            raise ModelError(
                f"The input {shown(name)} holds a feature or a list of features, by name; got {shown(features)}."
            )
        result[name] = features if isinstance(features, str) else listed
    return result


def _is_list(thing: Any) -> bool:
    return isinstance(thing, list | tuple)


def proposal(names: Sequence[str], schema: Schema) -> str:
    """How to say what the inputs hold, for these ones: numbers to the first, choices to the second, ..."""
    kinds = [
        [f.name for f in schema.features if not isinstance(f, Choice)],
        [f.name for f in schema.features if isinstance(f, Choice)],
    ]
    parts = [f"{name!r}: {kinds[i][:3] if i < 2 and kinds[i] else ['...']}" for i, name in enumerate(names[:4])]
    return f"import_model(model, schema, inputs={{{', '.join(parts)}}})"


@dataclass(frozen=True)
class NamedInput:
    """Features and encoded columns, in order, that one input of a model holds."""

    name: str
    features: tuple[int, ...]
    columns: tuple[int, ...]
    """The encoded column that is meant where not -1; then the feature at that place counts nothing."""
    flat: bool = False
    """It has shape (rows,)."""

    @classmethod
    def of(cls, name: str, held: str | tuple[str, ...], schema: Schema) -> NamedInput:
        flat, names = isinstance(held, str), (held,) if isinstance(held, str) else held
        features, columns = [], []
        for one in names:
            if one not in schema.names and one not in schema.columns:
                raise ModelError(
                    f"The input '{name}' is to hold '{one}', which is neither a feature nor a column of the schema; "
                    f"the features are {some_of(schema.names)}."
                )
            is_feature = one in schema.names
            features.append(schema.names.index(one) if is_feature else -1)
            columns.append(-1 if is_feature else schema.columns.index(one))
        return cls(name, tuple(features), tuple(columns), flat)

    def table(self, arithmetic: Columns) -> tuple[Column, ...]:
        """Its columns as functions of the schema's row."""
        return tuple(
            arithmetic.encoded(j) if j >= 0 else coded(arithmetic, g)
            for g, j in zip(self.features, self.columns, strict=True)
        )

    def whole(self, schema: Schema) -> bool:
        """Does it hold choices only, which are given as whole numbers?"""
        return all(g >= 0 and isinstance(schema.features[g], Choice) for g in self.features)

    def integers(self, schema: Schema) -> bool:
        """Does it hold whole numbers only?"""
        return all(g >= 0 and isinstance(schema.features[g], Choice | Integer) for g in self.features)

    def values(self, schema: Schema, points: NDArray[np.float64], encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers of many points, shape (rows, columns)."""
        held = [
            encoded[:, j] if j >= 0 else _numbers(schema, g, points[:, g])
            for g, j in zip(self.features, self.columns, strict=True)
        ]
        return np.column_stack(held)


def coded(arithmetic: Columns, feature: int) -> Column:
    """A feature as a number: itself, or the code of its option."""
    described = arithmetic.schema.features[feature]
    return Options(feature, codes_of(described)) if isinstance(described, Choice) else arithmetic.raw(feature)


def codes_of(feature: Choice) -> NDArray[np.float64]:
    """Options that are whole numbers as they are; others by their position."""
    whole = [float(option) for option in feature.options if isinstance(option, int)]
    if len(whole) == len(feature.options):
        return np.array(whole)
    return np.arange(float(len(feature.options)))


def _numbers(schema: Schema, feature: int, column: NDArray[np.float64]) -> NDArray[np.float64]:
    described = schema.features[feature]
    return codes_of(described)[column.astype(np.intp)] if isinstance(described, Choice) else column
