"""The seam between a model and the methods: a second, tiny kind of model, and a third that is a network in disguise."""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Binary,
    Categorical,
    Distance,
    Explainer,
    Fixed,
    Integer,
    Model,
    Nearest,
    Network,
    NoneExists,
    Schema,
    certify,
)
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import Enumerate
from ifonly.model import Kind


@dataclass(frozen=True, eq=False)
class Parity(Kind):
    """1 for rows whose columns add up to an odd number, -1 for the others: nothing piecewise linear about it."""

    columns: int
    name: str = "a parity"
    outputs: int = 1

    @property
    def inputs(self) -> int:
        return self.columns

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"parity of {self.inputs}".encode()).hexdigest()

    def scores(self, x: Any) -> Any:
        return np.where(np.asarray(x).sum(axis=1) % 2 == 1, 1.0, -1.0)[:, None]

    def error(self, lower: Any, upper: Any, precision: Any, exact: Any) -> Any:
        return np.zeros((len(lower), 1))


@dataclass(frozen=True, eq=False)
class Scorecard(Parity):
    """Points that add up: a kind of its own that knows the network it amounts to."""

    points: tuple[float, ...] = ()
    name: str = "a scorecard"

    @property
    def network(self) -> Network:
        return Network.of([([list(self.points)], [-1.0])])

    def scores(self, x: Any) -> Any:
        return np.asarray(x) @ np.array(self.points)[:, None] - 1.0

    def error(self, lower: Any, upper: Any, precision: Any, exact: Any) -> Any:
        return self.network.error(lower, upper, precision, exact)

    def as_network(self) -> Any:
        return self.network


SCHEMA = Schema([Integer("n", 0, 9), Binary("b"), Categorical("c", ["x", "y", "z"], encoding="onehot")])


def model(function: Any, schema: Schema = SCHEMA) -> Model:
    return Model(
        function=function,
        schema=schema,
        original=lambda points: function.scores(schema.encode(points)),
        classes=("even", "odd"),
        source=function.name,
    )


def test_they_are_kinds() -> None:
    assert isinstance(Parity(5), Kind)
    assert isinstance(Network.of([([[1.0]], [0.0])]), Kind)
    assert repr(model(Parity(5))) == "<Model: a parity, 3 features, 2 classes, float64>"


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_kind_of_its_own_is_answered_by_looking_at_every_row(norm: str) -> None:
    parity = Parity(len(SCHEMA.columns))
    explainer = Explainer(model(parity)).using(Enumerate())
    every = np.array([[n, b, c] for n, b, c in itertools.product(range(10), range(2), range(3))], dtype=float)
    decided = parity.scores(SCHEMA.encode(every))[:, 0] > 0
    for point in every:
        row = SCHEMA.row(point)
        answer = explainer.explain(row, distance=norm)
        odd = bool(parity.scores(SCHEMA.encode(point[None, :]))[0, 0] > 0)
        distances = Distance(norm).between(SCHEMA, point, every[decided != odd])
        assert isinstance(answer, Nearest)
        assert answer.upper == pytest.approx(distances.min(), abs=1e-12)
        assert answer.decision_after != answer.decision_before
    stuck = explainer.explain(SCHEMA.row(every[0]), constraints=[Fixed("n"), Fixed("b")])
    assert isinstance(stuck, NoneExists)
    assert stuck.reasons is not None and len(stuck.reasons.blame) == 2
    assert len(explainer.explain_diverse(SCHEMA.row(every[0]), 3)) == 3


def test_a_method_that_needs_a_network_names_one_that_does_not() -> None:
    explainer = Explainer(model(Parity(len(SCHEMA.columns))))
    with pytest.raises(UnsupportedQuestion) as refused:
        explainer.explain(SCHEMA.row(np.zeros(3)))
    assert str(refused.value) == (
        "The method 'search' needs a piecewise-linear network, but this model is a parity; use enumerate."
    )
    with pytest.raises(UnsupportedQuestion, match="cannot state a parity"):
        certify(explainer, SCHEMA.row(np.zeros(3)))


def test_a_kind_that_amounts_to_a_network_is_searched() -> None:
    card = Scorecard(len(SCHEMA.columns), points=(0.25, 1.5, -2.0, 0.0, 0.75))
    explainer = Explainer(model(card))
    for row in itertools.product(range(0, 10, 3), (False, True), "xyz"):
        found, looked = (explainer.using(how).explain(list(row)) for how in (None, Enumerate()))
        assert type(found) is type(looked)
        assert found.upper == pytest.approx(looked.upper, abs=1e-9) or math.isinf(looked.upper)
