"""Wrong input gives one sentence on stderr that says what, where and how to fix it; exit code 2; never a traceback."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import pytest

from ifonly.cli import codes

HEADER = "AgeGroup,Race,Sex,PriorsCount,ChargeDegree\n"
ROW = "25-45,Caucasian,Male,5,Felony\n"


@pytest.fixture
def refused(run):
    def check(*words: object) -> str:
        result = run(*words)
        assert result.exit_code == codes.WRONG_INPUT, result.output
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")

    return check


OPTIONS = [
    (["--fix", "Rase"], "There is no feature 'Rase'; did you mean 'Race'?"),
    (["--fix", "Height"], "There is no feature 'Height'; the features are AgeGroup, Race"),
    (["--target", "medium risk"], "no class 'medium risk'; its classes are 'low risk', 'high risk'"),
    (["--range", "PriorsCount", "9", "3"], "The range [9, 3] of 'PriorsCount' is empty; swap its ends."),
    (["--range", "Race", "0", "1"], "use Allowed instead of Range"),
    (["--range", "PriorsCount", "few", "3"], "'few' is not a valid float"),
    (["--allow", "AgeGroup", "25-45,99"], "'AgeGroup' must be one of: <25, 25-45, >45"),
    (["--allow", "PriorsCount", "1,2"], "use Range instead of Allowed"),
    (["--margin", "-0.5"], "The margin must be a number >= 0; it is -0.5."),
    (["--method", "serach"], "There is no method 'serach'; did you mean 'search'?"),
    (["--method", "gradient"], "There is no method 'gradient'; the methods are: search, mip-obj, "),
    (["--method", "search,search"], "names a method twice"),
    (["--distance", "l3"], "There is no distance 'l3'; choose one of l0, l1, l2, linf."),
    (["--distance", "x*l0+l1"], "'x*l0' in the distance 'x*l0+l1' should look like 0.2*l0."),
    (["--distance", "0.5*l1+0.5*l2"], "Only l0 and l1 can be mixed"),
    (["--distance", "l1+l1"], "names l1 twice"),
    (["--scale", "mad"], "--scale mad is computed from data: say which with --data FILE."),
    (["--scale", "width"], "'width' is not one of"),
    (["--weight", "PriorsCount", "0"], "The weight of 'PriorsCount' must be a positive number; it is 0.0."),
    (["--target", "low risk", "--at-least", "1"], "not for both"),
    (["--at-least", "2", "--at-most", "1"], "The score range [2, 1] is empty; swap its ends."),
    (["--time-limit", "0"], "The limit 'seconds' must be a positive number; it is 0.0."),
    (["--node-limit", "-3"], "The limit 'nodes' must be a positive"),
    (["--threads", "0"], "The number of threads must be a whole number >= 1; it is 0."),
    (["--row", "6"], "There is no row 6: the rows are 0 to 5."),
    (["--first", "0"], "0 is not in the range x>=1"),
    (["--classes", "a,b,c"], "The model decides between 2 classes, but 3 class names were given"),
    (["--classes", "a"], "but 1 class name was given"),
    (["--output", "answers.docx"], "Answers are written as .csv, .jsonl, .parquet or .xlsx; 'answers.docx' is none"),
    (["--output", "nowhere/at/all.csv"], "its folder is not there."),
    (["--output", ""], "A file is named by a text or a path; '' cannot name one."),
    (["--html", ""], "A file is named by a text or a path; '' cannot name one."),
    (["--output", "answers.xlsx", "--keep", "Rase"], "The rows have no column 'Rase' to keep; they have "),
    (["--output", "a.csv", "--html", "a.html", "--resume"], "--resume cannot be asked for together with --html."),
    (["--encoding", "windows"], "There is no encoding of texts 'windows'; common ones are utf-8, cp1252 and latin-1."),
    (["--encoding", "utf-16"], "say how it is encoded"),
    (["--output", "a.csv", "--resume", "--force"], "--resume goes on with a run, --force begins it anew"),
    (["--row", "one"], "'one' is not a valid whole number"),
    (["--threads", "two"], "'two' is not a valid whole number"),
    (["--fix", ""], "--fix : There is no feature ''"),
    (["--classes", ""], "--classes names no class; write them with commas"),
    (["--range", "PriorsCount", "5"], "Option '--range' requires 3 arguments: F LO HI."),
    (["--weight", "Race"], "Option '--weight' requires 2 arguments: F W."),
    (["--data", "people.csv"], "--data is what --scale is computed from: add --scale mad, std or iqr"),
    (["--query", "nowhere.json"], "Cannot read the query 'nowhere.json': No such file or directory."),
    (["--sep", ";"], "is not separated by semicolons, but by commas: leave out --sep."),
    (["--sep", ";;"], "--sep is one character, such as ';' or tab; got ';;'."),
    (["--colour"], "No such option '--colour'"),
]


@pytest.mark.parametrize(("words", "message"), OPTIONS, ids=[" ".join(words) for words, _ in OPTIONS])
def test_options(refused, compas, words, message):
    assert message in refused(*compas.words(), *words)


FILES = [
    ("rows.csv", b"", "is empty; its first line must name the columns."),
    ("rows.csv", HEADER.encode(), "has no rows."),
    ("rows.csv", (HEADER + ROW).encode() + b"\xff\x00\n", "is not UTF-8 text (byte 0xff at position"),
    ("rows.csv", b"AgeGroup,Race,PriorsCount,ChargeDegree\n25-45,Caucasian,5,Felony\n",
     "has no column 'Sex'; it has AgeGroup, Race, PriorsCount, ChargeDegree."),
    ("rows.xlsx", b"PK this is no sheet", "is not an Excel file (.xlsx), or is damaged"),
    ("rows.csv", (HEADER + "25-45,Caucasian,Male,5,Felony,!\n").encode(), "line 2 has 6 cells, but there are 5"),
    ("rows.csv", b"Sex,Sex\nMale,Male\n", "has two columns called 'Sex'."),
    ("rows.jsonl", b'{"AgeGroup": "25-45"}\nnot json\n', "line 2 is not JSON"),
    ("rows.jsonl", b"[1, 2]\n", "line 1 must be a JSON object"),
    ("rows.jsonl", b"\n\n", "has no rows."),
    ("rows.parquet", b"this is not parquet", "is not a parquet file, or is damaged"),
    ("rows.txt", HEADER.encode(), "A table file ends in .csv, .jsonl, .parquet or .xlsx; 'rows.txt' does not."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), FILES, ids=[message for *_, message in FILES])
def test_rows_files(refused, compas, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    assert message in refused(*compas.words(path))


STANDARD_INPUT = [
    (HEADER.replace("Sex", "Gender") + ROW, "'-' (standard input) has no column 'Sex'; it has AgeGroup, Race, Gender"),
    ("", "'-' (standard input) is empty; its first line must name the columns."),
    (
        HEADER.replace(",", ";") + ROW,
        "'-' (standard input) is not separated by commas, but by semicolons: add --sep ';'",
    ),
    (HEADER + ROW.strip() + ",9\n", "'-' (standard input), line 2 has 6 cells, but there are 5 columns"),
    (HEADER, "'-' (standard input) has no rows."),
]


@pytest.mark.parametrize(("given", "message"), STANDARD_INPUT, ids=[message for _, message in STANDARD_INPUT])
def test_what_comes_in(run, compas, given, message):
    result = run(*compas.words(Path("-")), given=given)
    assert (result.exit_code, result.stdout) == (codes.WRONG_INPUT, "")
    assert result.stderr.startswith(f"error: {message}")


def test_errors_name_the_file_that_was_given(refused, compas, tmp_path):
    """And not a copy of it."""
    path = tmp_path / "people.txt"
    path.write_text((HEADER + ROW.strip() + ",9\n").replace(",", ";"), encoding="utf-8")
    told = refused(*compas.words(path), "--sep", ";")
    assert told == f"'{path}', line 2 has 6 cells, but there are 5 columns; put texts with semicolons in quotes."
    path.write_text(HEADER.replace("Sex", "Gender").replace(",", ";") + ROW.replace(",", ";"), encoding="utf-8")
    assert f"'{path}' has no column 'Sex'" in refused(*compas.words(path), "--sep", ";")
    assert f"'{path}' has no column 'Sex'" in refused(*compas.words(path), "--sep", ";", "--output", tmp_path / "a.csv")
    assert "is no csv file, so nothing separates its cells" in refused(
        *compas.words(tmp_path / "a.parquet"), "--sep", ";"
    )


COMMANDS = [
    (
        ["audit", "--by", "Height"],
        "There is no column 'Height' to group people by; the columns are AgeGroup, Race, Sex, PriorsCount",
    ),
    (["audit", "--answers", "nowhere.csv"], "Cannot read the answers 'nowhere.csv': they are not there."),
    (["audit", "--quantiles", "1000"], "'--quantiles': 1000 is not in the range 2<=x<=100."),
    (["diverse", "-k", "0"], "The number of answers, k, must be a whole number >= 1; it is 0."),
    (["diverse", "--html", "page.html"], "A page of alternatives is about one person: say which with --row I."),
    (["diverse", "--output", "several.docx"], "Answers are written as .csv, .jsonl, .parquet or .xlsx"),
    (
        ["certify", "--output", "answer.cert"],
        "A certificate is about one row; choose one of the 5 with --row I, or write them all",
    ),
    (["certify"], "Missing option '--output'."),
]


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_commands(refused, words, message):
    assert message in refused(words[0], "--dataset", "compas", "--first", "5", *words[1:])


def test_missing_files(refused, compas):
    nowhere = Path("nowhere.csv")
    assert "Cannot read the table 'nowhere.csv': No such file or directory." in refused(*compas.words(nowhere))
    words = list(compas.words())
    words[2] = "nowhere.npz"
    assert "Cannot read the network 'nowhere.npz': No such file" in refused(*words)
    words = list(compas.words())
    words[4] = "nowhere.json"
    assert "Cannot read the schema 'nowhere.json': No such file" in refused(*words)


def test_what_to_explain_must_be_said(refused, compas):
    assert "Say which model with --model FILE" in refused("explain", "--rows", compas.few)
    assert "Say which rows with --rows FILE" in refused("explain", "--model", compas.model, "--schema", compas.schema)
    message = "There is no data set 'mnist'; the data sets are: adult, compas, credit."
    assert message in refused("explain", "--dataset", "mnist")
    assert "the data sets are" in refused("datasets", "export", "mnist", "somewhere")


def test_a_model_of_another_schema(refused, compas, run, tmp_path):
    assert run("datasets", "export", "adult", tmp_path).exit_code == 0
    words = list(compas.words())
    words[2] = str(tmp_path / "adult.npz")
    assert "columns, but the schema encodes to 7" in refused(*words)


def test_parquet_without_pyarrow_names_the_extra(refused, compas, tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "pyarrow" else found(name, *a))
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    assert refused(*compas.words(path)) == (
        "Reading a parquet file needs the package 'pyarrow', which is not installed; "
        "install it with: pip install 'ifonly[parquet]'"
    )
    assert "Writing a parquet file needs" in refused(*compas.words(), "--output", tmp_path / "answers.parquet")


def test_a_pickle_is_not_opened_unasked(refused, compas, tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps({"not": "a model"}))
    words = list(compas.words())
    words[2] = str(path)
    assert "is a pickle, which runs any code it contains" in refused(*words)
    assert refused(*words, "--unsafe-pickle")


def _bytes(path: Path) -> Path:
    path.write_bytes(b"\xf9\x00")
    return path


def test_wrong_schema_and_model_files(refused, tmp_path):
    table, text = tmp_path / "rows.csv", tmp_path / "file.json"
    table.write_text(HEADER + ROW, encoding="utf-8")
    text.write_text("{}", encoding="utf-8")
    assert 'A schema is a JSON object with "format"' in refused("schema", "show", text)
    assert "is not a network file of ifonly" in refused("model", "show", text)
    assert "is not a JSON file" in refused("schema", "show", table)
    assert "say what a row is with --schema FILE" in refused("model", "show", tmp_path / "net.onnx")
    assert "A schema file ends in .json" in refused("schema", "infer", table, "--output", tmp_path / "schema.toml")
    assert "has no column 'Label' to drop" in refused("schema", "infer", table, "--drop", "Label")
    assert "step must be a number > 0" in refused("schema", "infer", table, "--step", "AgeGroup=no")
    assert "--step is a column and a step, such as Income=0.01" in refused(
        "schema", "infer", table, "--step", "AgeGroup"
    )
    assert "is a file; the three files go to a folder" in refused("datasets", "export", "compas", table)
    assert "is not UTF-8 text" in refused("schema", "show", _bytes(tmp_path / "schema.json"))
    assert "There is no feature 'Gone'" in refused("schema", "infer", table, "--step", "Gone=0.01")
    assert "A model file of ifonly ends in .npz or .json" in refused("model", "convert", text, tmp_path / "net.onnx")


def test_too_many_people_in_the_demo(refused):
    assert "people are decided that way." in refused("demo", "--dataset", "compas", "--rows", 99999)


def test_names_cannot_steer_the_terminal(refused, compas):
    assert "\x1b" not in refused(*compas.words(), "--fix", "\x1b[31mRace\n")


def test_an_error_in_a_rule_points_at_its_place(run, compas):
    result = run(*compas.words(), "--rule", "AgeGroup != '<25' and PriorsCont <= 3")
    assert (result.exit_code, result.stdout) == (codes.WRONG_INPUT, "")
    assert result.stderr.splitlines() == [
        "error: There is no feature 'PriorsCont'; did you mean PriorsCount?",
        "  AgeGroup != '<25' and PriorsCont <= 3",
        "                        ^^^^^^^^^^",
    ]
    assert "\x1b" not in run(*compas.words(), "--rule", "'\x1b[31mRace\n' = 3").stderr
