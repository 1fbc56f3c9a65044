"""The question of a certificate: as plain data, and read back.

`question_data` is the only place where a network is written into a statement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.softmax import PARTS
from ifonly.certifying.learned_rules import learned_data
from ifonly.errors import UnsupportedQuestion
from ifonly.model import Model
from ifonly.model.kind import Kind
from ifonly.model.trees import Trees
from ifonly.problem import (
    Accepted,
    Allowed,
    ClassTarget,
    Constraint,
    Distance,
    Fixed,
    MaxChanges,
    MaxDelta,
    OnlyDown,
    OnlyUp,
    OnlyWith,
    ProbabilityTarget,
    Question,
    Range,
    Rule,
    ScoreTarget,
    Steps,
    Target,
)
from ifonly.problem.learned.support import NumberGivenOption, OptionsTogether
from ifonly.problem.rule import RowRule
from ifonly.problem.rules.formulas import Member
from ifonly.problem.rules.normal import AtLeast
from ifonly.problem.softmax import PlanesRecord, first_weights
from ifonly.problem.target import AheadTarget, class_index
from ifonly.results.claim import Claim
from ifonly.schema import Numeric, Schema
from ifonly.schema.io import schema_to_json


@dataclass(frozen=True)
class StatedExtras:
    """What a certificate states beside a question: all models that its alternatives ask (None: its own), further
    constraints, as a certificate has them; and, of a probability of one of several classes, what the search claims.
    """

    others: Sequence[Accepted] | None = None
    constraints: Sequence[dict[str, Any]] = ()
    claim: Claim | None = None
    causes: list[dict[str, Any]] | None = None
    """The equations of features that follow."""
    acted: int = 0
    """Which of the sets of features with causes to act on, in their order."""


NO_EXTRAS = StatedExtras()


def question_data(question: Question, others: Sequence[Accepted] | None = None) -> dict[str, Any]:
    """The question as a certificate states it, but for the person. `others`: all models that alternatives of the
    question ask, of which this one may ask some only."""
    schema, distance = question.schema, question.distance
    others = question.others if others is None else others
    return {
        "schema": stated_schema(schema),
        "model": _models(question, others),
        "distance": {
            "norm": distance.norm if isinstance(distance.norm, str) else "l0+l1",
            "jump": float(distance.jump).hex(),
            "rate": float(distance.rate).hex(),
            "weights": hexes(distance.weight_vector(schema)),
            "scales": hexes(distance.scale_vector(schema)),
            "up": hexes(distance.direction_vectors(schema)[0]),
            "down": hexes(distance.direction_vectors(schema)[1]),
            "transitions": _transitions(schema, distance),
        },
        "constraints": [
            *(_constraint(schema, constraint) for constraint in question.by_feature),
            *(stated for rule in question.rules for stated in _rule(schema, rule)),
        ],
        "target": _targets(question, others),
    }


def _models(question: Question, others: Sequence[Accepted]) -> dict[str, Any]:
    models = [_stated(question.model, "")]
    models += [_stated(one.model(question.schema), f"'{one.name}': ") for one in others]
    return {"kind": "several", "models": models} if others else models[0]


def _stated(model: Model, where: str) -> dict[str, Any]:
    function = stated_model(model)
    if function is None:
        raise UnsupportedQuestion(f"{where}A certificate cannot state {model.function.name} yet; `explain` can.")
    return function


def _targets(question: Question, others: Sequence[Accepted]) -> dict[str, Any]:
    own = target_data(question.single_target, question.model)
    if not others:
        return own
    schema = question.schema
    asked = [
        target_data(one.target_of(schema), one.model(schema)) if one in question.others else None for one in others
    ]
    return {"all": [own, *asked]}


_STATED: WeakKeyDictionary[Kind, dict[str, Any] | None] = WeakKeyDictionary()
"""Of the models that are in use."""


def stated_model(model: Model) -> dict[str, Any] | None:
    """The model as a certificate states it; None if it cannot."""
    function = model.function
    if function not in _STATED:
        trees, network = function.as_trees(), function.statement()
        stated: dict[str, Any] | None = {"kind": "network", "layers": network["network"]} if network else None
        if stated is not None and network is not None and "activations" in network:
            stated |= {"kind": "smooth", "activations": network["activations"]}
        if stated is not None and network is not None and "error" in network:
            stated |= {"kind": "reconstruction", **network["error"]}
        _STATED[function] = stated if trees is None else _trees_data(trees)
    return _STATED[function]


_STATED_SCHEMAS: WeakKeyDictionary[Schema, tuple[ref[Schema], dict[str, Any]]] = WeakKeyDictionary()
"""Of the schemas that are in use. Equal ones may be written otherwise (1 and true): each entry is of one schema."""


def stated_schema(schema: Schema) -> dict[str, Any]:
    """The schema as a certificate states it: without rules and translations, and what is there does not become
    missing."""
    known = _STATED_SCHEMAS.get(schema)
    if known is None or known[0]() is not schema:
        known = _STATED_SCHEMAS[schema] = ref(schema), _written_schema(schema)
    return known[1]


def _written_schema(schema: Schema) -> dict[str, Any]:
    features = [replace(f, translations={}) for f in schema.features]
    there = [replace(f, missing=False) if isinstance(f, Numeric) else f for f in features]
    return schema_to_json(Schema(there, schema.columns))


def hexes(values: NDArray[np.float64]) -> list[str]:
    return [(v + 0.0).hex() for v in values.tolist()]  # + 0.0 turns -0.0 into 0.0


def target_data(target: Target, model: Model) -> dict[str, Any]:
    """What is asked of a model, as a certificate states it."""
    if isinstance(target, ProbabilityTarget):
        if target.curved(model):
            return _probability(target, model)
        if model.scores_are == "probabilities":
            output = class_index(model, target.label)
            target = ScoreTarget(at_least=target.at_least, output=output, margin=target.margin)
        elif model.outputs == 1:
            target = target.as_score(model)
    margin = (target.margin + 0.0).hex()
    if isinstance(target, ClassTarget):
        index = class_index(model, target.label)
        return {"class": index, "label": str(model.classes[index]), "margin": margin}
    if isinstance(target, AheadTarget) and model.function.outputs > 1:
        index, others = class_index(model, target.label), [class_index(model, label) for label in target.others]
        return {"ahead": index, "of": list(dict.fromkeys(others)), "label": str(model.classes[index]), "margin": margin}
    if not isinstance(target, ScoreTarget):
        raise UnsupportedQuestion(f"A certificate cannot state the target '{target.describe()}' yet.")
    ends = {name: getattr(target, name) for name in ("at_least", "at_most")}
    return {
        "output": int(target.output),
        "margin": margin,
        **{name: None if end is None else (end + 0.0).hex() for name, end in ends.items()},
    }


def _probability(target: ProbabilityTarget, model: Model) -> dict[str, Any]:
    index = class_index(model, target.label)
    return {
        "class": index,
        "label": str(model.classes[index]),
        "log_odds": float(target.threshold).hex(),
        "margin": (target.margin + 0.0).hex(),
    }


def stated_planes(question: Question, claim: Claim | None) -> list[Any] | None:
    """The planes around a probability of one of several classes, beyond those that every checker makes itself: of each,
    the parts of its weights and bounds of their logarithms. None where no such probability is asked for.
    """
    target, model = question.target, question.model
    if not isinstance(target, ProbabilityTarget) or not target.curved(model):
        return None
    found = claim.record.weights if claim is not None and isinstance(claim.record, PlanesRecord) else ()
    own = [one for one in dict.fromkeys((*first_weights(model.outputs), *found)) if max(one) < 1.0]
    return [[[round(w * PARTS), _below(w).hex()] for w in weights] for weights in own]


def _below(weight: float) -> float:
    """A number that is at most minus the logarithm of a weight."""
    return 0.0 if weight in (0.0, 1.0) else max(-math.log(weight) * (1.0 - 2.0**-48) - 2.0**-60, 0.0)


def _constraint(schema: Schema, constraint: Constraint) -> dict[str, Any]:
    match constraint:
        case Fixed():
            return {"kind": "fixed", "feature": constraint.feature}
        case OnlyUp():
            return {"kind": "only_up", "feature": constraint.feature}
        case OnlyDown():
            return {"kind": "only_down", "feature": constraint.feature}
        case Range():
            ends = {"lower": constraint.lower, "upper": constraint.upper}
            listed = {name: None if math.isinf(end) else (end + 0.0).hex() for name, end in ends.items()}
            return {"kind": "range", "feature": constraint.feature, **listed}
        case Allowed():
            feature = schema[constraint.feature]
            options = sorted({int(feature.read(value)) for value in constraint.values})
            return {"kind": "allowed", "feature": constraint.feature, "options": options}
        case MaxDelta():
            given = {"by": constraint.by, "share": constraint.share}
            limits = {name: None if v is None else (float(v) + 0.0).hex() for name, v in given.items()}
            return {"kind": "max_delta", "feature": constraint.feature, **limits}
        case Steps():
            return {"kind": "steps", "feature": constraint.feature, "step": float(constraint.step).hex()}
    raise UnsupportedQuestion(f"A certificate cannot state the constraint '{constraint.describe()}' yet.")


def _trees_data(trees: Trees) -> dict[str, Any]:
    """An ensemble as a certificate states it."""
    ensemble, how = trees.ensemble, trees.ensemble.summation
    nodes, lists = ensemble.nodes, []
    for t, root in enumerate(ensemble.roots.tolist()):
        listed: list[list[Any]] = []
        waiting: list[tuple[int, int]] = [(root, -1)]
        while waiting:
            node, parent = waiting.pop()
            g, threshold = int(nodes.column[node]), float(nodes.threshold[node])
            while g >= 0 and nodes.chosen[node] < 0 and math.isinf(threshold):  # every number goes one way
                node = int(nodes.left[node] if threshold > 0.0 else nodes.right[node])
                g, threshold = int(nodes.column[node]), float(nodes.threshold[node])
            if parent >= 0:
                listed[parent][2] = len(listed)
            if g < 0:
                listed.append([float(v).hex() for v in ensemble.values[nodes.leaf[node]].tolist()])
                continue
            chosen = int(nodes.chosen[node])
            count = len(getattr(trees.schema.features[g], "options", ()))
            goes: Any = threshold.hex() if chosen < 0 else np.flatnonzero(ensemble.sets[chosen][:count]).tolist()
            listed.append([g, goes, 0])
            waiting += [(int(nodes.right[node]), len(listed) - 1), (int(nodes.left[node]), -1)]
        lists.append({"adds_to": int(ensemble.adds_to[t]), "nodes": listed})
    return {
        "kind": "trees",
        "start": hexes(how.start),
        "shift": hexes(how.shift),
        "divisor": float(how.divisor).hex(),
        "scale": float(how.scale).hex(),
        "trees": lists,
    }


def _transitions(schema: Schema, distance: Distance) -> list[list[Any]]:
    """[feature, option before, option after, change] of each."""
    result = []
    for name, moves in distance.transitions.items():
        feature = schema[name]
        result += [[schema.index(name), int(feature.read(a)), int(feature.read(b)), float(v).hex()]
                   for (a, b), v in moves.items()]  # fmt: skip
    return sorted(result)


def _rule(schema: Schema, rule: RowRule) -> list[dict[str, Any]]:
    """A rule on the row as a whole: its clauses, or what it says of changes."""
    match rule:
        case MaxChanges():
            most, names = min(rule.most, len(schema)), sorted(rule.uncounted, key=schema.index)
            return [{"kind": "max_changes", "most": most, "uncounted": names}]
        case OnlyWith():
            return [{"kind": "only_with", "feature": rule.feature, "partner": rule.partner}]
        case Rule():
            return [{"kind": "clause", "any": [_literal(schema, one) for one in clause]}
                    for clause in rule.clauses(schema)]  # fmt: skip
        case NumberGivenOption() | OptionsTogether():
            return learned_data(schema, rule)
    raise UnsupportedQuestion(f"A certificate cannot state '{rule.describe()}' yet; `explain` answers it.")


def _literal(schema: Schema, one: Member | AtLeast) -> dict[str, Any]:
    if isinstance(one, Member):
        return {"feature": schema.names[one.feature], "options": sorted(one.options)}
    return {
        "numbers": [[schema.names[g], a] for g, a in one.numbers],
        "options": [[schema.names[g], list(values)] for g, values in one.options],
        "constant": [one.constant.numerator, one.constant.denominator],
    }
