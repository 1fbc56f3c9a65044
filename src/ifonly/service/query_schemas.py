"""JSON Schema of a query to one model: its targets, distances and constraints, by its features and classes.

What JSON Schema cannot express is checked by the service: the grammar of rules in words, relations between two numbers
(the ends of a range), and which queries can be answered exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ifonly.problem.constraints import FINEST_STEP, LEAST_FILLING, MOST_FILLING, Allowed, Fixed, Range
from ifonly.problem.distance import LEAST, MOST
from ifonly.problem.open_target import MOST_ALTERNATIVES
from ifonly.problem.query import FLAGS
from ifonly.schema import Choice, Feature, Integer, Numeric, Real
from ifonly.schema.decimals import written
from ifonly.service.limits import ServiceLimits
from ifonly.service.registry import RegisteredModel

JsonSchema = dict[str, Any]

FLAG: JsonSchema = {"type": "boolean"}
NUMBER: JsonSchema = {"type": "number"}
POSITIVE: JsonSchema = {"type": "number", "minimum": LEAST, "maximum": MOST}
"""A weight, a scale or a share."""
MARGIN: JsonSchema = {"margin": {"type": "number", "minimum": 0}}
NORM: JsonSchema = {"enum": ["l0", "l1", "l2", "linf"]}


def defined(name: str) -> JsonSchema:
    """A reference within the JSON Schema of a model's bodies."""
    return {"$ref": f"#/$defs/{name}"}


def array_of(of: JsonSchema, **more: Any) -> JsonSchema:
    return {"type": "array", "items": of, **more}


def nullable(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}]}


def object_of(required: JsonSchema, optional: JsonSchema | None = None, **more: Any) -> JsonSchema:
    """An object with these entries and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def rule_text_schema(registered: RegisteredModel, limits: ServiceLimits) -> JsonSchema:
    """A constraint in words: not blank, and not too long."""
    example = Fixed(registered.explainer.schema.names[0]).describe()
    return {**_text(limits), "examples": [example], "description": "A sentence, such as 'Age only goes up'."}


def _text(limits: ServiceLimits) -> JsonSchema:
    return {"type": "string", "minLength": 1, "maxLength": limits.text, "pattern": r"\S"}


def _rule(registered: RegisteredModel, limits: ServiceLimits) -> JsonSchema:
    """A condition on the counterfactual."""
    first = registered.explainer.schema.features[0]
    holds = Allowed(first.name, first.options) if isinstance(first, Choice) else Range(first.name, first.lower)
    return object_of({"kind": {"const": "rule"}, "text": {**_text(limits), "examples": [holds.describe()]}})


def option_schema(feature: Choice) -> JsonSchema:
    """One of its options; true and false may be written as 1 and 0, and the other way round."""
    as_number = {True: 1, False: 0}
    also = [as_number[one] if isinstance(one, bool) else bool(one) for one in feature.options
            if not isinstance(one, str) and one in as_number]  # fmt: skip
    return {"enum": [*feature.options, *also]}


def needs_target(registered: RegisteredModel) -> bool:
    """Must a query name its target? Only of two classes there is a default: the other class."""
    return len(registered.explainer.model.classes) != 2


def query_schemas(registered: RegisteredModel, limits: ServiceLimits) -> dict[str, JsonSchema]:
    """Definitions by name: the query to a model, and its parts. Several answers need one distance
    (`PlainQuery`: no fewest changes first); certificates also need a single target."""
    one = {"anyOf": [rule_text_schema(registered, limits), defined("Constraint")]}
    constraints = array_of(one, maxItems=limits.constraints)
    parts = {"distance": defined("Distance"), "constraints": constraints}
    features = registered.explainer.schema.features

    def query(target: str, flag: JsonSchema) -> JsonSchema:
        required, optional = {"target": defined(target)}, {**parts, **dict.fromkeys(FLAGS, flag)}
        return object_of(required, optional) if needs_target(registered) else object_of({}, {**required, **optional})

    certified = {
        "CertifiedQuery": query("OneTarget", {"const": False}),
        "OneTarget": {"anyOf": _targets(registered, one=True)},
    }
    return {
        "Query": query("Target", FLAG),
        "PlainQuery": query("Target", {"const": False}),
        **(certified if registered.certificates else {}),
        "Target": {"anyOf": _targets(registered)},
        "Distance": {"anyOf": [NORM, _distance(features)]},
        "Constraint": {"anyOf": [*_constraints(features, defined("Feature")), _rule(registered, limits)]},
        "Feature": {"enum": list(registered.explainer.schema.names)},
    }


# ---------------------------------------------------------------------- targets


def _targets(registered: RegisteredModel, *, one: bool = False) -> list[JsonSchema]:
    """`one`: only targets without alternatives."""
    model = registered.explainer.model
    count, label = len(model.classes), JsonSchema(enum=list(model.classes))
    output = {"output": {"type": "integer", "minimum": 0, "maximum": model.outputs - 1}}
    ends = ("at_least", "at_most")
    scores = [
        object_of({end: NUMBER}, {other: nullable(NUMBER), **output, **MARGIN}) for end, other in (ends, ends[::-1])
    ]
    if not count:
        return scores
    other = [] if needs_target(registered) else [{"type": "null", "description": "The other class."}]
    found = [label, *other, object_of({"class": label}, MARGIN), *scores]
    if model.probabilities is not None:
        between = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
        found.append(object_of({"probability_of": label, "at_least": between}, MARGIN))
    if count == 2 or (count - 1 <= MOST_ALTERNATIVES and not one):
        found.append(object_of({"other": {"const": True}}, MARGIN))
    for name in model.classes:
        others = array_of({"enum": [other for other in model.classes if other is not name]}, minItems=1)
        found.append(object_of({"class": {"enum": [name]}, "ahead_of": others}, MARGIN))
    return found if one else [*found, *_open_targets(label)]


def _open_targets(label: JsonSchema) -> list[JsonSchema]:
    count = len(label["enum"])
    several = array_of(label, minItems=1, maxItems=min(count - 1, MOST_ALTERNATIVES))
    ranks = [k for k in range(1, count) if math.comb(count - 1, k - 1) <= MOST_ALTERNATIVES]
    return [
        object_of({"one_of": several}, MARGIN),
        object_of({"class": label, "among_highest": {"enum": ranks}}, MARGIN),
    ]


# ---------------------------------------------------------------------- distances


def _distance(features: Sequence[Feature]) -> JsonSchema:
    numbers = [one for one in features if isinstance(one, Numeric)]
    ordered = [one for one in features if not isinstance(one, Choice) or one.ordered]
    moves = {one.name: array_of(_move(option_schema(one))) for one in features if isinstance(one, Choice)}
    tables = {
        "weights": _table(features),
        "scales": _table(numbers),
        "up": _table(ordered),
        "down": _table(ordered),
        "transitions": object_of({}, moves),
    }
    return object_of({"norm": {"anyOf": [NORM, object_of({"l0": POSITIVE, "l1": POSITIVE})]}}, tables)


def _move(option: JsonSchema) -> JsonSchema:
    """[before, after, change]"""
    return {"type": "array", "prefixItems": [option, option, POSITIVE], "minItems": 3, "maxItems": 3}


def _table(features: Sequence[Feature]) -> JsonSchema:
    return object_of({}, {one.name: POSITIVE for one in features})


# ---------------------------------------------------------------------- constraints


def _constraints(features: Sequence[Feature], any_feature: JsonSchema) -> list[JsonSchema]:
    """One schema per kind of constraint, for the features that it can apply to."""
    numbers = [one.name for one in features if isinstance(one, Numeric)]
    ordered = [one.name for one in features if not isinstance(one, Choice) or one.ordered]
    missing = [one.name for one in features if isinstance(one, Numeric) and one.missing]
    size, filling = {"type": "number", "minimum": 0}, {"minimum": LEAST_FILLING, "maximum": MOST_FILLING}
    several = [_kind("only_up", ordered), _kind("only_down", ordered),
               _kind("range", numbers, {}, {"lower": NUMBER, "upper": NUMBER}),
               _kind("max_delta", ordered, {"by": size}), _kind("max_delta", numbers, {"share": size}),
               _kind("imputable", missing, {}, {"change": {"type": "number", **filling}})]  # fmt: skip
    whatever = [object_of({"kind": {"const": kind}, "feature": any_feature}) for kind in ("fixed", "unconstrained")]
    single = [schema for one in features for schema in _of_feature(one, any_feature)]
    most = object_of({"kind": {"const": "max_changes"}, "most": {"type": "integer", "minimum": 0}})
    some = object_of({"kind": {"const": "actionable"}, "features": array_of(any_feature, minItems=1)})
    return [*whatever, *(schema for schema in several if schema["properties"]["feature"]["enum"]), *single, most, some]


def _of_feature(feature: Feature, any_feature: JsonSchema) -> list[JsonSchema]:
    """Constraints whose other entries depend on the feature: its options, its steps, its partners."""
    name, found = feature.name, list[JsonSchema]()
    if isinstance(feature, Choice):
        found.append(_kind("allowed", [name], {"values": array_of(option_schema(feature), minItems=1)}))
    elif (step := _step(feature)) is not None:
        found.append(_kind("steps", [name], {"step": step}))
    if not (isinstance(feature, Real) and feature.grid is None):  # a real number can change by next to nothing
        partner = {"feature": {**any_feature, "not": {"const": name}}, "partner": {"const": name}}
        found.append(object_of({"kind": {"const": "only_with"}, **partner}))
    return found


def _step(feature: Numeric) -> JsonSchema | None:
    """The steps in which a number may change; None where no step can be written."""
    if isinstance(feature, Integer):
        return {"type": "number", "exclusiveMinimum": 0, "multipleOf": feature.step}
    assert isinstance(feature, Real)
    if feature.grid is None:
        return {"type": "number", "minimum": FINEST_STEP * math.ulp(max(abs(feature.lower), abs(feature.upper)))}
    own = feature.grid.step
    return {"type": "number", "exclusiveMinimum": 0, "multipleOf": float(own)} if written(float(own)) == own else None


def _kind(
    kind: str, features: list[str], required: JsonSchema | None = None, optional: JsonSchema | None = None
) -> JsonSchema:
    return object_of({"kind": {"const": kind}, "feature": {"enum": features}, **(required or {})}, optional)
