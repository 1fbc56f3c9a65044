"""`chains`: several models in one question. What an isolation forest costs, and five networks at once.

The same denied people of the test rows, one call each: the shipped network alone and with an isolation forest that must
take the row for an inlier; a network that was trained on a bootstrap sample alone, and with four more of them. Every
answer is evaluated by the models themselves.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import Accepted, Answer, Explainer, Limits, datasets, import_model

NETWORKS = 5
TREES = 100
TRAINING_ROWS = 4000


@click.command("chains")
@click.option("--rows", type=click.IntRange(1), default=100, show_default=True, help="Denied people per data set.")
@click.option("--seconds", type=click.FloatRange(0.1), default=60.0, show_default=True, help="Limit of each question.")
def command(rows: int, seconds: float) -> None:
    """Several models in one question: an isolation forest, five bootstrap networks."""
    table = Table("data set", "models", "people", "CPU ms alone: median", "worst", "together: median", "worst", "times",
                  "as near", "statuses")  # fmt: skip
    for name in ("credit", "adult"):
        data = datasets.load(name)
        train, test = data.split()
        encoded, points = data.encoded(), data.points()
        for said, model, others in (
            (f"isolation forest of {TREES}", datasets.network(name), [_forest(encoded[train], data)]),
            (f"{NETWORKS} bootstrap networks", *_bootstraps(encoded, data.labels, train, data)),
        ):
            denied = test[model.decide(model.scores(points[test])) == 0][:rows]
            table.add_row(name, said, *_row(model, others, [data.row(int(i)) for i in denied], seconds))
    console().print(table)


def _row(model: Any, others: list[Accepted], people: list[Any], seconds: float) -> list[str]:
    explainer = Explainer(model).using(limits=Limits(seconds=seconds), reasons=False)
    for constraints in ([], others):  # compiled and prepared
        explainer.explain(people[0], target=model.classes[1], constraints=constraints)
    taken: dict[bool, list[float]] = {False: [], True: []}
    told: dict[bool, list[Answer]] = {False: [], True: []}
    for person in people:
        for together in (False, True):
            begun = time.process_time()
            answer = explainer.explain(person, target=model.classes[1], constraints=others if together else [])
            taken[together].append(1e3 * (time.process_time() - begun))
            told[together].append(answer)
    found = [one.counterfactual for one in told[True] if one.counterfactual is not None]
    rows = np.array([model.schema.read(row) for row in found])
    assert all(one.accepts(model.schema, rows).all() for one in others)
    statuses = [one.status for one in told[True]]
    alone, both = (np.array(taken[together]) for together in (False, True))
    near = sum(abs(a.upper - b.upper) <= 1e-9 for a, b in zip(told[False], told[True], strict=True))
    return [
        f"{len(people)}", f"{np.median(alone):.1f}", f"{alone.max():.1f}", f"{np.median(both):.1f}",
        f"{both.max():.1f}", f"{np.median(both) / np.median(alone):.1f}", f"{near}",
        ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses)),
    ]  # fmt: skip


def _forest(rows: Any, data: Any) -> Accepted:
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=TREES, contamination=0.05, random_state=0).fit(rows)
    return Accepted(by=import_model(forest, data.schema), name="isolation forest")


def _bootstraps(encoded: Any, labels: Any, train: Any, data: Any) -> tuple[Any, list[Accepted]]:
    """Networks of two layers of ten, each trained on rows that were drawn with replacement."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = []
    for seed in range(NETWORKS):
        drawn = np.random.default_rng(seed).choice(train, TRAINING_ROWS)
        network = make_pipeline(StandardScaler(), MLPClassifier((10, 10), random_state=seed, max_iter=60))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models.append(import_model(network.fit(encoded[drawn], labels[drawn]), data.schema))
    return models[0], [
        Accepted(by=one, target=one.classes[1], name=f"bootstrap {k}") for k, one in enumerate(models[1:], 1)
    ]
