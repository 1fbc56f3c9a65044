"""Summary statistics of many answers: counts, quantiles of distance and time, the most frequent changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ifonly.population.counters import QUANTILES
from ifonly.results import Answer, Answers, Failed, Nearest, Unknown, Within


def summary(answers: Answers | Sequence[Answer]) -> dict[str, Any]:
    """The figures of many answers as plain data. Distances are those of people for whom something has to change."""
    many = answers if isinstance(answers, Answers) else Answers(answers)
    found = [answer for answer in many if isinstance(answer, Nearest | Within)]
    answered = [answer for answer in many if not isinstance(answer, Failed)]
    moved = [answer for answer in found if not answer.already]
    changed = Counter(change.feature for answer in found for change in answer.changes)
    return {
        "rows": len(many),
        "counts": many.counts(),
        "stopped_by": dict(Counter(a.note for a in many if isinstance(a, Within | Unknown)).most_common(5)),
        "distance_name": next((answer.distance_name for answer in answered), ""),
        "distance": _quantiles([answer.upper for answer in moved]),
        "changed_features": _quantiles([float(len(answer.own_changes)) for answer in moved]),
        "changed_most": dict(changed.most_common(5)),
        "unchanged": len(found) - len(moved),
        "seconds": _quantiles([answer.seconds for answer in answered]),
        "total_seconds": many.seconds,
    }


def _quantiles(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values())).tolist(), strict=True))
