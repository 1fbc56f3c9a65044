"""`why`: smallest sufficient reasons, and whether the features with the largest attributions suffice.

Shipped networks and forests of 100 trees, people in the order of the data. Attributions are SHAP's (KernelExplainer
for networks, TreeExplainer for the forest) where `shap` is installed, else Shapley values sampled here by permutations.
A set of features is checked like ours: with these fixed, is there a row that the model decides otherwise? With
`--anchors`, so are the features of the anchors that alibi's AnchorTabular gives (precision 0.95); an anchor asks for
ranges of values, so its features, fixed at the person's, say more than it does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

from benchmarks.terminal import console
from ifonly import Explainer, Limits, Sufficiency, datasets
from ifonly.answering.sufficient import decides_alone
from ifonly.schema import Choice

Floats = NDArray[np.float64]
BACKGROUND = 50
"""Rows that attributions are relative to."""
PERMUTATIONS = 100
FOUR = 4


class Subject(NamedTuple):
    """A model, its data, and the fitted forest, if it is one."""

    name: str
    explainer: Explainer
    data: Any
    forest: Any = None


def subjects() -> dict[str, Callable[[], Subject]]:
    def network(name: str) -> Subject:
        explainer = Explainer(datasets.network(name))
        hidden = "x".join(map(str, explainer.model.network.hidden))
        return Subject(f"{name}, network {hidden}", explainer, datasets.load(name))

    def forest(name: str) -> Subject:
        data = datasets.load(name)
        fitted = RandomForestClassifier(100, max_depth=6, random_state=0).fit(data.encoded(), data.labels)
        return Subject(f"{name}, forest of 100", Explainer(fitted, schema=data.schema), data, fitted)

    return {
        "credit": lambda: network("credit"),
        "adult": lambda: network("adult"),
        "credit-forest": lambda: forest("credit"),
        "adult-forest": lambda: forest("adult"),
    }


@click.command("why")
@click.option("--rows", type=click.IntRange(1), default=200, show_default=True, help="People per model.")
@click.option("--only", type=click.Choice(list(subjects())), multiple=True, help="Only these models.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="For the reasons of one person.")
@click.option("--anchors", is_flag=True, help="Instead: do the features of anchors (alibi) suffice?")
def command(rows: int, only: tuple[str, ...], seconds: float, anchors: bool) -> None:
    """Smallest sufficient reasons: time and size; and how often the four largest attributions suffice."""
    columns = (
        "model", "people", "CPU ms median", "worst", "searches", "features median", "most", "statuses",
        "four suffice", "as many as ours suffice", "attribution",
    )  # fmt: skip
    if anchors:
        for name, make in subjects().items():
            if not only or name in only:
                console().print(_anchors(make(), rows, Limits(seconds=seconds)))
        return
    made = [
        _row(make(), rows, Limits(seconds=seconds)) for name, make in subjects().items() if not only or name in only
    ]
    table = Table("", *(name for name, *_ in made))
    for k, column in enumerate(columns[1:], 1):
        table.add_row(column, *(one[k] for one in made))
    console().print(table)


def _row(subject: Subject, rows: int, limits: Limits) -> list[str]:
    explainer, data = subject.explainer.using(limits=limits), subject.data
    explainer.why(data.row(0))  # kernels are loaded and the question is prepared
    points, named = data.points()[:rows], "shap" if find_spec("shap") else "sampled Shapley values"
    attributed = attributions(subject, points)
    taken, sizes, searches, kinds, four, many = [], [], [], Counter[str](), 0, 0
    for i in range(len(points)):
        begun = time.process_time()
        told = explainer.why(data.row(i))
        taken.append(time.process_time() - begun)
        kinds[told.status] += 1
        searches.append(told.searches)
        sizes.append(len(told.features))
        order = [data.schema.names[g] for g in np.argsort(-np.abs(attributed[i]), kind="stable")]
        four += suffices(explainer, data.row(i), order[:FOUR])
        many += suffices(explainer, data.row(i), order[: len(told.features)])
    return [
        subject.name, str(len(points)), f"{1e3 * np.median(taken):.0f}", f"{1e3 * max(taken):.0f}",
        f"{np.mean(searches):.0f}", f"{np.median(sizes):.0f}", str(max(sizes)),
        ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
        f"{four} of {len(points)} (ours has at most four: {sum(size <= FOUR for size in sizes)})",
        f"{many} of {len(points)}", named,
    ]  # fmt: skip


def _anchors(subject: Subject, rows: int, limits: Limits) -> str:
    """How often the features of a person's anchor suffice."""
    from alibi.explainers import AnchorTabular

    explainer, schema, every = subject.explainer.using(limits=limits), subject.data.schema, subject.data.points()
    model = explainer.model
    categories = {g: [str(one) for one in f.options] for g, f in enumerate(schema.features) if isinstance(f, Choice)}
    anchor = AnchorTabular(lambda points: model.decide(model.scores(np.asarray(points, dtype=np.float64))),
                           feature_names=list(schema.names), categorical_names=categories, seed=0)  # fmt: skip
    anchor.fit(every, disc_perc=(25, 50, 75))
    sizes, enough, empty = [], 0, 0
    for i in range(rows):
        named = sorted({schema.names[g] for g in anchor.explain(every[i], threshold=0.95).raw["feature"]})
        sizes.append(len(named))
        empty += not named
        enough += suffices(explainer, subject.data.row(i), named)
    return (
        f"{subject.name}: the features of {enough} of {rows} anchors suffice; features of an anchor: median "
        f"{np.median(sizes):.0f}, most {max(sizes)}; {empty} anchors are empty"
    )


def suffices(explainer: Explainer, row: Any, names: list[str]) -> bool:
    """Is it proven that no row with these values is decided otherwise?"""
    point, settings = explainer.schema.read(row), explainer._settings(listen=False)
    return decides_alone(explainer._answerer, point, names, Sufficiency(), settings) is True


def attributions(subject: Subject, points: Floats) -> Floats:
    """(person, feature): how much each feature adds to the score of a person, relative to other rows."""
    model, rng = subject.explainer.model, np.random.default_rng(0)
    every = subject.data.points()
    background = every[rng.choice(len(every), BACKGROUND, replace=False)]

    def score(rows: Floats) -> Floats:
        return np.asarray(model.scores(np.asarray(rows))[:, -1])

    if not find_spec("shap"):
        return np.array([_sampled(score, point, background, rng) for point in points])
    import shap

    if subject.forest is None:
        return np.asarray(shap.KernelExplainer(score, background).shap_values(points, silent=True))
    schema = subject.data.schema
    explained = shap.TreeExplainer(subject.forest, schema.encode(background))
    values = np.asarray(explained.shap_values(schema.encode(points), check_additivity=False))[:, :, 1]
    return np.stack([values[:, columns].sum(axis=1) for columns in schema.feature_columns], axis=1)


def _sampled(score: Callable[[Floats], Floats], point: Floats, background: Floats, rng: np.random.Generator) -> Floats:
    """Interventional Shapley values by random permutations, each from a row of the background to the person's."""
    total = np.zeros(len(point))
    for _ in range(PERMUTATIONS):
        order = rng.permutation(len(point))
        steps = np.repeat(background[rng.integers(len(background))][None, :], len(point) + 1, axis=0)
        for k, g in enumerate(order.tolist(), 1):
            steps[k:, g] = point[g]
        total[order] += np.diff(score(steps))
    return total / PERMUTATIONS
