"""`ifonly explain`: questions, files in and out, exit codes."""

from __future__ import annotations

import csv
import json
import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ifonly import ClassTarget, Explainer, Limits, Network
from ifonly.cli import codes
from ifonly.cli.shipped import network
from ifonly.methods import Enumerate
from ifonly.model import network_model
from ifonly.results import Claim, Stop, StoppedBy
from ifonly.results.records import COLUMNS
from ifonly.schema.io import schema_from_json
from ifonly.solvers import search


class Pretender:
    """A method that claims what it is told to, and may stop after a number of calls."""

    name = "pretender"

    def __init__(self, claim: Any, *, calls: int | None = None, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.claim, self.calls, self.error = claim, calls, error

    def prepare(self, question: Any, tolerances: Any = None) -> Pretender:
        return self

    def solve(self, points: Any, limits: Limits, *, threads: int = 1, listen: Any = None) -> list[Claim]:
        if self.calls is not None:
            self.calls -= 1
            if self.calls < 0:
                raise self.error("stop")
        return [self.claim(point) for point in points]


def none_exists(point: Any) -> Claim:
    return Claim(point=None, lower=math.inf, method="pretender")


def gives_up(point: Any) -> Claim:
    return Claim(point=None, lower=0.0, method="pretender", stop=Stop(StoppedBy.SECONDS, 1.0))


@pytest.fixture(autouse=True)
def _contradictions_are_saved_here(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def document(result: Any) -> Any:
    return json.loads(result.stdout)


def test_one_row_is_told_in_full(run, compas):
    result = run(*compas.words(), "--row", 3, "--method", "enumerate")
    assert result.exit_code == codes.PROVEN
    text = result.stdout.splitlines()
    assert text[:15] == [
        "Row 3: decided high risk, wanted low risk",
        "",
        "  feature                   now          instead",
        "  age group                 25-45",
        "  race                      Caucasian",
        "  sex                       Male",
        "* number of prior offences  5            3",
        "  degree of the charge      Misdemeanor",
        "",
        "If your number of prior offences had been 3 instead of 5, the decision would have changed to low risk. No smaller "
        "allowed change would have been enough.",
        "",
        "decision  high risk -> low risk",
        "score     0.173974 -> -0.158275",
        "distance  0.0105263 (l1)",
        "proven    nothing nearer than 0.0105263 exists (gap 0)",
    ]
    assert text[15].startswith("time      ") and text[15].endswith("(enumerate, 936 nodes)")


def test_the_answers_are_those_of_the_library(run, compas):
    found = document(run(*compas.words(), "--json"))["answers"]
    with compas.few.open(encoding="utf-8") as lines:
        answers = Explainer(network("compas")).explain_many(list(csv.DictReader(lines)))
    same = ("row", "status", "distance", "lower_bound", "changes", "counterfactual", "decision_after")
    assert [{k: a[k] for k in same} for a in found] == [{k: a.to_dict()[k] for k in same} for a in answers]


def test_a_dataset_is_its_exported_files(run, compas):
    with_files = document(run(*compas.words(), "--json"))["answers"]
    shipped = document(run("explain", "--dataset", "compas", "--first", 6, "--json"))["answers"]
    assert [a["counterfactual"] for a in with_files] == [a["counterfactual"] for a in shipped]


def test_a_dataset_can_fill_in_what_is_not_given(run, compas, tmp_path):
    reference = document(run(*compas.words(), "--json"))["answers"]
    for words in (["--rows", compas.few], ["--rows", compas.few, "--model", compas.model],
                  ["--rows", compas.few, "--schema", compas.schema]):  # fmt: skip
        found = document(run("explain", "--dataset", "compas", *words, "--json"))["answers"]
        assert [a["distance"] for a in found] == [a["distance"] for a in reference]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_output_by_its_ending(run, compas, tmp_path, suffix):
    output = tmp_path / f"answers{suffix}"
    result = run(*compas.words(), "--output", output)
    assert result.exit_code == codes.PROVEN
    assert f"Written to {output}." in result.stderr
    records = _records(output)
    assert [list(record) for record in records] == [[*COLUMNS, "note"]] * 6
    assert [int(record["row"]) for record in records] == list(range(6))
    assert {record["status"] for record in records} == {"nearest"}
    first = records[0]
    changes = first["changes"] if isinstance(first["changes"], list) else json.loads(first["changes"])
    assert changes == [{"feature": "PriorsCount", "from": 0, "to": 8}]
    assert float(first["distance"]) == pytest.approx(8 / 38 / 5)
    assert sorted(tmp_path.iterdir()) == [output, output.with_name(f"{output.name}.manifest.json")]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_by_their_ending(run, compas, tmp_path, suffix):
    with compas.few.open(encoding="utf-8") as lines:
        rows = [{**row, "PriorsCount": int(row["PriorsCount"])} for row in csv.DictReader(lines)]
    path = tmp_path / f"rows{suffix}"
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    reference = document(run(*compas.words(), "--json"))["answers"]
    found = document(run(*compas.words(path), "--json"))["answers"]
    assert [a["counterfactual"] for a in found] == [a["counterfactual"] for a in reference]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(run, compas, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + compas.few.read_bytes().replace(b"\n", b"\r\n"))
    assert run(*compas.words(path)).exit_code == codes.PROVEN


def test_parquet_of_only_failed_rows_keeps_its_types(run, compas, tmp_path):
    import pyarrow.parquet as pq

    path, output = tmp_path / "rows.csv", tmp_path / "answers.parquet"
    path.write_text("AgeGroup,Race,Sex,PriorsCount,ChargeDegree\n25-45,Caucasian,Male,many,Felony\n", encoding="utf-8")
    assert run(*compas.words(path), "--output", output).exit_code == codes.ERROR_ROWS
    types = {field.name: str(field.type) for field in pq.read_schema(output)}
    assert types["distance"] == types["score_before"] == "double"
    assert types["counterfactual"] == types["note"] == "string" and types["row"] == "int64"


# ---------------------------------------------------------------------- the question


def test_constraints_reach_the_search(run, compas):
    words = ("--row", 3, "--json")
    fixed = document(run(*compas.words(), *words, "--fix", "PriorsCount"))["answers"][0]
    assert fixed["counterfactual"] is None or fixed["counterfactual"]["PriorsCount"] == 5
    up = document(run(*compas.words(), *words, "--only-up", "PriorsCount"))["answers"][0]
    assert up["counterfactual"] is None or up["counterfactual"]["PriorsCount"] >= 5
    ranged = document(run(*compas.words(), *words, "--range", "PriorsCount", 0, 1))["answers"][0]
    assert ranged["counterfactual"]["PriorsCount"] == 1
    allowed = document(run(*compas.words(), *words, "--allow", "AgeGroup", "<25, >45"))["answers"][0]
    assert allowed["counterfactual"]["AgeGroup"] in ("<25", ">45")
    down = document(run(*compas.words(), *words, "--only-down", "PriorsCount"))["answers"][0]
    assert down["counterfactual"]["PriorsCount"] == 3


def test_rules_in_words_reach_the_search(run, compas):
    words = (*compas.words(), "--row", 3, "--json", "--method", "enumerate")
    other = document(run(*words, "--rule", "PriorsCount != 3"))["answers"][0]
    assert other["counterfactual"]["PriorsCount"] == 2
    rules = (
        "--rule",
        "if PriorsCount < 5 then AgeGroup > '25-45'",
        "--rule",
        "at most 1 change",
        "--rule",
        "Race is fixed",
    )
    few = document(run(*words, *rules))["answers"][0]
    assert (few["status"], len(few["changes"])) == ("nearest", 1)
    assert few["counterfactual"]["PriorsCount"] >= 5 and few["counterfactual"]["AgeGroup"] == ">45"


def test_sentences_as_people_begin_them_reach_the_search(run, compas):
    words = (*compas.words(), "--row", 3, "--json")
    for rules in (("Only PriorsCount may change",), ("At most one change", "AgeGroup is fixed", "PriorsCount < 1 000")):
        found = document(run(*words, *(word for rule in rules for word in ("--rule", rule))))["answers"][0]
        assert [change["feature"] for change in found["changes"]] == ["PriorsCount"], rules
    unknown = run(*words, "--rule", "fraud rejects")
    assert unknown.exit_code != 0 and "No model called 'fraud' is known here" in unknown.stderr


def test_all_fixed_means_none_exists_and_that_is_an_answer(run, compas):
    fixes = [w for f in ("AgeGroup", "Race", "Sex", "PriorsCount", "ChargeDegree") for w in ("--fix", f)]
    result = run(*compas.words(), "--row", 3, *fixes)
    assert result.exit_code == codes.PROVEN
    assert "No allowed change turns the decision into low risk" in result.stdout


@pytest.mark.parametrize("distance", ["l0", "l1", "l2", "linf", "0.2*l0+0.8*l1", " 0.5*l0 + l1"])
def test_distances(run, compas, distance):
    result = run(*compas.words(), "--distance", distance, "--method", "search,enumerate", "--json")
    assert result.exit_code == codes.PROVEN and document(result)["contradictions"] == []


def test_weights_and_scales(run, compas):
    plain = document(run(*compas.words(), "--row", 3, "--json"))["answers"][0]
    heavy = document(run(*compas.words(), "--row", 3, "--weight", "PriorsCount", 2, "--json"))["answers"][0]
    assert heavy["distance"] == pytest.approx(2 * plain["distance"])
    scaled = document(run(*compas.words(), "--row", 3, "--scale", "std", "--data", compas.all, "--json"))["answers"][0]
    assert scaled["distance"] > plain["distance"]
    shipped = document(run("explain", "--dataset", "compas", "--row", 3, "--scale", "mad", "--json"))["answers"][0]
    assert shipped["distance"] > plain["distance"]


def test_margin_without_a_target_is_for_the_other_class(run, compas):
    answers = document(run(*compas.words(), "--margin", 0.5, "--json"))["answers"]
    assert {answer["target"] for answer in answers} == {"low risk", "high risk"}
    assert all(abs(answer["score_after"]) >= 0.5 for answer in answers)
    assert [answer["row"] for answer in answers] == list(range(6))


def test_score_targets(run, compas):
    above = document(run(*compas.words(), "--at-least", 0.4, "--json"))["answers"]
    assert all(answer["score_after"] >= 0.4 for answer in above)
    between = document(run(*compas.words(), "--at-least", -0.3, "--at-most", -0.1, "--json"))["answers"]
    assert all(-0.3 <= answer["score_after"] <= -0.1 for answer in between)


def test_classes_can_be_renamed(run, compas):
    answers = document(run(*compas.words(), "--classes", "no,yes", "--target", "no", "--json"))["answers"]
    assert {answer["decision_after"] for answer in answers} == {"no"}
    assert any(not answer["changes"] for answer in answers)


def test_rows_that_read_the_same_get_the_same_answer(run, compas, tmp_path):
    path = tmp_path / "rows.csv"
    lines = compas.few.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, *lines[1:]]) + "\n", encoding="utf-8")
    answers = document(run(*compas.words(path), "--json"))["answers"]
    assert [a["row"] for a in answers] == list(range(12))
    assert [a["counterfactual"] for a in answers[:6]] == [a["counterfactual"] for a in answers[6:]]


def test_several_methods_are_compared(run, compas):
    result = run(*compas.words(), "--method", "search,enumerate")
    assert result.exit_code == codes.PROVEN
    assert "Method search" in result.stdout and "Method enumerate" in result.stdout
    assert "No contradiction in 6 rows." in result.stdout


# ---------------------------------------------------------------------- exit codes


def test_an_error_row_does_not_stop_the_rest(run, compas, tmp_path):
    path = tmp_path / "rows.csv"
    text = compas.few.read_text(encoding="utf-8")
    bad = "25-45,Caucasian,Male,NaN,Felony\n,Caucasian,Male,1,Felony\n25-45,Caucasian\n"
    path.write_text(text + bad, encoding="utf-8")
    result = run(*compas.words(path), "--json")
    assert result.exit_code == codes.ERROR_ROWS
    answers = document(result)["answers"]
    assert [a["status"] for a in answers] == ["nearest"] * 6 + ["error"] * 3
    assert "'PriorsCount' must be an integer" in answers[6]["note"] and "row 6" in answers[6]["note"]
    assert "'AgeGroup' has no value in row 7" in answers[7]["note"]
    assert "'Sex' has no value in row 8" in answers[8]["note"]


def test_a_limit_gives_exit_code_one(run, compas, monkeypatch):
    monkeypatch.setattr(search, "Search", lambda: Pretender(gives_up))
    result = run(*compas.words(), "--method", "search")
    assert result.exit_code == codes.LIMIT
    assert "time limit" in result.stdout


def test_a_node_limit_of_one(run):
    result = run("explain", "--dataset", "credit", "--row", 0, "--node-limit", 1)
    assert result.exit_code == codes.LIMIT and "node limit" in result.stdout


def test_a_contradiction_gives_exit_code_four(run, compas, monkeypatch):
    monkeypatch.setattr(search, "Search", lambda: Pretender(none_exists))
    result = run(*compas.words(), "--method", "search,enumerate")
    assert result.exit_code == codes.CONTRADICTION
    assert "6 of 6 rows are contradictions." in result.stdout
    assert result.stderr.startswith("error: Row 0: method 'pretender' claims that none exists, but method 'enumerate'")
    as_json = document(run(*compas.words(), "--method", "search,enumerate", "--json"))
    assert as_json["contradictions"][0]["lower_bound"] is None


def test_a_contradiction_is_saved_with_everything_that_reproduces_it(run, compas, monkeypatch, tmp_path):
    monkeypatch.setattr(search, "Search", lambda: Pretender(none_exists))
    result = run(*compas.words(), "--method", "search,enumerate", "--distance", "l2", "--margin", "0.05")
    assert result.exit_code == codes.CONTRADICTION
    files = sorted(tmp_path.glob("ifonly-contradiction-*.json"))
    assert len(files) == 3 and all(str(path) in result.stderr for path in files)
    for kept in (json.loads(path.read_text()) for path in files):
        assert kept["said"]["bound_by"] == "pretender" and kept["said"]["found_by"] == "enumerate"
        schema = schema_from_json(kept["schema"])
        numbers = np.vectorize(float.fromhex)
        network = Network.of([(numbers(one["weight"]), numbers(one["bias"])) for one in kept["model"]["network"]])
        model = network_model(network, schema, classes=tuple(kept["classes"]))
        wanted = kept["question"]["target"]
        again = (
            Explainer(model)
            .using(Enumerate())
            .explain(
                schema.row(np.array(kept["factual"])),
                target=ClassTarget(wanted["class"], wanted["margin"]),
                distance="l2",
            )
        )
        assert again.upper == pytest.approx(kept["said"]["distance"], abs=1e-12)


def test_a_bound_beyond_a_found_row_is_a_contradiction(run, compas, monkeypatch):
    far = Pretender(lambda point: Claim(point=None, lower=0.5, method="pretender", stop=Stop(StoppedBy.SECONDS, 1.0)))
    monkeypatch.setattr(search, "Search", lambda: far)
    result = run(*compas.words(), "--method", "search,enumerate")
    assert result.exit_code == codes.CONTRADICTION and "nothing is nearer than 0.5" in result.stderr


def test_a_method_that_contradicts_itself(run, compas, monkeypatch):
    liar = Pretender(lambda point: Claim(point=np.array([2.0, 1.0, 1.0, 0.0, 0.0]), lower=0.9, method="pretender"))
    monkeypatch.setattr(search, "Search", lambda: liar)
    result = run(*compas.words(), "--method", "search", "--target", "low risk")
    assert result.exit_code == codes.CONTRADICTION


def lies_of_one(point):
    """A wrong row for who has many priors; for the others, none."""
    if point[3] > 3.0:
        return Claim(point=np.full(5, 0.5), lower=0.0, method="pretender")
    return Claim(point=None, lower=np.inf, method="pretender")


def test_a_bug_that_some_rows_meet_ends_neither_an_audit_nor_an_explanation(run, compas, monkeypatch, tmp_path):
    monkeypatch.setattr(search, "Search", lambda: Pretender(lies_of_one))
    words = (*compas.words()[1:], "--target", "low risk", "--method", "search")
    told = run("explain", *words, "--json")
    assert told.exit_code == codes.CONTRADICTION
    statuses = [answer["status"] for answer in document(told)["answers"]]
    bugs = statuses.count("error")
    assert len(statuses) == 6 and 0 < bugs < 6 and "A bug in ifonly, please report it" in told.stdout
    audited = run("audit", *words, "--json", "--output", tmp_path / "audit.json")
    assert audited.exit_code == codes.CONTRADICTION
    assert f"{bugs} of 6 rows show a bug" in audited.stderr
    assert document(audited)["contradictions"] == document(audited)["failed"] == bugs
    assert (tmp_path / "audit.json").exists()
    several = run("diverse", *words, "-k", 2)
    assert several.exit_code == codes.CONTRADICTION and several.stderr.count("returned a wrong row") == bugs


def test_an_audit_that_is_interrupted_says_what_it_knows(run, monkeypatch):
    monkeypatch.setattr(search, "Search", lambda: Pretender(none_exists, calls=3))
    result = run("audit", "--dataset", "compas", "--first", 60, "--method", "search", "--no-why", "--not")
    assert result.exit_code == codes.INTERRUPTED and "of about 60 rows are answered." in result.stderr
    assert "everybody" in result.stdout


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_contradiction_in_a_stream_costs_its_row_and_is_said(run, compas, monkeypatch, tmp_path, form):
    def claim(point: Any) -> Claim:
        if point[3] <= 2.0:
            return none_exists(point)
        return Claim(point=np.array([2.0, 1.0, 1.0, 0.0, 0.0]), lower=0.9, method="pretender")

    monkeypatch.setattr(search, "Search", lambda: Pretender(claim))
    output = tmp_path / "answers.jsonl"
    words = (*compas.words(compas.all), "--method", "search", "--target", "low risk", "--output", output, *form)
    result = run(*words)
    statuses = Counter(one["status"] for one in _records(output))
    assert statuses["error"] and statuses["none exists"]
    assert result.exit_code == codes.CONTRADICTION
    said = f"error: {statuses['error']:,} of {statuses.total():,} rows show a bug: their records in '{output}'"
    assert said in result.stderr and "please report it" in result.stderr
    if form:
        assert json.loads(result.stdout)["contradictions"] == statuses["error"]
    again = run(*words)  # finished, and still said
    assert again.exit_code == codes.CONTRADICTION


def test_what_was_answered_before_ctrl_c_is_shown(run, compas, monkeypatch):
    monkeypatch.setattr(search, "Search", lambda: Pretender(none_exists, calls=2))
    shown = run(*compas.words(), "--method", "search", "--target", "low risk", "--margin", "50", "--json")
    assert shown.exit_code == codes.INTERRUPTED and len(document(shown)["answers"]) == 3


# ---------------------------------------------------------------------- a stream


@pytest.fixture
def named(compas, tmp_path):
    """The rows with a column that names them."""
    lines = compas.all.read_text(encoding="utf-8").splitlines()[:400]
    path = tmp_path / "named.csv"
    path.write_text(
        "\n".join([lines[0] + ",Customer ID", *(f"{line},c{i}" for i, line in enumerate(lines[1:]))]) + "\n"
    )
    return path


@pytest.fixture
def small_parts(monkeypatch):
    from ifonly.population import output as parts
    from ifonly.population import run, sources

    monkeypatch.setattr(parts, "MOST_ROWS", 64)
    monkeypatch.setattr(sources, "ROWS", 64)
    monkeypatch.setattr(run, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr(run, "FIRST_ROWS", 64)
    monkeypatch.setattr(run, "CHUNK_SECONDS", 1e9)


def test_columns_travel_along(run, compas, named, tmp_path):
    for words, kept in ((["--keep", "Customer ID"], True), (["--keep-all"], True), ([], False)):
        output = tmp_path / "answers.csv"
        result = run(*compas.words(named), "--output", output, "--first", 5, "--force", *words)
        assert result.exit_code == codes.PROVEN
        records = _records(output)
        assert [record.get("Customer ID") for record in records] == [f"c{i}" if kept else None for i in range(5)]


def test_a_run_is_interrupted_and_gone_on_with(run, compas, named, tmp_path, monkeypatch, small_parts):
    import ifonly.progress

    words = [*compas.words(named), "--output", tmp_path / "answers.jsonl", "--keep", "Customer ID"]
    undisturbed = [*compas.words(named), "--output", tmp_path / "undisturbed.jsonl", "--keep", "Customer ID"]
    assert run(*undisturbed).exit_code == codes.PROVEN

    class Stopping(ifonly.progress.ProgressBar):
        def __call__(self, event):
            if event.finished > 200:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ifonly.explainer.on_terminal", lambda lazy: Stopping(None, stream=None, delay=1.0))
        result = run(*words)
    assert result.exit_code == codes.INTERRUPTED
    assert "rows are answered and kept; go on with --resume." in result.stderr
    assert not (tmp_path / "answers.jsonl").exists()
    result = run(*words)
    assert result.exit_code == codes.WRONG_INPUT and "is an unfinished run with" in result.stderr
    result = run(*words, "--margin", "0.5", "--resume")
    assert result.exit_code == codes.WRONG_INPUT and "the question is not the one" in result.stderr
    result = run(*words, "--resume")
    assert result.exit_code == codes.PROVEN and "399 (100%) proven nearest" in result.stdout
    result = run(*words, "--resume")
    assert result.exit_code == codes.PROVEN and "was finished already; nothing was done." in result.stderr
    left, right = (_records(tmp_path / name) for name in ("answers.jsonl", "undisturbed.jsonl"))
    some = ("row", "status", "distance", "changes", "counterfactual", "Customer ID")
    assert [[one[name] for name in some] for one in left] == [[one[name] for name in some] for one in right]


def test_a_folder_of_parts(run, compas, named, tmp_path):
    result = run(*compas.words(named), "--output", f"{tmp_path}/answers.parquet/", "--json")
    assert document(result)["summary"]["rows"] == 399
    names = sorted(one.name for one in (tmp_path / "answers.parquet").iterdir())
    assert names[:2] == ["_manifest.json", "part-000000000000.parquet"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--keep", "Name"], "--keep is about answers that are written"),
        (["--resume"], "--resume is about answers that are written"),
        (["--output", "a.csv", "--keep", "Name"], "There is no column 'Name' to keep"),
        (["--output", "a.csv", "--row", "1", "--resume"], "--resume cannot be asked for together with --row"),
        (["--output", "a.csv", "--method", "search,enumerate", "--keep-all"], "together with several methods"),
        (["--output", "a.csv", "--address", "auto"], "--address is that of a cluster"),
        (["--output", "a.csv", "--engine", "dask", "--processes", "2"], "--processes are those of this machine"),
    ],
)
def test_a_stream_that_makes_no_sense(run, compas, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = run(*compas.words(), *words)
    assert result.exit_code == codes.WRONG_INPUT and said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bug_is_a_sentence_too(run, compas, monkeypatch):
    monkeypatch.setattr(search, "Search", lambda: Pretender(none_exists, calls=0, error=ZeroDivisionError))
    result = run(*compas.words(), "--method", "search")
    assert result.exit_code == codes.BUG
    assert result.stderr.startswith("error: ZeroDivisionError: stop (this is a bug in ifonly")


def _records(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8") as lines:
            return list(csv.DictReader(lines))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    import pyarrow.parquet as pq

    records: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return records
