"""Cells of numbers that equations of trees look at: where they are parted, and how far each cell goes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ifonly.causes.causal_model import SNAP, CausalModel, value_ends
from ifonly.causes.tree_equations import cell_of, ends_beside, step_of
from ifonly.errors import RowError
from ifonly.schema import Feature, Integer, Real

Floats = NDArray[np.float64]

EXTRA = 2.0**-20
"""Of the size of a range, beyond which bounds are no matter of rounding."""
CLEAR = 8.0
"""Of how far rounding and settling can move a number: the gap between two cells."""


def cuts_of(causes: CausalModel, following: Iterable[int]) -> dict[int, Floats]:
    """By the places of the numbers that trees look at, from which these features follow: where they part them."""
    found: dict[int, Floats] = {}
    for g in following:
        equation = causes.compiled[g]
        for p, cuts in zip(equation.places.tolist(), equation.cuts, strict=False):
            if cuts is not None and len(cuts):
                found[p] = np.union1d(found.get(p, cuts), cuts)
    return dict(sorted(found.items()))


def ends_of_cells(feature: Feature, cuts: Floats, deviation: float) -> tuple[Floats, Floats]:
    """The lowest and the highest number of each cell, clear of rounding: between two cells there is a gap, which is
    beyond the cut, since the cut itself may be somebody's number."""
    assert isinstance(feature, Real | Integer)
    (low, high), step = value_ends(feature), step_of(feature)
    room = EXTRA * (1.0 + abs(low) + abs(high))
    if step is None:
        gap = max(SNAP * max(abs(low), abs(high), high - low), CLEAR * deviation)
        last, first = cuts + gap / 4, cuts + gap * 3 / 4
    else:
        last, first = ends_beside(feature, cuts)
        last, first = last + step / 4, first - step / 4
    return np.array([low - room, *first]), np.array([*last, high + room])


def check_clear(feature: Feature, numbers: Floats, cells: NDArray[np.intp], ends: tuple[Floats, Floats]) -> None:
    """Raise where a person's number is in a gap between two cells."""
    low, high = ends
    for number in numbers[(numbers < low[cells]) | (numbers > high[cells])].tolist():
        raise RowError(
            f"Feature '{feature.name}' is {number!r}, so near to a number at which trees part it that rounding decides "
            f"what follows from it; round it to fewer digits.",
            feature=feature.name,
        )


def merging(cuts: Floats, finer: Floats) -> Floats:
    """The matrix from columns of the cells of more cuts to those of these."""
    own = cell_of(cuts, np.append(finer, np.inf))
    return (own == np.arange(len(cuts) + 1)[:, None]).astype(np.float64)
