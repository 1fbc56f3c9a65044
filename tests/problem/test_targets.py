"""Targets beyond one class: probabilities, one of several, any other, among the highest."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest

from ifonly import Binary, ClassTarget, Explainer, Integer, Nearest, Network, NoneExists, Real, Schema, ScoreTarget
from ifonly.errors import Contradiction, QuestionError
from ifonly.methods import MipObj
from ifonly.model import Model, network_model
from ifonly.problem import OneOfTarget, OtherTarget, ProbabilityTarget, TopTarget
from ifonly.problem.open_target import MOST_ALTERNATIVES
from ifonly.problem.target import AheadTarget
from ifonly.solvers.search import Enumerate, Search

SCHEMA = Schema([Integer("n", 0, 12), Integer("m", 0, 8), Binary("b")])
LINE = network_model(Network.of([([[0.5, -0.25, 1.0]], [-2.0])]), SCHEMA, classes=("no", "yes"))
ANN = {"n": 2, "m": 4, "b": 0}


def several(seed: int, classes: int = 4) -> Model:
    """A random network with several classes."""
    rng = np.random.default_rng(seed)
    hidden = (rng.normal(size=(5, 3)) / [6.0, 4.0, 1.0], rng.normal(size=5))
    network = Network.of([hidden, (rng.normal(size=(classes, 5)), rng.normal(size=classes))])
    return network_model(network, SCHEMA, classes=tuple("abcdefgh"[:classes]))


def all_rows() -> np.ndarray[Any, Any]:
    return np.array([[n, m, b] for n in range(13) for m in range(9) for b in (0, 1)], dtype=float)


# ---------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.3, 0.5, 0.7, 0.9, 0.999, 1 - 1e-12])
def test_the_threshold_is_not_below_the_log_odds(p: float) -> None:
    getcontext().prec = 60
    exact = (Decimal(p) / (1 - Decimal(p))).ln()
    threshold = Decimal(ProbabilityTarget("yes", at_least=p).threshold)
    assert exact <= threshold <= exact + Decimal("1e-13") * (1 + abs(exact))


@pytest.mark.parametrize("label", ["no", "yes"])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.7, 0.95])
def test_the_nearest_row_with_a_probability(label: str, p: float) -> None:
    model = LINE.as_log_odds()
    answer = Explainer(model).explain(ANN, target=ProbabilityTarget(label, at_least=p))
    rows = all_rows()
    score = 0.5 * rows[:, 0] - 0.25 * rows[:, 1] + rows[:, 2] - 2.0
    odds = score if label == "yes" else -score
    away = np.abs(rows - [2, 4, 0]) / [12, 8, 1]
    expected = away.sum(axis=1)[odds >= math.log(p / (1.0 - p)) + 1e-6].min() / 3
    assert isinstance(answer, Nearest)
    assert answer.upper == pytest.approx(expected, abs=1e-12)
    assert model.probabilities is not None
    own = model.probabilities(SCHEMA.read(dict(answer.counterfactual or {}))[None, :])
    assert own[0, ("no", "yes").index(label)] >= p


def test_a_probability_in_words() -> None:
    target = ProbabilityTarget("yes", at_least=0.7)
    answer = Explainer(LINE.as_log_odds()).explain(ANN, target=target)
    assert answer.target == "a probability of yes of at least 70 %"
    assert "the probability of yes would have been at least 70 %; no smaller allowed change does it (proven" in str(
        answer
    )
    assert ProbabilityTarget("yes", at_least=0.07).describe().endswith("7 %")
    assert ProbabilityTarget("yes", at_least=0.9995).describe().endswith("99.95 %")
    assert target.to_dict() == {"probability_of": "yes", "at_least": 0.7, "margin": 1e-6}


def test_the_models_own_report_has_the_last_word() -> None:
    """A model that reports less than its log-odds say is believed: rows near the threshold are refused."""

    def modest(points: Any) -> Any:
        second = 1.0 / (1.0 + np.exp(-LINE.scores(points)[:, 0])) - 0.2
        return np.column_stack([1.0 - second, second])

    from dataclasses import replace

    answer = (
        Explainer(replace(LINE, probabilities=modest))
        .using(Enumerate())
        .explain(ANN, target=ProbabilityTarget("yes", at_least=0.7))
    )
    assert answer.counterfactual is None
    assert answer.status == "unknown"
    assert "the model refuses a row" in answer.note


def test_models_without_probabilities_are_refused() -> None:
    target = ProbabilityTarget("yes", at_least=0.7)
    with pytest.raises(QuestionError, match=r"reports no probabilities.*model.as_log_odds\(\)"):
        Explainer(LINE).explain(ANN, target=target)
    with pytest.raises(QuestionError, match="regression: ask for a score"):
        Explainer(network_model(LINE.network, SCHEMA, regression=True)).explain(ANN, target=target)
    with pytest.raises(QuestionError, match="no class 'maybe'"):
        Explainer(LINE.as_log_odds()).explain(ANN, target=ProbabilityTarget("maybe", at_least=0.7))


@pytest.mark.parametrize("p", [0, 1, -0.5, 70, math.nan, "0.7", None, True])
def test_what_is_no_probability(p: Any) -> None:
    with pytest.raises(QuestionError, match="between 0 and 1"):
        ProbabilityTarget("yes", at_least=p)


def test_two_logits_are_one_log_odds() -> None:
    two = network_model(Network.of([(np.array([[0.0, 0.0, 0.0], [0.5, -0.25, 1.0]]), [0.0, -2.0])]), SCHEMA)
    one = Explainer(LINE.as_log_odds()).explain(ANN, target=ProbabilityTarget("yes", at_least=0.8))
    same = Explainer(two.as_log_odds()).explain(ANN, target=ProbabilityTarget(1, at_least=0.8))
    assert one.counterfactual == same.counterfactual
    with pytest.raises(QuestionError, match="one output"):
        ProbabilityTarget(1, at_least=0.8).as_score(two)


def test_a_probability_as_a_score() -> None:
    assert ProbabilityTarget("yes", at_least=0.5).as_score(LINE) == ScoreTarget(at_least=0.0)
    assert ProbabilityTarget("no", at_least=0.5, margin=0.1).as_score(LINE) == ScoreTarget(at_most=0.0, margin=0.1)


# ---------------------------------------------------------------------- open targets, against all rows


def nearest_by_hand(model: Model, good: Any) -> float:
    """The least distance over all rows whose scores are good."""
    rows = all_rows()
    fine = good(model.scores(rows))
    away = (np.abs(rows - [2, 4, 0]) / [12, 8, 1]).sum(axis=1) / 3
    return float(away[fine].min()) if fine.any() else math.inf


def ahead(scores: Any, first: list[int], others: list[int]) -> Any:
    return scores[:, first].max(axis=1) - scores[:, others].max(axis=1) >= 1e-6


METHODS = {
    "search": Search(),
    "tree": Search(table_rows=0),
    "enumerate": Enumerate(),
    "mip": MipObj(backend="highs"),
}


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("seed", range(8))
def test_open_targets_are_the_nearest_of_their_alternatives(seed: int, method: Any) -> None:
    model = several(seed)
    explainer = Explainer(model)
    now = int(model.decide(model.scores(SCHEMA.read(ANN)[None, :]))[0])
    rest = [i for i in range(4) if i != now]
    two = rest[:2]
    cases = [
        (OneOfTarget([model.classes[i] for i in two]), lambda s: ahead(s, two, [i for i in range(4) if i not in two])),
        (OtherTarget(), lambda s: ahead(s, rest, [now])),
        (TopTarget(model.classes[rest[-1]], 2), lambda s: s[:, rest[-1]] - np.sort(np.delete(s, rest[-1], 1))[:, 1] >= 1e-6),
        (TopTarget(model.classes[rest[0]], 1), lambda s: ahead(s, rest[:1], [i for i in range(4) if i != rest[0]])),
    ]  # fmt: skip
    for target, good in cases:
        answer = explainer.using(method).explain(ANN, target=target)
        expected = nearest_by_hand(model, good)
        if math.isinf(expected):
            assert isinstance(answer, NoneExists), target
        else:
            assert isinstance(answer, Nearest), target
            assert answer.upper == pytest.approx(expected, abs=1e-7), target
            assert target.agrees(model, np.array([answer.score_after]), now)[0]


def test_all_kinds_occur_among_these_cases() -> None:
    """The test above sees rows that exist and rows that do not."""
    told = [Explainer(several(seed)).explain(ANN, target=label).status for seed in range(8) for label in "abcd"]
    assert {"nearest", "none exists"} <= set(told)


def test_open_targets_of_two_classes() -> None:
    explainer = Explainer(LINE)
    plain = explainer.explain(ANN, target="yes")
    for target in (OtherTarget(), OneOfTarget(["yes"]), TopTarget("yes", 1)):
        assert explainer.explain(ANN, target=target).counterfactual == plain.counterfactual


def test_open_targets_in_words() -> None:
    model = several(3)
    explainer = Explainer(model)
    other = explainer.explain(ANN, target=OtherTarget())
    assert other.target == "another decision"
    assert f"the decision would have changed to {other.decision_after} (anything but {other.decision_before});" in str(
        other
    )
    labels = [name for name in model.classes if name != other.decision_before]
    some = explainer.explain(ANN, target=OneOfTarget(labels))
    assert f"would have changed to {some.decision_after} (one of {', '.join(labels)});" in str(some)
    answers = [explainer.explain(ANN, target=TopTarget(name, 2)) for name in model.classes]
    told = [str(answer) for answer in answers]
    assert any("is among the 2 highest already; nothing needs to change." in text for text in told)
    assert OtherTarget().to_dict() == {"other": True, "margin": 1e-6}
    assert OneOfTarget(["a"]).to_dict() == {"one_of": ["a"], "margin": 1e-6}
    assert TopTarget("a", 2).to_dict() == {"class": "a", "among_highest": 2, "margin": 1e-6}


def test_many_people_each_leave_their_own_class() -> None:
    model = several(3)
    rows = [SCHEMA.row(point) for point in all_rows()[::7]]
    answers = Explainer(model, threads=2).explain_many(rows, target=OtherTarget())
    assert len({answer.decision_before for answer in answers}) > 1
    assert all(answer.decision_after != answer.decision_before for answer in answers if answer.counterfactual)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (lambda: OneOfTarget([]), "list of target classes is empty"),
        (lambda: OneOfTarget("ab"), "as a list"),
        (lambda: OneOfTarget(["a", "z"]), "no class 'z'"),
        (lambda: OneOfTarget(list("abcd")), "all classes of the model"),
        (lambda: TopTarget("a", 0), "k is 0"),
        (lambda: TopTarget("a", 4), "always among the 4 highest"),
        (lambda: TopTarget("z", 2), "no class 'z'"),
        (lambda: AheadTarget("a", ("a",)), "others than itself"),
        (lambda: OtherTarget(margin=-1), "margin must be a number >= 0"),
    ],
)
def test_open_targets_that_make_no_sense(target: Any, words: str) -> None:
    with pytest.raises(QuestionError, match=words):
        Explainer(several(0)).explain(ANN, target=target())


def test_too_many_alternatives() -> None:
    outputs = 12
    network = Network.of([(np.random.default_rng(0).normal(size=(outputs, 3)), np.zeros(outputs))])
    explainer = Explainer(network, schema=SCHEMA)
    with pytest.raises(QuestionError, match=f"462 alternatives.*at most {MOST_ALTERNATIVES}"):
        explainer.explain(ANN, target=TopTarget(0, 6))
    assert explainer.explain(ANN, target=TopTarget(0, 3)).status in ("nearest", "none exists")


def test_a_regression_has_no_other_class() -> None:
    explainer = Explainer(network_model(LINE.network, SCHEMA, regression=True))
    for target in (OtherTarget(), OneOfTarget(["a"]), TopTarget("a", 1)):
        with pytest.raises(QuestionError, match="regression"):
            explainer.explain(ANN, target=target)


def test_limits_are_divided_and_a_gap_is_told() -> None:
    """One alternative that is not finished keeps the whole from being proven."""
    from dataclasses import dataclass

    from ifonly import Limits
    from ifonly.results import Claim, Stop, StoppedBy

    seen: list[Limits] = []

    @dataclass(frozen=True)
    class Half:
        """Enumerates, but gives up on the last class."""

        name: str = "half"

        def prepare(self, question: Any, tolerances: Any = None) -> Any:
            solver = Enumerate().prepare(question, tolerances)

            class Solver:
                def solve(self, points: Any, limits: Limits, **more: Any) -> Any:
                    seen.append(limits)
                    if question.target.label == "d":
                        return [Claim(point=None, lower=0.001, method="half", stop=Stop(StoppedBy.SECONDS, 1.0))] * len(
                            points
                        )
                    return solver.solve(points, Limits())

            return Solver()

    model = several(3)
    explainer = Explainer(model)
    answer = explainer.using(Half()).explain(ANN, target=OtherTarget(), limits=Limits(seconds=9.0, nodes=30))
    assert (answer.status, answer.lower, answer.note) == ("within", 0.001, "time limit of 3 s")  # its share, in words
    assert [limits.seconds for limits in seen] == [pytest.approx(3.0, abs=0.5)] * 3  # less what preparing took
    assert [limits.nodes for limits in seen] == [10] * 3


def test_an_alternative_that_does_not_mean_its_target_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherTarget, "alternatives", lambda self, model, decided: (
        ClassTarget(model.classes[decided]), ClassTarget(model.classes[decided])))  # fmt: skip
    with pytest.raises(Contradiction, match="does not meet it"):
        Explainer(several(3)).explain(ANN, target=OtherTarget())


def test_certificates_of_an_open_target_and_of_a_probability() -> None:
    from ifonly import certify, check

    assert check(certify(Explainer(several(3)), ANN, target=OtherTarget())).valid
    proof = certify(Explainer(LINE.as_log_odds()), ANN, target=ProbabilityTarget("yes", at_least=0.7))
    assert check(proof).valid


def test_a_real_row_sits_on_the_probability() -> None:
    schema = Schema([Real("x", 0.0, 10.0)])
    model = network_model(Network.of([([[1.0]], [-5.0])]), schema).as_log_odds()
    answer = Explainer(model).explain({"x": 1.0}, target=ProbabilityTarget(1, at_least=0.7))
    assert isinstance(answer, Nearest)
    assert dict(answer.counterfactual or {})["x"] == pytest.approx(5.0 + math.log(0.7 / 0.3), abs=3e-6)
    assert model.probabilities is not None
    assert model.probabilities(np.array([[dict(answer.counterfactual or {})["x"]]]))[0, 1] >= 0.7
