"""Trees of every library, with splits that few rows reach: its own `predict` over each option, threshold and gap.

Whole numbers and grids are all_rows, so every row on either side of every threshold is; categories have each of their
options, the missing one among them; people who lack a number are asked for as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.attack.asking import Outcome, Refused, ask
from benchmarks.attack.decisions import Decision, Truth, ahead, all_rows, missing_library, same, wrong
from benchmarks.attack.space import Feature, Row, is_number, options, rows, values

MODULES = {
    "sklearn": "sklearn",
    "hist": "sklearn",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "catboost": "catboost",
}
CATEGORIES = frozenset({"hist", "xgboost", "lightgbm", "catboost"})
"""The libraries that take categories as they are."""


class Splits:
    """A small ensemble, and several people of whom some lack numbers."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        library = chance.choice([*sorted(MODULES), "lightgbm", "lightgbm"])  # which has the most settings
        many, alone = chance.choice([2, 3, 4, 6, 7]), chance.random() < 0.5
        key = chance.randrange(many)
        features = [feature(chance, f"x{i}", library, number=alone and i != key) for i in range(many)]
        classes = chance.choice([2, 2, 2, 3])
        ends = [list(values(f) or ()) for f in features]
        corner = [chance.choice([own[0], own[-1]]) for own in ends]
        chosen = [value for value in every_value(features[key]) if chance.random() < 0.5]
        rows = []
        for _ in range(chance.choice([40, 200, 300])):
            row = [chance.choice(every_value(f)) for f in features]
            free = {key, chance.choice([key, chance.randrange(len(features))])}
            if chance.random() < 0.7:  # in the corner, or one step away from it
                row = [value if i in free else corner[i] for i, value in enumerate(row)]
            there = all(same(a, b) for i, (a, b) in enumerate(zip(corner, row, strict=True)) if i != key)
            rows.append([row, (1 if any(same(row[key], v) for v in chosen) else 0) if there else classes - 1])
        people = [[chance.choice(every_value(f)) for f in features] for _ in range(2)]
        people += [[*corner[:key], value, *corner[key + 1 :]] for value in every_value(features[key])[:2]]
        return {
            "features": features,
            "train": rows,
            "people": people,
            "corner": corner,
            "key": key,
            "model": {"library": library, **settings(chance, library)},
            "distance": {"norm": chance.choice(["l1", "l1", "l0", "linf"])},
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly
        from ifonly.schema.io import schema_from_json

        with_missing = missing_library([MODULES[case["model"]["library"]]])
        if with_missing:
            return Outcome(f"{with_missing} is not installed")
        if len({label for _, label in case["train"]}) < 2:
            return Outcome("one class")
        try:
            library = Library(case)
        except Exception as error:  # nothing to split, a class of one row: each library has its own
            return Outcome(f"{case['model']['library']} does not fit it: {type(error).__name__}")
        schema = schema_from_json({"format": "ifonly-schema", "version": 1, "features": case["features"]})
        explainer = ask(ifonly.Explainer, library.model, schema=schema).using(reasons=False)
        told = Outcome("already")
        for person in map(tuple, case["people"]):
            told.faults += [f"{fault} for {person}" for fault in asked_of(explainer, library, case, person, told)]
        return told


def asked_of(explainer: Any, library: Library, case: dict[str, Any], person: Row, told: Outcome) -> Iterator[str]:
    """One person's question about each other class, and what is false about the answers."""
    now, _ = library.decide([person])[0]
    named = {f["name"]: value for f, value in zip(case["features"], person, strict=True)}
    for resolved in sorted({label for _, label in case["train"]} - {now}):
        try:
            answer = ask(explainer.explain, named, target=resolved, distance=case["distance"]["norm"])
        except Refused:
            told.status = "refused"
            continue
        told.status = answer.status
        truth = Truth(case["features"], person, resolved, library.decide, case["distance"])
        yield from wrong(truth, answer, all_rows(case["features"], person) or near_corner(case, person))


def near_corner(case: dict[str, Any], person: Row) -> Iterator[Row]:
    """Of too many rows: those in the corner and one feature away from it, and those between it and the person."""
    features, corner, key = case["features"], case["corner"], case["key"]
    domains = [
        every_value(f) if i == key else [a, b] for i, (f, a, b) in enumerate(zip(features, person, corner, strict=True))
    ]
    yield from possible(features, person, rows(domains))
    for i in range(len(features)):
        own = [every_value(g) if j in (i, key) else [person[j] if person[j] is None else corner[j]]
               for j, g in enumerate(features)]  # fmt: skip
        yield from possible(features, person, rows(own))


def possible(features: list[Feature], person: Row, every: Iterator[Row]) -> Iterator[Row]:
    """The rows in which numbers are missing exactly where the person lacks them."""
    for row in every:
        if all(not is_number(f) or (a is None) == (b is None) for f, a, b in zip(features, person, row, strict=True)):
            yield row


# ---------------------------------------------------------------------- what is drawn


def feature(chance: random.Random, name: str, library: str, *, number: bool) -> Feature:
    """Few values: whole numbers about zero, decimals on a grid, categories by text or by whole number."""
    how = chance.choice(["integer", "grid"] if number else ["integer", "grid", "choice", "choice", "choice"])
    missing = {"missing": True} if chance.random() < 0.5 and library != "sklearn" else {}
    if how == "integer":
        low = chance.choice([-2, -1, 0, 0, 3])
        return {
            "kind": "integer",
            "name": name,
            "lower": low,
            "upper": low + chance.choice([1, 3, 6]),
            "step": 1,
            **missing,
        }
    if how == "grid":
        low = chance.choice([0.0, -0.5, 1.0])
        high = low + 0.25 * chance.choice([1, 3, 7])
        return {"kind": "real", "name": name, "lower": low, "upper": high, "step": 0.25, **missing}
    if library not in CATEGORIES:
        return {"kind": "binary", "name": name, "values": [0, 1]}
    many = chance.randint(2, 6)
    named: list[Any] = list(range(many)) if chance.random() < 0.3 else [f"o{i}" for i in range(many)]
    if missing and library != "catboost":
        named[-1] = None
    return {"kind": "categorical", "name": name, "categories": named, "encoding": "onehot"}


def every_value(feature: Feature) -> list[Any]:
    """Its values, and that it is missing where it may be."""
    return [*(values(feature) or ()), *([None] if feature.get("missing") else [])]


def settings(chance: random.Random, library: str) -> dict[str, Any]:
    """Parameters that let a leaf have one row, and what each library has of its own about zeros and missing values."""
    many, depth, seed = chance.choice([1, 1, 4]), chance.choice([2, 8, 8]), chance.randrange(1000)
    boosted = {"learning_rate": 1.0, "max_depth": depth, "random_state": seed}
    match library:
        case "sklearn":
            return {"of": chance.choice(["DecisionTree", "RandomForest", "ExtraTrees", "GradientBoosting"]),
                    "parameters": {"max_depth": depth, "random_state": seed}, "many": many}  # fmt: skip
        case "hist":
            return {"parameters": {**boosted, "max_iter": many, "min_samples_leaf": 1, "early_stopping": False},
                    "objects": chance.random() < 0.4}  # fmt: skip
        case "xgboost":
            return {"parameters": {**boosted, "n_estimators": many, "min_child_weight": 0.0, "n_jobs": 1,
                                   "tree_method": "hist", "max_cat_to_onehot": chance.choice([1, 4, 100])}}  # fmt: skip
        case "lightgbm":
            extra = chance.choice([{}, {"zero_as_missing": True}, {"zero_as_missing": True}, {"use_missing": False}])
            return {"parameters": {**boosted, "n_estimators": many, "min_child_samples": 1, "min_child_weight": 0.0,
                                   "min_data_in_bin": 1, "min_data_per_group": 1, "cat_smooth": 0.0, "cat_l2": 0.0,
                                   "max_cat_to_onehot": chance.choice([1, 4]), "n_jobs": 1, "verbose": -1,
                                   "deterministic": True, **extra},
                    "key counts": chance.choice([1.0, 0.001, 0.001])}  # fmt: skip
        case _:
            return {"parameters": {**boosted, "iterations": many, "thread_count": 1, "verbose": False,
                                   "allow_writing_files": False, "max_ctr_complexity": 1,
                                   "one_hot_max_size": chance.choice([2, 10]),
                                   "nan_mode": chance.choice(["Min", "Max"])}}  # fmt: skip


# ---------------------------------------------------------------------- the library


class Library:
    """A model fitted by its library on the rows of a case, and what it decides, asked in the library's own way."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.features: list[Feature] = case["features"]
        self.name: str = case["model"]["library"]
        self.objects: bool = case["model"].get("objects", False)
        rows = [tuple(row) for row, _ in case["train"]]
        self.known = {f["name"]: options(f) for f in self.features if f["kind"] == "categorical"}
        self.model = IMPORTED_TREES[self.name](case["model"], self)
        self.model.fit(self.table(rows), [label for _, label in case["train"]])

    def table(self, rows: list[Row]) -> Any:
        """A frame as the library takes it: categories of pandas' own type, missing ones as None or NaN."""
        import pandas as pd

        made = {}
        for i, f in enumerate(self.features):
            column = [row[i] for row in rows]
            if f["name"] not in self.known:
                made[f["name"]] = pd.Series([float("nan") if v is None else float(v) for v in column], dtype=float)
            elif self.name == "catboost" or self.objects:
                made[f["name"]] = pd.Series(column, dtype=object)
            else:
                known = [option for option in self.known[f["name"]] or () if option is not None]
                made[f["name"]] = pd.Series(pd.Categorical(column, categories=known))
        return pd.DataFrame(made)

    def decide(self, rows: list[Row]) -> list[Decision]:
        table = self.table(rows)
        labels = [label.item() if hasattr(label, "item") else label for label in self.model.predict(table).ravel()]
        chances = self.model.predict_proba(table).tolist()
        return [(int(label), ahead(chance)) for label, chance in zip(labels, chances, strict=True)]


def _sklearn(model: dict[str, Any], library: Library) -> Any:
    from sklearn import ensemble, tree

    parameters = dict(model["parameters"])
    if model["of"] == "DecisionTree":
        return tree.DecisionTreeClassifier(**parameters)
    return getattr(ensemble, f"{model['of']}Classifier")(n_estimators=model["many"], **parameters)


def _hist(model: dict[str, Any], library: Library) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    chosen = [f["name"] in library.known for f in library.features]
    return HistGradientBoostingClassifier(categorical_features=chosen, **model["parameters"])


def _xgboost(model: dict[str, Any], library: Library) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(enable_categorical=bool(library.known), **model["parameters"])


def _lightgbm(model: dict[str, Any], library: Library) -> Any:
    from lightgbm import LGBMClassifier

    contributions = [model["key counts"] if i == library.case["key"] else 1.0 for i in range(len(library.features))]
    return LGBMClassifier(feature_contri=contributions, **model["parameters"])


def _catboost(model: dict[str, Any], library: Library) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(cat_features=list(library.known), **model["parameters"])


IMPORTED_TREES: dict[str, Callable[[dict[str, Any], Library], Any]] = {
    "sklearn": _sklearn,
    "hist": _hist,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
}
