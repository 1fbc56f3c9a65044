"""`retraining`: which answers still hold when the model is trained again, and what that costs in distance.

The protocol of audits of robust methods: a network of two layers of 32, changed models in eight families (another
random start, bootstrap samples, 1 % or 10 % or half of the rows left out, 2 % of the labels changed, another
regularisation, another size), denied people of the test rows.

Of each way of answering: how many people have a row that the network accepts, which share of the changed models accepts
it, its distance, its local outlier factor (20 neighbours) and the time. The default is small; `--rows 250 --changes 25
--seconds 60` is the protocol's size. Each answer is written to a file of records at once, and a run asks only what is
not there, so that it can be stopped and resumed.

ROAR, MCE-R and RNCE (the nearest row of the data that all networks within delta accept) are written again from their
descriptions. A row that the network itself refuses does not count as an answer.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.subjects.data import CANCER, Data, load
from benchmarks.suites.robust.mce_r import raised_until_robust
from benchmarks.suites.robust.roar import roar
from benchmarks.terminal import console
from ifonly import Accepted, Distance, Explainer, Limits, RobustToWeights, datasets, import_model
from ifonly.model.own_layers import own_layers
from ifonly.model.weight_box import WeightBox
from ifonly.problem.rules import merged
from ifonly.problem.rules.derived import derived_features

TRAINING_ROWS = 2000
BOOTSTRAPS = 5
HIDDEN = (32, 32)
FAMILIES = ("start", "bootstrap", "1 % left out", "10 % left out", "half of the rows", "2 % of labels", "alpha", "size")


@dataclass
class Outcome:
    """What one way of answering gave: rows, and milliseconds of everybody."""

    rows: list[Any] = field(default_factory=list)
    distance: list[float] = field(default_factory=list)
    proven: int = 0
    milliseconds: list[float] = field(default_factory=list)


@click.command("retraining")
@click.option("--rows", type=click.IntRange(1), default=10, show_default=True, help="Denied people per data set.")
@click.option("--changes", type=click.IntRange(1), default=2, show_default=True, help="Changed models per family.")
@click.option("--delta", type=click.FloatRange(0.0), default=0.005, show_default=True, help="Change of each weight.")
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="Limit of each question.")
@click.option(
    "--data", multiple=True, default=("credit", "adult", "compas", "cancer10"), show_default=True, help="Data sets."
)
@click.option(
    "--records", type=click.Path(path_type=Path), default=Path("results/retraining.jsonl"), show_default=True,
    help="The file of answers: those that it has are not asked for again.",
)  # fmt: skip
# size: the options of a command
def command(rows: int, changes: int, delta: float, seconds: float, data: tuple[str, ...], records: Path) -> None:
    """Answers after the model is trained again: nearest, robust, and other ways."""
    table = Table("data set", "way", "answered", "proven", "changed models: accept", "worst family", "distance: mean",
                  "outlier factor: median", "CPU ms: median")  # fmt: skip
    for name in data:
        known = Records(records, f"{name} delta {delta} seconds {seconds}")
        for line in _compared(name, rows, changes, delta, seconds, known):
            table.add_row(name, *line)
    console().print(table)


class Records:
    """Answers by what was asked, way and number of the row: one JSON object per line."""

    def __init__(self, path: Path, asked: str) -> None:
        self.path, self.asked = path, asked
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        self.known = {(one["way"], one["row"]): one for one in found if one["asked"] == asked}

    def add(self, way: str, row: int, **told: Any) -> dict[str, Any]:
        self.known[way, row] = told
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"asked": self.asked, "way": way, "row": row, **told}) + "\n")
        return told


def _loaded(name: str) -> Data:
    """The data set; those of the library with what every row obeys."""
    if name.startswith(CANCER):
        return load(name)
    data = datasets.load(name)
    train, test = data.split()
    return Data(name=name, schema=data.schema, points=data.points(), labels=data.labels, train=train, test=test)


# size: what a line of the table is about
def _compared(name: str, rows: int, changes: int, delta: float, seconds: float, records: Records) -> list[list[str]]:
    from sklearn.neighbors import LocalOutlierFactor

    data = _loaded(name)
    some = np.random.default_rng(0).choice(data.train, min(TRAINING_ROWS, len(data.train)), replace=False)
    encoded = data.schema.encode(data.points)
    network = trained(encoded, data.labels, some, some, "start", 0)
    changed = {
        family: [trained(encoded, data.labels, some, data.train, family, 1 + k) for k in range(changes)]
        for family in FAMILIES
    }
    model = import_model(network, data.schema)
    denied = data.test[model.decide(model.scores(data.points[data.test])) == 0][:rows]
    people = {int(i): data.schema.row(data.points[i]) for i in denied}
    scaled = network[0].transform(encoded[some])
    judge = LocalOutlierFactor(novelty=True).fit(scaled)
    lines = []
    for way, answer in _ways(model, network, data, some, delta, seconds).items():
        found = _outcome(model, answer, people, way, records)
        lines.append(_line(way, found, len(denied), model, network, changed, judge))
    return lines


def _ways(
    model: Any, network: Any, data: Any, some: Any, delta: float, seconds: float
) -> dict[str, Callable[..., Any]]:
    """Each way of answering: from a row to (row or None, is it proven to be the nearest)."""
    explainer = Explainer(model).using(limits=Limits(seconds=seconds), reasons=False)
    target, robust, encoded = model.classes[1], RobustToWeights(delta), data.schema.encode(data.points)
    others = [
        Accepted(by=import_model(trained(encoded, data.labels, some, some, "bootstrap", 100 + k), data.schema),
                 target=target, name=f"bootstrap {k}")
        for k in range(BOOTSTRAPS - 1)
    ]  # fmt: skip
    rows = data.points[some]
    accepted = WeightBox(own_layers(model), delta).lowest(model.schema.encode(rows), np.ones((1, 1)))[:, 0] > 0.0

    def ours(*constraints: Any) -> Callable[..., Any]:
        def ask(row: Any) -> Any:
            answer = explainer.explain(row, target=target, constraints=constraints)
            return answer.counterfactual, answer.status == "nearest"

        return ask

    def mce_r(row: Any) -> Any:
        answer = raised_until_robust(explainer, row, target, delta)
        return None if answer is None else answer.counterfactual, False

    def rnce(row: Any) -> Any:
        if not accepted.any():
            return None, False
        away = _distance(model.schema).between(model.schema, model.schema.read(row), rows[accepted])
        return model.schema.row(rows[accepted][away.argmin()]), False

    return {
        "nearest": ours(), "RobustToWeights": ours(robust), f"{BOOTSTRAPS} bootstraps": ours(*others),
        "MCE-R": mce_r, "RNCE": rnce, "ROAR": lambda row: (roar(model, network, row), False),
    }  # fmt: skip


def _distance(schema: Any) -> Distance:
    """As answers count it: a derived feature follows others and counts next to nothing."""
    return Distance().without(derived_features(merged(schema)))


def _outcome(model: Any, ask: Callable[..., Any], people: dict[int, Any], way: str, records: Records) -> Outcome:
    found, schema = Outcome(), model.schema
    distance = _distance(schema)
    if any((way, i) not in records.known for i in people):
        ask(next(iter(people.values())))  # compiled and prepared
    for i, person in people.items():
        told = records.known.get((way, i))
        if told is None:
            begun = time.process_time()
            row, proven = ask(person)
            taken = 1e3 * (time.process_time() - begun)
            point = None if row is None else schema.read(row).tolist()
            told = records.add(way, i, point=point, proven=bool(proven), milliseconds=taken)
        found.milliseconds.append(told["milliseconds"])
        if told["point"] is None or model.decide(model.scores(np.array([told["point"]])))[0] != 1:
            continue
        found.rows.append(np.array(told["point"]))
        found.distance.append(float(distance.between(schema, schema.read(person), found.rows[-1])))
        found.proven += told["proven"]
    return found


def _line(way: str, found: Outcome, people: int, model: Any, network: Any, changed: Any, judge: Any) -> list[str]:
    taken = f"{np.median(found.milliseconds):.0f}"
    if not found.rows:
        return [way, f"0 of {people}", "0", "-", "-", "-", "-", taken]
    encoded = model.schema.encode(np.array(found.rows))
    kept = {family: float(np.mean([one.predict(encoded) == 1 for one in some])) for family, some in changed.items()}
    worst = min(kept, key=lambda family: kept[family])
    factor = float(np.median(-judge.score_samples(network[0].transform(encoded))))
    return [
        way, f"{len(found.rows)} of {people}", f"{found.proven}", f"{100 * np.mean(list(kept.values())):.1f} %",
        f"{100 * kept[worst]:.0f} % ({worst})", f"{np.mean(found.distance):.5f}", f"{factor:.2f}", taken,
    ]  # fmt: skip


def trained(
    encoded: Any, labels: Any, rows: Any, everyone: Any, family: str, k: int, hidden: tuple[int, ...] = HIDDEN
) -> Any:
    """The network (k = 0), or one of a family that was trained again."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    rng, sample = np.random.default_rng(k), rows
    left = {"1 % left out": 0.99, "10 % left out": 0.9, "half of the rows": 0.5}.get(family)
    if left is not None:
        sample = rng.choice(rows, int(left * len(rows)), replace=False)
    elif family == "bootstrap":
        sample = rng.choice(rows, len(rows))
    chosen = labels[sample].copy()
    if family == "2 % of labels":
        wrong = rng.random(len(chosen)) < 0.02
        chosen = np.where(wrong, 1 - chosen, chosen)
    size, alpha = (
        tuple(3 * w // 4 for w in hidden) if family == "size" else hidden,
        (1e-2 if family == "alpha" else 1e-4),
    )
    fitted = MLPClassifier(
        size, alpha=alpha, random_state=k if family in ("start", "alpha", "size") else 0, max_iter=40
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(MinMaxScaler().fit(encoded[everyone]), fitted).fit(encoded[sample], chosen)
