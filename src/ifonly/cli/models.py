"""`ifonly model`: look at a model file, or convert it to ifonly's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import json_option, note, show, show_json

if TYPE_CHECKING:
    from ifonly.model import Network

OWN = (".npz", ".json")

_unsafe = click.option("--unsafe-pickle", is_flag=True,
                       help="Load a pickle. It runs any code it contains: only for files you trust.")  # fmt: skip
_schema = click.option("--schema", "schema_file", metavar="FILE",
                       help="What a row is; needed for all but ifonly's own files.")  # fmt: skip


@click.group(invoke_without_command=True)
@click.pass_context
def model(ctx: click.Context) -> None:
    """Show a model file, or convert one."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@model.command("show")
@click.argument("file", metavar="MODEL")
@_schema
@_unsafe
@json_option
def show_file(file: str, schema_file: str | None, unsafe_pickle: bool, as_json: bool) -> int:
    """Show the network that MODEL (.npz, .json, .onnx) becomes."""
    from ifonly.report import Facts

    network, classes, about = _load(file, schema_file, unsafe_pickle)
    facts = {**_facts(network, classes), **about}
    if as_json:
        show_json({"file": file, **facts})
    else:
        show((Facts([(name, _words(value)) for name, value in facts.items()]),))
    return 0


@model.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@_schema
@_unsafe
@json_option
def convert(source: str, target: str, schema_file: str | None, unsafe_pickle: bool, as_json: bool) -> int:
    """Convert the model IN to ifonly's own file OUT (.npz or .json)."""
    from ifonly.cli.tables import replacing
    from ifonly.errors import FileError
    from ifonly.model import save_network

    if Path(target).suffix not in OWN:
        raise FileError(f"A network file ends in .npz or .json; '{Path(target).name}' does not.")
    network, classes, about = _load(source, schema_file, unsafe_pickle)
    with replacing(target) as temporary:
        save_network(network, temporary, classes=classes)
    if as_json:
        show_json({"file": target, **_facts(network, classes), **about})
    else:
        note(f"Written to {target}.")
    return 0


def _load(
    file: str, schema_file: str | None, unsafe_pickle: bool
) -> tuple[Network, tuple[Any, ...], dict[str, Any]]:
    """The network, the names of its classes, and what only a schema can tell."""
    from ifonly.errors import ModelError
    from ifonly.model import load_network
    from ifonly.schema import load_schema

    if schema_file is None:
        if Path(file).suffix not in OWN:
            raise ModelError(f"To read '{file}', say what a row is with --schema FILE.")
        return (*load_network(file), {})
    from ifonly.cli.source import load_any

    loaded = load_any(file, load_schema(schema_file), unsafe_pickle=unsafe_pickle)
    about = {"kind": loaded.kind, "precision": loaded.precision, "deviation": loaded.deviation}
    return loaded.network, loaded.classes, about


def _facts(network: Network, classes: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "inputs": network.inputs,
        "hidden": list(network.hidden),
        "outputs": network.outputs,
        "weights": sum(layer.weight.size + layer.bias.size for layer in network.layers),
        "classes": list(classes),
        "fingerprint": network.fingerprint,
    }


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
