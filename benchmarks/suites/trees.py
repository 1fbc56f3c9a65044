"""Tree ensembles: how long the nearest row takes, model by model (CPU time, one thread)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ifonly import ClassTarget, Distance, Explainer, Limits, Real, Schema, datasets, import_model
from ifonly.model import Model
from ifonly.problem import Question
from ifonly.solvers.search import Search


def _forest(trees: int, depth: int | None) -> Callable[[], Any]:
    def make() -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(trees, max_depth=depth, random_state=0)

    return make


def _xgboost(trees: int, depth: int) -> Callable[[], Any]:
    def make() -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=trees, max_depth=depth)

    return make


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1)


def _catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(verbose=0, allow_writing_files=False)


MODELS: dict[str, Callable[[], Any]] = {
    **{f"forest {n} x {d}": _forest(n, d) for n in (10, 50, 100, 500) for d in (4, 6, 8)},
    "forest, as it comes": _forest(100, None),
    **{f"XGBoost {n} x {d}": _xgboost(n, d) for n, d in ((50, 4), (100, 6), (200, 6), (1000, 6))},
    "LightGBM, as it comes": _lightgbm,
    "CatBoost, as it comes": _catboost,
}
HARD = "cancer"
"""Breast cancer, of scikit-learn: 30 real features, confident forests over many features are what is hardest."""


def _load(name: str, rules: bool) -> tuple[Schema, Any, Any]:
    """The schema, with its rules or without, points and labels of a data set."""
    if name != HARD:
        data = datasets.load(name, rules=rules)
        return data.schema, data.points(), data.labels
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    ends = zip(found.feature_names, found.data.min(axis=0), found.data.max(axis=0), strict=True)
    schema = Schema([Real(str(feature), float(low), float(high)) for feature, low, high in ends])
    return schema, found.data, found.target


@click.command("trees")
@click.option("--rows", type=click.IntRange(1), default=50, show_default=True, help="People per model.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Limit per row.")
@click.option(
    "--data", "names", multiple=True, default=("compas", "credit", "adult"), show_default=True, help="Or cancer."
)
@click.option("--model", "models", multiple=True, default=tuple(MODELS), help="Which models; all by default.")
@click.option("--distance", "norms", multiple=True, default=("l1",), show_default=True)
@click.option("--rules", is_flag=True, help="Under the rules of the schema; then whole calls of `explain` are timed.")
# size: the options of a command
def command(
    rows: int,
    seconds: float,
    names: tuple[str, ...],
    models: tuple[str, ...],
    norms: tuple[str, ...],
    rules: bool,
) -> None:
    """The nearest row to change class 0 to class 1, under tree ensembles of four libraries."""
    console = Console(width=130)
    table = Table("data", "model", "leaves", "norm", "proven", "median ms", "worst ms", "median nodes", "most nodes")
    for name in names:
        schema, points, labels = _load(name, rules)
        for title in models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the libraries' own, about names of columns
                fitted = MODELS[title]().fit(schema.encode(points), labels)
                model = import_model(fitted, schema)
            low = points[model.decide(model.scores(points)) == 0][:rows]
            for norm in norms:
                leaves = f"{len(model.function.ensemble.values):,}"
                told = [name, title, leaves, norm, *(_explained if rules else _asked)(model, low, norm, seconds)]
                table.add_row(*told)
                console.print(" | ".join(told))
    console.print(table)


def _asked(model: Model, points: Any, norm: str, seconds: float) -> list[str]:
    """Proven, median and worst milliseconds, median and most nodes."""
    question = Question(model=model, target=ClassTarget(model.classes[1]), distance=Distance(norm))
    solver, limits, taken, claims = Search(table_rows=0).prepare(question), Limits(seconds=seconds), [], []
    solver.solve(points[:1], limits)  # not the first: whatever is loaded once is loaded now
    for point in points:
        begun = time.process_time()
        claims += solver.solve(point[None, :], limits)
        taken.append(1e3 * (time.process_time() - begun))
    return _told(claims, taken)


def _explained(model: Model, points: Any, norm: str, seconds: float) -> list[str]:
    """The same of whole calls, in which the library decides about two rows itself."""
    explainer, limits, taken, answers = Explainer(model), Limits(seconds=seconds), [], []
    people = [model.schema.row(point) for point in points]
    explainer.explain(people[0], distance=norm)
    for person in people:
        begun = time.process_time()
        answers.append(explainer.explain(person, distance=norm, limits=limits))
        taken.append(1e3 * (time.process_time() - begun))
    return _told(answers, taken)


def _told(claims: Sequence[Any], taken: list[float]) -> list[str]:
    nodes = [claim.nodes for claim in claims]
    proven = sum(claim.stop is None for claim in claims)
    return [
        f"{proven} of {len(claims)}",
        f"{np.median(taken):.2f}", f"{max(taken):.2f}", f"{np.median(nodes):.0f}", f"{max(nodes):,}",
    ]  # fmt: skip
