"""`ifonly schema invariants`: the rules that all rows of a table obey."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import json_option, note, show, show_json
from ifonly.cli.options import CSV, with_options
from ifonly.cli.outputs import check_place, force_option
from ifonly.cli.schemas import _columns, _json_path, schema

if TYPE_CHECKING:
    from ifonly.mining import Invariants


@schema.command()
@click.argument("file", metavar="TABLE")
@click.option("--schema", "schema_file", metavar="FILE", help="The schema of the rows (default: inferred from TABLE).")
@click.option("--share", type=float, default=0.0, help="Also what holds in all rows but this share (0.001).")
@click.option("--drop", multiple=True, metavar="C", help="Leave out column C (a label, an identifier).")
@click.option("--derive", is_flag=True, help="Write features that another one decides as derived features.")
@click.option("--strike", multiple=True, type=int, metavar="N", help="Do not write rule number N.")
@with_options(CSV)
@click.option("--output", metavar="FILE", help="Write the schema with these rules there (.json, .yaml).")
@force_option
@json_option
def invariants(file: str, drop: tuple[str, ...], strike: tuple[int, ...], as_json: bool, **given: Any) -> int:
    """Propose rules that every row of TABLE obeys, so that no answer is a row that cannot exist."""
    from ifonly.cli.given_rows import read_format, table_files
    from ifonly.cli.tables import read_table
    from ifonly.mining import derivations, follows_from
    from ifonly.mining import invariants as mine
    from ifonly.report import Paragraph, TextTable
    from ifonly.schema import infer, load_schema, save_schema
    from ifonly.schema.io import replacing

    output, force = given["output"], given["force"]
    if output is not None:
        check_place(_json_path(output), force=force)
    columns = _columns(read_table(table_files(file, read_format(given))), drop, ())
    known = load_schema(given["schema_file"]) if given["schema_file"] else infer(columns)[0]
    with _progress() as listen:
        found = mine(columns, known, share=given["share"], listen=listen)
        derived = derivations(columns, known)
    taken = derived if given["derive"] else ()
    kept = [
        one for number, one in enumerate(found, 1) if number not in strike and not follows_from(one.rules, taken, known)
    ]
    rules = [*(one.rule for one in taken), *(rule for one in kept for rule in one.rules)]
    if output is not None:
        with replacing(output, overwrite=force) as temporary:
            save_schema(known.with_rules(*rules), temporary)
    if as_json:
        show_json({"rows": found.rows, "unread": found.unread, "tried": found.tried,
                   "invariants": [one.to_dict() for one in found],
                   "derivations": [one.rule for one in derived]})  # fmt: skip
        return 0
    header = ("no.", "rule", "rows", "exceptions", "by chance", "prevents")
    sheet = TextTable(header=header, rows=_lines(found), right=frozenset({0, 2, 3, 4, 5}))
    told = [Paragraph(f"Derived: {one.rule}") for one in derived]
    hint = "With --derive, these are written instead of the rules between the two features." if derived else ""
    show((sheet, Paragraph(_advice(found), quiet=True), *told, *([Paragraph(hint, quiet=True)] if hint else [])))
    note(f"Written to {output}." if output is not None else "To keep them, add: --output schema.json")
    return 0


def _lines(found: Invariants) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for number, one in enumerate(found, 1):
        figures = (f"{one.rows:,}", f"{one.exceptions:,}", f"{one.expected:,.0f}", f"{one.prevented:.1%}")
        lines.append((str(number), one.rules[0], *figures))
        lines += [("", rule, "", "", "", "") for rule in one.rules[1:]]
    return lines


def _advice(found: Invariants) -> str:
    if not len(found):
        return f"No rule holds in all {found.rows:,} rows that chance does not explain ({found.tried:,} were tried)."
    unread = f" {found.unread:,} rows do not fit the schema and were left out." if found.unread else ""
    return (
        f"{found.rows:,} rows.{unread} rows: where the rule could have failed; by chance: how many would break it if "
        "columns were paired at random; prevents: the share of altered rows that it rules out. Strike out what is true "
        "of these rows only (--strike N)."
    )


@contextmanager
def _progress() -> Iterator[Callable[[float], None] | None]:
    """A bar on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking for invariants", total=1.0)
        yield lambda done: bar.update(task, completed=done)


__all__ = ["invariants"]
