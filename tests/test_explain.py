"""The verbs: order, duplicates, targets, refusals, contradictions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ifonly import (
    Answer,
    Binary,
    Categorical,
    ClassTarget,
    Distance,
    Explainer,
    Failed,
    Fixed,
    Integer,
    Limits,
    Nearest,
    Network,
    NoneExists,
    OnlyUp,
    Range,
    Real,
    Schema,
    ScoreTarget,
    Unknown,
    Within,
    explain,
)
from ifonly.errors import Contradiction, ModelError, QuestionError, RowError, SchemaError, UnsupportedQuestion
from ifonly.methods import Enumerate
from ifonly.model import Model, network_model
from ifonly.problem import Question
from ifonly.report.audit_sentences import notes
from ifonly.results import Claim, Claims, Progress, Stop, StoppedBy

SCHEMA = Schema([Integer("n", 0, 20), Binary("b", ("no", "yes")), Categorical("c", ["p", "q", "r"])])
NETWORK = Network.of([([[1.0, 2.0, 0.0, 0.0, 3.0]], [-9.5])])  # approved iff n + 2 [b=yes] + 3 [c=r] > 9.5
MODEL = network_model(NETWORK, SCHEMA, classes=("denied", "approved"))
ANN = {"n": 4, "b": "no", "c": "p"}
EVE = {"n": 15, "b": "yes", "c": "r"}
ENUMERATE = Enumerate()


@dataclass(frozen=True)
class Scripted:
    """A method that claims what it is told, and remembers what it was asked."""

    claims: Any
    asked: list[tuple[Question, int]] = field(default_factory=list, compare=False)
    name: str = "scripted"

    def prepare(self, question: Question, tolerances: Any = None) -> Scripted:
        self.asked.append((question, -1))
        return self

    def solve(
        self, points: NDArray[np.float64], limits: Limits, *, threads: int = 1, listen: Any = None
    ) -> list[Claim]:
        self.asked.append((self.asked[-1][0], len(points)))
        return [self.claims(point) for point in points]


def claim(point: Any = None, lower: float = 0.0, **more: Any) -> Claim:
    return Claim(point=None if point is None else np.array(point, dtype=float), lower=lower, method="scripted", **more)


# ---------------------------------------------------------------------- one row


def test_one_row_from_end_to_end() -> None:
    answer = Explainer(MODEL).using(ENUMERATE).explain(ANN)
    assert isinstance(answer, Nearest)
    assert explain(MODEL, ANN).counterfactual == answer.counterfactual
    assert answer.counterfactual == {"n": 10, "b": "no", "c": "p"}
    assert answer.upper == answer.lower == pytest.approx(6 / 20 / 3)
    assert [str(change) for change in answer.changes] == ["n: 4 -> 10"]
    assert (answer.decision_before, answer.decision_after) == ("denied", "approved")
    assert (answer.score_before, answer.score_after) == (-5.5, 0.5)
    assert (answer.method, answer.nodes, answer.note) == ("enumerate", 21 * 2 * 3, "")


def test_without_a_target_the_other_class_is_meant() -> None:
    explainer = Explainer(MODEL)
    assert explainer.using(ENUMERATE).explain(ANN).target == "approved"
    back = explainer.using(ENUMERATE).explain(EVE)
    assert (back.target, back.decision_before, back.decision_after) == ("denied", "approved", "denied")


def test_a_decision_that_is_already_there_costs_nothing() -> None:
    answer = Explainer(MODEL).using(ENUMERATE).explain(EVE, target="approved")
    assert isinstance(answer, Nearest)
    assert (answer.upper, answer.changes, answer.counterfactual) == (0.0, (), EVE)


def test_none_exists_is_an_answer() -> None:
    rules = [Range("n", 0, 3), Fixed("b"), Fixed("c")]
    answer = Explainer(MODEL).using(ENUMERATE).explain(ANN, constraints=rules)
    assert isinstance(answer, NoneExists)
    assert (answer.upper, answer.counterfactual, answer.score_before) == (math.inf, None, -5.5)
    empty = Explainer(MODEL).using(ENUMERATE).explain(ANN, constraints=[Range("n", 50, 60)])
    assert isinstance(empty, NoneExists)


def test_distance_and_weights_reach_the_method() -> None:
    explainer = Explainer(MODEL)
    few = explainer.using(ENUMERATE).explain(EVE, distance="l0")
    assert len(few.changes) == 1
    assert few.distance_name == "l0"
    weighted = explainer.using(ENUMERATE).explain(
        {"n": 9, "b": "no", "c": "p"}, distance=Distance("l1", {"n": 100, "c": 2})
    )
    assert [c.feature for c in weighted.changes] == ["b"]


# ---------------------------------------------------------------------- targets


def test_one_of_many_classes() -> None:
    network = Network.of(
        [([[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 30.0]], [0.0, -1.0, 0.0])]
    )
    explainer = Explainer(network, schema=SCHEMA, classes=["low", "mid", "high"])
    for label, feature in (("mid", "b"), ("high", "c")):
        answer = explainer.using(ENUMERATE).explain(ANN, target=label)
        assert (answer.decision_before, answer.decision_after) == ("low", label)
        assert [c.feature for c in answer.changes] == [feature]
        assert len(answer.score_after) == 3
    with pytest.raises(QuestionError, match="wanted with target=...: one of 'low', 'mid', 'high'"):
        explainer.explain(ANN)


def test_scores_and_ranges() -> None:
    explainer = Explainer(MODEL)
    answer = explainer.using(ENUMERATE).explain(ANN, target=ScoreTarget(at_least=3.0))
    assert answer.score_after == 3.5
    assert answer.target == "a score of at least 3"
    between = explainer.using(ENUMERATE).explain(ANN, target=ScoreTarget(at_least=-2, at_most=-1))
    assert between.score_after == -1.5
    below = explainer.using(ENUMERATE).explain(EVE, target=ScoreTarget(at_most=-9.0))
    assert below.score_after == -9.5


def test_regression() -> None:
    explainer = Explainer(network_model(NETWORK, SCHEMA, regression=True))
    answer = explainer.using(ENUMERATE).explain(ANN, target=ScoreTarget(at_least=0.0, margin=0.0))
    assert (answer.score_after, answer.decision_before, answer.decision_after) == (0.5, None, None)
    with pytest.raises(QuestionError, match="a ScoreTarget, since this is a regression"):
        explainer.explain(ANN)
    with pytest.raises(QuestionError, match="regression: ask for a score"):
        explainer.explain(ANN, target="approved")


@pytest.mark.parametrize(("margin", "score"), [(0.5 - 1e-9, 0.5), (0.5 + 1e-9, 1.5), (2.0, 2.5)])
def test_the_margin_belongs_to_the_target(margin: float, score: float) -> None:
    answer = Explainer(MODEL).using(ENUMERATE).explain(ANN, target=ClassTarget("approved", margin=margin))
    assert answer.score_after == score


# ---------------------------------------------------------------------- many rows


def test_order_is_kept_and_bad_rows_stay_in_place() -> None:
    table = {"n": [4, 99, 15, 4, None], "b": ["no", "no", "yes", "perhaps", "no"], "c": ["p"] * 5}
    answers = Explainer(MODEL).using(ENUMERATE).explain_many(table)
    assert [type(answer) for answer in answers] == [Nearest, Failed, Nearest, Failed, Failed]
    assert [answer.row for answer in answers] == [0, 1, 2, 3, 4]
    assert [answer.target for answer in answers] == ["approved", "", "denied", "", ""]
    assert answers[1].note == "Feature 'n' must be an integer in [0, 20]; row 1 has 99."
    assert answers[3].note == "Feature 'b' must be one of: no, yes; row 3 has 'perhaps'."
    assert answers[4].note.startswith("Feature 'n' has no value in row 4")
    assert answers.seconds > 0


def test_nobody_gets_no_answers() -> None:
    explainer = Explainer(MODEL)
    assert list(explainer.explain_many([])) == []
    (failed,) = explainer.explain_many([{"n": 1}])
    assert isinstance(failed, Failed)


def test_a_person_who_is_listed_twice_is_solved_once() -> None:
    method = Scripted(lambda point: claim([20, 1, 2], lower=0.0, stop=Stop(StoppedBy.NODES, 1)))
    answers = Explainer(MODEL).using(method).explain_many([ANN, {**ANN, "n": 5}, ANN, ANN])
    assert [count for _, count in method.asked if count >= 0] == [2]
    assert [answer.row for answer in answers] == [0, 1, 2, 3]
    assert [answer.factual["n"] for answer in answers] == [4, 5, 4, 4]


def test_together_or_alone_makes_no_difference() -> None:
    rows = [SCHEMA.row(point) for point in SCHEMA.sample(40, np.random.default_rng(1))]
    explainer = Explainer(MODEL)
    together = explainer.using(ENUMERATE).explain_many(rows)
    for i, (row, answer) in enumerate(zip(rows, together, strict=True)):
        alone = explainer.using(ENUMERATE).explain(row)
        assert replace(answer, row=0, seconds=0.0) == replace(alone, seconds=0.0)
        assert answer.row == i


def test_progress_counts_everyone_once() -> None:
    heard: list[Progress] = []
    rows = [ANN, EVE, {**ANN, "n": 5}, ANN]
    Explainer(MODEL).using(ENUMERATE, listen=heard.append).explain_many(rows)
    assert [(event.finished, event.people) for event in heard] == [(1, 3), (2, 3), (3, 3)]


def test_a_question_is_prepared_once() -> None:
    method = Scripted(lambda point: claim(lower=math.inf))
    explainer = Explainer(MODEL).using(method, reasons=False)
    asked: dict[str, Any] = {"constraints": [Fixed("b")]}
    for _ in range(3):
        explainer.explain(ANN, distance=Distance("l1", {"n": 2.0}), **asked)
    assert sum(count < 0 for _, count in method.asked) == 1
    explainer.explain(ANN, distance=Distance("l1", {"n": 3.0}), **asked)
    assert sum(count < 0 for _, count in method.asked) == 2


# ---------------------------------------------------------------------- claims become answers


def test_a_limit_leaves_an_interval() -> None:
    stopped = Scripted(
        lambda point: claim([20, 0, 0], lower=0.01, stop=Stop(StoppedBy.SECONDS, 1.0), nodes=5, seconds=0.5, record="r")
    )
    answer = Explainer(MODEL).using(stopped).explain(ANN)
    assert isinstance(answer, Within)
    assert (answer.lower, answer.upper, answer.note) == (0.01, pytest.approx(16 / 20 / 3), "time limit of 1 s")
    assert (answer.nodes, answer.seconds, answer.record) == (5, 0.5, "r")


def test_what_is_proven_needs_no_excuse() -> None:
    answer = (
        Explainer(MODEL)
        .using(Scripted(lambda point: claim([10, 0, 0], 0.1 - 1e-16, stop=Stop(StoppedBy.NODES, 9))))
        .explain(ANN)
    )
    assert isinstance(answer, Nearest)
    assert answer.note == ""


def test_no_row_before_the_limit_is_unknown() -> None:
    answer = (
        Explainer(MODEL).using(Scripted(lambda point: claim(lower=0.25, stop=Stop(StoppedBy.NODES, 9)))).explain(ANN)
    )
    assert isinstance(answer, Unknown)
    assert (answer.lower, answer.upper, answer.note) == (0.25, math.inf, "node limit of 9")


def test_the_enumerators_limits() -> None:
    explainer = Explainer(MODEL)
    answer = explainer.using(ENUMERATE).explain(ANN, limits=Limits(seconds=1e-9))
    assert isinstance(answer, Unknown)
    assert answer.note == "time limit of 1e-09 s"
    wide = Explainer(Network.of([([[1.0, 1.0]], [-1e6])]), schema=Schema([Integer("x", 0, 999), Integer("y", 0, 99)]))
    answer = wide.using(ENUMERATE).explain([0, 0], limits=Limits(nodes=10))
    assert isinstance(answer, Unknown)
    assert answer.note == "node limit of 10"
    assert answer.nodes < 100_000


def test_a_gap_is_proven_only_within_the_tolerance() -> None:
    upper = 6 / 20 / 3
    for lower, kind in ((upper - 5e-8, Nearest), (upper - 5e-7, Within), (upper * (1 + 1e-10), Nearest)):
        answer = Explainer(MODEL).using(Scripted(lambda point, low=lower: claim([10, 0, 0], lower=low))).explain(ANN)
        assert type(answer) is kind
        assert answer.lower <= answer.upper
    assert "tolerances" in Explainer(MODEL).using(Scripted(lambda point: claim([10, 0, 0]))).explain(ANN).note


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ([10.5, 0, 0], "is not a row of the schema"),
        ([21, 0, 0], "is not a row of the schema"),
        ([10, 0, 3], "is not a row of the schema"),
        ([math.nan, 0, 0], "is not a row of the schema"),
        ([10, 1, 0], "breaks the constraint: b is fixed"),
    ],
)
def test_a_wrong_row_is_a_contradiction(point: Any, words: str) -> None:
    with pytest.raises(Contradiction, match=f"'scripted' returned a wrong row: .*{words}"):
        Explainer(MODEL).using(Scripted(lambda p: claim(point))).explain(ANN, constraints=[Fixed("b")])


def test_a_bug_that_one_row_meets_leaves_the_others_their_answers() -> None:
    rows = [{**ANN, "n": n} for n in (4, 5, 6, 7)]

    def lies_of_the_second(point: Any) -> Claim:
        return claim([10.5 if point[0] == 5 else 10, 0, 0], lower=abs(10 - point[0]) / 20 / 3)

    explainer = Explainer(MODEL).using(Scripted(lies_of_the_second))
    answers = explainer.explain_many(rows)
    assert [answer.status for answer in answers] == ["nearest", "error", "nearest", "nearest"]
    assert [answer.row for answer in answers] == [0, 1, 2, 3]
    wrong = answers[1]
    assert isinstance(wrong, Failed) and wrong.contradiction
    assert wrong.error.startswith("A bug in ifonly, please report it: Method 'scripted' returned a wrong row")
    assert Answer.from_dict(wrong.to_dict()) == wrong and not Failed.of(0, "no number").contradiction
    audited = explainer.audit(rows)
    assert (audited.failed, audited.contradictions, audited.everybody.people) == (1, 1, 3)
    assert audited.to_dict()["contradictions"] == 1 and "this is a bug in ifonly" in " ".join(notes(audited))
    with pytest.raises(Contradiction, match="returned a wrong row"):
        explainer.explain(rows[1])


def test_a_bug_on_the_way_to_reasons_is_counted_in_an_audit() -> None:
    def nothing_but_freely(point: Any) -> Claim:
        return claim(lower=math.inf)

    class Hesitant(Scripted):
        def prepare(self, question: Question, tolerances: Any = None) -> Any:
            if not question.constraints:
                raise Contradiction("2 is not 3.")
            return super().prepare(question, tolerances)

    explainer = Explainer(MODEL).using(Hesitant(nothing_but_freely))
    audited = explainer.audit([ANN, ANN], constraints=[Fixed("b")])
    assert (audited.failed, audited.everybody.without, audited.contradictions) == (0, 2, 2)


def test_a_bound_above_its_own_row_is_a_contradiction() -> None:
    with pytest.raises(Contradiction, match="nothing is nearer than 0.2, but its own row is at 0.0999"):
        Explainer(MODEL).using(Scripted(lambda point: claim([10, 0, 0], lower=0.2))).explain(ANN)


def test_a_method_that_loses_people_is_a_contradiction() -> None:
    with pytest.raises(Contradiction, match="gave 0 claims for 1 people"):
        Explainer(MODEL).using(Losing(None)).explain(ANN)


class Losing(Scripted):
    def solve(
        self, points: NDArray[np.float64], limits: Limits, *, threads: int = 1, listen: Any = None
    ) -> list[Claim]:
        return []


@pytest.mark.parametrize("lower", [-0.1, math.nan])
def test_a_bound_that_is_none_is_a_contradiction(lower: float) -> None:
    with pytest.raises(Contradiction, match=f"gave a lower bound of {lower}"):
        Explainer(MODEL).using(Bounding(lower)).explain(ANN)


class Bounding(Scripted):
    """Bounds everyone by a number, in claims by columns, whose numbers no `Claim` has looked at."""

    def solve(self, points: NDArray[np.float64], limits: Limits, *, threads: int = 1, listen: Any = None) -> Any:
        told = Claims.of([claim([10, 0, 0]) for _ in points], points)
        return replace(told, lower=np.full(len(points), self.claims))


# ---------------------------------------------------------------------- the user's own model refuses


def stubborn(needed: float) -> Model:
    """A deployed model that wants a score of `needed` where the imported network is content with more than 0."""
    return Model(
        function=NETWORK,
        schema=SCHEMA,
        original=lambda points: NETWORK.scores(SCHEMA.encode(points)) - needed,
        classes=("denied", "approved"),
    )


def test_a_refused_row_is_asked_for_again_with_more_caution() -> None:
    """With each attempt E grows; the scripted method answers with the first row that clears its own margin + E."""
    tried = []

    def cautious(point: Any) -> Claim:
        question = method.asked[-1][0]
        tried.append(question.caution)
        return claim([10, 0, 0] if question.caution < 100 else [12, 0, 0])

    method = Scripted(cautious)
    answer = Explainer(stubborn(1.0)).using(method).explain(ANN)
    assert tried == [1.0, 16.0, 256.0]
    assert answer.counterfactual == {"n": 12, "b": "no", "c": "p"}
    assert isinstance(answer, Within)
    assert answer.score_after == 1.5


def test_only_the_refused_are_read_back() -> None:
    def answers(point: Any) -> Claim:
        return claim([20, 1, 2] if point[0] == 4 else [10, 0, 0])

    method = Scripted(answers)
    first, second = Explainer(stubborn(1.0)).using(method).explain_many([ANN, {**ANN, "n": 5}])
    assert [count for _, count in method.asked if count >= 0] == [2, 1, 1]
    assert isinstance(first, Within)
    assert isinstance(second, Unknown)


def test_a_model_that_keeps_refusing_leaves_the_question_open() -> None:
    answer = Explainer(stubborn(100.0)).using(ENUMERATE).explain(ANN)
    assert isinstance(answer, Unknown)
    assert answer.lower == 0.0  # the bound was proven for the network, and this model is not that network
    assert answer.counterfactual is None
    assert "the model refuses a row" in answer.note
    assert "larger margin" in answer.note


def test_candidates_on_the_margin_leave_the_question_open() -> None:
    answer = Explainer(MODEL).using(ENUMERATE).explain(ANN, target=ClassTarget("approved", margin=15.5))
    assert isinstance(answer, Unknown)  # the best row of all scores 15.5, give or take a rounding
    assert "margin" in answer.note
    assert answer.lower == pytest.approx((16 / 20 + 1 + 1) / 3)


# ---------------------------------------------------------------------- what is refused


def test_a_person_outside_the_bounds_is_refused() -> None:
    with pytest.raises(RowError, match=r"^Feature 'n' must be an integer in \[0, 20\]; the row has 21\.$"):
        Explainer(MODEL).explain({**ANN, "n": 21})


def test_what_the_enumerator_cannot_do() -> None:
    schema = Schema([Real("x", 0, 10), Integer("n", 0, 10)])
    explainer = Explainer(Network.of([([[1.0, 1.0]], [-10.5])]), schema=schema)
    with pytest.raises(UnsupportedQuestion, match="finite space, but 'x' is a real number that may change"):
        explainer.using(ENUMERATE).explain([5.0, 0])
    fixed = explainer.using(ENUMERATE).explain([5.0, 0], constraints=[Fixed("x")])
    assert fixed.counterfactual == {"x": 5.0, "n": 6}
    at_the_end = explainer.using(ENUMERATE).explain([10.0, 0], constraints=[OnlyUp("x")])
    assert at_the_end.counterfactual == {"x": 10.0, "n": 1}
    nowhere = explainer.using(ENUMERATE).explain([5.0, 0], constraints=[Range("x", 20, 30)])
    assert isinstance(nowhere, NoneExists)
    with pytest.raises(UnsupportedQuestion, match="may look at 10 rows, but 'n' alone has 11 values"):
        explainer.using(Enumerate(most_rows=10)).explain([5.0, 0], constraints=[Fixed("x")])
    pair = Schema([Integer("m", 0, 3), Integer("n", 0, 2)])
    with pytest.raises(UnsupportedQuestion, match="The space has 12 rows or more; the enumerator may look at 11"):
        Explainer(Network.of([([[1.0, 1.0]], [-1.5])]), schema=pair).using(Enumerate(most_rows=11)).explain([0, 0])
    with pytest.raises(UnsupportedQuestion, match="'y' alone has 1,000,000,001 values"):
        Explainer(Network.of([([[1.0]], [0.0])]), schema=Schema([Integer("y", 0, 10**9)])).using(ENUMERATE).explain([0])


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"constraints": Fixed("b")}, QuestionError, "Give constraints as a list"),
        ({"constraints": "b"}, QuestionError, "Give constraints as a list.*got 'b'"),
        ({"constraints": ["b"]}, QuestionError, "This alone is no condition"),
        ({"constraints": [{"b": 1}]}, QuestionError, "such as Fixed.*got {'b': 1}"),
        ({"constraints": [Fixed("d")]}, SchemaError, "There is no feature 'd'"),
        ({"limits": 5}, QuestionError, "Limits\\(seconds=...\\); got 5"),
        ({"target": "perhaps"}, QuestionError, "no class 'perhaps'"),
        ({"distance": "l7"}, QuestionError, "no distance 'l7'"),
        ({"distance": Distance(weights={"m": 2})}, SchemaError, "There is no feature 'm'"),
    ],
)
def test_questions_that_are_none(asked: dict[str, Any], error: type[Exception], words: str) -> None:
    for ask in (lambda: Explainer(MODEL).explain(ANN, **asked), lambda: Explainer(MODEL).explain_many([ANN], **asked)):
        with pytest.raises(error, match=words):
            ask()


def test_ways_of_answering_that_are_none() -> None:
    with pytest.raises(QuestionError, match="A method is an object such as .*; got 'enumerate'"):
        Explainer(MODEL).using("enumerate")  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="Limits\\(seconds=...\\); got 5"):
        Explainer(MODEL).using(limits=5)  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="threads must be a whole number >= 1; it is 0"):
        Explainer(MODEL).using(threads=0)
    with pytest.raises(QuestionError, match="function that takes a Progress; got 5"):
        Explainer(MODEL).using(listen=5)  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="'reasons' is True or False; got 'yes'"):
        Explainer(MODEL).using(reasons="yes")  # type: ignore[arg-type]


def test_explainers_that_are_none() -> None:
    with pytest.raises(ModelError, match=r"Say what a row is with schema=\.\.\."):
        Explainer(NETWORK)
    with pytest.raises(ModelError, match="already has a schema"):
        Explainer(MODEL, schema=Schema([Real("x", 0, 1)]))
    with pytest.raises(ModelError, match="class names must be a list.*got 'ab'"):
        Explainer(NETWORK, schema=SCHEMA, classes="ab")
    with pytest.raises(QuestionError, match="threads must be a whole number >= 1; it is 0"):
        Explainer(MODEL, threads=0)


def test_a_model_without_a_score_is_refused() -> None:
    model = replace(MODEL, original=lambda points: np.where(points[:, :1] == 5, np.nan, 1.0))
    with pytest.raises(ModelError, match=r"no score \(NaN\) for row 1"):
        Explainer(model).using(ENUMERATE).explain_many([ANN, {**ANN, "n": 5}], target="denied")


def test_names_of_classes_can_be_given_later() -> None:
    answer = Explainer(MODEL, classes=["no", "yes"]).using(ENUMERATE).explain(ANN)
    assert (answer.decision_before, answer.decision_after) == ("no", "yes")
