"""Random causal models with finitely many actions, and the cheapest action by trying all of them.

The equations are evaluated by code of its own, one feature at a time: nothing is shared with what is tested but the
user's model, the rules' own verdicts and the definition of the distance.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from ifonly import (
    Allowed,
    Binary,
    Categorical,
    Distance,
    Fixed,
    Integer,
    MaxChanges,
    MaxDelta,
    Network,
    OnlyDown,
    OnlyUp,
    Ordinal,
    Range,
    Real,
    Rule,
    Schema,
    Steps,
    import_model,
)
from ifonly.causes import CausalModel, LinearEquation, ModelEquation, TableEquation
from ifonly.model import Model, network_model
from ifonly.model.smooth import RELU, Activation, SmoothNetwork
from ifonly.model.smooth.activations import SideBySide
from ifonly.problem import ClassTarget
from ifonly.problem.rules import AnyConstraint

STEP = 0.5
MOST_ACTIONS = 20_000


@dataclass(frozen=True)
class CausalCase:
    """A question whose actions are finitely many."""

    schema: Schema
    causes: CausalModel
    model: Model
    person: dict[str, Any]
    distance: Distance
    constraints: tuple[AnyConstraint, ...]
    functions: dict[str, Any]
    """By feature with causes: its equation as a function of a point."""
    fitted: Any = None
    """The trees that decide, as scikit-learn has them."""


def causal_case(seed: int, most: int = 5, trees: bool = False, kinds: int = 3, varied: bool = False) -> CausalCase:
    """From 3 features to `most`; the model is a linear one, a network, or with `trees` a forest or boosted trees. With 4
    kinds of equations, some are trees; `varied`: also steps of other sizes, and constraints of all kinds."""
    rng = np.random.default_rng([seed, 13] if varied else seed)
    n = int(rng.integers(3, most + 1))
    features = [_varied_feature(f"x{g}", rng) if varied else _feature(f"x{g}", rng) for g in range(n)]
    schema = Schema(features)
    equations: dict[str, Any] = {}
    functions: dict[str, Any] = {}
    for g in range(1, n):
        feature = features[g]
        if isinstance(feature, Categorical) or rng.random() < 0.3:
            continue
        parents = sorted(rng.choice(g, size=int(rng.integers(1, min(g, 3) + 1)), replace=False).tolist())
        equations[feature.name], functions[feature.name] = _equation(schema, parents, feature, rng, kinds)
    fees = {name: float(rng.choice([0.0, 0.02, 0.3])) for name in equations}
    causes = CausalModel(schema, equations, holding=fees if rng.random() < 0.5 else float(rng.choice([0.0, 0.01, 0.2])))
    columns = len(schema.columns)
    scale = 1.0 / np.array([max(1.0, abs(end)) for end in _largest(schema)])
    hidden = int(rng.integers(0, 4))
    if hidden:
        layers = [(rng.normal(size=(hidden + 2, columns)) * scale, rng.normal(size=hidden + 2) * 0.3),
                  (rng.normal(size=(1, hidden + 2)), rng.normal(size=1) * 0.3)]  # fmt: skip
    else:
        layers = [(rng.normal(size=(1, columns)) * scale, rng.normal(size=1) * 0.3)]
    model = network_model(Network.of(layers), schema, classes=("no", "yes"))
    person = {f.name: f.value(_any_value(f, rng)) for f in features}
    norm = str(rng.choice(["l0", "l1", "l2", "linf"]))
    weights = {f.name: float(rng.choice([0.5, 1.0, 3.0])) for f in features}
    ordered = [f.name for f in features if not isinstance(f, Categorical)]
    directions = {"up": {name: 2.0 for name in ordered if rng.random() < 0.3}} if rng.random() < 0.5 else {}
    constraints: list[AnyConstraint] = [Steps(f.name, STEP) for f in features if isinstance(f, Real) and f.grid is None]
    constraints += [Fixed(f.name) for f in features if rng.random() < 0.2]
    numbers = [f.name for f in features if isinstance(f, Real | Integer)]
    if len(numbers) >= 2 and rng.random() < 0.3:
        constraints.append(Rule(f"{numbers[0]} + {numbers[-1]} <= {float(rng.integers(1, 6)) + 0.25}"))
    if varied:
        constraints += _varied_constraints(schema, schema.read(person), rng)
    if trees:
        model = import_model(_fitted_like(model, rng), schema)
    case = CausalCase(
        schema, causes, model, person, Distance(norm, weights=weights, **directions), tuple(constraints), functions
    )
    free = list(schema.names)
    most_actions = MOST_ACTIONS if kinds == 3 else MOST_ACTIONS // 5  # trees are asked one row after the other
    while math.prod(map(len, _choices(case))) > most_actions:  # fix features until all actions can be tried
        case = replace(case, constraints=(*case.constraints, Fixed(free.pop(int(rng.integers(0, len(free)))))))
    return case


def _fitted_like(model: Model, rng: np.random.Generator, trees: int = 7, depth: int = 4) -> Any:
    """A small forest or boosted trees, fitted to the decisions of a network."""
    schema = model.schema
    points = np.array([[_any_value(f, rng) for f in schema.features] for _ in range(120)])
    labels = np.where(model.scores(points)[:, 0] > 0.0, "yes", "no")
    labels[:2] = "no", "yes"
    seed = int(rng.integers(0, 1000))
    fitted = (
        RandomForestClassifier(trees, max_depth=depth, random_state=seed)
        if rng.random() < 0.5
        else GradientBoostingClassifier(n_estimators=trees, max_depth=min(depth, 3), random_state=seed)
    )
    return fitted.fit(schema.encode(points), labels)


def _feature(name: str, rng: np.random.Generator) -> Any:
    match int(rng.integers(0, 6)):
        case 0:
            return Integer(name, 0, 4)
        case 1:
            return Binary(name)
        case 2:
            return Ordinal(name, ["a", "b", "c"], encoding=str(rng.choice(["thermometer", "onehot", "code"])))
        case 3:
            return Categorical(name, ["p", "q", "r"])
        case _:
            return Real(name, -1.0, 3.0)


def _varied_feature(name: str, rng: np.random.Generator) -> Any:
    match int(rng.integers(0, 8)):
        case 0:
            return Integer(name, -2, 6, step=2)
        case 1:
            return Binary(name, ("low", "high"))
        case 2:
            return Real(name, -1.0, 3.0, step="0.4")
        case 3:
            return Ordinal(name, [1, 5, 9, 12])
        case _:
            return _feature(name, rng)


def _varied_constraints(schema: Schema, before: Any, rng: np.random.Generator) -> list[AnyConstraint]:
    """On actions and on rows that follow; the person's own row meets all of them."""
    found: list[AnyConstraint] = []
    for feature, own in zip(schema.features, before.tolist(), strict=True):
        number = isinstance(feature, Real | Integer)
        match int(rng.integers(0, 8)):
            case 0 if number:
                found.append(MaxDelta(feature.name, float(rng.choice([1.0, 2.0]))))
            case 1 if number:
                found.append(Range(feature.name, max(feature.lower, own - 2.0), min(feature.upper, own + 2.0)))
            case 2 if not isinstance(feature, Categorical):
                found.append(OnlyUp(feature.name) if rng.random() < 0.5 else OnlyDown(feature.name))
            case 3 if not number:
                options = [o for k, o in enumerate(feature.options) if k == own or rng.random() < 0.6]
                found.append(Allowed(feature.name, options))
    return [*found, MaxChanges(int(rng.integers(1, 4)))] if rng.random() < 0.4 else found


def values_of(feature: Any) -> list[float]:
    """All values in a point, of a feature that has few."""
    if isinstance(feature, Integer):
        return [feature.lower + k * feature.step for k in range(feature.count)]
    if isinstance(feature, Real):
        assert feature.grid is not None
        return [feature.grid.value(k) for k in range(feature.grid.steps + 1)]
    return [float(k) for k in range(feature.count)]


def _any_value(feature: Any, rng: np.random.Generator) -> float:
    if isinstance(feature, Real) and feature.grid is None:
        return float(np.round(rng.uniform(-1.0, 3.0), 3)) if rng.random() < 0.8 else float(rng.choice([-1.0, 3.0]))
    values = values_of(feature)
    return float(values[int(rng.integers(0, len(values)))])


def _largest(schema: Schema) -> list[float]:
    ends = [1.0] * len(schema.columns)
    for feature, columns in zip(schema.features, schema.feature_columns, strict=True):
        if isinstance(feature, Integer | Real):
            ends[int(columns[0])] = feature.upper
    return ends


# size: each kind of equation, made and evaluated
def _equation(
    schema: Schema, parents: list[int], feature: Any, rng: np.random.Generator, kinds: int
) -> tuple[Any, Any]:
    causes = [schema.features[p] for p in parents]
    names = [f.name for f in causes]
    kind = int(rng.integers(0, kinds))
    if kind == 3:
        return _trees(causes, parents, rng)
    if kind == 4:
        return _smooth(causes, parents, rng)
    if kind == 0 and all(not isinstance(f, Real) for f in causes):
        values = {}
        for key in itertools.product(*([f.value(v) for v in values_of(f)] for f in causes)):
            values[key] = float(np.round(rng.normal() * 1.5, 2))
        table = TableEquation(names, values)
        return table, lambda p: values[tuple(f.value(float(p[g])) for f, g in zip(causes, parents, strict=True))]
    if kind == 1:
        columns = sum(len(f.column_names) for f in causes)
        w1, b1 = rng.normal(size=(3, columns)) * 0.7, rng.normal(size=3) * 0.5
        w2 = rng.normal(size=(1, 3)) * 0.7
        network = Network.of([(w1, b1), (w2, np.zeros(1))])
        own = Schema(causes)

        def through(point: Any) -> float:
            encoded = own.encode(np.array([[point[g] for g in parents]]))[0]
            hidden = [max(0.0, math.fsum([*(w1[k] * encoded), b1[k]])) for k in range(3)]
            return math.fsum(w2[0, k] * hidden[k] for k in range(3))

        return ModelEquation(names, network), through
    weights: dict[str, Any] = {}
    for f in causes:
        if isinstance(f, Categorical):
            weights[f.name] = {option: float(np.round(rng.normal(), 1)) for option in f.options}
        else:
            weights[f.name] = float(np.round(rng.normal() * 0.8, 1))
    start = float(np.round(rng.normal(), 1))

    def linear(point: Any) -> float:
        total = start
        for f, g in zip(causes, parents, strict=True):
            w = weights[f.name]
            total += w[f.value(float(point[g]))] if isinstance(w, dict) else w * point[g]
        return total

    return LinearEquation(weights, start), linear


CURVES: dict[str, Any] = {
    "tanh": math.tanh,
    "sigmoid": lambda z: 1.0 / (1.0 + math.exp(-z)),
    "softplus": lambda z: math.log1p(math.exp(z)),
    "elu": lambda z: z if z > 0.0 else math.expm1(z),
    "relu": lambda z: max(z, 0.0),
}


def _smooth(causes: list[Any], parents: list[int], rng: np.random.Generator) -> tuple[Any, Any]:
    """A network with smooth activations, some of them beside ReLUs, or a square."""
    names, columns = [f.name for f in causes], sum(len(f.column_names) for f in causes)
    if rng.random() < 0.25 and isinstance(causes[0], Real):
        rest, factor = rng.normal(size=columns) * 0.3, float(rng.choice([-0.3, 0.3]))
        scale = 3.0  # of Real features
        first = np.vstack([np.eye(columns)[:1] / scale, -np.eye(columns)[:1] / scale, rest[None, :]])
        last = [[2.0 * factor * scale**2, 2.0 * factor * scale**2, 1.0]]
        bend = SideBySide(((Activation("power", 2.0), 2), (RELU, 1)))
        network = SmoothNetwork(Network.of([(first, [0.0, 0.0, 50.0]), (last, [-50.0])]), [bend])
        return (
            ModelEquation(names, network),
            lambda p: (
                factor * p[parents[0]] ** 2
                + float(Schema(causes).encode(np.array([[p[g] for g in parents]]))[0] @ rest)
            ),
        )
    kinds = [str(rng.choice(list(CURVES))), str(rng.choice(list(CURVES)[:4]))]
    w1, b1 = rng.normal(size=(3, columns)), rng.normal(size=3) * 0.5
    w2 = rng.normal(size=(1, 3))
    bend = SideBySide(((Activation(kinds[0]), 1), (Activation(kinds[1]), 2)))  # type: ignore[arg-type]
    own = Schema(causes)

    def through(point: Any) -> float:
        encoded = own.encode(np.array([[point[g] for g in parents]]))[0]
        z = [math.fsum([*(w1[k] * encoded), b1[k]]) for k in range(3)]
        return math.fsum(w2[0, k] * CURVES[kinds[min(k, 1)]](z[k]) for k in range(3))

    return ModelEquation(names, SmoothNetwork(Network.of([(w1, b1), (w2, np.zeros(1))]), [bend])), through


def _trees(causes: list[Any], parents: list[int], rng: np.random.Generator) -> tuple[Any, Any]:
    """A tree, a forest or boosted trees of numbers drawn at random, evaluated by scikit-learn."""
    own, seed = Schema(causes), int(rng.integers(0, 1000))
    points = np.array([[_any_value(f, rng) for f in causes] for _ in range(60)])
    points = np.round(points, 1)  # cuts that are near to one another
    drawn = rng.normal(size=60) * 0.7 + points[:, 0]
    fitted = [
        DecisionTreeRegressor(max_depth=3, random_state=seed),
        RandomForestRegressor(3, max_depth=3, random_state=seed),
        GradientBoostingRegressor(n_estimators=5, max_depth=2, random_state=seed),
        HistGradientBoostingRegressor(max_iter=4, max_bins=8, min_samples_leaf=4, early_stopping=False),
    ][int(rng.integers(0, 4))].fit(own.encode(points), drawn)
    known: dict[tuple[float, ...], float] = {}

    def value(point: Any) -> float:
        key = tuple(float(point[g]) for g in parents)
        if key not in known:
            known[key] = float(fitted.predict(own.encode(np.array([key])))[0])
        return known[key]

    return ModelEquation([f.name for f in causes], fitted), value


def _choices(case: CausalCase) -> list[list[float | None]]:
    """Of each feature, the values that it can be put to; None where it is not acted on."""
    schema, before = case.schema, case.schema.read(case.person)
    fixed = {c.feature for c in case.constraints if isinstance(c, Fixed)}
    choices: list[list[float | None]] = []
    for g, feature in enumerate(schema.features):
        values: list[float | None]
        if feature.name in fixed:
            values = []
        elif isinstance(feature, Real) and feature.grid is None:
            steps = range(
                math.ceil((feature.lower - before[g]) / STEP - 1e-9),
                math.floor((feature.upper - before[g]) / STEP + 1e-9) + 1,
            )
            values = [float(np.round(before[g] + k * STEP, 9)) for k in steps]
        else:
            values = list(values_of(feature))
        follows = feature.name in case.functions
        choices.append([None, *(v for v in values if follows or v != before[g])])
    return choices


def cheapest_by_trying(case: CausalCase, target: ClassTarget) -> float:
    """The least cost of all actions; infinity where none does it."""
    schema, before = case.schema, case.schema.read(case.person)
    rules = [c for c in case.constraints if isinstance(c, Rule)]
    choices = _choices(case)
    order = [schema.index(name) for name in schema.names if name in case.functions]
    noise = {g: before[g] - case.functions[schema.names[g]](before) for g in order}
    best = math.inf
    rows, costs = [], []
    for chosen in itertools.product(*choices):
        row = _predicted(case, before, chosen, order, noise) if _may_be_done(case, before, chosen) else None
        if (
            row is None
            or not _may_follow(case, before, row)
            or not all(rule.allows_row(schema, before, row) for rule in rules)
        ):
            continue
        rows.append(row)
        costs.append(_cost(case, before, chosen))
    if rows:
        met = target.met(case.model, case.model.scores(np.array(rows)))
        best = min((cost for cost, good in zip(costs, met.tolist(), strict=True) if good), default=math.inf)
    return best


def _may_be_done(case: CausalCase, before: Any, chosen: Any) -> bool:
    """Constraints on what is done."""
    for one in case.constraints:
        if isinstance(one, OnlyUp | OnlyDown | MaxDelta):
            g = case.schema.index(one.feature)
            if chosen[g] is not None and not one.allows(case.schema.features[g], float(before[g]), float(chosen[g])):
                return False
        elif isinstance(one, MaxChanges) and sum(value is not None for value in chosen) > one.most:
            return False
    return True


def _may_follow(case: CausalCase, before: Any, row: Any) -> bool:
    """Ranges and allowed values, of the row that follows."""
    schema = case.schema
    return all(
        one.allows(schema.features[g := schema.index(one.feature)], float(before[g]), float(row[g]))
        for one in case.constraints if isinstance(one, Range | Allowed)
    )  # fmt: skip


def _predicted(case: CausalCase, before: Any, chosen: Any, order: list[int], noise: dict[int, float]) -> Any:
    row = np.array([b if v is None else v for b, v in zip(before, chosen, strict=True)])
    for g in order:
        if chosen[g] is not None:
            continue
        feature, number = case.schema.features[g], case.functions[case.schema.names[g]](row) + noise[g]
        if isinstance(feature, Real) and feature.grid is None:
            if not feature.lower - 1e-9 <= number <= feature.upper + 1e-9:
                return None
            row[g] = min(max(number, feature.lower), feature.upper)
            row[g] = before[g] if abs(row[g] - before[g]) < 1e-10 else row[g]
        else:
            values = values_of(feature)
            place = math.floor((number - values[0]) / (values[1] - values[0]) + 0.5 + 1e-9)
            if not 0 <= place < len(values):
                return None
            row[g] = values[place]
    return row


def _cost(case: CausalCase, before: Any, chosen: Any) -> float:
    """By the definition: the distance of what is done, with a fee for each feature that is cut from its causes."""
    schema, distance = case.schema, case.distance
    after = np.array([b if v is None else v for b, v in zip(before, chosen, strict=True)])
    deltas = distance.changes(schema, before, after) * distance.weight_vector(schema)
    holds = case.causes.holding
    fees = [
        (holds.get(n, 0.01) if isinstance(holds, dict) else holds) * distance.weights.get(n, 1.0)
        for n, v in zip(schema.names, chosen, strict=True) if v is not None and n in case.functions
    ]  # fmt: skip
    parts = [*deltas.tolist(), *fees]
    size = len(schema)
    match str(distance.norm):
        case "l0":
            weights = distance.weight_vector(schema)
            moved = sum(w for w, a, b in zip(weights, after, before, strict=True) if a != b)
            return float(moved + sum(fees)) / size
        case "l2":
            return math.sqrt(sum(p * p for p in parts) / size)
        case "linf":
            return max(parts, default=0.0) / size
        case _:
            return sum(parts) / size


def real_case(seed: int, trees: bool = False, numbers: bool = False, mixed: bool = False) -> CausalCase:
    """Real numbers, linear equations, l1: 3 to 6 features in a random graph, a linear model or a ReLU network; or 3 of
    them and a few trees. With `numbers` 3 to 8, some of them whole numbers, and equations of all kinds; `mixed`: some of
    these have two values, or levels."""
    rng = np.random.default_rng([seed, 17] if mixed else [seed, 7])
    n = int(rng.integers(3, 9)) if numbers else 3 if trees else int(rng.integers(3, 7))
    whole = rng.random(n) < 0.3 if numbers else np.zeros(n, dtype=bool)
    features = [Integer(f"x{g}", -2, 3) if whole[g] else Real(f"x{g}", -2.0, 3.0) for g in range(n)]
    if mixed:
        features = [_with_options(f, rng) if isinstance(f, Integer) or rng.random() < 0.3 else f for f in features]
    schema = Schema(features)
    equations: dict[str, Any] = {}
    functions: dict[str, Any] = {}
    for g in range(1, n):
        parents = [p for p in range(g) if rng.random() < 0.5]
        if numbers and n > 5:
            parents = parents[:2] if rng.random() < 0.5 else []
        if parents:
            kind = int(rng.integers(0, 3)) if numbers else 0
            equations[f"x{g}"], functions[f"x{g}"] = _of_numbers(schema, parents, kind, rng)
    case = _asked_of(schema, equations, functions, rng)
    if trees:
        fitted = _fitted_like(case.model, rng, trees=3, depth=2)
        case = replace(case, model=import_model(fitted, schema), fitted=fitted)
    return case


def _with_options(feature: Any, rng: np.random.Generator) -> Any:
    """A feature whose values in a point are 0, 1, ..., each as one column."""
    if rng.random() < 0.5:
        return Binary(feature.name)
    return Ordinal(feature.name, ["a", "b", "c", "d"][: int(rng.integers(3, 5))], encoding="code")


def chained_case(seed: int) -> CausalCase:
    """Trees, forests and boosted trees as all equations: 5 to 8 numbers, of which all but the first follow."""
    rng = np.random.default_rng([seed, 11])
    n = int(rng.integers(5, 9))
    whole = rng.random(n) < 0.3
    schema = Schema([Integer(f"x{g}", -2, 3) if whole[g] else Real(f"x{g}", -2.0, 3.0) for g in range(n)])
    equations: dict[str, Any] = {}
    functions: dict[str, Any] = {}
    for g in range(1, n):
        parents = sorted(rng.choice(g, size=int(rng.integers(1, min(g, 3) + 1)), replace=False).tolist())
        equations[f"x{g}"], functions[f"x{g}"] = _of_numbers(schema, parents, 2, rng)
    return _asked_of(schema, equations, functions, rng)


def _asked_of(
    schema: Schema, equations: dict[str, Any], functions: dict[str, Any], rng: np.random.Generator
) -> CausalCase:
    """A person, a linear model or a network, and an l1 cost."""
    n, whole = len(schema), [not isinstance(f, Real) for f in schema.features]
    causes = CausalModel(schema, equations, holding=float(rng.choice([0.0, 0.01, 0.1])))
    hidden = int(rng.choice([0, 4, 6]))
    shapes = [(1, n)] if not hidden else [(hidden, n), (1, hidden)]
    layers = [(rng.normal(size=shape), rng.normal(size=shape[0]) * 0.5) for shape in shapes]
    model = network_model(Network.of(layers), schema, classes=("no", "yes"))
    person: dict[str, Any] = {  # clear of the cuts of trees, which are at hundredths
        name: float(np.round(rng.uniform(-1.5, 2.5), 0 if whole[g] else 3)) + (0.0 if whole[g] else 0.0005)
        for g, name in enumerate(schema.names)
    }
    for feature in schema.features:
        if isinstance(feature, Binary | Ordinal):
            person[feature.name] = feature.value(_any_value(feature, rng))
    weights = {name: float(rng.choice([0.5, 1.0, 2.0])) for name in schema.names}
    return CausalCase(schema, causes, model, person, Distance("l1", weights=weights), (), functions)


def _of_numbers(schema: Schema, parents: list[int], kind: int, rng: np.random.Generator) -> tuple[Any, Any]:
    names = [schema.names[p] for p in parents]
    if kind == 0:
        weights = {name: float(rng.normal() * 0.7) for name in names}
        start = float(rng.normal() * 0.3)
        return LinearEquation(
            weights, start
        ), lambda point: start + sum(w * point[p] for p, w in zip(parents, weights.values(), strict=True))
    if kind == 1:
        w1, b1, w2 = rng.normal(size=(2, len(parents))) * 0.6, rng.normal(size=2) * 0.5, rng.normal(size=(1, 2))
        network = Network.of([(w1, b1), (w2, np.zeros(1))])
        return ModelEquation(names, network), lambda p: float((w2 @ np.maximum(w1 @ p[parents] + b1, 0.0))[0])
    rows = np.round(rng.uniform(-2.0, 3.0, size=(40, len(parents))), 1)
    seed = int(rng.integers(0, 1000))
    fitted = (
        RandomForestRegressor(2, max_depth=2, random_state=seed)
        if rng.random() < 0.5
        else GradientBoostingRegressor(n_estimators=3, max_depth=2, learning_rate=0.5, random_state=seed)
    ).fit(rows, rows[:, 0] + rng.normal(size=40) * 0.7)
    return ModelEquation(names, fitted), lambda p: float(fitted.predict(p[None, parents])[0])


def estimators(fitted: Any) -> tuple[list[Any], float, float]:
    """Of a forest or boosted trees of scikit-learn: its trees, what their values are multiplied by, and what is added:
    a regression's value, or a number that is above 0 where it says "yes"."""
    if isinstance(fitted, RandomForestRegressor | RandomForestClassifier):
        trees = [one.tree_ for one in fitted.estimators_]
        return trees, 1.0 / len(trees), -0.5 if isinstance(fitted, RandomForestClassifier) else 0.0
    trees = [one.tree_ for one in fitted.estimators_[:, 0]]
    prior = np.ravel(fitted.init_.class_prior_ if hasattr(fitted.init_, "class_prior_") else fitted.init_.constant_)
    start = math.log(prior[1] / prior[0]) if len(prior) > 1 else float(prior[0])
    return trees, fitted.learning_rate, start


def smooth_case(seed: int, trees: bool = False) -> CausalCase:
    """Real numbers, smooth equations, a linear model, a ReLU network or a smooth one; or a few trees."""
    rng = np.random.default_rng([seed, 99])
    n = int(rng.integers(3, 6))
    schema = Schema([Real(f"x{g}", -2, 3) for g in range(n)])
    equations = {}
    for g in range(1, n):
        if parents := [f"x{p}" for p in range(g) if rng.random() < 0.6]:
            width = int(rng.integers(2, 5))
            layers = [
                (rng.normal(size=(width, len(parents))), rng.normal(size=width)),
                (rng.normal(size=(1, width)), [0.0]),
            ]
            bend = Activation(str(rng.choice(["tanh", "sigmoid", "softplus", "gelu"])))  # type: ignore[arg-type]
            equations[f"x{g}"] = ModelEquation(parents, SmoothNetwork(Network.of(layers), [bend]))
    causes = CausalModel(schema, equations, holding=float(rng.choice([0.01, 0.1])))
    layers = [(rng.normal(size=(6, n)), rng.normal(size=6)), (rng.normal(size=(1, 6)), rng.normal(size=1))]
    network: Any = Network.of(layers if seed % 3 else [(rng.normal(size=(1, n)), rng.normal(size=1))])
    network = SmoothNetwork(network, [Activation("tanh")]) if seed % 3 == 2 else network
    model = network_model(network, schema, classes=("no", "yes"))
    own = np.round(rng.uniform(-1.5, 2.5, n), 4)
    constraints: list[AnyConstraint] = []
    if rng.random() < 0.4:
        constraints.append(Rule(f"x{n - 1} + x{n - 2} <= {float(np.round(own[n - 1] + own[n - 2] + 0.2, 3))}"))
    constraints += [Range(name, own[schema.index(name)] - 0.5, own[schema.index(name)] + 0.5)
                    for name in equations if rng.random() < 0.3]  # fmt: skip
    if trees:
        model = import_model(_fitted_like(model, rng, trees=3, depth=2), schema)
    norm = str(rng.choice(["l1", "l2", "linf"]))
    weights = {f"x{g}": float(rng.choice([0.5, 1.0, 2.0])) for g in range(n)}
    return CausalCase(schema, causes, model, schema.row(own), Distance(norm, weights=weights), tuple(constraints), {})


def cheapest_sampled(case: CausalCase, target: ClassTarget, count: int = 60_000) -> float:
    """The least cost of many actions, near and far; what follows is what the causal model says."""
    schema, causes, rng = case.schema, case.causes, np.random.default_rng(0)
    before, n = schema.read(case.person), len(case.schema)
    low, high = (np.array([getattr(f, end) for f in schema.features]) for end in ("lower", "upper"))
    free = np.array(
        [not any(isinstance(c, Fixed) and c.feature == name for c in case.constraints) for name in schema.names]
    )
    acted = (rng.random((count, n)) < 0.5) & free
    moved = before + rng.normal(size=(count, n)) * 3.0 * rng.random((count, 1)) ** 2
    values = np.where(acted, np.clip(moved, low, high), before)
    rows, inside = causes.followed(values, acted, np.repeat(causes.noise(before[None, :]), count, axis=0))
    good = inside.all(axis=1) & target.met(case.model, case.model.scores(rows))
    for one in case.constraints:
        if isinstance(one, Range):
            g = schema.index(one.feature)
            good &= (rows[:, g] >= one.lower) & (rows[:, g] <= one.upper)
        elif isinstance(one, Rule):
            good &= one.allows_rows(schema, np.repeat(before[None, :], count, axis=0), rows)
    return min(
        (_cost_of_acting(case, before, v, a) for v, a in zip(values[good], acted[good], strict=True)), default=math.inf
    )


def _cost_of_acting(case: CausalCase, before: Any, values: Any, acted: Any) -> float:
    followers = {case.schema.index(name) for name in case.causes.graph}
    chosen = [float(v) if a else None for v, a in zip(values, acted, strict=True)]
    named = replace(case, functions={case.schema.names[g]: None for g in followers})
    return _cost(named, before, chosen)
