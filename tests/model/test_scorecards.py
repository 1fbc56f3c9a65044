"""Scorecards: tables of points, read strictly, and exact."""

from __future__ import annotations

import copy
import itertools
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ifonly import (
    Binary,
    Categorical,
    Distance,
    Explainer,
    Integer,
    Nearest,
    NoneExists,
    Ordinal,
    Real,
    Schema,
    Scorecard,
    ScoreTarget,
    import_model,
    load_model,
)
from ifonly.errors import FileError, ModelError, RowError
from ifonly.methods import Enumerate
from model.forests import everywhere

SCHEMA = Schema(
    [
        Integer("age", 18, 90),
        Real("income", 0.0, 1e5, missing=True),
        Categorical("town", ["x", "y", "z"]),
        Ordinal("rooms", [1, 2, 3, 4]),
    ]
)
CARD: dict[str, Any] = {
    "format": "ifonly-scorecard",
    "version": 1,
    "base": 300,
    "cutoff": 340.5,
    "classes": ["deny", "approve"],
    "features": {
        "age": [{"below": 25, "points": 10}, {"below": 40, "points": 25}, {"points": 40}],
        "income": [
            {"is": [77777], "points": -50},
            {"up_to": 1000, "points": 0},
            {"points": 12.5},
            {"missing": True, "points": 3},
        ],
        "town": [{"is": ["x", "y"], "points": 5}, {"points": 0}],
        "rooms": [{"up_to": 2, "points": 0}, {"points": 3}],
    },
}
TABLE = """feature,bin,points
,base,300
,cutoff,340.5
age,< 25,10
age,< 40,25
age,other,40
income,= 77777,-50
income,<= 1000,0
income,other,12.5
income,missing,3
town,= x,5
town,= y,5
town,other,0
rooms,<= 2,0
rooms,other,3
"""


def total(row: dict[str, Any]) -> float:
    """The card once more, by hand."""
    points = 10 if row["age"] < 25 else 25 if row["age"] < 40 else 40
    income = row["income"]
    points += 3 if income is None else -50 if income == 77777 else 0 if income <= 1000 else 12.5
    return 300 + points + (5 if row["town"] in "xy" else 0) + (0 if row["rooms"] <= 2 else 3)


def test_points_at_every_edge_and_one_step_to_either_side() -> None:
    card = Scorecard.from_dict(CARD)
    model = import_model(card, SCHEMA)
    rows = everywhere(model)
    assert {1000.0, np.nextafter(1000.0, 2000.0), 77777.0, np.nextafter(77777.0, 0.0)} <= set(rows[:, 1])
    by_hand = np.array([total(SCHEMA.row(point)) for point in rows])
    assert np.array_equal(model.exact_scores(rows)[:, 0], by_hand - 340.5 + 0.05)
    assert np.array_equal(model.decide(model.scores(rows)) == 1, by_hand >= 340.5)
    assert [card.total(SCHEMA.row(point)) for point in rows[:50]] == by_hand[:50].tolist()
    assert model.deviation == 0.0 and not model.error.any() and model.classes == ("deny", "approve")


def test_the_cutoff_itself_is_enough() -> None:
    schema = Schema([Integer("n", 0, 9)])
    bins = [*({"up_to": k, "points": 0.1 * k} for k in range(9)), {"points": 9}]
    bins = [{**one, "points": round(one["points"], 1)} for one in bins]
    for cutoff in (0.1, 0.3, 0.7, 0.8):
        model = import_model(Scorecard.from_dict({"cutoff": cutoff, "features": {"n": bins}}), schema)
        answer = Explainer(model).explain({"n": 0}, target=1)
        assert isinstance(answer, Nearest) and answer.counterfactual["n"] == round(10 * cutoff)
    plain = import_model(Scorecard.from_dict({"features": {"n": bins}}), schema)
    answer = Explainer(plain).explain({"n": 0}, target=ScoreTarget(at_least=0.3, margin=0.0))
    assert isinstance(answer, Nearest) and answer.counterfactual["n"] == 3 and answer.score_after == 0.3


def test_who_lacks_a_number_has_the_points_for_that() -> None:
    explainer = Explainer(import_model(Scorecard.from_dict(CARD), SCHEMA))
    row = {"age": 30, "income": None, "town": "z", "rooms": 1}
    answer = explainer.explain(row, target="approve")
    assert isinstance(answer, Nearest) and answer.counterfactual["income"] is None
    assert total({**row, **answer.counterfactual}) >= 340.5
    card = copy.deepcopy(CARD)
    card["features"]["income"].pop()
    with pytest.raises(RowError, match="no points for a missing value of feature 'income'"):
        Explainer(import_model(Scorecard.from_dict(card), SCHEMA)).explain(row, target="approve")


def test_files(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    (tmp_path / "card.csv").write_text(TABLE)
    models = [load_model(tmp_path / "card.json", SCHEMA)]
    models.append(load_model(tmp_path / "card.csv", SCHEMA, classes=("deny", "approve")))
    models.append(import_model(Scorecard.load(tmp_path / "card.json"), SCHEMA))
    assert len({model.function.fingerprint for model in models}) == 1
    assert {model.source for model in models} == {"scorecard"} and {model.classes for model in models} == {
        ("deny", "approve")
    }


def changed(*path: Any, to: Any) -> dict[str, Any]:
    card = copy.deepcopy(CARD)
    here = card
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = to
    return card


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ([], "is a mapping with 'features'"),
        (changed("cut", to=5), "has no 'cut'"),
        (changed("version", to=2), "version 1"),
        (changed("features", to={}), "there are none"),
        (changed("cutoff", to="340"), "The cutoff must be a number"),
        (changed("cutoff", to=None), "needs a 'cutoff'"),
        (changed("classes", to=["a"]), "'classes' are two"),
        (changed("features", "age", to=[]), "needs a list of 1 to"),
        (changed("features", "age", 0, to=5), "bin 0 of feature 'age' must be a mapping with 'points'"),
        (changed("features", "age", 0, to={"under": 3, "points": 1}), "bin 0 of feature 'age' has 'under'"),
        (changed("features", "age", 0, to={"below": 3, "up_to": 4, "points": 1}), "several conditions"),
        (changed("features", "age", 1, "below", to=25), "ends at 25, where bins above it have ended"),
        (changed("features", "age", 0, to={"points": 1}), "after the bin for all other values"),
        (changed("features", "age", 0, "points", to=float("nan")), "at most 10\\^12"),
        (changed("features", "age", 0, "points", to=0.1234567), "at most 5 decimals"),
        (changed("features", "income", 3, "missing", to=False), "must be true, or left out"),
        (changed("features", "town", 0, "is", to=[[1]]), "must be a value or a list of values"),
    ],
)
def test_cards_that_are_none(card: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Scorecard.from_dict(card)


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (changed("features", "height", to=[{"points": 1}]), "'height', which is no feature of the schema"),
        (changed("features", "town", 0, "is", to="w"), "town = 'w', which is no option"),
        (changed("features", "age", 0, to={"is": "young", "points": 1}), "but the feature is a number"),
        (changed("features", "town", 1, to={"is": "x", "points": 1}), "no points for the value 'z'"),
        (changed("features", "age", 2, to={"below": 60, "points": 1}), "no points for the value 90"),
    ],
)
def test_cards_that_do_not_fit_the_schema(card: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        import_model(Scorecard.from_dict(card), SCHEMA)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n", "first line is: feature,bin,points"),
        ("feature,bin,points\nage,< 25\n", "line 2 has 2 cells"),
        ("feature,bin,points\nage,25,3\n", "line 2: a bin is '< 25'"),
        ("feature,bin,points\nage,< old,3\n", "line 2: 'old' is no number"),
        ("feature,bin,points\n,cut,3\n", "line 2 has no feature"),
        ('feature,bin,points\n"age,1\n', "is no scorecard"),
        ("feature,bin,points\nage,other,1e999999999\n", "at most 10\\^12"),
    ],
)
def test_tables_that_are_no_card(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "card.csv").write_text(text)
    with pytest.raises((FileError, ModelError), match=words):
        load_model(tmp_path / "card.csv", SCHEMA)


# ---------------------------------------------------------------------- against every row

SMALL = Schema([Integer("n", 0, 9), Binary("b"), Categorical("c", ["x", "y", "z"]), Ordinal("o", [1, 2, 3])])
EVERY = np.array(list(itertools.product(range(10), range(2), range(3), range(3))), dtype=float)
MODELS = int(os.environ.get("IFONLY_CARDS", "5"))


def random_card(rng: np.random.Generator) -> dict[str, Any]:
    def points() -> float:
        return round(float(rng.normal(0, 20)), int(rng.integers(0, 3)))

    edges = np.sort(rng.choice(np.arange(0, 9.5, 0.5), int(rng.integers(1, 5)), replace=False)).tolist()
    numbers = [{str(rng.choice(["below", "up_to"])): edge, "points": points()} for edge in edges]
    special = [{"is": int(rng.integers(0, 10)), "points": points()}] if rng.random() < 0.5 else []
    features = {
        "n": [*special, *numbers, {"points": points()}],
        "b": [{"is": True, "points": points()}, {"points": points()}],
        "c": [{"is": str(rng.choice(list("xyz"))), "points": points()}, {"points": points()}],
        "o": [{"below": int(rng.integers(2, 4)), "points": points()}, {"points": points()}],
    }
    return {"base": points(), "features": features}


@pytest.mark.long
def test_nearest_rows_are_those_of_the_card() -> None:
    """Forty questions to each of five cards, to the search and to the enumerator."""
    rows = [SMALL.row(point) for point in EVERY]
    for seed in range(MODELS):
        rng = np.random.default_rng(seed)
        data = random_card(rng)
        totals = np.array([Scorecard.from_dict(data).total(row) for row in rows])
        data["cutoff"] = rng.choice(totals)  # a total that occurs: the edge itself
        model = import_model(Scorecard.from_dict(data), SMALL)
        good = totals >= data["cutoff"]
        assert ((model.decide(model.scores(EVERY)) == 1) == good).all()
        for person, norm in itertools.product(range(seed % 18, len(EVERY), 18), ("l0", "l1", "l2", "linf")):
            there = EVERY[good != good[person]]
            for method in (Explainer(model), Explainer(model).using(Enumerate())):
                answer = method.explain(rows[person], target=int(not good[person]), distance=norm)
                if not len(there):
                    assert isinstance(answer, NoneExists)
                    continue
                assert isinstance(answer, Nearest)
                nearest = Distance(norm).between(SMALL, EVERY[person], there).min()
                assert answer.upper == pytest.approx(nearest, abs=1e-12)


# ---------------------------------------------------------------------- optbinning


@pytest.fixture(scope="module")
def optbinning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("optbinning", reason="optbinning brings several solvers, and is not installed here")


NUMBERS = Schema([Real("rate", -3.0, 3.0), Integer("age", 0, 60), Categorical("town", ["x", "y", "z"])])


def table_of(points: Any) -> pd.DataFrame:
    rows = [NUMBERS.row(point) for point in points]
    return pd.DataFrame({name: [row[name] for row in rows] for name in NUMBERS.names})


def people(seed: int = 0) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    points = NUMBERS.sample(400, rng)
    points[:, 0] = np.round(points[:, 0], 1)
    signal = points[:, 0] + points[:, 1] / 20 + 1.5 * (points[:, 2] == 1) + rng.normal(0, 0.5, 400)
    return table_of(points), (signal > np.median(signal)).astype(int)


def fitted(optbinning: Any, kind: str, table: pd.DataFrame, labels: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        process = optbinning.BinningProcess(list(table), categorical_variables=["town"], special_codes=[0, 30])
        if kind == "pipeline":
            return make_pipeline(process, LogisticRegression()).fit(table, labels)
        return optbinning.Scorecard(process, LogisticRegression()).fit(table, labels, metric_special="empirical")


@pytest.mark.parametrize("kind", ["pipeline", "scorecard"])
def test_optbinning(optbinning: Any, kind: str) -> None:
    table, labels = people()
    model = fitted(optbinning, kind, table, labels)
    imported = import_model(model, NUMBERS)
    rows = everywhere(imported)
    difference = np.abs(imported.exact_scores(rows)[:, 0] - model.decision_function(table_of(rows)))
    assert difference.max() <= imported.error.max() < 1e-12
    assert imported.decide(imported.scores(rows)).tolist() == model.predict(table_of(rows)).tolist()
    assert imported.probabilities is not None and len(imported.function.ensemble.roots) == 3
    process = model[0] if kind == "pipeline" else model.binning_process_
    splits = process.get_binned_variable("rate").splits
    assert set(np.nextafter(splits, -np.inf)) <= set(imported.function.cuts[0])
    assert {np.nextafter(0.0, -1.0), 0.0} <= set(imported.function.cuts[0])  # a special code is a cell of its own
    answer = Explainer(imported).explain(table.iloc[0].to_dict(), target=int(1 - model.predict(table[:1])[0]))
    assert isinstance(answer, Nearest) and answer.lower > 0.0


def test_nearest_rows_are_those_of_optbinning(optbinning: Any) -> None:
    """Forty questions to each process, by the search and by the enumerator."""
    rows = pd.DataFrame([SMALL.row(point) for point in EVERY])
    rows["b"] = rows["b"].astype(int)
    schema = Schema([SMALL["n"], Integer("b", 0, 1), SMALL["c"], Integer("o", 1, 3)])
    every = EVERY + np.array([0.0, 0.0, 0.0, 1.0])
    for seed in range((MODELS + 4) // 5):
        rng = np.random.default_rng(seed)
        signal = EVERY @ rng.normal(size=4) + rng.normal(size=len(EVERY))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process = optbinning.BinningProcess(list(rows), categorical_variables=["c"], special_codes=[seed])
            card = optbinning.Scorecard(process, LogisticRegression()).fit(rows, (signal > np.median(signal)) + 0)
        model = import_model(card, schema)
        good, sure = card.predict(rows) == 1, np.abs(card.decision_function(rows)) >= 1e-6
        for person, norm in itertools.product(range(seed % 18, len(EVERY), 18), ("l0", "l1", "l2", "linf")):
            there = every[(good != good[person]) & sure]
            for method in (Explainer(model), Explainer(model).using(Enumerate())):
                answer = method.explain(rows.iloc[person].to_dict(), target=int(not good[person]), distance=norm)
                if not len(there):
                    assert isinstance(answer, NoneExists)
                    continue
                assert isinstance(answer, Nearest)
                nearest = Distance(norm).between(schema, every[person], there).min()
                assert answer.upper == pytest.approx(nearest, abs=1e-12)
