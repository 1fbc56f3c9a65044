"""The JSON shapes of what is asked and answered, as OpenAPI writes them. Tests hold them to what the desk does."""

from __future__ import annotations

from typing import Any

from ifonly.problem.distance import MOST
from ifonly.results.plain_language import LANGUAGES
from ifonly.schema import Choice, Integer, Numeric
from ifonly.service.limits import ServiceLimits
from ifonly.service.query_schemas import (
    FLAG,
    NUMBER,
    Shape,
    listing,
    maybe,
    needs_search,
    option_shape,
    query_shapes,
    record,
    ref,
    words_shape,
)
from ifonly.service.registry import ModelRegistry, RegisteredModel

TEXT: Shape = {"type": "string"}
COUNT: Shape = {"type": "integer", "minimum": 0}
VALUE: Shape = {"type": ["string", "number", "boolean", "null"]}
"""A value of a row, or a class."""


def shapes(registry: ModelRegistry, terms: ServiceLimits) -> dict[str, Shape]:
    """All of them, by name."""
    rows = {f"Row{k}": _row(registered) for k, registered in enumerate(registry)}
    return {
        **rows,
        "Row": {"anyOf": [ref(name) for name in rows]} if len(rows) > 1 else ref("Row0"),
        **_questions(registry, terms),
        **_answers(),
        **_others(),
    }


def _row(registered: RegisteredModel) -> Shape:
    """A row of a model: other entries are not looked at."""
    features = {feature.name: _value(feature) for feature in registered.explainer.schema.features}
    return {
        "type": "object",
        "properties": features,
        "required": list(features),
        "title": f"A row for {registered.name}",
    }


def _value(feature: Any) -> Shape:
    words = {"description": f"{feature.label}{f' ({feature.unit})' if feature.unit else ''}"} if feature.label else {}
    if isinstance(feature, Choice):
        return {**option_shape(feature), **words}
    assert isinstance(feature, Numeric)
    shape = {"type": "integer" if feature.kind == "integer" else "number", "minimum": feature.lower,
             "maximum": feature.upper, **words}  # fmt: skip
    if isinstance(feature, Integer) and feature.step > 1 and feature.lower % feature.step == 0:
        shape["multipleOf"] = feature.step
    return maybe(shape) if feature.missing else shape


def _questions(registry: ModelRegistry, terms: ServiceLimits) -> dict[str, Shape]:
    """Bodies, each of them one of as many shapes as there are models."""
    asked = [_asked(registered, terms, f"Query{k}", k) for k, registered in enumerate(registry)]
    plain = [_asked(registered, terms, f"PlainQuery{k}", k) for k, registered in enumerate(registry)]
    several = [record({**needed, "diversity": _several(terms, k)}, more) for k, (needed, more) in enumerate(plain)]
    one = [record(needed, {**more, "diversity": {"type": "null"}}) for needed, more in asked]
    certified = [
        record(*_asked(registered, terms, f"CertifiedQuery{k}", k))
        for k, registered in enumerate(registry)
        if registered.certificates
    ]
    named = [_model(registered, k) for k, registered in enumerate(registry)]
    parts: dict[str, Shape] = {}
    for k, registered in enumerate(registry):
        parts |= query_shapes(registered, terms, k)
    bodies = {
        "Explain": [record(*one) for one in asked],
        "Diverse": several,
        "Report": [*one, *several],
        "Certify": certified,
        "Person": [_entries({"row": ref(f"Row{k}")}, model, k) for k, model in enumerate(named)],
        "Rule": [_rule(registered, terms, named[k], k) for k, registered in enumerate(registry)],
        "Query": [ref(f"Query{k}") for k in range(len(registry))],
    }
    return {**parts, **{name: _any_of(of) for name, of in bodies.items()}}


def _any_of(of: list[Shape]) -> Shape:
    return of[0] if len(of) == 1 else {"anyOf": of} if of else {"not": {}}


def _model(registered: RegisteredModel, k: int) -> Shape:
    names = [registered.name] if k else [registered.name, None]
    return {"model": {"enum": names, "description": "The first, if it is left out or null."}}


def _entries(needed: Shape, model: Shape, k: int) -> Shape:
    """A body for the model number k, which only the first need not name."""
    return record({**needed, **model}) if k else record(needed, model)


def _rule(registered: RegisteredModel, terms: ServiceLimits, model: Shape, k: int) -> Shape:
    needed, language = {"text": words_shape(registered, terms)}, {"language": {"enum": list(LANGUAGES)}}
    return record({**needed, **model}, language) if k else record(needed, {**model, **language})


def _asked(registered: RegisteredModel, terms: ServiceLimits, kind: str, k: int) -> tuple[Shape, Shape]:
    """What a question to the model number k needs, and what it may have, with this kind of query."""
    query: Shape = {"query": ref(kind) if needs_search(registered) else maybe(ref(kind))}
    model = _model(registered, k)
    needed = {"row": ref(f"Row{k}"), **(model if k else {}), **(query if needs_search(registered) else {})}
    common: Shape = {
        **model,
        **query,
        "seconds": {"type": ["number", "null"], "exclusiveMinimum": 0,
                    "description": f"What the search may take; at most {terms.seconds:g}."},
        "language": {"enum": list(LANGUAGES)},
        "path": {**FLAG, "description": "Also the score on the way to the answer."},
    }  # fmt: skip
    return needed, {name: shape for name, shape in common.items() if name not in needed}


def _several(terms: ServiceLimits, k: int) -> Shape:
    """How several answers differ: in features, which no distance tells apart, or by a distance."""
    count: Shape = {"count": {"type": "integer", "minimum": 1, "maximum": terms.answers}}
    apart = {"apart": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST}}
    return {"anyOf": [
        record({**count, "differ": {"const": "features"}}, {**apart, "apart_distance": {"type": "null"}}),
        record(count, {**apart, "differ": {"enum": ["distance", "values"]},
                       "apart_distance": maybe(ref(f"Distance{k}"))}),
    ]}  # fmt: skip


def _answers() -> dict[str, Shape]:
    told = {
        "answer": ref("Answer"),
        "sentence": {**TEXT, "description": "For the person."},
        "exact": {**TEXT, "description": "For the expert."},
        "guarantee": {**TEXT, "description": "What is proven, in plain words."},
        "path": maybe(ref("Path")),
    }
    scores: Shape = {"anyOf": [{"type": ["number", "null"]}, listing({"type": ["number", "null"]})]}
    person: Shape = {"type": "object", "additionalProperties": VALUE}
    distance: Shape = {"type": ["number", "null"], "minimum": 0}
    return {
        "BatchOutcome": record(told),
        "Explained": record({**told, "help": listing(ref("WayOut")), "seconds": NUMBER}),
        "DiverseResults": record({"answers": listing(ref("BatchOutcome")), "ending": TEXT, "proven": FLAG,
                           "help": listing(ref("WayOut")), "seconds": NUMBER}),
        "WayOut": record({"words": TEXT, "sentence": TEXT, "query": {
            **maybe(ref("Query")), "description": "The query in which that is allowed; null where a rule of the "
                                                  "organisation is in the way."}}),
        "Path": record({"score_margin": listing(NUMBER), "changes": listing(listing({"type": ["integer", "string"]})),
                        "decision": VALUE}),
        "Change": record({"feature": TEXT, "from": VALUE, "to": VALUE}, {"counted": FLAG}),
        "Answer": record(
            {"row": COUNT, "status": {"enum": ["nearest", "none exists", "within", "unknown"]}, "target": TEXT,
             "distance": distance, "distance_name": TEXT, "lower_bound": distance, "changes": listing(ref("Change")),
             "factual": person, "counterfactual": maybe(person), "decision_before": VALUE, "decision_after": VALUE,
             "score_before": scores, "score_after": scores, "method": TEXT, "seconds": NUMBER, "nodes": COUNT,
             "note": TEXT, "stop": {"type": ["object", "null"]}, "rounding_bound": NUMBER, "lower_any_rounding":
             {"type": ["number", "null"]},
             "precision": {"enum": ["float64", "float32"]}, "subject": TEXT, "state": TEXT, "already": FLAG,
             "breaks": listing(TEXT)},
            {"words": {"type": "object"}, "outcome": {"type": "object"}, "constraints": listing(TEXT),
             "reasons": {"type": ["object", "null"]}}),
    }  # fmt: skip


def _others() -> dict[str, Shape]:
    limits = dict.fromkeys(ServiceLimits().told(), NUMBER)
    return {
        "Error": record({"error": TEXT, "where": {"type": ["string", "null"], "description": "The part of the body."}},
                        {"place": {**TEXT, "description": "Of a rule: its text, with marks under the fault."}}),
        "Models": record({"models": listing(record({"name": TEXT, "title": TEXT})), "languages": listing(TEXT),
                          "version": TEXT}),
        "Schema": record({
            "model": TEXT, "title": TEXT, "subject": TEXT, "classes": listing(VALUE), "kind": TEXT,
            "certificates": FLAG, "schema": {"type": "object"}, "rules": listing(TEXT),
            "groups": listing(record({"title": TEXT, "features": listing(TEXT)})),
            "people": listing(record({"title": TEXT, "row": ref("Row")})), "limits": record(limits)}),
        "Decision": record({"decision": VALUE, "score_margin": {"type": ["number", "null"], "minimum": 0},
                            "probabilities": {"type": ["object", "null"], "additionalProperties": NUMBER},
                            "scores": listing(NUMBER)}),
        "Words": record({"words": TEXT}),
        "CheckResult": record({
            "verdict": TEXT, "statement": TEXT, "failure": TEXT, "lower": {"type": ["number", "null"]},
            "upper": {"type": ["number", "null"]}, "nodes": COUNT, "leaves": COUNT, "trusted": TEXT, "deployed": TEXT,
            "network": TEXT, "question": TEXT}),
        "Status": record({"status": TEXT}),
    }  # fmt: skip
