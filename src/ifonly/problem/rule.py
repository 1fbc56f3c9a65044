"""The protocol of constraints on the row as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.parts import Part, UnrolledColumns
from ifonly.schema import Schema
from ifonly.tolerances import FEW


class RowRule(Protocol):
    """Said twice, like every constraint: `allows_row` judges one finished row, `parts` is what the methods search."""

    def check(self, schema: Schema) -> None: ...

    def allows_row(self, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]) -> bool: ...

    def parts(self, columns: UnrolledColumns) -> Sequence[Part]: ...

    def describe(self) -> str: ...


def rows_allowed(
    rule: RowRule, schema: Schema, before: NDArray[np.float64], after: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """`allows_row` of many rows: by the rule's own `allows_rows`, where it has one."""
    many = getattr(rule, "allows_rows", None)
    if many is not None and len(after) >= FEW:
        return np.asarray(many(schema, before, after))
    pairs = ((one, one) for one in after) if before is after else zip(before, after, strict=True)
    return np.array([rule.allows_row(schema, one, other) for one, other in pairs], dtype=np.bool_)


def is_row_rule(constraint: Any) -> TypeGuard[RowRule]:
    return hasattr(constraint, "allows_row") and hasattr(constraint, "parts")
