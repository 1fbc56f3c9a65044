"""`ifonly certify` and `ifonly check`."""

from __future__ import annotations

import copy
import json

import pytest
from click.testing import CliRunner

from certificate.by_enumeration import untruth
from certificate.samples import restamped
from ifonly import CausalModel, Certificate, CheckResult, datasets
from ifonly.causes import LinearEquation
from ifonly.certificate.check import check
from ifonly.certificate.collection import entries_of
from ifonly.certificate.showing import as_html
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


def test_the_reasons_why_there_is_none(tmp_path):
    file = tmp_path / "none.certs"
    words = ("certify", *COMPAS, "--reasons", "--output", file)
    result = run(*words, "--row", 1, "--fix", "PriorsCount,AgeGroup,Sex,Race", "--json")
    assert result.exit_code == codes.PROVEN, result.output
    entries = list(entries_of(file))
    assert json.loads(result.stdout)["written"] == len(entries) >= 2
    first, *others = [check(one.certificate) for one in entries]
    assert first.valid and first.lower == float("inf")
    assert all(one.valid and one.upper is not None for one in others)
    assert run(*words, "--row", 1, "--force").exit_code == codes.LIMIT  # a change helps, so there are no reasons
    assert run(*words, "--row", 1, "--force", "--resume").exit_code == codes.WRONG_INPUT
    assert "is written as .certs" in run("certify", *COMPAS, "--row", 1, "--reasons", "--output", "x.cert").stderr


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


COMPAS = ("--dataset", "compas", "--without-rules")


def test_the_certificates_of_a_diverse_set(tmp_path):
    file = tmp_path / "set.certs"
    words = ("diverse", *COMPAS, "--row", 0, "--row", 1, "-k", 4, "--differ", "features", "--certificate", file)
    result = run(*words, "--json")
    assert result.exit_code == codes.PROVEN and f"to check it: ifonly check {file}" in result.stderr
    sets, entries = json.loads(result.stdout)["sets"], list(entries_of(file))
    each = [one["row"] for one in sets for _ in range(len(one["answers"]) + 1)]  # the last: there is no further one
    assert [one.row for one in entries] == each and len(each) > 4
    claims = [one.certificate.data["claim"]["lower"] for one in entries if one.row == 0]
    assert None not in claims[:-1] and claims[-1] is None
    told = run("check", file)
    assert told.exit_code == 0 and told.stdout.startswith(f"{len(each)} of {len(each)} certificates: VALID\n")
    assert told.stdout.count("\nRow 0: ") == len(claims) and len(
        json.loads(run("check", file, "--json").stdout)["proven"]
    ) == len(each)
    assert run(*words).exit_code == codes.WRONG_INPUT and run(*words, "--force").exit_code == codes.PROVEN
    later = copy.deepcopy(entries[1].certificate.data)
    later["question"]["constraints"] = []  # without the earlier answer, the later one is not the nearest
    assert check(restamped(later)).verdict == "INVALID"


def test_the_certificate_of_a_reason(tmp_path):
    file = tmp_path / "why.cert"
    assert run("why", *COMPAS, "--row", 0, "--certificate", file).exit_code == codes.PROVEN
    told = run("check", file)
    assert told.exit_code == 0 and told.stdout.startswith("VALID\n")
    data = copy.deepcopy(Certificate.load(file).data)
    assert data["question"]["reason"]["claim"] == "smallest" and data["question"]["reason"]["held"]
    data["question"]["reason"]["held"].pop()
    assert check(restamped(data)).verdict == "INVALID"
    several = tmp_path / "why.certs"
    assert run("why", *COMPAS, "--first", 2, "--certificate", several).exit_code == codes.PROVEN
    assert [one.row for one in entries_of(several)] == [0, 1] and run("check", several).exit_code == 0


def test_the_certificate_of_recourse(tmp_path):
    schema = datasets.network("compas").schema
    causes = tmp_path / "causes.json"
    CausalModel(schema, {"PriorsCount": LinearEquation({"AgeGroup": 2.0}, 1.0)}).save(causes)
    words = ("recourse", *COMPAS, "--causes", causes)
    file = tmp_path / "action.cert"
    assert run(*words, "--row", 0, "--certificate", file).exit_code == codes.PROVEN
    told = run("check", file)
    assert told.exit_code == 0 and told.stdout.startswith("VALID\n") and "Every action after which" in told.stdout
    data = copy.deepcopy(Certificate.load(file).data)
    (equation,) = data["question"]["causes"]
    assert equation["feature"] == "PriorsCount" and untruth(data) == ""
    data["claim"] = {"lower": None, "upper": None}
    data["witness"] = data["deployed"] = None
    assert check(restamped(data)).verdict == "INVALID" and "costs" in str(untruth(data))
    several = tmp_path / "actions.certs"
    assert run(*words, "--first", 2, "--certificate", several).exit_code == codes.PROVEN
    assert [one.row for one in entries_of(several)] == [0, 1] and run("check", several).exit_code == 0
    assert "Causes: " in run("check", file).stdout and "<h2>Rules</h2>" in as_html(check(file))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("why", "--row", 0, "-k", 2, "--certificate", "x.cert"), "leave out -k and --all"),
        (("why", "--row", 0, "--method", "enumerate", "--certificate", "x.cert"), "Reasons are proven by the search"),
        (("why", "--first", 2, "--certificate", "x.cert"), "is written as .certs"),
        (("diverse", "--row", 0, "--certificate", "x.cert"), "is written as .certs"),
    ],
)
def test_certificates_that_are_refused(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(words[0], *COMPAS, *words[1:])
    assert result.exit_code == codes.WRONG_INPUT and said in result.stderr and not list(tmp_path.iterdir())


def test_a_set_without_proof_has_a_sentence_instead(tmp_path):
    file = tmp_path / "set.certs"
    words = ("--dataset", "credit", "--without-rules", "--row", 15, "-k", 2, "--node-limit", 1)
    result = run("diverse", *words, "--certificate", file)
    assert result.exit_code == codes.LIMIT and "row 15 has no certificate: " in result.stderr
    assert [bool(one.refused) for one in entries_of(file)] == [True]
