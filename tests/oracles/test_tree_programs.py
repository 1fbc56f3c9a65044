"""Three independent ways to the nearest row of a tree ensemble: the search on cells, the mixed-integer program on cuts
and leaves, and every row. They share the ensemble, and none of what each makes of it.

`IFONLY_TREES=500 pytest tests/oracles/test_tree_programs.py` asks that many questions of every kind.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from comparison import answers, disagreements
from random_trees import random_tree_problem

from ifonly import Limits
from ifonly.methods import Enumerate, Mace, MipObj, MipSat, Search
from ifonly.model.trees import Trees
from ifonly.problem import Question
from ifonly.problem.rules import read_constraint
from ifonly.results import Method
from ifonly.schema import Real
from ifonly.solvers.common.backends import available

COUNT = int(os.environ.get("IFONLY_TREES", "40"))
SEARCH = Search(table_rows=0)
LIMITS = Limits(seconds=600.0)


def supported(question: Question, seed: int) -> Question:
    """With a count of changes, a partner, or both."""
    rng, schema = np.random.default_rng([seed, 4]), question.schema
    sentences = [f"at most {rng.integers(1, 1 + max(len(schema), 2))} changes"]
    steps = [feature.name for feature in schema.features if not isinstance(feature, Real) or feature.grid is not None]
    if steps and len(schema) > 1:
        partner = str(rng.choice(steps))
        sentences.append(
            f"{rng.choice([name for name in schema.names if name != partner])} changes only with {partner}"
        )
    more = [read_constraint(sentence, schema) for sentence in sentences[int(rng.integers(2)) :]]
    return replace(question, constraints=(*question.constraints, *more))


def compared(question: Question, points: np.ndarray, method: Method, seed: int) -> list[str]:
    """What the method and the search, and the enumerator where it can, disagree on."""
    theirs, ours = answers(question, points, method, LIMITS), answers(question, points, SEARCH, LIMITS)
    found = [*disagreements(ours, theirs, mip=True), *disagreements(theirs, ours, mip=True)]
    if all(not isinstance(feature, Real) for feature in question.schema.features):
        every = answers(question, points, Enumerate(), LIMITS)
        found += [*disagreements(every, theirs), *disagreements(every, ours)]
    return [f"{method.name}, seed {seed}: {sentence}" for sentence in found]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "ruled", "finite", "finite ruled"])
def test_search_program_and_enumerator_agree(kind: str) -> None:
    found: list[str] = []
    for seed in range(COUNT):
        question, points = random_tree_problem(seed, finite="finite" in kind, ruled="ruled" in kind)
        found += compared(supported(question, seed), points, MipObj(), seed)
    assert not found


@pytest.mark.parametrize("backend", [name for name in ("gurobi", "scip") if available(name)])
def test_other_solvers_agree_too(backend: str) -> None:
    found: list[str] = []
    for seed in range(1000, 1000 + max(COUNT // 4, 10)):
        question, points = random_tree_problem(seed, ruled=True)
        found += compared(supported(question, seed), points[:1], MipObj(backend=backend), seed)
    assert not found


@pytest.mark.long
@pytest.mark.parametrize("method", [Mace(), MipSat()], ids=lambda method: method.name)
def test_formulas_agree_with_the_enumerator(method: Method) -> None:
    pytest.importorskip("z3", reason="z3-solver is not installed")
    found: list[str] = []
    for seed in range(2000, 2000 + max(COUNT // 2, 10)):
        question, points = random_tree_problem(seed, finite=True, ruled=True)
        found += compared(supported(question, seed), points[:1], method, seed)
    assert not found


def test_what_is_compared_is_not_all_alike() -> None:
    """Ties, rules, counts, partners, choices, steps, several outputs, both precisions: each is among the questions."""
    seen = set()
    for seed in range(40):
        question, _ = random_tree_problem(seed, ruled=True)
        trees = question.model.function
        assert isinstance(trees, Trees)
        seen |= {type(rule).__name__ for rule in supported(question, seed).rules}
        seen |= {type(feature).__name__ for feature in question.schema.features}
        seen |= {trees.ensemble.summation.precision, trees.outputs, question.distance.kind.value}
    assert seen >= {
        "MaxChanges",
        "OnlyWith",
        "Rule",
        "Real",
        "Integer",
        "Categorical",
        "Ordinal",
        "float32",
        "float64",
    }
    assert seen >= {1, 3, "l0", "l1", "l2", "linf"}


@pytest.mark.parametrize(
    "seed, finite, ruled",
    [(158, False, False), (117, False, True), (9, False, False), (194, True, True), (238, True, False)],
    ids=["presolve", "next float64", "l0 at a cut", "lost tie under rules", "lost tie"],
)
def test_questions_that_some_method_got_wrong(seed: int, finite: bool, ruled: bool) -> None:
    question, points = random_tree_problem(seed, finite=finite, ruled=ruled)
    assert not compared(question, points, MipObj(), seed)
