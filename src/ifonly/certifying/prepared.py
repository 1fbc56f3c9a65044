"""Statements that are kept with their model: what is read once serves every later certificate of the same question.

The margin of a certificate depends on the person, by the rounding bound at the row. So a statement of a network is kept
for all margins: only the biases of its last layer depend on them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ifonly.certificate.check.reading import scaled
from ifonly.certificate.check.statement import Statement
from ifonly.certifying.effort import ProofBudget
from ifonly.certifying.forest import ForestCells
from ifonly.certifying.leaves import NetworkFloats, floats_of_rows
from ifonly.model.kind import Kind

MOST_KEPT = 4
"""Questions to one model."""
MOST_FINER = 64
"""Bits by which a margin may be finer than the numbers of the last layer: for more, the statement is read anew."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement without the person, in integers and in floating point, and the bits that it keeps."""

    statement: Statement
    floats: NetworkFloats | ForestCells
    kept: int


_KNOWN: WeakKeyDictionary[Kind, tuple[tuple[Any, Prepared], ...]] = WeakKeyDictionary()
"""Of the models that are in use: the last questions, each with its statement. Threads replace the tuple as a whole."""


def prepared(
    model: Kind, data: dict[str, Any], fine: tuple[int, int], meter: ProofBudget, read: Callable[[], Prepared]
) -> Prepared:
    """What is prepared for this question to this model, at any margin; `read` does it."""
    target = dict(data["target"])
    if "margin" not in target or "log_odds" in target:  # several models, or planes that belong to one answer
        return read()
    margin = float.fromhex(target.pop("margin"))
    key = (fine, target, *(data[part] for part in ("schema", "distance", "constraints")))
    known = _KNOWN.get(model, ())
    for one in known:
        found = with_margin(one[1], margin, data["model"]) if one[0] == key else None
        if found is not None:
            _KNOWN[model] = (one, *(other for other in known if other is not one))
            return replace(found, statement=replace(found.statement, meter=meter))
    made = read()
    _KNOWN[model] = ((key, made), *known[: MOST_KEPT - 1])
    return made


def with_margin(before: Prepared, margin: float, model: dict[str, Any]) -> Prepared | None:
    """The same with another margin; None where that has to be read anew."""
    statement, floats = before.statement, before.floats
    if (margin,) == statement.margins:
        return before
    if model["kind"] != "network" or len(model["layers"]) < 2 or not isinstance(floats, NetworkFloats):
        return None
    old, grid = statement.exponents[-1], statement.grid
    bits = max(old, margin.as_integer_ratio()[1].bit_length() - 1)
    more = bits - old
    if more > MOST_FINER:
        return None
    (old_margin,) = statement.margins
    less = scaled(margin, bits, "the margin") - scaled(old_margin or 0.0, bits, "the margin")
    rows = tuple(tuple(w << more for w in row) for row in statement.weight_rows[-1])
    columns = tuple(tuple(w << more for w in column) for column in statement.weight_columns[-1])
    biases = tuple((b << more) - (less << grid) for b in statement.biases[-1])
    statement = replace(
        statement, margins=(margin,), exponents=(*statement.exponents[:-1], bits),
        weight_rows=(*statement.weight_rows[:-1], rows), weight_columns=(*statement.weight_columns[:-1], columns),
        biases=(*statement.biases[:-1], biases),
    )  # fmt: skip
    moved = copy.copy(floats)
    moved.layers = [*floats.layers[:-1], (floats.layers[-1][0], floats_of_rows([biases], bits + grid)[0])]
    moved.biases = np.concatenate([bias for _, bias in moved.layers])
    return Prepared(statement, moved, before.kept)
