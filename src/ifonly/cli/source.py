"""The model and the rows of a command, from files or from a shipped data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ifonly.cli.given_rows import read_format, table_files, take_rows
from ifonly.cli.query_arguments import listed
from ifonly.cli.tables import Table, read_table
from ifonly.errors import FileError, ModelError, QuestionError, RowError
from ifonly.model import Model, network_model
from ifonly.population.sources import FirstRows, FrameRows, RowSource
from ifonly.printing import some_of
from ifonly.schema import Schema, load_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`rows` maps row numbers of the file (or of the test split) to rows; `data` is what scales are computed from."""

    model: Model
    rows: Mapping[int, dict[str, Any]]
    data: dict[str, list[Any]] | None


def read_source(options: dict[str, Any]) -> Source:
    """Files where they are given, the data set for the rest."""
    _check_given(options)
    table = read_table(rows_source({**options, "first": None}))
    model = _model(options)
    check_columns(model.schema, table)
    data = scale_data(options, model)
    return Source(model=_with_log_odds(model, options), rows=_chosen(table, options), data=data)


def _check_given(options: dict[str, Any]) -> None:
    if options["dataset"] is None:
        for option in ("model", "schema", "rows")[: 3 if options.get("answers") is None else 2]:
            if options[f"{option}_file"] is None:
                raise QuestionError(f"Say which {option} with --{option} FILE, or take a shipped one: --dataset NAME.")
    take_rows(options)


def read_model(options: dict[str, Any]) -> Model:
    """The model of a query whose rows are read as a stream."""
    _check_given(options)
    return read_stated_model(options)


def read_stated_model(options: dict[str, Any]) -> Model:
    """The model of the options, without its rows."""
    return _with_log_odds(_model(options), options)


def read_one_row(options: dict[str, Any], schema: Schema) -> tuple[int, dict[str, Any]]:
    """The one row of the options, and its number."""
    take_rows(options)
    table = read_table(rows_source({**options, "first": None}))
    check_columns(schema, table)
    rows = _chosen(table, options)
    if len(rows) != 1:
        raise QuestionError(f"A certificate is about one row; choose one of the {len(rows):,} with --row I.")
    return next(iter(rows.items()))


def rows_source(options: Mapping[str, Any]) -> RowSource:
    """The rows to explain as a stream: files, a folder, a pattern; else those of the data set."""
    from ifonly import datasets
    from ifonly.cli.shipped import test_columns

    rows, first = options["rows"], options["first"]
    source: RowSource = FrameRows(test_columns(datasets.load(options["dataset"]))) if rows is None else rows
    return source if first is None else FirstRows(source, first)


def _with_log_odds(model: Model, options: Mapping[str, Any]) -> Model:
    return model.as_log_odds() if options["log_odds"] else model


def scale_data(options: Mapping[str, Any], model: Model) -> dict[str, list[Any]] | None:
    """The columns that scales are computed from, if any are."""
    data = _data(options)
    if data is None:
        return None
    check_columns(model.schema, data)
    return {name: data.column(name) for name in model.schema.names}


def load_any(
    path: str, schema: Schema, *, classes: tuple[str, ...] = (), regression: bool = False, unsafe_pickle: bool = False,
    inputs: Mapping[str, str | list[str]] | None = None,
) -> Model:  # fmt: skip
    """A model file of any kind; a pickle only with --unsafe-pickle."""
    from ifonly.model.importers import load_model, load_pickle
    from ifonly.model.importers.pickles import ENDINGS

    if inputs and Path(path).suffix.lower() != ".onnx":
        raise QuestionError(f"--input is about the inputs of an .onnx file; '{path}' does not end in .onnx.")
    if Path(path).suffix.lower() not in ENDINGS:
        return load_model(path, schema, classes=classes, regression=regression, inputs=inputs or None)
    if not unsafe_pickle:
        raise ModelError(
            f"'{path}' is a pickle, which runs any code it contains: if you trust the file, add --unsafe-pickle."
        )
    return load_pickle(path, schema, classes=classes, regression=regression)


def read_inputs(given: Sequence[str]) -> dict[str, str | list[str]]:
    """`--input NAME=FEATURE,FEATURE`: the features of each input; of one without a comma, the feature alone."""
    found: dict[str, str | list[str]] = {}
    for one in given:
        name, sign, features = one.partition("=")
        names = [feature for feature in listed(features) if feature]
        if not sign or not name.strip() or not names:
            raise QuestionError(f"--input is written as NAME=FEATURE,FEATURE, such as num=age,income; got '{one}'.")
        if name.strip() in found:
            raise QuestionError(f"--input says twice what '{name.strip()}' holds; say it once.")
        found[name.strip()] = names if len(names) > 1 or features.rstrip().endswith(",") else names[0]
    return found


def check_columns(schema: Schema, table: Table) -> None:
    """A table with a missing column is wrong as a whole, not row by row."""
    for name in schema.names:
        if name not in table.columns:
            raise RowError(
                f"{table.description} has no column '{name}'; it has {some_of(table.columns)}.", feature=name
            )


def with_outcomes(model: Model, file: str | None) -> Model:
    """The model with the clauses of `--outcomes`: {"approve": {"en": "the application would have been approved"}}."""
    if file is None:
        return model
    from ifonly.answering.given_model import named_classes
    from ifonly.printing import shown, some_of
    from ifonly.schema.io import read_json

    data = read_json(file, "table of outcomes")
    if not isinstance(data, dict):
        raise QuestionError(f"'{file}' must hold a clause, or clauses by language, for each class; got {shown(data)}.")
    classes = {str(one): one for one in model.classes}
    for name in data:
        if name not in classes:
            raise QuestionError(f"'{file}' names the class {shown(name)}; the classes are {some_of(list(classes))}.")
    _, clauses = named_classes(data)
    return replace(model, outcomes={**model.outcomes, **{classes[name]: one for name, one in clauses.items()}})


def _model(options: Mapping[str, Any]) -> Model:
    return with_outcomes(_bare_model(options), options.get("outcomes"))


def _bare_model(options: Mapping[str, Any]) -> Model:
    file = options["model_file"]
    own = None if options["schema_file"] is None else load_schema(options["schema_file"])
    rules = not options.get("without_rules")
    if own is not None and not rules:
        own = replace(own, rules=())
    classes = class_names(options["classes"])
    if file is not None:
        from ifonly import datasets

        schema = own if own is not None else datasets.network(options["dataset"], rules=rules).schema
        pickled, regression = options["unsafe_pickle"], options["regression"]
        inputs = read_inputs(options.get("inputs") or ())
        return load_any(file, schema, classes=classes, regression=regression, unsafe_pickle=pickled, inputs=inputs)
    from ifonly.cli.shipped import network

    shipped = network(options["dataset"], rules=rules)
    model = network_model(shipped.network, shipped.schema if own is None else own, classes=classes or shipped.classes)
    model = model if classes else replace(model, outcomes=shipped.outcomes)
    return model if shipped.probabilities is None else model.as_log_odds()


def class_names(words: str | None) -> tuple[str, ...]:
    """What `--classes` names."""
    names = tuple(listed(words)) if words is not None else ()
    if words is not None and not names:
        raise QuestionError("--classes names no class; write them with commas, such as --classes deny,approve.")
    return names


def _data(options: Mapping[str, Any]) -> Table | None:
    """The data for scales."""
    if options["data_file"] is not None:
        if options["scale"] in (None, "range"):
            raise QuestionError(
                "--data is what --scale is computed from: add --scale mad, std or iqr, or leave it out."
            )
        given = read_format(options) if options["data_file"].endswith(".csv") else None
        return read_table(table_files(options["data_file"], given))
    if options["dataset"] is None or options["scale"] in (None, "range"):
        return None
    from ifonly import datasets
    from ifonly.cli.shipped import train_table

    return train_table(datasets.load(options["dataset"]))


def _chosen(table: Table, options: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    numbers = options["chosen"] or range(len(table.rows))
    for number in numbers:
        if number >= len(table.rows):
            raise FileError(f"There is no row {number}: the rows are 0 to {len(table.rows) - 1}.")
    return {number: table.rows[number] for number in list(dict.fromkeys(numbers))[: options["first"]]}
