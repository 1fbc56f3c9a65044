"""The desk's own description, as OpenAPI 3.1: every path, its bodies, its answers, and examples that work."""

from __future__ import annotations

from typing import Any

from ifonly.certificate.format import FORMAT, VERSION
from ifonly.service.json_schemas import shapes
from ifonly.service.limits import ServiceLimits
from ifonly.service.query_schemas import Shape, needs_search, ref
from ifonly.service.registry import ModelRegistry

ERRORS = {
    400: "The body is no JSON, or it is not clear where it ends.",
    401: "The key is missing or wrong.",
    404: "There is no such model.",
    405: "Another method is needed.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is of another type.",
    421: "The desk is not known under this name.",
    422: "The body is understood, but something in it is wrong.",
    429: "Too many are waiting; come again after Retry-After.",
    431: "The head of the request is too large.",
    500: "A bug.",
    503: "No process is ready, closing, or not done in time; come again after Retry-After, if there is one.",
}
JSON, EVENTS, HTML, FILE, PLAIN = (
    "application/json", "text/event-stream", "text/html", "application/octet-stream", "text/plain"
)  # fmt: skip
POSTED: dict[str, tuple[str, str, str, Shape]] = {
    "/v1/explain": ("The nearest alternative, or the proof that there is none", "Explain", JSON, ref("Explained")),
    "/v1/explain/stream": ("The same as server-sent events: `bounds` as they improve, then `answer` or `error`",
                           "Explain", EVENTS, {"type": "string"}),
    "/v1/diverse": ("Several alternatives, each the nearest that differs from those before", "Diverse", JSON,
                    ref("DiverseResults")),
    "/v1/predict": ("What the model says of a row", "Person", JSON, ref("Decision")),
    "/v1/rule": ("Is this a rule? Then in the words of the desk", "Rule", JSON, ref("Words")),
    "/v1/certify": ("The answer as a certificate that anyone can check", "Certify", FILE, {"type": "string"}),
    "/v1/report": ("The answer, or several, as a page to print", "Report", HTML, {"type": "string"}),
}  # fmt: skip
"""By path: what it does, its body, and its answer."""
GOT: dict[str, tuple[str, str, Shape]] = {
    "/v1/models": ("The models of this desk", JSON, ref("Models")),
    "/v1/schema": ("What a row of a model is, and what may be asked", JSON, ref("Schema")),
    "/livez": ("Does the server run? (liveness)", JSON, ref("Status")),
    "/healthz": ("Can questions be answered? (the same as /readyz)", JSON, ref("Status")),
    "/readyz": ("Can questions be answered? (readiness)", JSON, ref("Status")),
    "/metrics": ("Counts for Prometheus", PLAIN, {"type": "string"}),
    "/openapi.json": ("This description", JSON, {"type": "object"}),
}

PROBES = ("/livez", "/healthz", "/readyz")
"""Answered without the key, under any name of the machine."""


def description(registry: ModelRegistry, terms: ServiceLimits, version: str, *, keyed: bool) -> Shape:
    """Every path; examples are about the first person of the first model."""
    examples = _examples(registry)
    paths = {path: {"post": _posted(path, examples)} for path in POSTED}
    paths["/v1/check"] = {"post": _checking()}
    paths |= {path: {"get": _got(path, registry)} for path in GOT}
    if keyed:
        for path in (path for path in paths if path not in PROBES):
            next(iter(paths[path].values()))["security"] = [{"key": []}]
    components: Shape = {"schemas": shapes(registry, terms)}
    if keyed:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ifonly desk",
            "version": version,
            "description": "What would have to be different for another decision: nearest alternatives, proven.",
        },
        "paths": paths,
        "components": components,
    }


def _posted(path: str, examples: dict[str, Any]) -> Shape:
    about, body, kind, answer = POSTED[path]
    needed = {key: {"value": value} for key, value in examples[body].items()}
    return {
        "summary": about,
        "operationId": path.removeprefix("/v1/").replace("/", "_"),
        "requestBody": {"required": True, "content": {JSON: {"schema": ref(body), "examples": needed}}},
        "responses": {"200": _ok(kind, answer), **_errors(*ERRORS)},
    }


def _checking() -> Shape:
    file = {"schema": {"type": "string", "description": "The file that /v1/certify gives, or its JSON."}}
    known = {"format": {"const": FORMAT}, "version": {"const": VERSION}}
    data = {"schema": {"type": "object", "properties": known, "required": list(known)}}
    return {
        "summary": "Check a certificate in exact arithmetic",
        "operationId": "check",
        "requestBody": {"required": True, "content": {FILE: file, JSON: data}},
        "responses": {"200": _ok(JSON, ref("CheckResult")), **_errors(*(code for code in ERRORS if code != 404))},
    }


def _got(path: str, registry: ModelRegistry) -> Shape:
    about, kind, answer = GOT[path]
    told: Shape = {"summary": about, "operationId": path.strip("/").replace("/", "_").replace(".", "_")}
    wrong = [400, 405, 431, 500, *([] if path in PROBES else [401, 421])]
    if path == "/v1/schema":
        wrong.append(404)
        told["parameters"] = [{"name": "model", "in": "query", "schema": {"enum": list(registry.names)}}]
    if path in ("/healthz", "/readyz"):
        wrong.append(503)
    return {**told, "responses": {"200": _ok(kind, answer), **_errors(*sorted(wrong))}}


def _ok(kind: str, answer: Shape) -> Shape:
    return {"description": "The answer.", "content": {kind: {"schema": answer}}}


def _errors(*codes: int) -> Shape:
    told: Shape = {}
    for code in codes:
        told[str(code)] = {"description": ERRORS[code], "content": {JSON: {"schema": ref("Error")}}}
        if code in (429, 503):
            told[str(code)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return told


def _examples(registry: ModelRegistry) -> dict[str, Any]:
    """By body; of a shelf without people there is only the rule."""
    registered = next(iter(registry))
    name = registered.explainer.schema.names[0]
    rule = {"words": {"text": f"'{name}' is fixed"}}
    row = next(iter(registered.people.values()), None)
    if row is None or needs_search(registered):
        return {"Explain": {}, "Diverse": {}, "Report": {}, "Person": {}, "Certify": {}, "Rule": rule}
    asked = {"row": row, "query": {"distance": "l1", "constraints": [{"kind": "fixed", "feature": name}]}}
    several = {"row": row, "diversity": {"count": 3, "differ": "features"}}
    return {
        "Explain": {"plain": {"row": row}, "asked": {**asked, "seconds": 2, "language": "de", "path": True}},
        "Diverse": {"three": several},
        "Report": {"one": {"row": row}, "three": several},
        "Certify": {"plain": {"row": row}} if registered.certificates else {},
        "Person": {"row": {"row": row}},
        "Rule": rule,
    }
