"""`ifonly certify` and `ifonly check`."""

from __future__ import annotations

import copy
import json

import pytest
from click.testing import CliRunner

from certificate.samples import restamped
from ifonly import Certificate, CheckResult
from ifonly.cli import codes
from ifonly.cli.app import app


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("certificates") / "answer.cert"
    words = ("--dataset", "compas", "--row", 0, "--distance", "l2", "--fix", "Sex", "--margin", 0.01)
    result = run("certify", *words, "--output", file)
    assert result.exit_code == codes.PROVEN, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == lines[-1] == "VALID" and all(line.startswith("  ") for line in lines[1:-1])
    assert "Feature 'Sex': " in result.stdout and "; fixed\n" in result.stdout and "margin 0.01" in result.stdout
    assert f"Written to {file}" in result.stderr
    return file


def test_check(path):
    result = run("check", path)
    assert result.exit_code == 0 and result.stdout.startswith("VALID\n")
    data = json.loads(run("check", path, "--json").stdout)
    assert data["verdict"] == "VALID" and data["lower"] < data["upper"] and data["leaves"] >= 1


def test_check_refuses(path, tmp_path):
    data = copy.deepcopy(Certificate.load(path).data)
    data["claim"]["lower"] = data["claim"]["upper"] = (2 * float.fromhex(data["claim"]["upper"])).hex()
    wrong = tmp_path / "wrong.cert"
    restamped(data).save(wrong)
    result = run("check", wrong)
    assert result.exit_code == 1 and result.stdout.startswith("INVALID\n  node ")
    assert json.loads(run("check", wrong, "--json").stdout)["failure"]
    wrong.write_bytes(b"nothing")
    assert run("check", wrong).exit_code == 1
    assert run("check", tmp_path / "missing.cert").exit_code == codes.WRONG_INPUT


def test_certify_takes_one_row(tmp_path):
    result = run("certify", "--dataset", "compas", "--first", 3, "--output", tmp_path / "x.cert")
    assert result.exit_code == codes.WRONG_INPUT and "choose one" in result.stderr
    result = run("certify", "--dataset", "compas", "--row", 0, "--output", tmp_path / "x.cert", "--json")
    assert json.loads(result.stdout)["verdict"] == "VALID"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("limit", "words"), [(("--time-limit", 1e-6), "time limit of 1e-06 s"), (("--node-limit", 1), "node limit of 1")]
)
def test_beyond_a_limit_there_is_a_sentence_and_no_file(limit, words, tmp_path):
    result = run(
        "certify", "--dataset", "credit", "--without-rules", "--row", 15, *limit, "--output", tmp_path / "x.cert"
    )
    assert result.exit_code == codes.WRONG_INPUT and words in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_certificate_that_cannot_be_checked_in_time_is_not_written(tmp_path, monkeypatch):
    seconds = []

    def undecided(certificate, *, seconds: float = 3600.0, told=seconds):
        told.append(seconds)
        return CheckResult(verdict="UNDECIDED", failure="the check was not over")

    monkeypatch.setattr("ifonly.certificate.check.check", undecided)
    result = run(
        "certify", "--dataset", "compas", "--row", 0, "--time-limit", 500, "--output", tmp_path / "x.cert"
    )  # fmt: skip
    assert result.exit_code == codes.WRONG_INPUT
    assert "could not be checked within the time limit of 500 s, and is not written" in result.stderr
    assert not list(tmp_path.iterdir()) and 0.0 < seconds[0] < 500.0
