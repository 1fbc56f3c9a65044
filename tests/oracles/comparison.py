"""Two methods, one question: where do they disagree?

Every row in an answer has been checked by the model itself, so its distance `upper` is a fact, whoever found it;
`lower` is a claim. Hence no tolerance has to be guessed for the slope of the network:

    sound       nobody's lower bound lies above the distance of the other's row
    as good     nobody's row is farther than the other's, beyond TOLERANCE
    same kind   a row is found by both or by none; both prove that there is none, or neither does
    ends        ours does, within limits that are far more than these small questions need

`as good` is not asked of a MIP: its row is repaired from a point that misses the margin by the solver's tolerance,
which costs tolerance / slope and can exceed TOLERANCE on a flat network. Its bound is still compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ifonly import Answer, Explainer, Limits, NoneExists
from ifonly.problem import Question
from ifonly.results import Method

TOLERANCE = 1e-6

LIMITS = Limits(seconds=600.0)
"""A search that does not end is a disagreement, not a hung test; one that a busy machine slows down is neither."""


def answers(
    question: Question, points: NDArray[np.float64], method: Method, limits: Limits = LIMITS
) -> Sequence[Answer]:
    """Through the API, with the witness check and everything."""
    return (
        Explainer(question.model)
        .using(method)
        .explain_many(
            [question.schema.row(point) for point in points],
            target=question.target,
            distance=question.distance,
            constraints=question.constraints,
            limits=limits,
        )
    )


def disagreements(ours: Sequence[Answer], theirs: Sequence[Answer], *, mip: bool = False) -> Iterator[str]:
    """Sentences; none when all is well. `mip`: theirs is a MIP's."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        said = f"person {i}: {_show(a)} against {_show(b)}"
        if a.stop is not None and a.stop.is_limit:
            yield f"{said}: does not end"
        elif isinstance(a, NoneExists) != isinstance(b, NoneExists) or math.isinf(a.upper) != math.isinf(b.upper):
            yield f"{said}: not the same kind"
        elif not mip and a.status != b.status:
            yield f"{said}: not the same status"
        elif a.lower > b.upper + TOLERANCE or b.lower > a.upper + TOLERANCE:
            yield f"{said}: a row lies below a lower bound"
        elif a.upper > b.upper + TOLERANCE or (not mip and b.upper > a.upper + TOLERANCE):
            yield f"{said}: a nearer row exists"


def _show(answer: Answer) -> str:
    return f"{answer.method} {answer.status} [{answer.lower!r}, {answer.upper!r}] {answer.note}".rstrip()
