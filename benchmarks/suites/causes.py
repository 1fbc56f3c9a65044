"""`causes`: the cheapest action under causal models of the literature and of the shipped data, beside other methods.

The literature's models: three and six variables with linear equations, three with a logistic function and a square,
and seven of German credit (education enters
income times gender, and savings follow from income above 0), each with a logistic regression that is fitted to labels
drawn from the model. Gender, age and duration cannot be acted on. Compared, all with a fee of holding of 0:

    grid        for each set of at most three features, ten values of each over its range; the cheapest that does it
    gradient    for each set, Adam on cost + penalty from the person's own row; the cheapest step that does it
    program     for each set a linear program (linear equations and model only): the optimum, which ours must equal

Of the shipped data: networks 2x10, and random forests of 100 trees of depth 5 fitted to the labels, under graphs that
are stated below, with equations fitted to the data by least squares; beside the nearest row that ignores causes, done
as actions (each change of it an action, with its fee).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.optimize import linprog
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from benchmarks.terminal import console
from ifonly import Binary, CausalModel, Explainer, Fixed, Limits, Network, Real, Schema, datasets, import_model
from ifonly.causes import LinearEquation, ModelEquation
from ifonly.model import Model, network_model
from ifonly.model.smooth import Activation, SmoothNetwork
from ifonly.schema.tables import user_columns

Floats = NDArray[np.float64]
ROWS = 2000
BINS, MOST_OF_GRID = 10, 3
STEPS, RATE, PENALTY = 300, 0.02, 10.0
MARGIN = 1e-6
TREES, DEPTH = 100, 5


class CausalSubject(NamedTuple):
    """A causal model with people, a model to ask, and what nobody can act on."""

    name: str
    causes: CausalModel
    model: Model
    points: Floats
    fixed: tuple[str, ...] = ()


# ---------------------------------------------------------------------- the literature's models


def three(rng: np.random.Generator) -> CausalSubject:
    n = ROWS
    x1 = np.where(rng.random(n) < 0.5, rng.normal(-2, 1.5, n), rng.normal(1, 1, n))
    x2 = -x1 + rng.normal(0, 1, n)
    x3 = 0.05 * x1 + 0.25 * x2 + rng.normal(0, 1, n)
    equations = {"x2": LinearEquation({"x1": -1.0}), "x3": LinearEquation({"x1": 0.05, "x2": 0.25})}
    return _subject("three, linear", np.column_stack([x1, x2, x3]), equations, lambda x: x.sum(axis=1), rng)


def curved(rng: np.random.Generator) -> CausalSubject:
    """Three, additive but not linear: a logistic function, and a square of what follows from it."""
    n = ROWS
    x1 = np.where(rng.random(n) < 0.5, rng.normal(-2, 1.5, n), rng.normal(1, 1, n))
    x2 = 3 / (1 + np.exp(-2 * x1)) - 1 + rng.normal(0, 1, n)
    x3 = -0.05 * x1 - 0.25 * x2**2 + rng.normal(0, 1, n)
    squared = make_pipeline(
        ColumnTransformer([("line", "passthrough", [0]), ("square", FunctionTransformer(np.square), [1])]),
        LinearRegression(fit_intercept=False),
    )
    causes = np.column_stack([x1, x2])
    equations = {
        "x2": ModelEquation(["x1"], SmoothNetwork(Network.of([([[2]], [0]), ([[3]], [-1])]), [Activation("sigmoid")])),
        "x3": ModelEquation(["x1", "x2"], squared.fit(causes, -0.05 * x1 - 0.25 * x2**2)),
    }
    return _subject("three, not linear", np.column_stack([x1, x2, x3]), equations, lambda x: x.sum(axis=1), rng)


def six(rng: np.random.Generator) -> CausalSubject:
    n = ROWS
    x1, x2, x3 = (np.where(rng.random(n) < 0.5, rng.normal(-2, 1, n), rng.normal(2, 1, n)) for _ in range(3))
    x4 = x1 + 2 * x2 + rng.normal(0, 2, n)
    x5 = x2 - x4 + 2 * x3 + rng.normal(0, 2, n)
    x6 = x3 + x4 - x5 + x1 + rng.normal(0, 2, n)
    equations = {
        "x4": LinearEquation({"x1": 1, "x2": 2}),
        "x5": LinearEquation({"x2": 1, "x4": -1, "x3": 2}),
        "x6": LinearEquation({"x3": 1, "x4": 1, "x5": -1, "x1": 1}),
    }
    return _subject(
        "six, linear", np.column_stack([x1, x2, x3, x4, x5, x6]), equations, lambda x: x.sum(axis=1) / 4, rng
    )


def german(rng: np.random.Generator) -> CausalSubject:
    """Without the coefficient 10 of education in income, which one published branch has."""
    n = ROWS

    def s(x: Floats) -> Floats:
        return 1.0 / (1.0 + np.exp(-x))

    x1 = (rng.random(n) < 0.5).astype(float)
    x2 = -35 + rng.gamma(10, 3.5, n)
    x3 = -0.5 + s(-1 + 0.5 * x1 + s(0.1 * x2) + rng.normal(0, 0.25, n))
    x4 = 1 + 0.01 * (x2 - 5) * (5 - x2) + x1 + rng.normal(0, 2, n)
    x5 = -1 + 0.1 * x2 + 2 * x1 + x4 + rng.normal(0, 3, n)
    x6 = -4 + 0.1 * (x2 + 35) + 2 * x1 + x1 * x3 + rng.normal(0, 2, n)
    x7 = -4 + 1.5 * np.maximum(x6, 0) + rng.normal(0, 5, n)
    points = np.column_stack([x1, x2, x3, x4, x5, x6, x7])
    # x1 x3 = relu(x3 + x1 - 1) - relu(-x3 + x1 - 1) for |x3| <= 1; gender and age are fixed, so are education and
    # amount unless somebody acts on them: these two have no causes that move
    product = Network.of([([[1, 0, 1], [1, 0, -1], [0, 1, 0]], [-1, -1, 100]), ([[1, -1, 0.1]], [-4 + 3.5 - 10])])
    equations = {
        "duration": LinearEquation({"age": 0.1, "gender": 2, "amount": 1}, -1),
        "income": ModelEquation(["gender", "age", "education"], _with_gender(product)),
        "savings": ModelEquation(["income"], Network.of([([[1.0]], [0.0]), ([[1.5]], [-4.0])])),
    }
    names = ("gender", "age", "education", "amount", "duration", "income", "savings")
    score = 0.3 * (-x4 - x5 + x6 + x7 + x6 * x7)
    return _subject(
        "German credit, seven", points, equations, lambda _: score, rng, names, ("gender", "age", "duration")
    )


def _with_gender(product: Network) -> Network:
    """The same with twice the gender added: it is 0 or 1, so its ReLU passes it on."""
    first, last = product.layers
    weight = np.vstack([first.weight, [[1.0, 0.0, 0.0]]])
    return Network.of([(weight, np.append(first.bias, 0.0)), (np.append(last.weight, [[2.0]], axis=1), last.bias)])


# size: the parts of a subject
def _subject(
    name: str,
    points: Floats,
    equations: dict[str, Any],
    score: Callable[[Floats], Floats],
    rng: np.random.Generator,
    names: Sequence[str] = (),
    fixed: tuple[str, ...] = (),
) -> CausalSubject:
    """Ranges are those of the data and half as much on either side."""
    names = names or [f"x{k + 1}" for k in range(points.shape[1])]
    low, high = points.min(axis=0), points.max(axis=0)
    extra = (high - low) / 2
    features = [
        Binary(n, (0, 1)) if set(column) == {0.0, 1.0} else Real(n, float(a), float(b))
        for n, column, a, b in zip(names, points.T, low - extra, high + extra, strict=True)
    ]
    schema = Schema(features)
    labels = rng.random(len(points)) < 1.0 / (1.0 + np.exp(-score(points)))
    fitted = LogisticRegression().fit(points, labels)
    model = network_model(Network.of([(fitted.coef_, fitted.intercept_)]), schema, classes=("no", "yes"))
    causes = CausalModel(schema, equations, holding=0.0)
    return CausalSubject(name, causes, model, points[model.scores(points)[:, 0] <= 0.0], fixed)


# ---------------------------------------------------------------------- other methods


class Peer:
    """One person, and the cost and the score of actions on a set of features."""

    def __init__(self, subject: CausalSubject, point: Floats) -> None:
        self.subject, self.point, schema = subject, point, subject.causes.schema
        self.free = [g for g, name in enumerate(schema.names) if name not in subject.fixed]
        self.scale = np.array([f.width if isinstance(f, Real) else 1.0 for f in schema.features])
        self.noise = subject.causes.noise(point[None, :])
        self.low = np.array([f.lower if isinstance(f, Real) else 0.0 for f in schema.features])
        self.high = np.array([f.upper if isinstance(f, Real) else 1.0 for f in schema.features])

    def sets(self, most: int) -> list[list[int]]:
        return [list(some) for k in range(1, most + 1) for some in itertools.combinations(self.free, k)]

    def tried(self, places: list[int], values: Floats) -> tuple[Floats, Floats]:
        """The costs of actions, and the scores of the rows that follow; minus infinity where there is no such row."""
        rows, acted = np.tile(self.point, (len(values), 1)), np.zeros((len(values), len(self.point)), dtype=bool)
        rows[:, places], acted[:, places] = values, True
        after, inside = self.subject.causes.followed(rows, acted, np.repeat(self.noise, len(values), axis=0))
        scores = self.subject.model.scores(after)[:, 0]
        costs = (np.abs(values - self.point[places]) / self.scale[places]).sum(axis=1) / len(self.point)
        return costs, np.where(inside.all(axis=1), scores, -np.inf)


def by_grid(peer: Peer) -> float:
    best = math.inf
    for places in peer.sets(MOST_OF_GRID):
        axes = [np.linspace(peer.low[g], peer.high[g], BINS) for g in places]
        costs, scores = peer.tried(places, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(places)))
        best = min(best, costs[scores >= MARGIN].min(initial=math.inf))
    return best


def by_gradient(peer: Peer) -> float:
    best = math.inf
    for places in peer.sets(len(peer.free)):
        scale, values = peer.scale[places], peer.point[places].copy()
        first, second = np.zeros(len(places)), np.zeros(len(places))
        for step in range(1, STEPS + 1):
            near = np.vstack([values, values + 1e-6 * np.diag(scale)])
            costs, scores = peer.tried(places, near)
            if scores[0] >= MARGIN:
                best = min(best, float(costs[0]))
            loss = costs + PENALTY * np.maximum(0.1 - np.where(np.isfinite(scores), scores, 0.0), 0.0)
            slope = (loss[1:] - loss[0]) / 1e-6
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            move = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            values = np.clip(values - RATE * scale * move, peer.low[places], peer.high[places])
    return best


def by_program(peer: Peer) -> float:
    """Linear equations and a linear model: rows = own + T (a - own)."""
    causes, point, best, n = peer.subject.causes, peer.point, math.inf, len(peer.point)
    weight, bias = peer.subject.model.network.layers[0].weight[0], peer.subject.model.network.layers[0].bias[0]
    for places in peer.sets(len(peer.free)):
        moves = np.zeros((n, len(places)))
        for k, g in enumerate(places):
            moves[g, k] = 1.0
        for g in causes.order:
            if g not in places:
                equation = causes.equations[causes.schema.names[g]]
                moves[g] = sum(w * moves[causes.schema.index(p)] for p, w in equation.weights.items())  # type: ignore[union-attr]
        split = np.hstack([moves, -moves])
        cost = np.tile(1.0 / peer.scale[places] / n, 2)
        need = weight @ point + bias - MARGIN
        limits = np.vstack([-(weight @ split), split, -split])
        ends = np.concatenate([[need], peer.high - point, point - peer.low])
        found = linprog(cost, A_ub=limits, b_ub=ends, bounds=(0, None))
        best = min(best, float(found.fun)) if found.status == 0 else best
    return best


# ---------------------------------------------------------------------- shipped data

GRAPHS: dict[str, tuple[dict[str, list[str]], tuple[str, ...]]] = {
    "adult": (
        {"EducationNumber": ["Age", "Sex", "NativeCountry"],
         "HoursPerWeek": ["Age", "Sex", "EducationNumber", "WorkClass", "MaritalStatus"]},
        ("Sex is fixed", "NativeCountry is fixed", "Age only goes up"),
    ),
    "credit": (
        {"MaxBillAmountOverLast6Months": ["EducationLevel", "AgeGroup", "isMarried"],
         "MostRecentBillAmount": ["MaxBillAmountOverLast6Months"],
         "MaxPaymentAmountOverLast6Months": ["MaxBillAmountOverLast6Months"],
         "MostRecentPaymentAmount": ["MaxPaymentAmountOverLast6Months"]},
        ("isMale is fixed", "AgeGroup is fixed", "EducationLevel only goes up"),
    ),
}  # fmt: skip


@click.command("causes")
@click.option("--rows", type=click.IntRange(1), default=100, show_default=True, help="People per model.")
@click.option("--peers", type=click.IntRange(0), default=10, show_default=True, help="Of them, also by other methods.")
@click.option("--only", type=click.Choice(["literature", "german", "data", "forests"]), help="Only these models.")
@click.option(
    "--equations", type=click.Choice(["linear", "network", "smooth", "boosted"]), default="linear", help="For the data."
)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="What one answer may take.")
def command(rows: int, peers: int, only: str | None, seconds: float, equations: str) -> None:
    """The cheapest action under causes: time, cost, other methods, and the nearest row that ignores causes."""
    if only in (None, "literature", "german"):
        table = Table("model", "people", "proven", "ms median", "worst", "grid", "gradient", "program")
        for make in (german,) if only == "german" else (three, curved, six, german):
            table.add_row(*_of_literature(make(np.random.default_rng(0)), rows, peers))
        console().print(table)
        console().print(f"Of the first {peers} people: how many times our cost they pay, median; how many fail.")
    if only not in ("literature", "german"):
        times = ("ms median", "worst", "explain ms", "worst")
        table = Table("data", "people", "proven", *times, "cost", "nearest row as actions", "of which fail")
        for name in GRAPHS:
            for forest in (False, True):
                if only in (None, "forests" if forest else "data"):
                    table.add_row(*_of_data(name, rows, seconds, equations, forest=forest))
        console().print(table)


def _of_literature(subject: CausalSubject, rows: int, peers: int) -> list[str]:
    explainer = Explainer(subject.model).using(reasons=False)
    fixed, schema = [Fixed(name) for name in subject.fixed], subject.causes.schema
    taken, costs, proven = [], [], 0
    for k, point in enumerate([subject.points[0], *subject.points[:rows]]):
        begun = time.process_time()
        told = explainer.recourse(schema.row(point), subject.causes, target="yes", constraints=fixed)
        if k:  # the first is asked twice: kernels are loaded, and the questions prepared
            taken.append(1e3 * (time.process_time() - begun))
            costs.append(told.cost)
            proven += told.status in ("nearest", "none exists")
    linear = all(isinstance(one, LinearEquation) for one in subject.causes.equations.values())
    cells = []
    for method in (by_grid, by_gradient, by_program):
        if method is by_program and not linear:
            cells.append("-")
            continue
        pairs = [(method(Peer(subject, p)), c) for p, c in zip(subject.points[:peers], costs, strict=False)]
        ratios = [theirs / ours for theirs, ours in pairs if math.isfinite(theirs) and 0 < ours < math.inf]
        failed = sum(math.isinf(theirs) and math.isfinite(ours) for theirs, ours in pairs)
        better = sum(theirs < ours * (1 - 1e-6) for theirs, ours in pairs)
        assert not better, "a peer is cheaper than what is proven to be the cheapest"
        cells.append(f"{np.median(ratios):.4f}, {failed} fail" if ratios else f"{failed} fail")
    return [subject.name, str(len(taken)), str(proven), f"{np.median(taken):.1f}", f"{max(taken):.1f}", *cells]


def _forest(data: Any, schema: Schema) -> Model:
    fitted = RandomForestClassifier(TREES, max_depth=DEPTH, random_state=0)
    return import_model(fitted.fit(schema.encode(data.points()), data.labels), schema)


def _of_data(name: str, rows: int, seconds: float, equations: str, *, forest: bool) -> list[str]:
    data, model = datasets.load(name), datasets.network(name)
    graph, rules = GRAPHS[name]
    schema = model.schema
    model = _forest(data, schema) if forest else model
    causes = CausalModel.fit(graph, user_columns(schema, data.points()), schema, equations)
    for fit in causes.fits:
        console().print(str(fit))
    explainer = Explainer(model).using(reasons=False, limits=Limits(seconds=seconds))
    points = data.points()[: 20 * rows + 100]
    denied = points[model.decide(model.scores(points)) == 0][:rows]
    taken, plain, costs, acted, failed, proven = [], [], [], [], 0, 0
    for k, point in enumerate([denied[0], *denied]):
        row = schema.row(point)
        begun = time.process_time()
        told = explainer.recourse(row, causes, constraints=rules)
        middle = time.process_time()
        nearest = explainer.explain(row, constraints=rules)
        if not k:
            continue
        taken.append(1e3 * (middle - begun))
        plain.append(1e3 * (time.process_time() - middle))
        costs.append(told.cost)
        proven += told.status in ("nearest", "none exists")
        cost, fails = _as_actions(causes, model, row, nearest)
        acted.append(cost)
        failed += fails
        assert told.cost <= cost * (1 + 1e-6) or fails or told.status == "within"
    times = (np.median(taken), max(taken), np.median(plain), max(plain))
    paid = (np.median(costs), np.median(acted))
    counts, ms = (str(len(taken)), str(proven)), (f"{one:.1f}" for one in times)
    return [f"{name}, {'forest' if forest else 'network'}", *counts, *ms, *(f"{one:.5f}" for one in paid), str(failed)]


def _as_actions(causes: CausalModel, model: Model, row: Any, nearest: Any) -> tuple[float, bool]:
    """What the nearest row costs where its changes are the actions; and whether what follows undoes it."""
    changed = {change.feature: change.after for change in nearest.own_changes}
    fees = sum(causes.holding_cost(name) for name in changed if name in causes.graph) / len(causes.schema)
    try:
        after = causes.schema.read(causes.after(row, changed))
    except ValueError:
        return nearest.upper + fees, True
    return nearest.upper + fees, bool(model.decide(model.scores(after[None, :]))[0] == 0)
