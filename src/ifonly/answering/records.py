"""Table rows to records: the task that a worker of a run is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ifonly.answering.answerer import Answerer
from ifonly.answering.values import SearchSettings
from ifonly.errors import RowError
from ifonly.problem import Query
from ifonly.results import Failed
from ifonly.results.records import Records, merged, records_of
from ifonly.schema import read_points


@dataclass(frozen=True, slots=True)
class RecordsOf:
    """Answers the rows of tables with one query, and gives the records."""

    answerer: Answerer
    query: Query
    settings: SearchSettings

    def __call__(self, table: Any, first: int) -> Records:
        """The records of some rows; the number of the first of them is `first`."""
        errors: list[RowError | None] = []
        points = read_points(self.answerer.schema, table, errors=errors, first=first)
        good = [i for i, error in enumerate(errors) if error is None]
        wrong = {i: Failed.of(first + i, error) for i, error in enumerate(errors) if error is not None}
        parts: list[tuple[Sequence[int], Records]] = [(list(wrong), records_of(list(wrong.values())))] if wrong else []
        if good:
            rows = [first + i for i in good]
            parts.append((good, self.answerer.records(points[good], rows, self.query, self.settings)))
        return merged(len(errors), parts)
