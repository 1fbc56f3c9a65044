"""Certificates of searches that probe ReLUs: bounds by multipliers, shown in exact arithmetic."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certificate.javascript import agree
from ifonly import ClassTarget, Distance, Explainer, Integer, Limits, Network, Real, Schema, certify, check
from ifonly.certificate.check.checker import radius_of
from ifonly.certificate.check.statement import read_statement
from ifonly.certificate.check.tree_walk import TreeWalk
from ifonly.certificate.format import Certificate, stamp
from ifonly.certifying.certifier import Certifier
from ifonly.methods import Search
from ifonly.model import Model, network_model
from ifonly.tolerances import DEFAULT
from oracles.random_problems import random_problem


def make(seed: int, sizes: tuple[int, ...], *, integers: int = 0) -> tuple[Model, np.ndarray]:
    """A random network over numbers in [0, 1], and a row that it does not decide as class 1."""
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(b, a)) / np.sqrt(a) * 2.0, rng.normal(size=b) / 2.0) for a, b in pairwise(sizes)]
    features = [Integer(f"n{j}", 0, 9) for j in range(integers)]
    features += [Real(f"x{j}", 0.0, 1.0) for j in range(sizes[0] - integers)]
    model = network_model(Network.of(layers), Schema(features))
    rows = np.hstack([rng.integers(0, 10, (400, integers)), rng.random((400, sizes[0] - integers))])
    scores = model.scores(rows)
    wanted = 1 if sizes[-1] > 1 else 0
    margin = scores[:, 0] if sizes[-1] == 1 else scores[:, wanted] - np.delete(scores, wanted, axis=1).max(axis=1)
    return model, rows[np.argmin(margin)]


def certified(seed: int, sizes: tuple[int, ...], norm: Any, integers: int = 0) -> tuple[Certificate, Any]:
    model, row = make(seed, sizes, integers=integers)
    explainer = Explainer(model).using(Search(probing="always", table_rows=0))
    point = dict(zip(model.schema.names, row.tolist(), strict=True))
    target = ClassTarget(model.classes[1])
    answer = explainer.explain(point, target=target, distance=Distance(norm))
    return certify(explainer, point, target=target, distance=Distance(norm)), answer


CASES = [(seed, sizes, norm, integers)
         for seed, (sizes, norm, integers) in enumerate([
             ((9, 8, 8, 1), "l1", 0), ((9, 8, 8, 1), "l2", 0), ((9, 8, 8, 1), "linf", 0), ((9, 6, 6, 6, 1), "l1", 0),
             ((9, 8, 8, 3), "l1", 0), ((9, 8, 8, 1), {"l0": 0.2, "l1": 0.8}, 0), ((9, 8, 8, 1), "l1", 3), ((12, 12, 12, 1), "l1", 0),
         ])]  # fmt: skip


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("seed", "sizes", "norm", "integers"), CASES)
def test_certificates_of_probed_searches_are_valid(seed: int, sizes: tuple[int, ...], norm: Any, integers: int) -> None:
    certificate, answer = certified(seed, sizes, norm, integers)
    checked = check(certificate)
    assert checked.valid, checked.failure
    if answer.distance is None:
        assert checked.upper is None
    else:
        assert checked.upper == pytest.approx(answer.distance, rel=1e-6)
        assert checked.lower >= checked.upper * (1.0 - 2e-6)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("seed", range(24))
def test_random_problems_probed_from_the_first_node(seed: int) -> None:
    """All kinds of features, distances and conditions; finite spaces in turns."""
    question, points = random_problem(seed, finite=seed % 2 == 0)
    solver = Search(records=True, table_rows=0, probing="always").prepare(question)
    claim = solver.solve(points[:1], Limits())[0]
    checked = check(Certifier(question, DEFAULT).certificate(points[0], claim))
    assert checked.valid, checked.failure
    least = claim.lower if claim.lower_any_rounding is None else claim.lower_any_rounding  # rows on the margin count
    assert checked.lower >= least * (1.0 - 1e-6) - 1e-9


def steps_of(certificate: Certificate) -> list[tuple[int, int]]:
    """(node, bound) of each bound that the tree shows."""
    tree = certificate.data["proof"]["tree"]
    return [(n, k) for n, node in enumerate(tree) if isinstance(node, dict) for k in range(len(node.get("bounds", ())))]


@pytest.mark.long
def test_bounds_by_multipliers_are_used_and_cannot_be_tightened() -> None:
    """A tree that shows bounds; with any of them set to half of itself, or multipliers of none, it is refused."""
    certificate, _ = certified(7, (12, 12, 12, 1), "l1")
    steps = steps_of(certificate)
    assert steps
    refused = 0
    for node, k in steps[:: max(len(steps) // 20, 1)]:
        data = copy.deepcopy(certificate.data)
        entry = data["proof"]["tree"][node]["bounds"][k]
        entry[4] = [[0] * len(entry[4][0]), [0] * len(entry[4][1])]
        assert not check(stamped(data)).valid
        entry[4] = certificate.data["proof"]["tree"][node]["bounds"][k][4]
        entry[3] = (0.5 * float.fromhex(entry[3])).hex()
        refused += not check(stamped(data)).valid
    assert refused


def stamped(data: dict[str, Any]) -> Certificate:
    data = {key: value for key, value in data.items() if key != "sha256"}
    return Certificate({**data, "sha256": stamp(data)})


def test_no_favourable_row_in_the_ball_breaks_a_bound_of_the_whole() -> None:
    """The bounds that are shown before the first split, against rows drawn in the ball."""
    certificate, _ = certified(7, (12, 12, 12, 1), "l1")
    data = copy.deepcopy(certificate.data)
    data["claim"]["lower"] = (1.5 * float.fromhex(data["claim"]["lower"])).hex()  # so that some rows are inside
    statement = read_statement(data["question"], data["proof"]["grid"], data["proof"]["cost_grid"])
    walk = TreeWalk(statement, radius_of(statement, float.fromhex(data["claim"]["lower"])))
    model, row = make(7, (12, 12, 12, 1))
    rng = np.random.default_rng(0)
    reach = float.fromhex(data["claim"]["lower"])
    change = np.array([float.fromhex(v) for v in data["witness"]]) - row
    rows = row + change * rng.uniform(1.0, 1.3, (4_000, 1)) + rng.normal(scale=0.02, size=(4_000, 12))
    rows = np.clip(rows, 0.0, 1.0)
    rows = rows[np.abs(rows - row).mean(axis=1) < reach]
    rows = rows[model.scores(rows)[:, 0] >= 0.0]
    assert len(rows)
    (weight, bias), *_ = [(layer.weight, layer.bias) for layer in model.network.layers]
    z = rows @ weight.T + bias
    low, high = (np.array([pair[end] for pair in walk.known[0]], dtype=float) / 2**statement.grid for end in range(2))
    assert (z >= low - 1e-12).all()
    assert (z <= high + 1e-12).all()


def test_the_checker_in_javascript_says_the_same(tmp_path: Path) -> None:
    files = []
    for case in CASES[:4]:
        certificate, _ = certified(*case)
        data = copy.deepcopy(certificate.data)
        node, k = steps_of(certificate)[0]
        entry = data["proof"]["tree"][node]["bounds"][k]
        entry[4] = [[0] * len(entry[4][0]), [0] * len(entry[4][1])]
        files += [certificate.content, stamped(data).content]
    assert agree(files, tmp_path) == ["VALID", "INVALID"] * 4


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("change", [
    lambda entry: entry.__setitem__(0, 9), lambda entry: entry.__setitem__(1, 99), lambda entry: entry.__setitem__(2, 0),
    lambda entry: entry.__setitem__(3, "0x1p0"), lambda entry: entry[4][0].__setitem__(0, -1), lambda entry: entry.pop(),
    lambda entry: entry[4][1].pop(), lambda entry: entry[4][1].__setitem__(0, 2**63), lambda entry: entry[4].append([]),
])  # fmt: skip
def test_bounds_of_another_form_are_refused(change: Any) -> None:
    certificate, _ = certified(7, (12, 12, 12, 1), "l1")
    data = copy.deepcopy(certificate.data)
    node, k = steps_of(certificate)[0]
    change(data["proof"]["tree"][node]["bounds"][k])
    assert not check(stamped(data)).valid


def test_a_network_without_hidden_layers_has_no_multipliers() -> None:
    """Its conditions are planes already; a leaf by multipliers would be about other columns."""
    certificate, _ = certified(3, (9, 1), "l1")
    data = copy.deepcopy(certificate.data)
    data["proof"]["tree"] = [{"multipliers": [[1], []]}]
    assert "hidden layers" in check(stamped(data)).failure
