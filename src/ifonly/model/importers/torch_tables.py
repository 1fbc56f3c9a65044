"""Tables of columns before a torch module computes with them: selected, cast to whole numbers, looked up.

A module with embeddings or with several inputs reads tables of columns (see `columns`). Operations of this list keep
columns apart; any other gets the table as a flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ifonly.model.flow import Flow
from ifonly.model.importers.column_flow import looked_up
from ifonly.model.importers.column_kinds import Column, Line, Options
from ifonly.model.importers.column_tables import ColumnTable
from ifonly.model.importers.shaped import Shaped, in_shape
from ifonly.model.importers.torch_call import TorchCall, number
from ifonly.schema import Integer


def _getitem(call: TorchCall, table: ColumnTable, index: Any) -> ColumnTable:
    """x[:, i], x[:, a:b], x[:, [i, j]], x[..., i], x[:, i, None] not."""
    if not isinstance(index, tuple) or len(index) != 2 or index[0] not in (slice(None), Ellipsis) or table.flat:
        raise call.refuse("selects rows")
    chosen = np.arange(len(table.columns))[number_list(index[1])]
    return table.of([table.columns[j] for j in np.atleast_1d(chosen).tolist()], flat=chosen.ndim == 0)


def number_list(index: Any) -> Any:
    """An index as numpy takes it."""
    return index.numpy() if isinstance(index, torch.Tensor) else index


def _whole(call: TorchCall, table: ColumnTable, *others: Any, **options: Any) -> ColumnTable:
    """Cast to whole numbers, of what has no others."""
    for column in table.columns:
        owner = table.arithmetic.number_of(column) if isinstance(column, Line) else None
        found = owner is not None and isinstance(table.arithmetic.schema.features[owner], Integer)
        if isinstance(column, Options):
            numbers = table.arithmetic.numbers(column, call.name)
            found = bool((numbers == np.round(numbers)).all())
        if not found:
            raise call.refuse(
                f"rounds {table.arithmetic.describe(column)} to whole numbers; where it is the number of an option, "
                f"declare the feature with encoding='code'"
            )
    return replace(table, whole=True)


def _float(call: TorchCall, table: ColumnTable, *others: Any, **options: Any) -> ColumnTable:
    return replace(table, whole=False)


def _to(call: TorchCall, table: ColumnTable, *others: Any, **options: Any) -> ColumnTable:
    kinds = [other for other in (*others, *options.values()) if isinstance(other, torch.dtype)]
    if not kinds:
        return table
    return _float(call, table) if kinds[0].is_floating_point else _whole(call, table)


def _squeeze(call: TorchCall, table: ColumnTable, dim: Any = None) -> ColumnTable:
    if len(table.columns) != 1 or dim not in (None, 1, -1):
        raise call.refuse("removes a dimension that may hold rows")
    return replace(table, flat=True)


def _unsqueeze(call: TorchCall, table: ColumnTable, dim: int) -> ColumnTable:
    if not table.flat or dim not in (1, -1):
        raise call.refuse("adds a dimension to whole numbers")
    return replace(table, flat=False)


def _add(call: TorchCall, table: ColumnTable, other: Any) -> ColumnTable:
    """Offsets that are added to whole numbers before a look-up in one table for all."""
    shifts = np.broadcast_to(np.ravel(number(other)), (len(table.columns),)).tolist()
    columns: list[Column] = []
    for column, shift in zip(table.columns, shifts, strict=True):
        if not isinstance(column, Options):
            raise call.refuse(f"adds to {table.arithmetic.describe(column)} before it is looked up")
        columns.append(Options(column.feature, table.arithmetic.numbers(column, call.name) + shift))
    return table.of(columns)


def _embedding(
    call: TorchCall, table: ColumnTable, weight: Any, padding_idx: Any = None, max_norm: Any = None, *others: Any,
    **options: Any,
) -> Flow | Shaped:  # fmt: skip
    """The row of the weights whose number each column is."""
    if max_norm is not None:
        raise call.refuse("changes its own weights when it is called (max_norm); train it without")
    if not table.whole:
        raise call.refuse("looks up numbers that are no integers; cast them with .long() first")
    found = table.of(_looked_up(call, table, number(weight))).flow(call.name)
    return found if table.flat else in_shape(found, (len(table.columns), len(weight[0])))


def _looked_up(call: TorchCall, table: ColumnTable, weight: NDArray[np.float64]) -> list[Column]:
    return [one for column in table.columns for one in looked_up(column, weight, table.arithmetic, call.name)]


def _one_hot(call: TorchCall, table: ColumnTable, num_classes: int = -1) -> ColumnTable:
    """One column per number."""
    if not table.flat or num_classes < 1:
        raise call.refuse("needs one column, and num_classes")
    return table.of(_looked_up(call, table, np.eye(num_classes)), flat=False)


TABLE_MODULES: dict[type, tuple[Any, ...]] = {nn.Embedding: (_embedding, "weight", "padding_idx", "max_norm")}
LOOK_UPS = (nn.functional.embedding, nn.functional.one_hot)
TABLE_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    nn.functional.embedding: _embedding,
    nn.functional.one_hot: _one_hot,
    torch.squeeze: _squeeze,
    torch.unsqueeze: _unsqueeze,
}
TABLE_METHODS: dict[str, Callable[..., Any]] = {
    "long": _whole,
    "int": _whole,
    "float": _float,
    "double": _float,
    "to": _to,
    "type": _to,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "contiguous": lambda call, table: table,
    "getitem": _getitem,
    "add": _add,
}
"""Methods of tensors; operators by their own names."""


def table_handler(node: Any, child: Any) -> tuple[Any, ...] | None:
    """The handler of an operation whose first argument is a table, and attributes of the module that it takes."""
    if child is not None:
        return next((TABLE_MODULES[c] for c in type(child).__mro__ if c in TABLE_MODULES), None)
    if node.op == "call_function":
        name = {"getitem": "getitem", "add": "add"}.get(getattr(node.target, "__name__", ""))
        handler = TABLE_FUNCTIONS.get(node.target) or (TABLE_METHODS[name] if name else None)
    else:
        handler = TABLE_METHODS.get(str(node.target))
    return None if handler is None else (handler,)


def takes_tables(module: nn.Module, graph: Any) -> bool:
    """Does the module look something up?"""
    children = (module.get_submodule(str(node.target)) for node in graph.nodes if node.op == "call_module")
    functions = (node.target for node in graph.nodes if node.op == "call_function")
    return any(isinstance(child, nn.Embedding) for child in children) or any(f in LOOK_UPS for f in functions)
