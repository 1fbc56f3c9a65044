"""Errors of columns: what a column cannot be, and what to change in the model or the schema."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import IfonlyError, ModelError, UnsupportedModel
from ifonly.model.importers.column_kinds import (
    MOST_KNOTS,
    MOST_NUMBERS,
    Absent,
    Bent,
    Binned,
    Column,
    Curved,
    Interaction,
    Line,
    Options,
)
from ifonly.printing import capitalised, some_of
from ifonly.schema import Choice, Missing, Schema

ROOTS = ("np.sqrt", "np.cbrt")


def described(schema: Schema, column: Column) -> str:
    """The features that a column depends on, for messages."""
    match column:
        case Absent(name=name):
            return f"column '{name}'"
        case Interaction(factors=factors):
            return f"a product of {len(factors)} features"
        case Options(feature=feature) | Binned(feature=feature) | Bent(feature=feature) | Curved(feature=feature):
            return f"feature '{schema.names[feature]}'"
        case Line(weight=weight):
            used = [
                f"'{name}'"
                for name, columns in zip(schema.names, schema.feature_columns, strict=True)
                if weight[columns].any()
            ]
            return f"feature {used[0]}" if len(used) == 1 else f"a mixture of {len(used)} features"


def no_number(schema: Schema, column: Options, value: Any, where: str) -> ModelError:
    """The value of an option is no number."""
    return ModelError(
        f"'{where}' needs numbers, but {described(schema, column)} has the option {value!r}; put an encoder before it, "
        f"or declare the options as the model saw them in training."
    )


def not_linear_in_number(schema: Schema, column: Options, where: str) -> ModelError:
    """The column is one of an option's number, and curved in it."""
    words = capitalised(described(schema, column))
    return ModelError(
        f"{words} is encoded as its option's number, but '{where}' needs a function of "
        f"it that is not linear in that number; declare it with encoding='onehot'."
    )


def clips(
    schema: Schema, column: Column, to: tuple[float, float], reached: tuple[float, float], where: str
) -> ModelError:
    """Rows of the schema are clipped."""
    return ModelError(
        f"'{where}' clips {described(schema, column)} to [{to[0]:g}, {to[1]:g}], but rows of the schema reach "
        f"[{reached[0]:g}, {reached[1]:g}] there; narrow the bounds in the schema to what the scaler was fitted on, or "
        f"fit it with clip=False."
    )


def without_value(schema: Schema, column: Options, missing: NDArray[np.bool_], where: str) -> ModelError:
    """Some of the options have no value."""
    words, feature = described(schema, column), schema.features[column.feature]
    if isinstance(feature, Missing):
        return ModelError(
            f"{words} reaches '{where}' without a value where it is missing; put an imputer before it, or fill the "
            f"value in before asking."
        )
    assert isinstance(feature, Choice)
    return ModelError(
        f"{words} reaches '{where}' without a value for its option {feature.options[int(missing.argmax())]!r}; put an "
        f"imputer or an encoder before it, or remove that option from the schema."
    )


def no_line(schema: Schema, column: Absent | Binned | Bent | Curved | Interaction, where: str) -> IfonlyError:
    """The column is no affine function of the encoded columns."""
    if isinstance(column, Absent):
        return ModelError(
            f"'{where}' reads the column '{column.name}', which is not a feature of the schema; "
            f"the features are {some_of(schema.names)}."
        )
    words = capitalised(described(schema, column))
    if isinstance(column, Interaction):
        return UnsupportedModel(
            f"{words} reaches '{where}' as a product, which only linear models and perceptrons take.",
            operation="products before " + where,
        )
    if isinstance(column, Bent | Curved):
        return _curved(schema, column, where)
    return UnsupportedModel(
        f"{words} reaches '{where}' in bins, and jumps between them; after binning, "
        f"linear models and trees are supported.",
        operation="bins before " + where,
    )


def _curved(schema: Schema, column: Bent | Curved, where: str) -> IfonlyError:
    words = capitalised(described(schema, column))
    how = f" by {column.name}" if isinstance(column, Curved) else ""
    root = isinstance(column, Curved) and column.name in ROOTS
    above = "give it a lower bound above 0, where the curve is not infinitely steep, or " if root else ""
    return UnsupportedModel(
        f"{words} reaches '{where}' curved{how}, which has no exact form there for "
        f"any number; {above}declare it as Integer with a step, so that it has at most {MOST_KNOTS:,} values (or "
        f"{MOST_NUMBERS:,}, if all that a linear model reads are such), or let trees follow.",
        operation="curve before " + where,
    )
