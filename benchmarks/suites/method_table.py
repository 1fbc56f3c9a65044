"""The paper's methods beside one another: median CPU seconds per row, by method, backend, data set and norm.

And how tight their bounds are. Markdown, on the networks that come with the package.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.terminal import folder_options
from ifonly import ClassTarget, Explainer, Limits, datasets
from ifonly.methods import Mace, MipExp, MipObj, MipSat, Search
from ifonly.problem import Question, lower
from ifonly.results import Method
from ifonly.solvers.common.backends import BACKENDS, available
from ifonly.solvers.common.backends.protocol import Capability
from ifonly.solvers.common.bounds import BoundsName, neuron_bounds
from ifonly.solvers.common.distances import cut_to
from ifonly.solvers.common.inputs import Person

NORMS = ("l0", "l1", "l2", "linf")
BUDGETS = (0.01, 0.1, 1.0)
HOW: tuple[BoundsName, ...] = ("interval", "backward", "linear")
PEOPLE = 20


@dataclass(frozen=True)
class Entry:
    """One line of the table."""

    method: str
    backend: str
    how: Method


def entries() -> list[Entry]:
    """Every method with every backend that is installed."""
    here = [name for name in BACKENDS if available(name)]
    return [
        Entry("search", "", Search()),
        *(Entry("mip-obj", name, MipObj(backend=name)) for name in here),  # type: ignore[arg-type]
        *(
            Entry("mip-obj, unbounded", name, MipObj(backend=name, bounds="none"))  # type: ignore[arg-type]
            for name in here
            if Capability.INDICATORS in BACKENDS[name].capabilities
        ),
        *(Entry("mip-obj, ball", name, MipObj(backend=name, ball=True)) for name in here),  # type: ignore[arg-type]
        *(Entry("mip-exp", name, MipExp(backend=name)) for name in here),  # type: ignore[arg-type]
        *([Entry("mip-sat", "z3", MipSat()), Entry("mace", "z3", Mace())] if _z3() else []),
    ]


def _z3() -> bool:
    from importlib.util import find_spec

    return find_spec("z3") is not None


def table(rows: int, seconds: float) -> Iterator[str]:
    """The lines of the table of times; a cell is the median, and in brackets how many rows were proven nearest."""
    head = [f"{name} {norm}" for name in datasets.names() for norm in NORMS]
    yield "| method | backend | " + " | ".join(head) + " |"
    yield "|---|---|" + "--:|" * len(head)
    people = {name: denied(name, rows) for name in datasets.names()}
    for entry in entries():
        cells = [cell(*people[name], norm, entry.how, seconds) for name in datasets.names() for norm in NORMS]
        yield f"| {entry.method} | {entry.backend} | " + " | ".join(cells) + " |"


def denied(name: str, rows: int) -> tuple[Any, list[Any]]:
    """The network of a data set and the first people whom it gives class 0."""
    data, model = datasets.load(name, rules=False), datasets.network(name, rules=False)
    scores = model.decide(model.scores(data.points()[:2000]))
    return Explainer(model), [data.row(int(i)) for i in np.flatnonzero(scores == 0)[:rows]]


def cell(explainer: Explainer, rows: list[Any], norm: str, method: Method, seconds: float) -> str:
    """Median CPU seconds; ">": most rows hit the limit, and count with what they spent. Two in a row end a cell."""
    target = ClassTarget(explainer.model.classes[1])
    spent: list[float] = []
    proven, stopped, limited = 0, 0, 0
    explainer.explain(rows[0], target=target, distance=norm, limits=Limits(seconds=seconds))  # kernels are loaded
    for row in rows:
        begun = time.process_time()
        answer = explainer.using(method).explain(row, target=target, distance=norm, limits=Limits(seconds=seconds))
        spent.append(time.process_time() - begun)
        proven += answer.status in ("nearest", "none exists")
        stopped = stopped + 1 if answer.stop is not None and answer.stop.is_limit else 0
        limited += stopped > 0
        if stopped == 2:
            break
    more = "> " if 2 * limited > len(spent) else ""
    return f"{more}{float(np.median(spent)):.2g} ({proven}/{len(spent)})"


def tightness(name: str, people: int) -> Iterator[str]:
    """How many ReLUs stay open and how wide the score's bounds are over people's l1 balls, by every kind of bounds."""
    model, points = datasets.network(name, rules=False), datasets.load(name, rules=False).points()[:2000]
    points = points[model.decide(model.scores(points)) == 0][:people]
    lowered = lower(Question(model=model, target=ClassTarget(model.classes[1])))
    domains = lowered.domains(points)
    for budget in BUDGETS:
        cuts = [cut_to(lowered, Person.of(domains, i), budget) for i in range(len(points))]
        for how in HOW:
            opened, widths, spent = [], [], []
            for cut in cuts:
                assert cut is not None  # the person's own row is within every budget
                begun = time.process_time()
                bounds = neuron_bounds(lowered, cut, budget, how)
                spent.append(time.process_time() - begun)
                opened.append(bounds.unstable_count)
                widths.append(float((bounds.upper[-1] - bounds.lower[-1])[0]))
            yield (
                f"| {name} | {budget:g} | {how} | {np.mean(opened):.1f} | {np.mean(widths):.3g} "
                f"| {1000 * np.median(spent):.2g} |"
            )


def write(path: Path, rows: int, seconds: float) -> None:
    """Print both tables, line by line, and keep them."""
    lines = []
    for line in itertools.chain(
        [f"Median CPU seconds per row, {rows} rows, limit {seconds:g} s; in brackets: proven of asked.", ""],
        table(rows, seconds),
        ["", f"Over the l1 balls of {PEOPLE} people: means, and the median CPU time.", ""],
        ["| data set | budget (l1) | bounds | open ReLUs | width of the score | CPU ms |", "|---|--:|---|--:|--:|--:|"],
        (line for name in datasets.names() for line in tightness(name, PEOPLE)),
    ):
        print(line, flush=True)
        lines.append(line)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@click.command("methods")
@click.option("--rows", type=click.IntRange(1), default=5, show_default=True, help="Rows per data set and norm.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Seconds per row.")
@folder_options
def command(rows: int, budget: float, cache: Path, results: Path) -> None:
    """The paper's methods beside one another: times and bounds."""
    write(results / "methods.md", rows, budget)
