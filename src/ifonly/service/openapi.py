"""OpenAPI 3.1 description of the service: every path with its request bodies, its responses and examples."""

from __future__ import annotations

from typing import Any

from ifonly.certificate.format import FORMAT, VERSION
from ifonly.service.access import AccessPolicy
from ifonly.service.batch import NDJSON
from ifonly.service.json_schemas import component_schemas, ref
from ifonly.service.limits import ServiceLimits
from ifonly.service.query_schemas import JsonSchema, needs_target
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
    431: "The header of the request is too large.",
    500: "A bug.",
    503: "No process is ready, closing, or not done in time; come again after Retry-After, if there is one.",
}
JSON, EVENTS, HTML, FILE, PLAIN = (
    "application/json", "text/event-stream", "text/html", "application/octet-stream", "text/plain"
)  # fmt: skip
POST_PATHS: dict[str, tuple[str, str, str, JsonSchema]] = {
    "/v1/explain": ("The nearest alternative, or the proof that there is none", "ExplainRequest", JSON,
                    ref("ExplainResponse")),
    "/v1/explain/stream": ("The same as server-sent events: `bounds` as they improve, then `answer` or `error`",
                           "ExplainRequest", EVENTS, {"type": "string"}),
    "/v1/diverse": ("Several alternatives, each the nearest that differs from those before", "DiverseRequest", JSON,
                    ref("DiverseResponse")),
    "/v1/predict": ("The model's decision and scores of a row", "PredictRequest", JSON, ref("PredictResponse")),
    "/v1/rule": ("Check a rule in words, and write it in the standard form", "RuleRequest", JSON, ref("RuleResponse")),
    "/v1/certify": ("The answer as a certificate that anyone can check", "CertifyRequest", FILE,
                    {"type": "string", "format": "binary"}),
    "/v1/report": ("The answer, or several, as a page to print", "ReportRequest", HTML, {"type": "string"}),
    "/v1/notice": ("The notice for a person who is not decided as asked, as a page", "NoticeRequest", HTML,
                   {"type": "string"}),
    "/v1/why": ("The smallest set of values that decides a row alone, with its proof", "ExplainRequest", JSON,
                ref("WhyResponse")),
    "/v1/recourse": ("The cheapest action, when other features follow their causes, with what follows from it",
                     "RecourseRequest", JSON, ref("RecourseResponse")),
}  # fmt: skip
"""By path: a summary, the schema of the body, and the content type and schema of the response."""
GET_PATHS: dict[str, tuple[str, str, JsonSchema]] = {
    "/v1/models": ("The models of this desk", JSON, ref("ModelsResponse")),
    "/v1/schema": ("The schema of a model's rows, its rules and limits", JSON, ref("SchemaResponse")),
    "/v1/json-schema": (
        "JSON Schema of the bodies that a model takes, by the names of the bodies here",
        JSON,
        {"type": "object"},
    ),
    "/livez": ("Does the server run? (liveness)", JSON, ref("StatusResponse")),
    "/healthz": ("Can requests be answered? (the same as /readyz)", JSON, ref("StatusResponse")),
    "/readyz": ("Can requests be answered? (readiness)", JSON, ref("StatusResponse")),
    "/metrics": ("Counts for Prometheus", PLAIN, {"type": "string"}),
    "/openapi.json": ("This description", JSON, {"type": "object"}),
}

MODEL_PATHS = ("/v1/schema", "/v1/json-schema")
"""About one model: ?model=NAME, or the first."""
_TO_NAME = str.maketrans("/.-", "___")
PROBES = ("/livez", "/healthz", "/readyz")
"""Answered without the key, under any name of the machine."""


def openapi(registry: ModelRegistry, limits: ServiceLimits, version: str, access: AccessPolicy) -> JsonSchema:
    """The whole description; its examples are about the first person of the first model."""
    examples = _examples(registry)
    paths = {path: {"post": _post(path, examples)} for path in POST_PATHS}
    paths["/v1/check"] = {"post": _check()}
    paths["/v1/explain/batch"] = {"post": _batch(limits)}
    paths |= {path: {"get": _get(path)} for path in GET_PATHS}
    if access.key:
        for path in (path for path in paths if path not in PROBES):
            next(iter(paths[path].values()))["security"] = [{"key": []}]
    components: JsonSchema = {"schemas": component_schemas(limits)}
    if access.key:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ifonly desk",
            "version": version,
            "description": "What would have to be different for another decision: nearest alternatives, proven.",
        },
        "servers": [{"url": access.root_path or "/"}],
        "paths": paths,
        "components": components,
    }


def _post(path: str, examples: dict[str, Any]) -> JsonSchema:
    summary, body, content_type, schema = POST_PATHS[path]
    named = {key: {"value": value} for key, value in examples[body].items()}
    return {
        "summary": summary,
        "operationId": path.removeprefix("/v1/").translate(_TO_NAME),
        "requestBody": {"required": True, "content": {JSON: {"schema": ref(body), "examples": named}}},
        "responses": {"200": _ok(content_type, schema), **_errors(*ERRORS)},
    }


def _check() -> JsonSchema:
    """One content type, though JSON may be sent as such: several confuse generators of clients."""
    about = f"The file that /v1/certify gives, or its JSON (`format`: {FORMAT!r}, `version`: {VERSION})."
    file = {"schema": {"type": "string", "format": "binary", "description": about}}
    return {
        "summary": "Check a certificate in exact arithmetic",
        "operationId": "check",
        "requestBody": {"required": True, "content": {FILE: file}},
        "responses": {"200": _ok(JSON, ref("CheckResponse")), **_errors(*(code for code in ERRORS if code != 404))},
    }


def _batch(limits: ServiceLimits) -> JsonSchema:
    lines = {"schema": {"type": "string", "format": "binary", "description": "An ExplainRequest per line."}}
    about = (
        "The answer has a line per request, in their order: `line`, its number in the body, `status`, and the entries "
        f"of ExplainResponse or ErrorResponse. At most {limits.batch_lines:,} lines."
    )
    return {
        "summary": "The nearest alternatives of many rows, as a stream",
        "description": about,
        "operationId": "explain_batch",
        "requestBody": {"required": True, "content": {NDJSON: lines}},
        "responses": {"200": _ok(NDJSON, {"type": "string"}), **_errors(*(code for code in ERRORS if code != 404))},
    }


def _get(path: str) -> JsonSchema:
    summary, content_type, schema = GET_PATHS[path]
    operation: JsonSchema = {"summary": summary, "operationId": path.strip("/").translate(_TO_NAME)}
    statuses = [400, 405, 431, 500, *([] if path in PROBES else [401, 421])]
    if path in MODEL_PATHS:
        statuses.append(404)
        operation["parameters"] = [{"name": "model", "in": "query", "required": False, "schema": {"type": "string"}}]
    if path in ("/healthz", "/readyz"):
        statuses.append(503)
    return {**operation, "responses": {"200": _ok(content_type, schema), **_errors(*sorted(statuses))}}


def _ok(content_type: str, schema: JsonSchema) -> JsonSchema:
    return {"description": "The answer.", "content": {content_type: {"schema": schema}}}


def _errors(*statuses: int) -> JsonSchema:
    responses: JsonSchema = {}
    for status in statuses:
        response: JsonSchema = {"description": ERRORS[status], "content": {JSON: {"schema": ref("ErrorResponse")}}}
        if status in (429, 503):
            response["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
        responses[str(status)] = response
    return responses


def _examples(registry: ModelRegistry) -> dict[str, Any]:
    """By name of the body's schema; of a registry without people there is only the rule."""
    registered = next(iter(registry))
    name = registered.explainer.schema.names[0]
    rule = {"words": {"text": f"'{name}' is fixed"}}
    row = next(iter(registered.people.values()), None)
    if row is None or needs_target(registered):
        return {
            "ExplainRequest": {},
            "DiverseRequest": {},
            "ReportRequest": {},
            "NoticeRequest": {},
            "PredictRequest": {},
            "CertifyRequest": {},
            "RecourseRequest": {},
            "RuleRequest": rule,
        }
    with_query = {"row": row, "query": {"distance": "l1", "constraints": [{"kind": "fixed", "feature": name}]}}
    diverse = {"row": row, "diversity": {"count": 3, "differ": "features"}}
    return {
        "ExplainRequest": {
            "plain": {"row": row},
            "asked": {**with_query, "seconds": 2, "language": "de", "path": True},
        },
        "DiverseRequest": {"three": diverse},
        "RecourseRequest": {} if registered.causes is None else {"plain": {"row": row}},
        "ReportRequest": {"one": {"row": row}, "three": diverse},
        "NoticeRequest": {"gdpr": {"row": row, "form": "gdpr"}},
        "CertifyRequest": {"plain": {"row": row}} if registered.certificates else {},
        "PredictRequest": {"row": {"row": row}},
        "RuleRequest": rule,
    }
