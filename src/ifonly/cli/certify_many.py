"""`ifonly certify` of many rows: a collection, written row by row, that can be continued."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ifonly.cli import codes
from ifonly.cli.console import note

if TYPE_CHECKING:
    from ifonly.certificate.collection import CollectionWriter
    from ifonly.explainer import Explainer
    from ifonly.problem import Query

EVERY = 5.0
"""Seconds between two lines about how far it is."""


def certify_many(
    explainer: Explainer, rows: Mapping[int, dict[str, Any]], query: Query, output: str, *, resume: bool
) -> dict[str, Any]:
    """Write the certificates of all rows that are not in the file yet; how many, and how many have none."""
    from ifonly.certificate.collection import CollectionWriter

    shared = shared_parts(explainer)
    asked = f"{query.to_json()} {[one.describe() for one in explainer.constraints_for(query.constraints)]}"
    with CollectionWriter(output, shared, hashlib.sha256(asked.encode()).hexdigest(), resume=resume) as collection:
        before = len(collection.done)
        written = _write(explainer, {i: row for i, row in rows.items() if i not in collection.done}, query, collection)
    return {"output": output, "rows": len(rows), "there_before": before, **written}


def shared_parts(explainer: Explainer) -> dict[str, Any]:
    """What the certificates of a model have in common; an error where a certificate cannot state it."""
    from ifonly.certifying.statement import stated_model, stated_schema
    from ifonly.errors import UnsupportedQuestion

    model = stated_model(explainer.model)
    if model is None:
        raise UnsupportedQuestion(f"A certificate cannot state {explainer.model.function.name} yet; `explain` can.")
    return {"schema": stated_schema(explainer.schema), "model": model}


def _write(
    explainer: Explainer, rows: Mapping[int, dict[str, Any]], query: Query, collection: CollectionWriter
) -> dict[str, int]:
    from ifonly.certifying.certificates import certify
    from ifonly.errors import IfonlyError

    told, counts = time.monotonic(), {"written": 0, "without": 0}
    for done, (number, row) in enumerate(rows.items()):
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            note(f"{done:,} of {len(rows):,} rows.")
        try:
            collection.add(number, certify(explainer, row, query))
            counts["written"] += 1
        except IfonlyError as error:
            collection.refuse(number, str(error))
            counts["without"] += 1
    return counts


def exit_code(counts: Mapping[str, Any]) -> int:
    """All are written, or some people have no certificate."""
    return codes.PROVEN if not counts["without"] else codes.LIMIT
