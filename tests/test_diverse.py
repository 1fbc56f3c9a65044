"""Diverse sets: what a set says of itself, the bookkeeping of the branching, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from cases import load
from ifonly import (
    Allowed,
    Answers,
    Binary,
    Distance,
    DiverseAnswers,
    Explainer,
    Fixed,
    Integer,
    Limits,
    Network,
    NoneExists,
    OtherTarget,
    Range,
    Real,
    Schema,
    Unknown,
)
from ifonly.answering.branching import combined
from ifonly.errors import QuestionError
from ifonly.methods import Enumerate, MipObj
from ifonly.model import network_model
from ifonly.problem.disjunctions import Either
from ifonly.problem.distance_rules import AtLeastFar, DistanceShares
from ifonly.problem.diversity import Diversity, far_in_one, other_values
from ifonly.results import Claim


@pytest.fixture(scope="module")
def compas() -> tuple[Explainer, np.ndarray]:
    model, points, _ = load("compas")
    return Explainer(model), points


def switches(weights: dict[str, float], needed: float) -> Explainer:
    """Binaries: decided 1 when the weights of those that are on reach `needed`."""
    schema = Schema([Binary(name) for name in weights])
    network = Network.of([(np.array([list(weights.values())]), np.array([-needed]))])
    return Explainer(network_model(network, schema))


def test_a_set_says_how_spread_out_it_is(compas) -> None:
    explainer, points = compas
    answers = explainer.explain_diverse(explainer.schema.row(points[0]), Diversity(4, apart=0.05))
    assert len(answers) == 4
    assert answers.proven
    assert answers.ended is None
    rows = [explainer.schema.read(answer.counterfactual) for answer in answers]
    apart = [[Distance().between(explainer.schema, a, b) for b in rows] for a in rows]
    assert np.allclose(answers.apart, apart)
    pairs = [apart[i][j] for i in range(4) for j in range(i)]
    assert min(pairs) >= 0.05
    assert answers.k_diversity == pytest.approx(np.mean(pairs))
    assert answers.k_distance == pytest.approx(np.mean([answer.upper for answer in answers]))
    assert [answer.upper for answer in answers] == sorted(answer.upper for answer in answers)
    data = json.loads(json.dumps(answers.to_dict(), allow_nan=False))
    assert data["k_diversity"] == answers.k_diversity
    assert [answer["distance"] for answer in data["answers"]] == [answer.upper for answer in answers]


def test_a_smaller_set_is_the_beginning_of_a_larger_one(compas) -> None:
    explainer, points = compas
    row = explainer.schema.row(points[5])
    large = explainer.explain_diverse(row, Diversity(6, apart=0.05))
    small = explainer.explain_diverse(row, Diversity(3, apart=0.05))
    assert [a.counterfactual for a in small] == [a.counterfactual for a in large[:3]]


def test_a_set_that_ends_early_proves_it() -> None:
    explainer = switches({"a": 1.0, "b": 1.0, "c": 0.2}, 0.9)
    off = {"a": False, "b": False, "c": False}
    answers = explainer.explain_diverse(off, Diversity(9, differ="features"))
    assert [[c.feature for c in answer.changes] for answer in answers] in ([["a"], ["b"]], [["b"], ["a"]])
    assert isinstance(answers.ended, NoneExists)
    assert answers.proven
    assert str(answers).splitlines()[-1] == (
        "No other allowed row turns the decision into 1 and leaves unchanged something that each answer above changes (proven)."
    )
    assert "no smaller allowed change does it, given the answers above" in answers.sentences[1]
    every = explainer.explain_diverse(off, Diversity(9, differ="values"))
    assert len(every) == 6  # a or b, or both, with c or without
    assert len({tuple(answer.counterfactual.values()) for answer in every}) == 6
    assert every.proven


def test_no_answer_at_all_says_why() -> None:
    explainer = switches({"a": 1.0, "b": 1.0}, 1.5)
    answers = explainer.explain_diverse({"a": False, "b": False}, 3, constraints=[Fixed("a")])
    assert len(answers) == 0
    assert math.isnan(answers.k_distance)
    assert math.isnan(answers.k_diversity)
    assert isinstance(answers.ended, NoneExists)
    assert answers.ended.reasons is not None
    assert "a is fixed" in str(answers)
    assert answers.to_dict()["k_distance"] is None


def test_a_person_who_needs_no_change() -> None:
    explainer = switches({"a": 1.0, "b": 1.0}, 0.5)
    answers = explainer.explain_diverse({"a": True, "b": False}, Diversity(3, differ="features"), target=1)
    assert len(answers) == 1
    assert not answers[0].changes
    assert isinstance(answers.ended, NoneExists)


def test_a_limit_is_named(compas) -> None:
    explainer, points = compas
    row = explainer.schema.row(points[0])
    answers = explainer.using(Enumerate(), limits=Limits(nodes=1)).explain_diverse(row, 10)
    assert not answers.proven
    assert isinstance(answers.ended, Unknown)
    assert answers.ended.note == "node limit of 1"
    assert answers.ending == "The search for another answer was stopped (node limit of 1)."


def test_rows_at_the_edge_count_whatever_floating_point_makes_of_them() -> None:
    """0.7 + 0.1 is 0.7999999999999999 in float64; exactly it is 0.8, and the row is 0.4 apart."""
    explainer = switches({"a": 1.0, "b": 1.0}, -1.0)
    weights = Distance("l1", weights={"a": 0.7, "b": 0.1})
    off = {"a": False, "b": False}
    assert weights.between(explainer.schema, np.zeros(2), np.ones(2)) < 0.4
    answers = explainer.explain_diverse(off, Diversity(2, apart=0.4), target=1, distance=weights)
    assert len(answers) == 2
    assert answers.apart[0][1] == 0.4
    beyond = explainer.explain_diverse(off, Diversity(2, apart=math.nextafter(0.4, 1.0)), target=1, distance=weights)
    assert len(beyond) == 1
    assert isinstance(beyond.ended, NoneExists)
    just = explainer.explain_diverse(off, Diversity(2, apart=0.35), target=1, distance=weights)
    assert [answer.upper for answer in just] == [0.0, 0.35]


def test_a_row_that_some_rounding_accepts_may_be_nearer_than_the_earlier_answers() -> None:
    """The bound of an earlier answer holds for rows that every rounding accepts: of others it says nothing."""
    first = ([[-4.0, 0.0], [-1.03, 2.0], [1.0 / 3.0, 0.0], [4.0, -0.0]], [1e-9, -3.0, -2.0, -1e-9])
    second = ([[0.0078125, 1.1640050682234544, 0.63, 0.5], [-0.18, 4.0, -0.11, -7.0]], [9.999921875e-07, 1.8e-10])
    schema = Schema([Binary("x0", ["no", "yes"]), Integer("x1", 0, 4)])
    explainer = Explainer(network_model(Network.of([first, second]), schema))
    found = explainer.explain_diverse(["no", 3], Diversity(4, apart=0.1, differ="values"), distance="l2",
                                      target=OtherTarget(margin=1e-6), constraints=["at most 1 change"])  # fmt: skip
    assert [answer.counterfactual for answer in found] == [{"x0": "yes", "x1": 3}]
    nearest = Distance("l2").between(schema, schema.read(["no", 3]), schema.read(["no", 1])[None, :])[0]
    assert isinstance(found.ended, Unknown) and found.ended.lower <= nearest  # its score is the margin, up to rounding


def test_real_numbers_keep_apart_to_the_last_bit() -> None:
    schema = Schema([Real("x", 0.0, 1.0), Real("y", 0.0, 1.0), Integer("n", 0, 4)])
    network = Network.of([(np.array([[1.0, 1.0, 0.1]]), np.array([-0.3]))])
    explainer = Explainer(network_model(network, schema))
    person = {"x": 0.0, "y": 0.0, "n": 0}
    for method in (None, MipObj()):
        answers = explainer.using(method).explain_diverse(person, Diversity(5, apart=0.03))
        assert len(answers) == 5
        assert answers.proven
        assert min(answers.apart[i][j] for i in range(5) for j in range(i)) >= 0.03


@pytest.mark.parametrize("differ", ["distance", "values"])
def test_costs_with_a_direction_do_not_tell_answers_apart(compas, differ: str) -> None:
    explainer, points = compas
    dear = Distance("l1", up={"PriorsCount": 3.0})
    answers = explainer.explain_diverse(explainer.schema.row(points[0]), Diversity(3, differ=differ), distance=dear)
    assert answers.proven
    assert min(answers.apart[i][j] for i in range(3) for j in range(i)) >= (0.01 if differ == "distance" else 1e-9)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"k": 0}, "k, must be a whole number >= 1; it is 0"),
        ({"k": True}, "k, must be a whole number"),
        ({"k": 2, "apart": 0.0}, "How far answers are apart must be a number > 0; it is 0.0"),
        ({"k": 2, "apart": "far"}, "must be a number > 0; it is 'far'"),
        ({"k": 2, "differ": "colour"}, "Answers can differ in distance, features, values; not in 'colour'"),
        ({"k": 2, "distance": "l2"}, "apart_distance='l1'"),
        ({"k": 2, "differ": "features", "apart_distance": "l1"}, "not told apart by a distance"),
        ({"k": 2, "apart_distance": "l3"}, "There is no distance 'l3'"),
    ],
)
def test_what_cannot_be_asked_is_said(compas, asked: dict, words: str) -> None:
    explainer, points = compas
    with pytest.raises(QuestionError) as error:
        several = Diversity(**{name: value for name, value in asked.items() if name != "distance"})
        explainer.explain_diverse(explainer.schema.row(points[0]), several, distance=asked.get("distance"))
    assert words in str(error.value)


def test_l2_with_answers_apart_in_l1(compas) -> None:
    explainer, points = compas
    answers = explainer.explain_diverse(
        explainer.schema.row(points[0]), Diversity(3, apart_distance="l1"), distance="l2"
    )
    assert answers.proven
    assert len(answers) == 3


def test_a_row_at_the_edge_does_not_take_a_range_with_it() -> None:
    """Floating point takes a row at 0.1 to 0.09999999999999999; 3,709 others are apart."""
    schema = Schema([Integer("a", 0, 20), Integer("b", 0, 30), Integer("c", 0, 20)])
    network = Network.of([(np.array([[0.0, 0.5, 0.0]]), np.array([-10.99]))])
    explainer = Explainer(network_model(network, schema))
    answers = explainer.explain_diverse({"a": 15, "b": 19, "c": 9}, Diversity(5, apart=0.1))
    assert len(answers) == 5
    assert answers.proven
    assert answers[1].upper == pytest.approx(2 / 15)
    assert min(answers.apart[i][j] for i in range(5) for j in range(i)) >= 0.1


@pytest.mark.parametrize("apart", [0.01, 0.6])
def test_integers_differ_by_one(apart: float) -> None:
    network = Network.of([(np.array([[1.0]]), np.array([-4999.5]))])
    explainer = Explainer(network_model(network, Schema([Integer("income", 0, 10_000)])))
    answers = explainer.explain_diverse({"income": 4000}, Diversity(3, apart=apart, differ="values"))
    assert [answer.counterfactual["income"] for answer in answers] == [5000, 5001, 5002]


def test_a_number_that_a_person_may_change_is_not_taken_for_fixed() -> None:
    network = Network.of([(np.array([[1.0, 1.0]]), np.array([-1.5]))])
    schema = Schema([Real("x", 0.0, 1.0), Integer("n", 0, 3)])
    free = Explainer(network_model(network, schema))
    fixed = Explainer(network_model(network, schema), constraints=["x is fixed"])
    several = Diversity(6, apart=0.1)
    there = free.explain_diverse({"x": 0.25, "n": 0}, several)
    here = fixed.explain_diverse({"x": 0.25, "n": 0}, several, constraints=["x is free"])
    assert [a.counterfactual for a in here] == [a.counterfactual for a in there]
    assert here.proven
    stays = fixed.explain_diverse({"x": 0.25, "n": 0}, several)
    assert {a.counterfactual["x"] for a in stays} == {0.25}
    assert [a.counterfactual["n"] for a in stays] == [2, 3]
    assert isinstance(stays.ended, NoneExists)


def test_a_least_difference_below_the_last_digit_ends() -> None:
    """The next float64 is farther away than the least difference that counts."""
    schema = Schema([Real("t", 1e9, 1e9 + 1e-5), Integer("n", 0, 3)])
    network = Network.of([(np.array([[0.0, 1.0]]), np.array([-0.5]))])
    explainer = Explainer(network_model(network, schema))
    answers = explainer.explain_diverse({"t": 1e9, "n": 0}, Diversity(4, apart=0.01, differ="values"))
    assert len({tuple(a.counterfactual.values()) for a in answers}) == 4
    alone = Network.of([(np.array([[1.0]]), np.array([-1e9 - 1e-6]))])
    ended = Explainer(network_model(alone, Schema([Real("t", 1e9, 1e9 + 1e-5)]))).explain_diverse(
        {"t": 1e9}, Diversity(3, differ="values")
    )
    assert ended.proven or ended.ending


def test_values_on_both_sides_of_zero_are_looked_through() -> None:
    schema = Schema([Real("t", -1e300, 1e300)])
    either = other_values(schema, np.array([1e300]), Distance(), 0.75)
    (below,) = either.options
    assert below.upper == pytest.approx(-5e299)


# ---------------------------------------------------------------------- branching

MIXED = Schema([Real("x", 0.0, 10.0), Integer("n", 0, 9, 3), Binary("b")])


def test_values_elsewhere_and_what_holds_unless() -> None:
    point = np.array([4.0, 3.0, 0.0])
    either = other_values(MIXED, point, Distance(), 0.1)
    inf = math.inf
    assert either.options == (
        Range("x", 5, inf), Range("x", -inf, 3), Range("n", 6, inf), Range("n", -inf, 0), Allowed("b", [True]),
    )  # fmt: skip
    above, below, *rest = either.unless
    assert 5.0 < above.upper < 5.00001  # real numbers overlap a little
    assert 2.99999 < below.lower < 3.0
    assert rest == [Range("n", -inf, 3), Range("n", 3, inf), Allowed("b", [False])]


def test_far_in_one_feature_begins_at_the_first_value_that_is_far() -> None:
    rng = np.random.default_rng(0)
    for distance in (Distance("linf"), Distance("l1", weights={"x": 0.3}), Distance("linf", scales={"x": 0.7})):
        for _ in range(50):
            point = MIXED.sample(1, rng)[0]
            by = float(rng.uniform(0.001, 0.1))
            for option in far_in_one(MIXED, point, distance, by).options:
                g = MIXED.index(option.feature)
                if not isinstance(option, Range):
                    continue
                end = option.lower if math.isfinite(option.lower) else option.upper
                other = point.copy()
                other[g] = end
                assert DistanceShares(MIXED, distance).between(point, other) >= by
                hair = 4.0 * math.ulp(max(abs(end), abs(point[g])))
                inside = (
                    end + math.copysign(hair, point[g] - end) if g == 0 else end + math.copysign(3.0, point[g] - end)
                )
                other[g] = inside
                assert DistanceShares(MIXED, distance).between(point, other) < by


def test_a_value_next_to_zero_is_found_at_once() -> None:
    """From 0.3, 0.09 * 10 / 3 away: the digits of what is left are far finer than those of the difference."""
    point = np.array([0.3, 0.0, 0.0])
    below = [o for o in far_in_one(MIXED, point, Distance(), 0.01).options if isinstance(o, Range) and o.upper < 1]
    assert len(below) == 1
    assert abs(below[0].upper) < 1e-15


def test_constraints_are_combined() -> None:
    rule = AtLeastFar(point=(1.0, 0.0, 0.0), at_least=0.1, distance=Distance())
    sided = AtLeastFar(point=(1.0, 0.0, 0.0), at_least=0.1, distance=Distance(), sides=(("x", 1),))
    both = combined([Range("x", 0, 5), rule, Fixed("b"), Range("x", 2, 9), sided])
    assert both == (Range("x", 2, 5), sided, Fixed("b"))
    assert combined([Range("x", 0, 1), Range("x", 2, 3)]) is None


def test_either_checks_its_options() -> None:
    with pytest.raises(Exception, match="no feature 'q'"):
        Either((Fixed("q"),), "no such feature").check(MIXED)


def test_a_method_that_repeats_itself_is_caught() -> None:
    """A copy in a set is a contradiction, whatever the method claims."""

    class Stubborn:
        name = "stubborn"

        def prepare(self, question, tolerances=None):
            return self

        def solve(self, points, limits, *, threads=1, listen=None):
            return [Claim(point=np.array([1.0, 0.0]), lower=0.0, method="stubborn") for _ in points]

    explainer = switches({"a": 1.0, "b": 1.0}, 0.5)
    with pytest.raises(Exception, match="returned a wrong row|is a copy"):
        explainer.using(Stubborn()).explain_diverse({"a": False, "b": False}, Diversity(2, differ="values"))


def test_a_set_is_read_back_equal(compas) -> None:
    explainer, points = compas
    for several in (3, Diversity(2, differ="features"), Diversity(30, apart=0.3)):
        told = explainer.explain_diverse(explainer.schema.row(points[1]), several)
        again = DiverseAnswers.from_dict(json.loads(json.dumps(told.to_dict())))
        assert again == told
        assert str(again) == str(told)
    many = explainer.explain_many([explainer.schema.row(point) for point in points[:5]])
    assert Answers.from_dicts(json.loads(json.dumps(many.to_dicts()))) == many
