"""Output files of a command: written as a whole or not at all, and overwritten only with --force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

force_option = click.option("--force", is_flag=True, help="Write over a file that is there.")

escape_option = click.option(
    "--escape-formulas",
    is_flag=True,
    help="With --output FILE.csv: a quote before texts that a spreadsheet would take for formulas.",
)


def page_path(options: Mapping[str, Any]) -> Path | None:
    """The path of --html, if a page can be written there."""
    if options["html"] is None:
        return None
    return check_place(options["html"], force=options["force"], kinds=(".html", ".htm"), what="A page")


def write_page(path: Path, answers: Any, options: Mapping[str, Any]) -> None:
    """A page about one answer or several; of one with a label (`ids`), with all about that person."""
    from ifonly.cli.console import note
    from ifonly.results.html import answer_document
    from ifonly.schema import write_whole

    language, subject = options["language"], options["subject"]
    if getattr(answers, "ids", None) is not None and len(answers) == 1:
        page = answer_document(answers[0], language, subject, who=answers.ids[0])
    else:
        page = answers.to_html(language=language, subject=subject)
    write_whole(path, page.encode("utf-8"), overwrite=options["force"])
    note(f"Written to {path}.")


def check_place(name: str | Path, *, force: bool, kinds: tuple[str, ...] = (), what: str = "") -> Path:
    """The path, if something of these kinds (of any, if none is named) can be written there: checked before the work,
    not after it.
    """
    from ifonly.errors import FileError
    from ifonly.schema.arguments import path_of
    from ifonly.schema.io import check_writable

    path = path_of(name)
    if kinds and path.suffix.lower() not in kinds:
        listed = f"{', '.join(kinds[:-1])} or {kinds[-1]}; " if len(kinds) > 1 else f"{kinds[0]}; "
        none = "is none of these" if len(kinds) > 1 else "is not"
        raise FileError(f"{what} is written as {listed}'{path.name or path}' {none}.")
    check_writable(path)
    if path.exists() and not force:
        raise FileError(f"'{path}' is there already; to write over it, add --force.")
    return path
