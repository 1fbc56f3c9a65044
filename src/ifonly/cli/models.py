"""`ifonly model`: look at a model file, or convert it to ifonly's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import json_option, note, show, show_json
from ifonly.cli.options import with_options

if TYPE_CHECKING:
    from ifonly.model import Model, Network

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
    """Show the network that MODEL (.npz, .json, .onnx) becomes."""
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
@json_option
def convert(source: str, target: str, as_json: bool, **options: Any) -> int:
    """Convert the model IN to ifonly's own file OUT (.npz or .json)."""
    from ifonly.errors import FileError
    from ifonly.model import save_network
    from ifonly.schema.io import replacing

    if Path(target).suffix not in OWN:
        raise FileError(f"A network file ends in .npz or .json; '{Path(target).name}' does not.")
    loaded = _load(source, options)
    with replacing(target) as temporary:
        save_network(loaded.network, temporary, classes=loaded.classes, regression=loaded.regression)
    if as_json:
        show_json({"file": target, **_facts(loaded)})
    else:
        note(f"Written to {target}.")
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """A model as a file can hold it; `model` only where a schema was given."""

    network: Network
    classes: tuple[Any, ...]
    regression: bool
    model: Model | None = None


def _load(file: str, options: dict[str, Any]) -> _Loaded:
    from ifonly.cli.question import listed
    from ifonly.cli.source import load_any
    from ifonly.errors import ModelError
    from ifonly.model.files import read_network
    from ifonly.schema import load_schema

    classes = tuple(listed(options["classes"])) if options["classes"] else ()
    regression, schema_file = options["regression"], options["schema_file"]
    if schema_file is not None:
        pickled = options["unsafe_pickle"]
        loaded = load_any(file, load_schema(schema_file), classes=classes, regression=regression, unsafe_pickle=pickled)
        return _Loaded(
            network=loaded.network, classes=loaded.classes, regression=not loaded.is_classifier, model=loaded
        )
    if Path(file).suffix not in OWN:
        raise ModelError(f"To read '{file}', say what a row is with --schema FILE.")
    stored = read_network(file)
    regression = regression or (stored.regression and not classes)
    names = classes if classes or regression else stored.classes
    return _Loaded(network=stored.network, classes=names, regression=regression)


def _facts(loaded: _Loaded) -> dict[str, Any]:
    network = loaded.network
    facts = {
        "inputs": network.inputs,
        "hidden": list(network.hidden),
        "outputs": network.outputs,
        "weights": sum(layer.weight.size + layer.bias.size for layer in network.layers),
        "task": "regression" if loaded.regression else "classification",
        "classes": list(loaded.classes),
        "fingerprint": network.fingerprint,
    }
    if loaded.model is not None:
        facts |= {"kind": loaded.model.source, "precision": loaded.model.precision, "deviation": loaded.model.deviation}
    return facts


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
