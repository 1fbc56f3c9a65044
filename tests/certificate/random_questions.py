"""Random questions of every kind that a certificate states, each certified, checked, and compared with what is true.

    IFONLY_CERTIFICATES=1000 python -m pytest -n 0 -q -s tests/certificate/test_random_questions.py

prints how many are VALID, how many are within 1e-6 of the answer, and why the others are not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ifonly import IfonlyError, Limits, check
from ifonly.certifying.certifier import Certifier
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import Enumerate, Search
from ifonly.model import Network, network_model
from ifonly.model.smooth import SmoothNetwork
from ifonly.model.smooth.activations import Activation, SideBySide
from ifonly.problem import Question
from ifonly.results.claim import Claim
from ifonly.tolerances import DEFAULT

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "oracles"), str(Path(__file__).resolve().parents[2])]

from random_problems import random_problem  # noqa: E402
from random_rules import random_ruled_problem  # noqa: E402
from random_trees import random_tree_problem  # noqa: E402

LIMITS = Limits(seconds=60.0)


def other_activation(rng: np.random.Generator) -> Activation:
    """One at random that is neither tanh nor the logistic function."""
    name = str(rng.choice(["softplus", "gelu", "gelu_tanh", "silu", "elu", "power"]))
    alpha = {"elu": rng.choice([1.0, 0.5, 0.0]), "power": rng.choice([-1.5, 0.0, 0.5, 1.25, 2.0, 3.0])}.get(name, 1.0)
    return Activation(name, float(alpha))  # type: ignore[arg-type]


def side_by_side(one: Activation, width: int, rng: np.random.Generator) -> Activation | SideBySide:
    """The activation of a layer, or, sometimes, of some of its neurons, beside another."""
    if width < 2 or rng.random() < 0.6:
        return one
    first = int(rng.integers(1, width))
    other = Activation(str(rng.choice(["relu", "tanh", "sigmoid"]))) if rng.random() < 0.5 else other_activation(rng)  # type: ignore[arg-type]
    return SideBySide(((one, first), (other, width - first)))


def other_smooth(asked: tuple[Question, Any], seed: int) -> tuple[Question, Any]:
    """The question to the same layers with any smooth activations in between, of a layer sometimes several."""
    network, rng = asked[0].model.function.as_network(), np.random.default_rng(seed)
    assert network is not None
    hidden = network.layers[:-1]
    return smooth(asked, seed, [side_by_side(other_activation(rng), len(one.bias), rng) for one in hidden])


def smooth(asked: tuple[Question, Any], seed: int, chosen: Any = ()) -> tuple[Question, Any]:
    """The question to the same layers with smooth activations (and ReLUs) in between, or with the `chosen` ones."""
    question, points = asked
    model = question.model
    network, rng = model.function.as_network(), np.random.default_rng(seed)
    assert network is not None
    if len(network.layers) == 1:
        return asked
    names: list[Any] = [*rng.choice(["tanh", "sigmoid", "relu"], size=len(network.layers) - 2, p=[0.45, 0.45, 0.1])]
    names.insert(0, ("tanh", "sigmoid")[seed % 2])
    activations = chosen or [Activation(name) for name in names]
    layers = [(layer.weight, layer.bias) for layer in network.layers]
    scores = SmoothNetwork(network, activations).scores(model.schema.encode(points[:1]))[0]
    near = rng.normal(scale=0.2, size=len(scores)) * np.abs(layers[-1][0]).max(axis=1)  # not far from the threshold
    layers[-1] = layers[-1][0], layers[-1][1] - scores + near
    curved = SmoothNetwork(Network.of(layers), activations)
    made = network_model(curved, model.schema, classes=model.classes, regression=not model.classes)  # type: ignore[arg-type]
    return replace(question, model=made), points


KINDS: dict[str, Callable[[int], tuple[Question, Any]]] = {
    "plain": random_problem,
    "rules": random_ruled_problem,
    "finite rules": lambda seed: random_ruled_problem(seed, finite=True),
    "rules on steps": lambda seed: random_ruled_problem(seed, steps=True),
    "trees": random_tree_problem,
    "finite trees": lambda seed: random_tree_problem(seed, finite=True),
    "trees under rules": lambda seed: random_tree_problem(seed, finite=True, ruled=True),
    "finite steps": lambda seed: random_ruled_problem(seed, finite=True, steps=True),
    "smooth": lambda seed: smooth(random_problem(seed), seed),
    "finite smooth": lambda seed: smooth(random_problem(seed, finite=True), seed),
    "smooth under rules": lambda seed: smooth(random_ruled_problem(seed), seed),
    "other smooth": lambda seed: other_smooth(random_problem(seed), seed),
    "finite other smooth": lambda seed: other_smooth(random_problem(seed, finite=True), seed),
    "other smooth under rules": lambda seed: other_smooth(random_ruled_problem(seed), seed),
}


def verdict(kind: str, seed: int) -> str:
    """ "ok", "refused: ..." (the search or the certificate says why), or what is wrong."""
    try:
        question, points = KINDS[kind](seed)
    except IfonlyError as error:  # a rule at random may be none that can be asked
        return f"refused: not drawn, {_short(error)}"
    point = points[0]
    try:
        claim = Search().prepare(question, DEFAULT).solve(point[None, :], LIMITS)[0]
    except IfonlyError as error:
        return f"refused: the search, {_short(error)}"
    try:
        certificate = Certifier(question, DEFAULT).proven(point, LIMITS)
    except UnsupportedQuestion as error:
        return f"refused: {_short(error)}"
    checked = check(certificate)
    if not checked.valid:
        return f"WRONG: {checked.verdict}, {checked.failure}"
    truth = _truth(question, point)
    if truth is not None and (wrong := _contradicts(checked, _distance(question, point, truth.point))):
        return "ok" if _tie(question, certificate.data, truth.point) else f"WRONG: {wrong}"
    close = claim.stop is not None or _close(checked, question, point, claim)
    if not close and not _tie(question, certificate.data, claim.point):
        return f"far: proven {checked.lower!r} to {checked.upper!r}, the search has {claim.lower!r}"
    return "ok"


def _truth(question: Question, point: Any) -> Claim | None:
    """The nearest row, by enumeration; None where the space is not finite."""
    try:
        claim = Enumerate().prepare(question, DEFAULT).solve(point[None, :], LIMITS)[0]
    except IfonlyError:
        return None
    return None if claim.stop is not None else claim


def _distance(question: Question, point: Any, row: Any) -> float:
    return float("inf") if row is None else float(question.distance.between(question.schema, point, row))


def _tie(question: Question, data: dict[str, Any], row: Any) -> bool:
    """Is the witness, or the row that is true, on the margin but for rounding? Floating point and real arithmetic may
    then differ."""
    rows = [] if row is None else [row]
    rows += [] if data["witness"] is None else [np.array([float.fromhex(v) for v in data["witness"]])]
    c, d = question.conditions
    for one in rows:
        values = c @ question.model.scores(one[None, :])[0] - d - question.margins
        if (np.abs(values) <= 1e-9 * (1.0 + np.abs(d))).any():
            return True
    return False


def _contradicts(checked: Any, truth: float) -> str:
    if checked.lower > truth * (1 + 1e-9) + 1e-12:
        return f"at least {checked.lower!r} is proven, but a row is at {truth!r}"
    if checked.upper is not None and checked.upper < truth * (1 - 1e-6) - 1e-9:
        return f"a row within {checked.upper!r} is named, but the nearest is at {truth!r}"
    return ""


def _close(checked: Any, question: Question, point: Any, claim: Any) -> bool:
    if claim.point is None:
        return bool(checked.lower == np.inf)
    distance = _distance(question, point, claim.point)
    return bool(checked.lower >= distance - 1e-6 * max(distance, 1.0))


def _short(error: Exception) -> str:
    return str(error).split("\n")[0][:160]
