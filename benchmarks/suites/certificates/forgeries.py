"""Certificates altered on purpose: layers added, features reordered, weights scaled, trees cut, claims moved.

`forgeries(seed)` yields altered certificates without end, each with a good stamp; `judge` says whether what one of them
states is true. It shares nothing with the checker: it tries every row of a finite space, in exact integers.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

import ifonly
from benchmarks.suites.certificates import forging
from benchmarks.terminal import TESTS
from ifonly import datasets
from ifonly.certificate.format import Certificate, canonical, stamp
from ifonly.certifying.certifier import Certifier
from ifonly.problem import Question
from ifonly.schema import Choice, Integer, Schema
from ifonly.schema.io import schema_from_json

MOST_ROWS = 1_000
"""Of a question that is altered: all of them are tried."""
SECONDS = 20.0
"""For each check."""


@dataclass(frozen=True, slots=True)
class Forgery:
    """What was done, and the altered certificate."""

    kind: str
    certificate: Certificate


# ---------------------------------------------------------------------- certificates to alter


@cache
def compas() -> tuple[Certificate, ...]:
    """The shipped network, 936 rows: nearest rows under each distance, and a question without an answer."""
    data, model = datasets.load("compas", rules=False), datasets.network("compas", rules=False)
    explainer = ifonly.Explainer(model)
    found = []
    for i, norm in enumerate(("l0", "l1", "l2", "linf")):
        fixed = [ifonly.Fixed("Sex"), ifonly.OnlyUp("AgeGroup")][: i % 3]
        found.append(ifonly.certify(explainer, data.row(i), distance=norm, constraints=fixed))
    frozen = [ifonly.Fixed(name) for name in model.schema.names[:4]]
    found.append(ifonly.certify(explainer, data.row(0), distance="l1", constraints=frozen))
    return tuple(found)


@cache
def small(count: int = 60) -> tuple[Certificate, ...]:
    """Random questions with at most `MOST_ROWS` rows."""
    sys.path.insert(0, str(TESTS))
    from oracles.random_problems import random_problem

    found: list[Certificate] = []
    for seed in itertools.count():
        question, points = random_problem(seed, finite=True)
        if len(found) == count:
            return tuple(found)
        if rows_of(question.schema) <= MOST_ROWS:
            found.append(_certified(question, points[0]))
    raise AssertionError


def _certified(question: Question, point: Any) -> Certificate:
    return Certifier(question, ifonly.methods.Tolerances()).proven(point, ifonly.Limits())


# ---------------------------------------------------------------------- altering


def forgeries(seed: int) -> Iterator[Forgery]:
    """Altered certificates, with good stamps, without end."""
    rng = random.Random(seed)
    pool = [*compas() * 3, *small()]
    while True:
        data, other = (copy.deepcopy(rng.choice(pool).data) for _ in range(2))
        kinds = [rng.choice(list(forging.QUESTION)) for _ in range(rng.choice([0, 1, 1, 2]))]
        kinds += [rng.choice(list(forging.ANSWER)) for _ in range(rng.choice([0, 1, 1, 2]) if kinds else 1)]
        if rng.random() < 0.2:
            kinds.append("no row at all")
        for kind in kinds:
            ways: dict[str, Callable[..., None]] = {**forging.QUESTION, **forging.ANSWER}
            try:
                ways[kind](data, rng, other)
            except (IndexError, KeyError, TypeError, ValueError, OverflowError):  # it does not fit this certificate
                continue
        data.pop("sha256", None)
        yield Forgery(" + ".join(kinds), Certificate({**data, "sha256": stamp(data)}))


# ---------------------------------------------------------------------- judging


def judge(certificate: Certificate) -> bool:
    """Is what the certificate states true? Every row of the space is tried, in exact integers and fractions."""
    data = certificate.data
    lower, upper = (
        None if v is None else Fraction(float.fromhex(v)) for v in (data["claim"][k] for k in ("lower", "upper"))
    )
    costs = favourable(canonical(data["question"]))
    power = 2 if data["question"]["distance"]["norm"] == "l2" else 1
    if costs and (lower is None or min(costs.values()) < lower**power):
        return False
    if data["witness"] is None:
        return upper is None
    witness = tuple(float.fromhex(v) for v in data["witness"])
    return upper is not None and upper >= 0 and witness in costs and costs[witness] <= upper**power


_judged: dict[bytes, dict[tuple[float, ...], Fraction]] = {}


def favourable(question: bytes) -> dict[tuple[float, ...], Fraction]:
    """The allowed rows that are decided as asked, with their costs (l2: squared)."""
    if question not in _judged:
        if len(_judged) > 500:
            _judged.clear()
        _judged[question] = dict(_favourable(question))
    return _judged[question]


def _favourable(question: bytes) -> Iterator[tuple[tuple[float, ...], Fraction]]:
    import json

    asked = json.loads(question)
    schema = schema_from_json(asked["schema"])
    factual = [float.fromhex(v) for v in asked["factual"]]
    layers = [_exact(layer) for layer in asked["model"]["layers"]]
    for point in itertools.product(*_values(schema, factual, asked["constraints"])):
        if _decided(schema, layers, point, asked["target"]):
            yield point, _cost(schema, factual, point, asked["distance"])


def rows_of(schema: Schema) -> int:
    return math.prod(
        len(_all(f)) if isinstance(f, Choice | Integer) or f.lower == f.upper else 10**9 for f in schema.features
    )


def _all(feature: Any) -> list[float]:
    if isinstance(feature, Choice):
        return [float(i) for i in range(len(feature.options))]
    step = feature.step if isinstance(feature, Integer) else 1
    assert isinstance(feature, Integer) or feature.lower == feature.upper, "the space is not finite"
    return [feature.lower + step * k for k in range(int((feature.upper - feature.lower) // step) + 1)]


def _values(schema: Schema, factual: list[float], constraints: list[Any]) -> list[list[float]]:
    values = [_all(feature) for feature in schema.features]
    for constraint in constraints:
        g = schema.index(constraint["feature"])
        match constraint["kind"]:
            case "fixed":
                keep = lambda v, g=g: v == factual[g]  # noqa: E731
            case "only_up":
                keep = lambda v, g=g: v >= factual[g]  # noqa: E731
            case "only_down":
                keep = lambda v, g=g: v <= factual[g]  # noqa: E731
            case "range":
                low, high = (
                    (None if v is None else float.fromhex(v)) for v in (constraint["lower"], constraint["upper"])
                )
                keep = lambda v, low=low, high=high: (low is None or v >= low) and (high is None or v <= high)  # noqa: E731
            case _:
                keep = lambda v, options=constraint["options"]: v in options  # noqa: E731
        values[g] = [v for v in values[g] if keep(v)]
    return values


def _exact(layer: dict[str, Any]) -> tuple[list[list[int]], list[int], int]:
    """Weights and biases as integers, in units of 2^-bits."""
    rows = [[Fraction(float.fromhex(v)) for v in row] for row in [*layer["weight"], layer["bias"]]]
    bits = max(v.denominator.bit_length() - 1 for row in rows for v in row)
    whole = [[int(v * 2**bits) for v in row] for row in rows]
    return whole[:-1], whole[-1], bits


def _decided(schema: Schema, layers: list[Any], point: tuple[float, ...], target: dict[str, Any]) -> bool:
    encoded = [Fraction(v) for v in schema.encode(np.array(point)).tolist()]
    unit = max(v.denominator.bit_length() - 1 for v in encoded)
    h = [int(v * 2**unit) for v in encoded]
    for k, (weight, bias, bits) in enumerate(layers):
        h = [sum(w * v for w, v in zip(row, h, strict=True)) + (b << unit) for row, b in zip(weight, bias, strict=True)]
        unit += bits
        if k < len(layers) - 1:
            h = [max(v, 0) for v in h]
    margin = Fraction(float.fromhex(target["margin"])) * 2**unit
    if "class" in target:
        resolved = target["class"]
        if len(h) == 1:
            return (h[0] if resolved == 1 else -h[0]) >= margin
        return all(h[resolved] - v >= margin for j, v in enumerate(h) if j != resolved)
    score = h[target["output"]]
    low, high = (
        (None if v is None else Fraction(float.fromhex(v)) * 2**unit) for v in (target["at_least"], target["at_most"])
    )
    return (low is None or score - low >= margin) and (high is None or high - score >= margin)


def _cost(schema: Schema, factual: list[float], point: tuple[float, ...], distance: dict[str, Any]) -> Fraction:
    jump, rate = (Fraction(float.fromhex(distance[k])) for k in ("jump", "rate"))
    parts = []
    for feature, before, after, w, v in zip(
        schema.features, factual, point, distance["weights"], distance["scales"], strict=True
    ):
        change = abs(Fraction(after) - Fraction(before))
        if isinstance(feature, Choice) and feature.kind != "ordinal":
            change = Fraction(change != 0)
        parts.append(Fraction(float.fromhex(w)) * (jump * (change != 0) + rate * change / Fraction(float.fromhex(v))))
    if distance["norm"] == "l2":
        return sum((c * c for c in parts), Fraction(0)) / len(parts)
    return (max(parts) if distance["norm"] == "linf" else sum(parts, Fraction(0))) / len(parts)


# ---------------------------------------------------------------------- the run


def run(count: int, seed: int, console: Console) -> int:
    """Check so many forgeries; print the counts by kind. Returns how many are VALID though false: none may be."""
    counts: Counter[tuple[str, str]] = Counter()
    false = 0
    with Progress(console=console) as bar:
        task = bar.add_task("forgeries", total=count)
        for forgery in itertools.islice(forgeries(seed), count):
            checked = ifonly.check(forgery.certificate, seconds=SECONDS)
            became = "refused" if checked.verdict == "INVALID" else checked.verdict.lower()
            if checked.valid:
                became = "true" if judge(forgery.certificate) else "FALSE"
            if became == "FALSE":
                false += 1
                forgery.certificate.save(f"false-{seed}-{false}.cert")
            for kind in forgery.kind.split(" + "):
                counts[kind, became] += 1
            counts["all", became] += 1
            bar.update(task, advance=1)
    outcomes = sorted({became for _, became in counts})
    for kind in sorted({kind for kind, _ in counts}):
        console.print(f"{kind:24}", *(f"{counts[kind, became]:7,} {became}" for became in outcomes))
    return false
