"""An audit as data: JSON, and a csv with one line per number."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from ifonly.population.auditing import Audit
from ifonly.population.formats import formula_escaped
from ifonly.population.group import Group
from ifonly.printing import escaped, json_text
from ifonly.report.provenance import Provenance

COLUMNS = ("section", "group", "item", "value", "low", "high")
Line = tuple[Any, ...]
_COUNTS = ("people", "unneeded", "needing", "recourse", "without", "unknown", "unproven")


def audit_data(audit: Audit, provenance: Provenance | None = None) -> dict[str, Any]:
    """Everything that the document says, as plain data."""
    where = None if provenance is None else provenance.to_dict()
    return {"format": "ifonly-audit", "version": 1, **audit.to_dict(), "provenance": where}


def audit_json(audit: Audit, provenance: Provenance | None = None) -> str:
    return json_text(audit_data(audit, provenance), indent=1) + "\n"


def audit_csv(audit: Audit, provenance: Provenance | None = None) -> str:
    """One line per number: section, group, item, value, and the ends of its interval where it has one."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in _lines(audit, provenance):
        writer.writerow([_cell(value) for value in (*line, *[None] * (len(COLUMNS) - len(line)))])
    return file.getvalue()


def _lines(audit: Audit, provenance: Provenance | None) -> Iterator[Line]:
    for group in (*audit.groups, audit.everybody):
        yield from _group(group)
    for one in audit.differences:
        for item, value in one.to_dict().items():
            if item not in ("group", "what"):
                yield "difference", one.group, f"{one.what}: {item}", value
    yield from (
        ("audit", "", item, getattr(audit, item))
        for item in ("by", "target", "failed", "contradictions", "least", "seed")
    )
    if provenance is not None:
        for item, value in provenance.to_dict().items():
            yield "provenance", "", item, json_text(value) if isinstance(value, dict | list) else value


def _group(group: Group) -> Iterator[Line]:
    name, details = group.name, group.details
    data = group.to_dict()
    yield from (("count", name, item, data[item]) for item in _COUNTS)
    yield "share", name, "share", data["share"], *(group.share_interval or ())
    yield "cost", name, "median", data["p50"], *(group.median_interval or ())
    yield "cost", name, "mean", data["mean"], *(group.mean_interval or ())
    yield from (("cost", name, item, data[item]) for item in ("p10", "p25", "p75", "p90"))
    yield from (("change", name, f"{one.move.feature}: {one.move.direction}", one.count) for one in details.moves)
    yield from (("together", name, ", ".join(one.features), one.count) for one in details.together)
    yield from (("blame", name, one.words, one.count) for one in details.blame)
    yield from (("open", name, why, count) for why, count in details.stops)
    if details.cover is not None:
        yield from (("action", name, str(action), action.helps) for action in details.cover.actions)
        yield "action", name, "any of them", details.cover.helped, *(details.cover.interval or ())
        yield "action", name, "people asked about", details.cover.people


def _cell(value: Any) -> Any:
    """A cell; text that a spreadsheet would take for a formula begins with a quote."""
    if not isinstance(value, str):
        return value
    return formula_escaped(escaped(value))
