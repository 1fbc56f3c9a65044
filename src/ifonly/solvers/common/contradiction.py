"""Contradictory bounds: an error that names both numbers, and a file with which to reproduce it."""

from __future__ import annotations

import json
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import Contradiction
from ifonly.problem import Question
from ifonly.schema.io import schema_to_json

ALLOWED = 1e-6
"""Distance: how far a bound may lie above the distance of a checked row and still be the solver's tolerances."""


def reproducer(question: Question, factual: NDArray[np.float64], said: dict[str, Any]) -> dict[str, Any]:
    """The question, the person and what was said, as plain data."""
    return {
        "kind": "ifonly-contradiction",
        "said": said,
        "factual": factual.tolist(),
        "question": question.describe(),
        "classes": list(question.model.classes),
        "schema": schema_to_json(question.schema),
        "model": question.model.function.statement(),
    }


def saved(question: Question, factual: NDArray[np.float64], **said: Any) -> str:
    """Save the problem in the folder for temporary files; a sentence that says where."""
    text = json.dumps(reproducer(question, factual, said), indent=1, default=str)
    try:
        with tempfile.NamedTemporaryFile(  # a new file, for us alone: it holds somebody's row
            "w", encoding="utf-8", prefix="ifonly-contradiction-", suffix=".json", delete=False
        ) as file:
            file.write(text)
    except OSError as error:
        return f"(The problem could not be saved: {error}.)"
    return f"The problem is saved as {file.name}."


def contradiction(question: Question, factual: NDArray[np.float64], sentence: str, **said: Any) -> Contradiction:
    """The error, ready to be raised, with the problem saved."""
    return Contradiction(f"{sentence} {saved(question, factual, **said)}")


def check_bound(question: Question, factual: NDArray[np.float64], lower: float, upper: float, method: str) -> None:
    """Nothing nearer than `lower` exists, and there is a row at `upper`: both cannot be said when lower > upper."""
    if lower > upper + ALLOWED * (1.0 + upper):
        raise contradiction(
            question,
            factual,
            f"Method '{method}' claims that nothing is nearer than {lower!r}, but a row at {upper!r} is known.",
            method=method,
            lower=lower,
            upper=upper,
        )
