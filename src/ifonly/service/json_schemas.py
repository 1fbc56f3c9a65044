"""JSON schemas of requests and responses, as the components of an OpenAPI description. Tests hold them to the service.

They are the same for every model: what a particular model takes is in `request_schemas`. Every schema has one plain
type or a name, which is what generators of clients need. The schema of an answer follows from the types of `Answer`'s
fields, so a field that is added there is described here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from ifonly.notices.letter import FORMS
from ifonly.problem.plain_data import CONSTRAINTS
from ifonly.problem.query import FLAGS
from ifonly.results.answer import DERIVED, OPTIONAL, Answer, Change, entries_of
from ifonly.results.languages import LANGUAGES
from ifonly.results.stop import Stop
from ifonly.schema import Translations, Value
from ifonly.service.limits import ServiceLimits
from ifonly.service.query_schemas import FLAG, NORM, NUMBER, JsonSchema, array_of, nullable, object_of

TEXT: JsonSchema = {"type": "string"}
COUNT: JsonSchema = {"type": "integer", "minimum": 0}
OBJECT: JsonSchema = {"type": "object"}
VALUE: JsonSchema = {"type": ["string", "number", "boolean", "null"]}
ROW: JsonSchema = {"type": "object", "additionalProperties": VALUE}


def ref(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}


def component_schemas(limits: ServiceLimits) -> dict[str, JsonSchema]:
    """All components by name."""
    return {
        "Value": {**VALUE, "description": "A value of a row, or a class."},
        "Row": {**ROW, "description": "A value per feature of the model; /v1/schema describes the features."},
        **_query_parts(limits),
        **_requests(limits),
        **_answer_responses(),
        **_other_responses(),
    }


# ---------------------------------------------------------------------- requests


def _query_parts(limits: ServiceLimits) -> dict[str, JsonSchema]:
    """A query and its parts, whatever the model."""
    numbers: JsonSchema = {"type": "object", "additionalProperties": NUMBER}
    classes = array_of(ref("Value"))
    score = {"at_least": nullable(NUMBER), "at_most": nullable(NUMBER), "output": COUNT, "margin": NUMBER}
    target = {"class": ref("Value"), "ahead_of": classes, "among_highest": COUNT, "one_of": classes, "other": FLAG,
              "probability_of": ref("Value"), **score}  # fmt: skip
    constraint = {"feature": TEXT, "partner": TEXT, "features": array_of(TEXT), "values": classes, "text": TEXT,
                  "lower": NUMBER, "upper": NUMBER, "by": {"type": ["number", "string"]}, "share": NUMBER,
                  "step": NUMBER, "most": COUNT, "change": NUMBER}  # fmt: skip
    norm: JsonSchema = {"type": "string", "enum": list(NORM["enum"])}
    return {
        "Norm": norm,
        "MixedNorm": object_of({"l0": NUMBER, "l1": NUMBER}),
        "Distance": object_of({"norm": {"anyOf": [ref("Norm"), ref("MixedNorm")]}}, {
            **dict.fromkeys(("weights", "scales", "up", "down"), numbers),
            "transitions": {"type": "object", "additionalProperties": array_of(array_of(ref("Value")))}}),
        "Target": object_of({}, target),
        "Constraint": {"type": "object", "required": ["kind"],
                       "properties": {"kind": {"type": "string", "enum": list(CONSTRAINTS)}, **constraint}},
        "Query": object_of({}, {
            "target": {"anyOf": [ref("Value"), ref("Target")], "description": "A class will do."},
            "distance": {"anyOf": [ref("Norm"), ref("Distance")]},
            "constraints": array_of({"anyOf": [TEXT, ref("Constraint")]}, maxItems=limits.constraints),
            **dict.fromkeys(FLAGS, FLAG)}),
        "Diversity": object_of({"count": {"type": "integer", "minimum": 1, "maximum": limits.answers}}, {
            "apart": NUMBER, "differ": {"type": "string", "enum": ["features", "distance", "values"]},
            "apart_distance": {"anyOf": [ref("Norm"), ref("Distance"), {"type": "null"}]}}),
    }  # fmt: skip


def _requests(limits: ServiceLimits) -> dict[str, JsonSchema]:
    """Bodies, whatever the model."""
    model: JsonSchema = {"model": {"type": ["string", "null"], "description": "The first, if it is left out."}}
    language: JsonSchema = {"language": {"type": "string", "enum": list(LANGUAGES)}}
    options: JsonSchema = {
        **model,
        "query": nullable(ref("Query")),
        "seconds": {"type": ["number", "null"], "exclusiveMinimum": 0,
                    "description": f"Time limit of the search; at most {limits.seconds:g}."},
        **language,
        "path": {**FLAG, "description": "Also the score along the path to the answer."},
    }  # fmt: skip
    row, diversity = {"row": ref("Row")}, {"diversity": ref("Diversity")}
    form: JsonSchema = {"form": {"type": "string", "enum": list(FORMS)}}
    return {
        "ExplainRequest": object_of(row, options),
        "DiverseRequest": object_of({**row, **diversity}, options),
        "ReportRequest": object_of(row, {**options, "diversity": nullable(ref("Diversity"))}),
        "NoticeRequest": object_of(row, {**options, **form}),
        "CertifyRequest": object_of(row, options),
        "RecourseRequest": object_of(row, options),
        "PredictRequest": object_of(row, model),
        "RuleRequest": object_of({"text": {**TEXT, "maxLength": limits.text}}, {**model, **language}),
    }


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
    (Mapping[str, Translations], OBJECT),
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
    none = {"blame": array_of(TEXT), "help": array_of(ref("Suggestion"))}
    return {
        "ExplainedAnswer": object_of(one),
        "ExplainResponse": object_of({**one, **none, "seconds": NUMBER}),
        "DiverseResponse": object_of({"answers": array_of(ref("ExplainedAnswer")), "ending": TEXT, "proven": FLAG,
                                      **none, "seconds": NUMBER}),
        "Suggestion": object_of({"words": TEXT, "said": TEXT, "sentence": TEXT, "query": {
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
            "rules_in": {"type": "object", "additionalProperties": array_of(TEXT)},
            "groups": array_of(object_of({"title": TEXT, "features": array_of(TEXT)})),
            "people": array_of(object_of({"title": TEXT, "row": ref("Row")})),
            "translations": {"type": "object", "additionalProperties": OBJECT}, "limits": object_of(limits)}),
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
