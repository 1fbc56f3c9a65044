"""CatBoost importer: float32(x) > border goes right; scores are summed in float64, tree by tree, then scaled.

A model is read from its own JSON. A categorical split (by a hash, or by a statistic of the category) is found by
evaluating the model itself: in which leaf each option ends. That is exact as long as a split is of one feature.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.errors import FileError, MissingExtra, ModelError, UnsupportedModel
from ifonly.model.importers.detect import of_library
from ifonly.model.importers.trees.imported import Call, ImportedTrees
from ifonly.model.trees import Ensemble, LibraryTree, Summation
from ifonly.schema import Choice, Schema
from ifonly.schema.values import plain

BINARY, SEVERAL = ("Logloss", "CrossEntropy"), ("MultiClass", "MultiClassOneVsAll")
PREDICTIONS = (
    "RMSE",
    "MAE",
    "Quantile",
    "MAPE",
    "Huber",
    "Expectile",
    "LogCosh",
    "Lq",
    "YetiRank",
    "PairLogit",
    "QueryRMSE",
)
"""Losses whose prediction is the raw value itself."""
ONE_THREAD = (("thread_count", 1),)
LEAF = (-1, 0.0, False, 0, 0)
HASH_FACTOR = 0x4906BA494954CB65


def catboost_trees(model: Any, schema: Schema) -> ImportedTrees | None:
    """The trees of a fitted model of catboost; None for anything else."""
    if not of_library(model, "catboost", "CatBoost"):
        return None
    name = type(model).__name__
    if not model.is_fitted():
        raise ModelError(f"The {name} is not fitted; call fit before importing it.")
    return _Reader(model, _json(model), schema).imported_trees(f"catboost {name}")


def load_catboost(path: Path) -> Any:
    """A model file of CatBoost (.cbm, or its JSON)."""
    try:
        import catboost
    except ImportError:
        raise MissingExtra("catboost", extra="catboost", needed_for="Reading a model of CatBoost") from None
    try:
        return catboost.CatBoost().load_model(str(path), format="json" if path.suffix == ".json" else "cbm")
    except Exception as error:
        raise FileError(f"'{path}' is no model of CatBoost, or is damaged ({type(error).__name__}).") from None


def _json(model: Any, pool: Any = None) -> dict[str, Any]:
    """The model as JSON; with the hashes of the categories of a table, if one is given."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json", pool=pool)
        except Exception as error:
            raise UnsupportedModel(
                f"CatBoost cannot write this model as JSON, in which it would be read here: {error}", operation="JSON"
            ) from None
        return dict(json.loads(path.read_text(encoding="utf-8")))


@dataclass
class _Reader:
    """A model, its JSON, and the options of the schema that its categories may have."""

    model: Any
    data: dict[str, Any]
    schema: Schema

    def __post_init__(self) -> None:
        info = self.data["features_info"]
        for kind in ("text_features", "embedding_features"):
            if info.get(kind):
                raise UnsupportedModel("CatBoost's text and embedding features are not supported.", operation=kind)
        self.floats, self.words = info.get("float_features") or [], info.get("categorical_features") or []
        self.split_columns = list(self._split_columns(info))
        loss = (self.data["model_info"].get("params") or {}).get("loss_function") or {}
        self.loss = str(loss.get("type", ""))
        self.scale, self.bias = self.data["scale_and_bias"]
        self.names = [str(name) for name in self.model.feature_names_]

    def _split_columns(self, info: dict[str, Any]) -> Iterator[int]:
        """The column of each split, in the order of their numbers: borders, hashes, then statistics of categories."""
        for feature in self.floats:
            yield from [int(feature["flat_feature_index"])] * len(feature.get("borders") or [])
        for feature in self.words:
            yield from [int(feature["flat_feature_index"])] * len(feature.get("values") or [])
        for statistic in info.get("ctrs") or []:
            parts = statistic["elements"]
            single = len(parts) == 1 and parts[0]["combination_element"] == "cat_feature_value"
            place = int(self.words[parts[0]["cat_feature_index"]]["flat_feature_index"]) if single else -1
            yield from [place] * len(statistic["borders"])

    def imported_trees(self, name: str) -> ImportedTrees:
        classes = self._classes()
        values = [self._options(j) for j in range(len(self.names))]
        categories = {int(f["flat_feature_index"]): values[int(f["flat_feature_index"])] for f in self.words}
        trees = (
            self._oblivious(categories)
            if "oblivious_trees" in self.data
            else [_nested(self, tree) for tree in self.data["trees"]]
        )
        bias = np.array(self.bias, dtype=np.float64)
        ensemble = Ensemble.of(
            trees,
            columns=len(self.names),
            summation=Summation(start=np.zeros(len(bias)), shift=bias, scale=float(self.scale)),
            compared_in="float32",
        )
        generic = self.names == [str(j) for j in range(len(self.names))]
        read = ImportedTrees(
            name=name,
            ensemble=ensemble,
            scores=Call("predict", (("prediction_type", "RawFormulaVal"),), few=ONE_THREAD),
            classes=classes,
            names=None if generic else tuple(self.names),
            categories=categories,
            unseen=self._unseen(categories),
            probabilities="log-odds" if self.loss in (*BINARY, "MultiClass") else None,
            reported=Call("predict", (("prediction_type", "Probability"),), few=ONE_THREAD),
        )
        return read if of_library(self.model, "catboost", "CatBoostClassifier") else replace(read, decided=False)

    def _classes(self) -> tuple[Any, ...]:
        threshold = self.data["model_info"].get("binclass_probability_threshold")
        if threshold is not None and float(threshold) != 0.5:
            raise UnsupportedModel(
                f"The CatBoost model decides at a probability of {threshold}, not of 0.5; reset it with "
                f"set_probability_threshold(0.5), and ask for the probability that you want.",
                operation="probability threshold",
            )
        if self.loss in (*BINARY, *SEVERAL):
            named = (self.data["model_info"].get("class_params") or {}).get("class_names")
            count = 2 if self.loss in BINARY else len(self.bias)
            return tuple(plain(c) for c in named) if named else tuple(range(count))
        if self.loss.split(":")[0] in PREDICTIONS:
            return ()
        raise UnsupportedModel(
            f"The loss '{self.loss}' of CatBoost makes the prediction another function of the sum over leaves, or is "
            f"not known; supported are {', '.join((*BINARY, *SEVERAL, *PREDICTIONS))}.",
            operation=self.loss or "custom loss",
        )

    # ------------------------------------------------------------------ splits

    def _options(self, column: int) -> list[Any]:
        """The values that a column of categories may have: the options of its feature."""
        by_name = self.names[column] in self.schema.names
        place = self.schema.names.index(self.names[column]) if by_name else column
        feature = self.schema.features[place] if place < len(self.schema) else None
        return list(feature.options) if isinstance(feature, Choice) else []

    def number(self, split: dict[str, Any]) -> tuple[int, float, bool]:
        """Column, border, and whether a missing value goes left."""
        feature = self.floats[split["float_feature_index"]]
        left = feature.get("nan_value_treatment") != "AsTrue"
        return int(feature["flat_feature_index"]), float(split["border"]), left

    def _column(self, split: dict[str, Any]) -> int:
        column = self.split_columns[split["split_index"]]
        if column < 0:
            raise UnsupportedModel(
                "A split of the CatBoost model is about a combination of several features; fit it with "
                "max_ctr_complexity=1.",
                operation="combination of categories",
            )
        return column

    def _oblivious(self, categories: dict[int, list[Any]]) -> list[LibraryTree]:
        """Every node of a level has the same split; bit i of a leaf's number is the outcome of split i."""
        sides = self._sides(categories) if categories else {}
        result = []
        for t, tree in enumerate(self.data["oblivious_trees"]):
            splits = [self._split(split, t, i, sides) for i, split in enumerate(tree.get("splits") or [])]
            depth = len(splits)
            number = [int(f"{leaf:0{depth}b}"[::-1], 2) for leaf in range(2**depth)]  # ours: the first split is above
            values = np.array(tree["leaf_values"], dtype=np.float64).reshape(2**depth, -1)[number]
            level = [split for i, split in enumerate(splits) for _ in range(2**i)]
            rows = [(*split[:3], 2 * n + 1, 2 * n + 2) for n, split in enumerate(level)]
            sets = {n: split[3] for n, split in enumerate(level) if split[3] is not None}
            result.append(_listed(rows + [LEAF] * 2**depth, np.pad(values, ((len(rows), 0), (0, 0))), sets))
        return result

    def _split(self, split: dict[str, Any], tree: int, place: int, sides: dict[int, Any]) -> tuple[Any, ...]:
        """Column, border, whether missing goes left, and the codes that go left, of categories."""
        if split["split_type"] == "FloatFeature":
            return (*self.number(split), None)
        column = self._column(split)
        right = (sides[column][:, tree] >> place) & 1
        return column, 0.0, False, np.flatnonzero(right == 0).tolist()

    def _sides(self, categories: dict[int, list[Any]]) -> dict[int, Any]:
        """For each column of categories: the leaf that each option reaches in each tree, other columns being equal."""
        sides = {}
        for column in categories:
            with self._taking(column):
                leaves = self.model.calc_leaf_indexes(self._table(column, categories))
                sides[column] = np.asarray(leaves, dtype=np.int64)
        return sides

    def _table(self, column: int, categories: dict[int, list[Any]]) -> Any:
        """One row per option of a column of categories, other columns being equal."""
        import pandas as pd

        options, values = categories[column], {}
        for j, name in enumerate(self.names):
            other = categories[j][0] if categories.get(j) else "none" if j in categories else 0.0
            values[name] = options if j == column else [other] * len(options)
        return pd.DataFrame(values)

    @contextmanager
    def _taking(self, column: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise ModelError(
                f"The CatBoost model cannot take the options of '{self.names[column]}' as categories: {error}"
            ) from None

    # ------------------------------------------------------------------ categories that the model was fitted without

    def _unseen(self, categories: dict[int, list[Any]]) -> dict[int, list[int]]:
        """The places of the options that are in no table of statistics of their column.

        Where a column has splits of single categories only, which list those that are told apart and not all that were
        seen: all options, if none of them is listed.
        """
        import catboost

        result = {}
        for place, feature in enumerate(self.words):
            column = int(feature["flat_feature_index"])
            listed, counted = {int(v) % 2**32 for v in feature.get("values") or []}, self._counted(place)
            if not categories[column] or not (listed or counted):
                continue
            with self._taking(column):
                every = [int(one["flat_feature_index"]) for one in self.words]
                pool = catboost.Pool(self._table(column, categories), cat_features=every)
                hashed = _json(self.model, pool)["features_info"].get("cat_features_hash") or []
            hashes = {str(one["value"]): int(one["hash"]) for one in hashed}
            own = [hashes.get(str(option)) for option in categories[column]]
            unseen = [i for i, h in enumerate(own) if h is not None and h not in listed and _key(h) not in counted]
            result[column] = unseen if counted or len(unseen) == len(own) > 1 else []
        return result

    def _counted(self, place: int) -> set[str]:
        """The keys of the categories of a column that have statistics."""
        keys: set[str] = set()
        for name, table in (self.data.get("ctr_data") or {}).items():
            parts = json.loads(name).get("identifier") or []
            if len(parts) == 1 and parts[0].get("cat_feature_index") == place:
                keys |= set(map(str, table["hash_map"][:: int(table["hash_stride"])]))
        return keys


def _key(category: int) -> str:
    """What a table of statistics of one column calls a category, by the hash of its text (CatBoost's CalcHash)."""
    signed = category if category < 2**31 else category - 2**32
    return str(HASH_FACTOR * HASH_FACTOR * signed % 2**64)


def _nested(reader: _Reader, root: dict[str, Any]) -> LibraryTree:
    """A tree that is not symmetric: nested splits."""
    waiting, rows, values = [root], [], []
    for node in waiting:  # grows while it is read
        if "split" not in node:
            rows.append(LEAF)
            values.append(np.broadcast_to(np.array(node["value"], dtype=np.float64), len(reader.bias)))
            continue
        if node["split"]["split_type"] != "FloatFeature":
            raise UnsupportedModel(
                "Splits of categories in trees of CatBoost that are not symmetric are not supported; fit it with "
                "grow_policy='SymmetricTree'.",
                operation="categories in trees that are not symmetric",
            )
        rows.append((*reader.number(node["split"]), len(waiting), len(waiting) + 1))
        values.append(np.zeros(len(reader.bias)))
        waiting += [node["left"], node["right"]]
    return _listed(rows, np.stack(values), {})


def _listed(rows: list[tuple[int, float, bool, int, int]], values: Any, sets: dict[int, list[int]]) -> LibraryTree:
    """Nodes as (column, border, whether missing goes left, left, right)."""
    column, threshold, missing_left, left, right = (np.array(part) for part in zip(*rows, strict=True))
    return LibraryTree(
        column=column, threshold=threshold, left=left, right=right, value=values, missing_left=missing_left, sets=sets
    )
