"""Networks over many real features: rows proven and CPU time, beside the search without probing and Gurobi's programs.

Data sets of scikit-learn, standardised; networks by `MLPClassifier`, seed 0; rows that the network decides as class 0.
`--shape tanh-2x10` is a network with another activation than ReLU. `--family` also takes data of mixed types: Adult,
COMPAS and Credit, and `mixed`, 30 real numbers, 10 integers and 5 categories; there the search is to be no slower than
without probing (`--against "without probing"`).
Each contestant answers the same rows one after the other, in one process, on one thread. A ratio is the geometric mean
over rows of its CPU time to ours; a row that it leaves open counts with the time that it took.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.asking import contestants
from benchmarks.asking.contestants import OURS
from benchmarks.terminal import ROOT, console, fresh_option
from ifonly import (
    Categorical,
    ClassTarget,
    Distance,
    Integer,
    Limits,
    Network,
    Real,
    Schema,
    check,
    datasets,
    import_model,
)
from ifonly.certifying.certifier import Certifier
from ifonly.errors import UnsupportedQuestion
from ifonly.model import Model, network_model
from ifonly.problem import Question
from ifonly.results import Method, Solver
from ifonly.solvers.search import Search, load_kernels
from ifonly.solvers.search.smooth.compiled import SMOOTH_KERNELS
from ifonly.tolerances import DEFAULT

BEFORE = "without probing"
FIRST = "the first 10 ms"
CERTIFIED = "certificate"
"""A search with records, and its proof written out; proven where it is VALID."""
FAMILIES = ("breast-cancer", "wine", "digits", "synthetic-20", "synthetic-40", "synthetic-60")
MIXED = ("adult", "compas", "credit", "mixed")
SHAPES = ("2x10", "2x20", "2x32", "2x48", "2x64", "3x20", "3x32")
SOON = 0.01
"""Seconds within which some row should be known."""
LEAST_SECONDS = 1e-5
"""CPU times below count as this in ratios."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """One row by one contestant."""

    proven: bool
    lower: float
    upper: float
    seconds: float
    limit: float


@dataclass(frozen=True)
class Cell:
    """One network and norm."""

    family: str
    shape: str
    norm: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.family, self.shape, self.norm

    def asked(self) -> tuple[Question, Floats]:
        """The question, and the rows of it."""
        model, points = _subject(self.family, self.shape)
        return Question(model=model, target=ClassTarget(model.classes[1]), distance=Distance(self.norm)), points


def _data(family: str) -> tuple[Floats, NDArray[np.int64]]:
    from sklearn import datasets as toys

    if family.startswith("synthetic-"):
        features = int(family.removeprefix("synthetic-"))
        x, y = toys.make_classification(
            600, features, n_informative=features // 2, n_redundant=features // 4, random_state=0
        )
        return x, y
    load = {"breast-cancer": toys.load_breast_cancer, "wine": toys.load_wine, "digits": toys.load_digits}
    x, y = load[family](return_X_y=True)
    positive = {"breast-cancer": 1, "wine": 1, "digits": 8}[family]
    moves = np.ptp(x, axis=0) > 0.0
    return x[:, moves], (y == positive).astype(np.int64)


def _mixed(family: str) -> tuple[Schema, Floats, NDArray[np.int64]]:
    """Schema, rows and labels of data of mixed types."""
    from sklearn.datasets import make_classification

    if family != "mixed":
        data = datasets.load(family, rules=False)
        return data.schema, data.points(), data.labels
    x, y = make_classification(600, 45, n_informative=22, n_redundant=11, random_state=0)
    ranks = x.argsort(axis=0).argsort(axis=0) / len(x)
    x[:, 30:40], x[:, 40:] = np.floor(10 * ranks[:, 30:40]), np.floor(4 * ranks[:, 40:])
    reals = [Real(f"x{j}", float(x[:, j].min()), float(x[:, j].max())) for j in range(30)]
    integers = [Integer(f"n{j}", 0, 9) for j in range(10)]
    return Schema([*reals, *integers, *(Categorical(f"c{j}", list("abcd")) for j in range(5))]), x, y


@cache
def _imported(family: str, shape: str) -> tuple[Model, Floats]:
    """The same for data of mixed types and for other activations: a pipeline of scikit-learn, imported."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if family in MIXED:
        schema, x, y = _mixed(family)
    else:
        x, y = _data(family)
        schema = Schema([Real(f"x{j}", float(x[:, j].min()), float(x[:, j].max())) for j in range(x.shape[1])])
    activation, _, size = shape.rpartition("-")
    layers, width = (int(part) for part in size.split("x"))
    perceptron = MLPClassifier((width,) * layers, activation=activation or "relu", random_state=0, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that training has not converged
        model = import_model(make_pipeline(StandardScaler(), perceptron).fit(schema.encode(x), y), schema)
    denied = np.flatnonzero(model.decide(model.scores(x)) == 0)
    return model, x[np.random.default_rng(0).permutation(denied)]


@cache
def _subject(family: str, shape: str) -> tuple[Model, Floats]:
    """A network, and the rows that it decides as class 0."""
    from sklearn.neural_network import MLPClassifier

    if family in MIXED or "-" in shape:
        return _imported(family, shape)
    x, y = _data(family)
    layers, width = (int(part) for part in shape.split("x"))
    mean, spread = x.mean(axis=0), x.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that training has not converged
        trained = MLPClassifier((width,) * layers, random_state=0, max_iter=200).fit((x - mean) / spread, y)
    weights, biases = [w.T for w in trained.coefs_], list(trained.intercepts_)
    biases[0] = biases[0] - weights[0] @ (mean / spread)
    weights[0] = weights[0] / spread
    schema = Schema([Real(f"x{j}", float(x[:, j].min()), float(x[:, j].max())) for j in range(x.shape[1])])
    model = network_model(Network.of(list(zip(weights, biases, strict=True))), schema)
    denied = np.flatnonzero(model.decide(model.scores(x)) == 0)
    return model, x[np.random.default_rng(0).permutation(denied)]


def _method(name: str) -> Method:
    if name == BEFORE:
        return Search(probing="never")
    return contestants.make(OURS if name == FIRST else name)


def _asked(question: Question, point: Floats, solver: Solver, seconds: float) -> Outcome:
    """One row, asked now."""
    begun = time.process_time()
    claim = solver.solve(point[None, :], Limits(seconds=seconds))[0]
    taken = time.process_time() - begun
    upper = math.inf if claim.point is None else float(question.measure.between(point, claim.point))
    proven = DEFAULT.close(claim.lower, upper) if math.isfinite(upper) else math.isinf(claim.lower)
    return Outcome(proven, claim.lower, upper, taken, seconds)


def _certified(question: Question, point: Floats, seconds: float) -> Outcome:
    """One row, whose certificate is written now and checked."""
    begun = time.process_time()
    try:
        certificate = Certifier(question, DEFAULT).proven(point, Limits(seconds=seconds))
    except UnsupportedQuestion:  # it could not be written within the limit
        return Outcome(False, 0.0, math.inf, time.process_time() - begun, seconds)
    taken, checked = time.process_time() - begun, check(certificate)
    return Outcome(checked.valid, checked.lower, math.inf if checked.upper is None else checked.upper, taken, seconds)


class Records:
    """What was measured, in a file to which each outcome is added at once. One that was stopped sooner than now asked
    for is measured again."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.outcomes = path, dict[tuple[str, str, str, str, int], Outcome]()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            *key, outcome = json.loads(line)
            self.outcomes[tuple(key)] = Outcome(*outcome)

    def of(self, cell: Cell, name: str, rows: int) -> list[Outcome]:
        return [self.outcomes[*cell.key, name, row] for row in range(rows)]

    def left_open(self, cell: Cell, rows: int) -> list[int]:
        """The rows that our search has not proven."""
        return [row for row, one in enumerate(self.of(cell, OURS, rows)) if not one.proven]

    def measure(self, cell: Cell, name: str, rows: Iterable[int], seconds: float, rounds: int) -> None:
        """The outcomes of these rows that are not there yet; of several rounds, the one that took least."""
        missing = [row for row in rows if not self._counts((*cell.key, name, row), seconds)]
        if not missing:
            return
        question, points = cell.asked()
        solver = None if name == CERTIFIED else _method(name).prepare(question, DEFAULT)
        if solver is not None and name in (OURS, BEFORE, FIRST):
            _asked(question, points[0], solver, SOON)  # whatever is loaded once is loaded now
        for row in missing:
            several = (
                _certified(question, points[row], seconds) if solver is None
                else _asked(question, points[row], solver, seconds)
                for _ in range(rounds)
            )  # fmt: skip
            outcome = min(several, key=lambda one: one.seconds)
            self.outcomes[*cell.key, name, row] = outcome
            with self.path.open("a", encoding="utf-8") as file:
                print(json.dumps([*cell.key, name, row, astuple(outcome)]), file=file)

    def _counts(self, key: tuple[str, str, str, str, int], seconds: float) -> bool:
        found = self.outcomes.get(key)
        return found is not None and (found.proven or found.limit >= seconds)


def _contradictions(ours: list[Outcome], theirs: list[Outcome]) -> int:
    """Rows of which one's lower bound is above the other's row, beyond what a MIP's tolerances allow."""
    return sum(
        a.lower > b.upper * (1.0 + 1e-5) + 1e-6 or b.lower > a.upper * (1.0 + 1e-4) + 1e-5
        for a, b in zip(ours, theirs, strict=True)
    )


def _ratio(ours: list[Outcome], theirs: list[Outcome]) -> float:
    logs = [
        math.log(max(b.seconds, LEAST_SECONDS) / max(a.seconds, LEAST_SECONDS))
        for a, b in zip(ours, theirs, strict=True)
    ]
    return math.exp(sum(logs) / len(logs))


def _told(measured: Records, cell: Cell, name: str, rows: int) -> list[str]:
    ours, theirs = measured.of(cell, OURS, rows), measured.of(cell, name, rows)
    taken = [one.seconds for one in theirs]
    return [
        name, f"{sum(one.proven for one in theirs)} of {len(theirs)}",
        f"{np.median(taken):.6f}", f"{max(taken):.4f}",
        "" if name == OURS else f"{_ratio(ours, theirs):.2f}",
        "" if name == OURS else str(sum(b.proven and not a.proven for a, b in zip(ours, theirs, strict=True))),
        "" if name == OURS else str(_contradictions(ours, theirs)),
    ]  # fmt: skip


@click.command("reals")
@click.option("--rows", type=click.IntRange(1), default=8, show_default=True, help="Rows per network.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Limit per row and contestant.")
@click.option(
    "--family", "families", type=click.Choice((*FAMILIES, *MIXED)), multiple=True, default=FAMILIES, show_default=True
)
@click.option("--shape", "shapes", multiple=True, default=SHAPES, show_default=True)
@click.option("--distance", "norms", multiple=True, default=("l1",), show_default=True)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How often each row is asked; the least time counts.",
)
@click.option("--against", multiple=True, default=(BEFORE, "gurobi", "mip-obj"), show_default=True,
              help="Contestants; 'certificate' writes and checks certificates.")  # fmt: skip
@click.option("--records", type=click.Path(dir_okay=False, path_type=Path), default=ROOT / "results" / "reals.jsonl",
              help="What was measured before and is added to.")  # fmt: skip
@fresh_option
@click.option("--open-only", is_flag=True, help="Ask the others only about the rows that our search leaves open.")
# size: one option each
def command(rows: int, seconds: float, families: tuple[str, ...], shapes: tuple[str, ...], norms: tuple[str, ...],
            rounds: int, against: tuple[str, ...], records: Path, fresh: bool, open_only: bool) -> None:  # fmt: skip
    """Many real features: the search, the search without probing, and Gurobi."""
    load_kernels()
    if any("-" in shape for shape in shapes):
        SMOOTH_KERNELS.load()
    if fresh:
        records.unlink(missing_ok=True)
    measured = Records(records)
    cells = [Cell(family, shape, norm) for shape in shapes for family in families for norm in norms]
    for name in (OURS, FIRST) if open_only else (OURS, FIRST, *against):  # our own answers first
        for cell in cells:
            measured.measure(cell, name, range(rows), SOON if name == FIRST else seconds, rounds)
            console().print(" | ".join((*cell.key, *_told(measured, cell, name, rows))))
    _show(measured, cells, (OURS,) if open_only else (OURS, *against), rows)
    if open_only:
        for cell in cells:
            for name in against:
                measured.measure(cell, name, measured.left_open(cell, rows), seconds, rounds)
        _show_open(measured, cells, against, rows)


def _show_open(measured: Records, cells: list[Cell], names: tuple[str, ...], rows: int) -> None:
    """A line per row that our search leaves open: the bounds of each method, and its CPU seconds."""
    table = Table("data", "network", "norm", "row", "method", "proven", "lower", "upper", "CPU s")
    for cell in cells:
        for row in measured.left_open(cell, rows):
            for name in (OURS, *names):
                one = measured.outcomes[*cell.key, name, row]
                figures = (f"{one.lower:.6g}", f"{one.upper:.6g}", f"{one.seconds:.1f}")
                table.add_row(*cell.key, str(row), name, "yes" if one.proven else "no", *figures)
    console().print(table)


def _show(measured: Records, cells: list[Cell], names: tuple[str, ...], rows: int) -> None:
    """A line per network and contestant, and per family the contestants over all of its networks."""
    table = Table("data", "network", "norm", "method", "proven", "median s", "worst s", "times ours", "left open by us",
                  "contradictions")  # fmt: skip
    for cell in cells:
        for name in names:
            table.add_row(*cell.key, *_told(measured, cell, name, rows))
    console().print(table)
    for family in dict.fromkeys(cell.family for cell in cells):
        mine = [cell for cell in cells if cell.family == family]
        for name in names[1:]:
            pairs = [(measured.of(cell, OURS, rows), measured.of(cell, name, rows)) for cell in mine]
            ours, theirs = (list(chain.from_iterable(side)) for side in zip(*pairs, strict=True))
            console().print(f"{family}: {name} takes {_ratio(ours, theirs):.1f} times our time.")
    first = [one for cell in cells for one in measured.of(cell, FIRST, rows)]
    soon = sum(math.isfinite(one.upper) for one in first)
    console().print(f"A row within {1e3 * SOON:g} ms: {soon} of {len(first)}.")
