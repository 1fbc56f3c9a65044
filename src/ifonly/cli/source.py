"""What a question is about: the model and the rows, from files or from a shipped data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifonly.cli.question import listed
from ifonly.cli.tables import Table, read_table
from ifonly.errors import FileError, ModelError, QuestionError, RowError
from ifonly.model import Model, network_model
from ifonly.schema import Schema, load_schema


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
    check_columns(model.schema, table, options["rows_file"] or name)
    if data is not None:
        check_columns(model.schema, data, options["data_file"] or name)
    return Source(
        model=model.as_log_odds() if options["log_odds"] else model,
        rows=_chosen(table, options),
        data=None if data is None else {name: data.column(name) for name in model.schema.names},
    )


def load_any(
    path: str, schema: Schema, *, classes: tuple[str, ...] = (), regression: bool = False, unsafe_pickle: bool = False
) -> Model:
    """A model file of any kind; a pickle only when that was asked for."""
    from ifonly.model.importers import load_model, load_pickle
    from ifonly.model.importers.pickles import ENDINGS

    if Path(path).suffix.lower() not in ENDINGS:
        return load_model(path, schema, classes=classes, regression=regression)
    if not unsafe_pickle:
        raise ModelError(
            f"'{path}' is a pickle, which runs any code it contains: if you trust the file, add --unsafe-pickle."
        )
    return load_pickle(path, schema, classes=classes, regression=regression)


def check_columns(schema: Schema, table: Table, file: str) -> None:
    """A table that lacks a column is wrong as a whole, not row by row."""
    for name in schema.names:
        if name not in table.columns:
            shown = ", ".join(table.columns[:8]) + (", ..." if len(table.columns) > 8 else "")
            raise RowError(f"'{file}' has no column '{name}'; it has {shown}.", feature=name)


def _model(options: Mapping[str, Any]) -> Model:
    file = options["model_file"]
    own = None if options["schema_file"] is None else load_schema(options["schema_file"])
    classes = tuple(listed(options["classes"])) if options["classes"] else ()
    if file is not None:
        from ifonly import datasets

        schema = own if own is not None else datasets.network(options["dataset"]).schema
        pickled, regression = options["unsafe_pickle"], options["regression"]
        return load_any(file, schema, classes=classes, regression=regression, unsafe_pickle=pickled)
    from ifonly.cli.shipped import network

    shipped = network(options["dataset"])
    names = classes or shipped.classes
    model = network_model(shipped.network, shipped.schema if own is None else own, classes=names)
    return model if shipped.probabilities is None else model.as_log_odds()


def _tables(options: Mapping[str, Any]) -> tuple[Table, Table | None]:
    """The rows to ask about, and the data for scales."""
    rows, data = options["rows_file"], options["data_file"]
    if options["dataset"] is None:
        return read_table(rows), None if data is None else read_table(data)
    from ifonly import datasets
    from ifonly.cli.shipped import test_table, train_table

    dataset = datasets.load(options["dataset"])
    scaled = options["scale"] not in (None, "range")
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
