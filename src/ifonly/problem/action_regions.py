"""Regions of the causes of trees: unknowns, tied to the causes by linear rules (`causes.tree_equations`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.causes.causal_model import SNAP, CausalModel, value_ends
from ifonly.causes.tree_equations import TreeRegions, cell_of, ends_beside, step_of
from ifonly.errors import RowError
from ifonly.model.flow import Flow
from ifonly.schema import Feature, Integer, Real

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

EXTRA = 2.0**-20
"""Of the size of a range, beyond which bounds are no matter of rounding."""
CLEAR = 8.0
"""Of how far rounding and settling can move a number: the gap between two cells."""


class NumberTie(NamedTuple):
    """A number that a partition looks at: the lowest and the highest number of each region, and of each cell."""

    place: int
    low: Floats
    high: Floats
    cuts: Floats
    cells: tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class RegionTie:
    """One of the partitions of the equation of the feature at `place`, and what ties it to its causes."""

    place: int
    partition: int
    trees: TreeRegions
    causes: NDArray[np.intp]
    """The places of the causes of the trees."""
    features: Sequence[Feature]
    numbers: tuple[NumberTie, ...]
    options: Mapping[int, Mask]
    """By the place of a cause with options that it looks at: (option, region) is it allowed?"""

    @property
    def count(self) -> int:
        """How many regions there are."""
        return len(self.trees.partitions[self.partition].values)

    def of(self, points: Floats) -> NDArray[np.intp]:
        """The region of each point."""
        return np.asarray(self.trees.regions(points[:, self.causes])[:, self.partition])

    def flows(self, found: Mapping[int, Flow], region: Flow) -> list[Flow]:
        """What must not be below 0, from the unrolled columns of the causes and those of the region."""
        ties = []
        for number in self.numbers:
            x, name = found[number.place], self.features[number.place].name
            ties.append(x.plus(region.linear(number.low[None, :], name=name), name=name, sign=-1.0))
            ties.append(region.linear(number.high[None, :], name=name).plus(x, name=name, sign=-1.0))
        for place, allowed in self.options.items():
            name, some = self.features[place].name, np.flatnonzero(~allowed.all(axis=1))
            for k in some.tolist():
                column = found[place].select([k], name=name)
                ties.append(
                    region.linear(allowed[None, k].astype(np.float64), name=name).plus(column, name=name, sign=-1.0)
                )
        return ties

    def check_clear(self, points: Floats) -> None:
        """Raise where a person's number is in a gap between two cells."""
        for tie in self.numbers:
            numbers, name = points[:, tie.place], self.features[tie.place].name
            cells, (low, high) = cell_of(tie.cuts, numbers), tie.cells
            for number in numbers[(numbers < low[cells]) | (numbers > high[cells])].tolist():
                raise RowError(
                    f"Feature '{name}' is {number!r}, so near to a number at which trees part it that rounding decides "
                    f"what follows from it; round it to fewer digits.",
                    feature=name,
                )


def region_ties(causes: CausalModel, following: Iterable[int], deviation: Floats) -> tuple[RegionTie, ...]:
    """The partitions of the trees from which these features follow; `deviation`: how far rounding and settling can move
    each feature."""
    features, found = causes.schema.features, []
    for g in following:
        trees, places = causes.compiled[g].trees, causes.compiled[g].places
        if trees is None:
            continue
        for k, partition in enumerate(trees.partitions):
            numbers, options = [], {}
            for j, p in enumerate(places.tolist()):
                columns = partition.columns[:, trees.block(j)]
                cuts = trees.cuts[j]
                if cuts is None:
                    options[p] = columns.T
                elif not columns.all():
                    low, high = ends_of_cells(features[p], cuts, float(deviation[p]))
                    last = columns.shape[1] - 1 - columns[:, ::-1].argmax(axis=1)
                    numbers.append(NumberTie(p, low[columns.argmax(axis=1)], high[last], cuts, (low, high)))
            found.append(RegionTie(g, k, trees, places, features, tuple(numbers), options))
    return tuple(found)


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
