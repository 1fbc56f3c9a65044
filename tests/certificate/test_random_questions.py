"""Certificates of random questions of every kind: VALID, true, and as sharp as the search; altered, never falsely VALID."""

from __future__ import annotations

import copy
import itertools
import math
import os
from collections import Counter
from typing import Any

import numpy as np
import pytest

from certificate.random_questions import KINDS, LIMITS, verdict
from certificate.samples import restamped
from certificate.test_mutation import others, places, put
from ifonly import check
from ifonly.certifying.certifier import Certifier
from ifonly.errors import UnsupportedQuestion
from ifonly.problem import Question
from ifonly.schema import Choice, Integer
from ifonly.tolerances import DEFAULT

COUNT = int(os.environ.get("IFONLY_CERTIFICATES", "0"))
FIRST = int(os.environ.get("IFONLY_FIRST", "0"))
MUTATIONS = int(os.environ.get("IFONLY_MUTATIONS", "60"))
MOST_ROWS = 20_000
FINITE = ("finite rules", "finite trees", "trees under rules", "finite smooth", "finite other smooth")


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_valid_and_true(kind: str) -> None:
    """`IFONLY_CERTIFICATES` says how many of each kind, from number `IFONLY_FIRST` on; what is refused must say why."""
    verdicts = {seed: verdict(kind, seed) for seed in range(FIRST, FIRST + (COUNT or 3))}
    seen = Counter(verdicts.values())
    print(kind, dict(seen), [seed for seed, words in verdicts.items() if words != "ok"])
    wrong = [words for words in seen if words.startswith("WRONG") or (words.startswith("far") and not COUNT)]
    assert not wrong
    assert seen["ok"] >= 0.9 * sum(seen.values())


def test_a_side_of_a_rule_that_floating_point_finds_empty() -> None:
    """It was written as a leaf without rows, which the checker's room for decimals leaves open."""
    assert verdict("rules", 367) == "ok"


def test_a_change_of_an_option_is_paid_for_once() -> None:
    """A feature that must change has spent what any change costs: an option's cost has that in it already."""
    assert verdict("rules", 37) == "ok"


def rows_of(question: Question) -> Any:
    """All rows of a small finite space; nothing where it is neither."""
    values = []
    for feature in question.schema.features:
        if isinstance(feature, Choice):
            values.append(range(len(feature.options)))
        elif isinstance(feature, Integer):
            values.append(range(int(feature.lower), int(feature.upper) + 1, feature.step))
        else:
            return None
    return itertools.product(*values) if math.prod(map(len, values)) <= 300 else None


def least_cost(question: Question, point: Any, rows: Any) -> float:
    """The distance of the nearest allowed row that is favourable beyond any rounding."""
    c, d = question.conditions
    least = math.inf
    for row in rows:
        after = np.array(row, dtype=np.float64)
        if question.allows(point, after) is None:
            values = c @ question.model.scores(after[None, :])[0] - d - question.margins
            if (values >= 1e-9).all():
                least = min(least, float(question.distance.between(question.schema, point, after)))
    return least


@pytest.mark.parametrize("kind", FINITE)
def test_no_altered_answer_is_falsely_valid(kind: str) -> None:
    """The claim, the witness and the proof are altered and stamped anew; what is VALID must be true by enumeration."""
    tried = passed = 0
    for seed in itertools.count():
        question, points = KINDS[kind](seed)
        rows, point = rows_of(question), points[0]
        if rows is None:
            continue
        try:
            data = Certifier(question, DEFAULT).proven(point, LIMITS).data
        except UnsupportedQuestion:
            continue
        truth = least_cost(question, point, rows)
        changes = [(path, other) for path, value in places({k: data[k] for k in ("claim", "witness", "proof")})
                   for other in others(value)]  # fmt: skip
        rng = np.random.default_rng(seed)
        for k in rng.permutation(len(changes))[: max(MUTATIONS // 4, 10)].tolist():
            path, other = changes[k]
            checked = check(restamped(put(data, path, other)))
            tried, passed = tried + 1, passed + checked.valid
            if checked.valid:
                assert checked.lower <= truth * (1 + 1e-9) + 1e-12, (seed, path, other)
        if tried >= MUTATIONS:
            break
    assert passed < tried


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", FINITE)
def test_no_altered_question_is_falsely_valid(kind: str) -> None:
    """Any field of the question is altered (schema, model, person, distance, rules, target): what is VALID then must be
    true of the altered question, by enumeration."""
    tried = passed = 0
    for seed in itertools.count():
        question, points = KINDS[kind](seed)
        if rows_of(question) is None:
            continue
        try:
            data = Certifier(question, DEFAULT).proven(points[0], LIMITS).data
        except UnsupportedQuestion:
            continue
        changes = [(("question", *path), other) for path, value in places(data["question"]) for other in others(value)]
        rng = np.random.default_rng(seed)
        for k in rng.permutation(len(changes))[: max(MUTATIONS // 10, 10)].tolist():
            altered = put(data, *changes[k])
            checked = check(restamped(altered))
            tried, passed = tried + 1, passed + checked.valid
            assert not checked.valid or _holds(altered, checked), (seed, changes[k])
        if tried >= MUTATIONS:
            break
    print(kind, f"{tried} altered, {passed} VALID and true")
    assert passed < tried


@pytest.mark.long
def test_a_rule_that_is_left_out_of_the_proof() -> None:
    """With a rule less, or a weaker one, more rows are allowed: the old proof must not hold where they are nearer."""
    refused = 0
    for seed in range(40):
        question, points = KINDS["finite rules"](seed)
        if rows_of(question) is None:
            continue
        try:
            certificate = Certifier(question, DEFAULT).proven(points[0], LIMITS)
        except UnsupportedQuestion:
            continue
        stated = certificate.data["question"]["constraints"]
        for k in range(len(stated)):
            data = copy.deepcopy(certificate.data)
            del data["question"]["constraints"][k]
            checked = check(restamped(data))
            assert not checked.valid or _holds(data, checked)
            refused += not checked.valid
    assert refused > 0


def _holds(data: dict[str, Any], checked: Any) -> bool:
    """Is what is claimed true of the question as it is stated now?"""
    from ifonly.certificate.check.statement import read_statement

    statement = read_statement(data["question"], data["proof"]["grid"], data["proof"]["cost_grid"])
    values = [range(len(f.options)) if hasattr(f, "options") else range(int(f.lower), int(f.upper) + 1, f.step)
              for f in statement.schema.features]  # fmt: skip
    if math.prod(map(len, values)) > MOST_ROWS:  # an end that was altered: not enumerated
        return True
    power = 2 if statement.norm_name == "l2" else 1
    for row in itertools.product(*values):
        point = tuple(map(float, row))
        nearer = float(statement.cost(point)) < checked.lower**power * (1 - 1e-9)
        if nearer and not statement.allows(point) and min(statement.conditions(point)) >= 0:
            return False
    return True
