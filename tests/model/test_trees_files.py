"""Files of trees: ifonly's own, and those of the libraries."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from ifonly import Integer, Model, Network, Real, Schema, import_model, load_model
from ifonly.errors import FileError, IfonlyError, ModelError
from ifonly.model import network_model, save_trees
from model.forests import SCHEMA, everywhere, points_and_labels

ENDINGS = [".npz", ".json"]


def fitted(estimator: Any, classes: int = 2) -> Any:
    points, labels = points_and_labels(classes=classes)
    return estimator.fit(SCHEMA.encode(points), labels)


def boosted() -> Model:
    return import_model(fitted(xgboost.XGBClassifier(n_estimators=8, max_depth=3)), SCHEMA, classes=("no", "yes"))


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "estimator",
    [
        xgboost.XGBClassifier(n_estimators=8, max_depth=3),
        RandomForestClassifier(8, max_depth=4, random_state=0),
        RandomForestRegressor(8, max_depth=4, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_file_holds_the_whole_function(estimator: Any, ending: str, classes: int, tmp_path: Path) -> None:
    model = import_model(fitted(estimator, classes), SCHEMA)
    save_trees(model, tmp_path / f"trees{ending}")
    again = load_model(tmp_path / f"trees{ending}", SCHEMA)
    assert again.function.fingerprint == model.function.fingerprint
    assert (again.classes, again.scores_are, again.precision) == (model.classes, model.scores_are, model.precision)
    rows = everywhere(model)
    assert np.array_equal(again.scores(rows), model.exact_scores(rows))
    assert np.array_equal(again.error, model.error)
    if model.probabilities is not None:
        assert again.probabilities is not None
        assert np.abs(again.probabilities(rows) - model.probabilities(rows)).max() < 1e-6


def test_a_file_fits_the_schema_that_it_was_written_for(tmp_path: Path) -> None:
    save_trees(boosted(), tmp_path / "trees.npz")
    narrower = Schema([Real("rate", -1.0, 1.0), Integer("age", 3, 30, 6), *SCHEMA.features[2:]])
    assert load_model(tmp_path / "trees.npz", narrower, classes=("a", "b")).classes == ("a", "b")
    wider = Schema([Real("rate", -4.0, 3.0), *SCHEMA.features[1:]])
    finer = Schema([SCHEMA.features[0], Integer("age", 0, 60), *SCHEMA.features[2:]])
    other = Schema([Real("speed", -3.0, 3.0), *SCHEMA.features[1:]])
    for schema in (wider, finer, other):
        with pytest.raises(ModelError, match="Import the model again for this schema"):
            load_model(tmp_path / "trees.npz", schema)
    with pytest.raises(ModelError, match="6 features, but the schema has 5"):
        load_model(tmp_path / "trees.npz", Schema(SCHEMA.features[:5]))


def test_only_trees_are_written_and_only_to_these_endings(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="ends in .npz or .json"):
        save_trees(boosted(), tmp_path / "trees.txt")
    network = network_model(Network.of([([[1.0]], [0.0])]), Schema([Real("x", 0, 1)]))
    with pytest.raises(ModelError, match="this model is a network|This model is a network"):
        save_trees(network, tmp_path / "trees.npz")


def damages(data: dict[str, Any]) -> Any:
    """The same file with one thing wrong."""
    yield {**data, "version": 2}
    for name, wrong in {
        "left": [0] * len(data["left"]),
        "right": [10**6] * len(data["right"]),
        "column": [99] * len(data["column"]),
        "threshold": data["threshold"][:-1],
        "values": [[float("inf")]] * len(data["values"]),
        "roots": data["roots"][:-1],
        "adds_to": [5] * len(data["adds_to"]),
        "chosen": [10**4] * len(data["chosen"]),
        "leaf": [0] * len(data["leaf"]),
        "sets": [[True]],
        "start": [],
        "divisor": 0,
        "precision": "float16",
        "classes": [[1]],
        "tie": -1,
        "schema": {},
        "scores_are": "odd",
    }.items():
        yield {**data, name: wrong}
    for name in ("left", "values", "schema", "divisor"):
        yield {key: value for key, value in data.items() if key != name}
        yield {**data, name: "text"}


def test_damaged_files_are_refused_in_words(tmp_path: Path) -> None:
    save_trees(boosted(), tmp_path / "trees.json")
    data = json.loads((tmp_path / "trees.json").read_text())
    for i, damaged in enumerate(damages(data)):
        path = tmp_path / f"{i}.json"
        path.write_text(json.dumps(damaged))
        with pytest.raises(IfonlyError):
            load_model(path, SCHEMA)


@pytest.mark.long
def test_an_archive_with_more_in_it_is_refused(tmp_path: Path) -> None:
    save_trees(boosted(), tmp_path / "trees.npz")
    with zipfile.ZipFile(tmp_path / "trees.npz", "a") as archive:
        archive.writestr("more.npy", b"")
    with pytest.raises(FileError, match="and no others"):
        load_model(tmp_path / "trees.npz", SCHEMA)


# ---------------------------------------------------------------------- the libraries' own files


@pytest.mark.long
def test_files_of_the_libraries(tmp_path: Path) -> None:
    gradient = fitted(xgboost.XGBClassifier(n_estimators=8))
    light = fitted(lightgbm.LGBMClassifier(n_estimators=8, verbose=-1))
    cat = fitted(catboost.CatBoostClassifier(iterations=8, verbose=0, allow_writing_files=False))
    gradient.get_booster().save_model(tmp_path / "x.json")
    gradient.get_booster().save_model(tmp_path / "x.ubj")
    light.booster_.save_model(tmp_path / "l.txt")
    cat.save_model(str(tmp_path / "c.cbm"))
    cat.save_model(str(tmp_path / "c.json"), format="json")
    for name, original in {"x.json": gradient, "x.ubj": gradient, "l.txt": light, "c.cbm": cat, "c.json": cat}.items():
        ours = import_model(original, SCHEMA)
        model = load_model(tmp_path / name, SCHEMA)
        if name != "c.json":  # of which CatBoost itself reads the last bits otherwise than it wrote them
            assert model.function.fingerprint == ours.function.fingerprint, name
        rows = everywhere(ours)
        assert np.abs(model.scores(rows) - ours.scores(rows)).max() < 1e-12
        assert model.deviation == 0.0 and model.classes == (0, 1)


@pytest.mark.parametrize("name", ["x.ubj", "l.txt", "c.cbm"])
def test_files_that_are_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        load_model(tmp_path / name, SCHEMA)
    (tmp_path / name).write_bytes(b"no model at all")
    with pytest.raises(FileError, match="is damaged"):
        load_model(tmp_path / name, SCHEMA)
