"""Certificates of many people in one file: the model once, written row by row, continued where it was cut off."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from certificate.test_commands import run
from certificate.test_wheel import alone, wheel  # noqa: F401
from ifonly.certificate.collection import check_collection, entries_of
from ifonly.certificate.format import canonical, stamp
from ifonly.errors import FileError

WORDS = ("--dataset", "compas", "--without-rules", "--first", 12)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("collections") / "people.certs"
    told = run("certify", *WORDS, "--output", file)
    assert told.exit_code == 0, told.output
    return file


def test_all_are_valid_and_the_model_stands_once(path):
    summary = check_collection(path)
    assert dict(summary.verdicts) == {"VALID": 12} and summary.code == 0 and len(summary.networks) == 1
    entries = list(entries_of(path))
    assert [one.row for one in entries] == list(range(12))
    assert path.stat().st_size < 0.6 * sum(len(one.certificate.content) for one in entries)
    assert gzip.decompress(path.read_bytes()).count(b'"layers"') == 1
    told = run("check", path)
    assert told.exit_code == 0 and told.stdout.startswith("12 of 12 certificates: VALID\n")


def test_a_collection_is_continued_where_it_was_cut_off(path, tmp_path):
    whole, part = path.read_bytes(), tmp_path / "people.certs"
    for length in (len(whole) - 3, len(whole) // 2, len(whole)):
        part.write_bytes(whole[:length])
        assert (run("check", part).exit_code == 0) is (length == len(whole))
        told = run("certify", *WORDS, "--output", part, "--resume", "--json")
        assert told.exit_code == 0 and (json.loads(told.stdout)["written"] > 0) is (length < len(whole))
        assert part.read_bytes() == whole  # the same bytes as without the break
    told = run("certify", *WORDS, "--distance", "l2", "--output", part, "--resume")
    assert told.exit_code == 2 and "cannot be continued" in told.stderr
    assert part.read_bytes() == whole
    assert run("certify", *WORDS, "--output", part).exit_code == 2


def lines(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).replace(b"}{", b"}\n{").split(b"\n")]


def test_altered_collections(path, tmp_path):
    data, altered = lines(path), tmp_path / "altered.certs"
    data[3]["certificate"]["claim"]["lower"] = data[4]["certificate"]["claim"]["lower"]
    altered.write_bytes(b"".join(gzip.compress(canonical(one)) for one in data))
    summary = check_collection(altered)
    assert dict(summary.verdicts) == {"VALID": 11, "INVALID": 1} and summary.code == 1
    assert [row for row, *_ in summary.rows] == [2]
    data = lines(path)
    data[0]["shared"]["model"]["layers"][0]["bias"][0] = (0.25).hex()
    altered.write_bytes(b"".join(gzip.compress(canonical(one)) for one in data))
    assert dict(check_collection(altered).verdicts) == {"INVALID": 12}


def test_people_without_a_certificate_are_told(path, tmp_path):
    data, some = lines(path), tmp_path / "some.certs"
    data[2] = {"row": 1, "refused": "because"}
    some.write_bytes(b"".join(gzip.compress(canonical(one)) for one in data))
    told = run("check", some)
    assert "1 people have no certificate" in told.stdout and "Row 1: no certificate: because" in told.stdout


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b""), gzip.compress(b"[]"), gzip.compress(b"{"), gzip.compress(b" " * 2**26), b"\x1f\x8b" + b"x" * 50,
     gzip.compress(b'{"format":"ifonly-certificates","version":1,"shared":{}}') + gzip.compress(b"[" * 10**5)],
    ids=range(6),
)  # fmt: skip
def test_files_that_are_no_collection(content, tmp_path):
    file = tmp_path / "x.certs"
    file.write_bytes(content)
    summary = check_collection(file)
    assert summary.code == 1 and summary.failure
    with pytest.raises(FileError):
        list(entries_of(file))


def test_the_checker_alone_reads_them(path, wheel):  # noqa: F811
    done = alone(wheel, path)
    assert done.returncode == 0 and done.stdout.startswith("12 of 12 certificates: VALID\n"), done.stderr


def test_the_bytes_of_a_certificate_are_stable(path):
    """What is signed today verifies tomorrow: reading and writing gives the same text, and its form never changes."""
    plain = {"b": [1, 2.5, -0.0, 1e16, 1e-5, "ü\x7f\n\U0001f600", True], "a": None}
    text = b'{"a":null,"b":[1,2.5,-0.0,1e+16,1e-05,"\\u00fc\\u007f\\n\\ud83d\\ude00",true]}'
    assert canonical(plain) == text
    assert stamp({**plain, "sha256": ""}) == "c2777b43c4dc5528278ef2279416d2e2861d4f7699a2dbdf0f124a3aa9b3ff93"
    first = next(iter(entries_of(path))).certificate
    assert zlib.decompress(first.content) == canonical(json.loads(canonical(first.data)))
    again = type(first).from_bytes(first.content)
    assert again.content == first.content and again == first
