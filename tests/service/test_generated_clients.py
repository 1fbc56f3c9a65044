"""Clients that two generators make from the desk's OpenAPI description call every endpoint of a running desk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from services import Served

KEY = "a key of this test"
HERE = Path(__file__).parent / "clients"
PYTHON_CONFIG = {"content_type_overrides": {"application/x-ndjson": "application/octet-stream"}}
"""For openapi-python-client, which knows no NDJSON (docs/desk.md)."""


@pytest.fixture(scope="module")
def keyed() -> Iterator[Served]:
    server = Served("--demo", "--seconds", "60", IFONLY_SERVICE_KEY=KEY)  # a notice takes many searches
    yield server
    server.end()


@pytest.fixture(scope="module")
def description(keyed: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("api") / "openapi.json"
    file.write_bytes(httpx.get(f"{keyed.address}/openapi.json", headers={"authorization": f"Bearer {KEY}"}).content)
    return file


@pytest.fixture(scope="module")
def row(keyed: Served) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx.get(f"{keyed.address}/v1/schema", headers=headers).json()["people"][0]["row"]


def operations(description: Path) -> set[str]:
    paths = json.loads(description.read_text())["paths"].values()
    return {operation["operationId"] for path in paths for operation in path.values()}


def run(*command: str | Path, given: str | None = None) -> str:
    done = subprocess.run([str(one) for one in command], text=True, capture_output=True, input=given, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(
    find_spec("openapi_python_client") is None, reason="openapi-python-client is not installed (extra `extras`)"
)
def test_openapi_python_client(keyed, description, row, tmp_path, monkeypatch) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**PYTHON_CONFIG, "post_hooks": []}))
    said = run(sys.executable, "-m", "openapi_python_client", "generate", "--path", description, "--meta", "none",
               "--config", config, "--output-path", tmp_path / "desk_client")  # fmt: skip
    assert "arning" not in said, said
    monkeypatch.syspath_prepend(str(tmp_path))
    made = import_module("desk_client").AuthenticatedClient(keyed.address, token=KEY, timeout=httpx.Timeout(60))
    with made as client:
        told = python_calls(client, row)
    assert set(told) == operations(description)
    refused = told.pop("recourse")
    assert refused.status_code == 422 and "--causes credit=FILE" in refused.parsed.error
    assert all(response.status_code == 200 and response.parsed is not None for response in told.values())
    read = {name: response.parsed for name, response in told.items()}
    assert read["explain"].answer.status == "nearest" and read["explain"].answer.changes[0].feature in row
    assert read["diverse"].answers[1].answer.to_dict() != read["diverse"].answers[0].answer.to_dict()
    assert "event: answer" in read["explain_stream"] and read["check"].verdict == "VALID"
    assert [json.loads(line)["status"] for line in told["explain_batch"].content.splitlines()] == [200, 422]
    assert read["v1_models"].models[0].name == read["v1_schema"].model == "credit"
    assert read["predict"].decision == "deny" and read["rule"].words == "AgeGroup is fixed"
    assert {read[name].status for name in ("livez", "healthz", "readyz")} == {"alive", "ready"}
    assert "<html" in read["report"] and "<html" in read["notice"] and "ifonly_service" in read["metrics"]


def python_calls(client: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Every operation of the generated Python client, called; the response by its name."""
    models, types = import_module("desk_client.models"), import_module("desk_client.types")

    def call(name: str, **given: Any) -> Any:
        return import_module(f"desk_client.api.default.{name}").sync_detailed(client=client, **given)

    def file(content: bytes) -> Any:
        import io

        return types.File(payload=io.BytesIO(content))

    person = models.Row.from_dict(row)
    query = models.Query.from_dict({
        "target": "approve", "distance": {"norm": "l1", "weights": {"AgeGroup": 2}},
        "constraints": ["AgeGroup is fixed", {"kind": "fixed", "feature": "isMale"}],
    })  # fmt: skip
    asked = models.ExplainRequest(row=person, query=query, seconds=5)
    lines = json.dumps({"row": row}).encode() + b"\n{}\n"
    told = {name: call(name) for name in ("v1_models", "livez", "healthz", "readyz", "metrics", "openapi_json")}
    told |= {name: call(name, model="credit") for name in ("v1_schema", "v1_json_schema")}
    told |= {name: call(name, body=asked) for name in ("explain", "explain_stream", "why")}
    told["explain_batch"] = call("explain_batch", body=file(lines))
    diversity = models.Diversity(count=2, differ=models.DiversityDiffer("features"))
    told["diverse"] = call("diverse", body=models.DiverseRequest(row=person, diversity=diversity))
    told["predict"] = call("predict", body=models.PredictRequest(row=person))
    told["rule"] = call("rule", body=models.RuleRequest(text="AgeGroup is fixed"))
    told["certify"] = call("certify", body=models.CertifyRequest(row=person))
    told["recourse"] = call("recourse", body=models.RecourseRequest(row=person))
    told["check"] = call("check", body=file(told["certify"].content))
    told["report"] = call("report", body=models.ReportRequest(row=person))
    told["notice"] = call("notice", body=models.NoticeRequest(row=person, form=models.NoticeRequestForm("gdpr")))
    return told


@pytest.mark.skipif(
    None in [shutil.which(name) for name in ("node", "openapi-ts", "tsc")],
    reason="needs node, openapi-ts and tsc (tools/check extras installs them)",
)
def test_hey_api_openapi_ts(keyed, description, row, tmp_path) -> None:
    run("openapi-ts", "-i", description, "-o", tmp_path / "generated", "-c", "@hey-api/client-fetch")
    shutil.copy(HERE / "every_endpoint.ts", tmp_path)
    (tmp_path / "node.d.ts").write_text(
        'declare module "node:fs" { function readFileSync(file: 0, text: "utf8"): string; }\n'
    )
    run("tsc", "--strict", "--module", "commonjs", "--moduleResolution", "node10", "--target", "es2022", "--lib", "es2022,dom,dom.iterable,dom.asynciterable",
        "--outDir", tmp_path / "out", tmp_path / "node.d.ts", tmp_path / "every_endpoint.ts")  # fmt: skip
    said = run("node", tmp_path / "out" / "every_endpoint.js", given=f"{keyed.address}\n{KEY}\n{json.dumps(row)}")
    told = json.loads(said.splitlines()[-1])
    wrong = told.pop("error")
    assert set(told) == operations(description)
    status, error = told.pop("recourse")
    assert status == 422 and "--causes credit=FILE" in error
    assert {name: status for name, (status, *_) in told.items() if status != 200} == {}
    assert told["explain"][1] == "nearest" and told["explain"][2] and set(told["explain"][2]) <= set(row)
    assert told["explain_stream"][1] == "nearest" and told["explain_batch"][1] == [200, 422]
    assert told["diverse"][1] == 2 and told["predict"][1] == "deny" and told["check"][1] == "VALID"
    assert told["rule"][1] == "AgeGroup is fixed" and wrong == [422, "text"] and told["why"][1] == "string"
    assert told["v1_models"][1] == ["credit"] and told["v1_schema"][1] == "credit"
    assert (told["livez"][1], told["readyz"][1], told["healthz"][1]) == ("alive", "ready", "ready")


def test_the_docs_name_the_setting_that_the_python_client_needs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "desk.md").read_text()
    assert "application/x-ndjson: application/octet-stream" in text
