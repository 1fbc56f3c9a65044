"""The five kinds of feature.

A *point* holds one float64 per feature: the number itself for numeric features (real, integer), the index of the
chosen option for the others (binary, ordinal, categorical). Every room of the house works on points; the user's own
values appear only here, at the door.
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
