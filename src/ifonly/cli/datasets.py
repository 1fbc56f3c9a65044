"""`ifonly datasets`: what ships with the package, as a list or as files to try."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import json_option, show, show_json
from ifonly.cli.outputs import check_place, force_option

if TYPE_CHECKING:
    from ifonly.results.records import Kind


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def datasets(ctx: click.Context, as_json: bool) -> int:
    """List the shipped data sets, or export one."""
    return 0 if ctx.invoked_subcommand is not None else _list(as_json)


def _list(as_json: bool) -> int:
    from ifonly import datasets as shipped
    from ifonly.cli.shipped import network
    from ifonly.report import Paragraph, TextTable

    found: list[dict[str, Any]] = []
    for name in shipped.names():
        dataset, model = shipped.load(name), network(name)
        train, test = dataset.split()
        found.append({
            "name": name, "title": dataset.title, "rows": len(dataset), "train_rows": len(train),
            "test_rows": len(test), "features": len(dataset.schema), "hidden": list(model.network.hidden),
            "classes": list(model.classes), "licence": dataset.licence, "source": dataset.source,
        })  # fmt: skip
    if as_json:
        show_json({"datasets": found})
        return 0
    rows = [
        (d["name"], f"{d['rows']:,}", f"{d['test_rows']:,}", str(d["features"]), " / ".join(d["classes"]), d["title"])
        for d in found
    ]
    sheet = TextTable(header=("name", "rows", "test rows", "features", "decisions", "title"), rows=rows,
                  right=frozenset({1, 2, 3}))  # fmt: skip
    show((sheet, Paragraph("To get one as files: ifonly datasets export NAME FOLDER", quiet=True)))
    return 0


@datasets.command()
@click.argument("name")
@click.argument("folder", metavar="FOLDER")
@force_option
@json_option
def export(name: str, folder: str, force: bool, as_json: bool) -> int:
    """Write the test rows (csv), the schema (json) and the network (npz) of data set NAME into FOLDER."""
    from ifonly import datasets as shipped
    from ifonly.cli.shipped import network, test_table
    from ifonly.cli.tables import write_records
    from ifonly.errors import FileError
    from ifonly.model import save_network
    from ifonly.report import Commands, Paragraph
    from ifonly.schema import save_schema
    from ifonly.schema.io import replacing

    dataset, model = shipped.load(name), network(name)
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FileError(f"'{folder}' is a file; the three files go to a folder.") from None
    except OSError as error:
        raise FileError(f"Cannot make the folder '{folder}': {error.strerror or error}.") from None
    files = {"rows": place / f"{name}.csv", "schema": place / f"{name}.schema.json", "model": place / f"{name}.npz"}
    for file in files.values():
        check_place(file, force=force)
    table = test_table(dataset)
    columns: dict[str, Kind] = dict.fromkeys(table.columns, "text")
    write_records(files["rows"], table.rows, columns, overwrite=force)
    with replacing(files["schema"], overwrite=force) as temporary:
        save_schema(dataset.schema, temporary)
    with replacing(files["model"], overwrite=force) as temporary:
        save_network(model.network, temporary, classes=model.classes)
    if as_json:
        show_json({what: str(file) for what, file in files.items()})
        return 0
    command = "ifonly explain " + " ".join(f"--{what} {file}" for what, file in files.items()) + " --first 10"
    show((Paragraph(f"Written: {', '.join(map(str, files.values()))}. Try:"), Commands([command])))
    return 0
