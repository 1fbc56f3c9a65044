"""Codes (postal codes, accounts) stay texts: from inference through rows, answers and files to the user's own model."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly import Explainer
from ifonly.cli.app import app
from ifonly.diagnostics import schema_conflicts
from ifonly.errors import ModelError
from ifonly.population.reading import read_answers
from ifonly.schema import Categorical, Integer, Schema, infer, load_schema

CODES = ["01067", "01069", "01097", "02708", "10115", "10117", "20095"]
JOBS = ["clerk", "none", "smith"]


def people() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"PLZ": rng.choice(CODES, 400), "Job": rng.choice(JOBS, 400), "Income": rng.integers(10, 60, 400)}
    )
    far = frame["PLZ"].isin(["01067", "01097", "20095"]).to_numpy()
    labels = (frame["Income"] + np.where(far, -15, 10) + rng.normal(0, 4, 400) > 35).to_numpy().astype(int)
    return frame, labels


@pytest.fixture(scope="module")
def fitted() -> tuple[pd.DataFrame, Pipeline]:
    """A pipeline that imputes, and ignores categories that it does not know."""
    frame, labels = people()
    coded = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    front = ColumnTransformer([("coded", coded, ["PLZ", "Job"])], remainder="passthrough")
    return frame, Pipeline([("front", front), ("model", LogisticRegression(max_iter=1000))]).fit(frame, labels)


def run(*args: Any) -> int:
    with pytest.raises(SystemExit) as end:
        app.main([str(arg) for arg in args])
    return int(end.value.code or 0)


def denied(frame: pd.DataFrame, model: Pipeline) -> pd.DataFrame:
    return frame[model.predict(frame) == 0].head(40)


def refused(model: Pipeline, answers: Any) -> int:
    """How many of the answers the user's own model decides otherwise, in a row made of the answer's values."""
    rows = [answer.counterfactual for answer in answers]
    assert None not in rows
    return int((model.predict(pd.DataFrame(rows)) != 1).sum())


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_no_proven_answer_is_refused_by_the_users_own_model(ending: str, fitted: Any, tmp_path: Path) -> None:
    frame, model = fitted
    table, schema_file = tmp_path / f"people.{ending}", tmp_path / "schema.json"
    write = {"csv": lambda: frame.to_csv(table, index=False), "parquet": lambda: frame.to_parquet(table),
             "jsonl": lambda: frame.to_json(table, orient="records", lines=True)}  # fmt: skip
    write[ending]()
    assert run("schema", "infer", table, "--output", schema_file) == 0
    schema = load_schema(schema_file)
    assert schema["PLZ"] == Categorical("PLZ", CODES)
    who = denied(frame, model)
    answers = Explainer(model, schema=schema).explain_many(who)
    assert len(answers) == 40 and {answer.status for answer in answers} == {"nearest"}
    assert refused(model, answers) == 0


def test_a_schema_of_numbers_is_refused_with_both_sides_named(fitted: Any) -> None:
    _, model = fitted
    numbers = [int(code) for code in CODES]
    schema = Schema([Categorical("PLZ", numbers), Categorical("Job", JOBS), Integer("Income", 0, 99)])
    with pytest.raises(
        ModelError, match=r"none of the options of feature 'PLZ' \(1067, .*\): it was fitted on '01067'"
    ):
        Explainer(model, schema=schema)


@pytest.mark.parametrize("wide", ["polars", "string", "object", "category", "lists"])
def test_digits_in_a_text_column_are_names(wide: str) -> None:
    values = ["1067", "2044", "1067", "3055"]
    match wide:
        case "polars":
            table: Any = pytest.importorskip("polars").DataFrame({"Code": values})
        case "lists":
            table = {"Code": values}
        case _:
            table = pd.DataFrame({"Code": pd.Series(values, dtype=wide)})
    schema, guesses = infer(table)
    assert schema.features == (Categorical("Code", ["1067", "2044", "3055"]),)
    assert "codes, which are names" in guesses[0].why


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        (["01067", "10115", "20095"], ["01067", "10115", "20095"]),
        (["A12", "17", "B07"], ["17", "A12", "B07"]),
        (["007", "12", "3"], ["007", "12", "3"]),
        (["12E3", "1E10", "7E2"], ["12E3", "1E10", "7E2"]),
        (["1_000", "2_000", "3_000"], ["1_000", "2_000", "3_000"]),
        (["4111111111111111", "4111111111111112", "5"], ["4111111111111111", "4111111111111112", "5"]),
    ],
)
def test_codes_in_csv_files_are_names(cells: list[str], options: list[str], tmp_path: Path) -> None:
    table, file = tmp_path / "t.csv", tmp_path / "s.json"
    table.write_text("Code\n" + "\n".join(cells * 2) + "\n", encoding="utf-8")
    assert run("schema", "infer", table, "--output", file) == 0
    assert load_schema(file).features == (Categorical("Code", options),)


def test_numbers_in_csv_files_are_numbers(tmp_path: Path) -> None:
    table, file = tmp_path / "t.csv", tmp_path / "s.json"
    table.write_text("Code,Rate\n1067,1e-05\n2044,0.5\n3055,+2.25\n\n", encoding="utf-8")
    assert run("schema", "infer", table, "--output", file) == 0
    assert [feature.kind for feature in load_schema(file)] == ["integer", "real"]


def test_text_in_typed_files_is_text(tmp_path: Path) -> None:
    """Of jsonl and parquet, what is a text is a text, whatever it looks like."""
    rows = [{"Code": code, "Age": age} for code, age in zip(["1067", "2044", "3055"] * 2, range(6), strict=True)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pd.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    for ending in ("jsonl", "parquet"):
        file = tmp_path / f"{ending}.json"
        assert run("schema", "infer", tmp_path / f"t.{ending}", "--output", file) == 0
        assert load_schema(file)["Code"] == Categorical("Code", ["1067", "2044", "3055"])


def test_missing_codes_are_a_category(tmp_path: Path) -> None:
    table, file = tmp_path / "t.csv", tmp_path / "s.json"
    table.write_text("Code,Age\n01067,1\nNA,2\n,3\n02044,4\n", encoding="utf-8")
    assert run("schema", "infer", table, "--output", file) == 0
    assert load_schema(file)["Code"] == Categorical("Code", ["01067", "02044", None])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_answers_written_and_read_back_keep_codes(ending: str, fitted: Any, tmp_path: Path) -> None:
    frame, model = fitted
    explainer = Explainer(model, schema=Schema.infer(frame))
    who = denied(frame, model).head(8).assign(Account=[f"000{i}" for i in range(8)])
    path = tmp_path / f"answers.{ending}"
    explainer.explain_to(path, who, keep=["Account"])
    told = list(read_answers(path))
    assert {answer.factual["PLZ"] for answer in told} <= set(CODES)
    assert [answer.factual["Account"] for answer in told] == [f"000{i}" for i in range(8)]
    assert refused(model, told) == 0


def test_answers_in_a_sheet_keep_codes(fitted: Any, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    frame, model = fitted
    answers = Explainer(model, schema=Schema.infer(frame)).explain_many(denied(frame, model).head(4))
    answers.to_frame("all").to_excel(tmp_path / "answers.xlsx")
    read = pd.read_excel(tmp_path / "answers.xlsx", dtype=object)
    codes = read[[name for name in read.columns if "PLZ" in str(name)]].stack()
    assert len(codes) and set(codes) <= set(CODES)


def test_schemas_in_files_keep_codes(tmp_path: Path) -> None:
    schema = Schema([Categorical("PLZ", ["01067", "08001", "1e5", "0x10", "1_0"])])
    for ending in ("json", "yaml"):
        schema.save(tmp_path / f"s.{ending}")
        assert load_schema(tmp_path / f"s.{ending}") == schema


def test_an_ignored_option_can_be_the_persons_value_but_is_told(fitted: Any) -> None:
    _, model = fitted
    schema = Schema([Categorical("PLZ", [*CODES, "99999"]), Categorical("Job", JOBS), Integer("Income", 0, 99)])
    with pytest.warns(UserWarning, match=r"OneHotEncoder\) was fitted without the option '99999' of feature 'PLZ'"):
        explainer = Explainer(model, schema=schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the encoder's own, at each of its calls
        answer = explainer.explain({"PLZ": "99999", "Job": "none", "Income": 12}, target=1)
        assert answer.status == "nearest" and refused(model, [answer]) == 0
    assert explainer.model.warnings


@pytest.mark.filterwarnings("always")
def test_the_command_line_and_doubts_say_what_an_encoder_does_not_know(
    fitted: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    frame, model = fitted
    Schema([Categorical("PLZ", [*CODES, "99999"]), Categorical("Job", JOBS), Integer("Income", 0, 99)]).save(
        tmp_path / "schema.json"
    )
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    assert run("model", "show", tmp_path / "model.pkl", "--schema", tmp_path / "schema.json", "--unsafe-pickle") == 0
    told = capfd.readouterr().err
    assert told.startswith("warning: ") and "fitted without the option '99999'" in told and told.count("\n") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = Explainer(model, schema=load_schema(tmp_path / "schema.json"))
    assert "fitted without the option '99999'" in schema_conflicts(explainer, frame.head(5))[0]
