"""Identity of a run: the model, the schema, the query, the settings and the versions, as plain data."""

from __future__ import annotations

import platform
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ifonly.answering.answerer import Answerer
from ifonly.answering.values import SearchSettings
from ifonly.problem import Query
from ifonly.problem.query import plain_query
from ifonly.schema.io import schema_fingerprint


def run_identity(answerer: Answerer, query: Query, settings: SearchSettings) -> dict[str, Any]:
    """Equal for a run and for the one that resumes it; `query` holds all constraints."""
    model, method = answerer.model, settings.method
    return {
        "ifonly": import_module("ifonly").__version__,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "model": {"fingerprint": model.function.fingerprint, "classes": list(model.classes), "source": model.source,
                  "precision": model.precision},
        "schema": schema_fingerprint(model.schema),
        "query": plain_query(query),
        "method": {"name": method.name, "options": repr(method) if is_dataclass(method) else "",
                   "limits": repr(settings.limits), "tolerances": repr(answerer.tolerances)},
    }  # fmt: skip
