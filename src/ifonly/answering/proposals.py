"""Rows that somebody else proposes: is each of them an answer to the person beside it?

By the same check as every claim of a method: the schema, the constraints, and the user's own model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.runner import QueryRunner, parted
from ifonly.answering.values import Floats, PreparedQuery
from ifonly.problem.disjunctions import PersonContext
from ifonly.results import check_witnesses


def accepted(runner: QueryRunner, prepared_query: PreparedQuery, before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Which rows are allowed for these people, and decided as they want."""
    conditions, ordinary = parted(prepared_query.constraints)
    plainly = replace(prepared_query, constraints=ordinary) if conditions else prepared_query
    good = np.zeros(len(before), dtype=np.bool_)
    for resolved, members in runner.groups(prepared_query, runner.batch(before, range(len(before))).decided):
        for target in resolved.alternatives:
            question = runner.finder.question(target, plainly)
            told = check_witnesses(question, before[members], after[members])
            good[members] |= [k not in told.refusals for k in range(len(members))]
    for i in np.flatnonzero(good).tolist() if conditions else []:
        context = PersonContext(runner.model.schema, before[i], prepared_query.distance)
        good[i] = all(condition.holds(context, after[i]) for condition in conditions)
    return good
