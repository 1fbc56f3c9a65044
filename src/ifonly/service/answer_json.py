"""JSON of replies: answers and decisions of models, as the page and the clients of the service read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.diagnostics import score_path
from ifonly.diagnostics.paths import score_margin_of
from ifonly.explainer import Explainer
from ifonly.model import Model
from ifonly.results import Answer, DiverseAnswers, Nearest, NoneExists, Stop, StoppedBy
from ifonly.results.plain_language import guarantee, plain_language
from ifonly.service.requests import QueryRequest


def answer_json(request: QueryRequest, answer: Answer, exact: str, *, further: bool = False) -> dict[str, Any]:
    """An answer with its sentences; `exact` is the one for experts."""
    return {
        "answer": answer.to_dict(),
        "sentence": plain_language(answer, request.language, request.registered.subject, further=further),
        "exact": exact,
        "guarantee": guarantee(answer, request.language),
        "path": _score_path(request.registered.explainer, answer) if request.path else None,
    }


def decision_json(model: Model, points: NDArray[np.float64], scores: NDArray[np.float64]) -> dict[str, Any]:
    """The decision of a model about one point, with its scores."""
    data: dict[str, Any] = {
        "decision": None,
        "score_margin": None,
        "probabilities": None,
        "scores": scores[0].tolist(),
    }
    if model.classes:
        decided = int(model.decide(scores)[0])
        data |= {"decision": model.classes[decided], "score_margin": float(score_margin_of(scores, decided)[0])}
        if model.probabilities is not None:
            shares = np.asarray(model.probabilities(points))[0].tolist()
            data["probabilities"] = {str(name): share for name, share in zip(model.classes, shares, strict=True)}
    return data


def _score_path(explainer: Explainer, answer: Answer) -> dict[str, Any] | None:
    if answer.counterfactual is None or not answer.changes or answer.decision_after is None:
        return None
    if any(value is None for value in answer.factual.values()):  # rows with missing numbers have another model
        return None
    path = score_path(explainer, answer)
    return {
        "score_margin": list(path.score_margin),
        "changes": [list(change) for change in path.changes],
        "decision": path.decision,
    }


def diverse_outcome(answers: DiverseAnswers) -> str:
    """How a set of answers ended, for the metrics."""
    return "proven" if answers.proven else "within"


def unfinished(answer: Answer) -> bool:
    """Could the answer be better with more time?"""
    if isinstance(answer, NoneExists):
        return answer.reasons is not None and bool(answer.reasons.note)
    return not isinstance(answer, Nearest) and _out_of_time(answer.stop)


def _out_of_time(stop: Stop | None) -> bool:
    return stop is not None and (stop.by is StoppedBy.SECONDS or _out_of_time(stop.cause))
