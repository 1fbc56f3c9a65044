"""Preparation ahead of the first question: all that a first question does and later ones about the same do not.

A question depends on the decision that a person has now, so there is one for each. The model is called once, since
frameworks import and compile at their first call, and each question is searched for a node or two, from some row.
"""

from __future__ import annotations

import numpy as np

from ifonly.answering.answerer import Answerer
from ifonly.answering.runner import QueryRunner
from ifonly.answering.values import Floats, ResolvedTarget, SearchSettings
from ifonly.problem import OpenTarget, Query
from ifonly.schema import Numeric, Schema


def prepare(answerer: Answerer, query: Query, settings: SearchSettings, *, wait: bool) -> None:
    """Prepare the questions of a query. `wait`: until the kernels are compiled; else that goes on meanwhile."""
    runner, point = answerer.runner, some_point(answerer.schema)
    plain = runner.split(query).plain
    for target in targets_of(runner, query):
        runner.solver.prepare(target, plain, settings, point, wait=wait)
    runner.batch(point[None, :], [0])
    _ = query.words, answerer.broken_facts(point[None, :], query)  # rules are put into words, and made functions


def targets_of(runner: QueryRunner, query: Query) -> list[ResolvedTarget]:
    """The target of the people of each class."""
    by_class = query.target is None or isinstance(query.target, OpenTarget)
    classes = range(len(runner.model.classes)) if by_class and runner.model.classes else (0,)
    return [runner.resolved(query.target, now) for now in classes]


def some_point(schema: Schema) -> Floats:
    """A row of the schema: the least number and the first option of each feature."""
    return np.array([one.lower if isinstance(one, Numeric) else 0.0 for one in schema.features], dtype=np.float64)
