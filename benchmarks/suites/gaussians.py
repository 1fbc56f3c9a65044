"""`gaussians`: classifiers of squares and exponentials. Naive Bayes, quadratic discriminants, RBF machines.

Each is fitted on the first training rows, behind a StandardScaler, and asked about denied people of the test rows, one
call each. Every answer is judged by scikit-learn's own `predict`.
"""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import Explainer, Limits, datasets, import_model

ROWS = 4000
REGULAR = 0.01
"""Of quadratic discriminants: one-hot columns add up to 1, and have no variance in that direction."""


@click.command("gaussians")
@click.option("--rows", type=click.IntRange(1), default=20, show_default=True, help="Denied people per data set.")
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="Limit of each question.")
@click.option("--fitted", type=int, multiple=True, default=(100, 500), show_default=True, help="Rows of a machine.")
@click.option("--data", multiple=True, default=("credit", "adult"), show_default=True, help="Data sets.")
def command(rows: int, seconds: float, fitted: tuple[int, ...], data: tuple[str, ...]) -> None:
    """Naive Bayes, quadratic discriminants and RBF machines: times, and how many answers are proven."""
    table = Table("data set", "model", "units", "people", "CPU ms: median", "worst", "proven")
    for name in data:
        loaded = datasets.load(name)
        train, test = loaded.split()
        for label, estimator, count in _estimators(fitted):
            some = train[:count]
            table.add_row(name, label, *_row(estimator, loaded, some, test, rows, seconds))
    console().print(table)


def _estimators(fitted: tuple[int, ...]) -> list[tuple[str, Any, int]]:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    return [
        ("naive Bayes", GaussianNB(), ROWS),
        ("quadratic discriminants", QuadraticDiscriminantAnalysis(reg_param=REGULAR), ROWS),
        *((f"RBF machine of {count} rows", SVC(), count) for count in fitted),
    ]


def _row(estimator: Any, data: Any, train: Any, test: Any, rows: int, seconds: float) -> list[str]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    encoded, points = data.encoded(), data.points()
    fitted = make_pipeline(StandardScaler(), estimator).fit(encoded[train], data.labels[train])
    model = import_model(fitted, data.schema)
    explainer = Explainer(model).using(limits=Limits(seconds=seconds), reasons=False)
    denied = test[model.decide(model.scores(points[test])) == 0][:rows]
    explainer.explain(data.row(int(denied[0])), target=model.classes[1])  # compiled and prepared
    taken, told = [], []
    for i in denied.tolist():
        begun = time.process_time()
        told.append(explainer.explain(data.row(i), target=model.classes[1]))
        taken.append(1e3 * (time.process_time() - begun))
    found = [one.counterfactual for one in told if one.counterfactual is not None]
    judged = fitted.predict(data.schema.encode(np.array([data.schema.read(row) for row in found])))
    assert (judged == model.classes[1]).all()
    proven = sum(one.status in ("nearest", "none exists") for one in told)
    hidden = model.function.sizes()["hidden"]
    return [str(hidden), f"{len(denied)}", f"{np.median(taken):.1f}", f"{max(taken):.1f}", f"{proven}"]
