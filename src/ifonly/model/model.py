"""Model: the user's own classifier or regression (the original), the equivalent function, and the error between them.

The *function*, of some kind, is what solvers search: a network, for instance. Every answer is evaluated with the
*original*. Scores are real numbers: for classifiers of two classes one score, positive for the second class (the
log-odds where the model returns probabilities); for K > 2 classes one score each, the largest wins; for regression the
prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.kind import Kind, Precision
from ifonly.model.network import Network
from ifonly.model.rounding import column_box, constant_columns, exact_columns
from ifonly.model.smooth.kind import SmoothNetwork
from ifonly.printing import shown, some_of
from ifonly.schema import Schema
from ifonly.schema.arguments import is_label, items
from ifonly.schema.values import plain, same_value

Scores: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class Model:
    """`original` maps points (n, features) to scores (n, outputs), by the user's own code.

    A model without class names is a regression. `deviation` is the largest difference between the original and the
    function on the rows that were compared when the model was imported. `probabilities` maps points to the probability
    of each class, shape (n, classes), as the original itself reports them; None where it reports none whose log-odds is
    the score. `source` says where the model came from. `for_schema` imports the same model for rows with missing
    numbers (`Schema.with_missing`), where it takes these. `scores_are`: log-odds of the probabilities, or the
    probabilities themselves, one score per class.
    """

    function: Kind
    schema: Schema
    original: Scores
    classes: tuple[Any, ...] = ()
    outcomes: Mapping[Any, Mapping[str, str]] = field(default_factory=dict)
    """Of classes that have one: the outcome as a clause ("the application would have been approved"), by language."""
    source: str = "network"
    precision: Precision = "float64"
    deviation: float = 0.0
    probabilities: Scores | None = None
    for_schema: Callable[[Schema], Model] | None = None
    scores_are: Literal["log-odds", "probabilities"] = "log-odds"
    accepted: Any = None
    """The class that means acceptance, where that is no matter of choice: of an anomaly model, that of inliers."""
    warnings: tuple[str, ...] = ()
    """Warnings of the import, such as options that an encoder does not know."""

    def __post_init__(self) -> None:
        if not isinstance(self.function, Kind) or not isinstance(self.schema, Schema):
            wrong = self.schema if isinstance(self.function, Kind) else self.function
            raise ModelError(f"A model is made of a function, such as a Network, and a Schema; got {shown(wrong)}.")
        if self.function.inputs != len(self.schema.columns):
            raise ModelError(f"The model takes {self.function.inputs} columns, but {describe_columns(self.schema)}.")
        _check_bounds(self.function, self.schema)
        object.__setattr__(self, "classes", _checked_classes(self.classes, self.function.outputs))
        if not isinstance(self.precision, str) or self.precision not in ("float64", "float32"):
            raise ModelError(f"A model computes in float64 or in float32; got {shown(self.precision)}.")

    def __getstate__(self) -> dict[str, Any]:  # what questions keep beside a model is made again, in another process
        return {name: value for name, value in self.__dict__.items() if name != "_reduced_models"}

    def __repr__(self) -> str:
        about = f"{len(self.classes)} classes" if self.classes else "a regression"
        return f"<Model: {self.source}, {len(self.schema)} features, {about}, {self.precision}>"

    @property
    def outputs(self) -> int:
        """Number of scores."""
        return self.function.outputs

    @property
    def network(self) -> Network:
        """The piecewise-linear network equal to the model; an error where it has no such form."""
        network = self.function.as_network()
        if network is None:
            raise UnsupportedModel(
                f"This needs a piecewise-linear network, but the model is {self.function.name}.",
                operation=self.function.name,
            )
        return network

    @cached_property
    def of_network(self) -> Model:
        """The same decisions by the network itself, in place of the user's own model."""
        network = network_model(self.network, self.schema, classes=self.classes, regression=not self.classes)
        return replace(network, probabilities=self.probabilities, scores_are=self.scores_are)

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """Rounding error bound of a deployed score on any row of the schema, one number per output."""
        return self.error_in(self.precision)

    def error_in(self, precision: Precision) -> NDArray[np.float64]:
        """The same for a model that computes in this precision."""
        lower, upper = column_box(self.schema)
        exact = exact_columns(self.schema, precision)
        return self.function.error(lower[None, :], upper[None, :], precision, exact)[0]

    def error_over(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same on the rows of each box of encoded columns: arrays of shape (boxes, columns) to (boxes, outputs)."""
        return self.function.error(lower, upper, self.precision, self.exact)

    def error_at(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same at single points, shape (points, outputs)."""
        encoded = self.schema.encode(points)
        return self.error_over(encoded, encoded)

    def sharp_scores(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The function's scores of many points, and their rounding error bounds: as tight as float64 allows."""
        encoded = self.schema.encode(points)
        exact = np.ones(encoded.shape[1], dtype=np.bool_)
        return self._sharp.scores(encoded), self._sharp.error(encoded, encoded, "float64", exact)

    def quick_scores(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same scores with the error bound of the whole schema, which takes no analysis of these points."""
        return self._sharp.scores(self.schema.encode(points)), self.sharp_error[None, :]

    @cached_property
    def sharp_error(self) -> NDArray[np.float64]:
        """The largest error bound of `sharp_scores`, on any row of the schema, one number per output."""
        lower, upper = column_box(self.schema)
        exact = np.ones(len(lower), dtype=np.bool_)
        return self._sharp.error(lower[None, :], upper[None, :], "float64", exact)[0]

    @cached_property
    def _sharp(self) -> Kind:
        return self.function.without_constants(constant_columns(self.schema))

    @cached_property
    def searched_layers(self) -> Network:
        """The affine layers that a search works on: columns that are the same in every row are part of the first bias.
        Between them are ReLUs, or the activations of a smooth network."""
        smooth = self.function.as_smooth_network()
        if smooth is None and isinstance(self._sharp, Network):
            return self._sharp
        return (self.network if smooth is None else smooth.linear).without_constants(constant_columns(self.schema))

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """The encoded columns of which every value is a number of the model's precision."""
        return exact_columns(self.schema, self.precision)

    def exact_scores(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of many points by the function, shape (n, outputs), in float64."""
        return self.function.scores(self.schema.encode(points))

    @property
    def is_classifier(self) -> bool:
        return bool(self.classes)

    def scores(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of many points by the user's own model, shape (n, outputs), float64."""
        many = points if points.ndim == 2 else points[None, :]
        return np.asarray(self.original(many), dtype=np.float64).reshape(len(many), self.outputs)

    def as_log_odds(self) -> Model:
        """The same model, whose scores the caller knows to be log-odds: trained with a logistic loss, for instance."""
        if not self.classes:
            raise ModelError("Only the scores of classes can be log-odds; this model is a regression.")
        if self.scores_are == "probabilities":
            raise ModelError("The scores of this model are probabilities already, not log-odds.")
        return replace(self, probabilities=Logistic(self.original))

    def with_missing(self, names: Collection[str]) -> Model:
        """The same model for rows in which these numbers are missing."""
        if self.for_schema is None:
            raise ModelError(
                f"This model ({self.source}) takes no missing numbers; fill them in before asking, or put an imputer "
                f"before the model (a scikit-learn Pipeline with a SimpleImputer)."
            )
        restricted = self.for_schema(self.schema.with_missing(names))
        made = replace(restricted, classes=self.classes, outcomes=self.outcomes)
        return made.as_log_odds() if isinstance(self.probabilities, Logistic) and not made.probabilities else made

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """The class of each row of scores."""
        return self.function.decide(scores)


def network_model(
    network: Network | SmoothNetwork,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    precision: Precision = "float64",
    regression: bool = False,
) -> Model:
    """A model whose original is the network's own forward pass. Without class names, classes 0, 1, ... are assumed."""
    return Model(
        function=network,
        schema=schema,
        original=ForwardPass(network, schema),
        classes=class_names(classes, network.outputs, regression=regression),
        precision=precision,
    )


def always_accepting(schema: Schema) -> Model:
    """A model that says 1 of every row: for questions that are about other things."""
    return network_model(Network.of([(np.zeros((1, len(schema.columns))), np.ones(1))]), schema)


@dataclass(frozen=True)
class ForwardPass:
    """The function as its own original."""

    function: Kind
    schema: Schema

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.function.scores(self.schema.encode(points))


@dataclass(frozen=True)
class Logistic:
    """Probabilities of two classes from their log-odds (one score), or of two and more from a logit each."""

    original: Scores

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = np.asarray(self.original(points), dtype=np.float64).reshape(len(points), -1)
        if scores.shape[1] > 2:
            share = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(share / share.sum(axis=1, keepdims=True))
        odds = scores[:, -1] - (scores[:, 0] if scores.shape[1] == 2 else 0.0)
        small = np.exp(-np.abs(odds))  # never overflows
        less, more = small / (1.0 + small), 1.0 / (1.0 + small)
        return np.where((odds > 0.0)[:, None], np.column_stack([less, more]), np.column_stack([more, less]))


def class_names(classes: tuple[Any, ...], outputs: int, *, regression: bool = False) -> tuple[Any, ...]:
    """The class names, by default 0, 1, ...; none for a regression."""
    if regression is not False and regression is not True:
        raise ModelError(f"'regression' is True or False; got {shown(regression)}.")
    if regression:
        if len(classes):
            raise ModelError(f"A regression has no classes, but the class names {shown(list(classes))} were given.")
        return ()
    return tuple(classes) or tuple(range(max(2, outputs)))


def class_list(classes: Any) -> tuple[Any, ...]:
    """The names in a list of class names: texts, booleans or finite numbers."""
    names = items(classes)
    if names is None:
        raise ModelError(f"The class names must be a list of names; got {shown(classes)}.")
    for name in names:
        if not is_label(name):
            raise ModelError(f"A class is named by a text, a finite number or a boolean; got {shown(name)}.")
    return tuple(plain(name) for name in names)


def describe_columns(schema: Schema) -> str:
    """How many columns rows have, with the names of the first few, for messages."""
    names = some_of([f"'{name}'" for name in schema.columns], 6)
    return f"the schema encodes to {len(schema.columns)}: {names}"


def _check_bounds(function: Kind, schema: Schema) -> None:
    """Refuse a schema whose rows go beyond the bounds within which the function equals the imported model."""
    within = function.within
    if within is None:
        return
    lower, upper = column_box(schema)
    beyond = np.flatnonzero((lower < within[0]) | (upper > within[1]))
    if len(beyond):
        k = int(beyond[0])
        raise ModelError(
            f"This network equals the imported model only where '{schema.columns[k]}' is in "
            f"[{within[0][k]:g}, {within[1][k]:g}], as in the schema that it was imported under; here it may be in "
            f"[{lower[k]:g}, {upper[k]:g}]. Import the model itself under this schema."
        )


def _checked_classes(classes: Any, outputs: int) -> tuple[Any, ...]:
    names = class_list(classes)
    if names and len(names) != max(2, outputs):
        raise ModelError(
            f"The model decides between {max(2, outputs)} classes, but {len(names)} class "
            f"{'name was' if len(names) == 1 else 'names were'} given: {list(names)}."
        )
    for i, name in enumerate(names):
        if any(same_value(name, other) for other in names[:i]):
            raise ModelError(f"The class {shown(name)} is named twice.")
    return names
