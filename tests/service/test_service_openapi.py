"""The desk's description is true: its examples work, and answers have the shapes that it says."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest


@pytest.fixture
def api(visit) -> dict[str, Any]:
    return visit("GET", "/openapi.json").json()


def fits(api: dict[str, Any], shape: dict[str, Any], data: Any) -> None:
    whole = {**shape, "components": api["components"]}
    jsonschema.Draft202012Validator(whole).validate(data)


def test_the_shapes_are_json_schemas_and_all_references_lead_somewhere(api) -> None:
    assert api["openapi"] == "3.1.0"
    for shape in api["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(shape)
    names = {f"#/components/schemas/{name}" for name in api["components"]["schemas"]}
    assert {part.split('"')[0] for part in json.dumps(api).split('"$ref": "')[1:]} == names


def test_every_example_is_answered_as_described(visit, api) -> None:
    tried = 0
    for path, told in api["paths"].items():
        asked = told.get("post")
        if asked is None or path in ("/v1/check", "/v1/explain/batch"):
            continue
        content = asked["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            fits(api, content["schema"], example["value"])
            answer = visit.post(path, example["value"])
            assert answer.status_code == 200, answer.text
            (kind, shape), = asked["responses"]["200"]["content"].items()  # fmt: skip
            assert answer.headers["content-type"].startswith(kind)
            if kind == "application/json":
                fits(api, shape["schema"], answer.json())
            tried += 1
    assert tried >= 9


def test_answers_of_every_kind_have_the_shape(visit, api, people) -> None:
    fixed = [{"kind": "fixed", "feature": name} for name in people[3]]
    for body in ({"row": people[3], "query": {"constraints": fixed}}, {"row": people[3], "query": {"target": "deny"}},
                 {"row": people[3], "query": {"fewest_first": True}, "path": True}):  # fmt: skip
        fits(api, {"$ref": "#/components/schemas/ExplainRequest"}, body)
        fits(api, {"$ref": "#/components/schemas/ExplainResponse"}, visit.post("/v1/explain", body).json())
    fits(api, {"$ref": "#/components/schemas/DiverseResponse"}, visit.post("/v1/diverse", {"row": people[3], "diversity": {"count": 5},
         "query": {"constraints": fixed[1:]}}).json())  # fmt: skip
    fits(api, {"$ref": "#/components/schemas/ErrorResponse"}, visit.post("/v1/rule", {"text": "AgeGroup gos"}).json())
    for path in (
        "/v1/models",
        "/v1/schema",
        "/v1/schema?model=ruled",
        "/v1/json-schema",
        "/livez",
        "/healthz",
        "/readyz",
    ):
        shape = api["paths"][path.split("?")[0]]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        fits(api, shape, visit("GET", path).json())
    certificate = visit.post("/v1/certify", {"row": people[3]}).content
    checked = visit(
        "POST", "/v1/check", content=certificate, headers={"content-type": "application/octet-stream"}
    ).json()
    fits(api, {"$ref": "#/components/schemas/CheckResponse"}, checked)


def test_every_path_is_described_and_every_status_that_is_given(visit, api, inline) -> None:
    from ifonly.service.app import BATCH_PATH, CHECK_PATH
    from ifonly.service.openapi import POST_PATHS

    routes = visit.desk.routes
    assert set(api["paths"]) == {path for path in routes if path != "/" and not path.startswith("/page/")}
    assert {path: tuple(method.upper() for method in one) for path, one in api["paths"].items()} == {
        path: routes[path].methods[:1] for path in api["paths"]
    }
    for path in (*POST_PATHS, CHECK_PATH, BATCH_PATH):
        given = api["paths"][path]["post"]["responses"]
        assert {"200", "400", "413", "415", "422", "429", "503"} <= set(given)


def test_the_description_is_the_same_for_every_model_but_for_its_examples(api) -> None:
    from ifonly.cli.serve import demonstration
    from ifonly.service import ModelRegistry, ServiceLimits
    from ifonly.service.access import AccessPolicy
    from ifonly.service.openapi import openapi

    def without_examples(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: without_examples(value) for key, value in data.items() if key != "examples"}
        return [without_examples(one) for one in data] if isinstance(data, list) else data

    other = openapi(ModelRegistry(demonstration()), ServiceLimits(), api["info"]["version"], AccessPolicy())
    assert without_examples(json.loads(json.dumps(other))) == without_examples(api)
