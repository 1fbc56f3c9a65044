"""Parts of a fitted scikit-learn object: the transformers in front, and the estimator that decides."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

from ifonly.errors import ModelError
from ifonly.model.importers.binning import Binning, is_binning_process
from ifonly.model.importers.detect import of_library
from ifonly.model.importers.transformers import sklearn_name, steps_of

Front: TypeAlias = list[tuple[str, Any]]
"""Transformers with their paths, in order."""


def best_of(model: Any) -> Any:
    """What a finished search found; anything else itself."""
    if sklearn_name(model, ("BaseSearchCV",)):
        if not hasattr(model, "best_estimator_"):
            raise ModelError(f"The {type(model).__name__} is not fitted, or was fitted without refit; call fit first.")
        return model.best_estimator_
    return model


def parts_of(model: Any) -> tuple[Front, Any]:
    """The transformers in front, with their paths, and the estimator at the end."""
    front: Front = []
    path = ""
    while sklearn_name(model, ("Pipeline",)):
        if not hasattr(model.steps[-1][1], "predict"):
            raise ModelError("The pipeline does not end in an estimator: there is nothing that decides.")
        steps = list(steps_of(model))
        front += [(path + name, step) for name, step in steps[:-1]]
        path += steps[-1][0] + "."
        model = steps[-1][1]
    if of_library(model, "optbinning", "Scorecard"):
        bins, model = _scorecard_parts(model)
        front.append((path + "binning process", bins))
    return [(where, Binning(s) if is_binning_process(s) else s) for where, s in front], model


def _scorecard_parts(scorecard: Any) -> tuple[Binning, Any]:
    """The bins of optbinning's Scorecard, with its own values for missing numbers and special codes; its estimator."""
    if not hasattr(scorecard, "estimator_"):
        raise ModelError("The Scorecard is not fitted; call fit before importing it.")
    options = (("metric_special", scorecard._metric_special), ("metric_missing", scorecard._metric_missing))
    return Binning(scorecard.binning_process_, options), scorecard.estimator_


def check_fitted(model: Any, estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class; pass a fitted object of it.")
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        raise ModelError(f"The {type(estimator).__name__} is not fitted; call fit before importing it.") from None


def by_output(model: Any, output: int | str | None) -> Any:
    """The object whose estimator is that of one output of a MultiOutputClassifier; other objects as they are."""
    _, estimator = parts_of(best_of(model))
    several = sklearn_name(estimator, ("MultiOutputClassifier", "MultiOutputRegressor"))
    if output is None:
        return model
    if several is None:
        raise ModelError(f"The {type(estimator).__name__} gives one answer; leave out output={output!r}.")
    members = estimator.estimators_
    place = int(output) if isinstance(output, int) or str(output).isdigit() else -1
    if not 0 <= place < len(members):
        raise ModelError(f"The {several} has the outputs 0 to {len(members) - 1}; there is no {output!r}.")
    return _with_last(best_of(model), members[place])


def _with_last(model: Any, estimator: Any) -> Any:
    """The pipeline (a shallow copy) with another estimator at its end."""
    if not sklearn_name(model, ("Pipeline",)):
        return estimator
    *steps, (name, last) = model.steps
    shallow = copy.copy(model)
    shallow.steps = [*steps, (name, _with_last(last, estimator))]
    return shallow
