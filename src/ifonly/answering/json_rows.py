"""JSON serialisation of points by columns, in the user's own values: one look-up per value, no object per row.

What stands here is what `json_text` writes of the values that `Schema.row` gives; tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ifonly.printing import json_text
from ifonly.schema import Schema
from ifonly.schema.features import Choice, Integer

SEPARATED = 1000
"""From here on, people separate the thousands of an amount, and a change says so."""


class JsonRows:
    """Rows and changes of one schema, as text."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._options = [
            [json_text(option) for option in feature.options] if isinstance(feature, Choice) else []
            for feature in schema.features
        ]
        self._names = [json_text(name) for name in schema.names]
        self._row = "{" + ", ".join(f"{name.replace('%', '%%')}: %s" for name in self._names) + "}"

    def rows(self, points: NDArray[np.float64]) -> list[str]:
        """Each row as an object."""
        columns = (self.column(g, points[:, g]) for g in range(len(self._names)))
        return list(map(self._row.__mod__, zip(*columns, strict=True)))

    def changes(
        self, before: NDArray[np.float64], after: NDArray[np.float64], derived: Collection[str] = ()
    ) -> list[str]:
        """For each row the list of its changes; those of `derived` features follow the others."""
        each: list[list[str]] = [[] for _ in before]
        moved = before != after
        for g in np.flatnonzero(moved.any(axis=0)).tolist():
            rows = np.flatnonzero(moved[:, g])
            follows = ', "follows": true}' if self.schema.names[g] in derived else "}"
            for i, text in zip(rows.tolist(), self._moves(g, before[rows, g], after[rows, g]), strict=True):
                each[i].append(text[:-1] + follows)
        return ["[" + ", ".join(texts) + "]" for texts in each]

    def _moves(self, g: int, before: NDArray[np.float64], after: NDArray[np.float64]) -> Sequence[str]:
        name, pairs = self._names[g], zip(self.column(g, before), self.column(g, after), strict=True)
        if not isinstance(self.schema.features[g], Integer):
            return [f'{{"feature": {name}, "from": {old}, "to": {new}}}' for old, new in pairs]
        large = np.maximum(np.abs(np.rint(before)), np.abs(np.rint(after))) >= SEPARATED
        counted = [', "counted": true' if one else "" for one in large.tolist()]
        return [
            f'{{"feature": {name}, "from": {old}, "to": {new}{more}}}'
            for (old, new), more in zip(pairs, counted, strict=True)
        ]

    def column(self, g: int, numbers: NDArray[np.float64]) -> list[str]:
        """The values of one feature."""
        if options := self._options[g]:
            return list(map(options.__getitem__, numbers.astype(np.int64).tolist()))
        if isinstance(self.schema.features[g], Integer):
            return list(map(str, np.rint(numbers).astype(np.int64).tolist()))
        return list(map(repr, numbers.tolist()))
