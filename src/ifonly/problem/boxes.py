"""Boxes of a schema as arrays, many at a time: what constraints on single features leave of every feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.constraints import Allowed, Domains, Range
from ifonly.problem.parts import UnrolledColumns
from ifonly.schema import Choice, Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeatureBoxes:
    """One box per row. They may leave more than the constraints that they are made of, never less."""

    schema: Schema
    lower: Floats
    """(box, feature): of numbers."""
    upper: Floats
    allowed: tuple[NDArray[np.bool_], ...]
    """Per feature: (box, option), of choices."""

    @classmethod
    def of(cls, schema: Schema, constraints: Sequence[Sequence[Any]]) -> FeatureBoxes:
        """The boxes of ranges and of lists of allowed options; other constraints are left out."""
        count, places = len(constraints), {feature.name: g for g, feature in enumerate(schema.features)}
        lower, upper = np.full((count, len(schema)), -np.inf), np.full((count, len(schema)), np.inf)
        widths = np.diff(UnrolledColumns(schema).start).tolist()
        allowed = tuple(np.ones((count, width), dtype=bool) for width in widths)
        for i, some in enumerate(constraints):
            for one in some:
                if isinstance(one, Range):
                    g = places[one.feature]
                    lower[i, g], upper[i, g] = max(lower[i, g], one.lower), min(upper[i, g], one.upper)
                elif isinstance(one, Allowed):
                    g = places[one.feature]
                    domains = Domains(lower[i : i + 1, g], upper[i : i + 1, g], allowed[g][i : i + 1])
                    one.restrict(schema.features[g], lower[i : i + 1, g], domains)
                    allowed[g][i] = domains.allowed[0]
        return cls(schema, lower, upper, allowed)

    @classmethod
    def joined(cls, parts: Sequence[FeatureBoxes]) -> FeatureBoxes:
        """Boxes of one schema, some after others."""
        if len(parts) == 1:
            return parts[0]
        lower, upper = (np.concatenate([getattr(one, end) for one in parts]) for end in ("lower", "upper"))
        allowed = tuple(np.concatenate(each) for each in zip(*(one.allowed for one in parts), strict=True))
        return cls(parts[0].schema, lower, upper, allowed)

    def __len__(self) -> int:
        return len(self.lower)

    def holding(self, g: int, value: float) -> NDArray[np.bool_]:
        """Which boxes hold rows with this value of feature g (of a choice: the number of the option)."""
        if isinstance(self.schema.features[g], Choice):
            return self.allowed[g][:, int(value)]
        return np.asarray((self.lower[:, g] <= value) & (value <= self.upper[:, g]))
