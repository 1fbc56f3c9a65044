"""XGBoost importer: float32(x) < threshold goes left; scores are summed in float32, tree by tree after the base score.

A model is read from its own JSON. Categories of a node go right, others left; missing values go the default way. The
score of a classifier is its margin, before the sigmoid or softmax.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import FileError, MissingExtra, ModelError, UnsupportedModel
from ifonly.model.importers.detect import of_library
from ifonly.model.importers.one_thread import FEW_ROWS
from ifonly.model.importers.sklearn_original import answering
from ifonly.model.importers.trees.imported import Call, ImportedTrees
from ifonly.model.importers.trees.xgboost_categories import with_letters
from ifonly.model.trees import EVERY, Ensemble, LibraryTree, Summation
from ifonly.schema import Schema
from ifonly.schema.values import is_missing, plain

Floats = NDArray[np.float64]
ZERO_SIZE = 2.0**-150
"""The largest number that is 0 in float32."""
TIE = 2.0**-20
"""Margins that differ by less may have equal probabilities in float32."""
DECISIONS = ("binary:logistic", "binary:hinge", "multi:softprob", "multi:softmax")
PREDICTIONS = (
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:squaredlogerror",
)
"""Regressions whose prediction is the margin itself; so are the scores of those that rank."""


def xgboost_trees(model: Any, schema: Schema) -> ImportedTrees | None:
    """The trees of a Booster, or of a fitted estimator of xgboost; None for anything else."""
    found = _of_booster(model) if of_library(model, "xgboost", "Booster") else _of_estimator(model)
    return None if found is None else replace(found, categories=with_letters(found, schema))


def _of_estimator(model: Any) -> ImportedTrees | None:
    if not of_library(model, "xgboost", "XGBModel"):
        return None
    name = type(model).__name__
    if not model.__sklearn_is_fitted__():
        raise ModelError(f"The {name} is not fitted; call fit before importing it.")
    absent = plain(model.missing)
    if not is_missing(absent) and absent != 0.0:
        raise UnsupportedModel(
            f"The {name} takes {absent!r} for a missing value; only NaN and 0 are supported: fit it with missing=nan.",
            operation=f"{name}(missing={absent!r})",
        )
    booster = model.get_booster()
    best = _best_iteration(booster)  # which the estimator predicts with, also after it was loaded from a file
    read = _read(booster, None if best is None else best + 1)
    decides = hasattr(model, "classes_")
    if decides != bool(read.classes):
        raise UnsupportedModel(f"The objective '{read.objective}' does not fit the {name}.", operation=read.objective)
    return replace(
        read.imported_trees(f"xgboost {name}"),
        scores=Call("predict", (("output_margin", True),)),
        classes=tuple(plain(c) for c in np.asarray(model.classes_).tolist()) if decides else (),
        decided=decides,
        zeros="missing if sparse" if is_missing(absent) else "missing",
        read_as_zero=0.0 if is_missing(absent) else ZERO_SIZE,
    )


@dataclass(frozen=True)
class BoosterCall:
    """A Booster's own prediction: margins, or probabilities."""

    margins: bool

    def __call__(self, model: Any, source: Any, points: Floats) -> Floats:
        import xgboost

        with answering():
            threads = 1 if len(points) <= FEW_ROWS else None
            table = xgboost.DMatrix(source.table(points), enable_categorical=True, nthread=threads)
            answer = model.predict(table, output_margin=self.margins)
        return np.asarray(answer, dtype=np.float64).reshape(len(points), -1)


def _of_booster(booster: Any) -> ImportedTrees:
    read = _read(booster, None)
    return replace(
        read.imported_trees("xgboost Booster"),
        scores=BoosterCall(margins=True),
        reported=BoosterCall(margins=False),
        decided=False,
        tie=0.0 if read.objective in ("multi:softmax", "binary:hinge") else read.tie,
    )


def load_xgboost(path: Path) -> Any:
    """A model file of XGBoost, as a Booster."""
    try:
        import xgboost
    except ImportError:
        raise MissingExtra("xgboost", extra="xgboost", needed_for="Reading a model of XGBoost") from None
    try:
        booster = xgboost.Booster(model_file=path)
        best, rounds = _best_iteration(booster), booster.num_boosted_rounds()
    except Exception as error:
        raise FileError(f"'{path}' is no model of XGBoost, or is damaged ({type(error).__name__}).") from None
    if best is not None and best + 1 < rounds:
        raise ModelError(
            f"'{path.name}' was trained with early stopping: XGBClassifier and XGBRegressor predict with the first "
            f"{best + 1} of its {rounds} rounds, a Booster with all of them; load it with the one that you use and "
            f"import that, or save model.get_booster()[: {best + 1}]."
        )
    return booster


def _best_iteration(booster: Any) -> int | None:
    """The round that early stopping found best, if there was any."""
    try:
        return int(booster.best_iteration)
    except AttributeError:
        return None


# ---------------------------------------------------------------------- reading the model's own JSON


@dataclass(frozen=True)
class _Read:
    ensemble: Ensemble
    objective: str
    classes: tuple[Any, ...]
    names: tuple[str, ...] | None
    categories: dict[int, list[Any]]

    @property
    def tie(self) -> float:
        return TIE if self.objective in ("binary:logistic", "multi:softprob", "multi:softmax") else 0.0

    def imported_trees(self, name: str) -> ImportedTrees:
        return ImportedTrees(
            name=name,
            ensemble=self.ensemble,
            scores=Call("predict"),
            classes=self.classes,
            names=self.names,
            categories=self.categories,
            probabilities="log-odds" if self.objective in ("binary:logistic", "multi:softprob") else None,
            tie=self.tie,
            as_categories=True,
            zeros="missing if sparse",
        )


def _read(booster: Any, last: int | None) -> _Read:
    """The first `last` rounds, or all."""
    learner = json.loads(bytes(booster.save_raw("json")).decode("utf-8"))["learner"]
    boosting, parameters = learner["gradient_booster"], learner["learner_model_param"]
    kind, weights = boosting["name"], None
    if kind == "dart":
        weights, boosting = boosting["weight_drop"], boosting["gbtree"]
    elif kind != "gbtree":
        raise UnsupportedModel(f"The booster '{kind}' of XGBoost has no trees; use 'gbtree'.", operation=kind)
    model, objective = boosting["model"], learner["objective"]["name"]
    outputs = max(1, int(parameters["num_class"]), int(parameters["num_target"]))
    count = len(model["trees"]) if last is None else model["iteration_indptr"][last]
    trees = [
        _tree(tree, model["tree_info"][t], 1.0 if weights is None else weights[t])
        for t, tree in enumerate(model["trees"][:count])
    ]
    ensemble = Ensemble.of(
        trees,
        columns=int(parameters["num_feature"]),
        summation=Summation(
            start=_base(parameters["base_score"], objective, outputs),
            shift=np.zeros(outputs),
            precision="float32",
            ordered=weights is None,
        ),
        comparison="<",
        compared_in="float32",
    )
    names = learner.get("feature_names") or None
    return _Read(
        ensemble,
        objective,
        _classes(objective, outputs),
        None if names is None else tuple(names),
        _categories(learner.get("feature_types") or [], model.get("cats") or {}),
    )


def _tree(tree: dict[str, Any], output: int, weight: float) -> LibraryTree:
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    leaf = left < 0
    numbers, value = np.array(tree["split_conditions"], dtype=np.float32), _values(tree, left, right)
    sets = {
        node: tree["categories"][start : start + size]
        for node, start, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        )
    }
    turned = np.isin(np.arange(len(left)), list(sets))  # a category of the set goes right
    return LibraryTree(
        column=np.where(leaf, -1, tree["split_indices"]),
        threshold=numbers.astype(np.float64),
        left=np.where(turned, right, left),
        right=np.where(turned, left, right),
        missing_left=np.array(tree["default_left"], dtype=bool) != turned,
        value=(value * np.float32(weight)).astype(np.float64),
        sets=sets,
        adds_to=output if value.ndim == 1 else EVERY,
    )


def _values(tree: dict[str, Any], left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float32]:
    """One number per node, or a vector, of which the right child of a leaf is the number."""
    width = int(tree["tree_param"]["size_leaf_vector"] or 1)
    if width <= 1:
        return np.array(tree["split_conditions"], dtype=np.float32)
    if "leaf_weights" not in tree:
        return np.array(tree["base_weights"], dtype=np.float32).reshape(len(left), width)
    stored = np.array(tree["leaf_weights"], dtype=np.float32).reshape(-1, width)
    return stored[np.where(left < 0, right, 0)]


def _base(text: str, objective: str, outputs: int) -> Floats:
    """The margins that all rows start from: of a probability p it is -log(1 / p - 1), in float32."""
    given = np.array([float(part) for part in str(text).strip("[]").split(",")], dtype=np.float32)
    if objective == "binary:logistic":
        one = np.float32(1.0)
        given = np.array([-math.log(float(one / p - one)) for p in given], dtype=np.float32)
    return np.broadcast_to(given, outputs).astype(np.float64)


def _classes(objective: str, outputs: int) -> tuple[int, ...]:
    if objective in DECISIONS:
        if objective.startswith("binary") and outputs != 1:
            raise UnsupportedModel(
                f"The model gives {outputs} labels at once (multilabel); only one decision among classes is supported.",
                operation="multilabel",
            )
        return tuple(range(max(2, outputs)))
    if objective in PREDICTIONS or objective.startswith("rank:"):
        return ()
    raise UnsupportedModel(
        f"The objective '{objective}' of XGBoost makes the prediction another function of the sum over leaves; "
        f"supported are {', '.join((*DECISIONS, *PREDICTIONS))} and rank:*.",
        operation=objective,
    )


def _categories(types: list[str], known: dict[str, Any]) -> dict[int, list[Any]]:
    """The values behind the codes of each column of categories: text, or numbers; bytes where XGBoost has cut names
    of other letters than those of ASCII (see `xgboost_categories`)."""
    result: dict[int, list[Any]] = {}
    for j, coded in enumerate(known.get("enc") or []):
        if types[j : j + 1] != ["c"] or not coded["values"]:
            continue
        if "offsets" in coded:
            text, ends = bytes(value & 255 for value in coded["values"]), coded["offsets"]
            parts = [text[a:b] for a, b in itertools.pairwise(ends)]
            result[j] = [part.decode("ascii") for part in parts] if text.isascii() else parts
        else:
            result[j] = list(coded["values"])
    return result
