"""Forty things people get wrong: each gives one sentence that names the offender."""

from __future__ import annotations

import json
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from ifonly import (
    Allowed,
    Binary,
    Categorical,
    CausalModel,
    ClassTarget,
    Distance,
    Explainer,
    Fixed,
    Imputable,
    Integer,
    Limits,
    Network,
    OnlyUp,
    Ordinal,
    Range,
    Real,
    Schema,
    Scorecard,
    ScoreTarget,
    certify,
    import_model,
    load_model,
)
from ifonly.causes import LinearEquation
from ifonly.certifying import certify_none, certify_recourse
from ifonly.errors import IfonlyError
from ifonly.methods import MipObj, Search, Tolerances
from ifonly.model import load_network, network_model, save_network
from ifonly.plausibility import Mahalanobis, Near
from ifonly.population import Output
from ifonly.schema import schema_from_json

SCHEMA = Schema(
    [Integer("Age", 17, 90), Real("Income", 0, 1e6), Categorical("Job", ["clerk", "nurse"]), Binary("Owner")]
)
NETWORK = Network.of([(np.ones((1, 5)), [-40.0])])
EXPLAINER = Explainer(network_model(NETWORK, SCHEMA, classes=("denied", "approved")))
ANN = {"Age": 30, "Income": 5.0, "Job": "clerk", "Owner": False}
TABLE = {"Age": [30, 40, 50, 60], "Income": [5.0, 9.0, 70.0, 1.0], "Job": ["clerk", "nurse"] * 2, "Owner": [False] * 4}
LACKING = Explainer(
    network_model(
        NETWORK,
        Schema([SCHEMA["Age"], Real("Income", 0, 1e6, missing=True), *SCHEMA.features[2:]]),
        classes=("no", "yes"),
    )
)
Wrong: TypeAlias = Callable[[Path], Any]


def ask(**changes: Any) -> Any:
    return EXPLAINER.explain({**ANN, **changes})


def torch_module(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    layers = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Softsign(), torch.nn.Linear(3, 1))
    return import_model(layers, SCHEMA)


def sklearn_network(folder: Path) -> Any:
    networks = pytest.importorskip("sklearn.neural_network")
    x = SCHEMA.encode(SCHEMA.sample(40, np.random.default_rng(0)))
    model = networks.MLPClassifier((3,), solver="lbfgs", max_iter=5, tol=1.0).fit(x / 1e6, np.arange(40) % 2)
    model.activation = "cube"
    return import_model(model, SCHEMA)


def points_for(name: str, bins: list[Any]) -> Any:
    return Explainer(Scorecard.from_dict({"cutoff": 1, "features": {name: bins}}), schema=SCHEMA)


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def truncated(folder: Path) -> Any:
    save_network(NETWORK, folder / "net.npz")
    return load_network(written(folder, "half.npz", (folder / "net.npz").read_bytes()[:200]))


def schema_file(folder: Path, content: str) -> Any:
    return Schema.load(written(folder, "people.json", content.encode()))


def sklearn_encoder(folder: Path) -> Any:
    encoding, linear = pytest.importorskip("sklearn.preprocessing"), pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    encoder = encoding.OneHotEncoder(handle_unknown="ignore")
    model = pipeline.make_pipeline(encoder, linear.LogisticRegression()).fit([["01067"], ["10115"]] * 9, [0, 1] * 9)
    return import_model(model, Schema([Categorical("Town", [1067, 10115])]))


WRONG: dict[str, tuple[Wrong, str]] = {
    "an encoder that knows none of the options": (sklearn_encoder, "'01067', '10115'"),
    "a cell by either decimal mark": (lambda f: ask(Income="€ 10.000"), "10 or 10000"),
    # rows
    "a number out of bounds": (lambda f: ask(Age=16), "Age"),
    "half a year": (lambda f: ask(Age=30.5), "30.5"),
    "text for a number": (lambda f: ask(Income="plenty"), "plenty"),
    "NaN": (lambda f: ask(Income=math.nan), "Income"),
    "an unknown category": (lambda f: ask(Job="pilot"), "pilot"),
    "another type": (lambda f: ask(Owner=[True]), "Owner"),
    "missing": (lambda f: ask(Job=None), "Job"),
    "a feature too few": (lambda f: EXPLAINER.explain({"Age": 30}), "Income"),
    "a value too few": (lambda f: EXPLAINER.explain([30, 5.0, "clerk"]), "3"),
    "a shape": (lambda f: EXPLAINER.explain(np.zeros((2, 4))), "(2, 4)"),
    "waiting that is no yes or no": (lambda f: EXPLAINER.prepare(wait="long"), "long"),
    "preparing for a class that is not there": (lambda f: EXPLAINER.prepare(target="perhaps"), "perhaps"),
    "no row at all": (lambda f: EXPLAINER.explain(7), "7"),
    "a table to a place that is not there": (
        lambda f: EXPLAINER.explain_to(f / "no" / "a.csv", [ANN]),
        "folder is not there",
    ),
    "formulas that are escaped in no csv": (lambda f: Output(f / "a.jsonl", escape_formulas=True), "a.jsonl"),
    "a table to a file of no kind": (lambda f: EXPLAINER.explain_to(f / "a.xlsx", [ANN]), "a.xlsx"),
    "a column to keep that is not there": (
        lambda f: EXPLAINER.explain_to(f / "a.csv", {n: [v] for n, v in ANN.items()}, keep=["Name"]),
        "Name",
    ),
    "a table without a column": (lambda f: EXPLAINER.explain_many({"Age": [3]}), "Income"),
    "columns of two lengths": (
        lambda f: EXPLAINER.explain_many({n: [v] * (n != "Job") for n, v in ANN.items()}),
        "Job",
    ),
    # certificates of what they cannot state
    "a certificate near rows of the data": (
        lambda f: certify(EXPLAINER, ANN, constraints=[Near.of(SCHEMA, TABLE, 0.3)]),
        "'within 0.3 (l1) of a row of the data'",
    ),
    "a certificate of a correlated cost": (
        lambda f: certify(EXPLAINER, ANN, distance=Mahalanobis.of(SCHEMA, TABLE)),  # type: ignore[arg-type]
        "Mahalanobis",
    ),
    "a certificate of filling in": (
        lambda f: certify(LACKING, {**ANN, "Income": None}, constraints=[Imputable("Income")]),
        "Income",
    ),
    "reasons of what there is": (lambda f: certify_none(EXPLAINER, ANN), "nearest"),
    "reasons by another method": (lambda f: certify_none(EXPLAINER.using(MipObj()), ANN), "search"),
    "recourse by another method": (
        lambda f: certify_recourse(
            EXPLAINER.using(MipObj()), ANN, CausalModel(SCHEMA, {"Income": LinearEquation({"Age": 1})})
        ),
        "search",
    ),
    "recourse without causes": (lambda f: certify_recourse(EXPLAINER, ANN, "Age"), "Age"),  # type: ignore[arg-type]
    # schemas
    "bounds the wrong way round": (lambda f: Real("Income", 2, 1), "Income"),
    "missing that is neither true nor false": (lambda f: Real("Income", 0, 1, missing="no"), "Income"),  # type: ignore[arg-type]
    "filling in what is never missing": (lambda f: EXPLAINER.explain(ANN, constraints=[Imputable("Income")]), "Income"),
    "filling in for nothing": (lambda f: Imputable("Income", 0.0), "Income"),
    "an infinite bound": (lambda f: Real("Income", 0, math.inf), "inf"),
    "an option twice": (lambda f: Categorical("Job", ["a", "a"]), "Job"),
    "an encoding that is none": (lambda f: Ordinal("Job", ["a"], "binary"), "binary"),  # type: ignore[arg-type]
    "a feature twice": (lambda f: Schema([Binary("Owner"), Binary("Owner")]), "Owner"),
    "a column order with a gap": (lambda f: Schema(SCHEMA.features, SCHEMA.columns[1:]), "Age"),
    "a kind that is none": (lambda f: schema_from_json(json.loads(SCHEMA_JSON.replace("real", "complex"))), "complex"),
    "a version of the future": (lambda f: schema_file(f, '{"format": "ifonly-schema", "version": 2}'), "people.json"),
    "a broken schema file": (lambda f: schema_file(f, '{"format"'), "people.json"),
    "a schema that is not there": (lambda f: Schema.load(f / "gone.json"), "gone.json"),
    # models
    "a model of another width": (lambda f: Explainer(Network.of([([[1.0]], [0.0])]), schema=SCHEMA), "5"),
    "a NaN in the weights": (lambda f: Network.of([([[math.nan]], [0.0])]), "weight"),
    "layers that do not meet": (lambda f: Network.of([(np.ones((2, 5)), [0, 0]), (np.ones((1, 3)), [0])]), "3"),
    "a model of no known kind": (lambda f: Explainer(object(), schema=SCHEMA), "builtins.object"),
    "a function that can only be asked": (
        lambda f: Explainer(lambda rows: rows, schema=SCHEMA),
        "nothing can be proven",
    ),
    "points for no feature": (lambda f: points_for("Shoe size", [{"points": 1}]), "Shoe size"),
    "points for no option": (lambda f: points_for("Job", [{"is": "clark", "points": 1}, {"points": 0}]), "clark"),
    "bins that end too soon": (lambda f: points_for("Age", [{"below": 50, "points": 1}]), "90"),
    "bins from high to low": (
        lambda f: points_for("Age", [{"below": 5, "points": 1}, {"below": 4, "points": 1}]),
        "Age",
    ),
    "points in words": (lambda f: points_for("Age", [{"points": "many"}]), "many"),
    "a table that is no scorecard": (lambda f: load_model(written(f, "t.csv", b"a,b\n1,2\n"), SCHEMA), "t.csv"),
    "an unsupported torch layer": (torch_module, "Softsign"),
    "an unsupported activation": (sklearn_network, "cube"),
    "a truncated file": (truncated, "half.npz"),
    "a pickle": (lambda f: load_model(written(f, "model.pkl", pickle.dumps(1)), SCHEMA), "model.pkl"),
    "a pickle in disguise": (lambda f: load_model(written(f, "model.npz", pickle.dumps(1)), SCHEMA), "model.npz"),
    "a file of no known kind": (lambda f: load_model(f / "model.h5", SCHEMA), "model.h5"),
    # questions
    "an unknown class": (lambda f: EXPLAINER.explain(ANN, target="perhaps"), "perhaps"),
    "a negative margin": (lambda f: ClassTarget("approved", margin=-1.0), "-1.0"),
    "a score range that is empty": (lambda f: ScoreTarget(at_least=2, at_most=1), "[2, 1]"),
    "an unknown distance": (lambda f: EXPLAINER.explain(ANN, distance="l3"), "l3"),
    "a weight of nothing": (lambda f: EXPLAINER.explain(ANN, distance=Distance(weights={"Agee": 1})), "Agee"),
    "a weight below zero": (lambda f: Distance(weights={"Age": -2}), "Age"),
    "a range of nearly nothing": (lambda f: Distance("l1").scale_vector(Schema([Real("thin", 0, 1e-310)])), "thin"),
    "a misspelt feature": (lambda f: EXPLAINER.explain(ANN, constraints=[Fixed("Ownr")]), "Ownr"),
    "an order where there is none": (lambda f: EXPLAINER.explain(ANN, constraints=[OnlyUp("Job")]), "Job"),
    "a range of words": (lambda f: EXPLAINER.explain(ANN, constraints=[Range("Job", 0, 1)]), "Job"),
    "an allowed value that is none": (lambda f: EXPLAINER.explain(ANN, constraints=[Allowed("Job", ["x"])]), "'x'"),
    "a constraint that is none": (lambda f: EXPLAINER.explain(ANN, constraints=[7]), "got 7"),  # type: ignore[list-item]
    "a limit of zero": (lambda f: Limits(seconds=0), "seconds"),
    "a tolerance of zero": (lambda f: Tolerances(relative_gap=0.0), "relative_gap"),
    "a way of probing that there is not": (lambda f: Search(probing="sometimes"), "sometimes"),
    "no threads": (lambda f: Explainer(NETWORK, schema=SCHEMA, threads=0), "0"),
}
SCHEMA_JSON = json.dumps({"format": "ifonly-schema", "version": 1, "features": [f.to_dict() for f in SCHEMA]})


@pytest.mark.parametrize("name", WRONG)
def test_one_sentence_that_names_the_offender(name: str, tmp_path: Path) -> None:
    wrong, offender = WRONG[name]
    with pytest.raises(IfonlyError) as caught:
        wrong(tmp_path)
    message = str(caught.value)
    assert offender in message
    assert message[0].isupper() or message[0] == "'"
    assert "\n" not in message
    assert re.search(r"[.?)]$", message)
    assert not re.search(r"\. [A-Z]", message), "more than one sentence"
    assert isinstance(caught.value, ValueError)


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 40
