"""The description and the service agree about bodies: what is refused is against the description, as far as that can say it."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile_bodies import questions
from ifonly import Binary, Categorical, Explainer, Integer, Network, Ordinal, Real, Schema
from ifonly.model import network_model
from ifonly.service import ModelRegistry, RegisteredModel, ServiceLimits
from ifonly.service.app import AccessPolicy, Service
from ifonly.service.handler import Handler
from schema_bodies import drawn
from services import Inline, Visitor

MANY = int(os.environ.get("IFONLY_HOSTILE", "150"))
LIMITS = ServiceLimits(seconds=0.05, text=200)
NO_SHAPE = (
    "is empty; swap its ends",  # of a range, of scores: JSON Schema compares no two numbers
    "is narrower than twice the margin",
    "at once; give one of them",  # two steps of a feature
    "a real number, differs by arbitrarily little",  # what follows are questions that are not answered exactly
    "which is not piecewise linear",
    "nothing can be proven",
    "A certificate cannot state",
    "for a certificate",
    "There is no proof to write out",  # time is up
    "The proof could not be written out",
    "This person is decided as asked already",
    "This row is decided as asked already",
    "could not be proven in exact arithmetic",
)
"""Refusals of bodies that are as described, by their sentences."""


def small(name: str, classes: int) -> RegisteredModel:
    """A model with every kind of feature; no classes: a regression."""
    price = Real("price", 0, 10, step=0.25 if classes > 2 else None)
    features = [Integer("years", 0, 40), Integer("fives", 10, 90, step=5), Real("amount", 0, 1000), price,
                Binary("owner"), Categorical("town", ["Ulm", "Köln", "it's"]), Ordinal("rank", ["low", "mid", "high"])]  # fmt: skip
    schema = Schema(features)
    rng = np.random.default_rng(classes)
    outputs = 1 if classes in (0, 2) else classes
    width = len(schema.columns)
    network = Network.of([(rng.normal(size=(outputs, width)) / 50.0, rng.normal(size=outputs))])
    named = {"classes": tuple("abcdef"[:classes])} if classes else {"regression": True}
    model = network_model(network, schema, **named)
    return RegisteredModel(name=name, explainer=Explainer(model.as_log_odds() if classes == 2 else model))


def visitor(*registered_models: RegisteredModel) -> Visitor:
    registry = ModelRegistry(registered_models)
    return Visitor(Service(registry, LIMITS, Inline(Handler(registry, LIMITS, slow=True)), AccessPolicy()))  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=["two classes", "three classes", "regression", "several models"])
def desk(request) -> Visitor:
    made = {"two classes": [small("two", 2)], "three classes": [small("three", 3)], "regression": [small("none", 0)],
            "several models": [small("two", 2), small("three", 3), small("none", 0)]}  # fmt: skip
    return visitor(*made[request.param])


Validators = dict[str, jsonschema.Draft202012Validator]


def described(visit: Visitor) -> tuple[dict[str, Any], Validators, dict[str, Any], Validators]:
    """By path: the shapes of bodies that the models take, their validators, the definitions that they use, and the
    validators of the OpenAPI description, which is the same for all models."""
    api = visit("GET", "/openapi.json").json()
    names = {path: one["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
             for path, one in api["paths"].items() if "post" in one and path not in ("/v1/check", "/v1/explain/batch")}  # fmt: skip
    general = {
        path: jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": api["components"]})
        for path, name in names.items()
    }
    shapes: dict[str, Any] = {}
    for model in (one["name"] for one in visit("GET", "/v1/models").json()["models"]):
        document = visit("GET", f"/v1/json-schema?model={model}").json()
        jsonschema.Draft202012Validator.check_schema(document)
        text = json.dumps(document["$defs"]).replace('"$ref": "#/$defs/', f'"$ref": "#/$defs/{model} ')
        shapes |= {f"{model} {name}": shape for name, shape in json.loads(text).items()}
    bodies = {}
    for path, name in names.items():
        of_models = [one for one in shapes if one.endswith(f" {name}")]
        if of_models:  # there may be nothing to certify
            bodies[path] = {"anyOf": [{"$ref": f"#/$defs/{one}"} for one in of_models]}
    checks = {path: jsonschema.Draft202012Validator({**shape, "$defs": shapes}) for path, shape in bodies.items()}
    return bodies, checks, shapes, general


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:overflow encountered")  # numpy's, at numbers such as 1e300
def test_what_is_as_described_is_never_refused_for_its_shape(desk) -> None:
    bodies, checks, shapes, general = described(desk)
    asked = st.sampled_from(sorted(bodies)).flatmap(lambda path: st.tuples(st.just(path), drawn(bodies[path], shapes)))
    answered = []

    @settings(
        max_examples=MANY // 2, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(asked)
    def ask(one: tuple[str, Any]) -> None:
        path, body = one
        body = json.loads(json.dumps(body))
        answer = desk("POST", path, content=json.dumps(body).encode(), headers={"content-type": "application/json"})
        answered.append(answer.status_code)
        general[path].validate(body)
        if answer.status_code != 200:
            assert answer.status_code == 422 and any(words in answer.text for words in NO_SHAPE), (
                path,
                body,
                answer.text,
            )
        if not any(
            "multipleOf" in str(error.schema_path) for error in checks[path].iter_errors(body)
        ):  # in binary fractions there
            checks[path].validate(body)

    ask()
    assert answered.count(200) > len(answered) // 2


def about_words(told: dict[str, Any], body: Any) -> bool:
    """Is it a rule in words that is refused? Its grammar, and what it says, is no matter of JSON Schema."""
    at = re.fullmatch(r"query\.constraints\[(\d+)\]", told["where"] or "")
    if at is None:
        return told["where"] == "text"
    one = body["query"]["constraints"][int(at[1])]
    return isinstance(one, str) or one["kind"] == "rule"


@pytest.mark.long
def test_what_is_refused_is_not_as_described(visit, people) -> None:
    """Every place of a question with every strange value: the other direction, on bodies that nobody drew for it."""
    _, checks, _, _ = described(visit)
    every = list(questions(people[3]))
    refused = 0
    for path, text in every[:: max(1, len(every) // (2 * MANY))]:
        try:
            body = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError):
            continue  # that is no JSON
        if path not in checks:
            continue
        answer = visit("POST", path, content=text, headers={"content-type": "application/json"})
        if answer.status_code in (404, 422) and checks[path].is_valid(body):
            told = answer.json()
            assert about_words(told, body) or any(words in told["error"] for words in NO_SHAPE), (path, body, told)
        refused += answer.status_code in (404, 422)
    assert refused > MANY // 2
