"""What a question is about: the model and the rows, from files or from a shipped data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ifonly.cli.question import listed
from ifonly.cli.tables import Table, read_table
from ifonly.errors import FileError, ModelError, QuestionError, RowError
from ifonly.model import Model, network_model
from ifonly.schema import Schema, load_schema

PICKLES = (".pkl", ".pickle", ".joblib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`rows` maps row numbers of the file (or of the test split) to rows; `data` is what scales are computed from."""

    model: Model
    rows: Mapping[int, dict[str, Any]]
    data: dict[str, list[Any]] | None


def read_source(options: Mapping[str, Any]) -> Source:
    """Files where they are given, the data set for the rest."""
    name = options["dataset"]
    if name is None:
        for option in ("model", "schema", "rows"):
            if options[f"{option}_file"] is None:
                raise QuestionError(f"Say which {option} with --{option} FILE, or take a shipped one: --dataset NAME.")
    table, data = _tables(options)
    model = _model(options)
    names = tuple(listed(options["classes"])) if options["classes"] else ()
    if names:
        model = replace(model, classes=names)
    check_columns(model.schema, table, options["rows_file"] or name)
    if data is not None:
        check_columns(model.schema, data, options["data_file"] or name)
    return Source(
        model=model,
        rows=_chosen(table, options),
        data=None if data is None else {name: data.column(name) for name in model.schema.names},
    )


def load_any(path: str, schema: Schema, *, unsafe_pickle: bool) -> Model:
    """A model file of any kind; a pickle only when that was asked for."""
    from ifonly.model import importers

    if Path(path).suffix not in PICKLES:
        return importers.load_model(path, schema)
    if not unsafe_pickle:
        raise ModelError(
            f"'{path}' is a pickle, which runs any code it contains: if you trust the file, add --unsafe-pickle."
        )
    load_pickle = getattr(importers, "load_pickle", None)
    if load_pickle is None:
        raise ModelError("This ifonly cannot read pickled models; convert the model to ONNX.")
    model: Model = load_pickle(path, schema)
    return model


def check_columns(schema: Schema, table: Table, file: str) -> None:
    """A table that lacks a column is wrong as a whole, not row by row."""
    for name in schema.names:
        if name not in table.columns:
            shown = ", ".join(table.columns[:8]) + (", ..." if len(table.columns) > 8 else "")
            raise RowError(f"'{file}' has no column '{name}'; it has {shown}.", feature=name)


def _model(options: Mapping[str, Any]) -> Model:
    name, file = options["dataset"], options["model_file"]
    own = None if options["schema_file"] is None else load_schema(options["schema_file"])
    if own is not None and file is not None:
        return load_any(file, own, unsafe_pickle=options["unsafe_pickle"])
    from ifonly.cli.shipped import network

    shipped = network(name)
    if file is not None:
        return load_any(file, shipped.schema, unsafe_pickle=options["unsafe_pickle"])
    return shipped if own is None else network_model(shipped.network, own, classes=shipped.classes)


def _tables(options: Mapping[str, Any]) -> tuple[Table, Table | None]:
    """The rows to ask about, and the data for scales."""
    rows, data = options["rows_file"], options["data_file"]
    if options["dataset"] is None:
        return read_table(rows), None if data is None else read_table(data)
    from ifonly import datasets
    from ifonly.cli.shipped import test_table, train_table

    dataset = datasets.load(options["dataset"])
    scaled = options["scale"] != "range"
    return (
        test_table(dataset) if rows is None else read_table(rows),
        read_table(data) if data is not None else train_table(dataset) if scaled else None,
    )


def _chosen(table: Table, options: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    numbers = options["chosen"] or range(len(table.rows))
    for number in numbers:
        if number >= len(table.rows):
            raise FileError(f"There is no row {number}: the rows are 0 to {len(table.rows) - 1}.")
    return {number: table.rows[number] for number in list(dict.fromkeys(numbers))[: options["first"]]}
