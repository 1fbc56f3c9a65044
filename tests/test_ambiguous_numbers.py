"""10.000 is ten to one writer and ten thousand to another: refused with both readings wherever a text is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ifonly import Explainer, Network, Query, Range, Scorecard
from ifonly.cli.app import app
from ifonly.errors import FileError, IfonlyError, RowError, RuleError, SchemaError
from ifonly.model import network_model, save_network
from ifonly.population.csv_format import CsvFormat
from ifonly.population.sources import files_of
from ifonly.problem import Imputable, MaxDelta, Rule, Steps, read_constraint
from ifonly.results import Answer
from ifonly.schema import Categorical, Integer, Real, Schema, infer, load_schema, read_points, save_schema
from ifonly.schema.number_text import DecimalMark, clear_number, other_reading

SCHEMA = Schema(
    [Integer("Kreditbetrag", 250, 20000), Real("Rate", 0, 40), Real("Income", 0, 50000), Integer("Age", 18, 90)]
)
BOTH = "may be 10 or 10000"


def run(*words: Any) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A linear model of the schema, and one person, as files."""

    weight = np.array([[-1 / 2000.0, 0.01, 1 / 5000.0, 0.01]])
    save_network(Network.of([(weight, np.array([-1.0]))]), tmp_path / "net.npz", classes=("no", "yes"))
    save_schema(SCHEMA, tmp_path / "schema.json")
    (tmp_path / "people.csv").write_text("Kreditbetrag,Rate,Income,Age\n12000,12.5,8000,40\n", encoding="utf-8")
    (tmp_path / "plain.csv").write_text("Kreditbetrag;Rate;Income;Age\n12000;12;8000;40\n", encoding="utf-8")
    (tmp_path / "german.csv").write_text("Kreditbetrag;Rate;Income;Age;Note\n12000;12;8000;40;3,5\n", encoding="utf-8")
    (tmp_path / "points.csv").write_text("Kreditbetrag;Rate;Income;Age\n12000;12.5;8000;40\n", encoding="utf-8")
    return tmp_path


def explain(files: Path, *words: Any, rows: str = "people.csv") -> Result:
    separated = () if rows == "people.csv" else ("--sep", ";")
    about = ("--model", files / "net.npz", "--schema", files / "schema.json", "--rows", files / rows, *separated)
    return run("explain", *about, *words)


# ---------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    "text",
    [
        "Kreditbetrag <= 10.000",
        "10.000 >= Kreditbetrag",
        "Income <= 10.000",
        "Income - Kreditbetrag >= 10.000",
        "Kreditbetrag in [500, 10.000]",
        "Income between 5 and 10.000",
        "Income in (10.000, 20.000)",
        "if Age >= 30 then Income >= 10.000",
        "Income changes by at most 10.000",
        "Kreditbetrag changes in steps of 10.000",
        "at most 10.000 changes",
        "Age >= 10.000",
    ],
)
def test_a_number_that_the_feature_makes_ambiguous_is_refused_with_both_readings(text: str) -> None:
    with pytest.raises(RuleError, match=BOTH):
        read_constraint(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rate <= 10.000", "Rate <= 10"),
        ("Rate <= 1.234", "Rate <= 1.2340"),
        ("Rate <= 1.5", "Rate <= 1.5"),
        ("Rate <= 0.125", "Rate <= 0.125"),
        ("Kreditbetrag <= 10,000", "Kreditbetrag <= 10000"),
        ("Kreditbetrag <= 10000", "Kreditbetrag <= 10000"),
        ("Income <= 1.2340", "Income <= 1.2340"),
        ("Income <= 12.50", "Income <= 12.5"),
        ("Rate * 2 <= 10.000 + Rate", "Rate <= 10"),
        ("Rate <= 10.000 or Rate >= 30", "Rate <= 10 or Rate >= 30"),
        ("Income >= 3,000 + 2 * Kreditbetrag", "Income >= 3000 + 2 * Kreditbetrag"),
        ("Income >= 1,234,567.5 - Kreditbetrag", "Income >= 1234567.5 - Kreditbetrag"),
        ("Rate changes by at most 1.500 %", "Rate changes by at most 1.5 %"),
    ],
)
def test_elsewhere_the_rule_is_repeated_as_it_was_understood(text: str, words: str) -> None:
    understood = read_constraint(text, SCHEMA)
    assert understood.describe() == words
    assert read_constraint(words, SCHEMA).describe() == words
    for mark in DecimalMark:  # and what is repeated is clear to everybody
        assert read_constraint(words, SCHEMA, mark).describe() == words


@pytest.mark.parametrize("mark", [DecimalMark.COMMA, DecimalMark.UNKNOWN])
@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("Rate <= 10.000", BOTH),
        ("Kreditbetrag <= 10,000", "may be 10000 or 10"),
        ("Rate changes by at most 1.500 %", "may be 1.5 or 1500"),
        ("Income may be filled in at 1.500", "may be 1.5 or 1500"),
    ],
)
def test_where_the_decimal_mark_is_not_the_point_both_readings_are_told(
    text: str, both: str, mark: DecimalMark
) -> None:
    with pytest.raises(RuleError, match=both):
        read_constraint(text, SCHEMA, mark)


def test_a_comma_beyond_the_feature_is_ambiguous() -> None:
    with pytest.raises(RuleError, match="'10,000' may be 10000 or 10"):
        read_constraint("Rate <= 10,000", SCHEMA)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Rate <= 1,5", "Decimals begin with a point"),
        ("Income <= 1.234,50", "Decimals begin with a point"),
        ("Income <= 1.234.567", "write 1234567"),
    ],
)
def test_other_forms_are_refused_with_the_right_one(text: str, told: str) -> None:
    with pytest.raises(RuleError, match=told):
        read_constraint(text, SCHEMA)


def test_options_that_a_number_may_mean_by_either_mark() -> None:
    schema = Schema([Categorical("Size", [1, 1000, 5]), Categorical("Code", ["1.000", "01067"])])
    with pytest.raises(RuleError, match="may be 1 or 1000"):
        read_constraint("Size = 1.000", schema)
    assert read_constraint("Size = 5.000", schema).describe() == "Size in (5)"
    assert read_constraint("Code = 1.000", schema).describe() == "Code in ('1.000')"
    assert read_constraint("Code = 01067", schema).describe() == "Code in ('01067')"


@pytest.mark.parametrize(
    "constraint",
    [Range("Income", 1.234, 2.5), Range("Income", upper=12.345), MaxDelta("Income", by=1.234), Steps("Income", 1.125),
     MaxDelta("Income", share=0.12345), Imputable("Income", 1.234), Range("Rate", 1.111, 2.222)],
)  # fmt: skip
def test_what_a_constraint_says_of_itself_reads_back(constraint: Any) -> None:
    schema = Schema([Real("Income", 0, 50000, missing=True), Real("Rate", 0, 40)])
    for mark in DecimalMark:
        assert read_constraint(constraint.describe(), schema, mark) == constraint


def test_a_rule_in_python_and_in_json_is_read_alike() -> None:
    model = network_model(Network.of([(np.ones((1, 4)) / 1e4, np.array([-1.0]))]), SCHEMA, classes=("no", "yes"))
    explainer = Explainer(model)
    row = {"Kreditbetrag": 300, "Rate": 1, "Income": 100, "Age": 30}
    for rule in ("Income <= 10.000", Rule("Income + Rate <= 10.000"), Rule("Income <= 10.000")):
        with pytest.raises(IfonlyError, match=BOTH):
            explainer.explain(row, constraints=[rule])
    asked = Query.from_dict({"constraints": [{"kind": "rule", "text": "Income + Rate <= 10.000"}]})
    with pytest.raises(IfonlyError, match=BOTH):
        explainer.explain(row, asked)


# ---------------------------------------------------------------------- the command line


def test_the_rule_of_the_issue_is_refused(files: Path) -> None:
    told = explain(files, "--rule", "Kreditbetrag <= 10.000")
    assert told.exit_code == 2 and BOTH in told.output and "none exists" not in told.output


@pytest.mark.parametrize(
    ("rows", "more"),
    [("people.csv", ("--language", "de")), ("plain.csv", ()), ("german.csv", ())],
)
def test_the_language_and_the_table_make_a_number_ambiguous(files: Path, rows: str, more: tuple[str, ...]) -> None:
    told = explain(files, "--rule", "Rate <= 10.000", *more, rows=rows)
    assert told.exit_code == 2 and BOTH in told.output
    query = files / "query.json"
    query.write_text(json.dumps({"constraints": ["Rate <= 10.000"]}), encoding="utf-8")
    told = explain(files, "--query", query, *more, rows=rows)
    assert told.exit_code == 2 and BOTH in told.output
    assert explain(files, "--rule", "Rate <= 10", *more, rows=rows).exit_code == 0


@pytest.mark.parametrize("rows", ["people.csv", "points.csv"])
def test_elsewhere_the_command_repeats_what_it_understood(files: Path, rows: str) -> None:
    told = explain(files, "--rule", "Rate <= 10.000", rows=rows)
    assert told.exit_code == 0 and "Rate <= 10\n" in told.stdout
    asked = json.loads(explain(files, "--rule", "Rate <= 10.000", "--json", rows=rows).stdout)
    assert asked["answers"][0]["constraints"] == ["Rate <= 10"]
    assert Answer.from_dict(asked["answers"][0]).constraints == ("Rate <= 10",)
    page = files / "page.html"
    assert explain(files, "--rule", "Rate <= 10.000", "--html", page, rows=rows).exit_code == 0
    assert "Rate is at most 10<" in page.read_text(encoding="utf-8")
    stream = explain(files, "--rule", "Rate <= 10.000", "--output", files / "answers.csv", rows=rows)
    assert stream.exit_code == 0 and "Rate <= 10\n" in stream.stdout


@pytest.mark.parametrize(
    "words",
    [("--range", "Income", "500", "10.000"), ("--at-least", "10.000"), ("--weight", "Age", "10.000"),
     ("--time-limit", "10.000"), ("--distance", "10.000*l1"), ("--margin", "1_0"), ("--first", "1_0")],
)  # fmt: skip
def test_numbers_among_the_options(files: Path, words: tuple[str, ...]) -> None:
    told = explain(files, *words)
    assert told.exit_code == 2
    assert BOTH in told.output or "1_0" in told.output


# ---------------------------------------------------------------------- cells


@pytest.mark.parametrize(
    ("feature", "text", "number"),
    [
        (Integer("x", 0, 20000), "10.000", None),
        (Integer("x", 0, 20000), "10,000", 10000.0),
        (Integer("x", 0, 90), "25.000", 25.0),
        (Integer("x", 0, 20000), "10.0", 10.0),
        (Real("x", 0, 20000), "10.000", 10.0),
        (Real("x", 0, 20000), "€ 10.000", None),
        (Real("x", 0, 20000), "$10,000", 10000.0),
        (Real("x", 0, 20000), "€ 12.50", 12.5),
        (Real("x", 0, 1), "1 %", None),
        (Real("x", 0, 1), "0.5 %", None),
        (Real("x", 0, 100), "57 %", 57.0),
    ],
)
def test_cells(feature: Any, text: str, number: float | None) -> None:
    schema = Schema([feature])
    for read in (lambda: schema.read({"x": text})[0], lambda: read_points(schema, {"x": [text, "1"]})[0, 0]):
        if number is None:
            with pytest.raises(RowError, match=f"'{text}', which may be .* or .*; write one of these"):
                read()
        else:
            assert read() == number


@pytest.mark.parametrize(
    ("cells", "separator", "unclear"),
    [
        (["10.000", "12.500", "900"], ";", True),
        (["10.000", "12.500", "900", "12.5"], ";", False),
        (["10.000", "12,5", "1.234,50 €"], ";", False),
        (["10,000", "900"], ";", True),
        (["10.000", "12.500", "900"], ",", False),
        (['"1.234,50"', "10.000"], ",", True),
    ],
)
def test_cells_of_a_csv_file_by_its_own_decimal_mark(
    cells: list[str], separator: str, unclear: bool, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "Amount" + separator + "Job\n" + "".join(f"{cell}{separator}a\n" for cell in cells), encoding="utf-8"
    )
    schema = Schema([Real("Amount", 0, 50000), Categorical("Job", ["a"])])
    (block,) = files_of(table, CsvFormat(separator=separator)).blocks(None)
    errors: list[RowError | None] = []
    points = read_points(schema, block.columns, errors=errors)
    two = [other_reading(cell.strip('"')) is not None for cell in cells]
    assert [error is not None and "which may be" in str(error) for error in errors] == [unclear and one for one in two]
    if not unclear:
        commas = any("," in cell for cell in cells)
        plain = [cell.replace(".", "").replace(",", ".").rstrip(" €") if commas else cell for cell in cells]
        assert points[:, 0].tolist() == list(map(float, plain))


def test_answers_of_a_german_table_are_not_about_other_people(files: Path) -> None:
    (files / "german.csv").write_text(
        "Kreditbetrag;Rate;Income;Age\n12000;12;8.000;40\n500;1;900;40\n", encoding="utf-8"
    )
    told = json.loads(explain(files, "--json", rows="german.csv").stdout)["answers"]
    assert told[0]["status"] == "error" and "may be 8 or 8000" in told[0]["error"]
    assert told[1]["status"] != "error"


# ---------------------------------------------------------------------- inference, schemas, scorecards


def test_inference_does_not_guess_a_decimal_mark(tmp_path: Path) -> None:
    for separator in (",", ";"):
        table = tmp_path / "t.csv"
        table.write_text(f"Amount{separator}b\n" + "".join(f"{c}{separator}1\n" for c in ("10.000", "12.500", "1.250")))
        told = run("schema", "infer", table, "--sep", separator)
        assert told.exit_code == 2 and f"'10.000', which {BOTH}" in told.output
        stepped = run(
            "schema",
            "infer",
            table,
            "--sep",
            separator,
            "--step",
            "Amount=0.001",
            "--output",
            tmp_path / "s.json",
            "--force",
        )
        assert stepped.exit_code == 0 and load_schema(tmp_path / "s.json")["Amount"].upper == 12.5
    with pytest.raises(SchemaError, match=BOTH):
        infer({"Amount": ["€ 10.000", "€ 12.500", "€ 900"]})
    schema, _ = infer({"Amount": ["€ 10.000", "€ 12.50", "€ 900"]})
    assert schema["Amount"].upper == 900.0


def test_amounts_in_several_units_are_names() -> None:
    for texts in (["$5", "€5", "$7"], ["57 %", "0.57", "12 %"]):
        schema, _ = infer({"Amount": texts * 2})
        assert schema["Amount"].kind == "categorical"


def test_steps_are_read_alike() -> None:
    with pytest.raises(SchemaError, match="the step '1.000' may be 1 or 1000"):
        Real("x", 0, 5000, "1.000")
    assert Real("x", 0, 5, "1/12").count == 61


def test_codes_in_a_schema_written_by_hand(tmp_path: Path) -> None:
    head = "format: ifonly-schema\nversion: 1\nfeatures:\n- kind: categorical\n  name: PLZ\n  categories: "
    for listed in ("[01067, 01069]", "[12:30, 13:30]", "[1_000, 2_000]", "[0x10, 0x11]"):
        (tmp_path / "s.yaml").write_text(head + listed + "\n", encoding="utf-8")
        with pytest.raises(
            FileError, match="in line 6, which YAML reads as a number of other digits; put a code in quotes"
        ):
            load_schema(tmp_path / "s.yaml")
    (tmp_path / "s.yaml").write_text(head + "['01067', '12:30', 5, 1.5]\n", encoding="utf-8")
    assert load_schema(tmp_path / "s.yaml")["PLZ"].options == ("01067", "12:30", 5, 1.5)


def test_numbers_of_a_scorecard_in_csv(tmp_path: Path) -> None:
    card = tmp_path / "card.csv"
    card.write_text("feature,bin,points\nIncome,< 10.000,5\nIncome,other,8\n", encoding="utf-8")
    with pytest.raises(IfonlyError, match=f"line 2: '10.000' {BOTH}"):
        Scorecard.load(card)
    card.write_text("feature,bin,points\nIncome,< 10.000,5.25\nIncome,other,8\n", encoding="utf-8")
    assert Scorecard.load(card).bins["Income"][0].below == 10.0
    card.write_text("feature,bin,points\nIncome,< 1_0,5\nIncome,other,8\n", encoding="utf-8")
    with pytest.raises(IfonlyError, match="'1_0' is no number"):
        Scorecard.load(card)


def test_groups_are_named_as_they_are_written() -> None:
    from ifonly.cli.audit_rows import typed

    assert [typed(cell) for cell in ("10.000", "007", "12", "3.5")] == ["10.000", "007", 12, 3.5]


@pytest.mark.parametrize("number", [10.0, 1.234, 12.345, 123.456, 0.125, 1234.567, 1e-7, -1.234, 1.2345])
def test_clear_numbers_read_back_by_any_mark(number: float) -> None:
    text = clear_number(number)
    assert float(text) == number and other_reading(text) is None


def test_what_is_compared_counts_as_a_sum() -> None:
    with pytest.raises(RuleError, match="may be 90 or 90000, where Income is .*, Kreditbetrag is"):
        read_constraint("2 * Income + Kreditbetrag <= 90.000", SCHEMA)
    small = Schema([Integer("n", -1, 9), Integer("m", 0, 30)])
    assert read_constraint("2 * n - m >= 14.295", small).describe() == "2 * n - m >= 14.2950"
    with pytest.raises(RuleError, match="may be 14 or 14000"):
        read_constraint("2 * n - m >= 14.000", small)
