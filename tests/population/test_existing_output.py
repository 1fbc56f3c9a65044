"""A file that is there is not lost: a run leaves it, goes on with its own, or writes over it when asked to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ifonly import Explainer, Query, datasets
from ifonly.errors import FileError, IfonlyError
from ifonly.population import output as parts
from ifonly.population.output_paths import place_of
from ifonly.schema.io import move, replacing

ROWS = {name: list(column[:40]) for name, column in datasets.load("credit", rules=False).columns.items()}
OTHER = Query(constraints=["isMale is fixed"])


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(datasets.network("credit", rules=False), classes=["deny", "approve"])


def refused(call: Callable[..., Any], *arguments: Any, **more: Any) -> str:
    with pytest.raises(IfonlyError) as told:
        call(*arguments, **more)
    return str(told.value)


@pytest.mark.parametrize("name", ["answers.csv", "answers.jsonl", "answers.parquet"])
def test_a_file_of_somebody_else(explainer, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"somebody else's")
    for existing in ("refuse", "resume"):
        told = refused(explainer.explain_to, path, ROWS, existing=existing)
        assert told == f"'{path}' is there already; to write over it, add --force (existing=\"replace\")."
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [(name, b"somebody else's")]
    assert explainer.explain_to(path, ROWS, existing="replace").rows == 40
    assert path.read_bytes() != b"somebody else's"


def test_the_same_question_again_does_nothing(explainer, tmp_path):
    path = tmp_path / "answers.jsonl"
    explainer.explain_to(path, ROWS)
    before = path.stat().st_mtime_ns, path.read_bytes()
    assert explainer.explain_to(path, ROWS).already
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert "the question is not the one that it was made with" in refused(explainer.explain_to, path, ROWS, OTHER)
    fewer = {name: column[:20] for name, column in ROWS.items()}
    assert "the table is not the one" in refused(explainer.explain_to, path, fewer)
    assert path.read_bytes() == before[1]
    assert explainer.explain_to(path, ROWS, OTHER, existing="replace").rows == 40
    path.write_bytes(b"my own remarks")
    assert "missing or changed since; begin anew, with --force" in refused(explainer.explain_to, path, ROWS, OTHER)
    assert path.read_bytes() == b"my own remarks"
    path.unlink()
    assert not explainer.explain_to(path, ROWS).already


def test_a_file_that_comes_while_the_run_goes_on(explainer, tmp_path):
    path = tmp_path / "answers.jsonl"

    def come(_: Any) -> None:
        path.write_bytes(b"somebody else's")

    told = refused(explainer.using(listen=come).explain_to, path, ROWS)
    assert "has come there since the run began; all rows are answered and kept" in told
    assert path.read_bytes() == b"somebody else's"
    assert "not of this run; move it away" in refused(explainer.explain_to, path, ROWS, existing="resume")
    assert "unfinished run with 40 rows answered" in refused(explainer.explain_to, path, ROWS)
    path.rename(tmp_path / "moved")
    assert explainer.explain_to(path, ROWS, existing="resume").rows == 40
    assert len(path.read_text(encoding="utf-8").splitlines()) == 40
    assert (tmp_path / "moved").read_bytes() == b"somebody else's"


def test_a_file_that_changes_while_it_is_written_over(explainer, tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b"old")
    late = explainer.using(listen=lambda _: path.write_bytes(b"newer"))
    assert "has come there since" in refused(late.explain_to, path, ROWS, existing="replace")
    assert path.read_bytes() == b"newer"


def test_the_old_file_stays_until_the_new_one_is_whole(explainer, tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b"old")

    def stop(_: Any) -> None:
        assert path.read_bytes() == b"old"
        if list(place_of(path).parts()):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "MOST_ROWS", 1)
        with pytest.raises(KeyboardInterrupt):
            explainer.using(listen=stop).explain_to(path, ROWS, existing="replace")
    assert path.read_bytes() == b"old"
    assert explainer.explain_to(path, ROWS, existing="resume").rows == 40  # begun over this file: gone on over it


def test_links_folders_and_what_stands_beside(explainer, tmp_path):
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_bytes(b"real")
    link.symlink_to(real)
    assert "is there already" in refused(explainer.explain_to, link, ROWS)
    explainer.explain_to(link, ROWS, existing="replace")
    assert link.is_symlink() and len(real.read_text(encoding="utf-8").splitlines()) == 40
    circle = tmp_path / "circle.csv"
    circle.symlink_to(circle)
    assert "Cannot write" in refused(explainer.explain_to, circle, ROWS)
    (tmp_path / "folder.csv").mkdir()
    assert "it is a folder" in refused(explainer.explain_to, tmp_path / "folder.csv", ROWS, existing="replace")
    beside = tmp_path / "answers.csv.parts"
    beside.mkdir()
    (beside / "part-of-my-life.txt").write_text("mine", encoding="utf-8")
    explainer.explain_to(tmp_path / "answers.csv", ROWS)
    assert [one.name for one in beside.iterdir()] == ["part-of-my-life.txt"]
    (tmp_path / "b.csv.manifest.json").write_text("{}", encoding="utf-8")
    assert "is no manifest of a run" in refused(explainer.explain_to, tmp_path / "b.csv", ROWS, existing="replace")
    assert "'existing' is one of 'refuse', 'resume', 'replace'" in refused(
        explainer.explain_to, tmp_path / "c.csv", ROWS, existing=True
    )


def test_a_manifest_that_knows_nothing_of_what_it_replaces(explainer, tmp_path):
    path = tmp_path / "answers.jsonl"
    explainer.explain_to(path, ROWS)
    manifest = place_of(path).manifest
    data = json.loads(manifest.read_text(encoding="utf-8"))
    del data["replaces"]
    manifest.write_text(json.dumps(data), encoding="utf-8")
    assert explainer.explain_to(path, ROWS).already


def test_a_file_is_moved_only_to_a_free_place(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    with pytest.raises(FileError, match="is there already"), replacing(path, overwrite=False) as part:
        part.write_text("mine", encoding="utf-8")
        path.write_text("yours", encoding="utf-8")
    assert [(one.name, one.read_text(encoding="utf-8")) for one in tmp_path.iterdir()] == [("page.html", "yours")]

    def no_links(*_: Any) -> None:
        raise PermissionError("a file system without links")

    monkeypatch.setattr("os.link", no_links)
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError):
        move(mine, path, overwrite=False)
    move(mine, Path(tmp_path / "free.html"), overwrite=False)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["free.html", "page.html"]
