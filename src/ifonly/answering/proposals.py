"""Validity check of proposed rows: is each of them a counterfactual for the person beside it?

By the same check as every claim of a method: the schema, the constraints, and the user's own model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.answerer import Answerer, complete
from ifonly.answering.missing import patterns, query_restricted_to
from ifonly.answering.runner import QueryRunner
from ifonly.answering.values import Floats
from ifonly.problem import Query
from ifonly.problem.disjunctions import PersonContext
from ifonly.results import check_witnesses


def accepted(answerer: Answerer, query: Query, before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Which rows are allowed for these people and meet the target; missing numbers have to stay missing."""
    good = np.zeros(len(before), dtype=np.bool_)
    same = np.flatnonzero((np.isnan(before) == np.isnan(after)).all(axis=1))
    for missing, some in patterns(answerer.schema, before[same]).items():
        own = query_restricted_to(answerer.schema, query, missing) if missing else query
        members = same[some]
        rows = complete(before[members]), complete(after[members])
        good[members] = _accepted(answerer.without(missing).runner, own, *rows)
    return good


def _accepted(runner: QueryRunner, query: Query, before: Floats, after: Floats) -> NDArray[np.bool_]:
    conditions, plain = runner.split(query)
    good = np.zeros(len(before), dtype=np.bool_)
    for resolved, members in runner.groups(query, runner.batch(before, range(len(before))).decided):
        for target in resolved.alternatives:
            witnesses = check_witnesses(runner.solver.question(target, plain), before[members], after[members])
            good[members] |= [k not in witnesses.rejected for k in range(len(members))]
    for i in np.flatnonzero(good).tolist() if conditions else []:
        context = PersonContext(runner.model.schema, before[i], query.measure)
        good[i] = all(condition.holds(context, after[i]) for condition in conditions)
    return good
