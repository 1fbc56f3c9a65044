"""Networks of two layers of ten: our ways, PROPLACE and LiCE."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import handover
from benchmarks.subjects.data import Data, load
from benchmarks.suites.plausible.outcome import Judges, Way, ours, theirs
from benchmarks.suites.plausible.proplace import Proplace
from benchmarks.suites.plausible.settings import DELTA, Question, Settings, denied, outlier_factor, training_rows
from benchmarks.suites.retraining import BOOTSTRAPS, FAMILIES, trained
from benchmarks.suites.robust.mce_r import accepted_by_all
from ifonly import Accepted, Explainer, Limits, RobustToWeights, import_model
from ifonly.plausibility import LocalOutlierFactor, inliers

HIDDEN = (10, 10)
DENSITY = 1e-6
"""By which a density may be below its threshold."""


def question(name: str, settings: Settings) -> AbstractContextManager[Question]:
    """The network of the data set, the people whom it denies, and everybody who is asked about them."""
    data = load(name)
    some = training_rows(data.train)
    encoded = data.schema.encode(data.points)

    def network(family: str, k: int) -> Any:
        return trained(encoded, data.labels, some, some, family, k, HIDDEN)

    explained = network("start", 0)
    model = import_model(explained, data.schema)
    changed = [network(family, 1 + k) for family in FAMILIES for k in range(settings.changes)]
    scaled = explained[0].transform
    judges = Judges(model, changed, outlier_factor(scaled(encoded[some])), scaled)
    found = Question(denied(model, data.points, data.test, settings.rows), judges)
    found.ways.update(_ours(model, data, some, network, settings))
    found.ways["PROPLACE"] = _proplace(model, data.points[some])
    if settings.checkout is not None:
        found.ways.update(_lice(found, model, replace(data, train=some), settings))
    return found.closing()


def _ours(model: Any, data: Data, some: Any, network: Callable[..., Any], settings: Settings) -> dict[str, Way]:
    explainer = Explainer(model).using(limits=Limits(seconds=settings.seconds), reasons=False)
    table = data.table(some)
    forest, factor = inliers(data.schema, table), LocalOutlierFactor.of(data.schema, table)
    others = [
        Accepted(
            by=import_model(network("bootstrap", 100 + k), data.schema), target=model.classes[1], name=f"bootstrap {k}"
        )
        for k in range(BOOTSTRAPS - 1)
    ]

    def inlier(point: Any, facts: Any) -> bool:
        return _accepts(forest, data.schema, point)

    return {
        "nearest": Way(ours(explainer)),
        "isolation forest": Way(ours(explainer, forest), inlier),
        "outlier factor": Way(
            ours(explainer, factor), lambda point, _: float(factor.factors(data.schema, point[None, :])[0]) <= 1.5
        ),
        "plausible(table)": Way(ours(explainer.plausible(table)), inlier),
        "RobustToWeights": Way(
            ours(explainer, RobustToWeights(DELTA)), lambda point, _: accepted_by_all(model, point[None, :], DELTA)
        ),
        f"{BOOTSTRAPS} bootstraps": Way(
            ours(explainer, *others), lambda point, _: all(_accepts(one, data.schema, point) for one in others)
        ),
    }


def _accepts(check: Accepted, schema: Any, point: Any) -> bool:
    """By the other model's own original."""
    return bool(check.accepts(schema, point[None, :]).all())


def _proplace(model: Any, rows: Any) -> Way:
    method = Proplace(model, rows, DELTA)

    def ask(point: Any) -> dict[str, Any]:
        begun = time.process_time()
        found = method.answer(point)
        taken = 1e3 * (time.process_time() - begun)
        return {"point": None if found is None else found.tolist(), "proven": False, "milliseconds": taken}

    return Way(ask, lambda point, _: accepted_by_all(model, point[None, :], DELTA), against="RobustToWeights")


def _lice(found: Question, model: Any, data: Data, settings: Settings) -> dict[str, Way]:
    """Its program without a density and with it; the density is judged by the sum-product network itself."""
    folder = Path(found.stack.enter_context(tempfile.TemporaryDirectory()))
    handover.write(folder, model, data, settings.seconds, checkout=settings.checkout)
    conditions: dict[str, Callable[[Any, Any], bool]] = {
        "plain": lambda point, facts: True,
        "median": lambda point, facts: facts["density"] >= facts["least"] - DENSITY,
    }
    ways = {}
    for way, keeps in conditions.items():
        peer = found.peer("lice", way, folder, settings)
        if peer is None:
            return {}
        ask = theirs(peer, settings.peer_budget, read=np.asarray, write=np.asarray)
        ways["LiCE" if way == "plain" else "LiCE, density"] = Way(ask, keeps)
    return ways
