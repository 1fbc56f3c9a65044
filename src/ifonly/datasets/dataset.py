"""A data set: its rows with their original values, its labels, its schema, and its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.schema import Schema, Value, read_points
from ifonly.schema.tables import import_pandas

SEED = 1122334455
"""The seed of the published experiments."""

BLOCK = 250
"""Each class gives a whole number of blocks of this many rows to the balanced subsample."""

TRAIN_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Columns are read-only arrays of the user's own values, one per feature, in the order of the schema."""

    name: str
    title: str
    columns: dict[str, NDArray[Any]]
    labels: NDArray[np.int64]
    label: str
    meaning: tuple[str, str]
    """The meanings of label 0 and label 1."""
    schema: Schema
    source: str
    licence: str
    attribution: str

    def __len__(self) -> int:
        return len(self.labels)

    def row(self, index: int) -> dict[str, Value]:
        """One row, as names to plain values: what `explain` takes."""
        return {name: column[index].item() for name, column in self.columns.items()}

    def frame(self, *, label: bool = False) -> Any:
        """The features as a pandas DataFrame, with the label as its last column with `label`."""
        frame = import_pandas().DataFrame(self.columns)
        return frame.assign(**{self.label: self.labels}) if label else frame

    def points(self) -> NDArray[np.float64]:
        """All rows as points of the schema, shape (rows, features)."""
        return read_points(self.schema, self.columns)

    def encoded(self) -> NDArray[np.float64]:
        """All rows as a model reads them, shape (rows, encoded columns)."""
        return self.schema.encode(self.points())

    def split(self, *, seed: int = SEED) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Row numbers for training and for testing: as many of each class, shuffled, 70 to 30.

        These are the rows of the published experiments, in their order. Each of the four draws (one per class, the
        shuffle, the split) starts its own generator from the seed, as it does there.
        """
        count = int(np.bincount(self.labels, minlength=2).min()) // BLOCK * BLOCK
        balanced = np.concatenate([_draw(np.flatnonzero(self.labels == c), count, seed) for c in (0, 1)])
        shuffled = _draw(balanced, len(balanced), seed)
        split = _draw(shuffled, len(shuffled), seed)
        test = len(split) - int(TRAIN_SHARE * len(split))
        return split[test:], split[:test]


def _draw(rows: NDArray[np.intp], count: int, seed: int) -> NDArray[np.intp]:
    return rows[np.random.RandomState(seed).permutation(len(rows))[:count]]
