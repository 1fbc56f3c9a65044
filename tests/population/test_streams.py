"""`explain_to`: the same records from every kind of table, what travels along, what is refused, what a bad row costs."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ifonly import Explainer, Limits, Network, Query, Real, Schema, datasets
from ifonly.engines import Processes
from ifonly.errors import IfonlyError
from ifonly.model import Model, network_model
from ifonly.population import chunks, run, sources
from ifonly.population import output as parts
from ifonly.population.engines import InProcess, Lost
from ifonly.population.output_paths import place_of
from ifonly.schema.tables import user_columns
from population import streaming
from population.streaming import records, same

DATA = datasets.load("credit", rules=False)
COUNT = 200


@pytest.fixture(scope="module")
def columns() -> dict[str, list[Any]]:
    found = user_columns(DATA.schema, DATA.points()[:COUNT])
    return {**found, "Customer ID": [f"c{i}" for i in range(COUNT)], "number": list(range(COUNT))}


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(datasets.network("credit", rules=False))


@pytest.fixture(scope="module")
def meant(explainer, columns, tmp_path_factory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("meant") / "answers.jsonl"
    written = explainer.explain_to(path, columns, keep=["Customer ID"])
    assert (written.rows, written.path, written.already) == (COUNT, path, False)
    found = records(path)
    answers = explainer.explain_many(columns)
    assert [one["counterfactual"] for one in found] == [dict(answer.counterfactual) for answer in answers]
    assert written.counts == answers.counts()
    return found


def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 64 rows, each a part of its own, however slow the machine is."""
    monkeypatch.setattr(parts, "MOST_ROWS", 64)
    monkeypatch.setattr(sources, "ROWS", 64)
    monkeypatch.setattr(run, "FIRST_ROWS", 64)
    monkeypatch.setattr(run, "CHUNK_SECONDS", 1e9)


def as_rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def in_file(rows: list[dict[str, Any]], path: Path) -> None:
    import csv

    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=33)


def in_files(columns: dict[str, list[Any]], folder: Path, kind: str) -> Path:
    """The table in three files of a folder."""
    place = folder / kind
    place.mkdir()
    rows = as_rows(columns)
    for k, some in enumerate((rows[:80], rows[80:81], rows[81:])):
        in_file(some, place / f"{k}.{kind}")
    (place / "_SUCCESS.csv").write_text("not a table")
    return place


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("named", ["folder", "pattern"])
def test_folders_and_patterns_of_files(explainer, columns, meant, tmp_path, kind, named):
    place = in_files(columns, tmp_path, kind)
    table = place if named == "folder" else f"{place}/[0-9]*.{kind}"
    explainer.explain_to(tmp_path / "answers.jsonl", table, keep=["Customer ID"])
    assert same(records(tmp_path / "answers.jsonl"), meant)


def test_a_folder_of_everything_is_refused_soon(tmp_path, monkeypatch):
    (tmp_path / ".hidden" / "deep").mkdir(parents=True)
    (tmp_path / "_temporary").mkdir()
    for name in ("a.csv", "b.csv", "notes.txt", ".hidden/deep/c.csv", "_temporary/d.csv"):
        (tmp_path / name).write_text("x\n1\n")
    assert [one.path.name for one in sources.files_of(tmp_path).files] == ["a.csv", "b.csv"]
    monkeypatch.setattr(sources, "MOST_ENTRIES", 2)
    with pytest.raises(IfonlyError, match="holds more than 2 files; name the one of the table"):
        sources.files_of(tmp_path)


@pytest.mark.parametrize("kind", ["pandas", "polars", "rows", "generator", "series"])
def test_tables_in_memory(explainer, columns, meant, tmp_path, kind):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pd.DataFrame(columns)
    table: Any = {
        "pandas": lambda: frame,
        "polars": lambda: pl.DataFrame(columns),
        "rows": lambda: as_rows(columns),
        "generator": lambda: (row for row in as_rows(columns)),
        "series": lambda: (row for _, row in frame.iterrows()),
    }[kind]()
    explainer.explain_to(tmp_path / "answers.jsonl", table, keep=["Customer ID"])
    assert same(records(tmp_path / "answers.jsonl"), meant)


def test_an_array_and_sequences(explainer, meant, tmp_path):
    points = DATA.points()[:COUNT]
    sequences = [[DATA.schema.features[g].value(v) for g, v in enumerate(point)] for point in points.tolist()]
    explainer.explain_to(tmp_path / "answers.jsonl", sequences)
    assert same(
        records(tmp_path / "answers.jsonl"), [{k: v for k, v in one.items() if k != "Customer ID"} for one in meant]
    )


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_folders_of_parts_and_files(explainer, columns, meant, tmp_path, monkeypatch, suffix):
    import csv

    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    small_chunks(monkeypatch)
    table = {**columns, "number": np.arange(COUNT)}
    for path in (f"{tmp_path}/folder{suffix}/", tmp_path / f"file{suffix}"):
        explainer.explain_to(path, table, keep=True)
    assert len(list((tmp_path / f"folder{suffix}").glob("part-*"))) == 4
    if suffix == ".parquet":
        whole = pq.read_table(tmp_path / "file.parquet")
        again = ds.dataset(tmp_path / "folder.parquet").to_table()
        rows, others = (
            [{k: v for k, v in row.items() if k != "seconds"} for row in one.to_pylist()] for one in (whole, again)
        )
        assert same(rows, others)
    elif suffix == ".csv":
        rows = list(csv.DictReader((tmp_path / "file.csv").read_text(encoding="utf-8").splitlines()))
        in_parts = [row for one in sorted((tmp_path / "folder.csv").glob("part-*"))
                    for row in csv.DictReader(one.read_text(encoding="utf-8").splitlines())]  # fmt: skip
        assert [row["changes"] for row in rows] == [row["changes"] for row in in_parts]
    else:
        rows = records(tmp_path / "file.jsonl")
        assert same(rows, records(tmp_path / "folder.jsonl"))
    assert [row["Customer ID"] for row in rows] == columns["Customer ID"]
    numbers = [row["number"] for row in rows]
    assert numbers == list(range(COUNT)) if suffix != ".csv" else numbers == list(map(str, range(COUNT)))


# ---------------------------------------------------------------------- what is refused


def refused(call: Any, *arguments: Any, **more: Any) -> str:
    with pytest.raises(IfonlyError) as told:
        call(*arguments, **more)
    words = str(told.value)
    assert "\n" not in words and words.endswith("."), words
    return words


def test_what_is_not_there(explainer, columns, tmp_path):
    to = explainer.explain_to
    path = tmp_path / "answers.jsonl"
    assert "There is no column 'Name' to keep" in refused(to, path, columns, keep=["Name"])
    assert "keep as a list of names" in refused(to, path, columns, keep="Name")
    assert "answers have one of that name" in refused(
        to, path, {**columns, "status": columns["number"]}, keep=["status"]
    )
    assert "has no column 'isMale'" in refused(to, path, {k: v for k, v in columns.items() if k != "isMale"})
    assert "has no rows" in refused(to, path, [])
    assert "names no table files" in refused(to, path, f"{tmp_path}/*.csv")
    assert "Cannot read the table" in refused(to, path, tmp_path / "none.csv")
    assert "several kinds" in refused(to, path, _mixed(tmp_path))
    assert "A table is a path, a data frame" in refused(to, path, 7)
    assert "its folder is not there" in refused(to, tmp_path / "no" / "answers.csv", columns)
    assert "A table file ends in" in refused(to, tmp_path / "answers.txt", columns)
    assert "processes must be a whole number" in refused(Processes, 0)
    assert "name those to keep" in refused(to, path, as_rows(columns), keep=True)
    assert list(tmp_path.glob("answers*")) == []


def _mixed(folder: Path) -> Path:
    place = folder / "mixed"
    place.mkdir()
    (place / "a.csv").write_text("x\n1\n")
    (place / "b.jsonl").write_text("{}\n")
    return place


def test_another_table_model_or_question_is_not_gone_on_with(explainer, columns, tmp_path, monkeypatch):
    small_chunks(monkeypatch)
    path, source = tmp_path / "answers.jsonl", in_files(columns, tmp_path, "csv")
    asked = Query(constraints=["isMale is fixed"])
    stopped(explainer, path, source, asked)
    assert "is an unfinished run with 80 rows answered" in refused(explainer.explain_to, path, source, asked)

    def again(who: Explainer, table: Any, query: Any, **more: Any) -> str:
        return refused(who.explain_to, path, table, query, existing="resume", **more)

    assert "the question is not the one" in again(explainer, source, Query())
    assert "the question is not the one" in again(
        Explainer(explainer.model, constraints=["isMarried is fixed"]), source, asked
    )
    assert "the method, the limits" in again(explainer.using(limits=Limits(nodes=5)), source, asked)
    assert "the columns to keep are not those" in again(explainer, source, asked, keep=["number"])
    other = network_model(Network.of([(l.weight * 1.001, l.bias) for l in explainer.model.network.layers]), DATA.schema)  # noqa: E741
    assert "the model is not the one" in again(Explainer(other), source, asked)
    content = (source / "2.csv").read_bytes()
    (source / "2.csv").write_bytes(content[:-1])
    assert "the table is not the one" in again(explainer, source, asked)
    (source / "2.csv").write_bytes(content)
    part = tmp_path / "answers.jsonl.parts" / "part-000000000000.jsonl"
    kept = part.read_bytes()
    part.write_bytes(kept[:-5])
    assert "is missing or not what was written" in again(explainer, source, asked)
    part.write_bytes(kept)
    assert explainer.explain_to(path, source, asked, existing="resume").rows == COUNT
    assert explainer.explain_to(path, source, asked, existing="resume").already
    path.unlink()
    assert "missing or changed since" in again(explainer, source, asked)


def stopped(explainer: Explainer, path: Path, source: Any, query: Query) -> None:
    """A run that ends after two parts."""
    calls = 0

    def stop(_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt

    before, run.PROGRESS_SECONDS = run.PROGRESS_SECONDS, 0.0
    try:
        with pytest.raises(KeyboardInterrupt):
            explainer.using(listen=stop).explain_to(path, source, query)
    finally:
        run.PROGRESS_SECONDS = before


def test_rows_in_memory_that_changed_are_not_gone_on_with(explainer, columns, tmp_path, monkeypatch):
    small_chunks(monkeypatch)
    path = tmp_path / "answers.jsonl"
    stopped(explainer, path, columns, Query())
    other = {**columns, "isMale": [*columns["isMale"][1:], columns["isMale"][0]]}
    assert "the table is not the one" in refused(explainer.explain_to, path, other, existing="resume")
    fewer = {name: values[:70] for name, values in columns.items()}
    assert "the table is not the one" in refused(explainer.explain_to, path, fewer, existing="resume")
    assert explainer.explain_to(path, columns, existing="resume").rows == COUNT
    assert "the table is not the one" in refused(explainer.explain_to, path, other, existing="resume")


def test_two_runs_do_not_write_to_one_place(explainer, columns, tmp_path):
    with parts.locked(place_of(tmp_path / "answers.csv")):
        assert "Another run is writing" in refused(explainer.explain_to, tmp_path / "answers.csv", columns)


def test_a_folder_with_something_else_in_it_is_left_alone(explainer, columns, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    assert "is not empty" in refused(explainer.explain_to, tmp_path / "folder", columns)
    assert (tmp_path / "folder" / "mine.txt").read_text() == "mine"
    assert "is not empty" in refused(explainer.explain_to, tmp_path / "folder", columns, existing="replace")
    assert not explainer.explain_to(tmp_path / "new", columns).already
    assert explainer.explain_to(tmp_path / "new", columns).already
    other = Query(constraints=["isMale is fixed"])
    assert "holds a finished run, and the question is not the one" in refused(
        explainer.explain_to, tmp_path / "new", columns, other
    )
    assert not explainer.explain_to(tmp_path / "new", columns, other, existing="replace").already


# ---------------------------------------------------------------------- bad rows


class Moody:
    """A model that does not survive some rows. (In a module, so that it can be sent to a worker.)"""

    def __init__(self, inner: Any, raises: float, kills: float, blank: float) -> None:
        self.inner, self.raises, self.kills, self.blank = inner, raises, kills, blank

    def __call__(self, points: Any) -> Any:
        if (points[:, 0] == self.raises).any():
            raise RuntimeError("not this\none")
        if (points[:, 0] == self.kills).any():
            os._exit(7)
        scores = self.inner(points)
        scores[points[:, 0] == self.blank] = np.nan
        return scores


SCHEMA = Schema((Real("x", -1, 1), Real("y", -1, 1)))


def moody(raises: float = 9.0, kills: float = 9.0, blank: float = 9.0) -> Explainer:
    inner = network_model(Network.of([(np.array([[1.0, 1.0]]), np.array([0.1]))]), SCHEMA)
    original = Moody(inner.original, raises, kills, blank)
    return Explainer(
        Model(function=inner.function, schema=SCHEMA, original=original, classes=inner.classes),
        constraints=["x is fixed"],
    )


def points(count: int) -> dict[str, list[float]]:
    return {"x": [-0.5 + i / 1000 for i in range(count)], "y": [-0.4] * count}


def test_a_row_that_the_model_fails_on_costs_only_itself(tmp_path):
    rows = points(100)
    explainer = moody(raises=rows["x"][40], blank=rows["x"][60])
    written = explainer.explain_to(tmp_path / "answers.jsonl", rows)
    found = records(tmp_path / "answers.jsonl")
    assert written.counts["error"] == 2 and written.counts["nearest"] == 98
    assert found[40]["note"] == "RuntimeError: 'not this\\none'"
    assert found[60]["note"] == "The model gives no score (NaN) for row 60, so nothing can be said of it."


@pytest.mark.long
def test_a_row_that_ends_its_worker_costs_only_itself(tmp_path):
    rows = points(40)
    written = moody(kills=rows["x"][17]).explain_to(tmp_path / "answers.jsonl", rows, engine=Processes(1))
    found = records(tmp_path / "answers.jsonl")
    assert written.counts["error"] == 1 and written.counts["nearest"] == 39
    assert found[17]["note"] == (
        "This row was given up: the process that worked on it ended with the exit code 7, 2 times."
    )


class Graveyard:
    """An engine whose workers all end, but for those that get the rows that are spared."""

    description = "nobody"

    def __init__(self, spared: Any) -> None:
        self.spared = spared

    @contextmanager
    def begin(self, task: Any) -> Any:
        self.task, self.waiting = task, []
        yield self

    @property
    def has_capacity(self) -> bool:
        return len(self.waiting) < 3

    def submit(self, ticket: int, chunk: Any) -> None:
        self.waiting.append((ticket, chunk))

    def next(self) -> Any:
        ticket, chunk = self.waiting.pop()
        rows = range(chunk.first, chunk.end)
        return ticket, self.task(chunk) if all(map(self.spared, rows)) else Lost("its worker was lost")


def test_rows_that_no_worker_survives(tmp_path):
    rows = points(300)
    written = moody().explain_to(tmp_path / "some.jsonl", rows, engine=Graveyard(lambda row: row % 40 != 7))
    found = records(tmp_path / "some.jsonl")
    assert [one["row"] for one in found] == list(range(300))
    assert [one["row"] for one in found if one["status"] == "error"] == list(range(7, 300, 40))
    assert written.counts["error"] == 8
    words = refused(moody().explain_to, tmp_path / "all.jsonl", rows, engine=Graveyard(lambda row: row < 4))
    assert words == "20 rows one after the other were given up (its worker was lost): no worker can answer this."
    assert not (tmp_path / "all.jsonl").exists()


def test_a_model_that_cannot_be_sent(tmp_path):
    inner = network_model(Network.of([(np.array([[1.0, 1.0]]), np.array([0.1]))]), SCHEMA)
    local = Model(function=inner.function, schema=SCHEMA, original=lambda p: inner.original(p), classes=inner.classes)
    words = refused(Explainer(local).explain_to, tmp_path / "answers.jsonl", points(5), engine=Processes(1))
    assert "cannot be sent to other processes" in words
    assert list(tmp_path.iterdir()) == []


def test_wrong_lines_are_error_rows(explainer, columns, tmp_path):
    place = in_files(columns, tmp_path, "jsonl") / "0.jsonl"
    lines = place.read_text(encoding="utf-8").splitlines()
    lines[3], lines[5], lines[7] = "{nothing", "[1, 2]", json.dumps({"isMale": True})
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    written = explainer.explain_to(tmp_path / "answers.jsonl", place, keep=["Customer ID"])
    found = records(tmp_path / "answers.jsonl")
    assert written.counts["error"] == 3
    assert "line 4 is not JSON" in found[3]["note"] and "line 6 must be a JSON object" in found[5]["note"]
    assert "is not in row 7; it has isMale" in found[7]["note"]
    assert [one["Customer ID"] for one in found][:5] == ["c0", "c1", "c2", None, "c4"]


def test_a_cell_too_many_is_an_error_row(explainer, columns, tmp_path):
    place = in_files(columns, tmp_path, "csv") / "0.csv"
    lines = place.read_text(encoding="utf-8").splitlines()
    lines[2] += ",one,too many"
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    written = explainer.explain_to(tmp_path / "answers.jsonl", place)
    assert written.counts == {"nearest": 79, "none exists": 0, "within": 0, "unknown": 0, "error": 1}
    assert "line 3 has" in records(tmp_path / "answers.jsonl")[1]["note"]


def test_memory_does_not_grow(tmp_path):
    """Chunks are made when there is room for them, not before."""
    alive, most = 0, 0

    def endless() -> Any:
        nonlocal alive, most
        for i in range(5000):
            alive += 1
            yield {"x": 0.2, "y": -0.4 - i / 10_000}

    counted = []
    explainer = moody().using(listen=lambda event: counted.append((alive, event.finished)))
    explainer.explain_to(tmp_path / "answers.jsonl", endless(), engine=InProcess())
    assert counted[-1] == (5000, 5000)
    assert max(read - done for read, done in counted) <= 3 * chunks.ROWS


def test_a_table_that_ends_in_the_middle_is_refused(explainer, columns, tmp_path):
    place = in_files(columns, tmp_path, "csv") / "2.csv"
    place.write_bytes(place.read_bytes() + b"\xff\x00\n")  # no text of any kind
    assert "is not UTF-8" in refused(explainer.explain_to, tmp_path / "answers.csv", place)
    assert not (tmp_path / "answers.csv").exists()


def test_the_table_of_the_killed_runs(tmp_path):
    """(So that what they compare is what it should be.)"""
    path = streaming.table(200, tmp_path / "people.csv")
    streaming.explainer().explain_to(tmp_path / "answers.jsonl", path, keep=["Customer ID"])
    found = records(tmp_path / "answers.jsonl")
    assert [one["row"] for one in found if one["status"] == "error"] == [0, 97, 194]
    assert found[199]["Customer ID"] == "c-00199"


# ---------------------------------------------------------------------- every moment


class Crash(BaseException):
    """The power is gone."""


@pytest.mark.long
def test_a_crash_at_every_step(explainer, columns, meant, tmp_path, monkeypatch):
    """Whatever was to be flushed when it happened: nothing half-done under the final name, and the run goes on."""
    small_chunks(monkeypatch)
    flush = parts._flush
    for step in range(1, 100):
        output = tmp_path / str(step) / "answers.jsonl"
        output.parent.mkdir()
        counter = Counter[str]()

        def counted(path: Path, counter: Counter[str] = counter, last: int = step) -> None:
            counter["steps"] += 1
            if counter["steps"] == last:
                raise Crash
            flush(path)

        def crashed(counter: Counter[str] = counter, last: int = step) -> bool:
            return counter["steps"] >= last

        with monkeypatch.context() as patch:
            patch.setattr(parts, "_flush", counted)
            patch.setattr(parts.Parts, "close", lambda self: None)  # nothing is removed
            patch.setattr(parts.Parts, "discard_unfinished", lambda self: None)
            patch.setattr(parts.Parts, "close_part", _unless_crashed(parts.Parts.close_part, crashed))
            try:
                explainer.explain_to(output, columns, keep=["Customer ID"])
            except Crash:
                assert not output.exists() or len(records(output)) == COUNT
            else:
                break
        explainer.explain_to(output, columns, keep=["Customer ID"], existing="resume")
        assert same(records(output), meant)
        assert sorted(one.name for one in output.parent.iterdir()) == ["answers.jsonl", "answers.jsonl.manifest.json"]
    assert step > 15


def _unless_crashed(settle: Any, crashed: Any) -> Any:
    """Who is gone closes nothing."""

    def once(self: Any) -> None:
        if not crashed():
            settle(self)

    return once


# ---------------------------------------------------------------------- columns in the names of folders


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("named", ["folder", "pattern"])
def test_columns_in_the_names_of_folders(explainer, columns, meant, tmp_path, kind, named):
    """As pandas, Spark and Hive write them; here a feature (isMale) and two columns that travel along."""
    root = tmp_path / "people"
    order = sorted(range(COUNT), key=lambda i: (columns["isMale"][i], i % 3))
    for male in dict.fromkeys(columns["isMale"]):
        for third in range(3):
            some = [i for i in order if columns["isMale"][i] == male and i % 3 == third]
            place = (
                root
                / f"isMale={male}"
                / f"to%2Fdo={['a%20b', '__HIVE_DEFAULT_PARTITION__', 'c'][third]}"
                / f"month={third}"
            )
            place.mkdir(parents=True)
            part = {name: [column[i] for i in some] for name, column in columns.items() if name != "isMale"}
            in_file(as_rows(part), place / f"part-0.{kind}")
    source = root if named == "folder" else f"{root}/isMale=*/**/*[0-9].{kind}"
    explainer.explain_to(
        tmp_path / "answers.jsonl", source, keep=["Customer ID", "to/do", "month", *(["number"] * (kind != "csv"))]
    )
    found = {one["Customer ID"]: one for one in records(tmp_path / "answers.jsonl")}
    for i, one in enumerate(meant):
        other = found[f"c{i}"]
        assert (other["to/do"], other["month"]) == (["a b", None, "c"][i % 3], i % 3)
        assert (other["status"], other["counterfactual"]) == (one["status"], one["counterfactual"])


def test_what_the_names_of_folders_cannot_be(explainer, columns, tmp_path):
    (tmp_path / "mixed" / "month=1").mkdir(parents=True)
    path = tmp_path / "answers.jsonl"
    table = in_files(columns, tmp_path, "csv")
    (table / "0.csv").rename(tmp_path / "mixed" / "month=1" / "0.csv")
    (table / "1.csv").rename(tmp_path / "mixed" / "1.csv")
    assert "'month' is in one only" in refused(explainer.explain_to, path, tmp_path / "mixed")
    (tmp_path / "own" / "number=7").mkdir(parents=True)
    (table / "2.csv").rename(tmp_path / "own" / "number=7" / "2.csv")
    explainer.explain_to(path, tmp_path / "own", keep=["number"])
    assert records(path)[0]["number"] == 7  # the folder's column comes before the file's
    (tmp_path / "own" / "number=7").rename(tmp_path / "own" / "month=7")
    assert "the table is not the one" in refused(explainer.explain_to, path, tmp_path / "own", existing="resume")
