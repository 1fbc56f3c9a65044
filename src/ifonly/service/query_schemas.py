"""The JSON Schema of a query to one model: its targets, distances and constraints, by its features and classes.

What JSON Schema cannot say is left to the service: the grammar of rules in words, relations between two numbers (the
ends of a range), and which questions can be answered exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ifonly.problem.constraints import FINEST_STEP, LEAST_FILLING, MOST_FILLING, Allowed, Fixed, Range
from ifonly.problem.distance import LEAST, MOST
from ifonly.problem.open_target import MOST_ALTERNATIVES
from ifonly.schema import Choice, Feature, Integer, Numeric, Real
from ifonly.schema.decimals import written
from ifonly.service.limits import ServiceLimits
from ifonly.service.registry import RegisteredModel

Shape = dict[str, Any]

FLAG: Shape = {"type": "boolean"}
NUMBER: Shape = {"type": "number"}
POSITIVE: Shape = {"type": "number", "minimum": LEAST, "maximum": MOST}
"""A weight, a scale or a share."""
MARGIN: Shape = {"margin": {"type": "number", "minimum": 0}}
NORM: Shape = {"enum": ["l0", "l1", "l2", "linf"]}


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


def words_shape(registered: RegisteredModel, terms: ServiceLimits) -> Shape:
    """A constraint in words: not blank, and not too long."""
    example = Fixed(registered.explainer.schema.names[0]).describe()
    return {**_text(terms), "examples": [example], "description": "A sentence, such as 'Age only goes up'."}


def _text(terms: ServiceLimits) -> Shape:
    return {"type": "string", "minLength": 1, "maxLength": terms.text, "pattern": r"\S"}


def _rule(registered: RegisteredModel, terms: ServiceLimits) -> Shape:
    """What must be true of the row that is found."""
    first = registered.explainer.schema.features[0]
    holds = Allowed(first.name, first.options) if isinstance(first, Choice) else Range(first.name, first.lower)
    return record({"kind": {"const": "rule"}, "text": {**_text(terms), "examples": [holds.describe()]}})


def option_shape(feature: Choice) -> Shape:
    """One of its options; true and false are written as 1 and 0, too, and the other way round."""
    twice = {True: 1, False: 0}
    also = [twice[one] if isinstance(one, bool) else bool(one) for one in feature.options
            if not isinstance(one, str) and one in twice]  # fmt: skip
    return {"enum": [*feature.options, *also]}


def needs_search(registered: RegisteredModel) -> bool:
    """Must a query name its target? Only of two classes it is clear which one is meant."""
    return len(registered.explainer.model.classes) != 2


def query_shapes(registered: RegisteredModel, terms: ServiceLimits, k: int) -> dict[str, Shape]:
    """By the names of components: the query to the model number k, and its parts. Several answers are about one
    distance (`PlainQuery`), not about the fewest changes first; certificates also about one decision."""
    limits = listing({"anyOf": [words_shape(registered, terms), ref(f"Constraint{k}")]}, maxItems=terms.constraints)
    parts = {"distance": ref(f"Distance{k}"), "constraints": limits}
    features = registered.explainer.schema.features

    def query(target: str, fewest_first: Shape) -> Shape:
        asked, more = {"target": ref(target)}, {**parts, "fewest_first": fewest_first}
        return record(asked, more) if needs_search(registered) else record({}, {**asked, **more})

    certified = {
        f"CertifiedQuery{k}": query(f"OneTarget{k}", {"const": False}),
        f"OneTarget{k}": {"anyOf": _targets(registered, one=True)},
    }
    return {
        f"Query{k}": query(f"Target{k}", FLAG),
        f"PlainQuery{k}": query(f"Target{k}", {"const": False}),
        **(certified if registered.certificates else {}),
        f"Target{k}": {"anyOf": _targets(registered)},
        f"Distance{k}": {"anyOf": [NORM, _distance(features)]},
        f"Constraint{k}": {"anyOf": [*_constraints(features, ref(f"Feature{k}")), _rule(registered, terms)]},
        f"Feature{k}": {"enum": list(registered.explainer.schema.names)},
    }


# ---------------------------------------------------------------------- targets


def _targets(registered: RegisteredModel, *, one: bool = False) -> list[Shape]:
    """`one`: only those that leave no choice between several decisions."""
    model = registered.explainer.model
    count, label = len(model.classes), Shape(enum=list(model.classes))
    output = {"output": {"type": "integer", "minimum": 0, "maximum": model.outputs - 1}}
    ends = ("at_least", "at_most")
    scores = [record({end: NUMBER}, {other: maybe(NUMBER), **output, **MARGIN}) for end, other in (ends, ends[::-1])]
    if not count:
        return scores
    other = [] if needs_search(registered) else [{"type": "null", "description": "The other class."}]
    found = [label, *other, record({"class": label}, MARGIN), *scores]
    if model.probabilities is not None:
        between = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
        found.append(record({"probability_of": label, "at_least": between}, MARGIN))
    if count == 2 or (count - 1 <= MOST_ALTERNATIVES and not one):
        found.append(record({"other": {"const": True}}, MARGIN))
    for name in model.classes:
        others = listing({"enum": [other for other in model.classes if other is not name]}, minItems=1)
        found.append(record({"class": {"enum": [name]}, "ahead_of": others}, MARGIN))
    return found if one else [*found, *_open_targets(label)]


def _open_targets(label: Shape) -> list[Shape]:
    count = len(label["enum"])
    several = listing(label, minItems=1, maxItems=min(count - 1, MOST_ALTERNATIVES))
    ranks = [k for k in range(1, count) if math.comb(count - 1, k - 1) <= MOST_ALTERNATIVES]
    return [record({"one_of": several}, MARGIN), record({"class": label, "among_highest": {"enum": ranks}}, MARGIN)]


# ---------------------------------------------------------------------- distances


def _distance(features: Sequence[Feature]) -> Shape:
    numbers = [one for one in features if isinstance(one, Numeric)]
    ordered = [one for one in features if not isinstance(one, Choice) or one.ordered]
    moves = {one.name: listing(_move(option_shape(one))) for one in features if isinstance(one, Choice)}
    tables = {
        "weights": _table(features),
        "scales": _table(numbers),
        "up": _table(ordered),
        "down": _table(ordered),
        "transitions": record({}, moves),
    }
    return record({"norm": {"anyOf": [NORM, record({"l0": POSITIVE, "l1": POSITIVE})]}}, tables)


def _move(option: Shape) -> Shape:
    """[before, after, change]"""
    return {"type": "array", "prefixItems": [option, option, POSITIVE], "items": False, "minItems": 3}


def _table(features: Sequence[Feature]) -> Shape:
    return record({}, {one.name: POSITIVE for one in features})


# ---------------------------------------------------------------------- constraints


def _constraints(features: Sequence[Feature], any_feature: Shape) -> list[Shape]:
    """One shape per kind of constraint, of features that it has a meaning for."""
    numbers = [one.name for one in features if isinstance(one, Numeric)]
    ordered = [one.name for one in features if not isinstance(one, Choice) or one.ordered]
    missing = [one.name for one in features if isinstance(one, Numeric) and one.missing]
    size, filling = {"type": "number", "minimum": 0}, {"minimum": LEAST_FILLING, "maximum": MOST_FILLING}
    several = [_kind("only_up", ordered), _kind("only_down", ordered),
               _kind("range", numbers, {}, {"lower": NUMBER, "upper": NUMBER}),
               _kind("max_delta", ordered, {"by": size}), _kind("max_delta", numbers, {"share": size}),
               _kind("imputable", missing, {}, {"change": {"type": "number", **filling}})]  # fmt: skip
    whatever = [record({"kind": {"const": kind}, "feature": any_feature}) for kind in ("fixed", "unconstrained")]
    single = [shape for one in features for shape in _of_feature(one, any_feature)]
    most = record({"kind": {"const": "max_changes"}, "most": {"type": "integer", "minimum": 0}})
    return [*whatever, *(shape for shape in several if shape["properties"]["feature"]["enum"]), *single, most]


def _of_feature(feature: Feature, any_feature: Shape) -> list[Shape]:
    """Constraints whose other entries depend on the feature: its options, its steps, its partners."""
    name, found = feature.name, list[Shape]()
    if isinstance(feature, Choice):
        found.append(_kind("allowed", [name], {"values": listing(option_shape(feature), minItems=1)}))
    elif (step := _step(feature)) is not None:
        found.append(_kind("steps", [name], {"step": step}))
    if not (isinstance(feature, Real) and feature.grid is None):  # a real number can change by next to nothing
        partner = {"feature": {**any_feature, "not": {"const": name}}, "partner": {"const": name}}
        found.append(record({"kind": {"const": "only_with"}, **partner}))
    return found


def _step(feature: Numeric) -> Shape | None:
    """The steps in which a number may change; None where no step can be written."""
    if isinstance(feature, Integer):
        return {"type": "number", "exclusiveMinimum": 0, "multipleOf": feature.step}
    assert isinstance(feature, Real)
    if feature.grid is None:
        return {"type": "number", "minimum": FINEST_STEP * math.ulp(max(abs(feature.lower), abs(feature.upper)))}
    own = feature.grid.step
    return {"type": "number", "exclusiveMinimum": 0, "multipleOf": float(own)} if written(float(own)) == own else None


def _kind(kind: str, features: list[str], needed: Shape | None = None, optional: Shape | None = None) -> Shape:
    return record({"kind": {"const": kind}, "feature": {"enum": features}, **(needed or {})}, optional)
