"""The attacker: a short run finds nothing, and planted faults are found, made small, and replayed."""

import json
from fractions import Fraction

import pytest

from benchmarks.attack import constraints, distance, rules, target
from benchmarks.attack.__main__ import main
from benchmarks.attack.kinds import KINDS
from benchmarks.attack.network import Deployed, exact
from benchmarks.attack.planted import plant
from benchmarks.attack.shrink import fault_kind, shrunk
from benchmarks.attack.work import drawn, run

AGE = {"kind": "integer", "name": "age", "lower": 20, "upper": 70, "step": 1}
INCOME = {"kind": "real", "name": "income", "lower": 0.0, "upper": 1000.0}
RATING = {"kind": "ordinal", "name": "rating", "levels": ["low", "mid", "high", "top"]}
JOB = {"kind": "categorical", "name": "job", "categories": ["clerk", "nurse"]}


@pytest.mark.long
def test_a_short_run_finds_nothing(tmp_path, capsys):
    ended = main(["--seconds", "15", "--seed", "11", "--jobs", "1", "--shrink-seconds", "2", "--keep", str(tmp_path)])
    said = capsys.readouterr().out
    assert ended == 0, said
    assert all(kind in said for kind in KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_case_is_plain_json_and_the_same_every_time(kind):
    case = drawn(kind, 5, 3)
    assert case == drawn(kind, 5, 3) == json.loads(json.dumps(case))
    assert case["kind"] == kind


# ---------------------------------------------------------------------- it can fail


def found(name, kind, monkeypatch, most=300):
    """The first case that fails with the planted fault, and only with it."""
    for number in range(most):
        case = drawn(kind, 4, number)
        with monkeypatch.context() as patched:
            plant(name, patched.setattr)
            told = run(case)
        if told["faults"] and not run(case)["faults"]:
            return case, told
    raise AssertionError(f"'{name}' is not found in {most} cases of '{kind}'")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("wrong bound", "limits"),
        ("narrow range", "edges"),
        ("lost step", "edges"),
        ("believing checker", "forged"),
        ("small error", "float32"),
        ("raw error", "files"),
    ],
)
def test_a_planted_fault_is_found(name, kind, monkeypatch):
    found(name, kind, monkeypatch)


def test_a_failing_case_is_made_smaller(monkeypatch):
    case, told = found("narrow range", "edges", monkeypatch)
    plant("narrow range", monkeypatch.setattr)
    small = shrunk(case, told, run, seconds=300)
    assert fault_kind(run(small)) == fault_kind(told)
    assert len(json.dumps(small)) < len(json.dumps(case))


@pytest.mark.long
def test_a_hang_is_a_failure_that_can_be_replayed(tmp_path, capsys):
    words = ["--only", "limits", "--jobs", "1", "--cases", "1", "--case-seconds", "2", "--plant", "endless"]
    assert main([*words, "--seconds", "600", "--shrink-seconds", "0.1", "--keep", str(tmp_path), "--no-warm"]) == 1
    assert "hang" in capsys.readouterr().out
    (kept,) = tmp_path.iterdir()
    assert main(["--case", str(kept), "--case-seconds", "600"]) == 0  # without the planted fault


# ---------------------------------------------------------------------- the oracles, by hand


def test_the_distance_is_that_of_the_worked_example():
    features = [AGE, INCOME, RATING, JOB]
    before, after = (30, 100.0, "low", "clerk"), (35, 100.0, "high", "nurse")
    told = [round(distance.between(features, before, after, {"norm": n}), 4) for n in ("l0", "l1", "l2", "linf")]
    assert told == [0.75, 0.4, 0.5612, 0.25]
    assert distance.between(features, before, after, {"norm": "l1", "up": {"age": 4}}) == 0.475


def test_steps_and_shares_are_the_decimals_that_people_write():
    rate = {"kind": "real", "name": "rate", "lower": 0.0, "upper": 10.0}
    steps = {"is": "steps", "of": "rate", "step": "0.1"}
    assert constraints.allows(steps, [rate], (5.27,), (5.57,))
    assert constraints.allows({"is": "by", "of": "rate", "most": "0.3"}, [rate], (5.27,), (5.57,))
    assert not constraints.allows(steps, [rate], (5.27,), (5.571,))
    assert 5.57 in (constraints.lattice(rate, 5.27, [steps]) or [])
    percent = {"is": "percent", "of": "x", "most": "57"}
    whole = {"kind": "integer", "name": "x", "lower": 0, "upper": 100, "step": 1}
    assert constraints.allows(percent, [whole], (100,), (43,))
    assert not constraints.allows(percent, [whole], (100,), (42,))


def test_free_lifts_what_holds_for_everybody_about_the_feature_alone():
    alone = {"is": "rule", "rule": ["sum", [["1", "age"]], "!=", "30"]}
    both = {"is": "rule", "rule": ["sum", [["1", "age"], ["1", "income"]], "<=", "90"]}
    free = {"is": "free", "of": "age"}
    assert constraints.merged([alone], [both], [free]) == [both]
    assert constraints.merged([], [alone], []) == [alone]


def test_a_rule_and_its_text_say_the_same():
    from ifonly import Categorical, Integer, Ordinal, Schema
    from ifonly.problem.rules import read_constraint

    features = [AGE, RATING, JOB]
    tree = [
        "if",
        ["level", "rating", ">=", "mid"],
        ["or", ["sum", [["2", "age"]], "<", "70"], ["in", "job", ["nurse"]]],
    ]
    assert rules.text(tree) == "if (rating >= mid) then ((2 * age < 70) or (job in (nurse)))"
    assert rules.holds(tree, features, (34, "top", "clerk")) and not rules.holds(tree, features, (35, "top", "clerk"))
    schema = Schema(
        [Integer("age", 20, 70), Ordinal("rating", RATING["levels"]), Categorical("job", ["clerk", "nurse"])]
    )
    assert read_constraint(rules.text(tree), schema)


def test_exact_scores_and_deployed_ones():
    layers = [{"w": [[0.1, -1.0]], "b": [0.3]}, {"w": [[2.0]], "b": [-0.25]}]
    assert exact(layers, [1.0, 0.0]) == [2 * (Fraction(0.1) + Fraction(0.3)) - Fraction(1, 4)]
    said = Deployed([INCOME, AGE], layers, "float32").scores((1.0, 0))
    assert said == pytest.approx([0.55], rel=1e-6) and said != [0.55]


@pytest.mark.parametrize(
    ("asked", "scores", "met"),
    [
        ({"class": 1, "margin": 0.0}, [0.0], False),
        ({"class": 0, "margin": 0.0}, [0.0], True),
        ({"class": 0, "margin": 0.0}, [1.0, 1.0], True),
        ({"class": 1, "margin": 0.0}, [1.0, 1.0], False),
        ({"one_of": [1, 2], "margin": 0.5}, [0.0, 0.6, 0.6], True),
        ({"top": 2, "k": 2, "margin": 0.1}, [3.0, 1.0, 2.0], True),
        ({"top": 1, "k": 2, "margin": 0.1}, [3.0, 1.0, 2.0], False),
        ({"other": True, "margin": 0.1}, [1.0, 1.05, 0.0], False),
        ({"score": [0.5, 1.0], "output": 0, "margin": 0.1}, [0.95], False),
    ],
)
def test_targets(asked, scores, met):
    assert target.met(asked, scores, 0) is met
