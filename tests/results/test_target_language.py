"""Targets about scores, probabilities and ranks in German sentences."""

from __future__ import annotations

import numpy as np
import pytest

import ifonly
from ifonly import (
    Explainer,
    Network,
    OneOfTarget,
    OtherTarget,
    ProbabilityTarget,
    Query,
    Real,
    Schema,
    ScoreTarget,
    TopTarget,
)
from ifonly.results.target_language import decision_in, goal_in

SCHEMA = Schema([Real("a", 0, 1), Real("b", 0, 1)])
ROW = {"a": 0.1, "b": 0.2}
STAYS = ["a is fixed", "b is fixed"]
ENGLISH = (" the ", " of ", "score", "least", "most", " in ", "highest", "anything", "among", "probability")


def two() -> Explainer:
    return Explainer(Network.of([([[1.0, 1.0]], [-1.0])]), schema=SCHEMA, classes=("nein", "ja"))


def three() -> Explainer:
    weight = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]])
    return Explainer(Network.of([(weight, [0.0, 0.0, 0.3])]), schema=SCHEMA, classes=("rot", "gelb", "blau"))


CASES = [
    (two, ScoreTarget(at_least=0.5), "Der Punktwert ist mindestens 0,5"),
    (two, ScoreTarget(at_most=-0.9), "Der Punktwert ist höchstens -0,9"),
    (two, ScoreTarget(at_least=0.25, at_most=0.5), "Der Punktwert liegt im Bereich von 0,25 bis 0,5"),
    (three, OtherTarget(), "„etwas anderes als blau“"),
    (three, OneOfTarget(["rot", "gelb"]), "„eines von rot, gelb“"),
]


@pytest.mark.parametrize(("made", "target", "german"), CASES)
def test_what_is_out_of_reach_is_said_in_german(made, target, german):
    answer = made().explain(ROW, Query(target=target, constraints=STAYS))
    assert isinstance(answer, ifonly.NoneExists)
    first = answer.sentence("de").split(". ")[0]
    assert german in first and not [word for word in ENGLISH if word in first], first


def test_what_is_reached_and_what_stays_are_said_in_german():
    reached = two().explain(ROW, target=ScoreTarget(at_least=0.5)).sentence("de")
    assert "wäre dies erreicht worden: Der Punktwert ist mindestens 0,5." in reached
    why = two().why(ROW, target=ScoreTarget(at_least=0.5)).sentence("de")
    assert "dies wird nicht erreicht: Der Punktwert ist mindestens 0,5." in why
    top = three().explain({"a": 0.0, "b": 0.0}, target=TopTarget("rot", 1)).sentence("de")
    assert "rot ist am höchsten" in top and not [word for word in ENGLISH if word in top], top


def test_a_probability():
    said = ProbabilityTarget("ja", at_least=0.7).words()
    assert goal_in(said.subject, said.state, "de") == ("Die Wahrscheinlichkeit von „ja“", "ist mindestens 70 %")
    assert goal_in(said.subject, said.state, "en") == (said.subject, said.state)


def test_a_class_stays_as_it_is():
    assert decision_in("ja or nein", "de") == "ja or nein" and decision_in("bewilligt", "de") == "bewilligt"
