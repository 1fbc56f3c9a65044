"""Names of XGBoost's categories with letters beyond ASCII, which it stores cut at the wrong places.

XGBoost (3.2) joins the names, counts their letters, and keeps as many bytes: of "Büro", "Koch" it keeps b"B\\xc3\\xbcr"
and b"oKoc". A model knows its categories by these pieces, in the order of training. Where the options of the schema,
in their order, give the same pieces, they are the categories; else their names are lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ifonly.errors import UnsupportedModel
from ifonly.model.importers.trees.imported import ImportedTrees
from ifonly.schema import Choice, Schema


def with_letters(trees: ImportedTrees, schema: Schema) -> dict[int, Sequence[Any]]:
    """The categories of each column, with names from the schema where the model has pieces of them only."""
    result = dict(trees.categories)
    for j, stored in trees.categories.items():
        if any(isinstance(part, bytes) for part in stored):
            result[j] = _named(stored, _options(trees, j, schema), trees.names[j] if trees.names else f"column {j}")
    return result


def _options(trees: ImportedTrees, j: int, schema: Schema) -> list[str]:
    """The options of the feature that a column holds."""
    named = trees.names is not None and trees.names[j] in schema.names
    feature = schema[trees.names[j]] if named and trees.names else schema.features[min(j, len(schema) - 1)]
    options = feature.options if isinstance(feature, Choice) else ()
    return [option for option in options if isinstance(option, str)]


def _named(stored: Sequence[bytes], options: list[str], name: str) -> Sequence[str]:
    for known in (options, sorted(options)):
        if list(stored) in (_cut(known), [option.encode() for option in known]):
            return known
    raise UnsupportedModel(
        f"XGBoost stores the categories of '{name}' cut at the wrong places, since some have letters beyond ASCII; "
        f"declare its options in the schema in the order of the categories it was trained with, or train it on "
        f"categories in ASCII ('Buero').",
        operation="categories beyond ASCII",
    )


def _cut(options: list[str]) -> list[bytes]:
    """The pieces that XGBoost keeps of these names."""
    text, ends = "".join(options).encode(), list(itertools.accumulate(map(len, options), initial=0))
    return [text[a:b] for a, b in itertools.pairwise(ends)]
