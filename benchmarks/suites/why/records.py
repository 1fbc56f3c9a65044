"""Records: a line of JSON per model, way and person, added as soon as it is known; what is there is not asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Records:
    """What was measured. A record that a shorter limit ended is measured again."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._kept = path, dict[tuple[str, str, int], dict[str, Any]]()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            record = json.loads(line)
            self._kept[record["model"], record["way"], record["row"]] = record

    def missing(self, model: str, way: str, rows: int, seconds: float) -> Iterator[int]:
        """The people of whom there is no record; then those of whom there is an open one of a shorter limit."""
        known = {row: record for row in range(rows) if (record := self._kept.get((model, way, row))) is not None}
        yield from (row for row in range(rows) if row not in known)
        yield from (row for row, record in known.items() if record["open"] and record["limit"] < seconds)

    def add(self, model: str, way: str, row: int, **what: Any) -> None:
        """Write a record: `open` says that the limit, `limit`, ended it."""
        record = {"model": model, "way": way, "row": row, **what}
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps(record), file=file)
        self._kept[model, way, row] = record

    def of(self, model: str, way: str, rows: int) -> list[dict[str, Any]]:
        """The records of the first people, in order; those that are missing are left out."""
        found = (self._kept.get((model, way, row)) for row in range(rows))
        return [record for record in found if record is not None]
