"""Diverse sets of integers and options against a plain loop in Fractions, where rows lie exactly at `apart`.

The loop shares nothing with the code that it judges: it lists every row, decides by its own sums, and measures by its
own distance. Which of equally near rows comes first is the method's choice, so it follows the set, answer by answer,
and asks what a greedy choice could have been given those before. Run as a program for a long run:

    python tests/oracles/test_apart.py SEEDS [FIRST]
"""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ifonly import Binary, Categorical, Distance, Explainer, Integer, Nearest, Network, NoneExists, Ordinal, Schema
from ifonly.problem.diversity import Diversity
from ifonly.schema import Feature

ROUND = ["0.1", "0.05", "0.25", "0.2", "0.3", "0.15", "0.5", "0.01", "0.125", "0.4", "0.6"]
K = 4


def values(feature: Feature) -> list[int]:
    if isinstance(feature, Integer):
        return list(range(int(feature.lower), int(feature.upper) + 1, feature.step))
    return list(range(len(feature.options)))


def share(feature: Feature, norm: str, one: int, other: int) -> Fraction:
    """What the feature adds to n times the distance, by the definition."""
    if one == other:
        return Fraction(0)
    if norm == "l0" or feature.kind in ("binary", "categorical"):
        return Fraction(1)
    if feature.kind == "ordinal":
        return Fraction(abs(one - other), len(feature.options))
    return Fraction(abs(one - other), int(feature.upper - feature.lower) or 1)


def measured(features: list[Feature], norm: str, weights: list[Fraction], one: Any, other: Any) -> Fraction:
    parts = [w * share(f, norm, a, b) for f, w, a, b in zip(features, weights, one, other, strict=True)]
    return (max(parts) if norm == "linf" else sum(parts, Fraction(0))) / len(features)


class Case:
    """A random finite question, with scores that are never near the margin."""

    def __init__(self, seed: int, kind: str) -> None:
        self.rng = rng = np.random.default_rng([seed, 11])
        self.features = [self._feature(i) for i in range(int(rng.integers(1, 4)))]
        self.norm = str(rng.choice(["l1", "l1", "l1", "l0", "linf"]))
        texts = [str(rng.choice(["1", "1", "0.7", "0.1", "2.5"])) if rng.random() < 0.3 else "1" for _ in self.features]
        self.weights = [Fraction(text) for text in texts]
        self.coefficients = rng.integers(-3, 4, len(self.features)).tolist()
        self.rows = list(itertools.product(*map(values, self.features)))
        self.scores = [sum(c * v for c, v in zip(self.coefficients, row, strict=True)) for row in self.rows]
        self.threshold = int(rng.choice(self.scores))
        self.before = self.rows[int(rng.integers(len(self.rows)))]
        self.good = [row for row, score in zip(self.rows, self.scores, strict=True) if score >= self.threshold]
        self.differ = "values" if kind == "values" else "distance"
        if kind == "lattice":
            one, other = (self.rows[int(i)] for i in rng.integers(0, len(self.rows), 2))
            self.apart = float(self.between(one, other)) or 0.1
        else:
            self.apart = float(rng.choice(ROUND))
        named = {f.name: float(t) for f, t in zip(self.features, texts, strict=True) if t != "1"}
        self.distance = Distance(self.norm, weights=named)
        schema = Schema(self.features)
        weight = np.concatenate([self._columns(f, c) for f, c in zip(self.features, self.coefficients, strict=True)])
        self.explainer = Explainer(
            Network.of([(weight[None, :], np.array([0.5 - self.threshold]))]), schema=schema, classes=["no", "yes"]
        )

    def _feature(self, i: int) -> Feature:
        rng, name = self.rng, f"f{i}"
        match str(rng.choice(["integer", "integer", "integer", "binary", "ordinal", "categorical"])):
            case "integer":
                low, step = int(rng.integers(-5, 6)), int(rng.choice([1, 1, 1, 2, 5]))
                return Integer(name, low, low + step * int(rng.integers(1, 21)), step)
            case "binary":
                return Binary(name)
            case "ordinal":
                return Ordinal(name, list("abcdefg")[: int(rng.integers(2, 8))], encoding="code")
            case _:
                return Categorical(name, list("abcde")[: int(rng.integers(2, 6))], encoding="code")

    def _columns(self, feature: Feature, coefficient: int) -> np.ndarray:
        return np.array([float(coefficient)])

    def between(self, one: Any, other: Any) -> Fraction:
        return measured(self.features, self.norm, self.weights, one, other)

    def differs(self, one: Any, other: Any) -> bool:
        if self.differ == "values":
            return one != other
        return float(self.between(one, other)) >= self.apart

    def user_row(self, row: Any) -> dict[str, Any]:
        return {f.name: v if isinstance(f, Integer) else f.options[v] for f, v in zip(self.features, row, strict=True)}

    def read(self, row: dict[str, Any]) -> tuple[int, ...]:
        return tuple(
            int(row[f.name]) if isinstance(f, Integer) else f.options.index(row[f.name]) for f in self.features
        )

    def complaint(self) -> str:
        """What is wrong with the set; empty when nothing is."""
        told = self.explainer.explain_diverse(
            self.user_row(self.before),
            Diversity(K, apart=self.apart, differ=self.differ),
            target="yes",
            distance=self.distance,
        )
        left = [(self.between(self.before, row), row) for row in self.good]
        for i, answer in enumerate(told):
            if not isinstance(answer, Nearest):
                return f"answer {i} is {answer.status}: {answer.note}"
            row = self.read(answer.counterfactual)
            if row not in {r for _, r in left}:
                return f"answer {i}, {row}, is not a row that is left"
            nearest = min(d for d, _ in left)
            if float(self.between(self.before, row) - nearest) > 1e-6:
                return f"answer {i}, {row}, is at {float(self.between(self.before, row))}, not {float(nearest)}"
            left = [(d, r) for d, r in left if self.differs(r, row)]
        if len(told) < K and not isinstance(told.ended, NoneExists):
            return f"ended by {told.ended}"
        if len(told) < K and left:
            return f"ended after {len(told)} with {len(left)} rows left"
        return ""

    def __str__(self) -> str:
        asked = f"{self.norm} {self.weights} apart {self.apart!r} differ {self.differ}"
        return f"{self.features} {self.coefficients} >= {self.threshold} from {self.before}, {asked}"


def run(seeds: range, kind: str) -> list[str]:
    wrong = []
    for seed in seeds:
        case = Case(seed, kind)
        complaint = case.complaint()
        if complaint:
            wrong.append(f"{kind} {seed}: {complaint}: {case}")
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("kind", ["round", "lattice", "values"])
def test_sets_lose_no_row(kind: str) -> None:
    assert run(range(150), kind) == []


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for which in ("round", "lattice", "values"):
        found = run(range(first, first + count), which)
        print(f"{which}: {len(found)} of {count} wrong", *found[:5], sep="\n  ", flush=True)
