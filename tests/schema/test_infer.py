"""Inference proposes, and says why."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

import ifonly
from ifonly import Binary, Categorical, Integer, Ordinal, Real, Schema
from ifonly.errors import RowError, SchemaError
from ifonly.schema import infer

TABLE = {
    "age": [20, 31, 45],
    "income": [1.5, 2.0, 9.25],
    "owner": [True, False, True],
    "sex": ["m", "f", "f"],
    "job": ["clerk", "nurse", None],
    "constant": [3, 3, 3],
    "whole": [1.0, 2.0, 5.0],
}


def test_kinds_and_reasons() -> None:
    schema, guesses = infer(TABLE)
    assert schema == Schema.infer(TABLE)
    assert schema.features == (
        Integer("age", 20, 45),
        Real("income", 1.5, 9.25, step=0.01),
        Binary("owner", (False, True)),
        Binary("sex", ("f", "m")),
        Categorical("job", ("clerk", "nurse", None)),
        Integer("constant", 3, 3),
        Integer("whole", 1, 5),
    )
    assert [g.feature for g in guesses] == list(TABLE)
    why = {g.feature: g.why for g in guesses}
    assert why["age"] == "whole numbers; bounds 20 and 45 are the data's"
    assert why["sex"] == "two values: 'f' (0) and 'm' (1)"
    assert "missing (1 row) is a category too" in why["job"]


def test_missing_numbers_are_announced() -> None:
    _, (guess,) = infer({"x": [1.5, None, 3.0, 4.0]})
    assert "missing in 1 row, which a model must be able to take" in guess.why


def test_frames_and_rows() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    expected = Schema.infer(TABLE)
    assert Schema.infer(pandas.DataFrame(TABLE)) == expected
    assert Schema.infer(polars.DataFrame(TABLE)) == expected
    assert Schema.infer(rows) == expected


def test_an_order_that_the_frame_declares_is_kept() -> None:
    pandas = pytest.importorskip("pandas")
    sizes = pandas.Categorical(["S", "L", "S"], categories=["S", "M", "L"], ordered=True)
    assert Schema.infer(pandas.DataFrame({"size": sizes})).features == (Ordinal("size", ("S", "M", "L")),)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "no columns"),
        ({"x": [None, None]}, "'x' has no values"),
        ({"x": [1.0, float("inf"), 2.0]}, "'x' has infinite values"),
        ({"x": [10**400, 1, 2]}, "'x' has infinite values"),
        ({"id": [f"a{i}" for i in range(1001)]}, "No column .* \\('id': an identifier: every value differs\\)"),
        ({"name": [f"a{i}" for i in range(1001)] * 2}, "'name' has 1001 different texts"),
        ({"x": [None, None], "y": [1.0, float("inf"), 2.0]}, "2 columns: .*'x' has no values.*'y' has infinite values"),
        ({"x": [[1], [2]]}, "'x' holds values that are neither"),
        ({"day": [datetime.date(2020, 1, d) for d in (1, 2, 3)]}, "'day': dates; give the days since"),
    ],
)
def test_what_cannot_be_inferred(table: object, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        infer(table)


def test_columns_that_are_no_features_are_left_out_and_said() -> None:
    pandas = pytest.importorskip("pandas")
    n = 60
    frame = pandas.DataFrame({
        "Customer ID": range(5000, 5000 + 7 * n, 7),
        "row": range(n),
        "income": [1000 + 17 * i for i in range(n)],
        "opened": pandas.date_range("2020-01-01", periods=n),
        "closed": [f"2021-02-{1 + i % 28:02d}" for i in range(n)],
        "email": [f"p{i}@x.org" for i in range(n)],
        "zip": [10115 + i % 4 for i in range(n)],
    })  # fmt: skip
    schema, guesses = infer(frame)
    assert schema.names == ("income", "zip") and isinstance(schema["zip"], Categorical)
    told = {guess.feature: (guess.guess, guess.why) for guess in guesses}
    for name in ("Customer ID", "row", "email"):
        assert told[name] == ("left out", "an identifier: every value differs")
    for name in ("opened", "closed"):
        assert told[name][0] == "left out" and told[name][1].startswith("dates; give the days since")
    assert "4 different codes, which are names and not amounts" in told["zip"][1]
    with pytest.warns(UserWarning, match="Left out of the schema: 'Customer ID'"):
        assert Schema.infer(frame) == schema


def test_amounts_and_answers_in_words() -> None:
    table = {"bill": ["$1,002.84", "$5", "-$3.50"], "paid": ["Ja", "Nein", "Ja"], "rate": ["5 %", "7 %", "9.5 %"]}
    schema, guesses = infer(table)
    assert schema.features == (
        Real("bill", -3.5, 1002.84, step=0.01, unit="$"),
        Binary("paid", ("Nein", "Ja")),
        Real("rate", 5.0, 9.5),
    )
    assert "amounts as text, such as '$1,002.84'" in guesses[0].why
    assert schema["bill"].unit == "$"
    row = {name: column[0] for name, column in table.items()}
    assert schema.read(row).tolist() == [1002.84, 1.0, 5.0]
    for wrong in ("$1,02.84", "1_0", "--5", "$", "1.2.3", "5 euros", "$" + "1" * 80):
        with pytest.raises(RowError):
            schema.read({**row, "bill": wrong})


def test_money_moves_in_cents_and_a_range_that_few_rows_set_is_told() -> None:
    table = {
        "Miete": [310.5, 299.99, 450.0] * 100,
        "share": [0.25, 0.5, 0.75] * 100,
        "MonthlyIncome": [1500.5, 1700.25, 1600.0] * 100,
        "fee": [0.125, 0.25, 0.5] * 100,  # finer than cents
        "days": [*range(299), 5000],
        "hours": [k % 25 for k in range(300)],
    }
    schema, guesses = infer(table)
    assert [getattr(f, "step", None) for f in schema] == [Fraction(1, 100), None, Fraction(1, 100), None, 1, 1]
    told = {guess.feature: "few rows set this range" in guess.why for guess in guesses}
    assert [name for name, few in told.items() if few] == ["days"]
    assert "--scale mad" in next(guess.why for guess in guesses if guess.feature == "days")


def dummies(n: int, *, drop_first: bool) -> object:
    pandas, numpy = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    rng = numpy.random.default_rng(5)
    frame = pandas.DataFrame({
        "age": rng.integers(18, 60, n),
        "job": rng.choice(["clerk", "nurse", "cook"], n),
        "marital_status": rng.choice(["never_married", "married", "widowed"], n),
        "has_car": rng.integers(0, 2, n),
        "has_house": rng.integers(0, 2, n),
    })  # fmt: skip
    return pandas.get_dummies(frame, drop_first=drop_first)


@pytest.mark.parametrize("drop_first", [False, True])
def test_dummies_are_one_feature(drop_first: bool) -> None:
    """And answers are people who can be: compared with brute force over those, judged by the model itself."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    numpy = pytest.importorskip("numpy")
    frame = dummies(120, drop_first=drop_first)
    schema, guesses = infer(frame)
    assert schema.names == ("age", "has_car", "has_house", "job", "marital_status")
    assert set(schema["marital_status"].options) == {"married", "never_married", "widowed"} - (
        {"married"} if drop_first else set()
    ) | ({"other"} if drop_first else set())
    assert list(schema.columns) == list(frame.columns)
    assert ("at most one is 1" if drop_first else "exactly one is 1") in {g.feature: g.why for g in guesses}["job"]
    wanted = (frame["age"] > 40) ^ (frame["job_nurse"] == 1)
    model = linear_model.LogisticRegression(max_iter=2000).fit(frame, wanted)
    explainer = ifonly.Explainer(model, schema=schema)
    everybody = (
        numpy.array(numpy.meshgrid(*[numpy.arange(f.count) for f in schema.features], indexing="ij"))
        .reshape(5, -1)
        .T.astype(float)
    )
    everybody[:, 0] += schema["age"].lower
    pandas = pytest.importorskip("pandas")
    decided = model.predict(pandas.DataFrame(schema.encode(everybody), columns=schema.columns))
    answers = explainer.explain_many(frame.iloc[:25], distance="l1")
    points = ifonly.schema.read_points(schema, frame.iloc[:25])
    assert [schema.read(frame.iloc[i]).tolist() for i in range(25)] == points.tolist()
    for point, answer in zip(points, answers, strict=True):
        other = decided != answer.decision_before
        nearest = ifonly.Distance("l1").between(schema, point, everybody[other]).min()
        assert answer.status == "nearest" and abs(answer.upper - nearest) < 1e-9
        assert answer.counterfactual["job"] in schema["job"].options
    if not drop_first:
        two = frame.iloc[[0]].assign(job_cook=True, job_nurse=True, job_clerk=False)
        (failed,) = explainer.explain_many(two)
        assert failed.status == "error" and "job_nurse = True" in failed.error


@pytest.mark.parametrize("encoding", ["dummy", "onehot"])
def test_named_columns_survive_files_and_certificates(encoding: str, tmp_path: object) -> None:
    feature = Categorical("job", ["a", "b", "c"], encoding, columns=["x", "y", "z"][: 2 if encoding == "dummy" else 3])
    schema = Schema([Integer("n", 0, 3), feature])
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == schema
    network = ifonly.Network([ifonly.model.Affine([[1.0, *[2.0, -3.0, 1.5][: len(feature.columns)]]], [-2.25])])
    explainer = ifonly.Explainer(ifonly.model.network_model(network, schema))
    row = {"n": 0, "job": "a"}
    answer = explainer.explain(row)
    certificate = ifonly.certify(explainer, row)
    assert ifonly.check(certificate).valid and answer.status == "nearest"
    for wrong, words in [(["x"], "encoded column"), ("xyz", "list of column names"), ([1, 2], "list of column names")]:
        with pytest.raises(SchemaError, match=words):
            Categorical("job", ["a", "b", "c"], encoding, columns=wrong)
    with pytest.raises(SchemaError, match="at least two"):
        Categorical("job", ["a"], "dummy")


def test_multiples_and_identifiers_are_told_with_a_remedy() -> None:
    _, guesses = infer({"months": [12, 24, 36, 84, 12, 24], "age": [20, 31, 45, 50, 61, 22]})
    assert "all are multiples of 12: step=12" in guesses[0].why and "multiples" not in guesses[1].why
    with pytest.raises(SchemaError, match="an identifier rather than a feature.*--drop 'notes'"):
        infer({"notes": [f"note {i % 1500}" for i in range(3000)], "age": [i % 60 for i in range(3000)]})
