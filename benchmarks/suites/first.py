"""`first`: the first answer on a machine where nothing is compiled, beside the same with everything compiled, for every
kind of model.

Each time is that of a whole new process, from its start to its end, with a model that was fitted before. The first
ones have an empty cache of compiled code each, which a process that they have started begins to fill; that one is
ended. The others share a cache in which everything is compiled.
"""

from __future__ import annotations

import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.terminal import console
from ifonly import datasets

TREES, DEPTH = 100, 6
EXPLAIN = """
import pickle, sys
from importlib import import_module
from ifonly import Explainer, datasets
from ifonly.compiling import ALL_KERNELS
name, row = sys.argv[2], int(sys.argv[3])
data = datasets.load(name, rules=False)
model = datasets.network(name, rules=False) if sys.argv[1] == "-" else pickle.load(open(sys.argv[1], "rb"))
explainer = Explainer(model) if sys.argv[1] == "-" else Explainer(model, schema=data.schema)
decided = int(explainer.model.decide(explainer.model.scores(data.points()[row : row + 1]))[0])
classes = explainer.model.classes
print(explainer.explain(data.row(row), target=classes[(decided + 1) % len(classes)]))
sets = [getattr(import_module(module), name) for module, name in (where.split(":") for where in ALL_KERNELS)]
print("compilers", *(one.compiler for one in sets if one.compiler))
"""
COMPILE = ["-m", "ifonly.compiling", "--all"]


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(TREES, max_depth=DEPTH, random_state=0)


def _boosted(per_class: int = TREES) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=per_class, max_depth=DEPTH, random_state=0)


def _network(activation: str) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier((10, 10), activation=activation, random_state=0, max_iter=20)
    return make_pipeline(StandardScaler(), network)


def _additive() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, random_state=0)


KINDS: dict[str, tuple[Callable[[], Any] | None, int]] = {
    "network, 2x10": (None, 2),
    f"forest, {TREES} trees of depth {DEPTH}": (_forest, 2),
    f"XGBoost, {TREES} trees of depth {DEPTH}": (_boosted, 2),
    "forest, three classes": (_forest, 3),
    "XGBoost, three classes": (lambda: _boosted(TREES // 3), 3),
    "network, three classes": (lambda: _network("relu"), 3),
    "smooth network (tanh), 2x10": (lambda: _network("tanh"), 2),
    "additive model (EBM)": (_additive, 2),
}
"""How the model is fitted (None: the one that comes with the data), and to how many classes."""


@click.command("first")
@click.option(
    "--rounds", type=click.IntRange(1), default=3, show_default=True, help="Processes of each kind, a row each."
)
@click.option("--data", type=click.Choice(["credit", "adult"]), default="credit", show_default=True)
@click.option("--empty", is_flag=True, help="Only with nothing compiled: compiling everything takes minutes.")
@click.option("--only", default="", help="Kinds of models whose name has these words.")
def command(rounds: int, data: str, empty: bool, only: str) -> None:
    """The first answer of a new process, with nothing compiled and with everything compiled."""
    kinds = {name: kind for name, kind in KINDS.items() if only in name}
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as given:
        folder = Path(given)
        models = {name: _fitted(kind, data, folder / f"{i}.pickle") for i, (name, kind) in enumerate(kinds.items())}
        for name, model in models.items():
            rows[name, "empty"] = _told([_asked(model, data, row, folder / f"{row} {name}") for row in range(rounds)])
        if not empty:
            wall, cpu, _ = _run(COMPILE, folder / "filled")
            for name, model in models.items():
                rows[name, "filled"] = _told([_asked(model, data, row, folder / "filled") for row in range(rounds)])
    table = Table("model", "cache", "seconds (slowest)", "CPU seconds (slowest)", "proven")
    for name, cache in sorted(rows, key=lambda row: list(models).index(row[0])):
        table.add_row(name, cache, *rows[name, cache])
    if not empty:
        table.add_row("compiling everything", "empty", f"{wall:.2f}", f"{cpu:.2f}", "")
    console().print(table)


def _fitted(kind: tuple[Callable[[], Any] | None, int], name: str, path: Path) -> str:
    """The fitted model, in a file; "-": the network that comes with the data."""
    make, classes = kind
    if make is None:
        return "-"
    data = datasets.load(name, rules=False)
    rows, labels = data.schema.encode(data.points()), np.array(data.labels)
    if classes == 3:  # the positive ones are two kinds
        labels[(labels == 1) & (rows[:, 0] > np.median(rows[:, 0]))] = 2
    path.write_bytes(pickle.dumps(make().fit(rows, labels)))
    return str(path)


def _asked(model: str, data: str, row: int, cache: Path) -> tuple[float, float, bool]:
    """One person, asked of a new process. What that begins to compile is not waited for."""
    wall, cpu, said = _run(["-W", "ignore", "-c", EXPLAIN, model, data, str(row)], cache)
    for compiler in re.findall(r"\d+", said.rpartition("compilers")[2]):
        os.kill(int(compiler), signal.SIGKILL)
    return wall, cpu, "(proven" in said


def _run(words: list[str], cache: Path) -> tuple[float, float, str]:
    """Wall and processor seconds of the process, and what it said."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("IFONLY_COMPILE", None)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *words], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def _told(runs: list[tuple[float, float, bool]]) -> tuple[str, ...]:
    wall, cpu, proven = zip(*runs, strict=True)
    both = (f"{np.median(seconds):.1f} ({max(seconds):.1f})" for seconds in (wall, cpu))
    return *both, f"{sum(proven)} of {len(proven)}"
