"""Certificates of the shipped data sets with their own rules, and of forests: what writing and checking takes."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.suites.trees import MODELS
from ifonly import Explainer, certify, check, datasets, import_model
from ifonly.errors import UnsupportedQuestion
from ifonly.model import Model


def run(rows: int, only: str, console: Console) -> None:
    """`only`: the models whose data set and kind have this text in them, such as 'network' or 'compas forest'."""
    table = Table("data", "model", "rules", "VALID", "answer ms", "certified ms", "times", "check ms", "nodes", "kB")
    for name in ("compas", "credit", "adult"):
        for rules in (True, False):
            data = datasets.load(name, rules=rules)
            if rules and not data.schema.rules:
                continue
            for title in ("network 2x10", "forest 100 x 6"):
                if only not in f"{name} {title}":
                    continue
                model = datasets.network(name, rules=rules) if title.startswith("net") else _forest(data, title)
                told = [name, title, "yes" if rules else "no", *_measured(model, data, rows)]
                table.add_row(*told)
                console.print(" | ".join(told))
    console.print(table)


def _forest(data: Any, title: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of columns
        return import_model(MODELS[title]().fit(data.schema.encode(data.points()), data.labels), data.schema)


def _measured(model: Model, data: Any, rows: int) -> list[str]:
    """How many are VALID; medians of CPU time, nodes and size."""
    explainer, taken, valid = Explainer(model), list[list[float]](), 0
    explainer.explain(data.row(rows))  # not the first: whatever is loaded once is loaded now
    for i in range(rows, rows + 5):  # of both decisions
        with contextlib.suppress(UnsupportedQuestion):
            certify(explainer, data.row(i))
    for i in range(rows):
        begun = time.process_time()
        explainer.explain(data.row(i))
        answered = time.process_time()
        try:
            certificate = certify(explainer, data.row(i))
        except UnsupportedQuestion:
            continue
        written = time.process_time()
        checked = check(certificate)
        valid += checked.valid
        ms = [1e3 * (b - a) for a, b in ((begun, answered), (answered, written), (written, time.process_time()))]
        taken.append([ms[0], ms[1], ms[1] / ms[0], ms[2], checked.nodes, len(certificate.content) / 1000])
    medians = np.median(np.array(taken), axis=0).tolist()
    return [f"{valid} of {rows}", *(f"{v:.1f}" for v in medians[:4]), f"{medians[4]:.0f}", f"{medians[5]:.0f}"]
