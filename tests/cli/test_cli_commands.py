"""The other commands: demo, schema, model, datasets, doctor; and the help."""

from __future__ import annotations

import importlib
import json
import pickle
import shlex

import pytest

from ifonly import Real, Schema, datasets
from ifonly.cli import codes
from ifonly.cli.app import app
from ifonly.model import load_network


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["compas", "credit", "adult"])
def test_demo(run, name):
    result = run("demo", "--dataset", name)
    assert result.exit_code == codes.PROVEN
    assert datasets.load(name, rules=False).title in result.stdout
    assert "No smaller allowed change would have been enough." in result.stdout
    assert "Try next" in result.stdout


def test_the_demo_proposes_commands_that_work(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proposed = json.loads(run("demo", "--dataset", "compas", "--json").stdout)["next"]
    assert len(proposed) == 2
    for command in proposed:
        words = shlex.split(command)
        assert words[0] == "ifonly" and run(*words[1:]).exit_code == codes.PROVEN


def test_demo_of_several_people(run):
    result = run("demo", "--dataset", "compas", "--rows", 3, "--distance", "l0")
    assert result.exit_code == codes.PROVEN and "3 (100%) proven nearest" in result.stdout
    answers = json.loads(run("demo", "--dataset", "compas", "--rows", 3, "--json").stdout)["answers"]
    assert {answer["decision_before"] for answer in answers} == {"high risk"}
    assert len({answer["row"] for answer in answers}) == 3


def test_schema_infer(run, tmp_path):
    table, file = tmp_path / "people.csv", tmp_path / "schema.json"
    header = ",Age,Income,Job,Member,Score,Label"
    rows = ["0,31,10.5,clerk,0,1,y", "1,42,NA,cook,1,2,n", "2,55,7,,1,3,y"]
    table.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    result = run("schema", "infer", table, "--drop", "Label", "--output", file)
    assert result.exit_code == 0 and "guess" in result.stdout and f"Written to {file}." in result.stderr
    schema = Schema.load(file)
    assert {f.name: f.kind for f in schema} == {
        "Age": "integer", "Income": "real", "Job": "categorical", "Member": "binary", "Score": "integer",
    }  # fmt: skip
    assert schema["Income"] == Real("Income", 7, 10.5, step=0.01, missing=True)
    run("schema", "infer", table, "--step", "Income=2.5", "--step", "Age=1/12", "--output", file, "--force")
    assert Schema.load(file)["Income"] == Real("Income", 5, 12.5, step=2.5, missing=True)
    assert "5 to 12.5 in steps of 2.5" in run("schema", "show", file).stdout
    assert "31 to 55 in steps of 1/12" in run("schema", "show", file).stdout
    data = json.loads(run("schema", "infer", table, "--json").stdout)
    assert [guess["feature"] for guess in data["guesses"]] == [f["name"] for f in data["schema"]["features"]]


def test_schema_show(run, compas):
    result = run("schema", "show", compas.schema)
    assert "AgeGroup      ordinal  <25, 25-45, >45                    3" in result.stdout
    assert "936 rows" in result.stdout
    assert "number of prior offences" in result.stdout  # the label, beside the name
    assert json.loads(run("schema", "show", compas.schema, "--json").stdout)["format"] == "ifonly-schema"


def test_model_show_and_convert(run, compas, tmp_path):
    shown = json.loads(run("model", "show", compas.model, "--json").stdout)
    assert (shown["inputs"], shown["hidden"], shown["classes"]) == (7, [10, 10], ["low risk", "high risk"])
    assert "fingerprint" in run("model", "show", compas.model).stdout
    as_json, back = tmp_path / "net.json", tmp_path / "net.npz"
    assert run("model", "convert", compas.model, as_json).exit_code == 0
    assert run("model", "convert", as_json, back, "--schema", compas.schema).exit_code == 0
    network, classes = load_network(back)
    assert network.fingerprint == shown["fingerprint"] and list(classes) == shown["classes"]
    agreed = json.loads(run("model", "show", back, "--schema", compas.schema, "--json").stdout)
    assert agreed["deviation"] == 0.0


@pytest.mark.long
def test_trees_of_a_library_are_shown_converted_and_asked(run, compas, tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is an extra")
    data = datasets.load("compas", rules=False)
    file, own = tmp_path / "boosted.ubj", tmp_path / "boosted.npz"
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1).fit(data.encoded(), data.labels)
    model.get_booster().save_model(file)
    schema = ("--schema", compas.schema)
    shown = json.loads(run("model", "show", file, *schema, "--json").stdout)
    assert (shown["trees"], shown["depth"], shown["deviation"]) == (10, 3, 0.0)
    assert run("model", "convert", file, own, *schema, "--classes", "low,high").exit_code == 0
    assert json.loads(run("model", "show", own, *schema, "--json").stdout)["classes"] == ["low", "high"]
    assert "say what a row is with --schema FILE" in run("model", "show", own).stderr
    asked = ("explain", *schema, "--rows", compas.few, "--method", "enumerate", "--json")
    first = json.loads(run(*asked, "--model", own, "--target", "low").stdout)["answers"]
    second = json.loads(run(*asked, "--model", file, "--classes", "low,high", "--target", "low").stdout)["answers"]
    assert [a["counterfactual"] for a in first] == [a["counterfactual"] for a in second] and len(first) == 6
    words = ("explain", *schema, "--rows", compas.few, "--model", own, "--target", "low")
    compared = run(*words, "--method", "enumerate,mip-obj,mip-exp")
    assert compared.exit_code == codes.PROVEN and "No contradiction in 6 rows." in compared.stdout


def test_a_table_of_points_is_a_model(run, compas, tmp_path):
    card, own = tmp_path / "card.csv", tmp_path / "card.npz"
    lines = ["feature,bin,points", ",cutoff,20", "PriorsCount,< 2,0", "PriorsCount,<= 5,15", "PriorsCount,other,30"]
    card.write_text("\n".join(lines))
    words = ("--schema", compas.schema, "--classes", "low,high")
    shown = json.loads(run("model", "show", card, *words, "--json").stdout)
    assert (shown["kind"], shown["trees"], shown["leaves"], shown["deviation"]) == ("scorecard", 1, 3, 0.0)
    assert "say what a row is with --schema FILE" in run("model", "show", card).stderr
    assert run("model", "convert", card, own, *words).exit_code == 0
    asked = ("explain", *words, "--rows", compas.few, "--target", "low", "--json")
    first, second = (json.loads(run(*asked, "--model", file).stdout)["answers"] for file in (card, own))
    assert [a["counterfactual"] for a in first] == [a["counterfactual"] for a in second]
    assert all(a["counterfactual"]["PriorsCount"] <= 5 for a in first)
    card.write_text("feature,bin,points\nPriorsCount,over 5,1\n")
    assert "line 2: a bin is '< 25'" in run("model", "show", card, *words).stderr


@pytest.mark.long
def test_datasets(run, tmp_path):
    listed = json.loads(run("datasets", "--json").stdout)["datasets"]
    assert [d["name"] for d in listed] == list(datasets.names())
    assert "deny / approve" in run("datasets").stdout
    folder = tmp_path / "a" / "b"
    files = json.loads(run("datasets", "export", "credit", folder, "--json").stdout)
    assert sorted(p.name for p in folder.iterdir()) == ["credit.csv", "credit.npz", "credit.schema.json"]
    assert Schema.load(files["schema"]) == datasets.load("credit").schema
    words = [w for what, file in files.items() for w in (f"--{what}", file)]
    assert run("explain", *words, "--first", 2).exit_code == codes.PROVEN


def test_doctor(run, monkeypatch):
    found = json.loads(run("doctor", "--json").stdout)
    assert found["packages"]["numpy"] and found["usable_cores"] >= 1
    assert set(found["backends"]) == {"highspy", "gurobipy", "pyscipopt", "z3"}
    assert set(found["kernel_cache"]) == {"where", "writable", "files"}
    assert "Solver backends" in run("doctor").stdout


def test_doctor_survives_a_broken_installation(run, monkeypatch):
    real = importlib.import_module

    def broken(name: str, *rest: object) -> object:
        if name == "highspy":
            raise OSError("libhighs.so: cannot open shared object file")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", broken)
    found = json.loads(run("doctor", "--json").stdout)["backends"]["highspy"]
    assert not found["imports"] and "libhighs.so" in found["why"]


def test_doctor_knows_every_extra():
    import importlib.metadata

    from ifonly.cli.doctor import EXTRAS

    declared = set(importlib.metadata.metadata("ifonly").get_all("Provides-Extra") or [])
    assert declared - {"all", "test", "extras"} <= set(EXTRAS) | {"docs", "browser"}
    assert set(EXTRAS) <= declared


def test_help_lists_commands_and_exit_codes(run):
    for words in (["--help"], ["-h"], []):
        result = run(*words)
        assert result.exit_code == 0 and "130  interrupted" in result.stdout
        assert [c for c in app.commands if f"\n  {c} " not in result.stdout] == []
    assert "--only-down" in run("explain", "--help").stdout
    assert run("--version").stdout.startswith("ifonly ")
    for group in ("schema", "model"):
        assert run(group).exit_code == 0
    for command in app.commands:
        assert "None" not in run(command, "--help").stdout  # such as the range of a number without bounds


def test_every_command_speaks_json():
    def leaves(command):
        inner = getattr(command, "commands", {})
        return [leaf for c in inner.values() for leaf in leaves(c)] if inner else [command]

    for command in leaves(app):
        assert "--json" in [o for p in command.params for o in p.opts], command.name


def test_a_pickled_model_is_converted_and_asked(run, compas, tmp_path):
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is an extra")
    data = datasets.load("compas", rules=False)
    pickled, converted = tmp_path / "model.pkl", tmp_path / "model.npz"
    pickled.write_bytes(pickle.dumps(linear.LogisticRegression(max_iter=1000).fit(data.encoded(), data.labels)))
    assert run("model", "convert", pickled, converted, "--schema", compas.schema).exit_code == codes.WRONG_INPUT
    words = ("--schema", compas.schema, "--unsafe-pickle", "--classes", "low,high")
    assert run("model", "convert", pickled, converted, *words).exit_code == 0
    question = ("--schema", compas.schema, "--rows", compas.few, "--target", "low", "--json")
    original = run("explain", "--model", pickled, "--unsafe-pickle", "--classes", "low,high", *question)
    copy = run("explain", "--model", converted, *question)
    assert original.exit_code == copy.exit_code == codes.PROVEN
    first, second = (json.loads(result.stdout)["answers"] for result in (original, copy))
    assert [a["counterfactual"] for a in first] == [a["counterfactual"] for a in second]


def test_a_regression_stays_one(run, compas, tmp_path):
    file = tmp_path / "regression.npz"
    assert run("model", "convert", compas.model, file, "--regression").exit_code == 0
    shown = json.loads(run("model", "show", file, "--json").stdout)
    assert (shown["task"], shown["classes"]) == ("regression", [])
    words = ("explain", "--model", file, "--schema", compas.schema, "--rows", compas.few)
    assert "Say which decision is wanted" in run(*words).stderr
    answers = json.loads(run(*words, "--at-most", -0.2, "--json").stdout)["answers"]
    assert all(answer["score_after"] <= -0.2 and answer["decision_after"] is None for answer in answers)


def test_a_step_keeps_what_else_was_found(run, tmp_path):
    """The kind, the unit, and that a value may be missing."""
    table, file = tmp_path / "people.csv", tmp_path / "schema.json"
    table.write_text("Term,Pay,Rate\n12,$10.50,0.5\n24,$30.00,0.25\n36,,0.75\n60,$12.25,0.125\n", encoding="utf-8")
    result = run(
        "schema", "infer", table, "--step", "Term=12", "--step", "Pay=10", "--step", "Rate=0.05", "--output", file
    )
    assert result.exit_code == codes.PROVEN and "--step: 12" in result.stdout
    term, pay, rate = json.loads(file.read_text())["features"]
    assert term == {"kind": "integer", "name": "Term", "lower": 12, "upper": 60, "step": 12}
    assert pay == {
        "kind": "real", "name": "Pay", "lower": 10.0, "upper": 30.0, "unit": "$", "missing": True, "step": 10.0,
    }  # fmt: skip
    assert (rate["kind"], rate["lower"], rate["upper"], rate["step"]) == ("real", 0.1, 0.75, 0.05)
