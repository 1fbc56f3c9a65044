"""Gaussian classifiers, densities and machines with RBF kernels (`gaussians`) as Models, alone or behind transformers.

The original is the fitted object itself: its `decision_function`, the differences of its `predict_log_proba`, or its
`score_samples` against a threshold; its own decision decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import MissingExtra, ModelError, UnsupportedModel
from ifonly.model.agreement import check_agreement
from ifonly.model.flow import Flow
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.composed_model import Decided
from ifonly.model.importers.gaussians import InputColumns, mixture, naive_bayes, quadratic_discriminant, radial_machine
from ifonly.model.importers.sklearn_original import Predicted, SklearnOriginal, call_model, reported_by
from ifonly.model.importers.sklearn_parts import best_of, check_fitted, parts_of
from ifonly.model.importers.sklearn_sources import Source, source_of
from ifonly.model.importers.transformers import sklearn_name, transformed
from ifonly.model.model import Model
from ifonly.schema import Schema
from ifonly.schema.values import plain

Floats = NDArray[np.float64]
RARE, DENSE = -1, 1
"""Classes of a density: below its threshold, and from it on."""
DENSITIES = ("GaussianMixture",)
CLASSIFIERS = ("QuadraticDiscriminantAnalysis", "GaussianNB")
MACHINES = ("OneClassSVM", "SVC", "NuSVC")


def is_density(model: Any) -> bool:
    """Is it a density, or a pipeline that ends in one, which takes a threshold to decide?"""
    return sklearn_name(_last(model), DENSITIES) is not None


def is_gaussian(estimator: Any) -> bool:
    """Is it one of the models that are read here?"""
    if sklearn_name(estimator, MACHINES) is not None:
        return estimator.kernel == "rbf" or sklearn_name(estimator, ("OneClassSVM",)) is not None
    return sklearn_name(estimator, (*CLASSIFIERS, *DENSITIES)) is not None


def _last(model: Any) -> Any:
    while sklearn_name(model, ("Pipeline",)):
        model = model.steps[-1][1]
    return model


def fitted_mixture(rows: Floats, components: int, covariance: str, outliers: float) -> tuple[Any, float]:
    """A mixture of standardised columns, and the score that the share `outliers` of the rows is below."""
    try:
        from sklearn.mixture import GaussianMixture
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise MissingExtra("sklearn", extra="sklearn", needed_for="Fitting a Gaussian mixture") from None
    mixture = make_pipeline(StandardScaler(), GaussianMixture(components, covariance_type=covariance, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than components; not converged yet
        mixture.fit(rows)
        scores = mixture.score_samples(rows)
    return mixture, float(np.quantile(scores, outliers, method="higher"))


def import_density(model: Any, schema: Schema, at_least: float) -> Model:
    """A density that decides for 1 where its `score_samples` are at least the threshold, and else for -1."""
    return _imported(model, schema, (), at_least=float(at_least))


def import_gaussian(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A fitted Gaussian classifier or machine with an RBF kernel, or a pipeline that ends in one."""
    name = type(_last(best_of(model))).__name__
    if is_density(best_of(model)):
        raise UnsupportedModel(
            f"A {name} decides nothing without a threshold: ask for Accepted(by=model, target=ScoreTarget(at_least=...)"
            f"), of its score_samples, or use plausibility.dense.",
            operation=name,
        )
    if regression:
        raise ModelError(f"{name} is a classifier, not a regression; leave out regression=True.")
    return _imported(model, schema, classes)


def _imported(model: Any, schema: Schema, classes: tuple[Any, ...], *, at_least: float | None = None) -> Model:
    found = best_of(model)
    front, estimator = parts_of(found)
    check_fitted(found, estimator)
    name = type(estimator).__name__
    arithmetic = Columns(schema)
    source = source_of(found, front, arithmetic)
    columns = source.columns()
    for where, step in front:
        columns = transformed(step, columns, arithmetic, where)
    _check_read(estimator, name, len(columns), arithmetic)
    function = _flow(estimator, InputColumns.of(columns, arithmetic, name), at_least).to_network()
    own, decided, call = _original(model, source, estimator, at_least)
    imported = Model(
        function=function,
        schema=schema,
        original=Decided(call, decided),
        classes=tuple(classes) or own,
        source=f"sklearn {name}",
        for_schema=partial(_imported, model, classes=tuple(classes), at_least=at_least),
        accepted=DENSE if own == (RARE, DENSE) and not classes and at_least is not None else None,
        warnings=tuple(arithmetic.warnings),
    )
    if sklearn_name(estimator, ("OneClassSVM",)) is not None:
        imported = replace(imported, accepted=imported.classes[1])
    imported = replace(imported, probabilities=reported_by(imported, model, estimator, source))
    return check_agreement(imported, decided=decided)


def _check_read(estimator: Any, name: str, columns: int, arithmetic: Columns) -> None:
    expected = getattr(estimator, "n_features_in_", columns)
    if expected != columns or not columns:
        raise ModelError(f"{name} takes {expected} columns, but the transformers before it give {columns}.")
    known = ("means_", "theta_", "support_vectors_")
    parameters: list[Any] = [getattr(estimator, part) for part in known if hasattr(estimator, part)]
    single = ({str(one.dtype) for one in parameters if hasattr(one, "dtype")} | arithmetic.dtypes) - {"float64"}
    if any("float" in one for one in single):
        raise UnsupportedModel(
            f"The {name} computes in {', '.join(sorted(single))}, which is not supported for it; fit it on float64.",
            operation=f"{name} in single precision",
        )


def _flow(estimator: Any, inputs: InputColumns, at_least: float | None) -> Flow:
    known = sklearn_name(estimator, (*CLASSIFIERS, *DENSITIES, *MACHINES))
    if known == "QuadraticDiscriminantAnalysis":
        found = quadratic_discriminant(estimator, inputs)
        difference = np.array([[-1.0, 1.0]])
        return found.linear(difference, name=inputs.name) if found.width == 2 else found
    if known == "GaussianNB":
        return naive_bayes(estimator, inputs)
    if at_least is not None:
        return mixture(estimator, inputs, at_least)
    _check_machine(estimator, inputs.name)
    return radial_machine(estimator, inputs)


def _check_machine(estimator: Any, name: str) -> None:
    if estimator.kernel != "rbf":
        raise UnsupportedModel(
            f"The kernel {estimator.kernel!r} of the {name} has no exact form here; fit it with kernel='rbf'.",
            operation=f"{name}(kernel={estimator.kernel!r})",
        )
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) != 2:
        raise UnsupportedModel(
            f"The {name} decides among {len(classes)} classes by votes of pairs, which has no score for each class; "
            f"fit it on two of them.",
            operation=f"{name} with {len(classes)} classes",
        )


# ---------------------------------------------------------------------- the user's own object


@dataclass(frozen=True)
class LogRatios:
    """log p(c) of each class, less that of the first; of two classes the one difference."""

    model: Any
    source: Source

    def __call__(self, points: Floats) -> Floats:
        logs = np.asarray(call_model(self.model, "predict_log_proba", self.source, points), dtype=np.float64)
        return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs - logs[:, :1]


@dataclass(frozen=True)
class AboveThreshold:
    """score_samples less the threshold; of several components sum_k E(e_k) - 1 (`gaussians`), e_k by the
    responsibilities."""

    model: Any
    source: Source
    threshold: float
    components: int

    def __call__(self, points: Floats) -> Floats:
        above = np.ravel(call_model(self.model, "score_samples", self.source, points)) - self.threshold
        if self.components == 1:
            return above[:, None]
        shares = np.asarray(call_model(self.model, "predict_proba", self.source, points), dtype=np.float64)
        with np.errstate(divide="ignore"):
            each = above[:, None] + np.log(shares)
        grown = np.where(each > 0.0, each, np.expm1(np.minimum(each, 0.0)))
        return (grown.sum(axis=1) + (self.components - 1.0))[:, None]


@dataclass(frozen=True)
class DenseEnough:
    """Which rows have `score_samples` of at least the threshold: 1, or 0."""

    model: Any
    source: Source
    threshold: float

    def __call__(self, points: Floats) -> NDArray[np.intp]:
        scores = np.ravel(call_model(self.model, "score_samples", self.source, points))
        return (scores >= self.threshold).astype(np.intp)


def _original(
    model: Any, source: Source, estimator: Any, at_least: float | None
) -> tuple[tuple[Any, ...], Any, Callable[[Floats], Floats]]:
    """Classes, decisions and scores of the user's own object."""
    if at_least is not None:
        count = len(np.asarray(estimator.weights_))
        return (RARE, DENSE), DenseEnough(model, source, at_least), AboveThreshold(model, source, at_least, count)
    one_class = sklearn_name(estimator, ("OneClassSVM",)) is not None
    own = (RARE, DENSE) if one_class else tuple(plain(c) for c in estimator.classes_)
    call: Callable[[Floats], Floats]
    if sklearn_name(estimator, ("GaussianNB",)) is not None:
        call = LogRatios(model, source)
    else:
        call = SklearnOriginal(source, model, "decision_function", type(estimator).__name__)
    return own, Predicted(model, source, own), call
