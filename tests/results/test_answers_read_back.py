"""What is written of an answer can be read back, equal; what is not an answer is refused with a sentence."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Answer,
    Answers,
    Change,
    DiverseAnswers,
    Diversity,
    Explainer,
    Failed,
    Fixed,
    Integer,
    Limits,
    Nearest,
    Network,
    NoneExists,
    Query,
    Real,
    Reasons,
    Schema,
    Stop,
    StoppedBy,
    Unknown,
    Within,
)
from ifonly.errors import QuestionError
from ifonly.results import Relaxation

KINDS = (Nearest, NoneExists, Within, Unknown, Failed)
NAMES = ("Age", "Zweig", "Größe \u202e", "a b", "'", "0", "x" * 40, "note", "")


class Random:
    """Random values, all of them of the kinds that answers have."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def count(self) -> int:
        return int(self.one(0, 1, 7, 2**40))

    def number(self) -> float:
        return float(self.one(0.0, 0.1 + 0.2, 1e-300, 1e300, self.rng.random(), 5e-324, -0.0, 3.0))

    def length(self) -> float:
        return abs(self.number())

    def value(self) -> Any:
        return self.one(None, True, False, 0, -17, 12345, "yes", "", "ü\n", self.number(), -self.number())

    def text(self) -> str:
        return str(self.one("", "l1", *NAMES))

    def texts(self) -> tuple[str, ...]:
        return tuple(self.text() for _ in range(self.rng.integers(4)))

    def scores(self) -> Any:
        return self.one(math.nan, self.number(), (self.number(), -self.number()), (math.nan, 1.0, 2.0))

    def stop(self, deep: int = 2) -> Stop | None:
        if self.rng.random() < 0.2:
            return None
        by = self.one(*StoppedBy)
        amount = self.one(None, 0, 1, 10**6, self.length(), math.inf)
        if by in (StoppedBy.NODES, StoppedBy.FEWER, StoppedBy.QUESTIONS, StoppedBy.MEMORY) and amount == math.inf:
            amount = 3
        return Stop(by, amount, self.one("", "float32", "unknown"), self.stop(deep - 1) if deep else None)

    def row(self) -> dict[str, Any]:
        size = int(self.rng.integers(len(NAMES)))
        return {NAMES[i]: self.value() for i in self.rng.permutation(len(NAMES))[:size]}

    def changes(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[Change, ...]:
        moved = [name for name in before if repr(before[name]) != repr(after[name])]
        return tuple(Change(name, before[name], after[name], bool(self.rng.integers(2))) for name in moved)

    def relaxation(self) -> Relaxation:
        before = self.row()
        return Relaxation(
            dropped=self.texts(),
            words=self.text(),
            distance=self.length(),
            lower=self.length(),
            proven=bool(self.rng.integers(2)),
            changes=self.changes(before, {name: self.value() for name in before}),
        )

    def reasons(self) -> Reasons | None:
        if self.rng.random() < 0.3:
            return None
        several = tuple(self.relaxation() for _ in range(self.rng.integers(3)))
        return Reasons(blame=self.texts(), minimal=bool(self.rng.integers(2)), relaxations=several, note=self.text())

    def answer(self) -> Answer:
        kind = self.one(*KINDS)
        before = self.row()
        common: dict[str, Any] = {
            "row": self.count(),
            "factual": before,
            "target": self.text(),
            "distance_name": self.text(),
            "lower": self.one(math.inf, self.length()),
            "decision_before": self.value(),
            "score_before": self.scores(),
            "method": self.text(),
            "seconds": self.length(),
            "nodes": self.count(),
            "stop": self.stop(),
            "subject": self.text(),
            "state": self.text(),
            "breaks": self.texts(),
        }
        if kind in (Nearest, Within):
            after = {name: self.one(value, self.value()) for name, value in before.items()}
            common |= {
                "upper": self.length(),
                "counterfactual": after,
                "changes": self.changes(before, after),
                "decision_after": self.value(),
                "score_after": self.scores(),
            }
        if kind is NoneExists:
            return NoneExists(reasons=self.reasons(), **common)
        return Failed(error=self.text(), **common) if kind is Failed else kind(**common)


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.mark.long
def test_a_thousand_random_answers() -> None:
    random = Random(1)
    seen: Counter[str] = Counter()
    for i in range(1000):
        answer = random.answer()
        again = Answer.from_dict(through_json(answer.to_dict()))
        assert again == answer and type(again) is type(answer), i
        assert type(answer).from_dict(json.loads(answer.to_json())) == answer
        assert again.to_json() == answer.to_json()
        assert str(again) == str(answer)
        seen[answer.status] += 1
    assert len(seen) == 5 and min(seen.values()) > 150


def test_many_at_once() -> None:
    random = Random(2)
    answers = Answers([random.answer() for _ in range(50)])
    assert list(Answers.from_dicts(through_json(answers.to_dicts()))) == list(answers)
    assert list(Answers.from_dicts([])) == []
    with pytest.raises(QuestionError, match="Answers are a list of objects, one per row; got {}"):
        Answers.from_dicts({})


SCHEMA = Schema([Integer("n", 0, 20000), Real("x", 0.0, 1.0)])
EXPLAINER = Explainer(Network.of([([[1.0, 10.0]], [-9000.5])]), schema=SCHEMA, classes=["no", "yes"])
POOR = {"n": 1, "x": 0.25}


def test_real_answers() -> None:
    told = EXPLAINER.explain_many([POOR, {"n": 9999, "x": 0.5}, {"n": -1}, POOR])
    told = Answers([*told, EXPLAINER.explain(POOR, constraints=[Fixed("n")])])
    told = Answers([*told, EXPLAINER.explain(POOR, target="no"), EXPLAINER.explain(POOR, Query(fewest_first=True))])
    told = Answers([*told, EXPLAINER.explain(POOR, limits=Limits(nodes=1))])
    again = Answers.from_dicts(through_json(told.to_dicts()))
    assert list(again) == list(told)
    assert list(map(str, again)) == list(map(str, told))
    assert {"nearest", "none exists", "error"} <= {answer.status for answer in told}
    assert isinstance(told[4], NoneExists) and told[4].reasons is not None and told[4].reasons.relaxations


@pytest.mark.parametrize("constraints", [[], ["x is fixed", "n <= 9001"], ["n is fixed"]])
def test_sets_of_answers(constraints: list[str]) -> None:
    answers = EXPLAINER.explain_diverse(POOR, Diversity(3, apart=0.01), constraints=constraints)
    again = DiverseAnswers.from_dict(through_json(answers.to_dict()))
    assert again.to_dict() == answers.to_dict()
    assert (list(again), again.ended, again.apart) == (list(answers), answers.ended, answers.apart)
    assert str(again) == str(answers)


def nearest() -> dict[str, Any]:
    data = through_json(EXPLAINER.explain(POOR).to_dict())
    assert data["status"] == "nearest"
    return data


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row": -1}, "'row' of an answer must be a whole number >= 0; got -1"),
        ({"row": True}, "'row' of an answer must be a whole number"),
        ({"status": "proven"}, "'status' of an answer must be one of nearest, none exists, within, unknown, error"),
        ({"status": ["nearest"]}, "'status' of an answer must be one of"),
        ({"status": "unknown"}, "status 'unknown' has neither a row nor a distance"),
        ({"distance": None}, "status 'nearest' has a row and its distance"),
        ({"distance": math.nan}, "'distance' of an answer must be a finite number"),
        ({"distance": "0.1"}, "'distance' of an answer must be a finite number; got '0.1'"),
        ({"lower_bound": -0.5}, "'lower_bound' of an answer must be at least 0"),
        ({"note": "time limit of 1 s"}, "'note' of this answer would be ''; it is 'time limit of 1 s'"),
        ({"already": True}, "'already' of this answer would be False; it is True"),
        ({"already": 0}, "'already' of this answer would be False; it is 0"),
        ({"changes": []}, "'already' of this answer would be True; it is False"),
        ({"changes": [{"feature": "n", "from": 1, "to": 3}]}, "The change of 'n' is not that from the factual"),
        ({"changes": [{"feature": "n", "from": 1}]}, "A change needs the entry 'to'"),
        ({"changes": {}}, "'changes' of an answer must be a list"),
        ({"factual": [1, 0.25]}, "'factual' of an answer must be an object with a value per feature"),
        ({"factual": {"n": [1]}}, "'factual' of an answer must be a finite number"),
        ({"score_before": ["a"]}, "'score_before' of an answer must be a finite number"),
        ({"seconds": None}, "'seconds' of an answer must be a finite number"),
        ({"stop": {"by": "boredom", "amount": 1, "detail": "", "cause": None}}, "stopped by 'boredom'"),
        ({"stop": {"by": "nodes", "amount": "1", "detail": "", "cause": None}}, "is a number; got '1'"),
        ({"stop": {"by": "nodes", "amount": 1}}, "has the entries by, amount, detail and cause"),
        ({"breaks": "age"}, "'breaks' of an answer must be a list"),
        ({"reasons": None}, "An answer has no entry 'reasons'"),
        ({"colour": "red"}, "An answer has no entry 'colour'"),
    ],
)
def test_what_is_no_answer(change: dict[str, Any], words: str) -> None:
    with pytest.raises(QuestionError) as error:
        Answer.from_dict({**nearest(), **change})
    assert words in str(error.value)


def test_every_entry_is_needed_and_a_kind_reads_its_own() -> None:
    data = nearest()
    for name in data:
        with pytest.raises(QuestionError, match=f"'{name}'"):
            Answer.from_dict({key: value for key, value in data.items() if key != name})
    with pytest.raises(QuestionError, match=r"This answer is a Nearest \('nearest'\), no Failed"):
        Failed.from_dict(data)
    with pytest.raises(QuestionError, match="An answer must be an object with entries such as 'row'; got 3"):
        Answer.from_dict(3)
    with pytest.raises(TypeError, match="abstract"):
        Answer(row=0, factual={}, target="", distance_name="", lower=0.0)  # type: ignore[abstract]


def test_what_is_no_set_of_answers() -> None:
    data = through_json(EXPLAINER.explain_diverse(POOR, 2).to_dict())
    for change, words in (
        ({"proven": False}, "'proven' of this set would be True; it is False"),
        ({"k_distance": 0.5}, "'k_distance' of this set would be"),
        ({"apart": [[0.0]]}, "must be a square, with a row per answer"),
        ({"answers": 3}, "'answers' of an answer must be a list"),
        ({"more": 3}, "A set of answers has no entry 'more'"),
    ):
        with pytest.raises(QuestionError) as error:
            DiverseAnswers.from_dict({**data, **change})
        assert words in str(error.value)
