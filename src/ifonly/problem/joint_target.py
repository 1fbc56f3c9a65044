"""Joint target of several models: each must meet the target of its own.

Their conditions are on one scale each, a power of two by which the rounding errors of all are about as large: what is
allowed for rounding is one number per row, and must be neither too little for one model nor too much for another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model import Model
from ifonly.problem.target import Target, Words

Floats = NDArray[np.float64]

LARGEST_SCALE = 40
"""Of a condition, as a power of two."""


@dataclass(frozen=True, eq=False)
class JointTarget:
    """Targets of the members of a joint model, in its order."""

    models: tuple[Model, ...]
    targets: tuple[Target, ...]

    def check(self, model: Model) -> None:
        for own, target in zip(self.models, self.targets, strict=True):
            target.check(own)

    @cached_property
    def scales(self) -> Floats:
        """One per member."""
        errors = np.array([_error(own, target) for own, target in zip(self.models, self.targets, strict=True)])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            powers = np.round(np.log2(errors.max() / errors))
        usable = np.isfinite(powers)
        return np.where(usable, 2.0 ** np.minimum(np.where(usable, powers, 0.0), LARGEST_SCALE), 1.0)

    @cached_property
    def _rows(self) -> tuple[Floats, Floats, Floats]:
        """C, d and margins."""
        outputs = [own.outputs for own in self.models]
        rows, ends, margins, before = [], [], [], 0
        for own, target, scale, width in zip(self.models, self.targets, self.scales.tolist(), outputs, strict=True):
            c, d = target.conditions(own)
            block = np.zeros((len(c), sum(outputs)))
            block[:, before : before + width] = scale * c
            rows.append(block)
            ends.append(scale * d)
            margins.append(np.full(len(d), scale * target.margin))
            before += width
        return np.concatenate(rows), np.concatenate(ends), np.concatenate(margins)

    def conditions(self, model: Model) -> tuple[Floats, Floats]:
        return self._rows[0], self._rows[1]

    @property
    def margins(self) -> Floats:
        """One per condition."""
        return self._rows[2]

    @property
    def margin(self) -> float:
        """The largest."""
        return float(max(target.margin for target in self.targets))

    def met(self, model: Model, scores: Floats, margin: float | None = None) -> NDArray[np.bool_]:
        """Which rows of the members' own scores, side by side, meet all targets."""
        ends = np.cumsum([own.outputs for own in self.models])
        parts = np.split(scores, ends[:-1], axis=1)
        met = [t.met(own, part, margin) for own, t, part in zip(self.models, self.targets, parts, strict=True)]
        return np.asarray(np.all(met, axis=0))

    def part(self, places: Sequence[int]) -> JointTarget:
        """Some of the models, with their targets."""
        return JointTarget(tuple(self.models[k] for k in places), tuple(self.targets[k] for k in places))

    def of(self, models: Sequence[Model]) -> JointTarget:
        """The same targets, of other forms of the same models."""
        return JointTarget(tuple(models), self.targets)

    def describe(self) -> str:
        return " and ".join(target.describe() for target in self.targets)

    def words(self) -> Words:
        return Words("the decisions", self.describe())

    def to_dict(self) -> dict[str, Any]:
        """What was asked; nothing reads it back."""
        return {"all_of": [target.to_dict() for target in self.targets]}


def _error(model: Model, target: Target) -> float:
    c, _ = target.conditions(model)
    error = float((np.abs(c) @ model.error).max(initial=0.0))
    return error if math.isfinite(error) else 0.0
