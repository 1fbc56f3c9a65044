"""Scores, probabilities and decisions of the fitted estimator itself, on the table that it was fitted on."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import IfonlyError, ModelError
from ifonly.model.importers.probabilities import follow_from, settled
from ifonly.model.importers.sklearn_estimators import LOGISTIC, Answer
from ifonly.model.importers.sklearn_sources import Source
from ifonly.model.importers.transformers import sklearn_name
from ifonly.model.model import Model

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SklearnOriginal:
    """Scores of the fitted estimator itself, on the table that it was fitted on."""

    source: Source
    model: Any
    answer: Answer
    name: str

    def __call__(self, points: Floats) -> Floats:
        answers = call_model(
            self.model, "predict_proba" if self.answer == "logits" else self.answer, self.source, points
        )
        scores = np.asarray(answers, dtype=np.float64).reshape(len(points), -1)
        if self.answer == "logits":
            return self._decided(scores)
        if self.name in ("SVC", "NuSVC"):  # libsvm decides for the second class at exactly zero
            scores[scores == 0.0] = np.nextafter(0.0, 1.0)
        return scores

    def _decided(self, raised: Floats) -> Floats:
        """Logits, tied where the probabilities that decide are tied. For two classes the columns are (1 - z, z)."""
        from scipy.special import expit
        from sklearn.utils.extmath import softmax

        if raised.shape[1] == 2:
            return settled(raised[:, 1:], expit(raised[:, 1:]))
        return settled(raised, softmax(raised, copy=True))


@dataclass(frozen=True)
class Probabilities:
    """What the user's own fitted object reports as probabilities."""

    source: Source
    model: Any

    def __call__(self, points: Floats) -> Floats:
        return np.asarray(call_model(self.model, "predict_proba", self.source, points), dtype=np.float64)


def reported_by(imported: Model, model: Any, estimator: Any, source: Source) -> Probabilities | None:
    """The reported probabilities, where the scores are their log-odds: those of an SVC, or of each class against the
    rest, are not."""
    has_log_odds = sklearn_name(estimator, LOGISTIC) or getattr(estimator, "loss", None) == "log_loss"
    if not imported.classes or not has_log_odds or not hasattr(model, "predict_proba"):
        return None
    reported = Probabilities(source, model)
    return reported if follow_from(imported.original, reported, imported.schema) else None


def raised(model: Any) -> Any:
    """The same fitted object (a shallow copy) without the last activation: its 'probabilities' are the logits."""
    if sklearn_name(model, ("BaseSearchCV",)):
        shallow = copy.copy(model)
        shallow.best_estimator_ = raised(model.best_estimator_)
        return shallow
    if sklearn_name(model, ("Pipeline",)):
        *steps, (name, last) = model.steps
        shallow = copy.copy(model)
        shallow.steps = [*steps, (name, raised(last))]
        return shallow
    shallow = copy.copy(model)
    shallow.out_activation_ = "identity"
    return shallow


def call_model(model: Any, method: str, source: Any, points: Floats, **options: Any) -> Any:
    """The model's own answer for points, in the table that it was fitted on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # e.g. unknown categories that an encoder ignores, as it was configured to
        with answering():
            return getattr(model, method)(source.table(points), **options)


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Turn exceptions of the user's own model into a ModelError."""
    try:
        yield
    except IfonlyError:
        raise
    except Exception as error:
        raise ModelError(f"The model cannot answer for rows of the schema: {type(error).__name__}: {error}") from None


@dataclass(frozen=True)
class Predicted:
    """The decisions of the user's own object: what `predict` gives, by the number of the class; -1 for none of them."""

    model: Any
    source: Any
    classes: tuple[Any, ...]

    def __call__(self, points: Floats) -> NDArray[np.intp]:
        places = {name: k for k, name in enumerate(self.classes)}
        predicted = np.ravel(call_model(self.model, "predict", self.source, points)).tolist()
        return np.array([places.get(name, -1) for name in predicted], dtype=np.intp)
