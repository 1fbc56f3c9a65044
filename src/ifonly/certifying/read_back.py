"""The question of a certificate, read back: the query that it answers, and the row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.certificate.format import Certificate, canonical
from ifonly.certifying.statement import question_data
from ifonly.errors import FileError, IfonlyError, UnsupportedQuestion
from ifonly.model import Network, network_model
from ifonly.problem import (
    Allowed,
    ClassTarget,
    Distance,
    Fixed,
    MaxChanges,
    MaxDelta,
    OnlyDown,
    OnlyUp,
    OnlyWith,
    Query,
    Question,
    Range,
    Rule,
    ScoreTarget,
    Steps,
    Target,
)
from ifonly.problem.words import show_name, show_option
from ifonly.schema import Schema
from ifonly.schema.io import schema_from_json


def question_of(data: dict[str, Any]) -> tuple[Question, NDArray[np.float64]]:
    """The inverse of `question_data`, for a certificate that was checked; and the person."""
    schema = schema_from_json(data["schema"])
    _refuse_to_ask(data)
    network = Network.of([
        (np.array([[float.fromhex(v) for v in row] for row in layer["weight"]]), _numbers(layer["bias"]))
        for layer in data["model"]["layers"]
    ])  # fmt: skip
    distance, target = data["distance"], data["target"]
    norm = distance["norm"]
    if norm == "l0+l1":
        norm = {"l0": float.fromhex(distance["jump"]), "l1": float.fromhex(distance["rate"])}
    classes: tuple[Any, ...] = ()
    margin = float.fromhex(target["margin"])
    stated: Target
    if "class" in target:
        count = max(len(data["model"]["layers"][-1]["bias"]), 2)
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
        distance=Distance(
            norm, {name: w for name, w in weights.items() if w != 1.0}, scales, **_directions(schema, distance)
        ),
        constraints=[_constraint_of(schema, constraint) for constraint in data["constraints"]],
    )
    if canonical({**question_data(question), "factual": data["factual"]}) != canonical(data):
        raise UnsupportedQuestion(
            "The question of this certificate cannot be asked again: it is stated in another way."
        )
    return question, _numbers(data["factual"])


def _refuse_to_ask(data: dict[str, Any]) -> None:
    """A sentence about a question that cannot be made of what a certificate states."""
    if "any" in data["target"] or "ahead" in data["target"]:
        raise UnsupportedQuestion(
            "The target of this certificate has alternatives: its question cannot be asked again."
        )
    if "causes" in data:
        raise UnsupportedQuestion("This certificate is about actions under causes: its question cannot be asked again.")
    kinds = {one["kind"] for one in data["constraints"]} & {"apart", "fewest_changes"}
    if kinds or "reason" in data or "log_odds" in data["target"]:
        raise UnsupportedQuestion(
            "This certificate is about one answer of a set, the fewest changes, a probability or a reason: its "
            "question cannot be asked again."
        )
    if data["model"]["kind"] == "several":
        raise UnsupportedQuestion("This certificate is about several models: its question cannot be asked again.")
    if data["model"]["kind"] != "network":
        raise UnsupportedQuestion("The model of this certificate is not a network: its question cannot be asked again.")


def _directions(schema: Schema, distance: dict[str, Any]) -> dict[str, Any]:
    """Costs by direction and transition, as a `Distance` has them."""
    listed = {key: zip(schema.names, _numbers(distance[key]).tolist(), strict=True) for key in ("up", "down")}
    moves: dict[str, dict[tuple[Any, Any], float]] = {}
    for g, before, after, change in distance["transitions"]:
        feature = schema.features[g]
        pair = (feature.value(float(before)), feature.value(float(after)))
        moves.setdefault(feature.name, {})[pair] = float.fromhex(change)
    return {**{key: {name: v for name, v in pairs if v != 1.0} for key, pairs in listed.items()}, "transitions": moves}


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


def _rule_of(schema: Schema, clause: dict[str, Any]) -> Rule:
    """A clause in the words of the rule language."""
    words = []
    for one in clause["any"]:
        if "feature" in one:
            options = [show_option(schema[one["feature"]].value(float(o))) for o in one["options"]]
            words.append(f"{show_name(one['feature'])} in ({', '.join(options)})")
            continue
        top, bottom = one["constant"]
        terms = [f"{a * bottom} * {show_name(name)}" for name, a in one["numbers"]]
        for name, values in one["options"]:
            terms += [f"{v * bottom} * [{show_name(name)} = {show_option(schema[name].value(float(o)))}]"
                      for o, v in enumerate(values) if v]  # fmt: skip
        words.append(f"{' + '.join(terms)} >= {-top}")
    return Rule(" or ".join(words))


def _constraint_of(schema: Schema, data: dict[str, Any]) -> Any:
    if data["kind"] == "clause":
        return _rule_of(schema, data)
    if data["kind"] == "max_changes":
        return MaxChanges(data["most"], frozenset(data["uncounted"]))
    feature = data["feature"]
    match data["kind"]:
        case "only_with":
            return OnlyWith(feature, data["partner"])
        case "max_delta":
            return MaxDelta(
                feature, **{key: None if data[key] is None else float.fromhex(data[key]) for key in ("by", "share")}
            )
        case "steps":
            return Steps(feature, float.fromhex(data["step"]))
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
