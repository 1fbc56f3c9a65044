"""Held features: `Fixed` for the features that are named at the time of the search, not when the question is made.

A question whose features are all `Held` is prepared once and searched for any set of them:

    with holding({"Age", "Income"}):
        solver.nearest(...)         # among the rows with the person's own age and income

The names apply to what is called inside, in the same thread (see `contextvars`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.constraints import Domains, Fixed
from ifonly.problem.words import show_name
from ifonly.schema import Feature, Schema

_NAMES: ContextVar[frozenset[str]] = ContextVar("ifonly_held", default=frozenset())


@contextmanager
def holding(names: Collection[str]) -> Iterator[None]:
    """The features of these names keep their values, of those that are `Held`; all others may change."""
    token = _NAMES.set(frozenset(names))
    try:
        yield
    finally:
        _NAMES.reset(token)


@dataclass(frozen=True, slots=True)
class Held:
    """The feature keeps its value while it is held."""

    feature: str

    @property
    def now(self) -> bool:
        return self.feature in _NAMES.get()

    def check(self, schema: Schema) -> None:
        schema.index(self.feature)

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return before == after or not self.now

    def restrict(self, feature: Feature, before: NDArray[np.float64], domains: Domains) -> None:
        if self.now:
            Fixed(self.feature).restrict(feature, before, domains)

    def describe(self) -> str:
        return f"{show_name(self.feature)} is fixed while it is held"
