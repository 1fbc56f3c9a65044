"""The question of a certificate: as plain data, and read back.

`question_data` is the only place where a network is written into a statement.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.check.statement import MAX_BITS
from ifonly.certificate.format import Certificate, canonical
from ifonly.errors import FileError, IfonlyError, UnsupportedQuestion
from ifonly.model import Network, network_model
from ifonly.problem import (
    Allowed,
    ClassTarget,
    Constraint,
    Distance,
    Fixed,
    OnlyDown,
    OnlyUp,
    ProbabilityTarget,
    Query,
    Question,
    Range,
    ScoreTarget,
    Target,
)
from ifonly.problem.target import class_index
from ifonly.schema import Numeric, Schema
from ifonly.schema.io import schema_from_json, schema_to_json

GRID_BITS = 80
COST_BITS = 96
RELATIVE_BITS = 64
"""Of the smallest rate, in the cost grid."""


def question_data(question: Question) -> dict[str, Any]:
    """The question as a certificate states it, but for the person."""
    schema, distance = question.schema, question.distance
    if question.others:
        raise UnsupportedQuestion(
            f"A certificate cannot state that another model decides, such as '{question.others[0].describe()}', yet; "
            f"`explain` answers it."
        )
    if question.rules:
        raise UnsupportedQuestion(
            f"A certificate cannot state rules yet, such as '{question.rules[0].describe()}'; `explain` answers them. "
            f"The rules of a schema are left out with --without-rules (of a shipped data set: rules=False)."
        )
    if schema.grids:
        name = schema.names[next(iter(schema.grids))]
        raise UnsupportedQuestion(
            f"A certificate cannot state the steps of a real number yet, such as those of '{name}'; `explain` answers "
            f"with them, and an Integer, in whole units of its own, may have them here, too."
        )
    if not distance.is_symmetric:
        raise UnsupportedQuestion("A certificate cannot state costs by direction or transition yet; `explain` can.")
    function = question.model.function.statement()
    if function is None:
        raise UnsupportedQuestion(f"A certificate cannot state {question.model.function.name} yet; `explain` can.")
    there = [replace(f, missing=False) if isinstance(f, Numeric) else f for f in schema.features]
    return {
        "schema": schema_to_json(Schema(there, schema.columns)),  # what is there does not become missing
        **function,
        "distance": {
            "norm": distance.norm if isinstance(distance.norm, str) else "l0+l1",
            "jump": float(distance.jump).hex(),
            "rate": float(distance.rate).hex(),
            "weights": hexes(distance.weight_vector(schema)),
            "scales": hexes(distance.scale_vector(schema)),
        },
        "constraints": [_constraint(schema, constraint) for constraint in question.by_feature],
        "target": _target_data(question),
    }


def question_of(data: dict[str, Any]) -> tuple[Question, NDArray[np.float64]]:
    """The inverse of `question_data`, for a certificate that was checked; and the person."""
    schema = schema_from_json(data["schema"])
    network = Network.of([
        (np.array([[float.fromhex(v) for v in row] for row in layer["weight"]]), _numbers(layer["bias"]))
        for layer in data["network"]
    ])  # fmt: skip
    distance, target = data["distance"], data["target"]
    norm = distance["norm"]
    if norm == "l0+l1":
        norm = {"l0": float.fromhex(distance["jump"]), "l1": float.fromhex(distance["rate"])}
    classes: tuple[Any, ...] = ()
    margin = float.fromhex(target["margin"])
    stated: Target
    if "class" in target:
        count = max(len(data["network"][-1]["bias"]), 2)
        classes = tuple(target["label"] if k == target["class"] else f"class {k}" for k in range(count))
        stated = ClassTarget(target["label"], margin)
    else:
        ends = {name: None if target[name] is None else float.fromhex(target[name]) for name in ("at_least", "at_most")}
        stated = ScoreTarget(output=target["output"], margin=margin, **ends)
    weights, scales = (dict(zip(schema.names, _numbers(distance[key]).tolist(), strict=True))
                       for key in ("weights", "scales"))  # fmt: skip
    plain = Distance(norm).scale_vector(schema).tolist()
    scales = {name: v for (name, v), own in zip(scales.items(), plain, strict=True) if v != own}
    question = Question(
        model=network_model(network, schema, classes=classes),
        target=stated,
        distance=Distance(norm, {name: w for name, w in weights.items() if w != 1.0}, scales),
        constraints=[_constraint_of(schema, constraint) for constraint in data["constraints"]],
    )
    if canonical({**question_data(question), "factual": data["factual"]}) != canonical(data):
        raise UnsupportedQuestion(
            "The question of this certificate cannot be asked again: it is stated in another way."
        )
    return question, _numbers(data["factual"])


def certified_query(certificate: Certificate | str | Path) -> tuple[Query, dict[str, Any]]:
    """The query that a certificate, or the file of one, answers, and the row that it is about: both can be asked again.

    Nothing is checked but that the question can be read; `ifonly.check` checks the rest.
    """
    if not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    try:
        question, point = question_of(certificate.data["question"])
    except IfonlyError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise FileError("The question of this certificate cannot be read; `ifonly check` says what is wrong.") from None
    query = Query(target=question.target, distance=question.distance, constraints=question.constraints)
    return query, question.schema.row(point)


def _numbers(values: list[str]) -> NDArray[np.float64]:
    return np.array([float.fromhex(v) for v in values])


def hexes(values: NDArray[np.float64]) -> list[str]:
    return [(v + 0.0).hex() for v in values.tolist()]  # + 0.0 turns -0.0 into 0.0


def _target_data(question: Question) -> dict[str, Any]:
    target, model = question.target, question.model
    if isinstance(target, ProbabilityTarget) and model.network.outputs == 1:
        target = target.as_score(model)
    margin = (target.margin + 0.0).hex()
    if isinstance(target, ClassTarget):
        index = class_index(model, target.label)
        return {"class": index, "label": str(model.classes[index]), "margin": margin}
    if not isinstance(target, ScoreTarget):
        raise UnsupportedQuestion(f"A certificate cannot state the target '{target.describe()}' yet.")
    ends = {name: getattr(target, name) for name in ("at_least", "at_most")}
    return {
        "output": int(target.output),
        "margin": margin,
        **{name: None if end is None else (end + 0.0).hex() for name, end in ends.items()},
    }


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
    raise UnsupportedQuestion(f"A certificate cannot state the constraint '{constraint.describe()}' yet.")


def _constraint_of(schema: Schema, data: dict[str, Any]) -> Constraint:
    feature = data["feature"]
    match data["kind"]:
        case "fixed":
            return Fixed(feature)
        case "only_up":
            return OnlyUp(feature)
        case "only_down":
            return OnlyDown(feature)
        case "range":
            ends = (-math.inf if data["lower"] is None else float.fromhex(data["lower"]),
                    math.inf if data["upper"] is None else float.fromhex(data["upper"]))  # fmt: skip
            return Range(feature, *ends)
    return Allowed(feature, [schema[feature].value(float(option)) for option in data["options"]])


def grids(question: Question, point: NDArray[np.float64]) -> tuple[int, int]:
    """How fine numbers and costs must be counted: numbers exactly, costs to about 2^-64 of the smallest rate."""
    schema, distance = question.schema, question.distance
    ends = [v for f in schema.features if isinstance(f, Numeric) for v in (f.lower, f.upper)]
    ends += [v for c in question.constraints if isinstance(c, Range) for v in (c.lower, c.upper) if math.isfinite(v)]
    finest = max(Fraction(v).denominator.bit_length() - 1 for v in [*ends, *point.tolist(), 1.0])
    rate = distance.weight_vector(schema) / distance.scale_vector(schema) * max(distance.rate, 2.0**-20)
    least = float(np.log2(rate.min() / len(schema))) * (2.0 if distance.name == "l2" else 1.0)
    cost = max(COST_BITS, RELATIVE_BITS + math.ceil(-least))
    if max(finest, cost) > MAX_BITS:
        raise UnsupportedQuestion("The numbers of this question are too small or too far apart for a certificate.")
    return max(GRID_BITS, finest), cost
