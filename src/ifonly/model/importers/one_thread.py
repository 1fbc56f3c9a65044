"""Fitted models that are asked about a few rows on one thread.

Libraries of trees spread every call over all cores. For a few rows that takes longer than it saves: their threads are
woken for microseconds of work, then spin, and on a busy machine the call waits until each of them had its turn. The
user's own object stays as it is; a shallow copy of it, made once, has the setting. Scores are the same, bit for bit,
but for averages that several threads add up in no order.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ifonly.model.importers.detect import of_library
from ifonly.model.importers.transformers import sklearn_name

FEW_ROWS = 256
"""As many as are answered together (`answering.answerer.PEOPLE_PER_CHUNK`)."""
OPENMP = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
"""Of scikit-learn: as many threads of OpenMP as there are cores, and no setting for it."""
AVERAGES = ("VotingClassifier", "VotingRegressor", "BaggingClassifier", "BaggingRegressor")


def on_one_thread(model: Any) -> Any:
    """The same fitted object, or a shallow copy of it, which answers on one thread."""
    if of_library(model, "xgboost", "Booster"):
        return _booster(model)
    if of_library(model, "xgboost", "XGBModel"):
        return _with(model, _Booster=_booster(model.get_booster()))
    if sklearn_name(model, ("BaseSearchCV",)):
        return _with(model, best_estimator_=on_one_thread(model.best_estimator_))
    if sklearn_name(model, ("Pipeline",)):
        *steps, (name, last) = model.steps
        return _with(model, steps=[*steps, (name, on_one_thread(last))])
    if sklearn_name(model, AVERAGES):
        model = _with(model, estimators_=[on_one_thread(member) for member in model.estimators_])
    several = sklearn_name(model, ("BaseEstimator",)) and getattr(model, "n_jobs", None) not in (None, 1)
    return _with(model, n_jobs=1) if several else model


def _with(model: Any, **attributes: Any) -> Any:
    shallow = copy.copy(model)
    for name, value in attributes.items():
        setattr(shallow, name, value)
    return shallow


def _booster(booster: Any) -> Any:
    """XGBoost keeps the number of threads inside its booster: a copy of the trees."""
    own = booster.copy()
    own.set_param({"nthread": 1})
    return own


@contextmanager
def openmp_on_one_thread(model: Any) -> Iterator[None]:
    """For models that have no setting of their own: this thread uses no others meanwhile, all others do as before."""
    last = model.steps[-1][1] if sklearn_name(model, ("Pipeline",)) else model
    if sklearn_name(last, OPENMP) is None:
        yield
        return
    with _pools().limit(limits=1, user_api="openmp"):
        yield


@lru_cache(maxsize=1)
def _pools() -> Any:
    """The OpenMP libraries that are loaded; finding them takes long. The one of a fitted model is among them."""
    return importlib.import_module("threadpoolctl").ThreadpoolController()  # scikit-learn needs it
