"""The shipped data sets: compressed tables, their schemas, and small trained networks. Nothing is downloaded."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.datasets.dataset import Dataset
from ifonly.errors import FileError
from ifonly.model import Model, load_network, network_model
from ifonly.printing import shown
from ifonly.schema import Choice, Feature, Integer, Real, Schema, load_schema

_DATA = Path(__file__).parent / "data"


def names() -> tuple[str, ...]:
    """The names that `load` and `network` take."""
    return tuple(_manifest())


def load(name: str, *, rules: bool = True) -> Dataset:
    """A data set by its name. Its schema has rules that hold in every row of the data, and its amounts of money are
    in cents; with `rules=False` it has neither, as in the published experiments.
    """
    facts, schema = _facts(name), _schema(name, rules)
    with gzip.open(_DATA / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader)
        texts = dict(zip(header, zip(*reader, strict=True), strict=True))
    return Dataset(
        name=name,
        title=facts["title"],
        columns={feature.name: _column(feature, texts[feature.name]) for feature in schema},
        labels=_read_only(np.array(texts[facts["label"]]).astype(np.int64)),
        label=facts["label"],
        meaning=tuple(facts["meaning"]),
        schema=schema,
        source=facts["source"],
        licence=facts["licence"],
        attribution=facts["attribution"],
    )


def network(name: str, *, rules: bool = True) -> Model:
    """The shipped network of a data set: two hidden layers of ten, over the encoded columns in original units.

    Answers obey the rules that hold in every row of the data, and amounts of money change to whole cents; not with
    `rules=False`.
    """
    _facts(name)
    weights, classes = load_network(_DATA / f"{name}_2x10.npz")
    model = network_model(weights, _schema(name, rules), classes=classes)
    return model.as_log_odds()  # they were trained with a logistic loss


def _schema(name: str, rules: bool) -> Schema:
    schema = load_schema(_DATA / f"{name}.schema.json")
    if rules:
        return schema
    features = tuple(replace(f, step=None) if isinstance(f, Real) else f for f in schema.features)
    return replace(schema, features=features, rules=())


def _manifest() -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((_DATA / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def _facts(name: str) -> dict[str, Any]:
    manifest = _manifest()
    if not isinstance(name, str) or name not in manifest:
        raise FileError(f"There is no data set {shown(name)}; the data sets are: {', '.join(manifest)}.")
    facts: dict[str, Any] = manifest[name]
    return facts


def _column(feature: Feature, texts: tuple[str, ...]) -> NDArray[Any]:
    """The values of a feature: texts stay texts, counts and 0/1 become integers, amounts become floats."""
    array = np.array(texts)
    if isinstance(feature, Choice):
        words = all(isinstance(option, str) for option in feature.options)
        return _read_only(array if words else array.astype(np.int64))
    return _read_only(array.astype(np.int64 if isinstance(feature, Integer) else np.float64))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
