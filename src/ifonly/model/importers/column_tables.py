"""Tables of columns before a network computes with them: selected, cast to whole numbers, looked up in embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ifonly.model.flow import Flow
from ifonly.model.importers.column_flow import flow_of
from ifonly.model.importers.column_kinds import Column
from ifonly.model.importers.columns import Columns


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """Columns, before they are mixed. `flat`: of shape (rows,), where there is one; `whole`: whole numbers."""

    columns: tuple[Column, ...]
    arithmetic: Columns
    encoded: Flow
    flat: bool = False
    whole: bool = False

    def flow(self, where: str) -> Flow:
        """The same as values of a network."""
        return flow_of(self.columns, self.arithmetic, self.encoded, where)

    def of(self, columns: Sequence[Column], **changes: Any) -> ColumnTable:
        return replace(self, columns=tuple(columns), **changes)
