"""Rows that somebody else proposes: is each of them an answer to the person beside it?

By the same check as every claim of a method: the schema, the constraints, and the user's own model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.asking.asker import Asker, parted
from ifonly.asking.found import Asked, Floats
from ifonly.problem.conditions import Situation
from ifonly.proof import check_witnesses


def accepted(asker: Asker, asked: Asked, before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Which rows are allowed for these people, and decided as they want."""
    conditions, ordinary = parted(asked.constraints)
    plainly = replace(asked, constraints=ordinary) if conditions else asked
    good = np.zeros(len(before), dtype=np.bool_)
    for wanted, members in asker.groups(asked, asker.askers(before, range(len(before))).decided):
        for target in wanted.alternatives:
            question = asker.finder.question(target, plainly)
            told = check_witnesses(question, before[members], after[members])
            good[members] |= [k not in told.refusals for k in range(len(members))]
    for i in np.flatnonzero(good).tolist() if conditions else []:
        situation = Situation(asker.model.schema, before[i], asked.distance)
        good[i] = all(condition.holds(situation, after[i]) for condition in conditions)
    return good
