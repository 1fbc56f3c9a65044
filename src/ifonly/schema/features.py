"""Feature types: real, integer, binary, ordinal, categorical.

A *point* holds one float64 per feature: the number itself for numeric features (real, integer), the index of the
chosen option for the others (binary, ordinal, categorical). All other packages work on points; the
user's own values are read and written here.
"""

from __future__ import annotations

from typing import TypeAlias

from ifonly.schema.choices import Binary, Categorical, Choice, Encoding, Missing, Ordinal
from ifonly.schema.numbers import Integer, Numeric, Real

__all__ = [
    "Binary",
    "Categorical",
    "Choice",
    "Encoding",
    "Feature",
    "Integer",
    "Missing",
    "Numeric",
    "Ordinal",
    "Real",
]

Feature: TypeAlias = Real | Integer | Binary | Ordinal | Categorical
