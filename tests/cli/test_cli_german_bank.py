"""A German bank's csv, from the file to printed letters: schema, model, notices, pages, a sheet; nothing edited by hand."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from ifonly import Schema, import_model
from ifonly.population.sources import files_of
from ifonly.schema import read_points

EXAMPLE = Path(__file__).parents[1] / "examples" / "german_bank.py"
NOT_FEATURES = ("Name", "Entscheidung", "PLZ")


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    made = importlib.util.spec_from_file_location("german_bank", EXAMPLE)
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("bank")
    module.write(folder / "antraege.csv")
    return folder


@pytest.fixture(scope="module")
def model(bank):
    """What the bank has: a network, trained on the table as the proposed schema reads it."""
    sklearn = pytest.importorskip("sklearn.neural_network")
    from click.testing import CliRunner
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ifonly.cli.app import app
    from ifonly.model import save_network

    words = [
        "schema",
        "infer",
        str(bank / "antraege.csv"),
        "--output",
        str(bank / "schema.json"),
        "--json",
        "--step",
        "Auslastung=0.01",
    ]  # as it proposes
    proposed = CliRunner().invoke(app, [*words, *(part for name in NOT_FEATURES for part in ("--drop", name))])
    assert proposed.exit_code == 0, proposed.output
    schema = Schema.load(bank / "schema.json")
    source = files_of(bank / "antraege.csv")
    rows = [row for block in source.blocks(None) for row in block.as_rows()]
    encoded = schema.encode(read_points(schema, rows))
    wanted = [row["Entscheidung"] == "bewilligt" for row in rows]
    network = sklearn.MLPClassifier((8, 8), solver="lbfgs", alpha=1.0, random_state=0, max_iter=4000)
    fitted = make_pipeline(StandardScaler(), network).fit(encoded, wanted)
    imported = import_model(fitted, schema, classes=("abgelehnt", "bewilligt"))
    save_network(imported.network, bank / "netz.npz", classes=("abgelehnt", "bewilligt"))
    return {"schema": schema, "guesses": json.loads(proposed.stdout)["guesses"], "said": proposed.stderr, "rows": rows}


def test_the_format_is_detected_and_said(model):
    for what in ("Windows-1252", "semicolons", "decimal commas", "--encoding, --sep and --decimal"):
        assert what in model["said"]


def test_the_proposals_are_right(model):
    kinds = {guess["feature"]: guess["guess"] for guess in model["guesses"]}
    assert kinds == {
        "Kunden-Nr.": "left out", "Geburtsdatum": "left out", "Beschäftigung": "categorical", "Laufzeit": "integer",
        "Einkommen (netto)": "real", "Kreditbetrag": "integer", "Auslastung": "real", "Wohneigentum": "binary",
    }  # fmt: skip
    schema = model["schema"]
    assert schema["Einkommen (netto)"].step == pytest.approx(0.01) and schema["Einkommen (netto)"].unit == "€"
    assert "Öffentlicher Dienst" in schema["Beschäftigung"].options


def test_codes_keep_their_zeros(run, bank):
    done = run("schema", "infer", bank / "antraege.csv", "--json")
    (code,) = [one for one in json.loads(done.stdout)["schema"]["features"] if one["name"] == "PLZ"]
    assert code["categories"] == ["01067", "04109", "10115", "20095", "80331"]


def test_from_the_file_to_printed_letters(run, bank, model, tmp_path):
    given = ["--model", bank / "netz.npz", "--schema", bank / "schema.json", "--rows", bank / "antraege.csv"]
    clause = "wäre Ihr Antrag bewilligt worden"
    (bank / "worte.json").write_text(json.dumps({"bewilligt": {"de": clause}}), encoding="utf-8")
    done = run(
        "notice", *given, "--outcomes", bank / "worte.json", "--first", "40", "--target", "bewilligt", "--form", "gdpr", "--language", "de",
        "--output", tmp_path / "n.jsonl", "--keep", "Kunden-Nr.", "--keep", "Name", "--pages", tmp_path / "briefe",
        "--printout", tmp_path / "alle.html", "--mail-merge", tmp_path / "serienbrief.csv", "--time-limit", "20",
        "--rule", "'Einkommen (netto)' only goes up",
    )  # fmt: skip
    assert done.exit_code in (0, 1), done.output
    letters = sorted((tmp_path / "briefe").glob("*.html"))
    assert len(letters) > 5
    for letter in letters:
        text = letter.read_text(encoding="utf-8")
        person = model["rows"][int(letter.stem.rpartition("-")[2])]
        assert f"Kunden-Nr.: {person['Kunden-Nr.']}" in text and person["Name"] in text
        assert clause in text and "„bewilligt“ gelautet" not in text
        assert person["Einkommen (netto)"].replace(" ", "\N{NO-BREAK SPACE}") in text.replace(" ", "\N{NO-BREAK SPACE}")
    whole = (tmp_path / "alle.html").read_text(encoding="utf-8")
    assert whole.count("<article") == len(letters)
    merged = (tmp_path / "serienbrief.csv").read_text(encoding="utf-8")
    assert (merged.count("Kunden-Nr.") == 1 and "00004711" in merged) or "0000" in merged


def test_a_sheet_in_and_a_sheet_out_with_the_number_of_the_customer(run, bank, model, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    schema, rows = model["schema"], model["rows"][:30]
    book.active.append(["Kunden-Nr.", *schema.names])
    for row in rows:
        book.active.append([row["Kunden-Nr."], *schema.row(schema.read(row)).values()])
    book.save(tmp_path / "antraege.xlsx")
    given = ["--model", bank / "netz.npz", "--schema", bank / "schema.json", "--rows", tmp_path / "antraege.xlsx"]
    page, sheet = tmp_path / "seite.html", tmp_path / "antworten.xlsx"
    done = run("explain", *given, "--output", sheet, "--html", page, "--keep", "Kunden-Nr.", "--language", "de")
    assert done.exit_code == 0, done.output
    header, *answers = openpyxl.load_workbook(sheet).active.iter_rows(values_only=True)
    assert header[0] == "Kunden-Nr." and [one[0] for one in answers] == [row["Kunden-Nr."] for row in rows]
    assert all(row["Kunden-Nr."] in page.read_text(encoding="utf-8") for row in rows)
    changing = [header.index(f"{name} (after)") for name in ("Einkommen (netto)", "Auslastung")]
    moved = [one[k] for one in answers for k in changing]
    assert all(round(value, 2) == value for value in moved if value is not None)
    single = run("explain", *given, "--row", "3", "--html", tmp_path / "eine.html", "--keep", "Kunden-Nr.")
    assert single.exit_code == 0, single.output
    assert rows[3]["Kunden-Nr."] in (tmp_path / "eine.html").read_text(encoding="utf-8")
