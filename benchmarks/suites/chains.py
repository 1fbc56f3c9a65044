"""`chains`: several models in one question. What it costs that a row must look real, and five networks at once.

The same denied people of the test rows, one call each: the shipped network alone, with an isolation forest that must
take the row for an inlier, with a local outlier factor of one neighbour, with an autoencoder that must return it nearly
as it is, with a Gaussian density or a one-class machine that must accept it; a network that was trained on a bootstrap
sample alone, and with four more of them. Every answer is judged by scikit-learn's own models.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, Literal, TypeAlias

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import Accepted, Answer, Distance, Explainer, Limits, Network, datasets, import_model
from ifonly.methods import Search
from ifonly.model import network_model
from ifonly.plausibility import LocalOutlierFactor, dense, reconstructed

NETWORKS = 5
TREES = 100
TRAINING_ROWS = 4000
NEIGHBOURS = 2000
"""Rows of the data that a local outlier factor is about."""
HIDDEN = 8
"""Of the autoencoder."""
COMPONENTS = 1
"""Of the Gaussian mixture, with full covariance."""
MACHINE_ROWS = 1000
"""Rows that the one-class machine is fitted on: a twentieth of them, or a little more, are support vectors."""
Probing: TypeAlias = Literal["by rule", "always", "never"]
WAYS = (
    "isolation forest", "outlier factor", "autoencoder", "bootstrap networks", "gaussian mixture", "one-class svm",
)  # fmt: skip


@click.command("chains")
@click.option("--rows", type=click.IntRange(1), default=100, show_default=True, help="Denied people per data set.")
@click.option("--seconds", type=click.FloatRange(0.1), default=60.0, show_default=True, help="Limit of each question.")
@click.option("--only", type=click.Choice(WAYS), multiple=True, default=WAYS, help="What must accept, too.")
@click.option("--data", multiple=True, default=("credit", "adult"), show_default=True, help="Data sets.")
@click.option(
    "--probing", type=click.Choice(("by rule", "always", "never")), default="by rule", help="Search(probing)."
)
def command(rows: int, seconds: float, only: tuple[str, ...], data: tuple[str, ...], probing: Probing) -> None:
    """Several models in one question: what must look real, five bootstrap networks."""
    table = Table("data set", "models", "people", "CPU ms alone: median", "worst", "together: median", "worst", "times",
                  "as near", "statuses")  # fmt: skip
    for name in data:
        loaded = datasets.load(name)
        train, test = loaded.split()
        points = loaded.points()
        for way in only:
            model, others = _question(way, name, loaded, train)
            denied = test[model.decide(model.scores(points[test])) == 0][:rows]
            table.add_row(name, way, *_row(model, others, [loaded.row(int(i)) for i in denied], seconds, probing))
    console().print(table)


def _question(way: str, name: str, data: Any, train: Any) -> tuple[Any, list[Any]]:
    """The explained model, and what else must accept."""
    encoded = data.encoded()
    if way == "bootstrap networks":
        return _bootstraps(encoded, data.labels, train, data)
    if way == "isolation forest":
        return datasets.network(name), [_forest(encoded[train], data)]
    if way == "autoencoder":
        return datasets.network(name), [_autoencoder(encoded[train], data)]
    if way == "gaussian mixture":
        table = {column: values[train] for column, values in data.columns.items()}
        return datasets.network(name), [dense(data.schema, table, components=COMPONENTS)]
    if way == "one-class svm":
        return datasets.network(name), [_machine(encoded[train], data)]
    some = {column: values[train[:NEIGHBOURS]] for column, values in data.columns.items()}
    return datasets.network(name), [_Judged(LocalOutlierFactor.of(data.schema, some), data.schema)]


def _row(model: Any, others: list[Any], people: list[Any], seconds: float, probing: Probing) -> list[str]:
    explainer = Explainer(model).using(Search(probing=probing), limits=Limits(seconds=seconds), reasons=False)
    asked = [getattr(one, "constraint", one) for one in others]
    for constraints in ([], asked):  # compiled and prepared
        explainer.explain(people[0], target=model.classes[1], constraints=constraints)
    taken: dict[bool, list[float]] = {False: [], True: []}
    told: dict[bool, list[Answer]] = {False: [], True: []}
    for person in people:
        for together in (False, True):
            begun = time.process_time()
            answer = explainer.explain(person, target=model.classes[1], constraints=asked if together else [])
            taken[together].append(1e3 * (time.process_time() - begun))
            told[together].append(answer)
    found = [one.counterfactual for one in told[True] if one.counterfactual is not None]
    rows = np.array([model.schema.read(row) for row in found])
    assert all(one.accepts(model.schema, rows).all() for one in others)
    statuses = [one.status for one in told[True]]
    alone, both = (np.array(taken[together]) for together in (False, True))
    near = sum(abs(a.upper - b.upper) <= 1e-9 for a, b in zip(told[False], told[True], strict=True))
    if len(others) > 1:
        console().print(f"together: {_per_node(taken[True], told[True])}")
        _say_each_alone(model, others, people, seconds, float(np.median(both)))
    return [
        f"{len(people)}", f"{np.median(alone):.1f}", f"{alone.max():.1f}", f"{np.median(both):.1f}",
        f"{both.max():.1f}", f"{np.median(both) / np.median(alone):.1f}", f"{near}",
        ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses)),
    ]  # fmt: skip


def _say_each_alone(model: Any, others: list[Any], people: list[Any], seconds: float, together: float) -> None:
    """What each of the models takes alone: they are not equally hard."""
    medians, parts = [], []
    for one in (model, *(other.by for other in others)):
        explainer = Explainer(one).using(limits=Limits(seconds=seconds), reasons=False)
        explainer.explain(people[0], target=one.classes[1])
        taken, told = [], []
        for person in people:
            begun = time.process_time()
            told.append(explainer.explain(person, target=one.classes[1]))
            taken.append(1e3 * (time.process_time() - begun))
        medians.append(float(np.median(taken)))
        parts.append(f"{medians[-1]:.1f} (worst {max(taken):.0f}; {_per_node(taken, told)})")
    console().print(f"each network alone, CPU ms: {', '.join(parts)}")
    mean, hardest, total = (together / some for some in (np.mean(medians), max(medians), sum(medians)))
    console().print(f"together over the mean of these medians {mean:.1f}, the largest {hardest:.1f}, sum {total:.1f}")


def _per_node(taken: list[float], told: list[Answer]) -> str:
    """Median nodes of a person, and the time of all people by all nodes."""
    nodes = [one.nodes for one in told]
    return f"{np.median(nodes):.0f} nodes, each {1e3 * sum(taken) / sum(nodes):.0f} us"


class _Judged:
    """A local outlier factor whose answers scikit-learn's own judges: over columns of which the l1 distance is ours."""

    def __init__(self, constraint: LocalOutlierFactor, schema: Any) -> None:
        from sklearn.neighbors import LocalOutlierFactor as Judge

        self.constraint = constraint
        self.judge = Judge(n_neighbors=1, metric="manhattan", novelty=True).fit(_columns(schema, constraint.points))
        self.judge.offset_ = -constraint.at_most

    def accepts(self, schema: Any, points: Any) -> Any:
        return self.judge.predict(_columns(schema, points)) == 1


def _columns(schema: Any, points: Any) -> Any:
    """Numbers and levels in units of their ranges, halves of a 0/1 column per option."""
    scale = Distance().scale_vector(schema)
    parts = [
        0.5 * np.eye(len(f.options))[points[:, g].astype(int)]
        if f.kind in ("binary", "categorical")
        else points[:, [g]] / scale[g]
        for g, f in enumerate(schema.features)
    ]
    return np.concatenate(parts, axis=1) / len(schema)


def _autoencoder(rows: Any, data: Any) -> _Reconstructing:
    """Trained on standardised columns; the threshold leaves out a twentieth of the rows."""
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    some = rows[:TRAINING_ROWS]
    scaler = StandardScaler().fit(some)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = scaler.transform(some)
        fitted = MLPRegressor(hidden_layer_sizes=(HIDDEN,), random_state=0, max_iter=60).fit(scaled, scaled)
    return _Reconstructing(fitted, scaler, some, data.schema)


class _Reconstructing:
    """An autoencoder, and its errors by scikit-learn's own forward pass."""

    def __init__(self, fitted: Any, scaler: Any, rows: Any, schema: Any) -> None:
        self.fitted, self.scaler = fitted, scaler
        (first, last), (b0, b1) = fitted.coefs_, fitted.intercepts_
        inside = (first / scaler.scale_[:, None]).T, b0 - (scaler.mean_ / scaler.scale_) @ first
        outside = (last * scaler.scale_).T, b1 * scaler.scale_ + scaler.mean_
        self.most = float(np.quantile(self.errors(rows), 0.95))
        model = network_model(Network.of([inside, outside]), schema, regression=True)
        self.constraint = reconstructed(model, schema, self.most)

    def errors(self, rows: Any) -> Any:
        back = self.fitted.predict(self.scaler.transform(rows)) * self.scaler.scale_ + self.scaler.mean_
        return np.abs(back - rows).sum(axis=1)

    def accepts(self, schema: Any, points: Any) -> Any:
        return self.errors(schema.encode(points)) <= self.most * (1.0 + 1e-9)


def _forest(rows: Any, data: Any) -> Accepted:
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=TREES, contamination=0.05, random_state=0).fit(rows)
    return Accepted(by=import_model(forest, data.schema), name="isolation forest")


def _machine(rows: Any, data: Any) -> Accepted:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import OneClassSVM

    machine = make_pipeline(StandardScaler(), OneClassSVM(nu=0.05)).fit(rows[:MACHINE_ROWS])
    return Accepted(by=import_model(machine, data.schema), name="one-class machine")


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
