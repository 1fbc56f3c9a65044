"""Rows nearer than a claimed bound: the search leaves rows on the margin open, and exact arithmetic does not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ifonly.certificate.check.box import Extent
from ifonly.certificate.check.statement import Statement


class Nearer(Exception):
    """A favourable row nearer than the claimed lower bound, in exact arithmetic. Carries the row."""

    def __init__(self, point: tuple[float, ...]) -> None:
        super().__init__(point)
        self.point = point


def nearer(statement: Statement, point: tuple[float, ...], radius: int | None) -> bool:
    """Is this an allowed favourable row below the radius?"""
    if any(value < 0 for value in statement.conditions(point)):  # the quickest of the three
        return False
    if radius is not None and statement.cost_of_changes(point) * 2**statement.cost_unit >= radius:
        return False
    return not statement.allows(point)


def corner_row(statement: Statement, extent: Extent) -> tuple[float, ...]:
    """The cheapest row of a box: of a number above a threshold, the next float64."""
    row = []
    for g, before in enumerate(statement.factual):
        if statement.is_choice[g]:
            price = statement.option_costs[g]
            row.append(float(min(extent.options[g], key=price.__getitem__)))
            continue
        change = max(extent.low[g], min(extent.high[g], 0))
        value = float(Fraction(before) + Fraction(change, 1 << statement.grid))
        if g in extent.above and value <= extent.above[g]:
            value = float(np.nextafter(extent.above[g], np.inf))
        row.append(value)
    return tuple(row)


def raise_if_nearer(statement: Statement, extent: Extent, radius: int | None) -> None:
    """A favourable row of the box that is nearer than claimed, if its corner is one."""
    row = corner_row(statement, extent)
    if nearer(statement, row, radius):
        raise Nearer(row)
