"""Answers as flat tables: whole numbers stay whole, the index joins them to the people, files lose nothing."""

import numpy as np
import pytest

from ifonly import Explainer, datasets
from ifonly.errors import QuestionError, RowError

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def asked():
    data = datasets.load("adult", rules=False)
    frame = pandas.DataFrame([data.row(i) for i in range(1000)], index=[f"person {i}" for i in range(5000, 6000)])
    frame.index.name = "Customer"
    return frame, Explainer(datasets.network("adult", rules=False)).explain_many(frame, target=1)


def test_the_index_joins_answers_to_people(asked):
    frame, answers = asked
    flat = answers.to_frame("all")
    assert flat.index.equals(frame.index) and flat.index.name == "Customer"
    joined = frame.join(flat)
    for name in frame.columns:
        assert (joined[name] == joined[f"{name} (before)"]).all()
    assert all(not isinstance(value, dict | list | tuple) for value in flat.iloc[:50].to_numpy().ravel())
    assert answers[10:20].to_frame().index.tolist() == frame.index[10:20].tolist()
    assert flat["Age (after)"].dtype == "Int64" and flat["distance"].dtype == "Float64"


def test_columns_by_choice(asked):
    _, answers = asked
    changed, none = answers[:30].to_frame(), answers[:30].to_frame("none")
    moved = {change.feature for answer in answers[:30] for change in answer.changes}
    assert {c.removesuffix(" (after)") for c in changed.columns if c.endswith("(after)")} == moved
    assert not any(c.endswith("(after)") for c in none.columns)
    assert changed["changes"].tolist() == ["; ".join(map(str, answer.changes)) for answer in answers[:30]]
    with pytest.raises(QuestionError, match="'changed', 'all' or 'none'"):
        answers.to_frame("some")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_files_lose_nothing(asked, tmp_path, kind):
    frame, answers = asked
    flat = answers.to_frame("all")
    path = tmp_path / f"answers.{kind}"
    if kind == "csv":
        flat.to_csv(path)
        back = pandas.read_csv(path, index_col=0, dtype={"target": str}, keep_default_na=False, na_values=[""])
    elif kind == "xlsx":
        pytest.importorskip("openpyxl")
        flat.to_excel(path)
        back = pandas.read_excel(path, index_col=0, dtype={"target": str}, keep_default_na=False, na_values=[""])
    else:
        pytest.importorskip("pyarrow")
        flat.to_parquet(path)
        back = pandas.read_parquet(path)
    assert back.index.equals(frame.index) and list(back.columns) == list(flat.columns)
    for name in flat.columns:
        ours, theirs = flat[name].to_list(), back[name].to_list()
        for a, b in zip(ours, theirs, strict=True):
            empty = pandas.isna(a) or a == ""
            assert empty == bool(pandas.isna(b) or b == ""), name
            digits = kind == "xlsx" and isinstance(a, float)  # a sheet keeps 16 digits of a number
            assert empty or a == b or (digits and abs(a - b) <= 1e-15 * abs(a)), name


def test_polars(asked):
    polars = pytest.importorskip("polars")
    _, answers = asked
    flat = answers[:40].to_polars()
    assert isinstance(flat, polars.DataFrame) and flat["row"].to_list() == list(range(40))


def test_one_row_in_whatever_holds_one():
    data, explainer = datasets.load("credit", rules=False), Explainer(datasets.network("credit", rules=False))
    row = data.row(7)
    expected = explainer.explain(row)
    frame = pandas.DataFrame([data.row(i) for i in range(9)])
    numbers = [explainer.schema[name].read(value) for name, value in row.items()]
    polars, torch = pytest.importorskip("polars"), pytest.importorskip("torch")
    structured = np.array(
        [tuple(row.values())], dtype=[(n, "U20" if isinstance(v, str) else float) for n, v in row.items()]
    )
    for one in (
        frame.iloc[[7]],
        frame.iloc[7],
        polars.DataFrame([row]),
        structured[0],
        next(frame.iloc[[7]].itertuples(index=False)),
    ):
        assert explainer.explain(one).counterfactual == expected.counterfactual
    assert expected.factual == row and len(numbers) == len(row)
    with pytest.raises(RowError, match="a table of 9 rows, not a row"):
        explainer.explain(frame)
    compas = Explainer(datasets.network("compas", rules=False))
    with pytest.raises(RowError):
        compas.explain(torch.zeros(3))
