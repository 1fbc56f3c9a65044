"""Several models in one question, against every row of finite spaces judged by the models' own scores.

`IFONLY_CHAIN_SEEDS` asks more questions than the suite does.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from comparison import LIMITS, TOLERANCE, disagreements
from random_chains import ChainProblem, Floats, by_trying, random_chain, surely_accepted

from ifonly import AcceptedBySome, Answer, Explainer, Limits, Nearest, NoneExists, Real, StoppedBy
from ifonly.methods import Enumerate, MipObj, Search
from ifonly.results import Method

SEEDS = int(os.environ.get("IFONLY_CHAIN_SEEDS", "250"))
BLOCK = 10


def asked(problem: ChainProblem, method: Method, *, reasons: bool = False) -> list[Answer]:
    question = problem.question
    explainer = Explainer(question.model).using(method, reasons=reasons, limits=LIMITS)
    rows = [question.schema.row(point) for point in problem.points]
    return list(
        explainer.explain_many(
            rows, target=question.target, distance=question.distance, constraints=problem.constraints
        )
    )


def check(problem: ChainProblem, answer: Answer, factual: Floats, counts: Counter[str]) -> str:
    """What is wrong with an answer, by trying every row."""
    if answer.upper == 0.0 and answer.method == "model":  # decided as asked already, by all
        counts["already"] += 1
        me = (problem.points == factual).all(axis=1)  # among the others: in a batch, a tie may be decided otherwise
        verdicts = [one.accepts_unchanged(problem.question.schema, problem.points)[me] for one in problem.others]
        return "" if all(verdict.all() for verdict in verdicts) else "not by all"
    may, must = by_trying(problem, factual)
    if answer.stop is not None and answer.stop.is_limit:
        return "does not end"
    counts[type(answer).__name__] += 1
    counts["open"] += may != must
    if isinstance(answer, NoneExists):
        return "" if may == math.inf or must == math.inf > may else f"none exists, but one at {must}"
    if answer.lower > must + TOLERANCE or (math.isfinite(answer.upper) and answer.upper < may - TOLERANCE):
        return f"{answer.status} [{answer.lower}, {answer.upper}], but nearest in [{may}, {must}]"
    if may == must and not (isinstance(answer, Nearest) and abs(answer.upper - must) <= TOLERANCE):
        return f"{answer.status} [{answer.lower}, {answer.upper}], but nearest is {must}"
    return ""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
@pytest.mark.parametrize("ruled", [False, True], ids=["plain", "ruled"])
def test_agrees_with_every_row(first: int, ruled: bool) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(first, first + BLOCK):
        problem = random_chain(seed, ruled=ruled)
        found = asked(problem, Search(table_rows=0))
        for i, (answer, factual) in enumerate(zip(found, problem.points, strict=True)):
            if said := check(problem, answer, factual, counts):
                wrong.append(f"random_chain({seed}, ruled={ruled}), person {i}: {said}")
    assert not wrong, "\n".join(wrong)
    assert counts["open"] < 2 * BLOCK
    assert first or counts["Nearest"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(20, 20 + SEEDS, BLOCK))
def test_the_blamed_models_rule_it_out(first: int) -> None:
    """Of every NoneExists: by trying every row, the blamed constraints leave none, and each without one leaves some."""
    blamed = 0
    for seed in range(first, first + BLOCK):
        problem = random_chain(seed)
        named = {one.describe(): one for one in problem.constraints}
        reals = {feature.name for feature in problem.question.schema if isinstance(feature, Real)}
        for answer, factual in zip(asked(problem, Search(), reasons=True), problem.points, strict=True):
            if not isinstance(answer, NoneExists) or answer.reasons is None or answer.reasons.note:
                continue
            blame = tuple(named[words] for words in answer.reasons.blame)
            assert by_trying(problem, factual, blame)[1] == math.inf, seed
            for one in blame:
                if getattr(one, "feature", "") in reals:
                    continue  # without it, the space is not finite
                rest = tuple(other for other in blame if other is not one)
                assert by_trying(problem, factual, rest)[0] < math.inf, (seed, one.describe())
            blamed += any(words.endswith(" accepts") for words in answer.reasons.blame)
    assert first != 20 or blamed


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_at_least_some_of_them(first: int) -> None:
    """The nearest of all ways to choose those that accept."""
    asked_about = 0
    for seed in range(first, first + BLOCK):
        problem = random_chain(seed)
        if len(problem.others) < 2:
            continue
        least = 1 + seed % (len(problem.others) - 1)
        some = AcceptedBySome(least, problem.others)
        ways = [(*problem.question.constraints, *chosen) for chosen in combinations(problem.others, least)]
        found = asked(ChainProblem(problem.question, (some,), problem.points), Search())  # type: ignore[arg-type]
        for answer, factual in zip(found, problem.points, strict=True):
            if answer.method == "model" or (answer.stop is not None and answer.stop.by is StoppedBy.ROUNDING):
                continue
            each = [by_trying(problem, factual, way) for way in ways]
            may, must = min(one for one, _ in each), min(one for _, one in each)
            if may == must:
                asked_about += 1
                assert answer.upper == pytest.approx(must, abs=TOLERANCE), seed
                assert answer.lower >= min(must, 1e9) - TOLERANCE, seed
    assert first or asked_about


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_methods_agree(first: int) -> None:
    """The enumerator always, and the mixed-integer program where all models are piecewise-linear networks."""
    programs, wrong = 0, []
    for seed in range(first, first + BLOCK):
        problem = random_chain(seed, ruled=seed % 3 == 0)
        ours = asked(problem, Search())
        wrong += [f"{seed}: {said}" for said in disagreements(ours, asked(problem, Enumerate()))]
        networks = [problem.question.model, *(one.by for one in problem.others)]
        if all(model.function.as_network() is not None for model in networks) and programs < 3:
            programs += 1
            theirs = asked(problem, MipObj())
            clear = [k for k, one in enumerate(theirs) if one.stop is None or one.stop.by is not StoppedBy.ROUNDING]
            compared = disagreements([ours[k] for k in clear], [theirs[k] for k in clear], mip=True)
            wrong += [f"{seed}: {said}" for said in compared]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", range(0, SEEDS // 2, BLOCK))
def test_no_sampled_row_is_nearer(first: int) -> None:
    """Over real numbers: no sampled row that all models surely accept is nearer than the proven bound."""
    rng, proven = np.random.default_rng(first), 0
    for seed in range(first, first + BLOCK):
        problem = random_chain(seed, reals=True)
        question = problem.question
        explainer = Explainer(question.model).using(reasons=False, limits=Limits(nodes=2_000))
        for factual in problem.points:
            answer = explainer.explain(
                question.schema.row(factual), target=question.target, distance=question.distance,
                constraints=problem.constraints,
            )  # fmt: skip
            proven += isinstance(answer, Nearest)
            rows = question.schema.sample(1_000, rng)
            rows = np.where(rng.random(rows.shape) < 0.5, rows, factual)
            rows = rows[[question.allows(factual, row) is None for row in rows]]
            rows = rows[surely_accepted(problem, rows)] if len(rows) and answer.method != "model" else rows[:0]
            if len(rows):
                assert question.measure.between(factual, rows).min() >= answer.lower - TOLERANCE, seed
    assert first or proven
