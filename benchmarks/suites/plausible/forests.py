"""Random forests with an isolation forest: ours, and OCEAN's CP-SAT without the isolation forest and with it."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np

from benchmarks.peers import handover
from benchmarks.subjects.data import load
from benchmarks.suites.plausible.outcome import Judges, Way, ours, theirs
from benchmarks.suites.plausible.settings import Question, Settings, denied, outlier_factor, training_rows
from benchmarks.suites.tree_race import Scaled, scaled
from ifonly import Accepted, Explainer, Limits, import_model

TREES, DEPTH = 50, 4
ISOLATORS, ISOLATED = 10, 64
"""Trees of the isolation forest, and the rows that each is made of: CP-SAT does not finish with many more."""
OUTLIERS = 0.05
FAMILIES = ("start", "bootstrap", "1 % left out", "10 % left out", "half of the rows", "2 % of labels")


def question(name: str, settings: Settings) -> AbstractContextManager[Question]:
    """Numbers in [0, 1], choices one-hot: what OCEAN reads."""
    from sklearn.ensemble import IsolationForest

    split, data = load(name), scaled(name, columns=False)
    some = training_rows(split.train)
    rows, labels = data.schema.encode(data.points[some]), data.labels[some]
    fitted = _forest(rows, labels, "start", 0)
    isolation = IsolationForest(
        n_estimators=ISOLATORS, max_samples=ISOLATED, contamination=OUTLIERS, random_state=0
    ).fit(rows)
    model = import_model(fitted, data.schema)
    changed = [_forest(rows, labels, family, 1 + k) for family in FAMILIES for k in range(settings.changes)]
    judges = Judges(model, changed, outlier_factor(rows), np.asarray)
    found = Question(denied(model, data.points, split.test, settings.rows), judges)
    explainer = Explainer(model).using(limits=Limits(seconds=settings.seconds), reasons=False)
    looks_real = Accepted(by=import_model(isolation, data.schema), name="isolation forest")

    def inlier(point: Any, facts: Any) -> bool:
        return bool(isolation.predict(data.schema.encode(point[None, :]))[0] == 1)

    found.ways["nearest"] = Way(ours(explainer))
    found.ways["isolation forest"] = Way(ours(explainer, looks_real), inlier)
    folder = Path(found.stack.enter_context(tempfile.TemporaryDirectory()))
    _hand_over(folder, data, fitted, isolation, settings.seconds)
    for way, title, against in (("", "OCEAN", "nearest"), ("isolation", "OCEAN, isolation forest", "isolation forest")):
        peer = found.peer("ocean", way, folder, settings)
        if peer is not None:
            ask = theirs(
                peer, settings.peer_budget, read=lambda columns: _point(data, columns),
                write=lambda point: data.schema.encode(point[None, :])[0],
            )  # fmt: skip
            found.ways[title] = Way(ask, inlier if way else lambda point, facts: True, against=against)
    return found.closing()


def _forest(rows: Any, labels: Any, family: str, k: int) -> Any:
    """The forest (k = 0), or one that was trained again."""
    from sklearn.ensemble import RandomForestClassifier

    rng, sample = np.random.default_rng(k), np.arange(len(rows))
    left = {"1 % left out": 0.99, "10 % left out": 0.9, "half of the rows": 0.5}.get(family)
    if left is not None:
        sample = rng.choice(sample, int(left * len(rows)), replace=False)
    elif family == "bootstrap":
        sample = rng.choice(sample, len(sample))
    chosen = labels[sample].copy()
    if family == "2 % of labels":
        chosen = np.where(rng.random(len(chosen)) < 0.02, 1 - chosen, chosen)
    seed = k if family == "start" else 0
    return RandomForestClassifier(TREES, max_depth=DEPTH, random_state=seed).fit(rows[sample], chosen)


def _hand_over(folder: Path, data: Scaled, fitted: Any, isolation: Any, budget: float) -> None:
    handover.write_features(folder, data.schema, budget)
    np.savez(folder / "task.npz", train=data.points[:1], labels=np.zeros(1))
    joblib.dump(fitted, folder / "model.joblib")
    joblib.dump(isolation, folder / "isolation.joblib")


def _point(data: Scaled, columns: Any) -> Any:
    """The point of encoded columns: of a choice the option whose column is largest."""
    parts = [
        columns[at[0]] if not hasattr(feature, "options") else float(np.argmax(columns[at]))
        for feature, at in zip(data.schema.features, data.schema.feature_columns, strict=True)
    ]
    return np.array(parts)
