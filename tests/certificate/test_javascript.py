"""The second checker, in JavaScript, says what the first says: of good certificates, altered ones, and of hostile files."""

from __future__ import annotations

import copy
import os
import random
import zlib

import numpy as np
import pytest

from certificate.bombs import BOMBS
from certificate.javascript import agree, agree_on, measured
from certificate.random_questions import KINDS, LIMITS
from certificate.samples import of_case, restamped, small
from certificate.test_mutation import others, places, put
from ifonly import Explainer, IfonlyError, Network, certify
from ifonly.certificate.format import canonical, stamp
from ifonly.certifying.certifier import Certifier
from ifonly.model import network_model
from ifonly.problem import OneOfTarget, OtherTarget, TopTarget
from ifonly.schema import Categorical, Integer, Real, Schema
from ifonly.tolerances import DEFAULT

JUNK = [None, [], {}, "", "0x1p+0", "0x1.0000000000000p+1024", 0, -1, 10**30, True, [[]], ["relu", 0, 0], {"rows": []},
        "x" * 500, 1.5, {"kind": "real"}, "\u202e", "-0x0.0p+0", "0x0.0000000000001p-1022"]  # fmt: skip


@pytest.mark.long
def test_good_certificates(tmp_path):
    norms = ("l0", "l1", "l2", "linf")
    some = [small(norm) for norm in norms] + [small("l0", hopeless=True)]
    some += [of_case("credit", "2x10", "norm", norm, row) for norm in norms[1:] for row in (0, 1)]
    assert set(agree_on(some, tmp_path)) == {"VALID"}


@pytest.mark.long
@pytest.mark.parametrize("norm", [pytest.param("l1", marks=pytest.mark.long), "l2"])
def test_every_field_altered(norm, tmp_path):
    data = small(norm).data
    altered = [
        restamped(put(data, path, other))
        for path, value in places(data)
        for other in others(value)[: 2 if "tree" in path or "layers" in path else None]
        if path != ("sha256",)
    ]
    verdicts = agree_on(altered[:: 1 if norm == "l1" else 3], tmp_path)
    assert verdicts.count("VALID") > 10 and verdicts.count("INVALID") > 100


@pytest.mark.long
def test_documents_of_another_shape(tmp_path):
    rng, data, altered = random.Random(5), small("l1").data, []
    for _ in range(300):
        place = document = copy.deepcopy(data)
        while True:
            key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
            if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
                place = place[key]
                continue
            if rng.random() < 0.2:
                del place[key]
            elif rng.random() < 0.1 and isinstance(place, dict):
                place[f"{key}x"] = rng.choice(JUNK)
            else:
                place[key] = rng.choice(JUNK)
            break
        altered.append(restamped(document).content)
    assert agree(altered, tmp_path).count("INVALID") > 200


def test_files_that_are_none(tmp_path):
    rng, content = random.Random(6), small("l1").content
    text = canonical(small("l1").data)
    twice = text.replace(b'"version":2', b'"version":2,"version":2')
    texts = [
        b"", b"[]", b"[1, 2", b"{}", b"nan", b'{"a":NaN}', b"1" * 5000, b"[" * 100_000, text + b"\n", twice, text[:-1],
        text.replace(b'"claim":{', b'"claim": {'), text.replace(b"ifonly search", b"ifonly \\u0073earch"),
        text.replace(b"ifonly search", b"ifonly \x7fsearch"), text.replace(b"ifonly search", "ifonly ü".encode()),
    ]  # fmt: skip
    files = [zlib.compress(one) for one in texts] + [
        b"",
        b"no zlib",
        content + b"x",
        content + content[-4:],
        content[:-1],
    ]
    files += [content + b"\0" * 9]
    for _ in range(100):
        altered = bytearray(content)
        altered[rng.randrange(len(altered))] = rng.randrange(256)
        files.append(bytes(altered))
    assert set(agree([one for one in files if one != content], tmp_path)) == {"INVALID"}


@pytest.mark.long
def test_texts_and_numbers_as_python_writes_them(tmp_path):
    """Options of every form, which end up in the names of columns; names of many languages."""
    files = []
    options = ["ü", "\x7f", "\u2028", "\U0001f600", "a\\b\"c", 1e22, 1e16, 123456789012345680.0, 1e-5, 0.0001, 1.5, 10**22,
               True, 2, -3.25e-7, None]  # fmt: skip
    for name in (
        "Größe",
        "年齢 区分",
        "naïve\xa0income",
        "a\u202eb",
        "a\x7f",
        "x" * 200,
        "x" * 201,
        "\U0001f600" * 200,
    ):
        for option in (*options, 1e22):
            data = copy.deepcopy(small("l1").data)
            data["question"]["schema"]["features"][2]["categories"][0] = option
            data["question"]["schema"]["features"][1]["name"] = name
            for one in data["question"]["constraints"]:
                one["feature"] = name
            files.append(zlib.compress(canonical({**data, "sha256": stamp(data)})))
    verdicts = agree(files, tmp_path)
    assert verdicts.count("VALID") > 50 and "INVALID" in verdicts


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_bombs(bomb, tmp_path):
    path = tmp_path / "bomb.cert"
    path.write_bytes(bomb())
    verdict, failure, took, mib = measured(path, 1.0)
    assert verdict in ("INVALID", "UNDECIDED") and failure and len(failure) < 1000
    assert took < 6.0 and mib < 400  # a second, and what unpacking and collecting take on a slow machine


COUNT = int(os.environ.get("IFONLY_CERTIFICATES", "3"))
MUTATIONS = int(os.environ.get("IFONLY_MUTATIONS", "60"))


def random_certificates(kind, count):
    for seed in range(count):
        asked, points = KINDS[kind](seed)
        try:
            yield Certifier(asked, DEFAULT).proven(points[0], LIMITS)
        except IfonlyError:
            continue


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("kind", KINDS)
def test_random_questions(kind, tmp_path):
    """Of every kind; `IFONLY_CERTIFICATES` says how many."""
    verdicts = agree_on(list(random_certificates(kind, COUNT)), tmp_path)
    assert len(verdicts) > COUNT // 2 and set(verdicts) == {"VALID"}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", ["rules", "rules on steps", "trees", "finite trees"])
def test_random_questions_altered(kind, tmp_path):
    """Any field, stamped anew; `IFONLY_MUTATIONS` says how many."""
    rng, altered = random.Random(7), []
    for certificate in random_certificates(kind, max(MUTATIONS // 30, 2)):
        fields = [(path, value) for path, value in places(certificate.data) if path != ("sha256",)]
        short = [one for one in fields if not {"layers", "trees"} & set(one[0])]
        for path, value in rng.choices(short, k=25) + rng.choices(fields, k=5):
            altered.append(restamped(put(certificate.data, path, rng.choice(others(value)))).content)
    verdicts = agree(altered, tmp_path)
    assert len(verdicts) >= 30 and "INVALID" in verdicts


@pytest.mark.long
def test_targets_with_alternatives(tmp_path):
    schema = Schema([Real("a", 0.0, 4.0), Integer("b", 0, 9), Categorical("c", ["x", "y", "z"])])
    rng = np.random.default_rng(4)
    layers = [(rng.normal(size=(6, 5)), rng.normal(size=6)), (rng.normal(size=(4, 6)), rng.normal(size=4))]
    explainer = Explainer(network_model(Network.of(layers), schema, classes=("p", "q", "r", "s")))
    row = {"a": 1.0, "b": 3, "c": "y"}
    own = explainer.explain(row, target=OtherTarget()).decision_before
    others_of = [label for label in ("p", "q", "r", "s") if label != own]
    targets = [OtherTarget(), OneOfTarget(others_of[:2]), TopTarget(others_of[0], 2)]
    made = [certify(explainer, row, target=target) for target in targets]
    assert set(agree_on(made, tmp_path)) == {"VALID"}
    files = [restamped(put(one.data, path, other)).content for one in made for path, value in places(one.data["question"]["target"], ("question", "target"))
             for other in others(value)]  # fmt: skip
    files += [restamped({**one.data, "proof": {**one.data["proof"], "tree": tree}}).content for one in made
              for tree in (one.data["proof"]["tree"] * 2, one.data["proof"]["tree"][:-1])]  # fmt: skip
    assert "INVALID" in agree(files, tmp_path)
