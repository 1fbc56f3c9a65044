"""The shipped data sets are the ones that the manifest and the published experiments describe."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ifonly.datasets
from ifonly import datasets
from ifonly.datasets import Dataset
from ifonly.errors import FileError, IfonlyError, MissingExtra
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules import merged
from ifonly.schema import Choice, Numeric, schema_to_json

DATA = Path(ifonly.datasets.__file__).parent / "data"
MANIFEST: dict[str, dict[str, Any]] = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))
NAMES = ("adult", "compas", "credit")

CLASSES = {"adult": (34014, 11208), "compas": (2795, 2483), "credit": (6547, 23076)}
FEATURES = {"adult": 12, "compas": 5, "credit": 14}
COLUMNS = {"adult": 51, "compas": 7, "credit": 20}
PER_CLASS = {"adult": 11000, "compas": 2250, "credit": 6500}
TEST_ROWS = {"adult": 6601, "compas": 1350, "credit": 3900}
ENCODED_SHA256 = {
    "adult": "f2330311449ecf27a1b0bacd8be40cb07224f536bd3616bc804c1395f2895768",
    "compas": "f28de3ed95808339d3daeea27b2f1c3466a1b4aabf439a2a335f78c38d093ca2",
    "credit": "7a83f70afa5a0445e2154ec19ed438709c5bf634c077dc722f82a6d7e3cf2a4b",
}
SPLIT_SHA256 = {
    "adult": "0e853be844ac3f5904c9e4cd91c6f6d852138640421f8ee56a39dab8f837c272",
    "compas": "bd62cd18841268120b8bcc271d94fdc0e436d4d787fb75c5366af31eff267f1d",
    "credit": "2763289dacd4de1f747cdc67f057ac4dba06087e5e81ddb7a8f9d0c441c3697a",
}
BOUNDS = {
    "adult": {
        "Age": (17, 90),
        "EducationNumber": (1, 16),
        "CapitalGain": (0, 99999),
        "CapitalLoss": (0, 4356),
        "HoursPerWeek": (1, 99),
    },
    "compas": {"PriorsCount": (0, 38)},
    "credit": {
        "MaxBillAmountOverLast6Months": (0, 50810),
        "MaxPaymentAmountOverLast6Months": (0, 51430),
        "MonthsWithZeroBalanceOverLast6Months": (0, 6),
        "MonthsWithLowSpendingOverLast6Months": (0, 6),
        "MonthsWithHighSpendingOverLast6Months": (0, 6),
        "MostRecentBillAmount": (0, 29450),
        "MostRecentPaymentAmount": (0, 15420),
        "TotalOverdueCounts": (0, 3),
        "TotalMonthsOverdue": (0, 36),
    },
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(scope="module", params=NAMES)
def data(request: pytest.FixtureRequest) -> Dataset:
    return datasets.load(request.param, rules=False)


def test_names() -> None:
    assert datasets.names() == NAMES


@pytest.mark.parametrize("ask", [datasets.load, datasets.network])
@pytest.mark.parametrize("name", ["german", "", "../adult", "Adult"])
def test_an_unknown_name_lists_the_known_ones(ask: Any, name: str) -> None:
    with pytest.raises(FileError, match="adult, compas, credit"):
        ask(name)
    assert issubclass(FileError, IfonlyError)


@pytest.mark.parametrize("name", NAMES)
def test_files_have_the_hashes_of_the_manifest(name: str) -> None:
    assert sha256(gzip.decompress((DATA / f"{name}.csv.gz").read_bytes())) == MANIFEST[name]["csv_sha256"]
    assert sha256((DATA / f"{name}.schema.json").read_bytes()) == MANIFEST[name]["schema_sha256"]


@pytest.mark.parametrize("name", NAMES)
def test_every_feature_and_option_has_a_german_name(name: str) -> None:
    for feature in datasets.load(name).schema:
        german = feature.translations["de"]
        assert german["label"]
        if isinstance(feature, Choice) and not set(feature.options) <= {0, 1}:
            assert set(german["options"]) == set(feature.options), feature.name


def test_files_are_small_and_all_known() -> None:
    expected = {"manifest.json"} | {f"{n}{end}" for n in NAMES for end in (".csv.gz", ".schema.json", "_2x10.npz")}
    assert {path.name for path in DATA.iterdir()} == expected
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 1_000_000


def test_counts(data: Dataset) -> None:
    assert tuple(np.bincount(data.labels)) == CLASSES[data.name] == tuple(MANIFEST[data.name]["classes"])
    assert len(data) == sum(CLASSES[data.name])
    assert all(len(column) == len(data) for column in data.columns.values())
    assert len(data.schema) == FEATURES[data.name]
    assert len(data.schema.columns) == COLUMNS[data.name]


def test_columns_are_read_only_and_in_the_order_of_the_schema(data: Dataset) -> None:
    assert tuple(data.columns) == data.schema.names
    assert data.label not in data.columns
    for array in (*data.columns.values(), data.labels):
        assert not array.flags.writeable


def test_every_row_is_valid_and_comes_back(data: Dataset) -> None:
    points = data.points()
    assert np.array_equal(data.schema.decode(data.encoded()), points)
    for index in (0, len(data) // 2, len(data) - 1):
        assert data.schema.admits(points[index])
        assert data.schema.row(points[index]) == data.row(index)
        assert np.array_equal(data.schema.read(data.row(index)), points[index])


def test_bounds_are_reached_and_every_option_occurs(data: Dataset) -> None:
    bounds = {}
    for feature in data.schema:
        column = data.columns[feature.name]
        if isinstance(feature, Numeric):
            assert (column.min(), column.max()) == (feature.lower, feature.upper)
            bounds[feature.name] = (feature.lower, feature.upper)
        else:
            assert isinstance(feature, Choice)
            assert set(np.unique(column).tolist()) == set(feature.options)
    assert bounds == BOUNDS[data.name]


def test_the_schema_file_is_what_its_schema_writes(data: Dataset) -> None:
    stored = json.loads((DATA / f"{data.name}.schema.json").read_text(encoding="utf-8"))
    assert schema_to_json(datasets.load(data.name).schema) == stored
    rules = stored.pop("rules", [])
    money = [one for one in stored["features"] if one.get("unit") == "$"]
    assert all(one.pop("step") == 0.01 for one in money)  # neither rules nor steps in the published experiments
    assert schema_to_json(data.schema) == stored
    assert bool(rules) == (data.name != "compas")
    assert bool(money) == (data.name != "compas")


@pytest.mark.long(keep=1)
def test_the_rules_hold_in_every_row(data: Dataset) -> None:
    schema = datasets.load(data.name).schema
    points = data.points()
    for rule in merged(schema):
        assert rows_allowed(rule, schema, points, points).all(), rule.describe()


def test_encoded_digest(data: Dataset) -> None:
    assert sha256(data.encoded().astype("<f8").tobytes()) == ENCODED_SHA256[data.name]


def test_compas_has_936_points() -> None:
    schema = datasets.load("compas", rules=False).schema
    counts = [f.steps + 1 if isinstance(f, Numeric) else len(f.options) for f in schema]  # type: ignore[union-attr]
    assert np.prod(counts) == 936


def test_split_is_balanced_disjoint_and_complete(data: Dataset) -> None:
    train, test = data.split()
    every = np.concatenate([train, test])
    assert len(np.unique(every)) == len(every) == 2 * PER_CLASS[data.name]
    assert tuple(np.bincount(data.labels[every])) == (PER_CLASS[data.name],) * 2
    assert len(test) == TEST_ROWS[data.name]
    assert every.min() >= 0
    assert every.max() < len(data)


def test_split_is_deterministic_and_leaves_the_global_generator_alone(data: Dataset) -> None:
    before = np.random.get_state(legacy=False)["state"]["key"].tolist()
    train, test = data.split()
    again = data.split()
    assert np.array_equal(train, again[0])
    assert np.array_equal(test, again[1])
    assert sha256(np.concatenate([train, test]).astype("<i8").tobytes()) == SPLIT_SHA256[data.name]
    assert not np.array_equal(data.split(seed=1)[1], test)
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == before


def test_split_is_that_of_pandas_and_scikit_learn(data: Dataset) -> None:
    """The published experiments draw with these two; the same rows must come out, in the same order."""
    pd = pytest.importorskip("pandas", reason="the reference of the split uses pandas")
    selection = pytest.importorskip("sklearn.model_selection", reason="the reference of the split uses scikit-learn")
    seed = 1122334455
    labels = pd.Series(data.labels)
    halves = [labels[labels == c].sample(PER_CLASS[data.name], random_state=seed) for c in (0, 1)]
    shuffled = pd.concat(halves).sample(frac=1, random_state=seed)
    train, test = selection.train_test_split(shuffled.index.to_numpy(), train_size=0.7, random_state=seed)
    ours = data.split()
    assert np.array_equal(ours[0], train)
    assert np.array_equal(ours[1], test)


@pytest.mark.long(keep=1)
def test_frame(data: Dataset) -> None:
    pytest.importorskip("pandas", reason="frames need pandas")
    frame = data.frame()
    assert list(frame.columns) == list(data.schema.names)
    assert len(frame) == len(data)
    labelled = data.frame(label=True)
    assert list(labelled.columns) == [*data.schema.names, data.label]
    assert labelled[data.label].tolist() == data.labels.tolist()
    frame.iloc[0, 0] = frame.iloc[1, 0]  # a frame is the user's own copy
    assert data.row(0) == datasets.load(data.name, rules=False).row(0)


def test_a_frame_without_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pandas"):
        datasets.load("compas", rules=False).frame()


def test_rows_are_plain_values(data: Dataset) -> None:
    assert {type(value) for value in data.row(0).values()} <= {str, int, float}
    json.dumps(data.row(0))


def test_first_rows_in_words() -> None:
    assert datasets.load("adult", rules=False).row(0) == {
        "Sex": "Male", "Age": 39, "NativeCountry": "United-States", "WorkClass": "State-gov", "EducationNumber": 13,
        "EducationLevel": "Bachelors", "MaritalStatus": "Never-married", "Occupation": "Adm-clerical",
        "Relationship": "Not-in-family", "CapitalGain": 2174.0, "CapitalLoss": 0.0, "HoursPerWeek": 40,
    }  # fmt: skip
    assert datasets.load("compas", rules=False).row(0) == {
        "AgeGroup": "25-45", "Race": "African-American", "Sex": "Male", "PriorsCount": 0, "ChargeDegree": "Felony",
    }  # fmt: skip
    credit = datasets.load("credit", rules=False)
    assert credit.row(0) == {
        "isMale": 0, "isMarried": 1, "AgeGroup": "<25", "EducationLevel": "university",
        "MaxBillAmountOverLast6Months": 120.0, "MaxPaymentAmountOverLast6Months": 20.0,
        "MonthsWithZeroBalanceOverLast6Months": 0, "MonthsWithLowSpendingOverLast6Months": 6,
        "MonthsWithHighSpendingOverLast6Months": 0, "MostRecentBillAmount": 120.0, "MostRecentPaymentAmount": 0.0,
        "TotalOverdueCounts": 1, "TotalMonthsOverdue": 4, "HasHistoryOfOverduePayments": 1,
    }  # fmt: skip
    assert credit.labels[0] == 0


def test_provenance_is_there_and_survives_pickling(data: Dataset) -> None:
    copy = pickle.loads(pickle.dumps(data))
    assert (copy.name, copy.title, copy.meaning) == (data.name, data.title, data.meaning)
    assert len(data.meaning) == 2
    assert all((data.title, data.source, data.licence, data.attribution))
    if data.name != "compas":
        assert data.licence == "CC BY 4.0"


def test_the_shipped_network_is_the_recorded_one(data: Dataset) -> None:
    model = datasets.network(data.name, rules=False)
    facts = MANIFEST[data.name]
    assert model.network.hidden == (10, 10)
    assert model.classes == (0, 1)
    assert model.schema == data.schema
    assert model.network.fingerprint == facts["network_fingerprint"]
    train, test = data.split()
    for rows, accuracy in ((train, facts["train_accuracy"]), (test, facts["test_accuracy"])):
        decided = model.decide(model.scores(data.points()[rows]))
        assert round(float(np.mean(decided == data.labels[rows])), 4) == accuracy
