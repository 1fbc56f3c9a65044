"""Small finite spaces: every favourable row, tabulated once for the question, then scanned for each person."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question
from ifonly.schema import Choice, Integer

CHUNK = 1 << 12


@dataclass(frozen=True)
class Table:
    """Points that the deployed model could call favourable, and which of them surely are.

    The scores are computed here, off by e: could be is score >= margin - E - e.
    """

    points: NDArray[np.float64]
    surely: NDArray[np.bool_]


def favourable_rows(question: Question, *, most: int) -> Table | None:
    """The table, or None when the space is infinite or has more than `most` rows."""
    values: list[list[float]] = []
    for feature in question.schema.features:
        if isinstance(feature, Choice):
            values.append([float(i) for i in range(len(feature.options))])
        elif isinstance(feature, Integer):
            values.append([feature.lower + feature.step * k for k in range(feature.steps + 1)])
        else:
            return None
        if math.prod(len(v) for v in values) > most:
            return None
    c, d = question.conditions
    kept, surely = [], []
    product = itertools.product(*values)
    while chunk := list(itertools.islice(product, CHUNK)):
        points = np.array(chunk)
        scores = question.model.network.scores(question.schema.encode(points)) @ c.T - d
        could = (scores >= question.target.margin - question.computed_error).all(axis=1)
        kept.append(points[could])
        surely.append((scores[could] >= question.target.margin + question.error).all(axis=1))
    return Table(np.ascontiguousarray(np.concatenate(kept)), np.concatenate(surely))
