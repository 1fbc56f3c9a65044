"""An audit as a file: a page, data, or a picture."""

from __future__ import annotations

from pathlib import Path

from ifonly.population.auditing import Audit
from ifonly.report import Provenance, audit_csv, audit_html, audit_json, audit_svg
from ifonly.schema import write_whole

KINDS = (".html", ".json", ".csv", ".svg")


def write_audit(path: Path, audit: Audit, where: Provenance, *, force: bool) -> None:
    """By the file's ending."""
    kind = path.suffix.lower()
    if kind == ".svg":
        text = audit_svg(audit)
    else:
        text = {".html": audit_html, ".json": audit_json, ".csv": audit_csv}[kind](audit, where)
    write_whole(path, text.encode("utf-8"), overwrite=force)
