"""The command line: other targets, reasons, fewest changes first, audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ifonly import Explainer, Integer, Network, Schema
from ifonly.cli import codes
from ifonly.cli.shipped import network
from ifonly.model.files import save_network
from ifonly.schema.io import save_schema

COMPAS = ("explain", "--dataset", "compas")
FIXED = ("--fix", "Race", "--fix", "Sex", "--fix", "AgeGroup", "--fix", "ChargeDegree", "--fix", "PriorsCount")


def answers(result: Any) -> Any:
    return json.loads(result.stdout)["answers"]


def test_a_probability(run) -> None:
    result = run(*COMPAS, "--row", 1, "--target", "low risk", "--probability", 0.7)
    assert result.exit_code == codes.PROVEN
    assert (
        "the probability of low risk would have been at least 70 %. No smaller allowed change would have been enough."
        in result.stdout
    )
    more = answers(run(*COMPAS, "--row", 1, "--target", "low risk", "--probability", 0.7, "--json"))[0]
    less = answers(run(*COMPAS, "--row", 1, "--target", "low risk", "--json"))[0]
    assert more["distance"] > less["distance"]
    assert more["score_after"] <= -0.847298


def test_a_probability_needs_a_model_that_has_them(run, compas) -> None:
    asked = ("--target", "high risk", "--probability", "0.7", "--row", "0")
    refused = run(*compas.words(), *asked)
    assert refused.exit_code == codes.WRONG_INPUT
    assert "reports no probabilities" in refused.stderr
    assert "--log-odds" in refused.stderr
    assert run(*compas.words(), *asked, "--log-odds").exit_code == codes.PROVEN


def test_a_probability_of_one_of_three(run, tmp_path: Path) -> None:
    save_schema(Schema([Integer("n", 0, 9), Integer("m", 0, 9)]), tmp_path / "schema.json")
    network = Network.of([([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3]], [0.0, 1.0, 2.0])])
    save_network(network, tmp_path / "model.json", classes=("a", "b", "c"))
    (tmp_path / "people.csv").write_text("n,m\n0,5\n")
    files = ("--model", "model.json", "--schema", "schema.json", "--rows", "people.csv")
    words = ("explain", *(word if word.startswith("--") else str(tmp_path / word) for word in files))
    asked = ("--row", 0, "--target", "a", "--probability", 0.6)
    assert "reports no probabilities" in run(*words, *asked).stderr
    result = run(*words, *asked, "--log-odds", "--json")
    assert result.exit_code == codes.PROVEN, result.output
    n, m = answers(result)[0]["counterfactual"].values()
    odds = [np.exp(s) for s in (n, m + 1.0, 0.3 * (n + m) + 2.0)]
    assert odds[0] / sum(odds) >= 0.6
    (tmp_path / "query.json").write_text('{"target": {"probability_of": "a", "at_least": 0.6}}')
    same = run(*words, "--row", 0, "--query", str(tmp_path / "query.json"), "--log-odds", "--json")
    assert answers(same)[0]["counterfactual"] == answers(result)[0]["counterfactual"]


def test_one_of_and_any_other(run) -> None:
    plain = answers(run(*COMPAS, "--first", 5, "--json"))
    other = answers(run(*COMPAS, "--first", 5, "--not", "--json"))
    assert [a["distance"] for a in plain] == [a["distance"] for a in other]
    some = answers(run(*COMPAS, "--first", 5, "--one-of", "low risk", "--json"))
    assert {a["decision_after"] for a in some} == {"low risk"}
    top = answers(run(*COMPAS, "--first", 5, "--target", "low risk", "--top", 1, "--json"))
    assert [a["distance"] for a in top] == [a["distance"] for a in some]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--probability", "0.7"), "--probability is about a class: say which with --target"),
        (("--top", "1"), "--top is about a class"),
        (("--target", "low risk", "--probability", "70"), "between 0 and 1"),
        (("--target", "low risk", "--top", "2"), "always among the 2 highest"),
        (("--target", "low risk", "--not"), "--target and --not ask for different things"),
        (("--one-of", "low risk", "--not"), "--one-of and --not ask for different things"),
        (("--not", "--at-least", "1"), "--not and --at-least or --at-most ask for different things"),
        (("--target", "low risk", "--top", "1", "--probability", "0.7"), "--probability and --top"),
        (("--one-of", "low risk,high risk"), "all classes of the model"),
        (("--one-of", "some risk"), "no class 'some risk'"),
    ],
)
def test_targets_that_make_no_sense(run, words, said) -> None:
    result = run(*COMPAS, "--row", 0, *words)
    assert result.exit_code == codes.WRONG_INPUT
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_why_for_one_row_and_on_request_for_many(run) -> None:
    one = run(*COMPAS, "--row", 1, *FIXED)
    blame = "What stands in the way: “sex” is fixed; “age group” is fixed; “number of prior offences” is fixed."
    assert f"No allowed change turns the decision into high risk. {blame}" in one.stdout
    lines = [" ".join(line.split()) for line in one.stdout.splitlines()]
    assert "possible if distance then" in lines
    assert "PriorsCount may change 0.0105263 PriorsCount: 3 -> 5" in lines
    assert all(a["reasons"] is None for a in answers(run(*COMPAS, "--first", 3, *FIXED, "--json")))
    (quiet,) = answers(run(*COMPAS, "--row", 1, *FIXED, "--no-why", "--json"))
    assert quiet["reasons"] is None
    many = answers(run(*COMPAS, "--first", 3, *FIXED, "--why", "--json"))
    assert all(a["reasons"]["minimal"] and a["reasons"]["relaxations"] for a in many)
    text = run(*COMPAS, "--first", 3, *FIXED, "--why").stdout
    assert "ruled out by: Sex is fixed; AgeGroup is fixed; PriorsCount is fixed" in text


def test_fewest_changes_first(run) -> None:
    nearest = answers(run(*COMPAS, "--first", 40, "--json"))
    fewest = answers(run(*COMPAS, "--first", 40, "--fewest-first", "--json"))
    counts = [(len(a["changes"]), len(b["changes"])) for a, b in zip(nearest, fewest, strict=True)]
    assert all(b <= a for a, b in counts)
    assert any(b < a for a, b in counts)
    assert {a["distance_name"] for a in fewest} == {"fewest changes, then l1"}


AUDIT = ("audit", "--dataset", "compas", "--by", "Race", "--first", "60", "--fix", "Race", "--fix", "Sex")


def test_an_audit(run, tmp_path) -> None:
    result = run(*AUDIT)
    assert result.exit_code == codes.PROVEN
    assert result.stdout.startswith("Recourse to low risk:")
    assert "everybody" in result.stdout
    assert "What changes together" in result.stdout
    data = json.loads(run(*AUDIT, "--json").stdout)
    assert (data["by"], data["target"], data["everybody"]["people"]) == ("Race", "low risk", 60)
    assert sum(group["people"] for group in data["groups"]) == 60
    assert sum(flips["count"] for flips in data["everybody"]["together"]) == data["everybody"]["recourse"]
    assert data["provenance"]["constraints"] == ["Race is fixed", "Sex is fixed"]
    assert data["everybody"]["actions"]["helped"] <= data["everybody"]["recourse"]
    assert data["everybody"]["needing"] < 60  # some are at low risk already


@pytest.mark.parametrize("ending", ["html", "json", "csv", "svg"])
def test_an_audit_is_written_and_not_written_over(run, tmp_path, ending) -> None:
    path = tmp_path / f"audit.{ending}"
    done = run(*AUDIT, "--output", path)
    assert done.exit_code == codes.PROVEN and "Written to" in done.stderr
    written = path.read_text(encoding="utf-8")
    assert "low risk" in written and "African-American" in written
    path.write_text("mine", encoding="utf-8")
    refused = run(*AUDIT, "--output", path)
    assert (
        refused.exit_code == codes.WRONG_INPUT and "is there already; to write over it, add --force" in refused.stderr
    )
    assert path.read_text(encoding="utf-8") == "mine"
    assert run(*AUDIT, "--output", path, "--force").exit_code == codes.PROVEN
    assert len(path.read_text(encoding="utf-8")) > 1000


def test_an_audit_says_who_is_not_compared_and_what_was_not_asked(run) -> None:
    quiet = json.loads(run(*AUDIT, "--least", 60, "--seed", 7, "--no-why", "--json").stdout)
    assert (quiet["differences"], quiet["least"], quiet["seed"]) == ([], 60, 7)
    assert quiet["everybody"]["blame"] == []


def test_an_audit_by_quantiles_and_months(run, compas, tmp_path: Path) -> None:
    lines = compas.all.read_text(encoding="utf-8").splitlines()[:61]
    table = [f"{line},{'Salary' if i == 0 else 1000 + i},{'Day' if i == 0 else f'2024-0{1 + i % 3}-17'}"
             for i, line in enumerate(lines)]  # fmt: skip
    rows = tmp_path / "more.csv"
    rows.write_text("\n".join(table) + "\n", encoding="utf-8")
    words = (
        "audit",
        "--model",
        compas.model,
        "--schema",
        compas.schema,
        "--rows",
        rows,
        "--target",
        "low risk",
        "--json",
    )
    data = json.loads(run(*words, "--by", "Salary", "--quantiles", 3).stdout)
    assert [group["name"] for group in data["groups"]] == ["1,001 to 1,020", "1,021 to 1,040", "1,041 to 1,060"]
    assert data["by"] == "Salary" and data["provenance"]["data"]["name"] == "more.csv, 60 rows"
    data = json.loads(run(*words, "--by", "Day").stdout)
    assert {group["name"]: group["people"] for group in data["groups"]} == dict.fromkeys(
        ("2024-01", "2024-02", "2024-03"), 20
    )


def test_an_audit_by_a_column_that_the_model_does_not_see(run, compas, tmp_path: Path) -> None:
    lines = compas.few.read_text(encoding="utf-8").splitlines()
    table = [f"{line},{'Region' if i == 0 else 'North' if i % 2 else 'South'}" for i, line in enumerate(lines)]
    rows = tmp_path / "regions.csv"
    rows.write_text("\n".join(table) + "\n", encoding="utf-8")
    words = ("audit", "--model", compas.model, "--schema", compas.schema, "--rows", rows, "--by", "Region")
    data = json.loads(run(*words, "--target", "low risk", "--json").stdout)
    assert [group["name"] for group in data["groups"]] == ["North", "South"]
    assert sum(group["people"] for group in data["groups"]) == len(lines) - 1
    refused = run(*words)
    assert refused.exit_code == codes.WRONG_INPUT
    assert "Say which decision people want with --target" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--by", "Height"), "no column 'Height'"),
        (("--output", "a.gif"), "as .html, .json, .csv or .svg; 'a.gif' is none"),
        (("--output", "nowhere/a.svg"), "its folder is not there"),
        (("--output", "/"), "is none"),
        (("--least", "0"), "'--least': 0 is not in the range x>=1"),
        (("--quantiles", "1"), "'--quantiles': 1 is not in the range 2<=x<=100"),
        (("--seed", "-1"), "'--seed': -1 is not in the range x>=0"),
        (("--method", "search,enumerate"), "An audit is by one method"),
        (("--dataset", "nothing"), "no data set 'nothing'"),
    ],
)
def test_audits_that_make_no_sense(run, words, said) -> None:
    result = run("audit", "--dataset", "compas", "--first", 5, "--target", "low risk", *words)
    assert result.exit_code == codes.WRONG_INPUT
    assert said in result.stderr


def test_the_shipped_networks_speak_in_log_odds() -> None:
    for name in ("adult", "compas", "credit"):
        assert Explainer(network(name)).model.probabilities is not None


def test_options_name_features_by_their_labels(run) -> None:
    """Of any language of the schema."""
    by_name = answers(run(*COMPAS, "--row", 1, "--fix", "PriorsCount,AgeGroup", "--json"))
    for labels in ("number of prior offences, age group", "Zahl der Vorstrafen,Altersgruppe"):
        by_label = answers(run(*COMPAS, "--row", 1, "--fix", labels, "--json"))
        assert [a["constraints"] for a in by_label] == [a["constraints"] for a in by_name]
        assert [a["distance"] for a in by_label] == [a["distance"] for a in by_name]
    assert "did you mean" in run(*COMPAS, "--row", 1, "--fix", "PriorCount").stderr
