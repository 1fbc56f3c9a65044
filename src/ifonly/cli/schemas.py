"""`ifonly schema`: what a row is, proposed from a table or read from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import json_option, note, show, show_json
from ifonly.cli.options import CSV, with_options
from ifonly.cli.outputs import check_place, force_option

if TYPE_CHECKING:
    from collections.abc import Collection

    from ifonly.cli.tables import Table
    from ifonly.schema import Feature, Schema


@click.group(invoke_without_command=True)
@click.pass_context
def schema(ctx: click.Context) -> None:
    """Propose a schema for a table, or show one."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@schema.command()
@click.argument("file", metavar="TABLE")
@click.option("--drop", multiple=True, metavar="C", help="Leave out column C (a label, an identifier).")
@click.option("--step", "steps", multiple=True, metavar="C=S", help="Column C moves in steps of S (0.01, 500, 1/12).")
@with_options(CSV)
@click.option("--rules", is_flag=True, help="Also take the rules and derived features that hold in every row.")
@click.option("--output", metavar="FILE", help="Write the schema there (.json, .yaml).")
@force_option
@json_option
def infer(file: str, drop: tuple[str, ...], steps: tuple[str, ...], as_json: bool, **out: Any) -> int:
    """Propose a schema for TABLE (.csv, .jsonl, .parquet, .xlsx), and say what was guessed."""
    from ifonly.cli.given_rows import read_format, table_files
    from ifonly.cli.tables import read_table
    from ifonly.report import Paragraph, TextTable
    from ifonly.schema import infer as propose
    from ifonly.schema import save_schema, schema_to_json
    from ifonly.schema.io import replacing

    output, force = out["output"], out["force"]
    if output is not None:
        check_place(_json_path(output), force=force)
    table = read_table(table_files(file, read_format(out)))
    columns = _columns(table, drop, steps)
    proposed, guesses = propose(columns)
    proposed = _with_steps(proposed, steps)
    if out["rules"]:
        proposed = proposed.with_rules(*mined_rules(columns, proposed))
    if output is not None:
        with replacing(output, overwrite=force) as temporary:
            save_schema(proposed, temporary)
    if as_json:
        listed = [{"feature": g.feature, "guess": g.guess, "why": g.why} for g in guesses]
        show_json({"schema": schema_to_json(proposed), "guesses": listed})
        return 0
    said = {name.strip(): step for name, _, step in (given.rpartition("=") for given in steps)}
    rows = [
        (g.feature, g.guess, g.why + (f"; --step: {said[g.feature]}" if g.feature in said else "")) for g in guesses
    ]
    advice = "These are guesses from the data: read them, and widen bounds, drop labels or declare orders in the file."
    told = [Paragraph(f"In every row: {rule}") for rule in proposed.rules]
    if not out["rules"]:
        advice += " Rules that every row obeys are proposed by: ifonly schema invariants; or taken with --rules."
    show((TextTable(header=("feature", "guess", "why"), rows=rows), *told, Paragraph(advice, quiet=True)))
    note(f"Written to {output}." if output is not None else "To keep it, add: --output schema.json")
    return 0


def mined_rules(columns: Any, schema: Schema) -> list[str]:
    """What holds in every row: derived features, and the rules that do not follow from these."""
    from ifonly.mining import derivations, follows_from, invariants

    derived = derivations(columns, schema)
    rules = [one.rule for one in derived]
    for one in invariants(columns, schema):
        rules += [] if follows_from(one.rules, derived, schema) else one.rules
    return rules


@schema.command("show")
@click.argument("file", metavar="SCHEMA")
@json_option
def show_file(file: str, as_json: bool) -> int:
    """Show the schema in a file."""
    from ifonly.report import Facts, TextTable
    from ifonly.schema import load_schema, schema_to_json

    loaded = load_schema(file)
    if as_json:
        show_json(schema_to_json(loaded))
        return 0
    worded = any(f.label or f.unit for f in loaded)
    header = ("feature", "kind", "values", "columns", *(("label", "unit") if worded else ()))
    rows = [
        (f.name, f.kind, _values(f), str(len(f.column_names)), *((f.label, f.unit) if worded else ())) for f in loaded
    ]
    sheet = TextTable(header=header, rows=rows, right=frozenset({3}))
    pairs = (("features", len(loaded)), ("model columns", len(loaded.columns)), ("space", _space(list(loaded))))
    show((sheet, Facts([(name, str(value)) for name, value in pairs])))
    return 0


def _with_steps(proposed: Schema, steps: tuple[str, ...]) -> Schema:
    """The schema with the steps of --step, and the bounds of those columns at multiples of them."""
    import math
    from fractions import Fraction

    from ifonly.errors import SchemaError
    from ifonly.schema import Integer, Numeric, Real, Schema
    from ifonly.schema.decimals import rounded, written
    from ifonly.schema.values import read_step

    features = list(proposed.features)
    for given in steps:
        name, sign, text = given.rpartition("=")
        if not sign:
            raise SchemaError(f"--step is a column and a step, such as Income=0.01; got '{given}'.")
        feature = proposed[name.strip()]
        step: Fraction = read_step(feature.name, text)
        if not isinstance(feature, Numeric):
            raise SchemaError(f"'{feature.name}' is {feature.kind}, so it has no step; leave out --step '{given}'.")
        lower = rounded(math.floor(written(feature.lower) / step) * step)
        upper = rounded(math.ceil(written(feature.upper) / step) * step)
        whole = isinstance(feature, Integer) and step.denominator == 1
        kept: dict[str, Any] = {"missing": feature.missing, "label": feature.label, "unit": feature.unit}
        features[proposed.index(feature.name)] = (
            Integer(feature.name, lower, upper, step=int(step), **kept)
            if whole
            else Real(feature.name, lower, upper, step, **kept)
        )
    return Schema(features, proposed.columns, proposed.rules)


def _json_path(output: str) -> str:
    from ifonly.errors import FileError

    if not output.endswith((".json", ".yaml", ".yml")):
        raise FileError(f"A schema file ends in .json or .yaml; '{output}' does not.")
    return output


def _columns(table: Table, drop: tuple[str, ...], steps: tuple[str, ...]) -> dict[str, list[Any]]:
    """The columns that are left; those of a csv file, which knows only texts, as numbers where they are."""
    from ifonly.errors import FileError
    from ifonly.printing import some_of

    for name in drop:
        if name not in table.columns:
            raise FileError(f"{table.description} has no column '{name}' to drop; it has {some_of(table.columns)}.")
    columns = {name: table.column(name) for name in table.columns if name not in drop}
    stepped = {given.rpartition("=")[0].strip() for given in steps}
    return {name: _typed(name, many, stepped) for name, many in columns.items()} if table.untyped else columns


def _typed(name: str, values: list[Any], stepped: Collection[str]) -> list[Any]:
    """A column of texts as numbers, where all that are not missing are numbers and none is a code; else unchanged.

    A column with a step is known to have decimals.
    """
    from ifonly.schema.infer import check_clear
    from ifonly.schema.number_text import typed_column

    present = [None if value is None or _is_missing(value) else value for value in values]
    typed = typed_column(present)
    if typed is None:
        codes = all(isinstance(text, str) and text.strip().isdigit() for text in present if text is not None)
        return present if codes else values
    if name not in stepped:
        check_clear(name, [text for text in present if text is not None])
    return typed


def _is_missing(value: Any) -> bool:
    from ifonly.schema.values import NO_VALUE

    return isinstance(value, str) and value.strip().lower() in NO_VALUE


def _values(feature: Feature) -> str:
    from fractions import Fraction

    from ifonly.results import show as words
    from ifonly.schema import Integer, Numeric, Real
    from ifonly.schema.values import show_step

    if isinstance(feature, Numeric):
        step = feature.step if isinstance(feature, Integer | Real) else None
        by = f" in steps of {show_step(Fraction(step))}" if step not in (None, 1) else ""
        return f"{words(feature.lower)} to {words(feature.upper)}{by}" + (", or missing" if feature.missing else "")
    return ", ".join(words(option) for option in feature.options)


def _space(features: list[Feature]) -> str:
    import math

    counts = [feature.count for feature in features]
    finite = [count for count in counts if count is not None]
    return f"{math.prod(finite):,} rows" if len(finite) == len(counts) else "infinite (it has real numbers)"
