"""Preparation ahead of the first question: all that a first question does and later ones about the same do not.

A question depends on the decision that a person has now, so there is one for each. Each is searched for one node, from
some row, and that row is answered about: so the model is called, too, since frameworks import and compile at their
first call.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from ifonly.answering.answerer import Answerer
from ifonly.answering.runner import QueryRunner
from ifonly.answering.values import Floats, ResolvedTarget, SearchSettings
from ifonly.errors import Contradiction
from ifonly.problem import OpenTarget, Query, RobustToWeights
from ifonly.schema import Numeric, Schema


def prepare(answerer: Answerer, query: Query, settings: SearchSettings, *, wait: bool) -> None:
    """Prepare the questions of a query. `wait`: until the kernels are compiled; else that goes on meanwhile."""
    runner, point = answerer.runner, some_point(answerer.schema)
    conditions, plain = runner.split(query)
    targets = targets_of(runner, query)
    begun = [runner.solver.prepare(target, plain, settings, point, wait=wait) for target in targets]
    _ = query.words, answerer.broken_facts(point[None, :], query)  # rules are put into words, and made functions
    rounds = conditions or query.fewest_first or any(isinstance(one, RobustToWeights) for one in plain.constraints)
    if all(begun) and not rounds:
        answer_begun(answerer, query, settings, point)
    else:
        runner.batch(point[None, :], [0])


def answer_begun(answerer: Answerer, query: Query, settings: SearchSettings, point: Floats) -> None:
    """Answer about a row after a search of one node: all code that an answer takes is loaded."""
    runner, quick = answerer.runner, replace(settings, limits=replace(settings.limits, nodes=1), listen=None)
    batch = runner.batch(point[None, :], [0])
    with suppress(Contradiction):  # a bug, which the answers about it tell
        list(answerer.builder.answers(batch, [0], runner.find(batch, query, quick), query))


def targets_of(runner: QueryRunner, query: Query) -> list[ResolvedTarget]:
    """The target of the people of each class."""
    by_class = query.target is None or isinstance(query.target, OpenTarget)
    classes = range(len(runner.model.classes)) if by_class and runner.model.classes else (0,)
    return [runner.resolved(query.target, now) for now in classes]


def some_point(schema: Schema) -> Floats:
    """A row of the schema: the least number and the first option of each feature."""
    return np.array([one.lower if isinstance(one, Numeric) else 0.0 for one in schema.features], dtype=np.float64)
