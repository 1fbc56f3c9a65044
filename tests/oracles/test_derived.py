"""Derived features against all rows: the values follow, cost nothing and are not counted, whatever the model.

The oracle shares nothing with the library: definitions are Python functions, models are asked by their own `predict`,
distances are added up here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Binary,
    Categorical,
    Derived,
    Explainer,
    Integer,
    MaxChanges,
    Nearest,
    NoneExists,
    Ordinal,
    Real,
    Schema,
)
from ifonly.methods import Enumerate, Method, MipObj, Search

BASES = [
    Integer("a", 0, 4),
    Integer("b", 0, 3),
    Categorical("c", ["x", "y", "z"]),
    Ordinal("o", ["low", "mid", "high"]),
    Binary("own"),
]
Row = dict[str, Any]


def nearest_whole(value: float) -> list[int]:
    """The whole numbers that are next to a value; two where it is half way."""
    below = math.floor(value)
    return [k for k in (below, below + 1) if abs(k - value) <= 0.5]


def _steps(value: float) -> list[float]:
    return [k / 2 for k in nearest_whole(2 * value)]


# by kind: the feature, its definition, and the values that it may have in a row
KINDS: dict[str, tuple[Any, str, Callable[[Row], list[Any]]]] = {
    "condition": (Binary("d"), "a > 1", lambda r: [r["a"] > 1]),
    "either": (Binary("d"), "c = x or (a >= 3 and own)", lambda r: [r["c"] == "x" or (r["a"] >= 3 and r["own"])]),
    "sum": (Integer("d", 0, 12), "2 * a + b", lambda r: [2 * r["a"] + r["b"]]),
    "affine": (Integer("d", -5, 4), "4 - 2 * a", lambda r: [4 - 2 * r["a"]]),
    "indicators": (Integer("d", 0, 9), "a + 2 * [own] + [c = z]", lambda r: [r["a"] + 2 * r["own"] + (r["c"] == "z")]),
    "table": (
        Integer("d", 1, 9),
        "if c = x then 3 else if c = y then 9 else 1",
        lambda r: [{"x": 3, "y": 9, "z": 1}[r["c"]]],
    ),
    "groups": (
        Ordinal("d", ["young", "middle", "old"]),
        "if a < 2 then young else if a < 4 then middle else old",
        lambda r: ["young" if r["a"] < 2 else "middle" if r["a"] < 4 else "old"],
    ),
    "options": (
        Categorical("d", ["p", "q"]),
        "if o >= mid and c != z then q else p",
        lambda r: ["q" if r["o"] != "low" and r["c"] != "z" else "p"],
    ),
    "cases": (
        Integer("d", 0, 7),
        "if own then a + b else a",
        lambda r: [r["a"] + r["b"] if r["own"] else r["a"]],
    ),
    "largest": (Integer("d", 0, 4), "max(a, b, 1)", lambda r: [max(r["a"], r["b"], 1)]),
    "smallest": (Integer("d", 0, 4), "min(a, b + 1)", lambda r: [min(r["a"], r["b"] + 1)]),
    "product": (Integer("d", 0, 12), "a * b", lambda r: [r["a"] * r["b"]]),
    "switched": (Integer("d", 0, 4), "[own] * a", lambda r: [r["a"] * r["own"]]),
    "ratio": (Integer("d", 0, 4), "a / (b + 1)", lambda r: nearest_whole(r["a"] / (r["b"] + 1))),
    "rounded": (Real("d", 0, 4, step=0.5), "0.7 * a + 0.1 * b", lambda r: _steps(0.7 * r["a"] + 0.1 * r["b"])),
    "excluding": (Integer("d", 0, 5), "2 * a + b", lambda r: [2 * r["a"] + r["b"]]),  # rows beyond 5 do not exist
}


def schema_of(kind: str) -> Schema:
    return Schema([*BASES, KINDS[kind][0]])


def rows_of(kind: str) -> list[Row]:
    """Every row that can exist."""
    feature, _, function = KINDS[kind]
    options = [list(f.options) if hasattr(f, "options") else range(int(f.lower), int(f.upper) + 1) for f in BASES]
    rows: list[Row] = []
    for values in itertools.product(*options):
        row: Row = dict(zip([f.name for f in BASES], values, strict=True))
        inside = (v for v in function(row) if hasattr(feature, "options") or feature.lower <= v <= feature.upper)
        rows.extend({**row, "d": value} for value in inside)
    return rows


def fitted(model: str, rng: np.random.Generator, schema: Schema, rows: list[Row]) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.neural_network import MLPClassifier

    seed = int(rng.integers(2**31))
    table = schema.encode(np.array([schema.read(row) for row in rows]))
    score = table @ rng.normal(size=table.shape[1]) + rng.normal(size=len(table))
    labels = (score > np.quantile(score, 0.7)).astype(int)
    some = rng.permutation(len(rows))[:200]
    labels[some[:2]] = 0, 1
    chosen: Any = {
        "network": lambda: MLPClassifier((6,), max_iter=150, random_state=seed),
        "smooth": lambda: MLPClassifier((5,), activation="tanh", max_iter=150, random_state=seed),
        "forest": lambda: RandomForestClassifier(5, max_depth=4, random_state=seed),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=seed),
    }[model]()
    with np.errstate(all="ignore"):
        import warnings

        warnings.simplefilter("ignore")
        return chosen.fit(table[some], labels[some])


def distance(norm: str, schema: Schema, before: Row, after: Row) -> float:
    """The distance without the derived feature."""
    deltas = []
    for feature in schema.features:
        old, new = before[feature.name], after[feature.name]
        if feature.name == "d" or old == new:
            continue
        if feature.name in ("a", "b"):
            deltas.append(abs(new - old) / (feature.upper - feature.lower))
        elif feature.name == "o":
            deltas.append(abs(feature.options.index(new) - feature.options.index(old)) / 3)
        else:
            deltas.append(1.0)
    n = len(schema)
    match norm:
        case "l0":
            return len(deltas) / n
        case "l1":
            return sum(deltas) / n
        case "l2":
            return math.sqrt(sum(d * d for d in deltas) / n)
    return max(deltas, default=0.0) / n


def disagreement(kind: str, model: str, seed: int, method: Method) -> str:
    """What is wrong with the answers about one random problem; empty when nothing is."""
    rng = np.random.default_rng([seed, len(kind), len(model)])
    schema, rows = schema_of(kind), rows_of(kind)
    classifier = fitted(model, rng, schema, rows)
    decided = classifier.predict(schema.encode(np.array([schema.read(row) for row in rows])))
    norm = str(rng.choice(["l0", "l1", "l2", "linf"]))
    most = int(rng.integers(1, 4)) if rng.random() < 0.4 else 99
    constraints: list[Any] = [Derived("d", KINDS[kind][1]), *([MaxChanges(most)] if most < 99 else [])]
    explainer = Explainer(classifier, schema=schema, constraints=constraints).using(method)
    denied = [i for i, label in enumerate(decided) if label == 0]
    for i in rng.choice(denied, size=min(3, len(denied)), replace=False).tolist():
        factual = rows[i]
        best = math.inf
        for row, label in zip(rows, decided, strict=True):
            own = sum(row[f.name] != factual[f.name] for f in BASES)
            if label == 1 and own <= most:
                best = min(best, distance(norm, schema, factual, row))
        answer = explainer.explain(factual, distance=norm, target=1)
        said = f"{kind}, {model}, seed {seed}, {norm}, most {most}, row {factual}: {answer} against {best}"
        if best == math.inf:
            if not isinstance(answer, NoneExists):
                return said
            continue
        if not isinstance(answer, Nearest) or not math.isclose(answer.upper, best, rel_tol=1e-6, abs_tol=1e-9):
            return said
        found = {k: v for k, v in answer.counterfactual.items() if k != "d"}
        if answer.counterfactual["d"] not in KINDS[kind][2](found):
            return f"{said}: d is {answer.counterfactual['d']}"
        if {c.feature for c in answer.changes if c.follows} - {"d"} or any(
            c.feature == "d" for c in answer.own_changes
        ):
            return f"{said}: what follows is not told apart"
    return ""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("model", ["network", "smooth", "forest", "boosting"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_against_all_rows(kind: str, model: str) -> None:
    for seed in range(8):
        assert not disagreement(kind, model, seed, Search())


@pytest.mark.long
@pytest.mark.parametrize("method", [Enumerate(), MipObj()], ids=["enumerate", "mip"])
def test_other_methods(method: Method) -> None:
    for kind in KINDS:
        assert not disagreement(kind, "network", 1, method)
