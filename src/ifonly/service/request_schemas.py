"""JSON Schema of the bodies that requests about one model may have: its features, options, classes and limits.

The OpenAPI description is the same for every model, so that a client generated from it can talk to any desk; this one
says what a particular model takes. What JSON Schema cannot express is checked by the service (`query_schemas`).
"""

from __future__ import annotations

from typing import Any

from ifonly.notices.letter import FORMS
from ifonly.problem.distance import MOST
from ifonly.results.languages import LANGUAGES
from ifonly.schema import Choice, Integer, Numeric
from ifonly.service.limits import ServiceLimits
from ifonly.service.query_schemas import (
    FLAG,
    JsonSchema,
    defined,
    needs_target,
    nullable,
    object_of,
    option_schema,
    query_schemas,
    rule_text_schema,
)
from ifonly.service.registry import ModelRegistry, RegisteredModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def request_schemas(registry: ModelRegistry, limits: ServiceLimits) -> dict[str, JsonSchema]:
    """The JSON Schema document of each model, by its name: the bodies are definitions in it."""
    return {
        registered.name: {
            "$schema": DIALECT,
            "title": f"Bodies of requests about {registered.name}",
            "$defs": {
                "Row": _row(registered),
                **query_schemas(registered, limits),
                **_bodies(registered, limits, first=k == 0),
            },
        }
        for k, registered in enumerate(registry)
    }


def _row(registered: RegisteredModel) -> JsonSchema:
    """A row of a model: entries that are no features are ignored."""
    features = {feature.name: _value(feature) for feature in registered.explainer.schema.features}
    return {
        "type": "object",
        "properties": features,
        "required": list(features),
        "title": f"A row for {registered.name}",
    }


def _value(feature: Any) -> JsonSchema:
    about = {"description": f"{feature.label}{f' ({feature.unit})' if feature.unit else ''}"} if feature.label else {}
    if isinstance(feature, Choice):
        return {**option_schema(feature), **about}
    assert isinstance(feature, Numeric)
    schema = {"type": "integer" if feature.kind == "integer" else "number", "minimum": feature.lower,
              "maximum": feature.upper, **about}  # fmt: skip
    if isinstance(feature, Integer) and feature.step > 1 and feature.lower % feature.step == 0:
        schema["multipleOf"] = feature.step
    return nullable(schema) if feature.missing else schema


def _bodies(registered: RegisteredModel, limits: ServiceLimits, *, first: bool) -> dict[str, JsonSchema]:
    """Bodies by the names that they have in the OpenAPI description; only the first model need not be named."""
    names: list[str | None] = [registered.name, None] if first else [registered.name]
    model: JsonSchema = {"model": {"enum": names, "description": "The first, if it is left out or null."}}

    def body(required: JsonSchema, optional: JsonSchema | None = None) -> JsonSchema:
        more = optional or {}
        return object_of(required, {**model, **more}) if first else object_of({**required, **model}, more)

    def with_query(name: str) -> tuple[JsonSchema, JsonSchema]:
        needed = needs_target(registered)
        query: JsonSchema = {"query": defined(name) if needed else nullable(defined(name))}
        return (
            {"row": defined("Row"), **(query if needed else {})},
            {**({} if needed else query), **_options(limits)},
        )

    required, optional = with_query("Query")
    plain_required, plain_optional = with_query("PlainQuery")
    diverse = body({**plain_required, "diversity": _diversity(limits)}, plain_optional)
    language = {"language": {"enum": list(LANGUAGES)}}
    bodies = {
        "ExplainRequest": body(required, optional),
        "DiverseRequest": diverse,
        "ReportRequest": {"anyOf": [body(required, {**optional, "diversity": {"type": "null"}}), diverse]},
        "NoticeRequest": body(required, {**optional, "form": {"enum": list(FORMS)}}),
        "PredictRequest": body({"row": defined("Row")}),
        "RuleRequest": body({"text": rule_text_schema(registered, limits)}, language),
    }
    if registered.causes is not None:
        bodies["RecourseRequest"] = body(required, optional)
    return {**bodies, **({"CertifyRequest": body(*with_query("CertifiedQuery"))} if registered.certificates else {})}


def _options(limits: ServiceLimits) -> JsonSchema:
    """The optional entries of a body with a query."""
    return {
        "seconds": {"type": ["number", "null"], "exclusiveMinimum": 0,
                    "description": f"Time limit of the search; at most {limits.seconds:g}."},
        "language": {"enum": list(LANGUAGES)},
        "path": {**FLAG, "description": "Also the score along the path to the answer."},
    }  # fmt: skip


def _diversity(limits: ServiceLimits) -> JsonSchema:
    """How several answers differ: in features, which needs no distance, or by a distance."""
    count: JsonSchema = {"count": {"type": "integer", "minimum": 1, "maximum": limits.answers}}
    apart = {"apart": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST}}
    return {"anyOf": [
        object_of({**count, "differ": {"const": "features"}}, {**apart, "apart_distance": {"type": "null"}}),
        object_of(count, {**apart, "differ": {"enum": ["distance", "values"]},
                          "apart_distance": nullable(defined("Distance"))}),
    ]}  # fmt: skip
