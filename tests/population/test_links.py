"""Symbolic and hard links where a run writes: nothing outside of its own folder is written, emptied or removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ifonly import Explainer, datasets
from ifonly.errors import FileError, IfonlyError
from ifonly.population import output as parts
from ifonly.population.output_paths import OutputPaths, place_of
from ifonly.schema.io import replacing

ROWS = {name: list(column[:40]) for name, column in datasets.load("credit", rules=False).columns.items()}
KINDS = ["csv", "jsonl", "parquet"]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need rights there")


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(datasets.network("credit", rules=False), classes=["deny", "approve"])


def refused(call: Callable[..., Any], *arguments: Any, **more: Any) -> str:
    with pytest.raises(IfonlyError) as told:
        call(*arguments, **more)
    return str(told.value)


def content(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of somebody's own files, some of which are called as a run would call its own."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for kind in KINDS:
        (folder / f"part-000000000000.{kind}").write_bytes(b"precious")
        (folder / f".part-000000000000.writing.{kind}").write_bytes(b"precious")
        (folder / f".whole.writing.{kind}").write_bytes(b"precious")
    (folder / ".notes.writing.txt").write_bytes(b"precious")
    (folder / ".manifest.writing").write_bytes(b"precious")
    return folder


@pytest.mark.parametrize("existing", ["refuse", "resume", "replace"])
@pytest.mark.parametrize("kind", KINDS)
def test_parts_that_are_a_link(explainer, tmp_path, mine, kind, existing):
    before = content(mine)
    (tmp_path / f"answers.{kind}.parts").symlink_to(mine)
    told = refused(explainer.explain_to, tmp_path / f"answers.{kind}", ROWS, existing=existing)
    assert "is a symbolic link" in told and "answers" in told
    assert content(mine) == before


@pytest.mark.parametrize("existing", ["refuse", "resume", "replace"])
def test_a_folder_of_parts_that_is_a_link(explainer, tmp_path, mine, existing):
    """Also one that leads to a run: who means that names it."""
    explainer.explain_to(tmp_path / "run", ROWS)
    for name, target in (("a", mine), ("b", tmp_path / "run")):
        before = content(target)
        (tmp_path / name).symlink_to(target)
        assert "is a symbolic link" in refused(explainer.explain_to, tmp_path / name, ROWS, existing=existing)
        assert content(target) == before


def test_a_finished_run_whose_parts_became_a_link(explainer, tmp_path, mine):
    """What it says is done already; what it would tidy up is not its own."""
    path = tmp_path / "answers.jsonl"
    explainer.explain_to(path, ROWS)
    (tmp_path / "answers.jsonl.parts").symlink_to(mine)
    before = content(mine)
    assert "is a symbolic link" in refused(explainer.explain_to, path, ROWS)
    link = OutputPaths(path=path, folder=tmp_path / "answers.jsonl.parts", manifest=path, suffix=".jsonl")
    link.clear({"parts": [{"name": "part-000000000000.jsonl"}], "rows": 40})
    assert content(mine) == before


def test_a_link_that_comes_after_the_first_look(explainer, tmp_path, mine, monkeypatch):
    path, before = tmp_path / "answers.jsonl", content(mine)
    earlier = parts.locked

    def late(place: Any) -> Any:
        place.folder.symlink_to(mine)
        return earlier(place)

    monkeypatch.setattr("ifonly.population.run.locked", late)
    assert "is a symbolic link" in refused(explainer.explain_to, path, ROWS)
    assert content(mine) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("existing", ["refuse", "replace"])
def test_a_folder_of_somebody_else(explainer, tmp_path, mine, kind, existing):
    """No link, but no run's either: its files stay, whatever they are called."""
    before = content(mine)
    folder = tmp_path / f"answers.{kind}.parts"
    mine.rename(folder)
    told = refused(explainer.explain_to, tmp_path / f"answers.{kind}", ROWS, existing=existing)
    assert "no run" in told and content(folder) == before
    mine = folder.rename(tmp_path / f"folder.{kind}")
    told = refused(explainer.explain_to, f"{mine}/", ROWS, existing=existing)
    assert "is not empty" in told and content(mine) == before


@pytest.mark.parametrize("how", ["symbolic", "hard"])
@pytest.mark.parametrize("kind", KINDS)
def test_links_inside_the_folder(explainer, tmp_path, kind, how):
    """Somebody has put links there, by the names that a run gives its files: their targets stay as they are."""
    victim, path = tmp_path / "victim", tmp_path / f"answers.{kind}"
    victim.write_bytes(b"precious")
    names = [f".part-000000000000.writing.{kind}", f".whole.writing.{kind}", ".manifest.writing", ".lock"]

    def link(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)
            if how == "hard":
                (folder / name).hardlink_to(victim)
            else:
                (folder / name).symlink_to(victim)

    explainer.explain_to(path, ROWS)
    folder = place_of(path).folder
    folder.mkdir()
    link(folder)
    if how == "symbolic":
        assert "Cannot write" in refused(explainer.explain_to, path, ROWS, existing="replace")
        (folder / ".lock").unlink()
    explainer.explain_to(path, ROWS, existing="replace")
    assert victim.read_bytes() == b"precious" and victim.stat().st_nlink == 1
    assert not folder.exists()


def test_a_lock_that_leads_elsewhere_makes_no_file_there(explainer, tmp_path):
    folder = tmp_path / "answers.csv.parts"
    folder.mkdir()
    (folder / ".lock").symlink_to(tmp_path / "made")
    assert "Cannot write" in refused(explainer.explain_to, tmp_path / "answers.csv", ROWS)
    assert not (tmp_path / "made").exists()


def test_parts_that_changed_before_they_were_joined(explainer, tmp_path, monkeypatch):
    path = tmp_path / "answers.jsonl"
    joined = parts.concatenate

    def joining(target: Path, several: Any, *given: Any, **more: Any) -> None:
        several = list(several)
        several[0].write_bytes(several[0].read_bytes().replace(b"nearest", b"Nearest", 1))
        joined(target, several, *given, **more)

    monkeypatch.setattr(parts, "concatenate", joining)
    assert "is missing or not what was written" in refused(explainer.explain_to, path, ROWS)
    assert not path.exists()


def test_a_temporary_file_is_made_by_us_alone(tmp_path, monkeypatch):
    """Its name cannot be guessed; were it guessed, nothing is written through the link that stands there."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")

    class Guessed:
        hex = "0" * 32

    monkeypatch.setattr("ifonly.files.uuid.uuid4", Guessed)
    (tmp_path / f".page.{'0' * 32}.html").symlink_to(victim)
    (tmp_path / f".page.{'0' * 8}.html").symlink_to(victim)
    with pytest.raises(FileError), replacing(tmp_path / "page.html") as part:
        part.write_text("mine", encoding="utf-8")
    assert victim.read_bytes() == b"precious"


def test_the_record_of_a_contradiction_is_a_new_file_for_us_alone(tmp_path, monkeypatch):
    """It stands in a folder that everybody may write to, and holds somebody's row."""
    from types import SimpleNamespace

    import numpy as np

    from ifonly.solvers.common import contradiction

    monkeypatch.setattr(contradiction.tempfile, "tempdir", str(tmp_path))
    function = SimpleNamespace(statement=dict)
    schema = datasets.load("credit", rules=False).schema
    question: Any = SimpleNamespace(describe=str, schema=schema, model=SimpleNamespace(classes=(), function=function))
    said = {contradiction.saved(question, np.zeros(2), lower=1.0) for _ in range(2)}
    files = list(tmp_path.iterdir())
    assert len(said) == len(files) == 2 and all(file.stat().st_mode & 0o777 == 0o600 for file in files)
