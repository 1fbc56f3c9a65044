"""Where an audit is written: a page, data, or a picture; whole or not at all, and never over a file unasked."""

from __future__ import annotations

import os
from pathlib import Path

from ifonly.errors import FileError
from ifonly.population.audit import Audit
from ifonly.report import Provenance, audit_csv, audit_html, audit_json, audit_svg
from ifonly.schema import write_whole
from ifonly.schema.given import path_of

KINDS = (".html", ".json", ".csv", ".svg")


def check_place(name: str, *, force: bool, kinds: tuple[str, ...] = KINDS, what: str = "An audit") -> Path:
    """The path, if something of these kinds can be written there: asked before the work, not after it."""
    path = path_of(name)
    if path.suffix.lower() not in kinds:
        listed = f"{', '.join(kinds[:-1])} or {kinds[-1]}; " if len(kinds) > 1 else f"{kinds[0]}; "
        none = "is none of these" if len(kinds) > 1 else "is not"
        raise FileError(f"{what} is written as {listed}'{path.name}' {none}.")
    try:
        there, folder, parent = path.exists(), path.is_dir(), path.resolve().parent
        inside = parent.is_dir()
    except OSError as error:  # a name that is too long
        raise FileError(f"Cannot write '{path}': {error.strerror or error}.") from None
    if folder:
        raise FileError(f"Cannot write '{path}': it is a folder.")
    if not inside:
        raise FileError(f"Cannot write '{path}': there is no folder '{parent.name}'.")
    if not os.access(parent, os.W_OK):
        raise FileError(f"Cannot write '{path}': its folder is read-only.")
    if there and not force:
        raise FileError(f"'{path}' is there already; to write over it, add --force.")
    return path


def write_audit(path: Path, audit: Audit, where: Provenance) -> None:
    """By the file's ending."""
    kind = path.suffix.lower()
    if kind == ".svg":
        text = audit_svg(audit)
    else:
        text = {".html": audit_html, ".json": audit_json, ".csv": audit_csv}[kind](audit, where)
    write_whole(path, text.encode("utf-8"))
