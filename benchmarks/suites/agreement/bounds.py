"""Bounds of neurons: rows sampled inside box and budget, none of whose pre-activations may lie outside."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.terminal import TESTS
from ifonly import ClassTarget, Distance, datasets
from ifonly.problem import Question, lower
from ifonly.solvers.common.bounds import BOUNDS, neuron_bounds
from ifonly.solvers.common.distances import cut_to, farthest
from ifonly.solvers.common.inputs import Person

NORMS = ("l0", "l1", "l2", "linf")
BUDGETS = (0.01, 0.1, 1.0)
"""Shares of the farthest row's distance."""


def check_bounds(names: Sequence[str], rows: int, random: int, folder: Path) -> None:
    """Sampled rows of box and budget, by every bound method: shipped and reference networks, then random ones."""
    sys.path[:0] = [str(TESTS / "mip"), str(TESTS / "oracles"), str(TESTS)]
    from inside import outside, rows_within  # type: ignore[import-not-found]
    from random_problems import random_problem  # type: ignore[import-not-found]

    from cases import CASES as LISTED  # type: ignore[import-not-found]
    from cases import load

    questions: list[tuple[str, Question, Any]] = []
    for name in names:
        model = datasets.network(name, rules=False)
        point = datasets.load(name, rules=False).points()[:1]
        questions += [(f"{name} (shipped) {norm}", _asked(model, norm), point) for norm in NORMS]
    for dataset, arch, variant in (case for case in LISTED if case[0] in names):
        model, points, _ = load(dataset, arch, variant, folder=folder)
        questions += [(f"{dataset} {arch} {variant} {norm}", _asked(model, norm), points[:1]) for norm in NORMS]
    for seed in range(random):
        question, points = random_problem(seed)
        questions.append((f"random question {seed} {question.distance.name}", question, points[:1]))
    total, wrong = 0, 0
    for name, question, point in questions:
        lowered, asked, out = lower(question), 0, 0
        someone = Person.of(lowered.domains(point), 0)
        if someone.empty(lowered):
            continue
        for share in BUDGETS:
            budget = share * farthest(lowered, someone)
            cut = cut_to(lowered, someone, budget)
            if cut is None:
                continue
            sampled = rows_within(lowered, someone, cut, budget, rows, np.random.default_rng(0))
            for how in BOUNDS:
                asked += len(sampled)
                out += outside(lowered, neuron_bounds(lowered, cut, budget, how), sampled)
        total, wrong = total + asked, wrong + out
        click.echo(f"{name}: {asked:,} rows and bounds, {out} pre-activations outside")
    click.echo(f"{len(questions)} questions, {total:,} rows and bounds, {wrong} pre-activations outside")


def _asked(model: Any, norm: str) -> Question:
    return Question(model=model, target=ClassTarget(model.classes[1], 0.0), distance=Distance(norm))
