"""Inputs of a torch module: one table of the schema's encoded columns, several tensors, or a dictionary of them.

forward(x)             the encoded columns, in order
forward(num, cat)      by name: a feature, or what `inputs` says
forward(batch)         where it reads batch["age"]: by those names
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.column_tables import ColumnTable
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.named_inputs import NamedInput, proposal
from ifonly.model.kind import Precision
from ifonly.model.rounding import column_box
from ifonly.schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TorchInputs:
    """The arguments of a module; none for one table of all encoded columns. `keyed`: they are in a dictionary."""

    schema: Schema
    entries: tuple[NamedInput, ...] = ()
    keyed: bool = False
    indexed: frozenset[str] = frozenset()
    """Inputs that are looked up as they come: whole numbers."""

    def arguments(self, points: Floats, precision: Precision) -> tuple[Any, ...]:
        """What the module is called with, for many points."""
        encoded = np.atleast_2d(self.schema.encode(points))
        kind = getattr(torch, precision)
        if not self.entries:
            return (torch.from_numpy(encoded).to(kind),)
        given = {one.name: self._tensor(one, points, encoded, kind) for one in self.entries}
        return (given,) if self.keyed else tuple(given.values())

    def _tensor(self, one: NamedInput, points: Floats, encoded: Floats, kind: Any) -> Any:
        values = torch.from_numpy(np.ascontiguousarray(one.values(self.schema, points, encoded)))
        typed = values.to(torch.int64) if self.is_whole(one) else values.to(kind)
        return typed[:, 0] if one.flat else typed

    def is_whole(self, one: NamedInput) -> bool:
        return one.whole(self.schema) or (one.name in self.indexed and one.integers(self.schema))

    def tables(self) -> dict[str, ColumnTable]:
        """Each input by its name, as functions of the schema's row."""
        arithmetic = Columns(self.schema)
        encoded = Flow.of(len(self.schema.columns), *column_box(self.schema))
        if not self.entries:
            columns = tuple(arithmetic.encoded(j) for j in range(len(self.schema.columns)))
            return {"": ColumnTable(columns, arithmetic, encoded)}
        return {
            one.name: ColumnTable(one.table(arithmetic), arithmetic, encoded, one.flat, self.is_whole(one))
            for one in self.entries
        }


def torch_inputs(graph: fx.Graph, schema: Schema, named: dict[str, Any]) -> TorchInputs:
    """The inputs of a traced module, held against the schema."""
    given = [node for node in graph.nodes if node.op == "placeholder"]
    required = [node for node in given if not node.args or str(node.target) in named]
    if not required:
        raise ModelError("The module takes no input.")
    keys = _keys(required[0]) if len(required) == 1 else []
    if len(required) == 1 and not keys and str(required[0].target) not in named:
        _no_others([str(required[0].target)], named)
        return TorchInputs(schema)
    names = keys or [str(node.target) for node in required]
    entries = named_entries(names, schema, named)
    return TorchInputs(schema, entries, bool(keys), frozenset(_indexed(required, keys)))


def named_entries(names: Sequence[str], schema: Schema, named: dict[str, Any]) -> tuple[NamedInput, ...]:
    """What inputs of these names hold: as `named` says, or the feature of the same name."""
    _no_others(names, named)
    unknown = [name for name in names if name not in named and name not in schema.names]
    if unknown:
        raise UnsupportedModel(
            f"The module takes the inputs {', '.join(map(repr, names[:6]))}, of which {unknown[0]!r} is no feature of "
            f"the schema; say which features each one holds: {proposal(unknown, schema)}.",
            operation=unknown[0],
        )
    return tuple(NamedInput.of(name, named.get(name, name), schema) for name in names)


def _no_others(names: Sequence[str], named: dict[str, Any]) -> None:
    wrong = [name for name in named if name not in names]
    if wrong:
        raise ModelError(f"The model has no input '{wrong[0]}'; its inputs are {', '.join(map(repr, names[:6]))}.")


def _keys(node: fx.Node) -> list[str]:
    """The names by which a dictionary is read; none where it is no dictionary."""
    return list(dict.fromkeys(key for user in node.users if (key := key_of(user, node)) is not None))


def key_of(user: fx.Node, node: fx.Node) -> str | None:
    """The name that `node["name"]` reads."""
    reads = user.target is operator.getitem and user.args[0] is node
    return user.args[1] if reads and isinstance(user.args[1], str) else None


def _indexed(nodes: Sequence[fx.Node], keys: Sequence[str]) -> list[str]:
    """The inputs that go into a look-up as they come."""
    if keys:
        readers = {str(key_of(user, nodes[0])): user for user in nodes[0].users}
    else:
        readers = {str(node.target): node for node in nodes}
    module = nodes[0].graph.owning_module
    found = []
    for name, node in readers.items():
        for user in node.users:
            child = module.get_submodule(str(user.target)) if module is not None and user.op == "call_module" else None
            if isinstance(child, torch.nn.Embedding) or user.target is torch.nn.functional.embedding:
                found.append(name)
    return found
