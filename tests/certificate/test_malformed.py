"""Files that are not certificates: refused with a sentence; no crash, no hang, no VALID."""

from __future__ import annotations

import copy
import json
import random
import zlib

import pytest

from certificate.samples import restamped, small
from ifonly import Certificate, check
from ifonly.certificate.format import MAX_TEXT, canonical, canonical_in_steps, unpacked
from ifonly.errors import FileError


def refused(tmp_path, content):
    path = tmp_path / "file.cert"
    path.write_bytes(content)
    checked = check(path)
    assert not checked.valid and checked.failure
    return checked.failure


def test_fuzzed_bytes(tmp_path):
    rng = random.Random(1)
    content = small("l1").content
    for _ in range(300):
        altered = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            altered[rng.randrange(len(altered))] = rng.randrange(256)
        if bytes(altered) != content:
            refused(tmp_path, bytes(altered))
        refused(tmp_path, content[: rng.randrange(len(content))])
        refused(tmp_path, rng.randbytes(rng.randrange(200)))


@pytest.mark.long
def test_fuzzed_documents():
    """Parts of the document replaced by parts of another shape, with a good stamp."""
    rng = random.Random(2)
    data = small("l1").data
    junk = [None, [], {}, "", "0x1p+0", "0x1p+9999", 0, -1, 10**30, 2**70, True, [[]], ["relu", 0, 0], {"rows": []},
            [["number"]], "x" * 5000, 1.5, {"kind": "real"}, [1] * 1000]  # fmt: skip
    for _ in range(400):
        altered = copy.deepcopy(data)
        place = altered
        while True:
            key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
                place = inner
                continue
            how = rng.random()
            if how < 0.7:
                place[key] = rng.choice(junk)
            elif how < 0.85:
                del place[key]
            elif isinstance(place, list):
                place.insert(key, copy.deepcopy(inner))
            else:
                place[key + "x"] = inner
            break
        if canonical(altered) == canonical(data):
            continue
        checked = check(restamped(altered))
        if checked.valid:  # only what does not matter may be altered
            assert altered["question"] != data["question"] or checked.lower <= float.fromhex(data["claim"]["upper"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cut off"),
        (b"not zlib", "not a certificate"),
        (zlib.compress(b"[1, 2"), "not a certificate"),
        (zlib.compress(b"[]"), "format"),
        (zlib.compress(b'{"format": "ifonly-certificate", "version": 3}'), "version"),
        (zlib.compress(b"[" * 100_000), "not a certificate"),
        (zlib.compress(b'{"a": NaN}'), "not a certificate"),
        (zlib.compress(b"1" * 5000), "not a certificate"),
        (zlib.compress(b"{}") + b"more", "followed"),
    ],
)
def test_not_a_certificate(tmp_path, content, words):
    assert words in refused(tmp_path, content)


def test_a_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr("ifonly.certificate.format.MAX_TEXT", 2**20)
    assert "too large" in refused(tmp_path, zlib.compress(b" " * 2**22))
    assert MAX_TEXT > 2**20


def test_a_file_that_is_not_there(tmp_path):
    assert "Cannot read" in check(tmp_path / "nothing.cert").failure
    with pytest.raises(FileError, match="Cannot read"):
        Certificate.load(tmp_path / "nothing.cert")


def test_data_that_is_no_json():
    for data in ({"a": float("nan")}, {"a": object()}, {1: 2, "a": 3}, {}):
        checked = check(Certificate(data))
        assert not checked.valid and checked.failure


def test_the_file_is_canonical():
    certificate = small("l1")
    text = zlib.decompress(certificate.content)
    assert text == canonical(json.loads(text)) and text.isascii()


def test_text_is_written_in_steps_as_at_once():
    """Long lists are compared piece by piece, so that a check can stop between two of them."""
    steps = []
    for value in ({}, [], [1] * 2500, {"b": [{"y": [], "x": "ü"}] * 1001, "a": {"c": None}}, [[1] * 1500] * 3):
        assert canonical_in_steps(value, lambda: steps.append(1)) == canonical(value)
    assert len(steps) > 10


@pytest.mark.parametrize("content", [b"age,income\n1,2\n", b"{}", b"\x89PNG"])
def test_another_file_is_said_to_be_no_certificate(content: bytes) -> None:
    with pytest.raises(FileError, match="this is not a certificate, or it is damaged: it cannot be unpacked; give a"):
        unpacked(content)
