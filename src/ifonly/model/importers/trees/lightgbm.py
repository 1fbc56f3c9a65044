"""LightGBM importer: x <= threshold goes left, in float64; scores are added up in float64, tree by tree.

A model is read from its own text. Each split has a type of missing values: nothing (then NaN counts as 0), NaN, or
zero; categories of its set go left, all others and missing ones right. The score of a classifier is its raw score,
before the sigmoid or softmax. In the forest mode the sum is divided by the number of rounds.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import FileError, MissingExtra, ModelError, UnsupportedModel
from ifonly.model.importers.detect import of_library
from ifonly.model.importers.trees.imported import Call, ImportedTrees
from ifonly.model.trees import Ensemble, LibraryTree, Summation
from ifonly.schema.values import plain

ZERO_SIZE = float(np.float32(1e-35))
"""Numbers up to this size are read as 0."""
ONE_THREAD = (("num_threads", 1),)
TIE = 2.0**-48
"""Raw scores that differ by less may have equal probabilities."""
PREDICTIONS = ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg")
"""Objectives whose prediction is the raw score itself."""
CLASSES = ("binary", "multiclass", "multiclassova")
CATEGORICAL, DEFAULT_LEFT, MISSING_SHIFT, NOTHING, ZERO = 1, 2, 2, 0, 1
"""The bits of a split's `decision_type`, and two of its types of missing values."""


def lightgbm_trees(model: Any) -> ImportedTrees | None:
    """The trees of a Booster, or of a fitted estimator of lightgbm; None for anything else."""
    if of_library(model, "lightgbm", "Booster"):
        read = _read(model.model_to_string(), "lightgbm Booster")
        return replace(read, reported=Call("predict", few=ONE_THREAD), decided=False)
    if not of_library(model, "lightgbm", "LGBMModel"):
        return None
    name = f"lightgbm {type(model).__name__}"
    if not model.__sklearn_is_fitted__():
        raise ModelError(f"The {type(model).__name__} is not fitted; call fit before importing it.")
    read = _read(model.booster_.model_to_string(), name)
    decides = of_library(model, "lightgbm", "LGBMClassifier")
    if decides != bool(read.classes):
        raise UnsupportedModel(f"The objective of the {name} does not fit it.", operation=str(model.objective_))
    if not decides:
        return replace(read, decided=False)
    return replace(read, classes=tuple(plain(c) for c in np.asarray(model.classes_).tolist()))


def load_lightgbm(path: Path) -> Any:
    """A model file of LightGBM, as a Booster."""
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra("lightgbm", extra="lightgbm", needed_for="Reading a model of LightGBM") from None
    try:
        return lightgbm.Booster(model_file=str(path))
    except Exception as error:
        raise FileError(f"'{path}' is no model of LightGBM, or is damaged ({type(error).__name__}).") from None


# ---------------------------------------------------------------------- reading the model's own text


def _read(text: str, name: str) -> ImportedTrees:
    body, _, rest = text.partition("\nend of trees")
    parts = body.split("\nTree=")
    head, trees = _fields(parts[0]), [_fields(part) for part in parts[1:]]
    objective, _, more = head.get("objective", "").partition(" ")
    outputs = int(head["num_tree_per_iteration"])
    classes = _classes(objective, more, outputs)
    converted = [_tree(tree, t % outputs) for t, tree in enumerate(trees)]
    zeros = {int(kind) for tree in trees for kind in _missing_types(tree)} & {ZERO}
    rounds = float(max(1, len(trees) // outputs)) if "average_output" in head else 1.0
    ensemble = Ensemble.of(
        converted,
        columns=int(head["max_feature_idx"]) + 1,
        summation=Summation(start=np.zeros(outputs), shift=np.zeros(outputs), divisor=rounds),
    )
    names = tuple(head["feature_names"].split(" "))
    generic = names == tuple(f"Column_{j}" for j in range(len(names)))
    return ImportedTrees(
        name=name,
        ensemble=ensemble,
        scores=Call("predict", (("raw_score", True),), divisor=rounds, few=ONE_THREAD),  # raw scores are not averaged
        reported=Call("predict_proba", few=ONE_THREAD),
        classes=classes,
        names=None if generic else names,
        categories=_categories(rest),
        probabilities="log-odds" if objective in ("binary", "multiclass") else None,
        tie=TIE if classes else 0.0,
        as_categories=True,
        zeros="missing" if zeros else "numbers",
        coded_from_zero=frozenset(np.unique(ensemble.nodes.column[ensemble.nodes.chosen >= 0]).tolist()),
        read_as_zero=ZERO_SIZE,
    )


def _fields(text: str) -> dict[str, str]:
    lines = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in lines if key}


def _numbers(tree: dict[str, str], key: str, kind: Any) -> NDArray[Any]:
    return np.array(tree.get(key, "").split(), dtype=kind)


def _missing_types(tree: dict[str, str]) -> NDArray[np.int64]:
    """Which values the splits of numbers read as missing."""
    decision = _numbers(tree, "decision_type", np.int64)
    return (decision[decision & CATEGORICAL == 0] >> MISSING_SHIFT) & 3


def _tree(tree: dict[str, str], output: int) -> LibraryTree:
    """Splits first, leaves after them: a child that is not negative is a split, else ~child is a leaf."""
    if int(tree.get("is_linear", "0")):
        raise UnsupportedModel("Linear trees (linear_tree=true) are not piecewise constant.", operation="linear_tree")
    values = _numbers(tree, "leaf_value", np.float64)
    column, decision = _numbers(tree, "split_feature", np.int64), _numbers(tree, "decision_type", np.int64)
    splits, leaves = len(column), len(values)
    left, right = (_numbers(tree, key, np.int64) for key in ("left_child", "right_child"))
    left, right = (np.where(child >= 0, child, splits + ~child) for child in (left, right))
    threshold = _numbers(tree, "threshold", np.float64)
    nothing = (decision >> MISSING_SHIFT) & 3 == NOTHING
    missing_left = np.where(nothing, threshold >= 0.0, decision & DEFAULT_LEFT > 0)  # without a type NaN counts as 0
    missing_left &= decision & CATEGORICAL == 0
    end = np.arange(splits, splits + leaves)
    return LibraryTree(
        column=np.concatenate([column, np.full(leaves, -1)]),
        threshold=np.concatenate([threshold, np.zeros(leaves)]),
        left=np.concatenate([left, end]),
        right=np.concatenate([right, end]),
        missing_left=np.concatenate([missing_left, np.zeros(leaves, dtype=bool)]),
        value=np.concatenate([np.zeros(splits), values]),
        sets=_sets(tree, decision, threshold),
        adds_to=output,
    )


def _sets(tree: dict[str, str], decision: NDArray[np.int64], threshold: NDArray[np.float64]) -> dict[int, list[int]]:
    """The codes that go left at the splits of categories: words of 32 bits, whose place is the threshold."""
    ends, words = _numbers(tree, "cat_boundaries", np.int64), _numbers(tree, "cat_threshold", np.int64)
    result = {}
    for node in np.flatnonzero(decision & CATEGORICAL).tolist():
        place = int(threshold[node])
        own = words[ends[place] : ends[place + 1]].tolist()
        result[node] = [32 * w + bit for w, word in enumerate(own) for bit in range(32) if word >> bit & 1]
    return result


def _classes(objective: str, more: str, outputs: int) -> tuple[int, ...]:
    if objective in CLASSES:
        return tuple(range(max(2, outputs)))
    if objective in PREDICTIONS and "sqrt" not in more.split():
        return ()
    raise UnsupportedModel(
        f"The objective '{f'{objective} {more}'.strip()}' of LightGBM makes the prediction another function of the sum "
        f"over leaves, or is not known; supported are {', '.join(CLASSES + PREDICTIONS)}.",
        operation=objective or "custom objective",
    )


def _categories(rest: str) -> dict[int, list[Any]]:
    """The values behind the codes of each column of categories, as pandas had them in training."""
    known = next((line for line in rest.splitlines() if line.startswith("pandas_categorical:")), ":null")
    lists = json.loads(known.partition(":")[2]) or []
    named = next((line for line in rest.splitlines() if line.startswith("[categorical_feature:")), "")
    columns = [int(j) for j in named.partition(":")[2].strip(" ]").split(",") if j.strip().isdigit()]
    if not lists:
        return {}
    if len(lists) != len(columns):
        raise UnsupportedModel(
            "The LightGBM model was fitted on columns of categories with an order, which it takes as numbers; encode "
            "them in a Pipeline with the model, or fit it without the order.",
            operation="ordered categories",
        )
    return dict(zip(columns, lists, strict=True))
