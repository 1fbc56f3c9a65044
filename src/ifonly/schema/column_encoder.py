"""Column encoder: points as the columns that a model reads, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import RowError
from ifonly.schema.features import Choice, Feature, Numeric


@dataclass(frozen=True)
class ColumnEncoder:
    """Where each encoded column comes from. An option's code is looked up in one table for all columns."""

    source: NDArray[np.intp]
    """For each column, its feature."""
    coded: NDArray[np.intp]
    """The columns that are codes of options."""
    first: NDArray[np.intp]
    """For each of these, where its codes begin in the table."""
    table: NDArray[np.float64]

    @staticmethod
    def of(features: Sequence[Feature], feature_columns: Sequence[NDArray[np.intp]]) -> ColumnEncoder:
        """The encoding of features, each with its columns."""
        source = np.zeros(sum(map(len, feature_columns)), dtype=np.intp)
        codes: list[tuple[int, NDArray[np.float64]]] = []
        for i, (feature, columns) in enumerate(zip(features, feature_columns, strict=True)):
            source[columns] = i
            if isinstance(feature, Choice):
                codes += [(int(column), feature.codes[:, k]) for k, column in enumerate(columns.tolist())]
        lengths = [len(one) for _, one in codes]
        first = np.concatenate(([0], np.cumsum(lengths)))[:-1].astype(np.intp)
        table = np.concatenate([one for _, one in codes]) if codes else np.zeros(0)
        return ColumnEncoder(source, np.array([column for column, _ in codes], dtype=np.intp), first, table)

    def encoded(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points (one or many) as columns."""
        many = points if points.ndim == 2 else points[None, :]
        columns = many.take(self.source, axis=1)
        if len(self.coded):
            columns[:, self.coded] = self.table.take(columns.take(self.coded, axis=1).astype(np.intp) + self.first)
        return columns if points.ndim == 2 else columns[0]


def decoded(
    encoded: NDArray[np.float64], features: Sequence[Feature], feature_columns: Sequence[NDArray[np.intp]]
) -> NDArray[np.float64]:
    """The points of encoded rows; a RowError when a row is not the encoding of any point."""
    points = np.empty((len(encoded), len(features)))
    for i, (feature, columns) in enumerate(zip(features, feature_columns, strict=True)):
        block = encoded[:, columns]
        if isinstance(feature, Numeric):
            points[:, i] = block[:, 0]
            for r in np.flatnonzero(~feature.fits(block[:, 0])).tolist():
                points[r, i] = feature.read(block[r, 0], row=r)
        else:
            option = _nearest_option(feature, block)
            points[:, i] = option
            bad = np.flatnonzero((feature.codes[option] != block).any(axis=1))
            if len(bad):
                r = int(bad[0])
                message = (
                    f"Feature '{feature.name}': the encoded columns of row {r} are no option's code: "
                    f"{block[r].tolist()}."
                )
                raise RowError(message, feature=feature.name, row=r)
    return points


def _nearest_option(feature: Choice, block: NDArray[np.float64]) -> NDArray[np.intp]:
    """The option that encoded columns can stand for, if they stand for any."""
    match feature.encoding:
        case "onehot":
            return block.argmax(axis=1)
        case "dummy":
            return np.where(block.any(axis=1), block.argmax(axis=1) + 1, 0)
        case "thermometer":
            guess = block.sum(axis=1) - 1
        case "code":
            guess = block[:, 0]
    most = len(feature.options) - 1
    return np.clip(np.nan_to_num(guess, nan=0.0, posinf=most, neginf=0.0), 0, most).astype(np.intp)
