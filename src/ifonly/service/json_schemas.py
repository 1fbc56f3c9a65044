"""JSON schemas of requests and responses, as the components of an OpenAPI description. Tests hold them to the service.

The schema of an answer follows from the types of `Answer`'s fields, so a field that is added there is described here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from ifonly.notices.letter import FORMS
from ifonly.problem.distance import MOST
from ifonly.results.answer import DERIVED, OPTIONAL, Answer, Change, entries_of
from ifonly.results.plain_language import LANGUAGES
from ifonly.results.stop import Stop
from ifonly.schema import Choice, Integer, Numeric, Value
from ifonly.service.limits import ServiceLimits
from ifonly.service.query_schemas import (
    FLAG,
    NUMBER,
    JsonSchema,
    array_of,
    needs_target,
    nullable,
    object_of,
    option_schema,
    query_schemas,
    ref,
    rule_text_schema,
)
from ifonly.service.registry import ModelRegistry, RegisteredModel

TEXT: JsonSchema = {"type": "string"}
COUNT: JsonSchema = {"type": "integer", "minimum": 0}
OBJECT: JsonSchema = {"type": "object"}
VALUE: JsonSchema = {"type": ["string", "number", "boolean", "null"]}
"""A value of a row, or a class."""
ROW: JsonSchema = {"type": "object", "additionalProperties": VALUE}


def component_schemas(registry: ModelRegistry, limits: ServiceLimits) -> dict[str, JsonSchema]:
    """All components by name."""
    rows = {f"Row{k}": _row(registered) for k, registered in enumerate(registry)}
    return {
        **rows,
        "Row": {"anyOf": [ref(name) for name in rows]},
        **_requests(registry, limits),
        **_answer_responses(),
        **_other_responses(),
    }


# ---------------------------------------------------------------------- requests


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


def _requests(registry: ModelRegistry, limits: ServiceLimits) -> dict[str, JsonSchema]:
    """Bodies, each with one alternative per model."""
    models = list(enumerate(registry))
    explain = [_query_body(registered, limits, f"Query{k}", k) for k, registered in models]
    plain = [_query_body(registered, limits, f"PlainQuery{k}", k) for k, registered in models]
    diverse = [object_of({**required, "diversity": _diversity(limits, k)}, optional)
               for k, (required, optional) in enumerate(plain)]  # fmt: skip
    single = [object_of(required, {**optional, "diversity": {"type": "null"}}) for required, optional in explain]
    parts: dict[str, JsonSchema] = {}
    for k, registered in models:
        parts |= query_schemas(registered, limits, k)
    bodies = {
        "ExplainRequest": [object_of(*body) for body in explain],
        "DiverseRequest": diverse,
        "ReportRequest": [*single, *diverse],
        "NoticeRequest": [object_of(required, {**optional, "form": {"enum": list(FORMS)}})
                          for required, optional in explain],
        "CertifyRequest": [object_of(*_query_body(registered, limits, f"CertifiedQuery{k}", k))
                           for k, registered in models if registered.certificates],
        "RecourseRequest": [object_of(*body) for body, (_, registered) in zip(explain, models, strict=True)
                            if registered.causes is not None],
        "PredictRequest": [_named_body(registered, k, {"row": ref(f"Row{k}")}) for k, registered in models],
        "RuleRequest": [_named_body(registered, k, {"text": rule_text_schema(registered, limits)},
                                    {"language": {"enum": list(LANGUAGES)}}) for k, registered in models],
        "Query": [ref(f"Query{k}") for k, _ in models],
    }  # fmt: skip
    return {**parts, **{name: _any_of(alternatives) for name, alternatives in bodies.items()}}


def _any_of(alternatives: list[JsonSchema]) -> JsonSchema:
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives} if alternatives else {"not": {}}


def _model_name(registered: RegisteredModel, k: int) -> JsonSchema:
    names = [registered.name] if k else [registered.name, None]
    return {"model": {"enum": names, "description": "The first, if it is left out or null."}}


def _named_body(
    registered: RegisteredModel, k: int, required: JsonSchema, optional: JsonSchema | None = None
) -> JsonSchema:
    """A body for the model number k, which only the first need not name."""
    name = _model_name(registered, k)
    return object_of({**required, **name}, optional) if k else object_of(required, {**name, **(optional or {})})


def _query_body(
    registered: RegisteredModel, limits: ServiceLimits, query_name: str, k: int
) -> tuple[JsonSchema, JsonSchema]:
    """The required and the optional entries of a body with a query to the model number k."""
    query: JsonSchema = {"query": ref(query_name) if needs_target(registered) else nullable(ref(query_name))}
    name = _model_name(registered, k)
    required = {"row": ref(f"Row{k}"), **(name if k else {}), **(query if needs_target(registered) else {})}
    entries: JsonSchema = {
        **name,
        **query,
        "seconds": {"type": ["number", "null"], "exclusiveMinimum": 0,
                    "description": f"Time limit of the search; at most {limits.seconds:g}."},
        "language": {"enum": list(LANGUAGES)},
        "path": {**FLAG, "description": "Also the score along the path to the answer."},
    }  # fmt: skip
    return required, {entry: schema for entry, schema in entries.items() if entry not in required}


def _diversity(limits: ServiceLimits, k: int) -> JsonSchema:
    """How several answers differ: in features, which needs no distance, or by a distance."""
    count: JsonSchema = {"count": {"type": "integer", "minimum": 1, "maximum": limits.answers}}
    apart = {"apart": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST}}
    return {"anyOf": [
        object_of({**count, "differ": {"const": "features"}}, {**apart, "apart_distance": {"type": "null"}}),
        object_of(count, {**apart, "differ": {"enum": ["distance", "values"]},
                          "apart_distance": nullable(ref(f"Distance{k}"))}),
    ]}  # fmt: skip


# ---------------------------------------------------------------------- answers

_BY_TYPE: list[tuple[Any, JsonSchema]] = [
    (int, COUNT),
    (float, NUMBER),
    (float | None, nullable(NUMBER)),
    (str, TEXT),
    (bool, FLAG),
    (Value, VALUE),
    (float | tuple[float, ...], {"anyOf": [nullable(NUMBER), array_of(nullable(NUMBER))]}),
    (tuple[str, ...], array_of(TEXT)),
    (tuple[Change, ...], array_of(ref("Change"))),
    (Mapping[str, Value], ROW),
    (Mapping[str, Value] | None, nullable(ROW)),
    (Mapping[str, tuple[str, str]], OBJECT),
    (Mapping[str, str], {"type": "object", "additionalProperties": TEXT}),
    (Stop | None, nullable(OBJECT)),
]
"""The schema of an answer's entry, by the type of its field."""
DISTANCE: JsonSchema = {"type": ["number", "null"], "minimum": 0}
_BY_NAME: dict[str, JsonSchema] = {
    "status": {"enum": ["nearest", "none exists", "within", "unknown"]},
    "precision": {"enum": ["float64", "float32"]},
    "distance": DISTANCE,
    "lower_bound": DISTANCE,
    "usual": OBJECT,
}
"""Entries of which more is known than their type; a distance is null where it is infinite."""


def answer_schema() -> JsonSchema:
    """The schema of `Answer.to_dict`."""
    derived = {name: get_type_hints(getattr(Answer, name).fget)["return"] for name in DERIVED.values()}
    types = get_type_hints(Answer) | derived
    schemas = {
        entry: _BY_NAME[entry]
        if entry in _BY_NAME
        else next(schema for known, schema in _BY_TYPE if known == types[name])
        for entry, name in entries_of(Answer).items()
    }
    optional = {entry: schemas.pop(entry) for entry in OPTIONAL}
    return object_of(schemas, {**optional, "reasons": nullable(OBJECT)})


def _answer_responses() -> dict[str, JsonSchema]:
    one = {
        "answer": ref("Answer"),
        "sentence": {**TEXT, "description": "For the person."},
        "exact": {**TEXT, "description": "For the expert."},
        "guarantee": {**TEXT, "description": "What is proven, in plain words."},
        "path": nullable(ref("Path")),
    }
    return {
        "ExplainedAnswer": object_of(one),
        "ExplainResponse": object_of({**one, "help": array_of(ref("Suggestion")), "seconds": NUMBER}),
        "DiverseResponse": object_of({"answers": array_of(ref("ExplainedAnswer")), "ending": TEXT, "proven": FLAG,
                                      "help": array_of(ref("Suggestion")), "seconds": NUMBER}),
        "Suggestion": object_of({"words": TEXT, "sentence": TEXT, "query": {
            **nullable(ref("Query")), "description": "The query in which that is allowed; null where a rule of the "
                                                     "organisation rules it out."}}),
        "Path": object_of({"score_margin": array_of(NUMBER),
                           "changes": array_of(array_of({"type": ["integer", "string"]})), "decision": VALUE}),
        "Change": object_of({"feature": TEXT, "from": VALUE, "to": VALUE}, {"counted": FLAG, "follows": FLAG}),
        "Answer": answer_schema(),
    }  # fmt: skip


# ---------------------------------------------------------------------- other responses


def _other_responses() -> dict[str, JsonSchema]:
    limits = dict.fromkeys(ServiceLimits().to_dict(), NUMBER)
    return {
        "ErrorResponse": object_of(
            {"error": TEXT, "where": {"type": ["string", "null"], "description": "The part of the body."}},
            {"place": {**TEXT, "description": "Of a rule: its text, with marks under the fault."}}),
        "ModelsResponse": object_of({"models": array_of(object_of({"name": TEXT, "title": TEXT})),
                                     "languages": array_of(TEXT), "version": TEXT}),
        "SchemaResponse": object_of({
            "model": TEXT, "title": TEXT, "subject": TEXT, "classes": array_of(VALUE), "kind": TEXT,
            "certificates": FLAG, "causes": OBJECT, "schema": OBJECT, "rules": array_of(TEXT),
            "groups": array_of(object_of({"title": TEXT, "features": array_of(TEXT)})),
            "people": array_of(object_of({"title": TEXT, "row": ref("Row")})), "limits": object_of(limits)}),
        "PredictResponse": object_of({"decision": VALUE, "score_margin": DISTANCE,
                                      "probabilities": {"type": ["object", "null"], "additionalProperties": NUMBER},
                                      "scores": array_of(NUMBER)}),
        "RuleResponse": object_of({"words": TEXT}),
        "WhyResponse": object_of({"reasons": {**OBJECT, "description": "As `to_dict` of reasons gives them."},
                                  "sentence": TEXT, "seconds": NUMBER}),
        "RecourseResponse": object_of({"recourse": {**OBJECT, "description": "As `to_dict` of recourse gives it."},
                                       "sentence": TEXT, "exact": TEXT, "seconds": NUMBER}),
        "CheckResponse": object_of({
            "verdict": TEXT, "statement": TEXT, "failure": TEXT, "lower": nullable(NUMBER), "upper": nullable(NUMBER),
            "nodes": COUNT, "leaves": COUNT, "trusted": TEXT, "deployed": TEXT, "network": TEXT, "question": TEXT,
            "schema": TEXT, "features": array_of(OBJECT), "rules": array_of(TEXT)}),
        "StatusResponse": object_of({"status": TEXT}),
    }  # fmt: skip
