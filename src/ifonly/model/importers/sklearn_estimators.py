"""scikit-learn's linear models and perceptrons: their weights as steps of the flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.detect import SURROGATE
from ifonly.model.importers.transformers import sklearn_name
from ifonly.model.smooth import RELU, Activation

Answer: TypeAlias = Literal["decision_function", "logits", "predict"]
LOGISTIC = (
    "MLPClassifier", "LogisticRegression", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis", "GaussianNB",
)  # fmt: skip
"""Estimators whose score between two classes is the log-odds (and linear ones trained with the loss "log_loss")."""
OUTLIER_MODELS = (
    "LocalOutlierFactor", "BayesianGaussianMixture", "KernelDensity", "EllipticEnvelope",
)  # fmt: skip
ALONE = ("GaussianNB", "QuadraticDiscriminantAnalysis")
"""Models of `gaussian_models`, which composed estimators cannot hold."""
ACTIVATIONS = {"relu": RELU, "identity": None, "tanh": Activation("tanh"), "logistic": Activation("sigmoid")}


def reader_of(estimator: Any) -> Callable[[Any, Flow], Reading]:
    """How to read the weights of an estimator."""
    known = sklearn_name(estimator, ESTIMATORS)
    if known is not None:
        return ESTIMATORS[known]
    name = type(estimator).__name__
    if name in OUTLIER_MODELS:
        raise UnsupportedModel(
            f"{name} has no exact form here. To ask that a row looks real, with proof: plausibility.dense (a "
            f"GaussianMixture), plausibility.inliers (an isolation forest), a OneClassSVM with an RBF kernel, "
            f"plausibility.LocalOutlierFactor (one neighbour, l1) or plausibility.Near.",
            operation=name,
        )
    if name in ALONE:
        raise UnsupportedModel(
            f"{name} has an exact form alone or at the end of a Pipeline, but not inside another estimator; import it "
            f"without that, or use LogisticRegression.",
            operation=name,
        )
    raise UnsupportedModel(
        f"The estimator {name} has no exact form here; supported are MLPClassifier, MLPRegressor, linear classifiers "
        f"and regressions (LogisticRegression, LinearSVC, SGDClassifier, LinearRegression, ...), SVC with a linear or "
        f"RBF kernel, GaussianNB, QuadraticDiscriminantAnalysis, decision trees, forests and boosting; {SURROGATE}.",
        operation=name,
    )


@dataclass(frozen=True)
class Reading:
    """The scores, and which of the estimator's answers they are."""

    flow: Flow
    answer: Answer


def _dense(matrix: Any) -> NDArray[Any]:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def _perceptron(estimator: Any, flow: Flow) -> Flow:
    name = type(estimator).__name__
    if estimator.activation not in ACTIVATIONS:
        raise UnsupportedModel(
            f"The activation '{estimator.activation}' of the {name} is not supported; "
            f"train it with one of {', '.join(map(repr, ACTIVATIONS))}.",
            operation=str(estimator.activation),
        )
    activation = ACTIVATIONS[estimator.activation]
    for i, (weight, bias) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        if i and activation is not None:
            flow = flow.smooth(activation)
        flow = flow.linear(np.asarray(weight).T, bias, name=f"{name}.coefs_[{i}]")
    return flow


def _mlp_classifier(estimator: Any, flow: Flow) -> Reading:
    if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
        raise UnsupportedModel(
            f"The MLPClassifier gives {estimator.n_outputs_} labels at once (multilabel); "
            f"only one decision among classes is supported.",
            operation="multilabel",
        )
    return Reading(_perceptron(estimator, flow), "logits")


def _mlp_regressor(estimator: Any, flow: Flow) -> Reading:
    if estimator.out_activation_ != "identity":
        raise UnsupportedModel(
            f"The output activation '{estimator.out_activation_}' of the MLPRegressor is not piecewise linear.",
            operation=str(estimator.out_activation_),
        )
    return Reading(_perceptron(estimator, flow), "predict")


def _linear_classifier(estimator: Any, flow: Flow) -> Reading:
    name = type(estimator).__name__
    weight = np.atleast_2d(_dense(estimator.coef_))
    if len(estimator.classes_) < 2 or len(weight) != (1 if len(estimator.classes_) == 2 else len(estimator.classes_)):
        raise UnsupportedModel(
            f"The {name} has {len(weight)} outputs for {len(estimator.classes_)} classes (several labels at once?); "
            f"only one decision among classes is supported.",
            operation="multilabel",
        )
    return Reading(flow.linear(weight, estimator.intercept_, name=f"{name}.coef_"), "decision_function")


def _linear_regression(estimator: Any, flow: Flow) -> Reading:
    weight = np.atleast_2d(_dense(estimator.coef_))
    return Reading(flow.linear(weight, estimator.intercept_, name=f"{type(estimator).__name__}.coef_"), "predict")


def _support_vectors(estimator: Any, flow: Flow) -> Reading:
    """w = sum_i alpha_i x_i; the machine itself adds up alpha_i (x_i . x), which may cancel more."""
    name = type(estimator).__name__
    if estimator.kernel != "linear":
        raise UnsupportedModel(
            f"The kernel {estimator.kernel!r} of the {name} has no exact form here; train it with kernel='linear' (a "
            f"classifier that is not inside another estimator also with kernel='rbf').",
            operation=f"{name}(kernel={estimator.kernel!r})",
        )
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) != 2:
        raise UnsupportedModel(
            f"The {name} decides among {len(classes)} classes by votes of pairs, which has no score for each class; "
            f"use LinearSVC, which has.",
            operation=f"{name} with {len(classes)} classes",
        )
    vectors, alphas = _dense(estimator.support_vectors_), _dense(estimator.dual_coef_)
    flow = flow.linear(vectors, name=f"{name}.support_vectors_")
    flow = flow.linear(alphas, np.ravel(estimator.intercept_), name=f"{name}.dual_coef_")
    return Reading(flow, "predict" if classes is None else "decision_function")


ESTIMATORS: dict[str, Callable[[Any, Flow], Reading]] = {
    "MLPClassifier": _mlp_classifier,
    "MLPRegressor": _mlp_regressor,
    "LinearClassifierMixin": _linear_classifier,
    "LinearModel": _linear_regression,
    "BaseSGDRegressor": _linear_regression,
    "SVC": _support_vectors,
    "NuSVC": _support_vectors,
    "SVR": _support_vectors,
    "NuSVR": _support_vectors,
}
