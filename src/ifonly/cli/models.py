"""`ifonly model`: show a model file, or convert it to ifonly's own format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import json_option, note, show, show_json
from ifonly.cli.options import with_options
from ifonly.cli.outputs import check_place, force_option

if TYPE_CHECKING:
    from ifonly.model import Kind, Model

OWN = (".npz", ".json")

READING = (
    click.option("--schema", "schema_file", metavar="FILE",
                 help="What a row is; needed for all but ifonly's own files."),
    click.option("--classes", metavar="A,B", help="Names for the classes, in the model's order."),
    click.option("--regression", is_flag=True, help="The model's outputs are predictions, not classes."),
    click.option("--unsafe-pickle", is_flag=True,
                 help="Load a pickle. It runs any code it contains: only for files you trust."),
)  # fmt: skip


@click.group(invoke_without_command=True)
@click.pass_context
def model(ctx: click.Context) -> None:
    """Show a model file, or convert one."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@model.command("show")
@click.argument("file", metavar="MODEL")
@with_options(READING)
@json_option
def show_file(file: str, as_json: bool, **options: Any) -> int:
    """Show what MODEL (.npz, .json, .csv, .onnx, .ubj, .txt, .cbm) becomes: a network, or an ensemble of trees."""
    from ifonly.report import Facts

    facts = _facts(_load(file, options))
    if as_json:
        show_json({"file": file, **facts})
    else:
        show((Facts([(name, _words(value)) for name, value in facts.items()]),))
    return 0


@model.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@with_options(READING)
@force_option
@json_option
def convert(source: str, target: str, force: bool, as_json: bool, **options: Any) -> int:
    """Convert the model IN to ifonly's own file OUT (.npz or .json)."""
    from ifonly.errors import FileError
    from ifonly.model import save_network, save_trees
    from ifonly.schema.io import replacing

    if Path(target).suffix not in OWN:
        raise FileError(f"A model file of ifonly ends in .npz or .json; '{Path(target).name}' does not.")
    check_place(target, force=force)
    loaded = _load(source, options)
    with replacing(target, overwrite=force) as temporary:
        network = loaded.function.as_network()
        if network is not None:
            save_network(network, temporary, classes=loaded.classes, regression=loaded.regression)
        else:
            assert loaded.model is not None  # only networks are read without a schema
            save_trees(loaded.model, temporary)
    if as_json:
        show_json({"file": target, **_facts(loaded)})
    else:
        note(f"Written to {target}.")
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """A model as a file can hold it; `model` only where a schema was given."""

    function: Kind
    classes: tuple[Any, ...]
    regression: bool
    model: Model | None = None


def _load(file: str, options: dict[str, Any]) -> _Loaded:
    from ifonly.cli.source import class_names, load_any
    from ifonly.errors import ModelError
    from ifonly.model.files import read_network
    from ifonly.model.scorecard import is_scorecard_file
    from ifonly.model.trees.files import is_trees_file
    from ifonly.schema import load_schema

    classes = class_names(options["classes"])
    regression, schema_file = options["regression"], options["schema_file"]
    if schema_file is not None:
        pickled = options["unsafe_pickle"]
        loaded = load_any(file, load_schema(schema_file), classes=classes, regression=regression, unsafe_pickle=pickled)
        return _Loaded(
            function=loaded.function.as_network() or loaded.function,
            classes=loaded.classes,
            regression=not loaded.is_classifier,
            model=loaded,
        )
    if Path(file).suffix not in OWN or is_trees_file(Path(file)) or is_scorecard_file(Path(file)):
        raise ModelError(f"To read '{file}', say what a row is with --schema FILE.")
    stored = read_network(file)
    regression = regression or (stored.regression and not classes)
    names = classes if classes or regression else stored.classes
    return _Loaded(function=stored.network, classes=names, regression=regression)


def _facts(loaded: _Loaded) -> dict[str, Any]:
    function = loaded.function
    facts = {
        "inputs": function.inputs,
        **function.sizes(),
        "task": "regression" if loaded.regression else "classification",
        "classes": list(loaded.classes),
        "fingerprint": function.fingerprint,
    }
    if loaded.model is not None:
        facts |= {"kind": loaded.model.source, "precision": loaded.model.precision, "deviation": loaded.model.deviation}
    return facts


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
