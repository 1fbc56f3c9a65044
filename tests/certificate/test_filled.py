"""Certificates of rows with missing numbers that may be filled in: VALID, true, and together as sharp as the answer."""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from certificate.by_enumeration import untruth
from certificate.javascript import agree_on
from ifonly import Explainer, Query, check
from ifonly.certifying import certify_filled
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import MipObj
from ifonly.problem.missing import counted, fillable

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "oracles")]

from test_missing import NUMBERS, SPACES, asked, people, pipeline  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("space", SPACES)
def test_the_least_of_them_is_the_answer(space: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    made = []
    for seed in range(12 if space == "integers" else 4):
        rng = np.random.default_rng(seed)
        explainer = Explainer(pipeline(SPACES[space], rng), schema=SPACES[space].schema)
        frame = people(SPACES[space], rng, 60)
        row = frame[frame[list(NUMBERS)].isna().any(axis=1)].iloc[0].to_dict()
        query = asked(SPACES[space], rng, row).query
        answer = explainer.explain(row, query)
        changes = fillable(query.constraints, explainer.schema.missing_names(explainer.schema.read(row)))
        found = certify_filled(explainer, row, query)
        lower = math.inf
        for filled, certificate in found.items():
            checked = check(certificate)
            assert checked.valid, (seed, filled, checked.failure)
            truth = untruth(certificate.data)
            assert not truth, (seed, filled, truth)
            seen["enumerated"] += truth is not None
            size = {name: changes[name] for name in filled}
            rest = math.inf if checked.lower == math.inf else checked.lower
            lower = min(lower, rest if rest == math.inf else counted(query.measure, len(explainer.schema), rest, size))
        assert lower == pytest.approx(answer.upper, rel=1e-6, abs=1e-6), (seed, query)
        made += found.values()
        seen["several" if len(found) > 1 else "one"] += 1
    print(space, dict(seen))
    assert set(agree_on(made, tmp_path)) == {"VALID"} and seen["several"] >= 2


def test_another_method() -> None:
    explainer = Explainer(pipeline(SPACES["integers"], np.random.default_rng(0)), schema=SPACES["integers"].schema)
    with pytest.raises(UnsupportedQuestion, match="proven by the search"):
        certify_filled(explainer.using(MipObj()), {}, Query())
