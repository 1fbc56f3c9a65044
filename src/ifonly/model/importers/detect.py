"""Detection of the library that a model is from: an object by its class, a file by its suffix or its JSON keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ifonly.model.files import MAX_JSON_BYTES, check_size

SURROGATE = (
    "of a model that can only be asked, row by row, nothing can be proven, since between those rows it may say "
    "anything: ifonly.surrogates.BlackBox(predict, table, schema=schema) finds rows that it accepts, with a network "
    "that imitates it"
)
"""Why a model without a form that can be read is refused, and what to do instead."""

Library: TypeAlias = Literal["xgboost", "lightgbm", "catboost"]
ENDINGS: dict[str, Library] = {".ubj": "xgboost", ".txt": "lightgbm", ".cbm": "catboost"}


def library_of(path: Path) -> Library | None:
    """The library that reads the file; None where none does."""
    ending = path.suffix.lower()
    if ending != ".json":
        return ENDINGS.get(ending)
    try:
        check_size(path, MAX_JSON_BYTES)
        data = json.loads(path.read_text(encoding="utf-8"))
    except Exception:  # a damaged file may raise anything; the reader of that format reports it
        return None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("learner"), dict):
        return "xgboost"
    return "catboost" if "features_info" in data and "scale_and_bias" in data else None


def of_library(thing: Any, package: str, name: str) -> bool:
    """isinstance by the qualified name of a class, without importing its library."""
    return any(cls.__module__.partition(".")[0] == package and cls.__name__ == name for cls in type(thing).__mro__)
