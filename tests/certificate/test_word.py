"""Answers of other solvers: certified except for their word, which the search can replace by a proof."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from click.testing import CliRunner

import ifonly
from cases import load
from certificate.samples import question, restamped
from ifonly import ClassTarget, Distance, Limits, Real, Schema, check
from ifonly.certifying.certificates import disagreement, prove
from ifonly.certifying.certifier import Certifier
from ifonly.certifying.read_back import question_of
from ifonly.cli import codes
from ifonly.cli.app import app
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.methods import MipObj, MipSat, Search, Tolerances
from ifonly.model import Network, network_model
from ifonly.problem import Question
from ifonly.results import Claim
from ifonly.results.deployed import covering_margin, deployed_answer

TRUSTED = "VALID EXCEPT FOR THE SOLVER'S BOUND"


@pytest.mark.parametrize("method", [MipObj(), MipSat()], ids=lambda method: method.name)
def test_a_solvers_word_is_marked_and_can_be_proven(method, tmp_path):
    pytest.importorskip("z3" if isinstance(method, MipSat) else "highspy")
    model, points, _ = load("compas")
    explainer, row = ifonly.Explainer(model), model.schema.row(points[0])
    certificate = ifonly.certify(explainer.using(method), row)
    checked = check(certificate)
    assert checked.verdict == TRUSTED and not checked.valid and checked.trusted == method.name
    assert "NOT PROVEN" in checked.statement and "decides as asked" in checked.deployed
    path = tmp_path / "word.cert"
    certificate.save(path)
    proven = ifonly.certifying.prove(path)
    after = check(proven)
    assert after.valid and not disagreement(checked, after) and method.name in proven.data["made_by"]
    assert after.lower <= checked.upper and abs(after.upper - checked.upper) <= 1e-6
    assert ifonly.certifying.prove(proven) is proven


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_wrong_word_is_never_valid(norm):
    """Too large a lower bound passes as a word, and only as one; the proof then contradicts it. Wrong rows do not."""
    asked, point = question(norm)
    certifier = Certifier(asked, Tolerances())
    truth = Search().prepare(asked).solve(np.array([point]), Limits())[0]
    far = np.array([4.0, 8.0, 2.0])
    lie = Claim(point=None, lower=truth.lower * 2, method="liar")
    word = certifier.trusted(np.array(point), lie)
    assert check(word).verdict == TRUSTED
    after = check(prove(word))
    assert after.valid and "liar says" in disagreement(check(word), after)
    nothing = certifier.trusted(np.array(point), Claim(point=None, lower=np.inf, method="liar"))
    assert check(nothing).verdict == TRUSTED and disagreement(check(nothing), check(prove(nothing)))
    data = copy.deepcopy(certifier.trusted(np.array(point), truth).data)
    data["witness"] = [v.hex() for v in far.tolist()]
    assert check(restamped(data)).verdict == "INVALID"
    data = copy.deepcopy(word.data)
    for name in ("", "x" * 201, "a\nb", None, 3):
        data["proof"]["trusted"] = name
        assert check(restamped(data)).verdict == "INVALID"
    data["proof"]["tree"] = []
    assert check(restamped(data)).verdict == "INVALID"


def test_what_is_no_word_cannot_be_proven():
    asked, point = question("l1")
    data = copy.deepcopy(Certifier(asked, Tolerances()).proven(np.array(point), Limits()).data)
    del data["proof"]["tree"][-1]
    with pytest.raises(QuestionError, match="cannot be proven"):
        prove(restamped(data))


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_question_survives_the_file(norm):
    asked, point = question(norm)
    certificate = Certifier(asked, Tolerances()).proven(np.array(point), Limits())
    again, person = question_of(certificate.data["question"])
    assert tuple(person) == point and again.constraints == asked.constraints and again.distance == asked.distance


# ---------------------------------------------------------------------- the deployed model


def rounded_question():
    """A float32 model that is off by its rounding: favourable in real arithmetic is not favourable to it."""
    schema = Schema([Real("a", 0.0, 1000.0), Real("b", 0.0, 1000.0)])
    network = Network.of([(np.array([[1.0, -1.0]]), np.array([-100.0]))])
    model = network_model(network, schema, precision="float32")
    low = ifonly.Model(function=network, schema=schema, classes=model.classes, precision="float32",
                       original=lambda points: network.scores(schema.encode(points)) - 1e-5)  # fmt: skip
    return Question(model=low, target=ClassTarget(1, margin=0.0), distance=Distance("l1"))


def test_the_deployed_models_answer_is_recorded_and_a_margin_covers_it():
    asked = rounded_question()
    certificate = Certifier(asked, Tolerances()).proven(np.array([150.0, 100.0]), Limits())
    checked = check(certificate)
    assert checked.valid and "does NOT decide as asked" in checked.deployed
    margin = float.fromhex(certificate.data["deployed"]["margin"])
    assert margin == covering_margin(asked) >= float(asked.error[0])
    careful = Question(model=asked.model, target=ClassTarget(1, margin=margin), distance=asked.distance)
    witness = check(again := Certifier(careful, Tolerances()).proven(np.array([150.0, 100.0]), Limits()))
    point = np.array([float.fromhex(v) for v in again.data["witness"]])
    assert witness.valid and deployed_answer(asked, point).agrees


def test_what_is_recorded_of_the_deployed_model_has_a_form():
    asked, point = question("l1")
    certificate = Certifier(asked, Tolerances()).proven(np.array(point), Limits())
    assert "Recorded, not checked" in str(check(certificate))
    for key, value in (("precision", "float16"), ("scores", [1.0]), ("agrees", 1), ("margin", "x")):
        data = copy.deepcopy(certificate.data)
        data["deployed"][key] = value
        assert check(restamped(data)).verdict == "INVALID"
    data = {**copy.deepcopy(certificate.data), "deployed": None}
    assert check(restamped(data)).valid


# ---------------------------------------------------------------------- limits, commands


def test_the_clock_holds():
    asked, point = question("l2")
    certificate = Certifier(asked, Tolerances()).proven(np.array(point), Limits())
    checked = check(certificate, seconds=0.0)
    assert checked.verdict == "UNDECIDED" and not checked.valid and "0 seconds" in checked.failure


def test_a_proof_that_is_too_large_is_not_written(monkeypatch):
    monkeypatch.setattr("ifonly.certifying.certifier.MAX_BYTES", 100)
    asked, point = question("l1")
    with pytest.raises(UnsupportedQuestion, match="MiB"):
        Certifier(asked, Tolerances()).proven(np.array(point), Limits())


def test_commands(tmp_path):
    pytest.importorskip("highspy")
    word, proven = tmp_path / "word.cert", tmp_path / "proven.cert"

    def run(*words):
        return CliRunner().invoke(app, [str(w) for w in words])

    result = run("certify", "--dataset", "compas", "--row", 0, "--method", "mip-obj", "--output", word)
    assert result.exit_code == codes.LIMIT and result.stdout.startswith(TRUSTED) and "ifonly certify" in result.stderr
    assert run("check", word).exit_code == 3
    assert json.loads(run("check", word, "--json").stdout)["trusted"] == "mip-obj"
    assert run("check", word, "--time-limit", 1e-9).exit_code == 4
    result = run("certify", word, "--output", proven)
    assert result.exit_code == codes.PROVEN and result.stdout.startswith("VALID\n")
    assert run("check", proven).exit_code == 0
    result = run("certify", word, "--dataset", "compas", "--output", tmp_path / "both.cert")
    assert result.exit_code == codes.WRONG_INPUT and "leave out --dataset" in result.stderr
