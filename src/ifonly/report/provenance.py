"""Provenance of an audit: the model, the data, the query and the constraints in words, the date, the versions."""

from __future__ import annotations

import datetime
import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from ifonly.explainer import Explainer
from ifonly.printing import json_text
from ifonly.problem import Distance
from ifonly.problem.query import Query, query_of
from ifonly.schema.io import schema_fingerprint

PACKAGES = (
    "numpy", "numba", "highspy", "scikit-learn", "torch", "keras", "onnx", "xgboost", "lightgbm", "catboost",
    "interpret-core", "optbinning",
)  # fmt: skip
NORMS = {
    "l0": "the share of features that change",
    "l1": "the mean change of a feature, over all features",
    "l2": "the root of the mean squared change of a feature, over all features",
    "linf": "the largest change of a feature, divided by the number of features",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Names with their fingerprints (sha256), and words."""

    model: str
    model_fingerprint: str
    schema_fingerprint: str
    data: str = ""
    data_fingerprint: str = ""
    target: str
    distance: str
    constraints: tuple[str, ...]
    effort: str
    made: str
    versions: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": {"name": self.model, "sha256": self.model_fingerprint},
            "schema": {"sha256": self.schema_fingerprint},
            "data": {"name": self.data, "sha256": self.data_fingerprint},
            "target": self.target,
            "distance": self.distance,
            "constraints": list(self.constraints),
            "effort": self.effort,
            "made": self.made,
            "versions": dict(self.versions),
        }


def provenance(
    explainer: Explainer, query: Query | None = None, *, data: str = "", fingerprint: str = "", now: str = ""
) -> Provenance:
    """Of an audit by this explainer and query; `data` names the rows, `fingerprint` is their sha256."""
    whole = query_of(query)
    model, schema = explainer.model, explainer.schema
    about = f"{len(model.classes)} classes" if model.classes else "a regression"
    return Provenance(
        model=f"{model.function.name} ({model.source}), {len(schema)} features, {about}, {model.precision}",
        model_fingerprint=model.function.fingerprint,
        schema_fingerprint=schema_fingerprint(schema),
        data=data,
        data_fingerprint=fingerprint,
        target="the other of two classes" if whole.target is None else whole.target.describe(),
        distance=distance_words(whole.measure, fewest=whole.fewest_first),
        constraints=tuple(one.describe() for one in explainer.constraints_for(whole.constraints)),
        effort=_effort(explainer),
        made=now or datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        versions=tuple(_versions()),
    )


def distance_words(distance: Distance, *, fewest: bool = False) -> str:
    """A distance in words."""
    parts = distance.norm if isinstance(distance.norm, Mapping) else {distance.norm: 1.0}
    text = " plus ".join(NORMS[name] if len(parts) == 1 else f"{part:g} times {NORMS[name]}"
                         for name, part in parts.items())  # fmt: skip
    scaled = "as a share of its range" if not distance.scales else f"divided by {_listed(distance.scales)}"
    text = f"{distance.name}: {text}; numbers {scaled}"
    if distance.weights:
        text += f"; weights {_listed(distance.weights)}"
    for table, way in ((distance.up, "up"), (distance.down, "down")):
        if table:
            text += f"; going {way} counts {_listed(table)} times"
    if distance.transitions:
        text += f"; changes between options of {', '.join(distance.transitions)} at stated costs"
    return f"as few changes as possible, then {text}" if fewest else text


def files_fingerprint(files: Sequence[Mapping[str, Any]] | None) -> str:
    """The sha256 of a table's file; of several, that of what a manifest says of them."""
    known = [dict(one) for one in files or () if "sha256" in one]
    if len(known) == 1:
        return str(known[0]["sha256"])
    return hashlib.sha256(json_text(known).encode("utf-8")).hexdigest() if known else ""


def rows_fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """The sha256 of rows, each as one line of JSON."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json_text(dict(row)).encode("utf-8") + b"\n")
    return digest.hexdigest()


def _effort(explainer: Explainer) -> str:
    limits = explainer.limits
    spent = [f"{limits.seconds:g} seconds" if limits.seconds is not None else "",
             f"{limits.nodes:,} nodes" if limits.nodes is not None else ""]  # fmt: skip
    limit = " and ".join(filter(None, spent))
    return f"method {explainer.method.name}, " + (f"at most {limit} per person" if limit else "no limit of time")


def _versions() -> Iterable[tuple[str, str]]:
    yield "ifonly", import_module("ifonly").__version__
    yield "python", platform.python_version()
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _listed(table: Mapping[str, float]) -> str:
    return ", ".join(f"{value:g} ({name})" for name, value in table.items())
