"""Other models that must accept the row: `--also` and what belongs to it."""

from __future__ import annotations

import json

import pytest

from ifonly import Network
from ifonly.datasets import network as shipped
from ifonly.model import save_network


@pytest.fixture
def fraud(tmp_path):
    """A model of COMPAS that says fine to nobody with more than 3 priors."""
    schema = shipped("compas").schema
    weight = [-1.0 if column == "PriorsCount" else 0.0 for column in schema.columns]
    save_network(Network.of([([weight], [3.5])]), tmp_path / "fraud.npz", classes=("fraud", "fine"))
    return tmp_path / "fraud.npz"


def answers(run, *words):
    return json.loads(run(*words, "--json").stdout)["answers"]


def test_every_answer_is_accepted_by_both(run, compas, fraud):
    also = ("--also", f"fraud check={fraud}", "--also-target", "fraud check=fine")
    for more in ((), ("--also-least", 1)):
        found = answers(run, *compas.words(), "--target", "low risk", *also, *more)
        rows = [one["counterfactual"] for one in found if one["counterfactual"]]
        assert rows
        assert all(row["PriorsCount"] <= 3 for row in rows)
    score = answers(run, *compas.words(), "--target", "low risk", *also[:2], "--also-target", "fraud check>=2.5")
    assert all(one["counterfactual"]["PriorsCount"] <= 1 for one in score if one["counterfactual"])


def test_rules_name_the_models(run, compas, fraud, tmp_path):
    """A model that a rule names is required by the rule, and not beside it."""
    words = (*compas.words(), "--target", "low risk")
    also = ("--also", f"fraud check={fraud}", "--also-target", "fraud check=fine")
    both = (*also, "--also", f"other={fraud}", "--also-target", "other>=2.5")

    def rows(*more):
        return [one["counterfactual"] for one in answers(run, *more)]

    required = rows(*words, *also)
    assert rows(*words, *both) != required
    assert rows(*words, *also, "--rule", "fraud check accepts") == required
    assert rows(*words, *both, "--rule", "at least 1 of fraud check, other accept") == required
    query = tmp_path / "query.json"
    query.write_text(json.dumps({"target": "low risk", "constraints": ["fraud check accepts"]}))
    assert rows(*compas.words(), *also, "--query", query) == required
    lost = run(*words, *also, "--rule", "fraud check accepts without any 2 trees")
    assert lost.exit_code != 0 and "RobustToWeights" in lost.stderr
    wrong = run(*words, *also, "--rule", "fraud chek accepts")
    assert wrong.exit_code != 0
    assert "did you mean 'fraud check'" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--also", "F"),
            "--also fraud check: Say what 'fraud check' must decide with --also-target fraud check=CLASS",
        ),
        (("--also", "fraud"), "--also fraud: write a name and what belongs to it, such as fraud=fraud.onnx"),
        (("--also", "F", "--also-target", "other=fine"), "--also-target other: no model has that name"),
        (("--also", "F", "--also-target", "fraud check>=x"), "--also-target fraud check>=x: 'x' is not a number"),
        (("--also-least", 1), "--also-least counts the models of --also; give some with --also NAME=FILE"),
        (("--also", "a=nowhere.npz"), "--also a: "),
    ],
)
def test_wrong(run, compas, fraud, words, message):
    given = [f"fraud check={fraud}" if word == "F" else word for word in words]
    result = run(*compas.words(), *given)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())
