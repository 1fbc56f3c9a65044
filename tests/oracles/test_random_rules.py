"""Random networks under random sentences, over a finite space: the search and the enumerator agree."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import Binary, Categorical, Explainer, Integer, Nearest, Network, NoneExists, Ordinal, Schema
from ifonly.errors import QuestionError
from ifonly.methods import Enumerate
from ifonly.model import network_model

SCHEMA = Schema(
    [
        Integer("i", -3, 5),
        Integer("j", 1, 13, 4),
        Categorical("c", ["p", "q", "r"]),
        Ordinal("o", ["lo", "mid", "hi", "top"]),
        Binary("b"),
    ]
)
OPTIONS = {"c": ["p", "q", "r"], "o": ["lo", "mid", "hi", "top"], "b": ["false", "true"]}


def atom(rng: np.random.Generator) -> str:
    if rng.random() < 0.5:
        name = str(rng.choice(list(OPTIONS)))
        sign = str(rng.choice(["=", "!="] if name == "c" else ["=", "!=", ">=", "<"]))
        return f"{name} {sign} {rng.choice(OPTIONS[name])}"
    a, b, d = rng.integers(-3, 4), rng.integers(-2, 3), rng.integers(-12, 13)
    return f"{a} * i + {b} * j + 2 * [c = q] {rng.choice(['>=', '<=', '=', '!=', '>'])} {d}"


def sentence(rng: np.random.Generator) -> str:
    match rng.integers(10):
        case 0:
            return f"at most {rng.integers(1, 4)} changes"
        case 1:
            return str(rng.choice(["c changes only with o", "i changes only with b", "b changes only with j"]))
        case 2:
            return str(rng.choice(["i changes in steps of 2", "j changes in steps of 8", "i changes in steps of 3"]))
        case 3:
            return str(rng.choice(["i changes by at most 3", "o changes by at most 1", "j changes by at most 50 %"]))
        case 4:
            return f"if {atom(rng)} then {atom(rng)}"
        case 5:
            return f"not ({atom(rng)} and {atom(rng)})"
        case 6:
            return f"{atom(rng)} or {atom(rng)} or {atom(rng)}"
        case 7:
            return f"i in ({', '.join(map(str, rng.integers(-3, 6, 3)))})"
        case _:
            return atom(rng)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("seed", range(4))
def test_search_and_enumerator_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = {Nearest: 0, NoneExists: 0}
    for _ in range(50):
        width = len(SCHEMA.columns)
        layers = [(rng.normal(size=(6, width)), rng.normal(size=6)), (rng.normal(size=(1, 6)), rng.normal(size=1))]
        explainer = Explainer(network_model(Network.of(layers), SCHEMA, classes=("no", "yes")))
        row = SCHEMA.row(SCHEMA.sample(1, rng)[0])
        sentences = [sentence(rng) for _ in range(rng.integers(1, 4))]
        norm = str(rng.choice(["l0", "l1", "l2", "linf"]))
        try:
            found, expected = (
                explainer.using(method, reasons=False).explain(row, distance=norm, constraints=sentences)
                for method in (None, Enumerate())
            )
        except QuestionError as error:
            raise AssertionError(sentences) from error
        assert type(found) is type(expected), (sentences, row, found, expected)
        assert found.upper == pytest.approx(expected.upper, rel=1e-6), (sentences, row, found, expected)
        seen[type(found)] += 1
    assert min(seen.values()) >= 10, seen
