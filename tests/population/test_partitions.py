"""Hive partitioning of answers: the same records as without, in folders that other tools read as one table."""

from __future__ import annotations

import json

import pytest

from ifonly import Explainer, Integer, Network, Real, Schema
from ifonly.errors import FileError, QuestionError
from ifonly.model import network_model
from ifonly.population import Output, chunks, partitions, sources
from ifonly.population import output as parts
from ifonly.population.reading import read_answers

SCHEMA = Schema([Integer("age", 18, 90), Real("debt", 0, 100, step=0.01)])
EXPLAINER = Explainer(network_model(Network.of([([[1.0, -1.0]], [-30.0])]), SCHEMA, classes=("no", "yes")))
TOWNS = ["Ulm", "Köln/Süd", None, "a=b ..", "Ulm"]
ROWS = [{"id": f"C-{i}", "town": TOWNS[i % 5], "age": 20 + i, "debt": 3.0 * i} for i in range(23)]


def told(path) -> list[tuple]:
    """The answers in the order in which they are read, with the columns that were kept."""
    read = [json.loads(json.dumps(one.to_dict())) for one in read_answers(path)]
    return [(one["row"], one["status"], one["distance"], {**one["factual"], "town": one["factual"]["town"] or None})
            for one in read]  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_folders_hold_the_records_of_one_file(tmp_path, ending) -> None:
    EXPLAINER.explain_to(tmp_path / f"whole{ending}", ROWS, "yes", keep=["id", "town"])
    output = Output(f"{tmp_path}/parts{ending}/", partition_by=("town", "status"))
    assert EXPLAINER.explain_to(output, ROWS, "yes", keep=["id"]).rows == len(ROWS)
    assert told(tmp_path / f"parts{ending}") == told(tmp_path / f"whole{ending}")
    names = {one.name for one in (tmp_path / f"parts{ending}").iterdir() if one.is_dir()}
    assert names == {"town=Ulm", "town=K%C3%B6ln%2FS%C3%BCd", "town=a%3Db ..", "town=__HIVE_DEFAULT_PARTITION__"}
    assert set(sources.source_of(f"{tmp_path}/parts{ending}/").names or ["town", "status"]) >= {"town", "status"}
    assert EXPLAINER.explain_to(output, ROWS, "yes", keep=["id"]).already


def test_arrow_reads_the_folders_as_one_table(tmp_path) -> None:
    datasets = pytest.importorskip("pyarrow.dataset")
    EXPLAINER.explain_to(Output(f"{tmp_path}/a.parquet/", partition_by=("town",)), ROWS, "yes", keep=["id"])
    files = [str(one) for one in (tmp_path / "a.parquet").rglob("part-*")]
    table = datasets.dataset(files, partitioning="hive", partition_base_dir=f"{tmp_path}/a.parquet").to_table()
    read = {one["id"]: one["town"] for one in table.to_pylist()}
    assert read == {one["id"]: one["town"] for one in ROWS}


def test_a_run_is_resumed(tmp_path, monkeypatch) -> None:
    for module, name in ((parts, "MOST_ROWS"), (sources, "ROWS"), (chunks, "ROWS")):
        monkeypatch.setattr(module, name, 4)
    output = Output(f"{tmp_path}/a.jsonl/", partition_by=("town",))

    def some():
        yield from ROWS[:9]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EXPLAINER.explain_to(output, some(), "yes", keep=["id"])
    state = json.loads((tmp_path / "a.jsonl" / "_manifest.json").read_text())
    left = tmp_path / "a.jsonl" / "town=Bonn" / f"part-{state['rows']:012d}.jsonl"
    left.parent.mkdir()
    left.write_text("of a run that was killed before it named this part")
    with pytest.raises(QuestionError, match="the columns of its folders are not those"):
        EXPLAINER.explain_to(f"{tmp_path}/a.jsonl/", ROWS, "yes", keep=["id", "town"], existing="resume")
    assert EXPLAINER.explain_to(output, ROWS, "yes", keep=["id"], existing="resume").rows == len(ROWS)
    assert not left.parent.exists()
    EXPLAINER.explain_to(tmp_path / "whole.jsonl", ROWS, "yes", keep=["id", "town"])
    assert told(tmp_path / "a.jsonl") == told(tmp_path / "whole.jsonl")
    EXPLAINER.explain_to(f"{tmp_path}/a.jsonl/", ROWS, "yes", keep=["id", "town"], existing="replace")
    assert not list((tmp_path / "a.jsonl").glob("town=*")), "folders of the run that was replaced"


def test_what_is_refused_says_what_to_do(tmp_path, monkeypatch) -> None:
    with pytest.raises(FileError, match="such as 'a.csv/', with a slash"):
        EXPLAINER.explain_to(Output(tmp_path / "a.csv", partition_by=("town",)), ROWS)
    with pytest.raises(QuestionError, match="is a tuple of columns, such as"):
        Output("a/", partition_by="town")  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="up to 4 different columns"):
        Output("a/", partition_by=("town", "town"))
    with pytest.raises(QuestionError, match="answers have one of that name"):
        EXPLAINER.explain_to(Output(f"{tmp_path}/b/", partition_by=("changes",)), ROWS)
    with pytest.raises(QuestionError, match="too long for the name of a folder"):
        EXPLAINER.explain_to(Output(f"{tmp_path}/c/", partition_by=("town",)), [{**ROWS[0], "town": "x" * 300}])
    monkeypatch.setattr(parts, "MOST_FOLDERS", 10)
    with pytest.raises(QuestionError, match="more than 10 folders: partition by columns of fewer values"):
        EXPLAINER.explain_to(Output(f"{tmp_path}/d/", partition_by=("id",)), ROWS)
    (tmp_path / "elsewhere").mkdir()
    output = Output(f"{tmp_path}/e/", partition_by=("town",))
    EXPLAINER.explain_to(output, ROWS)
    for one in (tmp_path / "e" / "town=Ulm").iterdir():
        one.unlink()
    (tmp_path / "e" / "town=Ulm").rmdir()
    (tmp_path / "e" / "town=Ulm").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="is a symbolic link"):
        EXPLAINER.explain_to(output, ROWS, existing="replace")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not partitions.is_part("../part-1.csv") and not partitions.is_part("a=1/../part-1.csv")
    assert partitions.is_part("a=1/part-1.csv")
