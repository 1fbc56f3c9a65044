"""One model of the table: how it is trained, how it is asked itself, and what to do where it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ifonly import Schema


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model, the schema of its rows, and its own decision about rows (dictionaries)."""

    model: Any
    schema: Schema
    predict: Callable[[list[dict[str, Any]]], list[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    """Of `import_model`."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model by name; `remedy` is what its refusal advises."""

    family: str
    name: str
    train: Callable[[], Trained]
    remedy: Callable[[], Trained] | None = None
    advice: str = ""
