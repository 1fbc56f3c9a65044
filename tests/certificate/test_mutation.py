"""Alter any field of a certificate: it is INVALID, or what it says is still true.

Blind changes break the stamp. Here the stamp is renewed, as somebody who wants to cheat would; what then passes is
judged by an independent rule: a lower bound may become weaker and an upper bound looser, never the other way.
"""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest

from certificate.samples import of_case, question, restamped, small
from ifonly import Limits, check
from ifonly.certificate.format import Certificate
from ifonly.methods import Search


def places(data, path=()):
    """Every leaf of the document, by its path."""
    if isinstance(data, dict):
        for key in sorted(data):
            yield from places(data[key], (*path, key))
    elif isinstance(data, list) and data:
        for i, item in enumerate(data):
            yield from places(item, (*path, i))
    else:
        yield path, data


def put(data, path, value):
    altered = copy.deepcopy(data)
    place = altered
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return altered


def others(value):
    """What a value could be replaced with."""
    if isinstance(value, bool) or value is None:
        return [0, "x", [], (0.0).hex()]
    if isinstance(value, int):
        return [value + 1, value - 1, -value, str(value)]
    if isinstance(value, str):
        try:
            number = float.fromhex(value)
        except ValueError:
            return [value + "x", "", 3, None]
        return [(number * 1.01 + 1e-3).hex(), (-number).hex(), (number * (1 - 1e-3)).hex(), "nan", "0x1p", None]
    return [None, [[]], "x"]


TRUTH = {"claim", "witness", "proof"}


@pytest.mark.long
@pytest.mark.parametrize(("norm", "hopeless"), [("l1", False), ("l2", False), ("linf", False), ("l0", True)])
def test_every_field_of_the_answer(norm, hopeless):
    """The question untouched: whatever is said about it must be true."""
    certificate = small(norm, hopeless=hopeless)
    asked, point = question(norm, hopeless=hopeless)
    truth = Search().prepare(asked).solve(np.array([point]), Limits())[0]
    optimum = math.inf if truth.point is None else asked.distance.between(asked.schema, np.array(point), truth.point)
    tried = passed = 0
    for path, value in places(certificate.data):
        if path[0] not in TRUTH:
            continue
        for other in others(value) if "tree" not in path else others(value)[:3]:
            checked = check(restamped(put(certificate.data, path, other)))
            tried += 1
            if checked.valid:
                passed += 1
                assert checked.lower <= optimum * (1 + 1e-6), path
                assert checked.upper is None or checked.upper >= optimum * (1 - 1e-6), path
    assert tried > 60 and passed < tried / 2


@pytest.mark.long
@pytest.mark.parametrize("hopeless", [False, True])
def test_every_field_of_the_question(hopeless):
    """Another question with the old answer: VALID only if the old answer is right for it too."""
    certificate = small("l1", hopeless=hopeless)
    tried = 0
    for path, value in places(certificate.data):
        if path[0] in TRUTH or path == ("sha256",):
            continue
        for other in others(value)[:3]:
            altered = restamped(put(certificate.data, path, other))
            checked = check(altered)
            tried += 1
            if checked.valid and path[0] == "question":
                _still_true(altered)
    assert tried > 150


def _still_true(certificate):
    """Sample rows of the altered question: none favourable may be nearer than claimed."""
    from ifonly.certificate.check.statement import read_statement

    proof = certificate.data["proof"]
    statement = read_statement(certificate.data["question"], proof["grid"], proof["cost_grid"])
    lower = certificate.data["claim"]["lower"]
    lower = math.inf if lower is None else float.fromhex(lower)
    a = [0.0, 0.5, 1.0, 2.0, 3.0, 4.0]
    for row in itertools.product(a, range(10), range(3)):
        point = tuple(map(float, row))
        if not statement.allows(point) and min(statement.conditions(point)) >= 0:
            assert statement.cost(point) >= lower


def test_the_stamp_guards_against_accidents():
    certificate = small("l1")
    for path, value in list(places(certificate.data))[::5]:
        for other in others(value)[:1]:
            assert not check(Certificate(put(certificate.data, path, other))).valid
    with pytest.raises(Exception, match="altered"):
        Certificate.from_bytes(Certificate({**certificate.data, "sha256": "0" * 64}).content)


# ---------------------------------------------------------------------- a broken engine


def broken(alter):
    """Certificates from an engine with a bug, over several problems: all must be refused."""
    cases = [of_case("credit", "2x10", "norm", norm, 0) for norm in ("l1", "l2", "linf")]
    for certificate in (*cases, small("l1"), small("l0", hopeless=True)):
        data = copy.deepcopy(certificate.data)
        if alter(data):
            checked = check(restamped(data))
            assert not checked.valid
            assert checked.failure and not checked.statement


def test_a_bound_that_is_too_tight():
    def alter(data):
        if data["claim"]["lower"] is None:
            return False
        upper = float.fromhex(data["claim"]["upper"])
        data["claim"] = {"lower": (upper * 1.001).hex(), "upper": (upper * 1.002).hex()}
        return True

    broken(alter)


def test_no_row_exists_though_one_does():
    def alter(data):
        if data["witness"] is None:
            return False
        data["witness"], data["claim"] = None, {"lower": None, "upper": None}
        return True

    broken(alter)


def test_a_lower_bound_beyond_the_optimum_without_a_witness():
    def alter(data):
        if data["witness"] is None:
            return False
        upper = float.fromhex(data["claim"]["upper"])
        data["witness"], data["claim"] = None, {"lower": (upper * (1 + 1e-9)).hex(), "upper": None}
        return True

    broken(alter)


def test_a_leaf_is_dropped():
    def alter(data):
        tree = data["proof"]["tree"]
        del tree[-1]
        return True

    broken(alter)


def test_a_split_is_replaced_by_one_of_its_sides():
    """The engine forgets half of the space: some such tree is not refused only if that half was closed anyway."""
    certificate = of_case("credit", "2x10", "norm", "l1", 0)
    tree = certificate.data["proof"]["tree"]
    refused = 0
    for i in range(len(tree) - 2):
        if isinstance(tree[i], list) and isinstance(tree[i + 1], dict):
            data = copy.deepcopy(certificate.data)
            data["proof"]["tree"] = tree[:i] + tree[i + 2 :]
            refused += not check(restamped(data)).valid
    assert refused > 0


def test_leaves_without_rows():
    def alter(data):
        for node in data["proof"]["tree"]:
            if isinstance(node, dict):
                node["rows"] = []
        return True

    broken(alter)


def test_a_row_that_does_not_hold():
    """A split ReLU's row where it was not split, and with the wrong sign."""

    def alter(data):
        found = False
        for node in data["proof"]["tree"]:
            for row in node["rows"] if isinstance(node, dict) else []:
                row[:3], found = [0, 0, -1], True
        return found

    broken(alter)


def test_an_option_off_by_one():
    certificate = small("l1")
    data = copy.deepcopy(certificate.data)
    data["witness"][2] = (3.0).hex()
    assert "no row of the schema" in check(restamped(data)).failure
    data = copy.deepcopy(certificate.data)
    data["proof"]["tree"] = [["option", 2, 3], *data["proof"]["tree"]]
    assert not check(restamped(data)).valid


# ---------------------------------------------------------------------- numbers beyond any bound


@pytest.mark.parametrize("layers", [1, 5, 20, 40])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_neurons_that_nobody_hears_prove_nothing(layers, sign):
    """Identity layers, and beside them a chain of neurons with weights of 2^1000 whose last weight is 0: the function is
    unchanged, so a claim that no row is decided otherwise is as false as before, however large the chain's values are.
    """
    data = copy.deepcopy(of_case("compas", "2x10", "norm", "l1", 0).data)
    network, zero, one, big = data["question"]["model"]["layers"], (0.0).hex(), (1.0).hex(), 2.0**1000
    count = len(network[-2]["bias"])
    network[-2]["weight"].append([zero] * len(network[-2]["weight"][0]))
    network[-2]["bias"].append(big.hex())
    same = [[one if i == j else zero for j in range(count + 1)] for i in range(count)]
    more = {"weight": [*same, [zero] * count + [(sign * big).hex()]], "bias": [zero] * (count + 1)}
    network[-1]["weight"] = [[*row, zero] for row in network[-1]["weight"]]
    network[-1:-1] = [more] * layers
    data["claim"], data["witness"], data["deployed"] = {"lower": None, "upper": None}, None, None
    for rows in ([], [[layers + 2, 0, 1, "", one]]):
        data["proof"]["tree"] = [{"rows": rows}]
        checked = check(restamped(data))
        assert not checked.valid and not checked.statement
    assert "not closed" in checked.failure or "bits" in checked.failure


def test_the_schema_stands_as_ifonly_writes_it():
    def alter(change):
        data = copy.deepcopy(small("l1").data)
        change(data["question"]["schema"])
        return check(restamped(data)).failure

    assert not alter(lambda schema: None)
    assert "schema" in alter(lambda schema: schema.update(note="x"))
    assert "schema" in alter(lambda schema: schema.update(version=True))
    assert "schema" in alter(lambda schema: schema["features"][0].update(lower=0))
    assert "schema" in alter(lambda schema: schema.update(columns=[]))
