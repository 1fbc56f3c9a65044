"""Principal reasons against all rows: the least change of a group alone, and that no change of it alone is enough."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_sufficient import Oracle, random_case

from ifonly import Explainer
from ifonly.notices import ReasonCodes, ReasonGroup, principal_reasons
from ifonly.problem import Distance


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("block", range(8))
def test_groups_against_all_rows(block: int) -> None:
    checked = 0
    for seed in range(25 * block, 25 * (block + 1)):
        case = random_case(seed)
        if case is None or case.target is not None or not case.model.classes or case.within.words:
            continue
        rng, schema = np.random.default_rng([seed, 8]), case.model.schema
        names = [str(name) for name in rng.permutation(schema.names)]
        cut = int(rng.integers(1, len(names) + 1))
        codes = ReasonCodes((ReasonGroup(features=tuple(names[:cut]), code="A", text="a"),))
        explainer = Explainer(case.model, constraints=[f"{names[0]} is fixed"])  # of changes: it does not count
        told = principal_reasons(explainer, schema.row(case.point), codes, most=3)
        oracle = Oracle(case, told.why)
        if oracle.doubt:
            continue
        asked = (*told.reasons, *told.others)
        assert {name for one in asked for name in one.group.features} == set(names), seed
        for one in asked:
            kept = [schema.index(name) for name in names if name not in one.group.features]
            same = (oracle.rows[:, kept] == case.point[kept]).all(axis=1) & oracle.other
            far = Distance("l1").between(schema, case.point, oracle.rows[same]) if same.any() else np.array([math.inf])
            assert one.verdict == ("alone" if same.any() else "never"), (seed, one)
            assert one.distance == pytest.approx(float(far.min()), abs=1e-6), (seed, one)
        listed = [one.distance for one in told.reasons if one.verdict == "alone"]
        assert listed == sorted(listed), seed
        left = [one.distance for one in told.others if one.verdict == "alone"]
        assert not left or (len(told.reasons) == 3 and max(listed) <= min(left)), seed
        assert told.ranked, seed
        checked += 1
    assert checked >= 1
