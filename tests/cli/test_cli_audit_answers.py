"""`ifonly audit` over people who go by, and over the answers of an earlier run: the same audit, or a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ifonly import Explainer, Query, Real, Schema, datasets
from ifonly.cli import audit_rows as people
from ifonly.cli import codes
from ifonly.errors import QuestionError
from ifonly.population import chunks
from ifonly.population.reading import read_answers
from ifonly.population.sources import FrameRows, LooseRows
from ifonly.progress import progress

ASKED = ("--target", "low risk", "--fix", "Race,Sex,AgeGroup")


@pytest.fixture
def table(compas, tmp_path: Path) -> Path:
    """A hundred people, with a region, and a line that is no row."""
    lines = compas.all.read_text(encoding="utf-8").splitlines()[:101]
    rows = [f"{line},{'Region' if i == 0 else 'North' if i % 3 else 'South'}" for i, line in enumerate(lines)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join([*rows[:50], rows[50] + ",!", *rows[51:]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def model(compas) -> tuple[Any, ...]:
    return ("--model", compas.model, "--schema", compas.schema)


def figures(result: Any) -> dict[str, Any]:
    assert result.exit_code == codes.ERROR_ROWS, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    data["provenance"] |= {"made": "", "data": {**data["provenance"]["data"], "name": ""}}
    return data


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("output", "by"),
    [("answers.csv", "Region"), ("answers.jsonl", "PriorsCount"), ("answers.parquet", "Region"),
     ("answers.csv/", "Race"), ("answers", "Region")],
)  # fmt: skip
def test_answers_that_are_there_give_the_same_audit(run, model, table, tmp_path, output, by, monkeypatch):
    monkeypatch.setattr(people, "ROWS", 7)
    rows = (*model, "--rows", table)
    written = run("explain", *rows, *ASKED, "--output", f"{tmp_path}/{output}", "--keep", "Region")
    assert written.exit_code == codes.ERROR_ROWS, written.stderr
    asked = figures(run("audit", *rows, *ASKED, "--by", by, "--json"))
    assert asked["failed"] == 1 and asked["everybody"]["people"] == 99
    assert 0 < asked["everybody"]["without"] < 99
    assert sum(group["people"] for group in asked["groups"]) == 99
    read = ("--answers", f"{tmp_path}/{output}", "--by", by, "--json")
    assert figures(run("audit", *rows, *ASKED, *read)) == asked
    alone = run("audit", *model, *ASKED, *read)
    if by == "Region":  # it was kept
        told = figures(alone)["groups"]
        assert [(g["name"], g["without"], g["p50"]) for g in told] == [
            (g["name"], g["without"], g["p50"]) for g in asked["groups"]
        ]
    else:
        assert f"does not say '{by}' of row" in alone.stderr and "--rows FILE" in alone.stderr


@pytest.mark.long
def test_a_shipped_data_set(run, tmp_path):
    asked = ("--dataset", "compas", "--first", 40, "--target", "low risk")
    assert run("explain", *asked, "--output", tmp_path / "answers.jsonl").exit_code == codes.PROVEN
    audits = [run("audit", *asked, "--by", "Sex", "--json"),
              run("audit", *asked, "--by", "Sex", "--json", "--answers", tmp_path / "answers.jsonl")]  # fmt: skip
    one, other = (json.loads(audit.stdout) for audit in audits)
    assert one["groups"] == other["groups"] and one["provenance"]["data"] == other["provenance"]["data"]
    fewer = run("audit", "--dataset", "compas", "--first", 39, *asked[4:], "--answers", tmp_path / "answers.jsonl")
    assert "There are more answers than rows" in fewer.stderr
    more = run("audit", "--dataset", "compas", *asked[4:], "--answers", tmp_path / "answers.jsonl")
    assert "There is no answer for row 40" in more.stderr


def test_answers_of_something_else(run, model, table, tmp_path):
    answers = tmp_path / "answers.csv"
    rows = (*model, "--rows", table)
    run("explain", *rows, *ASKED, "--output", answers)

    def refused(*words: Any) -> str:
        result = run("audit", *words, "--answers", answers)
        assert result.exit_code == codes.WRONG_INPUT and result.stdout == ""
        return str(result.stderr)

    assert "the question is not the one" in refused(*rows, "--target", "low risk")
    assert "the question is not the one" in refused(*rows, *ASKED, "--distance", "l0")
    assert "the method, the limits" in refused(*rows, *ASKED, "--node-limit", 5)
    assert "the model is not the one" in refused(*rows, "--classes", "low risk,other", *ASKED)
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("\n".join(table.read_text(encoding="utf-8").splitlines()[:-1]) + "\n", encoding="utf-8")
    assert "the table is not the one" in refused(*model, "--rows", fewer, *ASKED)
    assert "--row chooses among rows" in refused(*rows, *ASKED, "--row", 3)
    assert "--first chooses among rows" in refused(*model, *ASKED, "--first", 3)
    content = answers.read_bytes()
    answers.write_bytes(content[:-1])
    assert "not what the run has written" in refused(*rows, *ASKED)
    answers.write_bytes(content)
    manifest = tmp_path / "answers.csv.manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"finished"', '"running"'), encoding="utf-8")
    assert "is an unfinished run" in refused(*rows, *ASKED)
    manifest.unlink()
    assert "its manifest 'answers.csv.manifest.json' is not there" in refused(*rows, *ASKED)
    answers.unlink()
    assert "they are not there" in refused(*rows, *ASKED)


def test_chosen_rows_and_rows_without_the_column(run, model, table, tmp_path):
    words = ("audit", *model, *ASKED, "--json")
    data = json.loads(run(*words, "--rows", table, "--row", 3, "--row", 7, "--row", 3).stdout)
    assert data["everybody"]["people"] == 2
    assert "There is no row 100: the rows are 0 to 99." in run(*words, "--rows", table, "--row", 100).stderr
    lines = tmp_path / "people.jsonl"
    person = {"AgeGroup": "25-45", "Race": "Caucasian", "Sex": "Male", "PriorsCount": 5, "ChargeDegree": "Felony"}
    lines.write_text(json.dumps({**person, "Region": "North"}) + "\n" + json.dumps(person) + "\n", encoding="utf-8")
    data = json.loads(run(*words, "--rows", lines, "--by", "Region").stdout)
    assert [group["people"] for group in data["groups"]] == [1, 1]
    told = run(*words, "--rows", lines, "--by", "Height").stderr
    assert "There is no column 'Height' to group people by; the columns are AgeGroup, Race, Sex" in told


def test_people_are_not_held(monkeypatch):
    """However many there are: what is read is answered, counted and let go."""
    monkeypatch.setattr(people, "ROWS", 64)
    data = datasets.load("compas", rules=False)
    read = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal read
        for read in range(1, 2001):
            yield {**data.row(read % 1000), "Region": read % 3}

    explainer = Explainer(datasets.network("compas", rules=False))
    source = people.AuditedPeople(source=LooseRows(endless()), schema=explainer.schema, by="Region")
    held = []
    with progress(None) as bar:
        for done, answer in enumerate(source.answered(explainer, Query(), bar), 1):
            held.append(read - done)
            assert answer.row == done - 1 and answer.factual["Region"] == done % 3
    assert len(held) == source.counts.total() == 2000 and max(held) <= 64 + chunks.ROWS


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.csv"])
def test_people_who_lack_numbers(tmp_path, name):
    pytest.importorskip("sklearn")
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    table = rng.uniform(0, 1, (80, 2))
    table[::7, 1] = np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(table, (rng.uniform(size=80) > 0.5).astype(int))
    explainer = Explainer(model, schema=Schema((Real("a", 0, 1), Real("b", 0, 1, missing=True))))
    rows = {"a": table[:, 0].tolist(), "b": [None if np.isnan(b) else b for b in table[:, 1]]}
    explainer.explain_to(tmp_path / name, rows)
    source = people.AuditedPeople(source=FrameRows(rows), schema=explainer.schema)
    found = list(source.joined(read_answers(tmp_path / name)))
    meant = explainer.explain_many(rows)
    assert [(one.factual, one.counterfactual, one.upper) for one in found] == [
        (one.factual, one.counterfactual, one.upper) for one in meant
    ]
    rows["a"][5] = 0.5
    source = people.AuditedPeople(source=FrameRows(rows), schema=explainer.schema)
    with pytest.raises(QuestionError, match="Row 5 of the table is not the one that was answered"):
        list(source.joined(read_answers(tmp_path / name)))
