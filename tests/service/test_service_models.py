"""Other models than networks of two classes: trees, regressions, several classes, rows that lack a number."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ifonly import Categorical, Explainer, Integer, Real, Schema, check
from ifonly.service import ModelRegistry, RegisteredModel, ServiceLimits
from ifonly.service.handler import Handler

pytest.importorskip("sklearn", reason="the models of these tests are scikit-learn's")

SCHEMA = Schema(
    (Real("income", 0, 100, missing=True), Integer("age", 18, 90), Categorical("<b>job", ("handler", "<i>\x1b[31m")))
)
ROW = {"income": 20.0, "age": 30, "<b>job": "<i>\x1b[31m"}


@pytest.fixture(scope="module")
def handler() -> Handler:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    random = np.random.default_rng(0)
    rows = np.column_stack(
        [random.uniform(0, 100, 300), random.integers(18, 91, 300), *np.eye(2)[random.integers(0, 2, 300)].T]
    )
    scores = rows[:, 0] + rows[:, 1]
    imputed = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    models = {
        "several": imputed.fit(rows, np.digitize(scores, [60, 110])),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows, scores > 80),
        "regression": RandomForestRegressor(3, max_depth=3, random_state=0).fit(rows, scores),
    }
    filled = SCHEMA.replace(Real("income", 0, 100))
    registered_models = [
        RegisteredModel(name=name, explainer=Explainer(model, schema=SCHEMA if name == "several" else filled))
        for name, model in models.items()
    ]
    handler = Handler(ModelRegistry(registered_models), ServiceLimits(), slow=True)
    handler.warm_up()
    return handler


def ask(handler: Handler, path: str, /, **body: Any) -> Any:
    told = handler.reply(path, json.dumps(body).encode())
    assert told is not None
    return told.status, json.loads(told.body) if told.content_type == "application/json" else told.body


def test_several_classes_and_a_missing_number(handler) -> None:
    status, told = ask(handler, "/v1/predict", row=ROW)
    assert status == 200 and told["decision"] in (0, 1, 2) and told["score_margin"] >= 0
    assert set(told["probabilities"]) == {"0", "1", "2"} and len(told["scores"]) == 3
    assert ask(handler, "/v1/explain", row=ROW)[0] == 422  # three classes: which?
    wanted = next(name for name in (0, 1, 2) if name != told["decision"])
    with_missing = {**ROW, "income": None}
    for row in (ROW, with_missing):
        status, answer = ask(handler, "/v1/explain", row=row, query={"target": wanted}, path=True)
        assert (
            status == 200 and answer["answer"]["status"] == "nearest" and answer["answer"]["decision_after"] == wanted
        )
        assert (answer["path"] is None) == (row is with_missing)
    status, told = ask(handler, "/v1/predict", row=with_missing)
    assert status == 200 and told["decision"] == answer["answer"]["decision_before"]


def test_trees_are_offered_with_certificates(handler, tmp_path) -> None:
    registered = handler.registry.named("tree")
    about = registered.to_dict(ServiceLimits())
    assert about["certificates"] and "network" not in about["kind"]
    assert ask(handler, "/v1/explain", model="tree", row=ROW)[1]["answer"]["status"] == "nearest"
    status, told = ask(handler, "/v1/certify", model="tree", row=ROW)
    (tmp_path / "tree.cert").write_bytes(told)
    assert status == 200 and check(tmp_path / "tree.cert").valid


def test_a_regression_is_asked_for_a_score(handler) -> None:
    status, told = ask(handler, "/v1/predict", model="regression", row=ROW)
    assert status == 200 and told["decision"] is None and told["score_margin"] is None
    status, answer = ask(
        handler,
        "/v1/explain",
        model="regression",
        row=ROW,
        query={"target": {"at_least": told["scores"][0] + 20}},
        path=True,
    )
    assert status == 200 and answer["answer"]["status"] == "nearest" and answer["path"] is None
    assert ask(handler, "/v1/explain", model="regression", row=ROW)[0] == 422


def test_names_with_markup_and_escapes_are_text(handler) -> None:
    fixed = [{"kind": "fixed", "feature": name} for name in ROW]
    for path, more in (("/v1/explain", {}), ("/v1/explain", {"query": {"constraints": fixed}}), ("/v1/report", {})):
        body = json.dumps({"model": "tree", "row": ROW, **more}).encode()
        told = handler.reply(path, body)
        assert told is not None and told.status == 200 and b"\x1b" not in told.body
        if path == "/v1/report":
            assert b"<b>job" not in told.body and b"<i>" not in told.body
        else:
            data = json.loads(told.body)
            assert "\x1b" not in data["sentence"] + data["exact"] + "".join(way["sentence"] for way in data["help"])
