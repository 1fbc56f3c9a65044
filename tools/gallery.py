"""The pictures of docs/gallery.md: python tools/gallery.py (needs matplotlib and scikit-learn)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from sklearn.ensemble import RandomForestClassifier

from ifonly import Explainer, datasets
from ifonly.diagnostics import bounds_over_time, cost_by_changes, score_path

IMAGES = Path(__file__).parent.parent / "docs" / "images"
CLASSES = ["deny", "approve"]
SLOW = 112
"""A row that a large forest takes seconds for."""


def main() -> None:
    """Draw them, the same at every run, but for the seconds of a search."""
    matplotlib.rcParams["svg.hashsalt"] = "ifonly"
    data = datasets.load("credit")
    explainer = Explainer(datasets.network("credit"), classes=CLASSES)
    answer = explainer.explain(data.row(0))
    _save(answer.plot(), "change")
    _save(score_path(explainer, answer).plot(), "path")
    _save(cost_by_changes(explainer, data.row(0), distance="l2").plot(), "fewer")
    _save(explainer.explain_diverse(data.row(0), 4).plot(), "alternatives")
    people = [data.row(i) for i in data.split()[1][:400]]
    answers = explainer.explain_many(people, target="approve")
    _save(answers.plot(by=[person["AgeGroup"] for person in people]), "costs")
    train = data.split()[0]
    forest = RandomForestClassifier(300, max_depth=11, random_state=0).fit(data.encoded()[train], data.labels[train])
    schema = datasets.load("credit", rules=False).schema  # the picture is of bounds, not of a row
    imported_trees = Explainer(forest, schema=schema, classes=CLASSES)
    _save(bounds_over_time(imported_trees, data.row(SLOW)).plot(), "bounds")


def _save(axes: Any, name: str) -> None:
    axes.figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
