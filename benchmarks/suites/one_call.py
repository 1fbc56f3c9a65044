"""What one call takes: `explain` for one person, model by model and part by part; and `explain_many` on ever more rows.

Of one `explain`, in CPU time: the search inside it, the calls of the user's own model, and the rest, which is reading
the row, rounding, checking and building the answer. With `--beside`, another version in turns with this one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.asking import contestants, records
from benchmarks.asking.case import WANTED, Case, QueryRequest, common
from benchmarks.asking.records import Record
from benchmarks.subjects.networks import Spec, arch, train_missing
from benchmarks.terminal import Folders, bar
from ifonly import Explainer, Fixed, Model, datasets, import_model

SPEC = Spec("adult", arch("2x10"))
COUNTS = (1, 3, 10, 30, 100, 300, 1000, 2900)
REPEATS = 3


def rows(folders: Folders, console: Console, *, quick: bool = False) -> None:
    """One record per call; `row` is the repeat, `nodes` how many answers were proven."""
    train_missing((SPEC,), folders.cache, console)
    path = records.path_of(folders.results, "rows")
    known = {(r.batch, r.row) for r in records.read(path)}
    case = Case.make("rows", SPEC, folders.cache, max(COUNTS))
    asked = [(n, i) for n in COUNTS[: 5 if quick else None] for i in range(REPEATS) if (n, i) not in known]
    with bar(console) as progress:
        task = progress.add_task("rows: adult 2x10", total=len(asked))
        for count, repeat in asked:
            records.append(path, [_record(case, count, repeat)])
            progress.advance(task)


def _record(case: Case, count: int, repeat: int) -> Record:
    table = case.data.table(case.rows[:count])
    explainer = Explainer(case.model)
    explainer.explain_many(case.data.table(case.rows[:1]), target=WANTED)  # prepared and compiled
    begun, spent = time.perf_counter(), time.process_time()
    answers = explainer.explain_many(table, target=WANTED)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
    proven = sum(answer.status == "nearest" for answer in answers)
    return Record(
        **common(case, QueryRequest(norm="l1", method=contestants.OURS, way=f"rows={count}"), repeat),
        status="nearest" if proven == len(answers) else "within",
        lower=max(answer.lower for answer in answers),
        upper=max(answer.upper for answer in answers),
        valid=all(answer.counterfactual is not None for answer in answers),
        seconds=seconds,
        cpu_seconds=cpu,
        nodes=proven,
        batch=len(answers),
        batch_seconds=seconds,
    )


# ---------------------------------------------------------------------- one `explain`, part by part

REPEATS_OF_A_ROW = 9
PARTS = ("call", "search", "predict", "rest", "first call", "first rest", "new question", "prepared")
"""Microseconds of CPU time. The first call is that of an explainer that has answered nothing yet, about a model that
others have been asked about; a new question has one more feature fixed; the last is a first call after `prepare`."""
LOOP = 1_000_000
"""Additions of a loop that says how fast the machine is at the time."""


def _network(name: str, *, rules: bool) -> Model:
    return datasets.network(name, rules=rules)


def _torch(name: str) -> Model:
    """A float32 module of 2x10 that scales its own inputs."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = datasets.load(name, rules=False)
    inputs = torch.tensor(data.encoded(), dtype=torch.float32)
    labels = torch.tensor(data.labels == np.unique(data.labels)[1], dtype=torch.float32)[:, None]
    scale = nn.Linear(inputs.shape[1], inputs.shape[1])
    with torch.no_grad():
        spread = inputs.std(0)
        deviation = torch.where(spread > 0.0, spread, torch.ones_like(spread))  # a column may be constant
        scale.weight.copy_(torch.diag(1.0 / deviation))
        scale.bias.copy_(-inputs.mean(0) / deviation)
    layers = nn.Sequential(nn.Linear(inputs.shape[1], 10), nn.ReLU(), nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 1))
    scaled, optimiser = scale(inputs).detach(), torch.optim.Adam(layers.parameters(), lr=1e-2)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(layers(scaled), labels).backward()
        optimiser.step()
    return import_model(nn.Sequential(scale, *layers), data.schema)


def _fitted(name: str, estimator: Any) -> Model:
    data = datasets.load(name, rules=False)
    return import_model(estimator.fit(data.encoded(), data.labels), data.schema)


def _xgboost(name: str) -> Model:
    from xgboost import XGBClassifier

    return _fitted(name, XGBClassifier(n_estimators=100, max_depth=6))


def _lightgbm(name: str) -> Model:
    from lightgbm import LGBMClassifier

    return _fitted(name, LGBMClassifier(verbose=-1))


def _catboost(name: str) -> Model:
    from catboost import CatBoostClassifier

    return _fitted(name, CatBoostClassifier(iterations=100, verbose=0, allow_writing_files=False))


def _forest(name: str) -> Model:
    from sklearn.ensemble import RandomForestClassifier

    return _fitted(name, RandomForestClassifier(100, max_depth=6, random_state=0))


MODELS: dict[str, Callable[[str], Model]] = {
    "float64": lambda name: _network(name, rules=False),
    "float64, rules": lambda name: _network(name, rules=True),
    "float32": _torch,
    "XGBoost": _xgboost,
    "LightGBM": _lightgbm,
    "CatBoost": _catboost,
    "forest": _forest,
}
"""Networks of 2x10; ensembles of 100 trees, of depth 6 where that is said."""


@dataclass
class Timed:
    """A model's original that notes what its calls take."""

    original: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    calls: list[float] = field(default_factory=list)

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        begun = time.process_time()
        scores = self.original(points)
        self.calls.append(time.process_time() - begun)
        return scores


def _timed_call(
    explainer: Explainer, row: Any, timed: Timed, constraints: Sequence[Fixed] = ()
) -> tuple[float, float, float, int]:
    """Seconds of the call, of the search and of the model's own calls, and how many calls these are."""
    timed.calls.clear()
    begun = time.process_time()
    answer = explainer.explain(row, constraints=constraints)
    return time.process_time() - begun, answer.seconds, sum(timed.calls), len(timed.calls)


def _least(calls: list[tuple[float, float, float, int]]) -> tuple[float, float, float, float, int]:
    """The least of each part over several calls, with the rest before the last. The search is known in wall time only,
    which other processes prolong: the least of several is about its CPU time, if it is short."""
    call, search, own, count = (min(part) for part in zip(*calls, strict=True))
    return call, search, own, call - own - search, count


def _prepared(model: Model) -> Explainer:
    explainer = Explainer(model)
    return explainer.prepare() if hasattr(explainer, "prepare") else explainer  # an older version has none


def _unchanged(explainer: Explainer, row: Any) -> list[str]:
    """Features that the answer leaves as they are."""
    changed = {change.feature for change in explainer.explain(row).changes}
    return [name for name in explainer.schema.names if name not in changed]


def measured(model: Model, data: datasets.Dataset, count: int) -> dict[str, float]:
    """Medians over people of the least of several calls; of first calls, the least of as many explainers."""
    timed = Timed(model.original)
    watched = replace(model, original=timed)
    explainer = Explainer(watched)
    people = list({tuple(row.values()): row for row in (data.row(i) for i in range(20 * count))}.values())
    asked = [row for row in people if explainer.explain(row).changes][:count]
    best = [_least([_timed_call(explainer, row, timed) for _ in range(REPEATS_OF_A_ROW)]) for row in asked]
    first = _least([_timed_call(Explainer(watched), asked[0], timed) for _ in range(REPEATS_OF_A_ROW)])
    other = _least([_timed_call(explainer, asked[0], timed, [Fixed(name)]) for name in _unchanged(explainer, asked[0])])
    ready = _least([_timed_call(_prepared(watched), asked[0], timed) for _ in range(REPEATS_OF_A_ROW)])
    call, search, own, rest, calls = (statistics.median(part) for part in zip(*best, strict=True))
    told = dict(zip(PARTS, (call, search, own, rest, first[0], first[3], other[0], ready[0]), strict=True))
    return {**{part: 1e6 * seconds for part, seconds in told.items()}, "predict calls": float(calls)}


def machine_milliseconds() -> float:
    """CPU time of the loop, the best of five."""
    taken = []
    for _ in range(5):
        begun, total = time.process_time(), 0
        for i in range(LOOP):
            total += i
        taken.append(time.process_time() - begun)
    return 1e3 * min(taken)


def _measured_by(source: Path, name: str, kind: str, rows: int) -> dict[str, float]:
    """What a version of the package, in a process of its own, takes."""
    path = os.pathsep.join([str(source), str(Path(__file__).parents[2])])
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks", "one-call", "--data", name, "--model", kind]
    done = subprocess.run(
        [*command, "--rows", str(rows), "--json"], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE,
        text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@click.command("one-call")
@click.option("--rows", type=click.IntRange(1), default=40, show_default=True, help="People per model.")
@click.option("--data", "names", multiple=True, default=("adult", "credit"), show_default=True)
@click.option("--model", "kinds", multiple=True, type=click.Choice(list(MODELS)), default=tuple(MODELS))
@click.option("--beside", type=click.Path(path_type=Path, exists=True), help="The `src` of another version.")
@click.option("--rounds", type=click.IntRange(1), default=1, show_default=True, help="Of --beside, in turns.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON, of one data set and model.")
def command(
    rows: int, names: tuple[str, ...], kinds: tuple[str, ...], beside: Path | None, rounds: int, as_json: bool
) -> None:
    """What one explain call takes: the search, the model's own predictions, and the rest."""
    if as_json:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries' own, about names of columns
            data = datasets.load(names[0], rules=kinds[0].endswith("rules"))
            click.echo(json.dumps(measured(MODELS[kinds[0]](names[0]), data, rows)))
        return
    console, here = Console(width=150), Path(__file__).parents[2] / "src"
    versions = {"": here} if beside is None else {"old": beside.resolve(), "new": here}
    table = Table("data", "model", "version", *(f"{part} us" for part in PARTS), "predict calls", "loop ms")
    for name in names:
        for kind in kinds:
            found: dict[str, list[dict[str, float]]] = {version: [] for version in versions}
            for _ in range(rounds):
                for version, source in versions.items():
                    found[version].append(_measured_by(source, name, kind, rows))
            for version, several in found.items():
                best = min(several, key=lambda one: one["call"])
                numbers = [*(f"{best[part]:,.0f}" for part in PARTS), f"{best['predict calls']:g}"]
                table.add_row(name, kind, version, *numbers, f"{machine_milliseconds():.0f}")
                console.print(" | ".join([name, kind, version, *numbers]), style="dim")
    console.print(table)
