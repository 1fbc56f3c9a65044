"""Records by columns are the records of the answers, character by character; and all three formats say the same."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Binary,
    Categorical,
    Explainer,
    Fixed,
    Integer,
    Limits,
    MaxChanges,
    Network,
    Ordinal,
    Query,
    Real,
    Schema,
    ScoreTarget,
    datasets,
)
from ifonly.answering.records import RecordsOf
from ifonly.model import network_model
from ifonly.population.counters import AnswerCounts
from ifonly.population.formats import concatenate, encoded, kept_column, open_writer
from ifonly.report.summary import summary
from ifonly.results.records import NAMES, record_kinds, records_of
from ifonly.schema.tables import user_columns

ODD = Schema(
    (
        Real("100% of income", -5.0, 10.0),
        Real("in steps", 0.0, 1.0, step="1/8"),
        Integer('zip "code"', 900, 5000, 50),
        Binary("owner", (0, 1)),
        Ordinal("level", ("low", "mid\u00e9", 'h"igh')),
        Categorical("job", ("clerk, or so", None, 3.5, True)),
    )
)
SECONDS = NAMES.index("seconds")


def random_model(outputs: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    layers = [
        (rng.normal(size=(8, len(ODD.columns))) / 3, rng.normal(size=8)),
        (rng.normal(size=(outputs, 8)), rng.normal(size=outputs)),
    ]
    layers[0][0][:, ODD.columns.index('zip "code"')] /= 1000
    return network_model(Network.of(layers), ODD)


CASES: dict[str, Any] = {
    "other class": (1, Query(), Limits()),
    "fixed": (1, Query(constraints=[Fixed("100% of income"), Fixed("level"), "owner is fixed"]), Limits()),
    "three classes": (3, Query(target=2, distance="l2"), Limits()),
    "hardly any nodes": (3, Query(target=1, distance="linf"), Limits(nodes=1)),
    "nobody": (1, Query(target=ScoreTarget(at_least=1e6)), Limits()),
    "few changes": (1, Query(distance="l0", constraints=[MaxChanges(2)]), Limits()),
    "fewest first": (1, Query(fewest_first=True), Limits()),
}


def without_seconds(columns: Any) -> dict[str, list[Any]]:
    return {name: values for name, values in columns.items() if name != "seconds"}


def records_by_columns(explainer: Explainer, rows: Any, first: int, query: Query) -> Any:
    """What a worker makes of these rows."""
    return RecordsOf(explainer._answerer, explainer._query(query), explainer._settings())(rows, first)


@pytest.mark.parametrize("case", CASES)
def test_by_columns_and_from_answers(case: str) -> None:
    outputs, query, limits = CASES[case]
    explainer = Explainer(random_model(outputs, 3)).using(limits=limits)
    rows = user_columns(ODD, ODD.sample(40, np.random.default_rng(1)))
    rows["owner"][5], rows["in steps"][6], rows["job"][7] = "perhaps", 3, "astronaut"
    answers = explainer.explain_many(rows, query)
    told, meant = records_by_columns(explainer, rows, 0, query), records_of(answers)
    assert without_seconds(told.columns) == without_seconds(meant.columns)
    assert (told.sizes, dict(told.changed)) == (meant.sizes, dict(meant.changed))
    later = records_by_columns(explainer, rows, 1000, query)
    assert later.columns["row"] == list(range(1000, 1040))
    assert "row 1005 has 'perhaps'" in later.columns["note"][5]


def test_one_row_and_many_are_the_same() -> None:
    explainer = Explainer(random_model(1, 3))
    rows = user_columns(ODD, ODD.sample(30, np.random.default_rng(2)))
    many = records_by_columns(explainer, rows, 0, Query()).columns
    for i in range(30):
        one = records_by_columns(
            explainer, {name: values[i : i + 1] for name, values in rows.items()}, i, Query()
        ).columns
        for name in NAMES:
            if name.startswith("score"):  # the last bits of the model's own scores depend on how many it is asked about
                assert one[name][0] == pytest.approx(many[name][i], rel=1e-9, abs=1e-12)
            elif name != "seconds":
                assert one[name][0] == many[name][i]


def test_people_who_lack_numbers() -> None:
    pytest.importorskip("sklearn")
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    table = rng.uniform(0, 1, (80, 2))
    table[::7, 1] = np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(table, (rng.uniform(size=80) > 0.5).astype(int))
    schema = Schema((Real("a", 0, 1), Real("b", 0, 1, missing=True)))
    explainer = Explainer(model, schema=schema)
    rows = {"a": table[:, 0].tolist(), "b": [None if np.isnan(b) else b for b in table[:, 1]]}
    told = records_by_columns(explainer, rows, 0, Query())
    assert without_seconds(told.columns) == without_seconds(records_of(explainer.explain_many(rows)).columns)
    assert '"b": null' in told.columns["counterfactual"][0]


# ---------------------------------------------------------------------- formats


def some_records() -> Any:
    explainer = Explainer(random_model(3, 5))
    rows = user_columns(ODD, ODD.sample(12, np.random.default_rng(3)))
    rows["owner"][2] = "perhaps"
    return explainer, records_by_columns(explainer, rows, 0, Query(target=0))


def test_jsonl_is_what_json_writes() -> None:
    _, told = some_records()
    lines = encoded(".jsonl", told.columns, record_kinds(3)).decode().splitlines()
    for i, line in enumerate(lines):
        nested = ("changes", "counterfactual")
        meant = {name: json.loads(told.columns[name][i]) if name in nested and told.columns[name][i] else told.columns[name][i]
                 for name in NAMES}  # fmt: skip
        assert line == json.dumps(meant, ensure_ascii=False)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_in_pieces_as_at_once(suffix, tmp_path) -> None:
    _, told = some_records()
    kinds = {**record_kinds(3), "ID, really": "integer", "who": "text"}
    columns = {**told.columns, "ID, really": list(range(12)), "who": ["a,b", None, 'q"', "x"] * 3}
    files = []
    for k, places in enumerate([range(12), range(5), range(5, 12)]):
        some = {name: [values[i] for i in places] for name, values in columns.items()}
        files.append(tmp_path / f"{k}{suffix}")
        piece = open_writer(files[-1], kinds)
        piece.add(encoded(suffix, some, kinds))
        piece.close()
    concatenate(tmp_path / f"whole{suffix}", files[1:], kinds)
    assert (tmp_path / f"whole{suffix}").read_bytes() == files[0].read_bytes() or suffix == ".parquet"
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        assert pq.read_table(tmp_path / "whole.parquet") == pq.read_table(files[0])


def test_what_travels_along_can_be_written_anywhere() -> None:
    import datetime

    odd = [1, "x", None, float("nan"), datetime.date(2026, 1, 2), {"a": [1]}, b"bytes", 10**30]
    assert kept_column(odd, "text") == [1, "x", None, None, "2026-01-02", {"a": [1]}, "b'bytes'", 10**30]
    for suffix in (".csv", ".jsonl", ".parquet"):
        assert encoded(suffix, {"odd": kept_column(odd, "text")}, {"odd": "text"})


# ---------------------------------------------------------------------- counting


def test_a_tally_is_the_summary_of_the_answers() -> None:
    explainer = Explainer(datasets.network("credit", rules=False))
    data = datasets.load("credit", rules=False)
    answers = explainer.explain_many(user_columns(data.schema, data.points()[:300]))
    meant = summary(answers)
    tally = AnswerCounts()
    for first in range(0, 300, 50):
        part = AnswerCounts()
        part.add(records_of(answers[first : first + 50]))
        tally.merge(AnswerCounts.from_data(json.loads(json.dumps(part.to_data()))))
    found = tally.summary("l1", meant["total_seconds"])
    for name in ("rows", "counts", "stopped_by", "distance_name", "changed_features", "changed_most", "unchanged"):
        assert found[name] == meant[name], name
    assert found["distance"] == pytest.approx(meant["distance"], rel=0.03)
    seconds = sorted(answer.seconds for answer in answers)  # between two of them there may be any gap
    for word, share in (("median", 0.5), ("p90", 0.9)):
        assert found["seconds"][word] == pytest.approx(seconds[math.ceil(share * 300) - 1], rel=0.03)
    for name in ("distance", "seconds"):
        assert (found[name]["min"], found[name]["max"]) == (meant[name]["min"], meant[name]["max"])
