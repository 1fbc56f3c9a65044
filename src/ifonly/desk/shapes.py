"""The JSON shapes of what is asked and answered, as OpenAPI writes them. Tests hold them to what the desk does."""

from __future__ import annotations

from typing import Any

from ifonly.desk.shelf import Offer, Shelf
from ifonly.desk.terms import Terms
from ifonly.problem.plain_data import CONSTRAINTS
from ifonly.proof.speech import LANGUAGES
from ifonly.schema import Choice, Numeric

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
NUMBER: Shape = {"type": "number"}
COUNT: Shape = {"type": "integer", "minimum": 0}
FLAG: Shape = {"type": "boolean"}
VALUE: Shape = {"type": ["string", "number", "boolean", "null"]}
"""A value of a row, or a class."""


def ref(name: str) -> Shape:
    return {"$ref": f"#/components/schemas/{name}"}


def listing(of: Shape, **more: Any) -> Shape:
    return {"type": "array", "items": of, **more}


def maybe(shape: Shape) -> Shape:
    return {"anyOf": [shape, {"type": "null"}]}


def record(needed: Shape, optional: Shape | None = None, **more: Any) -> Shape:
    """An object with these entries and no others."""
    return {
        "type": "object",
        "properties": {**needed, **(optional or {})},
        "required": list(needed),
        "additionalProperties": False,
        **more,
    }


def shapes(shelf: Shelf, terms: Terms) -> dict[str, Shape]:
    """All of them, by name."""
    rows = {f"Row{k}": _row(offer) for k, offer in enumerate(shelf)}
    return {
        **rows,
        "Row": {"anyOf": [ref(name) for name in rows]} if len(rows) > 1 else ref("Row0"),
        **_questions(shelf, terms),
        **_answers(),
        **_others(),
    }


def _row(offer: Offer) -> Shape:
    """A row of a model: other entries are not looked at."""
    features = {feature.name: _value(feature) for feature in offer.explainer.schema.features}
    return {"type": "object", "properties": features, "required": list(features), "title": f"A row for {offer.name}"}


def _value(feature: Any) -> Shape:
    words = {"description": f"{feature.label}{f' ({feature.unit})' if feature.unit else ''}"} if feature.label else {}
    if isinstance(feature, Choice):
        return {"enum": list(feature.options), **words}
    assert isinstance(feature, Numeric)
    shape = {"type": "integer" if feature.kind == "integer" else "number", "minimum": feature.lower,
             "maximum": feature.upper, **words}  # fmt: skip
    return maybe(shape) if feature.missing else shape


def _questions(shelf: Shelf, terms: Terms) -> dict[str, Shape]:
    model: Shape = {"enum": [*shelf.names, None], "description": "The first, if it is left out or null."}
    common = {
        "model": model,
        "query": maybe(ref("Query")),
        "seconds": {"type": ["number", "null"], "exclusiveMinimum": 0,
                    "description": f"What the search may take; at most {terms.seconds:g}."},
        "language": {"enum": list(LANGUAGES)},
        "path": {**FLAG, "description": "Also the score on the way to the answer."},
    }  # fmt: skip
    several = record({"count": {"type": "integer", "minimum": 1, "maximum": terms.answers}},
                     {"apart": {**NUMBER, "exclusiveMinimum": 0},
                      "differ": {"enum": ["distance", "features", "values"]},
                      "apart_distance": maybe(ref("Distance"))})  # fmt: skip
    words: Shape = {**TEXT, "maxLength": terms.text, "description": "A sentence, such as 'Age only goes up'."}
    return {
        "Explain": record({"row": ref("Row")}, common),
        "Diverse": record({"row": ref("Row"), "diversity": several}, common),
        "Report": record({"row": ref("Row")}, {**common, "diversity": maybe(several)}),
        "Person": record({"row": ref("Row")}, {"model": model}),
        "Rule": record({"text": words}, {"model": model, "language": common["language"]}),
        "Query": record({}, {
            "target": {"description": "A class's name, or a target such as {\"class\": ..., \"margin\": ...}; null: "
                                      "the other of two classes."},
            "distance": ref("Distance"),
            "constraints": listing({"anyOf": [words, ref("Constraint")]}, maxItems=terms.constraints),
            "fewest_first": FLAG,
        }),
        "Distance": {"anyOf": [{"enum": ["l0", "l1", "l2", "linf"]}, record(
            {"norm": {"anyOf": [{"enum": ["l0", "l1", "l2", "linf"]}, {"type": "object"}]}},
            {name: {"type": "object"} for name in ("weights", "scales", "up", "down", "transitions")})]},
        "Constraint": {"type": "object", "properties": {"kind": {"enum": list(CONSTRAINTS)}}, "required": ["kind"]},
    }  # fmt: skip


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
        "Told": record(told),
        "Explained": record({**told, "help": listing(ref("WayOut")), "seconds": NUMBER}),
        "Several": record({"answers": listing(ref("Told")), "ending": TEXT, "proven": FLAG,
                           "help": listing(ref("WayOut")), "seconds": NUMBER}),
        "WayOut": record({"words": TEXT, "sentence": TEXT, "query": {
            **maybe(ref("Query")), "description": "The query in which that is allowed; null where a rule of the "
                                                  "organisation is in the way."}}),
        "Path": record({"lead": listing(NUMBER), "changes": listing(listing({"type": ["integer", "string"]})),
                        "decision": VALUE}),
        "Change": record({"feature": TEXT, "from": VALUE, "to": VALUE}, {"counted": FLAG}),
        "Answer": record(
            {"row": COUNT, "status": {"enum": ["nearest", "none exists", "within", "unknown"]}, "target": TEXT,
             "distance": distance, "distance_name": TEXT, "lower_bound": distance, "changes": listing(ref("Change")),
             "factual": person, "counterfactual": maybe(person), "decision_before": VALUE, "decision_after": VALUE,
             "score_before": scores, "score_after": scores, "method": TEXT, "seconds": NUMBER, "nodes": COUNT,
             "note": TEXT, "stop": {"type": ["object", "null"]}, "blur": NUMBER, "lucky": {"type": ["number", "null"]},
             "precision": {"enum": ["float64", "float32"]}, "subject": TEXT, "state": TEXT, "already": FLAG,
             "breaks": listing(TEXT)},
            {"words": {"type": "object"}, "constraints": listing(TEXT), "reasons": {"type": ["object", "null"]}}),
    }  # fmt: skip


def _others() -> dict[str, Shape]:
    limits = dict.fromkeys(Terms().told(), NUMBER)
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
        "Decision": record({"decision": VALUE, "lead": {"type": ["number", "null"], "minimum": 0},
                            "probabilities": {"type": ["object", "null"], "additionalProperties": NUMBER},
                            "scores": listing(NUMBER)}),
        "Words": record({"words": TEXT}),
        "Checked": record({
            "verdict": TEXT, "statement": TEXT, "failure": TEXT, "lower": {"type": ["number", "null"]},
            "upper": {"type": ["number", "null"]}, "nodes": COUNT, "leaves": COUNT, "trusted": TEXT, "deployed": TEXT,
            "network": TEXT, "question": TEXT}),
        "Status": record({"status": TEXT}),
    }  # fmt: skip
