"""Shorter numbers: never at the price of the proof, the constraints or the decision."""

import numpy as np

from ifonly import ClassTarget, Explainer, Network, OnlyUp, Range, Real, Schema, datasets
from ifonly.methods import Tolerances
from ifonly.model import network_model
from ifonly.problem import Question
from ifonly.results import Claim, shortened
from ifonly.results.witness import check_witnesses

SCHEMA = Schema([Real("a", 0, 1000), Real("b", -1, 1)])
QUESTION = Question(
    model=network_model(Network.of([([[0.01, 1.0]], [-3.3333333333])]), SCHEMA), target=ClassTarget(1, margin=0.0)
)
FACTUAL = np.array([[100.0, 0.0]])


def _digits(value: float) -> int:
    return len(repr(float(value)).replace(".", "").strip("0-"))


def test_a_row_on_the_margin_gets_short_numbers_and_stays_valid_and_proven():
    point = np.array([333.33333333001, 0.0])
    distance = QUESTION.distance.between(SCHEMA, FACTUAL[0], point)
    claim = Claim(point=point, lower=distance - 1e-9, method="test")
    (tidy,) = shortened(QUESTION, FACTUAL, [claim], Tolerances())
    assert _digits(tidy.point[0]) < 9 < _digits(point[0])
    witnesses = check_witnesses(QUESTION, FACTUAL, tidy.point[None, :])
    assert not witnesses.rejected
    (distance,) = witnesses.distances.tolist()
    assert distance - claim.lower <= Tolerances().allowed(distance)


def test_nothing_is_rounded_where_the_gap_has_no_room():
    point = np.array([333.33333333001, 0.0])
    distance = QUESTION.distance.between(SCHEMA, FACTUAL[0], point)
    for lower in (distance - 1e-6, 0.0):  # the gap is used up; a limit was hit long before
        claim = Claim(point=point, lower=lower, method="test")
        assert shortened(QUESTION, FACTUAL, [claim], Tolerances())[0].point.tolist() == point.tolist()


def test_a_row_that_the_network_likes_less_when_rounded_away_is_rounded_back_and_never_below_the_bound():
    question = Question(
        model=network_model(Network.of([([[-0.01, 1.0]], [1.5])]), SCHEMA), target=ClassTarget(1, margin=0.0)
    )
    point = np.array([[149.99999999999, 0.0]])  # moving further from 100 makes it worse
    claim = Claim(point=point[0], lower=question.distance.between(SCHEMA, FACTUAL[0], point[0]) - 1e-9, method="test")
    (tidy,) = shortened(question, FACTUAL, [claim], Tolerances())
    assert question.model.scores(tidy.point[None, :])[0, 0] >= question.model.scores(point)[0, 0]
    assert claim.lower <= question.distance.between(SCHEMA, FACTUAL[0], tidy.point)


def test_constraints_hold_after_rounding():
    question = Question(
        model=QUESTION.model,
        target=QUESTION.target,
        constraints=[Range("a", 0, 333.33333333002), OnlyUp("b")],
    )
    point = np.array([333.33333333001, 0.0])
    claim = Claim(point=point, lower=question.distance.between(SCHEMA, FACTUAL[0], point) - 1e-9, method="test")
    assert shortened(question, FACTUAL, [claim], Tolerances())[0].point.tolist() == point.tolist()


def test_answers_of_a_real_network_are_short_and_proven():
    dataset, model = datasets.load("credit", rules=False), datasets.network("credit", rules=False)
    points = dataset.points()[:400]
    denied = points[model.scores(points)[:, 0] < 0][:60]
    answers = Explainer(model).explain_many([dataset.schema.row(point) for point in denied])
    values = [
        change.after
        for answer in answers
        for change in answer.changes
        if isinstance(change.after, float) and not change.after.is_integer()
    ]
    assert all(answer.status == "nearest" for answer in answers)
    assert len(values) > 20
    assert np.median([_digits(value) for value in values]) <= 9
