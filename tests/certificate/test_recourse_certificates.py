"""Certificates of recourse: what they say, what they refuse, and that a changed equation is another question."""

from __future__ import annotations

import copy

import pytest

from certificate.by_enumeration import untruth
from certificate.samples import restamped
from ifonly import CausalModel, Explainer, Integer, Network, Real, Schema, check
from ifonly.causes import LinearEquation, ModelEquation
from ifonly.certifying import certified_query, certify, certify_recourse
from ifonly.errors import UnsupportedQuestion
from ifonly.model import network_model
from ifonly.model.smooth import Activation, SmoothNetwork

SCHEMA = Schema([Integer("study", 0, 4), Integer("grade", 0, 9), Integer("luck", 0, 5)])
MODEL = network_model(Network.of([([[0.0, 1.0, 0.5]], [-5.9])]), SCHEMA, classes=("no", "yes"))
PERSON = {"study": 1, "grade": 3, "luck": 1}
CAUSES = CausalModel(SCHEMA, {"grade": LinearEquation({"study": 1.5}, 1.0)}, holding=0.2)


def test_what_follows_and_what_is_held() -> None:
    explainer = Explainer(MODEL)
    told = explainer.recourse(PERSON, CAUSES)
    certificate = certify_recourse(explainer, PERSON, CAUSES)
    checked = check(certificate)
    assert checked.valid and checked.upper == pytest.approx(told.cost) and not untruth(certificate.data)
    done = ", ".join(f"'{one.feature}'={one.value}" for one in told.actions)
    (follows,) = told.follows
    assert f"{done}, from which '{follows.feature}'={follows.after} follows" in checked.statement
    assert "Causes: 'grade' follows from 1.5 * 'study' + 1.0, and the noise" in checked.statement
    assert "'grade' follows to the nearest step; acting on it counts 0.2 beside its change" in checked.rules


@pytest.mark.parametrize("change", ["holding", "constant", "numbers"])
def test_another_equation_is_another_question(change: str) -> None:
    data = copy.deepcopy(certify_recourse(Explainer(MODEL), PERSON, CAUSES).data)
    (equation,) = data["question"]["causes"]
    if change == "holding":
        equation["holding"] = (0.0).hex()  # acting on the grade itself is cheaper now
    elif change == "constant":
        equation["cases"][0]["when"] = [
            {"feature": "study", "low": (2.0).hex(), "high": None}
        ]  # the person is in no case
    else:
        equation["cases"][0]["numbers"] = [["study", (4.0).hex()]]  # a little study is enough now
    checked = check(restamped(data))
    assert checked.verdict == "INVALID" and checked.failure


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"cases": [{"when": [], "numbers": [["grade", (1.0).hex()]], "options": [], "constant": (0.0).hex()}]},
            "itself",
        ),
        ({"within": (1.0).hex()}, "steps alone"),
        ({"holding": (-1.0).hex()}, "less than nothing"),
        ({"layers": []}, "entries"),
        ({"feature": "luc"}, "each once"),
    ],
)
def test_malformed_equations(change: dict, said: str) -> None:
    data = copy.deepcopy(certify_recourse(Explainer(MODEL), PERSON, CAUSES).data)
    data["question"]["causes"][0] |= change
    checked = check(restamped(data))
    assert checked.verdict == "INVALID"
    assert said in checked.failure or said == "entries", checked.failure


def test_without_equations_it_is_the_nearest_row() -> None:
    explainer = Explainer(MODEL)
    plain = certify_recourse(explainer, PERSON, CausalModel(SCHEMA, {}))
    assert plain.data == certify(explainer, PERSON).data


def test_what_is_refused() -> None:
    schema = Schema([Real("cause", 0, 1), *(Real(f"x{k}", 0, 1) for k in range(7))])
    model = network_model(Network.of([([[1.0] * 8], [-6.0])]), schema, classes=("no", "yes"))
    person = dict.fromkeys(schema.names, 0.5)
    causes = CausalModel(schema, {f"x{k}": LinearEquation({"cause": 0.1}) for k in range(7)})
    with pytest.raises(UnsupportedQuestion, match="in more than 64 ways"):
        certify_recourse(Explainer(model), person, causes)
    bent = SmoothNetwork(Network.of([([[1.0]], [-2.0]), ([[3.0]], [0.0])]), [Activation("tanh")])
    curved = CausalModel(SCHEMA, {"grade": ModelEquation(["study"], bent)})
    with pytest.raises(UnsupportedQuestion, match="cannot state the equation of 'grade', which is a network with tanh"):
        certify_recourse(Explainer(MODEL), PERSON, curved)
    with pytest.raises(UnsupportedQuestion, match="cannot be asked again"):
        certified_query(certify_recourse(Explainer(MODEL), PERSON, CAUSES))
