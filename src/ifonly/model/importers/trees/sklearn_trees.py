"""scikit-learn tree importer: decision trees, forests, bagging, boosting, voting.

    trees, forests     float32(x) <= threshold; fractions of the classes, averaged
    GradientBoosting   the same split; start + sum of learning rate * leaf, in order
    HistGradient...    x <= threshold in float64, categories, missing values; start + sum of leaves, in order
    AdaBoost           each tree votes with its weight for the class of its leaf (SAMME)
    IsolationForest    the sum of path lengths against a threshold (`isolation`)

A forest's average depends in its last bits on how the work is shared among threads, so its sum has no order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.importers.sklearn_original import call_model
from ifonly.model.importers.transformers import sklearn_name
from ifonly.model.importers.trees.imported import Call, ImportedTrees, classes_of
from ifonly.model.importers.trees.isolation import INLIER, OUTLIER, PathLengths, isolation_trees
from ifonly.model.trees import EVERY, Ensemble, LibraryTree, Summation
from ifonly.schema.values import plain

Floats = NDArray[np.float64]
SMALLEST = float(np.nextafter(0.0, 1.0))


def sklearn_trees_of(estimator: Any) -> ImportedTrees | None:
    """The trees of a fitted estimator; None where it has none."""
    known = sklearn_name(estimator, READERS)
    return None if known is None else READERS[known](estimator)


# ---------------------------------------------------------------------- averages


@dataclass(frozen=True)
class _Average:
    """Trees whose leaves hold one value per output, and how many are averaged. `nested`: an average of averages."""

    trees: list[LibraryTree]
    count: int
    nested: bool = False

    def share(self, weight: float) -> list[LibraryTree]:
        """The trees, as a share of a larger average."""
        return [replace(tree, value=np.asarray(tree.value) * (weight / self.count)) for tree in self.trees]


def _columns(trees: list[LibraryTree], features: Any) -> list[LibraryTree]:
    """The trees over the columns that these features are taken from."""
    chosen = np.asarray(features)
    return [replace(tree, column=np.where(tree.column < 0, -1, chosen[tree.column])) for tree in trees]


def _tree(tree: Any, value: Floats, adds_to: int = EVERY) -> LibraryTree:
    """One of scikit-learn's trees with these values."""
    leaf = tree.children_left < 0
    return LibraryTree(
        column=np.where(leaf, -1, tree.feature),
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left.astype(bool),
        value=value,
        adds_to=adds_to,
    )


def _classified(estimator: Any, outputs: int, places: Any = None) -> _Average:
    """Fractions of the classes: of a tree, of a forest, of bagging."""
    match sklearn_name(
        estimator, ("DecisionTreeClassifier", "ForestClassifier", "BaggingClassifier", "VotingClassifier")
    ):
        case "DecisionTreeClassifier":
            _one_answer(estimator)
            value = np.zeros((estimator.tree_.node_count, outputs))
            value[:, np.arange(outputs) if places is None else places] = estimator.tree_.value[:, 0, :]
            return _Average([_tree(estimator.tree_, value)], 1)
        case "ForestClassifier":
            _one_answer(estimator)
            parts = [_classified(tree, outputs, places) for tree in estimator.estimators_]
            return _Average([tree for part in parts for tree in part.trees], len(parts))
        case "BaggingClassifier":
            parts = [_classified(e, outputs, _places(e, outputs, places)) for e in estimator.estimators_]
            drawn = list(zip(parts, estimator.estimators_features_, strict=True))
            return _joined([(replace(p, trees=_columns(p.trees, f)), 1.0) for p, f in drawn])
        case "VotingClassifier":
            return _voted(estimator, outputs)
    raise UnsupportedModel(
        f"An average over {type(estimator).__name__} is no sum over leaves, since its probabilities are not; supported "
        f"inside an average are decision trees and forests.",
        operation=f"average of {type(estimator).__name__}",
    )


def _places(estimator: Any, outputs: int, places: Any) -> Any:
    """Where the classes that a bagged estimator saw stand among all: it knows them by their numbers."""
    own = np.asarray(estimator.classes_).astype(np.intp)
    return own if places is None else np.asarray(places)[own]


def _voted(voting: Any, outputs: int) -> _Average:
    """The weighted average of probabilities, or, of single trees, votes."""
    parts = [_classified(member, outputs, _places(member, outputs, None)) for member in voting.estimators_]
    if voting.voting == "hard":
        if any(len(part.trees) > 1 for part in parts):
            raise UnsupportedModel(
                "A vote of forests is no sum over leaves; use voting='soft', which averages their probabilities.",
                operation="hard voting",
            )
        parts = [replace(part, trees=[_decided(tree) for tree in part.trees]) for part in parts]
    return _joined(list(zip(parts, _weights(voting), strict=True)))


def _weights(voting: Any) -> list[float]:
    given = voting._weights_not_none
    return [1.0] * len(voting.estimators_) if given is None else [float(weight) for weight in given]


@dataclass(frozen=True)
class Votes:
    """The share of the members' votes that each class has."""

    weights: tuple[float, ...]
    classes: int

    def __call__(self, model: Any, source: Any, points: Floats) -> Floats:
        votes = np.asarray(call_model(model, "transform", source, points)).reshape(len(points), -1)
        given = (votes[:, :, None] == np.arange(self.classes)) * np.array(self.weights)[:, None]
        return np.asarray(given.sum(axis=1) / sum(self.weights))


def _decided(tree: LibraryTree) -> LibraryTree:
    """The tree whose leaves say one for their class, and zero for others."""
    value = np.asarray(tree.value)
    return replace(tree, value=np.eye(value.shape[1])[value.argmax(axis=1)])


def _joined(parts: list[tuple[_Average, float]]) -> _Average:
    """A weighted average of averages; of single trees of one weight it is a plain one."""
    if all(part.count == 1 and not part.nested and weight == 1.0 for part, weight in parts):
        return _Average([tree for part, _ in parts for tree in part.trees], len(parts))
    total = sum(weight for _, weight in parts)
    return _Average([tree for part, weight in parts for tree in part.share(weight / total)], 1, nested=True)


def _one_answer(estimator: Any) -> None:
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise UnsupportedModel(
            f"The {type(estimator).__name__} gives {estimator.n_outputs_} answers at once (multi-output); "
            f"only one decision among classes is supported.",
            operation="multi-output",
        )


def _fractions(estimator: Any) -> ImportedTrees:
    """A classifier whose scores are the fractions of its classes, one each."""
    _one_answer(estimator)
    classes = classes_of(estimator)
    hard = getattr(estimator, "voting", "soft") == "hard"
    average = _classified(estimator, len(classes))
    ensemble = Ensemble.of(
        average.trees,
        columns=_count(estimator),
        summation=Summation(
            start=np.zeros(len(classes)),
            shift=np.zeros(len(classes)),
            divisor=float(average.count),
            ordered=len(average.trees) == 1,
        ),
        compared_in="float32",
    )
    return _named(
        estimator,
        ensemble,
        Votes(tuple(_weights(estimator)), len(classes)) if hard else Call("predict_proba"),
        classes=classes,
        probabilities=None if hard else "fractions",
    )


def _means(estimator: Any) -> ImportedTrees:
    """A regression that averages its trees."""
    average, ordered = _averaged(estimator), sklearn_name(estimator, ("DecisionTreeRegressor",)) is not None
    outputs = np.asarray(average.trees[0].value).shape[1]
    ensemble = Ensemble.of(
        average.trees,
        columns=_count(estimator),
        summation=Summation(
            start=np.zeros(outputs), shift=np.zeros(outputs), divisor=float(average.count), ordered=ordered
        ),
        compared_in="float32",
    )
    return _named(estimator, ensemble, Call("predict"))


def _averaged(estimator: Any) -> _Average:
    match sklearn_name(estimator, ("DecisionTreeRegressor", "ForestRegressor", "BaggingRegressor", "VotingRegressor")):
        case "DecisionTreeRegressor":
            return _Average([_tree(estimator.tree_, estimator.tree_.value[:, :, 0])], 1)
        case "ForestRegressor":
            return _joined([(_averaged(tree), 1.0) for tree in estimator.estimators_])
        case "BaggingRegressor":
            drawn = zip(map(_averaged, estimator.estimators_), estimator.estimators_features_, strict=True)
            return _joined([(replace(part, trees=_columns(part.trees, f)), 1.0) for part, f in drawn])
        case "VotingRegressor":
            weights = _weights(estimator)
            return _joined([(_averaged(e), w) for e, w in zip(estimator.estimators_, weights, strict=True)])
    raise UnsupportedModel(
        f"An average over {type(estimator).__name__} is not supported; over decision trees and forests it is.",
        operation=f"average of {type(estimator).__name__}",
    )


# ---------------------------------------------------------------------- boosting


def _gradient_boosting(estimator: Any) -> ImportedTrees:
    start = _start(estimator)
    rate = float(estimator.learning_rate)
    trees = [
        _tree(tree.tree_, rate * tree.tree_.value[:, 0, 0], k)
        for stage in estimator.estimators_
        for k, tree in enumerate(stage)
    ]
    classes = classes_of(estimator) if hasattr(estimator, "classes_") else ()
    second = len(classes) == 2
    ensemble = Ensemble.of(
        trees,
        columns=_count(estimator),
        summation=Summation(start=start, shift=np.full(len(start), SMALLEST if second else 0.0)),
        compared_in="float32",
    )
    call = Call("decision_function" if classes else "predict")
    probabilities = "log-odds" if classes and estimator.loss == "log_loss" else None
    return _named(estimator, ensemble, call, classes=classes, probabilities=probabilities, zero_is_second=second)


def _start(estimator: Any) -> Floats:
    if not isinstance(estimator.init_, str) and not sklearn_name(
        estimator.init_, ("DummyClassifier", "DummyRegressor")
    ):
        raise UnsupportedModel(
            f"The {type(estimator).__name__} starts from {type(estimator.init_).__name__}, which is another model in "
            f"front of its trees; fit it with init=None or init='zero'.",
            operation="init estimator",
        )
    return np.asarray(estimator._raw_predict_init(np.zeros((1, _count(estimator)))), dtype=np.float64)[0]


def _histogram(estimator: Any) -> ImportedTrees:
    name = type(estimator).__name__
    classes = classes_of(estimator) if hasattr(estimator, "classes_") else ()
    if not classes and estimator.loss in ("poisson", "gamma"):
        raise UnsupportedModel(
            f"The loss '{estimator.loss}' of the {name} makes its prediction the exponential of a sum over leaves; "
            f"only losses whose prediction is the sum are supported.",
            operation=f"{name}(loss={estimator.loss!r})",
        )
    order, categories = _histogram_columns(estimator)
    trees = [
        _histogram_tree(predictor, order, k) for stage in estimator._predictors for k, predictor in enumerate(stage)
    ]
    start = np.ravel(np.asarray(estimator._baseline_prediction, dtype=np.float64))
    if not trees:
        trees = [LibraryTree(column=[-1], threshold=[0.0], left=[0], right=[0], value=[0.0], adds_to=0)]
    ensemble = Ensemble.of(
        trees, columns=_count(estimator), summation=Summation(start=start, shift=np.zeros(len(start)))
    )
    return _named(
        estimator,
        ensemble,
        Call("decision_function" if classes else "predict"),
        classes=classes,
        probabilities="log-odds" if classes else None,
        categories=categories,
    )


def _histogram_columns(estimator: Any) -> tuple[NDArray[np.intp], dict[int, list[Any]]]:
    """The columns in the order of the splits: with categories those come first, encoded by their place in a list."""
    inside = getattr(estimator, "_preprocessor", None)
    if inside is None:
        return np.arange(_count(estimator)), {}
    mask = np.asarray(estimator.is_categorical_)
    order = np.concatenate([np.flatnonzero(mask), np.flatnonzero(~mask)])
    known = inside.named_transformers_["encoder"].categories_
    places = np.flatnonzero(mask).tolist()
    return order, {j: [plain(c) for c in one.tolist()] for j, one in zip(places, known, strict=True)}


def _histogram_tree(predictor: Any, order: NDArray[np.intp], output: int) -> LibraryTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    sets = {}
    for i in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf).tolist():
        words = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]]
        sets[i] = [32 * w + bit for w, word in enumerate(words.tolist()) for bit in range(32) if word >> bit & 1]
    return LibraryTree(
        column=np.where(leaf, -1, order[np.where(leaf, 0, nodes["feature_idx"])]),
        threshold=nodes["num_threshold"],
        left=nodes["left"],
        right=nodes["right"],
        missing_left=nodes["missing_go_to_left"].astype(bool),
        value=nodes["value"],
        sets=sets,
        adds_to=output,
    )


def _ada_boost(estimator: Any) -> ImportedTrees:
    classes = classes_of(estimator)
    if getattr(estimator, "algorithm", "SAMME") not in ("SAMME", "deprecated"):
        raise UnsupportedModel(
            "The algorithm SAMME.R of AdaBoostClassifier adds up logarithms of probabilities, clipped; fit it with "
            "algorithm='SAMME'.",
            operation="SAMME.R",
        )
    count, trees = len(classes), []
    known = [plain(c) for c in estimator.classes_]
    for member, weight in zip(estimator.estimators_, estimator.estimator_weights_, strict=False):
        if sklearn_name(member, ("DecisionTreeClassifier",)) is None:
            raise UnsupportedModel(
                f"AdaBoost over {type(member).__name__} is not supported; over decision trees it is.",
                operation=f"AdaBoost of {type(member).__name__}",
            )
        place = np.array([known.index(plain(c)) for c in member.classes_])[member.tree_.value[:, 0, :].argmax(axis=1)]
        votes = np.where(place[:, None] == np.arange(count), weight, -1 / (count - 1) * weight)
        trees.append(_tree(member.tree_, votes[:, 1:] if count == 2 else votes))
    outputs = 1 if count == 2 else count
    how = Summation(
        start=np.zeros(outputs),
        shift=np.zeros(outputs),
        divisor=float(estimator.estimator_weights_.sum()),
        scale=2.0 if count == 2 else 1.0,
    )
    ensemble = Ensemble.of(trees, columns=_count(estimator), summation=how, compared_in="float32")
    probabilities = "log-odds" if count == 2 else None
    return _named(estimator, ensemble, Call("decision_function"), classes=classes, probabilities=probabilities)


def _median(estimator: Any) -> ImportedTrees:
    raise UnsupportedModel(
        "The AdaBoostRegressor predicts a weighted median of its trees, which is no sum over leaves; "
        "GradientBoostingRegressor and forests are supported.",
        operation="AdaBoostRegressor",
    )


# ---------------------------------------------------------------------- what they have in common


def _count(estimator: Any) -> int:
    return int(estimator.n_features_in_)


def _named(estimator: Any, ensemble: Ensemble, scores: Any, **more: Any) -> ImportedTrees:
    found = getattr(estimator, "feature_names_in_", None)
    names = None if found is None else tuple(str(name) for name in found)
    return ImportedTrees(
        name=f"sklearn {type(estimator).__name__}", ensemble=ensemble, scores=scores, names=names, **more
    )


def _isolation(estimator: Any) -> ImportedTrees:
    """Outliers (-1) and inliers (1), as `predict` says."""
    scores = PathLengths.of(estimator)
    ensemble = Ensemble.of(
        isolation_trees(estimator, _tree),
        columns=_count(estimator),
        summation=Summation(start=np.zeros(1), shift=np.array([-scores.last_outlier])),
        compared_in="float32",
    )
    return _named(estimator, ensemble, scores, classes=(OUTLIER, INLIER), accepted=INLIER)


READERS: dict[str, Callable[[Any], ImportedTrees]] = {
    "IsolationForest": _isolation,
    "DecisionTreeClassifier": _fractions,
    "ForestClassifier": _fractions,
    "BaggingClassifier": _fractions,
    "VotingClassifier": _fractions,
    "DecisionTreeRegressor": _means,
    "ForestRegressor": _means,
    "BaggingRegressor": _means,
    "VotingRegressor": _means,
    "GradientBoostingClassifier": _gradient_boosting,
    "GradientBoostingRegressor": _gradient_boosting,
    "HistGradientBoostingClassifier": _histogram,
    "HistGradientBoostingRegressor": _histogram,
    "AdaBoostClassifier": _ada_boost,
    "AdaBoostRegressor": _median,
}
