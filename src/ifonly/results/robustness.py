"""How much of a model may change before the decision about a row does: weights of a network, trees of an ensemble."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """Every network whose weights are each within `lower` of the model's decides the row as asked (proven); one within
    `upper` does not (found, and evaluated). `relative`: both are shares of each weight. `exact`: the two are as good as
    equal. `refusing`: (weight, bias) of each layer of the network that was found.
    """

    lower: float
    upper: float
    relative: bool = False
    exact: bool = False
    refusing: Sequence[tuple[Floats, Floats]] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        upper = self.upper if math.isfinite(self.upper) else None
        return {"lower": self.lower, "upper": upper, "relative": self.relative, "exact": self.exact}

    def __str__(self) -> str:
        found = (
            f"a network within {self._shown(self.upper)} decides otherwise (found)"
            if math.isfinite(self.upper)
            else "no network was found that decides otherwise"
        )
        return f"Every network with weights within {self._shown(self.lower)} decides the same (proven); {found}."

    def _shown(self, delta: float) -> str:
        return f"{100.0 * delta:.4g} %" if self.relative else f"{delta:.4g}"


@dataclass(frozen=True, kw_only=True)
class TreeRobustness:
    """Whichever `removals` of the `trees` are removed, the others decide the row as asked; without those of `deciding`,
    one more, they do not (None: any number can be removed). Exact: a sort of what each tree adds.
    """

    removals: int
    trees: int
    deciding: Sequence[int] | None = None

    def to_dict(self) -> dict[str, Any]:
        deciding = None if self.deciding is None else list(self.deciding)
        return {"removals": self.removals, "trees": self.trees, "deciding": deciding}

    def __str__(self) -> str:
        if self.deciding is None:
            return f"However many of the {self.trees} trees are removed, the others decide the same."
        if self.removals == 0:
            return f"Without a single one of the {self.trees} trees, the others decide otherwise."
        return (
            f"Whichever {self.removals} of the {self.trees} trees are removed, the others decide the same; without "
            f"{len(self.deciding)} of them, they do not."
        )
