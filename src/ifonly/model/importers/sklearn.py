"""scikit-learn: linear models and multi-layer perceptrons, alone or at the end of a Pipeline.

    schema's encoded columns --(one affine map: the transformers)--> the estimator's columns --(estimator)--> scores

An estimator alone reads the schema's encoded columns. A pipeline reads the user's own values, feature by feature (or
the encoded columns, when it was fitted on a table that has those). Scores are the decision function; for perceptrons
the value before the output's sigmoid or softmax, which is the log-odds without the rounding of a probability.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import IfonlyError, ModelError, UnsupportedModel
from ifonly.model.agreement import ROWS, check_agreement, comparison_rows
from ifonly.model.flow import Flow
from ifonly.model.importers.binning import Binning, is_binning_process
from ifonly.model.importers.columns import Absent, Binned, Column, Columns
from ifonly.model.importers.foreign import SURROGATE, of_library
from ifonly.model.importers.probabilities import settled
from ifonly.model.importers.tables import table
from ifonly.model.importers.transformers import sklearn_name, steps_of, transformed
from ifonly.model.kind import Precision
from ifonly.model.model import Logistic, Model, describe_columns
from ifonly.model.smooth import RELU, Activation
from ifonly.schema import Choice, Integer, Schema
from ifonly.schema.values import plain

Floats = NDArray[np.float64]
Answer: TypeAlias = Literal["decision_function", "logits", "predict"]
SURE = 1e-9
"""Relative to 1 + |score|: closer to a tie than this, the decision may hang on rounding."""
LOGISTIC = ("MLPClassifier", "LogisticRegression", "LinearDiscriminantAnalysis")
"""Estimators whose score between two classes is the log-odds (and linear ones trained with the loss "log_loss")."""
ACTIVATIONS = {"relu": RELU, "identity": None, "tanh": Activation("tanh"), "logistic": Activation("sigmoid")}
LOG_ODDS = 1e-5
"""How well a reported probability must follow from the score, also in the float32 that some models report."""


def import_sklearn(model: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A fitted scikit-learn estimator or pipeline as a Model."""
    from ifonly.model.importers.trees import grown_behind_bins, grown_by, model_of, read_columns

    model = _best(model)
    front, estimator = _parts(model)
    _check_fitted(model, estimator)
    grown = grown_by(estimator, schema)
    if grown is not None:
        return model_of(grown, model, schema, front=front, classes=classes, regression=regression)
    name, reader = type(estimator).__name__, reader_of(estimator)
    arithmetic = Columns(schema)
    source = source_of(model, front, arithmetic)
    columns = source.columns()
    for where, step in front:
        columns = transformed(step, columns, arithmetic, where)
    if any(isinstance(column, Binned) for column in columns):
        bins = grown_behind_bins(estimator, columns, arithmetic, partial(read_columns, source, [s for _, s in front]))
        made = model_of(bins, model, schema, front=front, classes=classes, regression=regression)
        return replace(made, for_schema=partial(import_sklearn, model, classes=classes, regression=regression))
    flow = _input_flow(columns, estimator, schema, arithmetic, plainly=source.identity and not front)
    read = reader(estimator, flow)
    if read.answer == "predict" and classes:
        raise ModelError(f"{name} is a regression; it has no classes, but {len(classes)} class names were given.")
    if read.answer != "predict" and regression:
        raise ModelError(f"{name} is a classifier, not a regression; leave out regression=True.")
    own = () if read.answer == "predict" else tuple(plain(c) for c in estimator.classes_)
    imported = Model(
        function=read.flow.finish(),
        schema=schema,
        original=SklearnOriginal(source, _raised(model) if read.answer == "logits" else model, read.answer, name),
        classes=tuple(classes) or own,
        source=f"sklearn {name}",
        precision=_precision(read.flow, estimator, arithmetic),
        for_schema=partial(import_sklearn, model, classes=tuple(classes), regression=regression),
    )
    check_decisions(imported, model, source, own)
    return check_agreement(replace(imported, probabilities=_probabilities(imported, model, estimator, source)))


def reader_of(estimator: Any) -> Callable[[Any, Flow], Reading]:
    """How to read the weights of an estimator."""
    known = sklearn_name(estimator, ESTIMATORS)
    if known is not None:
        return ESTIMATORS[known]
    name = type(estimator).__name__
    raise UnsupportedModel(
        f"The estimator {name} has no exact form here; supported are MLPClassifier, MLPRegressor, linear classifiers "
        f"and regressions (LogisticRegression, LinearSVC, SGDClassifier, LinearRegression, ...), SVC with a linear "
        f"kernel, decision trees, forests and boosting; {SURROGATE}.",
        operation=name,
    )


# ---------------------------------------------------------------------- what the model reads


@dataclass(frozen=True)
class EncodedSource:
    """The schema's encoded columns, some or all, in the order that the model wants."""

    arithmetic: Columns
    order: tuple[int, ...]
    names: tuple[str, ...] | None

    @property
    def identity(self) -> bool:
        return self.order == tuple(range(len(self.arithmetic.schema.columns)))

    def columns(self) -> list[Column]:
        return [self.arithmetic.encoded(i) for i in self.order]

    def table(self, points: Floats) -> Any:
        schema = self.arithmetic.schema
        encoded = schema.encode(np.atleast_2d(points))
        for g in schema.unknown:
            encoded[:, schema.feature_columns[g]] = self.arithmetic.raw_values(g)[0]
        encoded = encoded[:, self.order]
        return encoded if self.names is None else table(list(encoded.T), self.names)


@dataclass(frozen=True)
class RawSource:
    """The user's own values, one column per feature; None for a column that the schema does not have."""

    arithmetic: Columns
    features: tuple[int | None, ...]
    names: tuple[str, ...] | None
    identity: bool = False

    def columns(self) -> list[Column]:
        names = self.names or ()
        return [Absent(names[i]) if g is None else self.arithmetic.raw(g) for i, g in enumerate(self.features)]

    def table(self, points: Floats) -> Any:
        used = [(i, g) for i, g in enumerate(self.features) if g is not None]
        columns = [self._values(g, points[:, g]) for _, g in used]
        return table(columns, None if self.names is None else [self.names[i] for i, _ in used])

    def _values(self, feature: int, numbers: Floats) -> NDArray[Any]:
        described = self.arithmetic.schema.features[feature]
        if isinstance(described, Choice):
            return self.arithmetic.raw_values(feature)[numbers.astype(np.intp)]
        whole = isinstance(described, Integer) and not described.missing  # a column that lacks some holds floats
        return np.rint(numbers).astype(np.int64) if whole else numbers


Source: TypeAlias = EncodedSource | RawSource


def source_of(model: Any, front: list[tuple[str, Any]], arithmetic: Columns) -> Source:
    """What a scikit-learn object reads, by the names or the count of the columns that it was fitted with."""
    outermost, schema = front[0][1] if front else model, arithmetic.schema
    count = getattr(outermost, "n_features_in_", len(schema) if front else len(schema.columns))
    return source_by(getattr(outermost, "feature_names_in_", None), count, arithmetic, raw=bool(front))


def source_by(found: Any, count: int, arithmetic: Columns, *, raw: bool) -> Source:
    """What is read by these names, or, without names, so many columns. `raw`: the user's own values may be meant."""
    schema = arithmetic.schema
    if found is None:
        if raw and count == len(schema):
            return RawSource(arithmetic, tuple(range(len(schema))), None)
        if count != len(schema.columns):
            raise ModelError(f"The model takes {count} columns, but {describe_columns(schema)}.")
        return EncodedSource(arithmetic, tuple(range(count)), None)
    names = tuple(str(name) for name in found)
    encoded = {name: i for i, name in enumerate(schema.columns)}
    features = {name: i for i, name in enumerate(schema.names)}
    if not raw or (all(n in encoded for n in names) and not all(n in features for n in names)):
        for name in names:
            if name not in encoded:
                raise ModelError(
                    f"The model was fitted with a column '{name}', but {describe_columns(schema)}; "
                    f"name the columns so in training, or put the encoding into a Pipeline with the model."
                )
        return EncodedSource(arithmetic, tuple(encoded[name] for name in names), names)
    if not any(name in features for name in names):
        raise ModelError(
            f"The model was fitted with the columns {', '.join(map(repr, names[:6]))}, none of which is a feature of "
            f"the schema; its features are {', '.join(map(repr, schema.names[:6]))}."
        )
    return RawSource(arithmetic, tuple(features.get(name) for name in names), names)


def _input_flow(columns: list[Column], estimator: Any, schema: Schema, arithmetic: Columns, *, plainly: bool) -> Flow:
    """The schema's encoded columns on their way into the estimator."""
    flow = Flow.of(len(schema.columns))
    if plainly:
        return flow
    name = type(estimator).__name__
    expected = getattr(estimator, "n_features_in_", len(columns))
    if expected != len(columns) or not columns:
        raise ModelError(f"{name} takes {expected} columns, but the transformers before it give {len(columns)}.")
    weight, shift, sizes = arithmetic.matrix(columns, name)
    return flow.linear(weight, shift, name="the transformers before " + name, sizes=sizes)


# ---------------------------------------------------------------------- estimators


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
            f"The kernel {estimator.kernel!r} of the {name} is not piecewise linear; train it with kernel='linear'.",
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


# ---------------------------------------------------------------------- the original


@dataclass(frozen=True)
class SklearnOriginal:
    """The user's own fitted object, asked in the table that it was fitted on."""

    source: Source
    model: Any
    answer: Answer
    name: str

    def __call__(self, points: Floats) -> Floats:
        answers = asked(self.model, "predict_proba" if self.answer == "logits" else self.answer, self.source, points)
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
        return np.asarray(asked(self.model, "predict_proba", self.source, points), dtype=np.float64)


def _probabilities(imported: Model, model: Any, estimator: Any, source: Source) -> Probabilities | None:
    """The reported probabilities, where the scores are their log-odds: those of an SVC, or of each class against the
    rest, are not."""
    speaks = sklearn_name(estimator, LOGISTIC) or getattr(estimator, "loss", None) == "log_loss"
    if not imported.classes or not speaks or not hasattr(model, "predict_proba"):
        return None
    points = comparison_rows(imported.schema, ROWS, seed=2)
    reported = Probabilities(source, model)
    same = np.allclose(reported(points), Logistic(imported.original)(points), rtol=0.0, atol=LOG_ODDS)
    return reported if same else None


def _raised(model: Any) -> Any:
    """The same fitted object (a shallow copy) without the last activation: its 'probabilities' are the logits."""
    if sklearn_name(model, ("Pipeline",)):
        *steps, (name, last) = model.steps
        shallow = copy.copy(model)
        shallow.steps = [*steps, (name, _raised(last))]
        return shallow
    shallow = copy.copy(model)
    shallow.out_activation_ = "identity"
    return shallow


def asked(model: Any, method: str, source: Any, points: Floats, **options: Any) -> Any:
    """The model's own answer for points, in the table that it was fitted on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # e.g. unknown categories that an encoder ignores, as it was told to
        with answering():
            return getattr(model, method)(source.table(points), **options)


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Around a call of the user's own model: what it raises is said in our words."""
    try:
        yield
    except IfonlyError:
        raise
    except Exception as error:
        raise ModelError(f"The model cannot answer for rows of the schema: {type(error).__name__}: {error}") from None


def check_decisions(imported: Model, model: Any, source: Any, own: tuple[Any, ...]) -> None:
    """Does `predict` decide as the scores do? It may not, when a subclass or a wrapper has a mind of its own."""
    if not own:
        return
    points = comparison_rows(imported.schema, ROWS, seed=1)
    scores = imported.scores(points)
    decided = np.ravel(asked(model, "predict", source, points)).tolist()
    ours = [own[k] for k in imported.decide(scores).tolist()]
    if scores.shape[1] == 1:
        gap = np.abs(scores[:, 0])
    else:
        gap = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    sure = gap > SURE * (1.0 + np.abs(scores).max(axis=1))
    for i in np.flatnonzero(sure).tolist():
        if decided[i] != ours[i]:
            raise ModelError(
                f"The model predicts {decided[i]!r} where its own scores {scores[i].tolist()} say {ours[i]!r}, on the "
                f"row {imported.schema.row(points[i])}; does it decide by a rule of its own?"
            )


# ---------------------------------------------------------------------- taking the object apart


def _best(model: Any) -> Any:
    """What a finished search found; anything else itself."""
    if sklearn_name(model, ("BaseSearchCV",)):
        if not hasattr(model, "best_estimator_"):
            raise ModelError(f"The {type(model).__name__} is not fitted, or was not told to refit; call fit first.")
        return model.best_estimator_
    return model


def _parts(model: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The transformers in front, with their paths, and the estimator at the end."""
    front: list[tuple[str, Any]] = []
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


def _check_fitted(model: Any, estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class; pass a fitted object of it.")
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        raise ModelError(f"The {type(estimator).__name__} is not fitted; call fit before importing it.") from None


def _precision(flow: Flow, estimator: Any, arithmetic: Columns) -> Precision:
    """float32 when the weights or an encoder's output are: then the model may compute so."""
    weights = estimator.coefs_ if hasattr(estimator, "coefs_") else [estimator.coef_]
    dtypes = {str(weight.dtype) for weight in weights} | arithmetic.dtypes
    if "float16" in dtypes:
        raise UnsupportedModel(
            "The model computes in float16, which is not supported; use float32.", operation="float16"
        )
    return "float32" if "float32" in dtypes else "float64"
