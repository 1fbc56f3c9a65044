"""Files of tree ensembles, `.npz` (compact) and `.json` (readable), both exact and safe to load.

A file holds the trees over the features of a schema, with the names, options and bounds of these features. It can be
read with any schema whose rows are rows of that one. Nothing in a file is ever run, and every array is checked before
it is used.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import FileError, ModelError
from ifonly.model.files import MAX_BYTES, MAX_JSON_BYTES, check_size, read_array
from ifonly.model.model import ForwardPass, Logistic, Model, Scores, class_names
from ifonly.model.trees.ensemble import NODE_FIELDS, Ensemble, Nodes, Summation
from ifonly.model.trees.kind import Trees
from ifonly.printing import shown
from ifonly.schema import Choice, Integer, Schema
from ifonly.schema.arguments import is_label, path_of
from ifonly.schema.features import Feature
from ifonly.schema.io import replacing, schema_from_json, schema_to_json, write_whole
from ifonly.schema.values import same_value

FORMAT = "ifonly-trees"
VERSION = 1
ARRAYS = (*NODE_FIELDS, "values", "roots", "adds_to", "sets", "start", "shift")


def save_trees(model: Model, path: str | Path) -> None:
    """Write the trees of a model as .npz or .json, by the file's ending."""
    if not isinstance(model, Model):
        raise ModelError(f"save_trees writes the trees of a Model; got {shown(model)}.")
    path, data = path_of(path), trees_to_dict(model)
    if path.suffix == ".json":
        listed = {name: data[name].tolist() if name in ARRAYS else data[name] for name in data}
        write_whole(path, (json.dumps(listed) + "\n").encode("utf-8"))
    elif path.suffix == ".npz":
        with replacing(path) as part, part.open("wb") as file:
            head = {name: value for name, value in data.items() if name not in ARRAYS}
            whole: dict[str, Any] = {"head": np.array(json.dumps(head)), **{name: data[name] for name in ARRAYS}}
            np.savez_compressed(file, **whole)
    else:
        raise FileError(f"A file of trees ends in .npz or .json; '{path.name}' does not.")


def trees_to_dict(model: Model) -> dict[str, Any]:
    """The trees of a model as data: what a file holds, with numpy arrays."""
    trees = model.function
    if not isinstance(trees, Trees):
        raise ModelError(
            f"This model is {trees.name}; save_network writes piecewise-linear networks, save_trees ensembles of "
            f"trees. Others stay in their own format (ONNX, for instance)."
        )
    how = trees.ensemble.summation
    return {
        "format": FORMAT,
        "version": VERSION,
        "schema": schema_to_json(Schema(model.schema.features)),
        "classes": list(model.classes),
        "scores_are": model.scores_are if model.probabilities is not None else None,
        "tie": trees.tie,
        "divisor": how.divisor,
        "scale": how.scale,
        "precision": how.precision,
        "ordered": how.ordered,
        **_arrays(trees.ensemble),
    }


def _arrays(ensemble: Ensemble) -> dict[str, NDArray[Any]]:
    own = {name: getattr(ensemble.nodes, name) for name in NODE_FIELDS}
    return {
        **own,
        "values": ensemble.values,
        "roots": ensemble.roots,
        "adds_to": ensemble.adds_to,
        "sets": ensemble.sets,
        "start": ensemble.summation.start,
        "shift": ensemble.summation.shift,
    }


def load_trees(path: str | Path, schema: Schema, *, classes: tuple[Any, ...] = ()) -> Model:
    """Read a file of trees as a Model, whose original is the trees themselves."""
    path = path_of(path)
    try:
        check_size(path, MAX_JSON_BYTES if path.suffix == ".json" else MAX_BYTES)
        head, arrays = _read_json(path) if path.suffix == ".json" else _read_npz(path)
        stored = _Stored.of(head, arrays)
    except OSError as error:
        raise FileError(f"Cannot read the trees '{path}': {error.strerror or error}.") from None
    except (FileError, ModelError) as error:
        raise type(error)(f"In '{path}': {error}") from None
    except Exception as error:  # a hostile file can make zip, zlib, json and numpy raise almost anything
        raise FileError(
            f"'{path}' is not a file of trees of ifonly, or is damaged ({type(error).__name__}: {error})."
        ) from None
    return stored.model(schema, classes)


def trees_from_dict(data: Any, schema: Schema) -> Model:
    """The inverse of `trees_to_dict`, of lists or of arrays."""
    try:
        head = _checked_head(data)
        stored = _Stored.of(head, {name: _listed(name, head[name]) for name in ARRAYS})
    except (FileError, ModelError):
        raise
    except Exception as error:  # hostile data can make numpy raise almost anything
        raise FileError(f"This is not data of trees, or damaged ({type(error).__name__}: {error}).") from None
    return stored.model(schema, ())


def is_trees_file(path: Path) -> bool:
    """Whether the header of a .npz or .json names this format; False for a damaged file."""
    try:
        if path.suffix == ".json":
            check_size(path, MAX_JSON_BYTES)
            head = json.loads(path.read_text(encoding="utf-8"))
        else:
            with zipfile.ZipFile(path) as archive:
                head = json.loads(str(read_array(archive, archive.getinfo("head.npy"), path, kinds="U")))
    except Exception:  # a damaged file may raise anything; the reader of that format reports it
        return False
    return isinstance(head, dict) and head.get("format") == FORMAT


def _read_json(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    data = _checked_head(json.loads(path.read_text(encoding="utf-8")))
    return data, {name: _listed(name, data[name]) for name in ARRAYS}


def _listed(name: str, value: Any) -> NDArray[Any]:
    array = np.array(value)
    if array.size == 0 and name == "sets":
        return array.reshape(len(value), 0).astype(bool)
    if array.dtype.kind not in "biuf":
        raise FileError(f"'{name}' must be a list of numbers.")
    return array


def _read_npz(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        wanted = [f"{name}.npy" for name in ("head", *ARRAYS)]
        if sorted(entries) != sorted(wanted) or len(archive.infolist()) != len(wanted):
            raise FileError(f"it should hold the arrays {', '.join(name[:-4] for name in wanted)}, and no others.")
        if sum(entry.file_size for entry in entries.values()) > MAX_BYTES:
            raise FileError("it would unpack to more than the largest valid file.")
        head = _checked_head(json.loads(str(read_array(archive, entries["head.npy"], path, kinds="U"))))
        return head, {name: read_array(archive, entries[f"{name}.npy"], path, kinds="biuf") for name in ARRAYS}


def _checked_head(head: Any) -> dict[str, Any]:
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise FileError(f"this is not a file of trees of ifonly (its format is not '{FORMAT}').")
    if head.get("version") != VERSION:
        raise FileError(f"it has version {shown(head.get('version'))}; this ifonly reads version {VERSION}.")
    return head


@dataclass(frozen=True)
class _Stored:
    """What a file holds."""

    trees: Trees
    classes: tuple[Any, ...]
    scores_are: Any

    @classmethod
    def of(cls, head: dict[str, Any], arrays: dict[str, Any]) -> _Stored:
        classes, tie, scores_are = head["classes"], head["tie"], head["scores_are"]
        if not isinstance(classes, list) or not all(map(is_label, classes)):
            raise FileError("the class names must be a list of strings, numbers or booleans.")
        if isinstance(tie, bool) or not isinstance(tie, int | float) or not 0.0 <= tie < 1.0:
            raise FileError(f"'tie' must be a number from 0 to 1; it is {shown(tie)}.")
        if scores_are not in (None, "log-odds", "probabilities"):
            raise FileError(f"'scores_are' must be log-odds, probabilities or null; it is {shown(scores_are)}.")
        schema = schema_from_json(head["schema"])
        how = {name: head[name] for name in ("divisor", "scale", "precision", "ordered")}
        ensemble = Ensemble(
            columns=len(schema),
            nodes=Nodes(**{name: arrays[name] for name in NODE_FIELDS}),
            summation=Summation(start=arrays["start"], shift=arrays["shift"], **how),
            **{name: arrays[name] for name in ("values", "roots", "adds_to", "sets")},
        )
        return cls(Trees(ensemble, schema, tie=float(tie)), tuple(classes), scores_are)

    def model(self, schema: Schema, classes: tuple[Any, ...]) -> Model:
        for own, feature in zip(self.trees.schema.features, schema.features, strict=False):
            _check_within(own, feature)
        if len(schema) != len(self.trees.schema):
            raise ModelError(f"The file is about {len(self.trees.schema)} features, but the schema has {len(schema)}.")
        trees = replace(self.trees, schema=schema)
        names = class_names(classes or self.classes, trees.outputs, regression=not self.classes)
        original = ForwardPass(trees, schema)
        probabilities_by: dict[Any, Scores] = {"probabilities": original, "log-odds": Logistic(original)}
        return Model(
            function=trees,
            schema=schema,
            original=original,
            classes=names,
            source="trees",
            precision=trees.ensemble.summation.precision,
            probabilities=probabilities_by.get(self.scores_are),
            scores_are=self.scores_are or "log-odds",
        )


def _check_within(own: Feature, feature: Feature) -> None:
    """Refuse a feature with values that the trees were not bound to."""
    wrong = ModelError(
        f"The file was written for the feature '{own.name}', {own.describe()}; the schema has '{feature.name}' there, "
        f"{feature.describe()}. Import the model again for this schema."
    )
    if own.name != feature.name or isinstance(own, Choice) != isinstance(feature, Choice):
        raise wrong
    if isinstance(own, Choice):
        assert isinstance(feature, Choice)
        if len(own.options) != len(feature.options) or not all(map(same_value, own.options, feature.options)):
            raise wrong
        return
    assert not isinstance(feature, Choice)
    if feature.lower < own.lower or feature.upper > own.upper:
        raise wrong
    if isinstance(own, Integer):
        step = feature.step if isinstance(feature, Integer) else 0
        if not step or step % own.step or (feature.lower - own.lower) % own.step:
            raise wrong
